"""The executed notebook as text: a worker sends it, it lies in autograded/, gradebook and feedback page read it."""

from __future__ import annotations

import json
from functools import lru_cache

from nbformat import NotebookNode
from nbformat.v4 import reads


def text_of(notebook: NotebookNode) -> str:
    """The notebook as JSON in one line: nbformat's own writer copies everything and indents, which takes longer."""
    return json.dumps(notebook, ensure_ascii=False)


@lru_cache(maxsize=1)
def notebook_of(text: str) -> NotebookNode:
    """The notebook in a text. Gradebook and feedback page look at the same one in turn; neither may change it."""
    notebook: NotebookNode = reads(text)
    return notebook
