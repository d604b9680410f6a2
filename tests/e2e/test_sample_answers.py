"""The sample class makes the mistakes it says it makes: its answers, judged in this process."""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Iterator
from typing import Any

import pytest

from autograder.examiner.judge import Sources, judge_here
from autograder.exercises import EXERCISES
from tests.e2e.helpers import GIVEN, ROOT, notebook_path, read
from tests.sample_class import ASSIGNMENTS, sample_class
from tests.sample_class.student import GRADED, Student

SEED = 1
STUDENTS = [
    pytest.param(assignment, student, id=f"{assignment[:2]}-{name}")
    for assignment in ASSIGNMENTS
    for name, student in sample_class(assignment).items()
    if student.outcome == GRADED  # the others end or stop the process that runs them
]


def _exercises(assignment: str) -> list[str]:
    return [name for name, exercise in EXERCISES.items() if exercise.lesson == assignment]


def _unanswered(*arguments: Any, **options: Any) -> None:
    raise NotImplementedError


@functools.cache
def _given(assignment: str) -> tuple[str, ...]:
    """The cells of the released notebook that every answer builds on."""
    return tuple(
        cell.source for cell in read(notebook_path(ROOT, "release", assignment)).cells if cell.get("id") in GIVEN
    )


def _run(assignment: str, student: Student) -> dict[str, Any]:
    """What the student's cells define, cell by cell; a cell with an error defines nothing."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for code in _given(assignment):
        exec(code, names)
    for exercise in _exercises(assignment):
        for code in (student.own_cells.get(exercise, ""), student.answers.get(exercise, "")):
            with contextlib.suppress(SyntaxError):
                exec(compile(code, exercise, "exec"), names)  # made-up answers of our own
    return names


def _sources(assignment: str, student: Student, exercise: str) -> Sources:
    """The texts of the exercise's answer cell and of the other cells, by which rules are checked."""
    others = [source for name, source in student.answers.items() if name in EXERCISES and name != exercise]
    return Sources(student.answers.get(exercise, ""), (*_given(assignment), *student.own_cells.values(), *others))


@pytest.fixture
def silence() -> Iterator[None]:
    with contextlib.redirect_stderr(io.StringIO()):
        yield


@pytest.mark.usefixtures("silence")
@pytest.mark.parametrize(("assignment", "student"), STUDENTS)
def test_declared_mistakes_are_found(assignment: str, student: Student) -> None:
    """Right answers get full marks in every exercise; wrong ones lose points and are named as declared."""
    names = _run(assignment, student)
    for exercise in _exercises(assignment):
        quiz = exercise.startswith("quiz-")
        functions = EXERCISES[exercise].functions
        missing = [function for function in functions if function not in names]
        if missing and exercise in student.answers:
            assert student.lost[exercise] == "not-defined"
            continue
        answers = [names.get(function, "?" if quiz else _unanswered) for function in functions]
        verdict = judge_here(EXERCISES, exercise, answers, SEED, "cpu", _sources(assignment, student, exercise))
        found = (verdict.score < verdict.max_score, verdict.mistake)
        assert found == (exercise in student.lost, student.lost.get(exercise)), (exercise, verdict.message.en)


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_class_covers_what_happens(assignment: str) -> None:
    """There are four right students, a blank one, and every ending but "rejected"."""
    students = sample_class(assignment).values()
    assert len(students) >= 12
    assert sum(student.is_right for student in students) == 4
    assert any(not student.answers for student in students)
    assert {"not-reached", "timed-out", "not-defined", "unanswered", None} <= {
        slug for student in students for slug in student.lost.values()
    }
