"""What a kind of bad submission is, and those that nothing can mend: rejected, or judged for what they are."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from tests.e2e.helpers import Document
from tests.sample_class import sample_class
from tests.sample_class.student import Student

LESSON, OTHER = "02-sinusoidal-encoding", "01-why-order-matters"
EXERCISES = ("pair-frequencies", "wavelengths", "position-similarity", "quiz-sinusoidal")
RIGHT = {name: answer for name, answer in sample_class(LESSON)["student-01"].answers.items() if name in EXERCISES}
FULL: Mapping[str, str | None] = dict.fromkeys(EXERCISES, "full")
NOTHING: Mapping[str, str | None] = dict.fromkeys(EXERCISES, "unanswered")
STRIPPED = "nbgrader's metadata was gone from all 9 cells; answers were found by "
BY_NAME = "answers in other cells, found by what they define: {}"

Made = NotebookNode | bytes | None
"""A notebook, the bytes of a file, or None for the notebook that was given, changed in place."""


@dataclass(frozen=True)
class Kind:
    """A kind of bad submission and what grading must say of it.

    Attributes:
        make: changes a notebook with right answers, or writes the file.
        answers: source of answer cells by grade id instead of the right ones; None for a blank notebook.
        reason: how the reason begins.
        exercises: each exercise's mistake, "full" for full marks.
        repairs: all that is told of repairs, in order.
    """

    make: Callable[[NotebookNode], Made] = lambda notebook: None
    answers: Mapping[str, str] | None = field(default_factory=dict)
    outcome: str = "graded"
    reason: str = ""
    exercises: Mapping[str, str | None] = field(default_factory=lambda: FULL)
    repairs: tuple[str, ...] = ()

    def file(self, release: NotebookNode) -> bytes:
        """What is handed in."""
        notebook = copy.deepcopy(release) if self.answers is None else answered(release, self.answers)
        made = self.make(notebook)
        if isinstance(made, bytes):
            return made
        return json.dumps(notebook if made is None else made, ensure_ascii=False, indent=1).encode()


def answered(release: NotebookNode, answers: Mapping[str, str] | None = None) -> NotebookNode:
    """The release with right answers, or with these."""
    return Student("right", {**RIGHT, **(answers or {})}).notebook(release)


def marks_of(cell: NotebookNode) -> Document:
    found: Document = cell.metadata.get("nbgrader", {})
    return found


def at(notebook: NotebookNode, name: str) -> int:
    """Where the cell with this id stands."""
    return [cell["id"] for cell in notebook.cells].index(name)


def cell_of(notebook: NotebookNode, name: str) -> NotebookNode:
    found: NotebookNode = notebook.cells[at(notebook, name)]
    return found


def remove(notebook: NotebookNode, *names: str) -> None:
    notebook.cells = [cell for cell in notebook.cells if cell["id"] not in names]


def insert_before(notebook: NotebookNode, name: str, *sources: str) -> None:
    """Code cells of the student's own in front of the cell with this id."""
    place = at(notebook, name)
    notebook.cells[place:place] = [new_code_cell(source, id=f"mine-{place}-{i}") for i, source in enumerate(sources)]


# What no reader can make a notebook of.

REJECTED: dict[str, tuple[bytes, str]] = {
    "empty-file": (b"", "is empty"),
    "blank-file": (b" \n\n", "is empty"),
    "not-text": (bytes(range(128, 256)) * 9, "is not text in utf-8"),
    "json-list": (b"[1, 2, 3]", "holds a JSON list, not a notebook"),
    "json-other": (b'{"score": 100}', "has no list of cells"),
    "no-cells": (b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "None of the answer cells"),
    "page": (b"<!DOCTYPE html><html><body>Log in</body></html>", "is not JSON"),
    "nested": (b"[" * 100_000, "nested too deeply"),
    "script": (RIGHT["wavelengths"].encode(), "is not JSON"),
    "zipped": (b"PK\x03\x04\x14\x00\x00\x00\x08\x00\xff\xfe", "is not text in utf-8"),
}

# What runs, and earns nothing by a trick.


def _skip_everything(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell.metadata["tags"] = ["skip-execution", "raises-exception"]


def _tests_worth_a_thousand(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        if marks_of(cell).get("grade"):
            cell.source = "1000.0"
            cell.metadata["nbgrader"]["points"] = 1000


def _dies_at_once(notebook: NotebookNode) -> None:
    notebook.cells.insert(0, new_code_cell("import os\nos.kill(os.getpid(), 9)"))


STUCK = """
def wavelengths(d_model, base=10000.0):
    while True:
        try:
            while True:
                pass
        except KeyboardInterrupt:
            pass
"""
NONSENSE = """
class Agreeable:
    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return Agreeable()


def position_similarity(encoding):
    return Agreeable()
"""
SYNTAX_ERROR = "def wavelengths(d_model, base=10000.0)\n    return 2 * math.pi / pair_frequencies(d_model, base)"
NOT_REACHED: Mapping[str, str | None] = dict.fromkeys(EXERCISES, "not-reached")
TESTS = ", ".join(f"test-{name}" for name in EXERCISES)

JUDGED: dict[str, Kind] = {
    "dies": Kind(
        _dies_at_once,
        outcome="partly-graded",
        reason="the kernel died in the cell own-0",
        exercises=NOT_REACHED,
    ),
    "stuck": Kind(
        answers={"wavelengths": STUCK},
        outcome="partly-graded",
        reason="the cell test-wavelengths did not end and ignored the interrupt",
        exercises={**NOT_REACHED, "pair-frequencies": "full"},
    ),
    "nonsense": Kind(
        answers={
            "position-similarity": NONSENSE,
            "wavelengths": "wavelengths = 17",
            "quiz-sinusoidal": "q1 = q2 = q3 = q4 = q5 = q1",
        },
        exercises={**FULL, "position-similarity": None, "wavelengths": None, "quiz-sinusoidal": "not-defined"},
    ),
    "skips-tests": Kind(_skip_everything, answers=None, exercises=NOTHING),
    "pays-itself": Kind(
        _tests_worth_a_thousand, answers=None, exercises=NOTHING, repairs=(f"changed and restored: {TESTS}",)
    ),
    "syntax-error": Kind(answers={"wavelengths": SYNTAX_ERROR}, exercises={**FULL, "wavelengths": "not-defined"}),
    "asks-for-input": Kind(
        answers={"wavelengths": f"n = input('How many?')\n{RIGHT['wavelengths']}"},
        exercises={**FULL, "wavelengths": "not-defined"},
    ),
}
