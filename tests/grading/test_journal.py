"""The journal: an unchanged submission is found again, and whatever a result depends on makes it run again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autograder.grading.assignments import Assignment, load_assignment
from autograder.grading.journal import Journal
from autograder.grading.one import Graded, Terms
from autograder.grading.submissions import Submission
from autograder.kernels.limits import Limits
from autograder.results import ByHand, CriterionResult, Outcome, SubmissionResult, Text, Verdict
from tests.conftest import TINY

TERMS = Terms(b"key", "cpu")


@pytest.fixture
def assignment(tiny_course: Path) -> Assignment:
    return load_assignment(tiny_course, TINY)


@pytest.fixture
def submission(tmp_path: Path) -> Submission:
    notebook = tmp_path / "ada.ipynb"
    notebook.write_text("what was handed in")
    return Submission("ada", notebook)


def graded(mistake: str | None = "sign", judged: bool = True) -> Graded:
    criterion = CriterionResult("values", Text("values", "数值"), 0.5, 1.5, Text("off", "不对"))
    verdict = Verdict("pair-frequencies", 0.5, 1.5, mistake, Text("said", "说"), (criterion,), judged)
    result = SubmissionResult("ada", Outcome.GRADED, Text("why", "为何"), 1.25, (verdict,), (ByHand("essay", 2.0),))
    return Graded(result, '{"cells": []}')


def remember(assignment: Assignment, submission: Submission, result: Graded, place: Path) -> None:
    Journal(assignment, TERMS).add(submission, result)
    assert result.notebook is not None
    place.write_text(result.notebook)


def test_an_unchanged_submission_is_found_whole(assignment: Assignment, submission: Submission, tmp_path: Path) -> None:
    """In a later run: every score, message and language, and the executed notebook."""
    remember(assignment, submission, graded(), tmp_path / "executed.ipynb")
    assert Journal(assignment, TERMS).find(submission, tmp_path / "executed.ipynb") == graded()


def edit_submission(assignment: Assignment, submission: Submission) -> Submission:
    assert submission.notebook is not None
    submission.notebook.write_text("handed in again")
    return submission


def edit_source(assignment: Assignment, submission: Submission) -> Submission:
    path = assignment.root / "source" / TINY / f"{TINY}.ipynb"
    path.write_text(path.read_text() + "\n")
    return submission


def edit_release(assignment: Assignment, submission: Submission) -> Submission:
    path = assignment.root / "release" / TINY / f"{TINY}.ipynb"
    path.write_text(path.read_text() + "\n")
    return submission


def another_student(assignment: Assignment, submission: Submission) -> Submission:
    return replace(submission, student="emmy")


@pytest.mark.parametrize("change", [edit_submission, edit_source, edit_release, another_student])
def test_what_changed_runs_again(
    assignment: Assignment,
    submission: Submission,
    tmp_path: Path,
    change: Callable[[Assignment, Submission], Submission],
) -> None:
    """The submission, either notebook of the assignment, the student."""
    remember(assignment, submission, graded(), tmp_path / "executed.ipynb")
    changed = change(assignment, submission)
    assert Journal(assignment, TERMS).find(changed, tmp_path / "executed.ipynb") is None


@pytest.mark.parametrize(
    "other",
    [
        {"course_key": b"other"},
        {"device": "cuda"},
        {"language": "zh"},
        {"limits": Limits(test_timeout_s=3.0)},
        {"sandbox": False},
    ],
    ids=str,
)
def test_other_settings_run_again(
    assignment: Assignment, submission: Submission, tmp_path: Path, other: dict[str, Any]
) -> None:
    """The course's key, the device, the language, a limit."""
    remember(assignment, submission, graded(), tmp_path / "executed.ipynb")
    assert Journal(assignment, replace(TERMS, **other)).find(submission, tmp_path / "executed.ipynb") is None


def test_a_changed_or_lost_executed_notebook_runs_again(
    assignment: Assignment, submission: Submission, tmp_path: Path
) -> None:
    """The journal holds scores, not notebooks: the one in autograded/ must be the one that was written."""
    place = tmp_path / "executed.ipynb"
    remember(assignment, submission, graded(), place)
    place.write_text("edited")
    assert Journal(assignment, TERMS).find(submission, place) is None
    place.unlink()
    assert Journal(assignment, TERMS).find(submission, place) is None


@pytest.mark.parametrize(
    "result",
    [graded("examiner-died"), graded("grader-failed"), graded("not-reached", judged=False)],
    ids=["a", "b", "c"],
)
def test_what_only_this_run_is_to_blame_for_is_not_kept(
    assignment: Assignment, submission: Submission, tmp_path: Path, result: Graded
) -> None:
    """The next run tries again: the examiner died, the grader failed, or no kernel could be started."""
    remember(assignment, submission, result, tmp_path / "executed.ipynb")
    assert Journal(assignment, TERMS).find(submission, tmp_path / "executed.ipynb") is None


def test_a_line_that_a_killed_run_left_half_written_costs_itself_only(
    assignment: Assignment, submission: Submission, tmp_path: Path
) -> None:
    """The lines before it and after it are read."""
    place = tmp_path / "executed.ipynb"
    remember(assignment, submission, graded(), place)
    path = assignment.root / "journal" / f"{TINY}.jsonl"
    path.write_text(path.read_text() + '{"key": "abc", "resu')
    other = Submission("emmy", submission.notebook)
    Journal(assignment, TERMS).add(other, graded())
    journal = Journal(assignment, TERMS)
    assert journal.find(submission, place) == graded()
    assert journal.find(other, place) == graded()
