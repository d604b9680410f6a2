"""Scores out again, in the forms that learning platforms import.

The numbers are those of nbgrader's gradebook, so marks given by hand and late penalties are in them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from autograder.errors import OrderMattersError
from autograder.grading.marks import FinalScore, FinalScores
from autograder.report.canvas import merge_canvas
from autograder.report.gradescope import gradescope_results, write_gradescope
from autograder.report.moodle import feedback_lines, fill_worksheet, grade_import
from autograder.report.sheets import Table, listed, number, safe_text, write_table
from autograder.results import Language, SubmissionResult

SUFFIXES = {"canvas": ".csv", "moodle": ".csv", "gradescope": ".zip", "csv": ".csv", "json": ".json"}
"""The platforms and forms that there are, and how their files end."""


def file_name(assignment: str, to: str) -> str:
    """What an export is called by default."""
    platform = "" if to in ("csv", "json") else f"-{to}"
    return f"{assignment}{platform}{SUFFIXES[to]}"


EXPORT_VERSION = 1
"""Version of the JSON form, which `to_json` describes."""


@dataclass(frozen=True)
class Export:
    """What is exported and how.

    Attributes:
        title: the lesson's title.
        results: the last run's results by student, for the grader's messages; may be empty.
        into: the platform's own file that is filled in.
        column: the assignment's name on the platform, if it is neither its name here nor its title.
        scale: convert points where the platform has another maximum.
        language: of the messages.
    """

    scores: FinalScores
    title: str
    results: Mapping[str, SubmissionResult] = field(default_factory=dict)
    into: Path | None = None
    column: str | None = None
    scale: bool = False
    language: Language = "en"

    def said(self, student: FinalScore) -> dict[str, str]:
        """What the grader said about each exercise; not where a person has changed the points since."""
        result = self.results.get(student.student)
        verdicts = result.exercises if result else ()
        return {
            verdict.exercise: verdict.message.in_language(self.language)
            for verdict in verdicts
            if student.exercises.get(verdict.exercise) == round(verdict.score, 6)
        }

    def feedback(self) -> dict[str, list[str]]:
        """Lines for each student."""
        return {
            student.student: feedback_lines(student, self.scores.maxima, self.said(student))
            for student in self.scores.students
        }


def export_scores(to: str, wanted: Export, place: Path) -> list[str]:
    """Write the scores.

    Args:
        to: one of `SUFFIXES`.
        place: the file; for Gradescope an archive or a folder.

    Returns:
        What there is to tell, a sentence each.

    Raises:
        OrderMattersError: nobody has handed in, or the platform's file does not fit.
    """
    handed_in = [student for student in wanted.scores.students if student.submitted]
    if not handed_in:
        raise OrderMattersError(f"the gradebook has no submission of {wanted.scores.assignment}; nothing was written.")
    if wanted.into is not None and to not in ("canvas", "moodle"):
        raise OrderMattersError(f"--into {wanted.into} has no use with --to {to}, which makes a file of its own.")
    notes = WRITERS[to](wanted, place)
    waiting = [student.student for student in handed_in if student.waiting]
    if waiting:
        notes.append(f"answers still wait to be graded by hand and count 0: {listed(waiting)}")
    return notes


def _canvas(wanted: Export, place: Path) -> list[str]:
    if wanted.into is None:
        raise OrderMattersError(
            "Canvas imports only its own gradebook: export it there (Gradebook, Export, Export Entire Gradebook) and "
            "name it with --into FILE."
        )
    table, notes = merge_canvas(
        wanted.scores, wanted.into, title=wanted.title, column=wanted.column, scale=wanted.scale
    )
    write_table(table, place)
    return notes


def _moodle(wanted: Export, place: Path) -> list[str]:
    if wanted.into is not None:
        table, notes = fill_worksheet(wanted.scores, wanted.feedback(), wanted.into, scale=wanted.scale)
    else:
        table, notes = grade_import(wanted.scores, wanted.feedback(), title=wanted.column or wanted.title)
    write_table(table, place)
    return notes


def _gradescope(wanted: Export, place: Path) -> list[str]:
    results = {}
    for student in wanted.scores.students:
        known = wanted.results.get(student.student)
        seconds = known.seconds if known else None
        results[student.student] = gradescope_results(student, wanted.scores.maxima, wanted.said(student), seconds)
    return write_gradescope(wanted.scores, results, place)


def _csv(wanted: Export, place: Path) -> list[str]:
    """The columns of `nbgrader export`, then whether it was handed in, what waits for a person, and every exercise."""
    scores = wanted.scores
    header = ["assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"]
    header += [
        "raw_score",
        "late_submission_penalty",
        "score",
        "max_score",
        "submitted",
        "waiting_for_hand",
        *scores.maxima,
    ]
    rows = [header]
    for student in scores.students:
        points = [student.raw_score, student.late_penalty, student.score]
        rows.append(
            [
                scores.assignment,
                str(scores.duedate or ""),
                str(student.timestamp or ""),
                *map(safe_text, (student.student, student.last_name, student.first_name, student.email)),
                *(number(value) if student.submitted else "" for value in points),
                number(student.max_score),
                "yes" if student.submitted else "no",
                str(student.waiting),
                *(number(student.exercises[name]) if student.submitted else "" for name in scores.maxima),
            ]
        )
    write_table(Table(place.name, rows), place)
    return [f"{len(rows) - 1} students"]


def _json(wanted: Export, place: Path) -> list[str]:
    place.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(to_json(wanted.scores), ensure_ascii=False, indent=2)
    place.write_text(text + "\n", encoding="utf-8", errors="replace")
    return [f"{len(wanted.scores.students)} students"]


def to_json(scores: FinalScores) -> dict[str, object]:
    """The scores as plain data.

    Top level: `export_version` (int), `assignment`, `duedate` (ISO 8601, UTC, or null), `max_score`, `maxima` (points
    by exercise) and `students`, sorted by `student`. A student has the fields of `FinalScore`, `timestamp` as ISO 8601.
    """
    return {
        "export_version": EXPORT_VERSION,
        "assignment": scores.assignment,
        "duedate": scores.duedate.isoformat() if scores.duedate else None,
        "max_score": scores.max_score,
        "maxima": dict(scores.maxima),
        "students": [
            {**asdict(student), "timestamp": student.timestamp.isoformat() if student.timestamp else None}
            for student in scores.students
        ],
    }


WRITERS: Mapping[str, Callable[[Export, Path], list[str]]] = {
    "canvas": _canvas,
    "moodle": _moodle,
    "gradescope": _gradescope,
    "csv": _csv,
    "json": _json,
}
