"""A made-up student: the answers, the form of the file, and what grading must find."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

GRADED, PARTLY = "graded", "partly-graded"


def plain(notebook: NotebookNode) -> bytes:
    """As JupyterLab saves it."""
    return nbformat.writes(notebook, indent=1).encode()


def without_ids(notebook: NotebookNode) -> bytes:
    """As an older editor saves it: format 4.4, which has no cell ids, and each source as one string."""
    document = copy.deepcopy(notebook)
    for cell in document.cells:
        cell.pop("id", None)
    document.nbformat_minor = 4
    return json.dumps(document, ensure_ascii=False).encode()


def with_mark(notebook: NotebookNode) -> bytes:
    """With a byte order mark and Windows line ends, as some Windows programs save text."""
    return b"\xef\xbb\xbf" + plain(notebook).replace(b"\n", b"\r\n")


def from_colab(notebook: NotebookNode) -> bytes:
    """Cell ids of its own and metadata of its own, as a notebook service rewrites it; nbgrader's metadata stays."""
    document = copy.deepcopy(notebook)
    document.metadata["colab"] = {"provenance": []}
    document.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {}}
    for number, cell in enumerate(document.cells):
        cell["id"] = f"x{number:010d}"
        cell.metadata["id"] = cell["id"]
        cell.metadata.pop("name", None)
    return json.dumps(document).encode()


def without_metadata(notebook: NotebookNode) -> bytes:
    """Nothing but cells: an editor that keeps neither ids nor metadata."""
    cells = [
        {"cell_type": cell.cell_type, "metadata": {}, "source": cell.source.splitlines(keepends=True)}
        | ({"outputs": [], "execution_count": None} if cell.cell_type == "code" else {})
        for cell in notebook.cells
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 2}).encode()


@dataclass(frozen=True)
class Student:
    """One submission and what is expected of its grading.

    Attributes:
        about: what this student shows.
        answers: source of answer cells by grade id; the others stay as they were released.
        lost: exercises that lose points, each with the slug that must be given; None where no known mistake fits.
        outcome: "graded" or "partly-graded".
        reason: part of the English reason; empty for a submission that is graded in full.
        own_cells: source of cells of the student's own, each before the answer cell with this grade id.
        form: how the file is written.
    """

    about: str
    answers: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, str | None] = field(default_factory=dict)
    outcome: str = GRADED
    reason: str = ""
    own_cells: Mapping[str, str] = field(default_factory=dict)
    form: Callable[[NotebookNode], bytes] = plain

    @property
    def is_right(self) -> bool:
        return not self.lost

    def notebook(self, release: NotebookNode) -> NotebookNode:
        """The released notebook with this student's answers and cells in it.

        Raises:
            KeyError: the release has no answer cell of one of these ids.
        """
        document = copy.deepcopy(release)
        cells = []
        left = set(self.answers) | set(self.own_cells)
        for cell in document.cells:
            marks = cell.metadata.get("nbgrader", {})
            name = marks.get("grade_id")
            if marks.get("solution"):
                if name in self.own_cells:
                    cells.append(new_code_cell(self.own_cells[name], id=f"mine-{len(cells)}"))
                if name in self.answers:
                    cell.source = self.answers[name].strip("\n")
                left.discard(name)
            cells.append(cell)
        if left:
            raise KeyError(f"the release has no answer cell {', '.join(sorted(left))}")
        document.cells = cells
        return document
