"""What the tests of fitting share: two answers, and ways to look into a notebook."""

from __future__ import annotations

from collections.abc import Callable

import nbformat
from nbformat import NotebookNode

from autograder.notebooks.fitting import Fitted

Cells = list[NotebookNode]
Fit = Callable[[NotebookNode], Fitted]
PAIR_ANSWER = "def pair_frequencies(d_model, base=10000.0):\n    return 'mine'"
MASK_ANSWER = "def causal_mask(length, device=None):\n    return 'my mask'"


def ids(notebook: NotebookNode) -> list[str]:
    return [cell["id"] for cell in notebook.cells]


def source_of(notebook: NotebookNode, name: str) -> str:
    (cell,) = [cell for cell in notebook.cells if cell["id"] == name]
    text: str = cell.source
    return text


def position(notebook: NotebookNode, name: str) -> int:
    return ids(notebook).index(name)


def code(source: str, **metadata: object) -> NotebookNode:
    return nbformat.v4.new_code_cell(source, metadata=metadata)
