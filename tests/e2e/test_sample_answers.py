"""The sample class makes the mistakes it says it makes: its answers, judged in this process."""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nbformat import NotebookNode

from autograder.examiner.judge import Sources, judge_here
from autograder.exercises import EXERCISES
from autograder.grading.assignments import load_assignment
from autograder.grading.one import Job, Terms, _other_lesson, grade_submission
from autograder.notebooks.reading import read_notebook
from autograder.results import Outcome
from tests.e2e.helpers import GIVEN, ROOT, notebook_path, read
from tests.sample_class import ASSIGNMENTS, sample_class, write_class
from tests.sample_class.student import GRADED, Student, plain, without_ids, without_metadata

SEED = 1
STUDENTS = [
    pytest.param(
        assignment,
        student,
        id=f"{assignment[:2]}-{name}",
        marks=[pytest.mark.thorough] if assignment != ASSIGNMENTS[1] else [],
    )
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


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_everybody_hands_in(assignment: str, tmp_path: Path) -> None:
    """As `make grade ASSIGNMENT=…` writes the class: each student's answers have their cells in the release."""
    written = write_class(ROOT, assignment, tmp_path)
    assert written == [tmp_path / name / assignment / f"{assignment}.ipynb" for name in sample_class(assignment)]


@pytest.mark.parametrize("form", [plain, without_ids, without_metadata], ids=lambda form: form.__name__)
@pytest.mark.parametrize("owner", ASSIGNMENTS)
def test_a_notebook_of_another_lesson_is_rejected_whatever_is_left_of_it(
    owner: str, form: Callable[[NotebookNode], bytes], tmp_path: Path
) -> None:
    """With answers or blank, with its marks or nothing but cells: no points for a quiz that looks alike."""
    release = read(notebook_path(ROOT, "release", owner))
    path = tmp_path / "x.ipynb"
    for notebook in (release, sample_class(owner)["student-01"].notebook(release)):
        path.write_bytes(form(notebook))
        for assignment in ASSIGNMENTS:
            if assignment == owner:
                assert _other_lesson(load_assignment(ROOT, owner), read_notebook(path).cells) is None
            else:
                result = grade_submission(Job(ROOT, assignment, "ada", path, None, Terms(b"key", "cpu"))).result
                assert result.outcome is Outcome.REJECTED
                assert result.reason is not None
                assert result.reason.en == f"This is the notebook of {owner}, not of {assignment}."
