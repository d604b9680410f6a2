"""Grading a class: what stays in memory while results of an earlier run are written again."""

from __future__ import annotations

import copy
import gc
import weakref
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode

from autograder import commands
from autograder.cli import main
from autograder.grading.assignments import load_assignment
from autograder.grading.classroom import course_key
from autograder.grading.gradebook import autograded_place
from autograder.grading.journal import Journal
from autograder.grading.keeping import Kept
from autograder.grading.one import Graded, Terms, write_verdicts
from autograder.grading.submissions import Submission
from autograder.results import Outcome, SubmissionResult, Text, Verdict
from tests.conftest import TINY

STUDENTS = 12


class Executed(str):
    """An executed notebook whose end can be seen."""


def graded_before(root: Path, source: NotebookNode) -> Path:
    """A class that was graded by the grader as it is now, without running anything; returns what was handed in."""
    assignment = load_assignment(root, TINY)
    journal = Journal(assignment, Terms(course_key(root), sandbox=False))
    verdicts = {
        name: Verdict(name, 1.0, most, None, Text("said", "说"), ()) for name, most in assignment.exercises.items()
    }
    executed = copy.deepcopy(source)
    write_verdicts(executed, verdicts, "en")
    folder = root / "handed-in"
    folder.mkdir()
    for number in range(STUDENTS):
        submission = Submission(f"student-{number:02d}", folder / f"student-{number:02d}.ipynb")
        (folder / f"{submission.student}.ipynb").write_text(nbformat.writes(source), encoding="utf-8")
        text = nbformat.writes(executed)
        result = SubmissionResult(submission.student, Outcome.GRADED, None, 1.0, tuple(verdicts.values()))
        journal.add(submission, Graded(result, text))
        place = autograded_place(assignment, submission.student)
        place.parent.mkdir(parents=True)
        place.write_text(text, encoding="utf-8")
    return folder


def test_of_unchanged_submissions_two_executed_notebooks_are_in_memory_at_most(
    tiny_course: Path, tiny_source: NotebookNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is read when gradebook and page are written, and dropped when the next is."""
    folder = graded_before(tiny_course, tiny_source)
    seen: list[weakref.ref[Executed]] = []
    counts: list[int] = []
    read, write = Kept.executed, commands.write_feedback

    def noted_read(kept: Kept) -> Executed:
        notebook = Executed(read(kept))
        seen.append(weakref.ref(notebook))
        return notebook

    def noted_write(*arguments: Any, **named: Any) -> Path:
        gc.collect()
        counts.append(sum(one() is not None for one in seen))
        return write(*arguments, **named)

    monkeypatch.setattr(Kept, "executed", noted_read)
    monkeypatch.setattr(commands, "write_feedback", noted_write)
    arguments = ["grade", TINY, "--course", str(tiny_course), "--submissions", str(folder), "--no-sandbox", "--quiet"]
    assert main(arguments) == 0
    assert max(counts) <= 2  # the one before is kept until the next is parsed
    assert len(counts) == STUDENTS
