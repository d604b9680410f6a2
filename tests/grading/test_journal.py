"""The journal: an unchanged submission is found again, and whatever a result depends on makes it run again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import autograder.grading.journal as module
from autograder.grading.assignments import Assignment, load_assignment
from autograder.grading.journal import Journal
from autograder.grading.keeping import Kept
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
    found = Journal(assignment, TERMS).find(submission, tmp_path / "executed.ipynb")
    assert found is not None
    assert Graded(found.result, found.executed()) == graded()


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
    assert journal.find(submission, place) == Kept(graded().result, place)
    assert journal.find(other, place) == Kept(graded().result, place)


ONLY = replace(TERMS, only=("causal-mask",))


def judged(mask: float, *, mistake: str | None = None, whole: bool = True, text: str = "{}") -> Graded:
    """A result of both exercises of the tiny lesson."""
    verdicts = (
        Verdict("pair-frequencies", 2.0, 2.0, None, Text("right", "对"), ()),
        Verdict("causal-mask", mask, 1.0, mistake, Text("said", "说"), (), judged=mistake is None),
    )
    outcome = Outcome.GRADED if mistake is None else Outcome.PARTLY_GRADED
    return Graded(SubmissionResult("ada", outcome, None, 1.0, verdicts), text, whole)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "executed.ipynb"


def test_an_earlier_result_is_found_whatever_the_grader_was(
    assignment: Assignment, submission: Submission, place: Path
) -> None:
    """Other limits, another course key, another hidden test: the same file of the same student."""
    remember(assignment, submission, judged(1.0), place)
    path = assignment.root / "source" / TINY / f"{TINY}.ipynb"
    path.write_text(path.read_text() + "\n")
    journal = Journal(assignment, replace(ONLY, course_key=b"other", limits=Limits(test_timeout_s=3.0)))
    assert journal.find(submission, place) is None
    assert journal.earlier(submission, place) == Kept(judged(1.0).result, place)


def test_of_several_earlier_results_the_newest_counts(
    assignment: Assignment, submission: Submission, place: Path
) -> None:
    """Also where it was made under other terms, or judged some exercises only."""
    remember(assignment, submission, judged(1.0), place)
    Journal(assignment, replace(ONLY, device="cuda")).add(submission, judged(0.5, whole=False))
    found = Journal(assignment, ONLY).earlier(submission, place)
    assert found is not None
    assert found.result == judged(0.5).result


@pytest.mark.parametrize("change", [edit_submission, another_student])
def test_another_file_has_no_earlier_result(
    assignment: Assignment,
    submission: Submission,
    place: Path,
    change: Callable[[Assignment, Submission], Submission],
) -> None:
    """Nor has the same file of another student: the numbers are the student's own."""
    remember(assignment, submission, judged(1.0), place)
    assert Journal(assignment, ONLY).earlier(change(assignment, submission), place) is None


def test_an_earlier_result_needs_its_executed_notebook(
    assignment: Assignment, submission: Submission, place: Path
) -> None:
    """Edited or lost, there is nothing to show for the verdicts that would be kept."""
    remember(assignment, submission, judged(1.0), place)
    place.write_text("edited")
    assert Journal(assignment, ONLY).earlier(submission, place) is None
    place.unlink()
    assert Journal(assignment, ONLY).earlier(submission, place) is None


def test_a_rejected_submission_has_no_verdicts_to_keep(
    assignment: Assignment, submission: Submission, place: Path
) -> None:
    """It is found as unchanged, not as something to build on."""
    rejected = Graded(replace(judged(0.0).result, outcome=Outcome.REJECTED), None)
    Journal(assignment, TERMS).add(submission, rejected)
    assert Journal(assignment, ONLY).find(submission, place) == Kept(rejected.result, None)
    assert Journal(assignment, ONLY).earlier(submission, place) is None


@pytest.mark.parametrize(("only", "found"), [(("pair-frequencies",), True), (("causal-mask",), False)])
def test_verdicts_with_other_points_are_not_kept(
    assignment: Assignment, submission: Submission, place: Path, only: tuple[str, ...], found: bool
) -> None:
    """Of an exercise whose points have changed, or that is new, unless it is the one to be judged."""
    verdicts = (replace(judged(1.0).result.exercises[0], max_score=5.0), judged(1.0).result.exercises[1])
    changed = Graded(replace(judged(1.0).result, exercises=verdicts), "{}")
    remember(assignment, submission, changed, place)
    assert (Journal(assignment, replace(TERMS, only=only)).earlier(submission, place) is not None) is found


def test_a_result_of_some_exercises_is_none_of_all(assignment: Assignment, submission: Submission, place: Path) -> None:
    """A later run of the whole class runs it; one of the same exercises does not. One of all is as good for both."""
    place.write_text("{}")
    Journal(assignment, ONLY).add(submission, judged(1.0, whole=False))
    assert Journal(assignment, TERMS).find(submission, place) is None
    assert Journal(assignment, replace(TERMS, only=("pair-frequencies",))).find(submission, place) is None
    assert Journal(assignment, ONLY).find(submission, place) == Kept(judged(1.0).result, place)
    Journal(assignment, ONLY).add(submission, judged(1.0, whole=True))
    assert Journal(assignment, TERMS).find(submission, place) is not None
    assert Journal(assignment, ONLY).find(submission, place) is not None


def test_a_result_of_some_exercises_must_be_the_newest(
    assignment: Assignment, submission: Submission, place: Path
) -> None:
    """Its other verdicts may be older than those of a run in between."""
    place.write_text("{}")
    Journal(assignment, ONLY).add(submission, judged(1.0, whole=False))
    Journal(assignment, replace(TERMS, only=("pair-frequencies",))).add(submission, judged(0.5, whole=False))
    assert Journal(assignment, ONLY).find(submission, place) is None
    assert Journal(assignment, ONLY).earlier(submission, place) == Kept(judged(0.5).result, place)


def test_a_fault_of_ours_is_built_on_but_not_kept(assignment: Assignment, submission: Submission, place: Path) -> None:
    """The examiner died in one exercise: that one can be judged again alone, and a plain run judges all."""
    remember(assignment, submission, judged(0.0, mistake="examiner-died"), place)
    assert Journal(assignment, ONLY).find(submission, place) is None
    assert Journal(assignment, TERMS).find(submission, place) is None
    assert Journal(assignment, ONLY).earlier(submission, place) is not None


def test_entries_of_older_journals_have_no_key_of_the_submission(
    assignment: Assignment, submission: Submission, place: Path
) -> None:
    """They are found under their full key, and cannot be built on."""
    remember(assignment, submission, judged(1.0), place)
    path = assignment.root / "journal" / f"{TINY}.jsonl"
    entry = json.loads(path.read_text())
    del entry["submission"]
    path.write_text(json.dumps(entry) + "\n")
    assert Journal(assignment, TERMS).find(submission, place) is not None
    assert Journal(assignment, ONLY).earlier(submission, place) is None


def test_results_are_read_when_they_are_asked_for(
    assignment: Assignment, submission: Submission, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening a journal of a thousand entries makes no result; finding one makes one."""
    place.write_text("{}")
    writer = Journal(assignment, TERMS)
    for number in range(1000):
        writer.add(replace(submission, student=f"student-{number:04d}"), judged(1.0))
    made: list[str] = []

    class Counted(SubmissionResult):
        @staticmethod
        def from_json(data: Any) -> SubmissionResult:
            made.append(data["student"])
            return SubmissionResult.from_json(data)

    monkeypatch.setattr(module, "SubmissionResult", Counted)
    journal = Journal(assignment, TERMS)
    assert made == []
    assert journal.find(replace(submission, student="student-0500"), place) is not None
    assert len(made) == 1
