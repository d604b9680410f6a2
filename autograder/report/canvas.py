"""Scores into Canvas's own gradebook file.

Canvas imports the file that it exports: *Gradebook, Export, Export Entire Gradebook*, and then *Import*. The columns of
the students (Student, ID, SIS User ID, SIS Login ID, Section) come first and identify them; an assignment's column is
headed `name (id)`; a row called "Points Possible" stands above the students; "(read only)" columns are ignored.

Sources: Instructure's guides "How do I export grades in the Gradebook?" and "How do I import grades in the Gradebook?"
(https://community.canvaslms.com/t5/Instructor-Guide/), and Canvas's importer itself, `lib/gradebook_importer.rb` of
https://github.com/instructure/canvas-lms at 00b222d.
"""

from __future__ import annotations

import re
from pathlib import Path

from autograder.errors import OrderMattersError
from autograder.grading.marks import FinalScores
from autograder.report.sheets import (
    Table,
    check_maximum,
    converted,
    listed,
    match_students,
    number,
    parse_number,
    read_table,
)

COMPUTED = re.compile(
    "Current Score|Current Points|Current Grade|Final Score|Final Points|Final Grade|"
    "Override Score|Override Grade|Override Status"
)
"""Headers of columns that Canvas computes; they are never an assignment's."""
TEST_STUDENTS = ("Student, Test", "Test Student")
"""Canvas's own test account, which is in every export."""


def merge_canvas(
    scores: FinalScores, path: Path, *, title: str, column: str | None = None, scale: bool = False
) -> tuple[Table, list[str]]:
    """Canvas's exported gradebook with the scores in the assignment's column; nothing else is changed.

    Students who have handed in nothing keep what Canvas has. Where there is no column of this assignment's name or
    title, a new one is added, from which Canvas makes a new assignment.

    Args:
        title: the lesson's title.
        column: the assignment's name in Canvas, or the whole heading, if it is neither name nor title.
        scale: convert points where Canvas has another maximum.

    Returns:
        The table and what there is to tell.

    Raises:
        OrderMattersError: the file is not Canvas's, has no such column or several, or another maximum.
    """
    table = read_table(path)
    header = table.rows[0]
    with_names = header[:2] == ["LastName", "FirstName"]
    id_place = 2 if with_names else 1
    if (
        not (with_names or "Student" in header[0])
        or header[id_place : id_place + 1] != ["ID"]
        or "Section" not in header
    ):
        raise OrderMattersError(
            f"{path} is not Canvas's gradebook: its columns are {listed(header, 5)}. "
            "Export it in Canvas with Gradebook, Export, Export Entire Gradebook."
        )
    notes: list[str] = []
    place = _column(table, [column] if column else [scores.assignment, title], required=column is not None)
    if place is None:
        place = _new_column(table, scores)
        notes.append(f"{path.name} has no column of {scores.assignment}; a new one was added (--column names another).")
    points = next((row for row in table.rows if "Points Possible" in row[0]), None)
    maximum = parse_number(points[place]) if points else None
    if points and "read only" in points[place]:
        raise OrderMattersError(
            f"Canvas does not take scores in the column {header[place]!r} of {path}: it is read only."
        )
    check_maximum(scores, maximum, scale=scale, where=f"the column {header[place]!r} of {path.name}")
    if points and maximum is None:
        points[place] = number(scores.max_score)

    people = [row for row in range(1, len(table.rows)) if _is_student(table.rows[row], points)]
    sis = [at for at, name in enumerate(header) if name in ("SIS User ID", "SIS Login ID", "Integration ID")]
    names = {row: [table.rows[row][id_place], *(table.rows[row][at] for at in sis)] for row in people}
    matched = match_students(
        scores,
        table,
        {row: [keys, [key.partition("@")[0] for key in keys if "@" in key]] for row, keys in names.items()},
        {row: table.rows[row][id_place] for row in people},
    )
    decimal = "," if table.delimiter == ";" else "."
    for row, student in matched.rows.items():
        table.rows[row][place] = number(converted(student, maximum, scale=scale), decimal)
    notes.insert(0, f"{len(matched.rows)} scores in the column {header[place]!r} of {len(people)} students")
    if matched.strangers:
        notes.append(f"not in {path.name}, so without a score there: {listed(matched.strangers)}")
    return table, notes


def _is_student(row: list[str], points: list[str] | None) -> bool:
    if row is points or row[0].strip() in TEST_STUDENTS:
        return False
    return not all(re.fullmatch(r"\s*(Muted|Manual Posting.*)?\s*", cell, flags=re.IGNORECASE) for cell in row)


def _title(heading: str) -> str:
    """A column's heading without Canvas's id of the assignment."""
    return re.sub(r"\s*\(\d+\)\s*$", "", heading)


def _first_assignment(header: list[str]) -> int:
    return header.index("Section") + 1


def _column(table: Table, names: list[str], *, required: bool) -> int | None:
    header = table.rows[0]
    columns = [place for place in range(_first_assignment(header), len(header)) if not COMPUTED.search(header[place])]
    wanted = {name.strip().casefold() for name in names}
    found = [
        place
        for place in columns
        if {header[place].strip().casefold(), _title(header[place]).strip().casefold()} & wanted
    ]
    if len(found) > 1:
        raise OrderMattersError(
            f"{table.name} has {len(found)} columns of that name: {listed([header[place] for place in found])}. "
            "Name one as it stands there, with its number, by --column."
        )
    if not found and required:
        there = listed([header[place] for place in columns]) or "none"
        raise OrderMattersError(f"{table.name} has no column {names[0]!r}. It has: {there}.")
    return found[0] if found else None


def _new_column(table: Table, scores: FinalScores) -> int:
    header = table.rows[0]
    computed = [at for at in range(_first_assignment(header), len(header)) if COMPUTED.search(header[at])]
    place = computed[0] if computed else len(header)
    for row in table.rows:
        row.insert(place, "")
    header[place] = scores.assignment
    return place
