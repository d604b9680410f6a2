"""Scores for Moodle, in two forms.

The *grading worksheet* of one assignment (Assignment, Submissions, Download grading worksheet; back with Upload grading
worksheet) is filled in. Moodle finds a person by "Identifier", and takes "Grade" and "Feedback comments" unless the
grade was changed after "Last modified (grade)", so that column is kept.
Source: "Offline grading worksheet" in
https://docs.moodle.org/401/en/Assignment_settings; the form of the file:
`mod/assign/feedback/offline/importgradeslib.php` of https://github.com/moodle/moodle at 452e36f.

Without a worksheet, a file for *Grades, Import, CSV file* is written, with the columns of Moodle's own grade export.
Grade and feedback go together, since Moodle would drop the one without the other. On upload, map "ID number" or "Email
address" to the user and the last two columns to the assignment. Source: https://docs.moodle.org/405/en/Grade_import.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path

from autograder.errors import OrderMattersError
from autograder.grading.marks import FinalScore, FinalScores
from autograder.report.sheets import (
    Table,
    check_maximum,
    converted,
    listed,
    match_students,
    number,
    parse_number,
    read_table,
    safe_text,
)

REQUIRED = ("identifier", "grade", "last modified (grade)")


def grade_import(scores: FinalScores, feedback: Mapping[str, list[str]], *, title: str) -> tuple[Table, list[str]]:
    """The file for Moodle's grade import, of those who handed in.

    Args:
        feedback: lines for each student.
        title: the assignment's name in Moodle.
    """
    item = f"Assignment: {title}"
    header = ["First name", "Last name", "ID number", "Email address", f"{item} (Real)", f"{item} (Feedback)"]
    rows = [
        [
            *map(
                safe_text,
                (student.first_name, student.last_name, student.lms_user_id or student.student, student.email),
            ),
            number(student.score),
            _html(feedback.get(student.student, [])),
        ]
        for student in scores.students
        if student.submitted
    ]
    notes = [f"{len(rows)} scores; on upload map 'ID number' (or 'Email address') to the user"]
    return Table("grades.csv", [header, *rows]), notes


def _html(lines: list[str]) -> str:
    """Moodle keeps feedback as HTML."""
    return safe_text("<br>".join(html.escape(line, quote=False).replace("\n", "<br>") for line in lines))


def fill_worksheet(
    scores: FinalScores, feedback: Mapping[str, list[str]], path: Path, *, scale: bool = False
) -> tuple[Table, list[str]]:
    """Moodle's grading worksheet with grades and, where it has the column, feedback; nothing else is changed.

    Raises:
        OrderMattersError: the file is no worksheet in English, or has another maximum.
    """
    table = read_table(path)
    header = [name.strip().casefold() for name in table.rows[0]]
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        raise OrderMattersError(
            f"{path} is not Moodle's grading worksheet: it has no column {missing[0].capitalize()!r}, but "
            f"{listed(table.rows[0], 6)}. Download it with Moodle's language set to English, in the assignment under "
            "Submissions, Download grading worksheet."
        )
    places = {name: place for place, name in enumerate(header)}
    grade = places["grade"]
    comments, maximum_place, changeable = (
        places.get(name) for name in ("feedback comments", "maximum grade", "grade can be changed")
    )

    people = [row for row in range(1, len(table.rows)) if table.rows[row][places["identifier"]].strip()]
    matched = match_students(
        scores,
        table,
        {row: _keys(table.rows[row], places) for row in people},
        {row: _participant(table.rows[row][places["identifier"]]) for row in people},
    )
    locked, too_high = [], []
    for row, student in matched.rows.items():
        cells = table.rows[row]
        if changeable is not None and cells[changeable].strip().casefold() == "no":
            locked.append(student.student)
            continue
        maximum = parse_number(cells[maximum_place]) if maximum_place is not None else None
        check_maximum(scores, maximum, scale=scale, where=f"the assignment of {path.name}")
        points = converted(student, maximum, scale=scale)
        if maximum is not None and points > maximum + 1e-6:
            too_high.append(student.student)
        comma = maximum_place is not None and "," in cells[maximum_place]
        cells[grade] = number(points, "," if comma else ".")
        if comments is not None and feedback.get(student.student):
            cells[comments] = _html(feedback[student.student])
    notes = [f"{len(matched.rows) - len(locked)} grades for {len(people)} participants"]
    if locked:
        notes.append(f"Moodle has locked the grades of {listed(locked)}; they were left as they are")
    if too_high:
        notes.append(f"above the maximum, which Moodle does not take: {listed(too_high)}")
    if matched.strangers:
        notes.append(f"not in {path.name}, so without a grade there: {listed(matched.strangers)}")
    return table, notes


def _participant(identifier: str) -> str:
    """The number in "Participant 123", which is also in the names of downloaded submissions."""
    return identifier.strip().rpartition(" ")[2]


def _keys(cells: list[str], places: Mapping[str, int]) -> list[list[str]]:
    def cell(name: str) -> str:
        return cells[places[name]] if name in places else ""

    email = cell("email address")
    exact = [_participant(cells[places["identifier"]]), cell("id number"), cell("username"), email]
    return [exact, [email.partition("@")[0]], [cell("full name")]]


def feedback_lines(student: FinalScore, maxima: Mapping[str, float], said: Mapping[str, str]) -> list[str]:
    """A line for each exercise: points, what the grader said, what a person wrote; and one for a late penalty."""
    lines = []
    for exercise, maximum in maxima.items():
        parts = [said.get(exercise, ""), student.comments.get(exercise, "")]
        points = f"{exercise}: {number(student.exercises[exercise])} / {number(maximum)}"
        lines.append(" ".join([points, *(part for part in parts if part)]))
    if student.late_penalty:
        lines.append(f"−{number(student.late_penalty)}: late")
    return lines
