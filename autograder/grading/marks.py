"""What people gave: marks and comments by hand, late penalties, and the scores that come of it all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory

from autograder.errors import OrderMattersError
from autograder.grading.configuration import load_config, programs_found


@dataclass(frozen=True)
class HandMark:
    """What a person gave for one exercise.

    Attributes:
        score: points in place of the automatic ones; None when nobody changed them, or nobody has read the answer yet.
        extra: points on top.
    """

    score: float | None = None
    extra: float = 0.0
    comment: str = ""


@dataclass(frozen=True)
class HandMarks:
    """What people gave for one submission, by exercise where there is something; and the points lost for lateness."""

    exercises: Mapping[str, HandMark] = field(default_factory=dict)
    late_penalty: float = 0.0


def cell_names(assignment: Any) -> dict[str, str]:
    """The name of each graded or written cell by nbgrader's id of it; asking every grade for it takes a query each."""
    return {
        cell.id: cell.name
        for notebook in assignment.notebooks
        for cell in (*notebook.grade_cells, *notebook.solution_cells, *notebook.task_cells)
    }


def hand_marks(written: Any, names: Mapping[str, str]) -> HandMarks:
    """The marks in nbgrader's row of one submitted notebook. `names` as `cell_names` gives them."""
    grades = {names[grade.cell_id].removeprefix("test-"): grade for grade in written.grades}
    comments = {
        names[comment.cell_id].removeprefix("test-"): comment.manual_comment
        for comment in written.comments
        if comment.manual_comment
    }
    found = {}
    for name in [*grades, *(name for name in comments if name not in grades)]:
        grade = grades.get(name)
        score = grade.manual_score if grade else None
        extra = (grade.extra_credit or 0.0) if grade else 0.0
        comment = comments.get(name, "")
        if score is not None or extra or comment:
            found[name] = HandMark(score, extra, comment)
    return HandMarks(found, written.late_submission_penalty or 0.0)


@dataclass(frozen=True)
class FinalScore:
    """A student's score in one assignment as nbgrader's gradebook has it, with manual marks and late penalties.

    Attributes:
        student: nbgrader's id of the student.
        lms_user_id: the id in the learning platform, where the gradebook knows it.
        submitted: False when the gradebook has no submission; then all scores are 0.
        timestamp: when it was handed in, UTC without zone; None when unknown.
        raw_score: points before the late penalty.
        score: points after it, never below 0.
        waiting: answers that somebody still has to grade by hand; they count 0.
        exercises: points by exercise.
        comments: what a person wrote, by exercise.
    """

    student: str
    first_name: str
    last_name: str
    email: str
    lms_user_id: str
    submitted: bool
    timestamp: datetime | None
    raw_score: float
    late_penalty: float
    score: float
    max_score: float
    waiting: int
    exercises: Mapping[str, float]
    comments: Mapping[str, str]


@dataclass(frozen=True)
class FinalScores:
    """An assignment's scores, sorted by student. `maxima` has the points of each exercise, in the lesson's order."""

    assignment: str
    duedate: datetime | None
    max_score: float
    maxima: Mapping[str, float]
    students: tuple[FinalScore, ...]


def read_scores(root: Path, assignment: str) -> FinalScores:
    """The scores in the gradebook of the course folder `root`. See `final_scores`."""
    directory = CourseDirectory(config=load_config(root))
    with programs_found(), Gradebook(directory.db_url, directory.course_id) as gradebook:
        return final_scores(gradebook, assignment)


def final_scores(gradebook: Gradebook, assignment: str) -> FinalScores:
    """The scores of an assignment, of every student that the gradebook knows.

    Raises:
        OrderMattersError: the gradebook has no such assignment.
    """
    try:
        known = gradebook.find_assignment(assignment)
    except MissingEntry as error:
        names = ", ".join(sorted(item.name for item in gradebook.assignments)) or "none"
        raise OrderMattersError(
            f"the gradebook has no assignment {assignment!r} (it has: {names}). "
            f"Grade it first: autograder grade {assignment}."
        ) from error
    maxima = {
        cell.name.removeprefix("test-"): float(cell.max_score)
        for notebook in known.notebooks
        for cell in notebook.grade_cells
    }
    rows = {submission.student.id: submission for submission in known.submissions}
    cells = cell_names(known)
    students = tuple(
        _final(student, rows.get(student.id), float(known.max_score), maxima, cells)
        for student in sorted(gradebook.students, key=lambda student: str(student.id))
    )
    return FinalScores(assignment, known.duedate, float(known.max_score), maxima, students)


def _final(
    student: Any, submission: Any, max_score: float, maxima: Mapping[str, float], names: Mapping[str, str]
) -> FinalScore:
    exercises = dict.fromkeys(maxima, 0.0)
    comments: dict[str, str] = {}
    waiting, penalty, raw, timestamp = 0, 0.0, 0.0, None
    if submission is not None:
        for notebook in submission.notebooks:
            for grade in notebook.grades:
                exercises[names[grade.cell_id].removeprefix("test-")] = float(grade.score)
                waiting += bool(grade.needs_manual_grade)
            for name, mark in hand_marks(notebook, names).exercises.items():
                if mark.comment:
                    comments[name] = mark.comment
        raw = float(submission.score)
        penalty = float(submission.late_submission_penalty or 0.0)
        timestamp = submission.timestamp
    return FinalScore(
        student=str(student.id),
        first_name=student.first_name or "",
        last_name=student.last_name or "",
        email=student.email or "",
        lms_user_id=student.lms_user_id or "",
        submitted=submission is not None,
        timestamp=timestamp,
        raw_score=round(raw, 6),
        late_penalty=round(penalty, 6),
        score=round(max(0.0, raw - penalty), 6),
        max_score=max_score,
        waiting=waiting,
        exercises={name: round(points, 6) for name, points in exercises.items()},
        comments=comments,
    )
