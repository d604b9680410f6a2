"""One class with every bad input that people hand in: each is a typed outcome, and its neighbours are untouched."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from nbgrader.api import Gradebook

from tests.e2e.helpers import (
    Document,
    assert_schema,
    by_exercise,
    by_student,
    course_folder,
    grade,
    notebook_path,
    read,
    short_lesson,
    without_seconds,
    write,
)
from tests.sample_class import sample_class
from tests.sample_class.student import Student, plain, with_mark

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("bad-submissions")]

LESSON, OTHER = "02-sinusoidal-encoding", "01-why-order-matters"
EXERCISES = ("pair-frequencies", "wavelengths", "position-similarity", "quiz-sinusoidal")
RIGHT = {name: answer for name, answer in sample_class(LESSON)["student-01"].answers.items() if name in EXERCISES}
FULL = dict.fromkeys(EXERCISES, "full")
NOTHING = dict.fromkeys(EXERCISES, "unanswered")

Spoil = Callable[[NotebookNode], None]
Exercises = dict[str, str | None]


def _answered(release: NotebookNode, **answers: str) -> NotebookNode:
    """The release with right answers, or with these (underscores stand for hyphens)."""
    replaced = {name.replace("_", "-"): answer for name, answer in answers.items()}
    return Student("right", {**RIGHT, **replaced}).notebook(release)


def _marks(cell: NotebookNode) -> Document:
    found: Document = cell.metadata.get("nbgrader", {})
    return found


def _skip_everything(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell.metadata["tags"] = ["skip-execution", "raises-exception"]


def _without_tests(notebook: NotebookNode) -> None:
    notebook.cells = [cell for cell in notebook.cells if not _marks(cell).get("grade")]


def _without_wavelengths(notebook: NotebookNode) -> None:
    notebook.cells = [cell for cell in notebook.cells if _marks(cell).get("grade_id") != "wavelengths"]


def _tests_worth_a_thousand(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        if _marks(cell).get("grade"):
            cell.source = "1000.0"
            cell.metadata["nbgrader"]["points"] = 1000


def _everything_twice(notebook: NotebookNode) -> None:
    notebook.cells = [copy.deepcopy(cell) for cell in notebook.cells for _ in range(2)]


def _odd_metadata(notebook: NotebookNode) -> None:
    for number, cell in enumerate(notebook.cells):
        if _marks(cell):
            cell.metadata["nbgrader"]["schema_version"] = (1, 99, None)[number % 3]
        cell["id"] = None
    notebook.metadata["kernelspec"] = {"name": "no-such-kernel", "display_name": "?", "language": "julia"}


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


@dataclass(frozen=True)
class Expected:
    """What grading must say: outcome, a part of the reason, and each exercise's mistake ("full" for full marks)."""

    outcome: str
    reason: str = ""
    exercises: Exercises | None = None


REJECTED: dict[str, tuple[bytes, str]] = {
    "empty-file": (b"", "is empty"),
    "blank-file": (b" \n\n", "is empty"),
    "not-text": (bytes(range(128, 256)) * 9, "is not text in utf-8"),
    "json-list": (b"[1, 2, 3]", "holds a JSON list, not a notebook"),
    "json-other": (b'{"score": 100}', "has no list of cells"),
    "no-cells": (b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "None of the answer cells"),
    "page": (b"<!DOCTYPE html><html><body>Log in</body></html>", "is not JSON"),
    "nested": (b"[" * 100_000, "nested too deeply"),
}
RUN: dict[str, tuple[Spoil | dict[str, str], Expected]] = {
    "dies": (
        _dies_at_once,
        Expected("partly-graded", "the kernel died in the cell own-0", dict.fromkeys(EXERCISES, "not-reached")),
    ),
    "stuck": (
        {"wavelengths": STUCK},
        Expected(
            "partly-graded",
            "the cell test-wavelengths did not end and ignored the interrupt",
            {**dict.fromkeys(EXERCISES, "not-reached"), "pair-frequencies": "full"},
        ),
    ),
    "nonsense": (
        {
            "position_similarity": NONSENSE,
            "wavelengths": "wavelengths = 17",
            "quiz_sinusoidal": "q1 = q2 = q3 = q4 = q5 = q1",
        },
        Expected(
            "graded", "", {**FULL, "position-similarity": None, "wavelengths": None, "quiz-sinusoidal": "not-defined"}
        ),
    ),
    "skips-tests": (_skip_everything, Expected("graded", "", NOTHING)),
    "pays-itself": (_tests_worth_a_thousand, Expected("graded", "", NOTHING)),
    "deletes-tests": (_without_tests, Expected("graded", "", FULL)),
    "deletes-answer": (_without_wavelengths, Expected("graded", "", {**FULL, "wavelengths": "answer-missing"})),
    "copies-cells": (_everything_twice, Expected("graded", "", FULL)),
    "odd-metadata": (_odd_metadata, Expected("graded", "", FULL)),
}
BLANK = ("skips-tests", "pays-itself")


@dataclass(frozen=True)
class BadClass:
    root: Path
    results: Document

    @property
    def submissions(self) -> dict[str, Document]:
        return by_student(self.results)


def _hand_in(root: Path, folder: Path) -> None:
    release = read(notebook_path(root, "release", LESSON))
    for student, (data, _) in REJECTED.items():
        folder.joinpath(student).mkdir()
        folder.joinpath(student, "work.ipynb").write_bytes(data)
    for student, (spoil, _) in RUN.items():
        if isinstance(spoil, dict):
            notebook = _answered(release, **spoil)
        else:
            notebook = copy.deepcopy(release) if student in BLANK else _answered(release)
            spoil(notebook)
        write(notebook, folder / student / LESSON / f"{LESSON}.ipynb")
    right = _answered(release)
    folder.joinpath("cut-off.ipynb").write_bytes(plain(right)[:2000])
    folder.joinpath("wrong-lesson.ipynb").write_bytes(notebook_path(root, "release", OTHER).read_bytes())
    folder.joinpath("empty-folder", LESSON).mkdir(parents=True)
    folder.joinpath("nothing").mkdir()
    folder.joinpath("a-folder", "work.ipynb").mkdir(parents=True)
    for name in ("final.ipynb", "final (1).ipynb"):
        write(right, folder / "two-notebooks" / name)
    folder.joinpath("broken-link").mkdir()
    folder.joinpath("broken-link", "work.ipynb").symlink_to(folder / "nowhere.ipynb")
    # The neighbours: right answers, in each of the three layouts, first, last and in the middle of the alphabet.
    write(right, folder / "aaron" / LESSON / f"{LESSON}.ipynb")
    write(right, folder / "李 雷" / "我的作业 (1).ipynb")
    folder.joinpath("marked.ipynb").write_bytes(with_mark(right))
    # Somebody who handed in another lesson only, and files that no student handed in.
    write(right, folder / "elsewhere" / OTHER / f"{OTHER}.ipynb")
    folder.joinpath("grades.csv").write_text("student,score\n", encoding="utf-8")
    folder.joinpath(".ipynb_checkpoints").mkdir()


MORE_REJECTED = {
    "cut-off": "is not JSON",
    "wrong-lesson": f"This is the notebook of {OTHER}, not of {LESSON}.",
    "empty-folder": "There is no notebook (.ipynb)",
    "nothing": "There is no notebook (.ipynb)",
    "a-folder": "work.ipynb is not a file",
    "two-notebooks": "It is not clear which notebook counts: final (1).ipynb, final.ipynb.",
    "broken-link": "work.ipynb",
}
NEIGHBOURS = ("aaron", "marked", "李 雷")
ALL_REJECTED = {**{name: why for name, (_, why) in REJECTED.items()}, **MORE_REJECTED}


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> BadClass:
    """A short lesson, graded once for a class in which almost everything goes wrong."""
    root = course_folder(tmp_path_factory.mktemp("course") / "course")
    short_lesson(root, LESSON, EXERCISES)
    folder = root / "handed in"
    folder.mkdir()
    _hand_in(root, folder)
    _, results = grade(root, LESSON, folder)
    return BadClass(root, results)


def test_everybody_has_a_result(bad: BadClass) -> None:
    """One result a student, of the documented form; files that are no submissions are not taken for any."""
    assert_schema(bad.results, LESSON)
    assert set(bad.submissions) == {*ALL_REJECTED, *RUN, *NEIGHBOURS}


@pytest.mark.parametrize("student", NEIGHBOURS)
def test_neighbours_are_untouched(bad: BadClass, student: str) -> None:
    """Right answers beside all this get full marks, in every layout of the folder, with a byte order mark too."""
    submission = bad.submissions[student]
    assert submission["outcome"] == "graded"
    assert submission["score"] == submission["max_score"] == 6.0


@pytest.mark.parametrize("student", ALL_REJECTED)
def test_what_cannot_be_graded_is_rejected(bad: BadClass, student: str) -> None:
    """Rejected, with the reason in the result, the feedback page and each exercise; no points, no executed notebook."""
    submission = bad.submissions[student]
    assert submission["outcome"] == "rejected"
    assert ALL_REJECTED[student] in submission["reason"]
    assert submission["score"] == 0.0
    assert {exercise["mistake"] for exercise in submission["exercises"]} == {"rejected"}
    page = bad.root / "feedback" / student / LESSON / f"{LESSON}.html"
    assert submission["reason"] in unescape(page.read_text(encoding="utf-8"))
    assert not notebook_path(bad.root, f"autograded/{student}", LESSON).exists()


@pytest.mark.parametrize("student", RUN)
def test_what_runs_is_judged(bad: BadClass, student: str) -> None:
    """Outcome, reason and every exercise's mistake are the expected ones; nothing earns points by a trick."""
    expected, submission = RUN[student][1], bad.submissions[student]
    assert submission["outcome"] == expected.outcome, submission["reason"]
    assert (submission["reason"] or "").startswith(expected.reason)
    found = {
        name: "full" if exercise["score"] == exercise["max_score"] else exercise["mistake"]
        for name, exercise in by_exercise(submission).items()
    }
    assert found == expected.exercises
    assert notebook_path(bad.root, f"autograded/{student}", LESSON).exists()


def test_gradebook_has_everybody(bad: BadClass) -> None:
    """nbgrader's database has the same scores, 0 for the rejected ones, and nothing left to grade by hand."""
    with Gradebook(f"sqlite:///{bad.root}/gradebook.db", "order-matters") as gradebook:
        for student, submission in bad.submissions.items():
            record = gradebook.find_submission(LESSON, student)
            assert record.score == pytest.approx(submission["score"]), student
            assert not record.needs_manual_grade, student


def test_regrading(bad: BadClass) -> None:
    """Handed in again, now empty: the old points and notebook are gone. The same again: the same but for `seconds`."""
    again = bad.root / "again"
    again.mkdir()
    (again / "aaron.ipynb").write_bytes(b"")
    release = read(notebook_path(bad.root, "release", LESSON))
    write(_answered(release), again / "marked.ipynb")
    write(_answered(release, **RUN["nonsense"][0]), again / "nonsense.ipynb")
    _, results = grade(bad.root, LESSON, again, "--workers", "1", name="again")
    found = by_student(results)
    assert (found["aaron"]["outcome"], found["aaron"]["score"]) == ("rejected", 0.0)
    for student in ("marked", "nonsense"):
        assert without_seconds(found[student]) == without_seconds(bad.submissions[student])
    assert not notebook_path(bad.root, "autograded/aaron", LESSON).exists()
    with Gradebook(f"sqlite:///{bad.root}/gradebook.db", "order-matters") as gradebook:
        assert gradebook.find_submission(LESSON, "aaron").score == 0.0
        assert gradebook.find_submission(LESSON, "marked").score == 6.0


def test_results_are_plain_json(bad: BadClass) -> None:
    """The file holds no NaN, and every reason is one line."""
    text = (bad.root / "results.json").read_text(encoding="utf-8")
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    for submission in bad.submissions.values():
        assert not re.search(r"[\r\n]", submission["reason"] or "")
