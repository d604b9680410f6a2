"""In which language a submission is written."""

from __future__ import annotations

import re
from pathlib import Path

from autograder.errors import UnreadableNotebook
from autograder.notebooks.reading import read_notebook
from autograder.results import Language

CHINESE = re.compile("[\u3400-\u9fff]")
LATIN = re.compile("[A-Za-z]")
ENOUGH = 200
"""Letters; with fewer of them nothing is said."""
SHARE = 0.2
"""Of Chinese characters among all letters of the prose, names in code and formulas included. The Chinese edition of
lesson 02 has 0.68, the English lessons at most 0.002; one of these with a page of Chinese notes stays below 0.1."""


def language_of(notebook: Path) -> Language | None:
    """The language of a notebook's prose; None when it has little prose or can't be read."""
    try:
        cells = read_notebook(notebook).cells
    except UnreadableNotebook:
        return None
    text = "\n".join(cell.source for cell in cells if cell.kind == "markdown")
    chinese, latin = len(CHINESE.findall(text)), len(LATIN.findall(text))
    if chinese + latin < ENOUGH:
        return None
    return "zh" if chinese / (chinese + latin) >= SHARE else "en"
