"""What becomes of a cell's text before it runs: the same as in any Jupyter kernel, and sooner."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from autograder.kernels.shell import _Transformers

ROOT = Path(__file__).resolve().parents[2]
CELLS = [
    cell.source
    for path in sorted((ROOT / "source").rglob("*.ipynb"))
    for cell in nbformat.read(path, as_version=4).cells
    if cell.cell_type == "code"
]
ODD = {
    "magic": "%matplotlib inline\nx = 1",
    "cell magic": "%%time\nx = 1\n",
    "shell": "!ls -l\nx = 1",
    "shell into a name": "files = !ls\nprint(files)",
    "magic into a name": "here = %pwd\nprint(here)",
    "help": "x = 1\nx?",
    "more help": "x = 1\n??print",
    "prompts of Python": ">>> x = 1\n>>> x\n",
    "prompts of IPython": "In [1]: x = 1\n   ...: y = 2\n",
    "dots in the second line": "x = 1\n...\n",
    "indented": "    x = 1\n    y = 2",
    "blank lines first": "\n\nx = 1",
    "a comment that is indented": "  # first\nx = '''\n  text'''",
    "question mark in a text": "x = 'why?'\ny = '''\n%time\n!ls\n?'''",
    "percent first in a line that goes on": "x = (7\n% 4)\ny = 7 \\\n% 4\n",
    "await": "import asyncio\nawait asyncio.sleep(0)\n%pwd",
    "await alone": "import asyncio\nawait asyncio.sleep(0)\n",
    "a slip": "def f(:\n    return 1\n",
    "a slip and a magic": "%pwd\ndef f(:\n",
    "an open bracket": "x = (1,\n",
    "null byte": "x = 1\0\n",
    "half a surrogate pair": "x = 'a\\ud800'\ny = '\ud800'\n",
    "a warning": "x = '\\d'\ny = 1",
    "nothing": "",
    "form feed and others that end lines": "x = 'a\x0cb'\ny = 'a\x1cb\u2028c'\n",
}


@pytest.mark.parametrize("source", ODD.values(), ids=ODD)
def test_ipythons_own_syntax_is_found(source: str) -> None:
    """As IPython's own transformer does, whatever the cell holds."""
    assert _Transformers().transform_cell(source) == TransformerManager().transform_cell(source)


def test_python_is_left_as_it_is() -> None:
    """Every cell of the course, as IPython's own transformer would leave it."""
    assert len(CELLS) > 100
    ours, theirs = _Transformers(), TransformerManager()
    for source in CELLS:
        assert ours.transform_cell(source) == theirs.transform_cell(source)


def test_a_transformer_that_a_notebook_adds_is_used() -> None:
    """Also on a cell that is Python."""
    manager = _Transformers()
    seen = []

    class Look:
        @classmethod
        def find(cls, tokens: object) -> None:
            seen.append(tokens)

    manager.token_transformers = [*manager.token_transformers, Look]
    manager.transform_cell("x = 1\n")
    assert seen
