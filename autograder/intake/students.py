"""The list that maps what a platform calls students to their ids: a CSV file."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.errors import BadStudentList
from autograder.intake.names import student_name

COLUMN = "student"
FORM = (
    f'The first line names the columns: "{COLUMN}" for the id in the course, and any others (name, email, Canvas id …) '
    "for what platforms call the student."
)


def key(name: str) -> str:
    """Equal for spellings of one name that platforms make of each other: `Surname, Name` is `surnamename` on Canvas."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", name).casefold())


def _spellings(name: str) -> set[str]:
    """The keys of a person's name with the surname in front and behind: Canvas writes it in front."""
    surname, comma, given = name.partition(",")
    if not comma:
        given, _, surname = name.rpartition(" ")
    return {key(name), key(f"{surname} {given}"), key(f"{given} {surname}")}


@dataclass
class StudentList:
    """Ids by name.

    Attributes:
        exact: from a name to the ids of all who have it.
        ids: the same for the names' keys.
    """

    exact: dict[str, set[str]] = field(default_factory=dict)
    ids: dict[str, set[str]] = field(default_factory=dict)

    @property
    def students(self) -> set[str]:
        return {student for students in self.ids.values() for student in students}

    def find(self, names: Sequence[str], shared: Collection[str] = (), alike: Collection[str] = ()) -> str | None:
        """The id of the student whom the platform knows by these names; exact ones count before what is spelled alike.

        Args:
            shared: those of the names that somebody else on the platform has too. They say nothing.
            alike: those of which somebody else has one that is spelled alike.

        Returns:
            None when none of the names is one student's own.
        """
        exact = [self.exact.get(name, set()) for name in names if name not in shared]
        spelled = [self.ids.get(key(name), set()) for name in names if name not in alike]
        return next((min(found) for found in exact + spelled if len(found) == 1), None)


def read_students(path: Path) -> StudentList:
    """Read the list.

    Raises:
        BadStudentList: not there, no UTF-8, no CSV with the column, or a row that can't be meant: named with its line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadStudentList(str(path), f"it can't be opened ({error.strerror})", FORM) from error
    except UnicodeDecodeError as error:
        raise BadStudentList(
            str(path), f"it is not UTF-8 (byte {error.start})", "In Excel, save it as “CSV UTF-8”."
        ) from error
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(text.splitlines(), delimiter=delimiter, strict=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        raise BadStudentList(str(path), f"line {reader.line_num}: {error}", FORM) from error
    if not rows:
        raise BadStudentList(str(path), "it is empty", FORM)
    header = [name.casefold() for name in rows[0][1]]
    if header.count(COLUMN) != 1:
        found = ", ".join(rows[0][1])
        raise BadStudentList(str(path), f"its columns are {found}, and not one of them is {COLUMN!r}", FORM)
    at = header.index(COLUMN)
    listed = StudentList()
    for line, row in rows[1:]:
        if len(row) != len(header):
            what = f"line {line} has {len(row)} fields, the first line {len(header)}"
            raise BadStudentList(str(path), what, 'A name with a comma stands in quotes: "Surname, Name".')
        student = row[at]
        if not student or student_name(student) != student:
            what = f"line {line} has the id {student!r}"
            raise BadStudentList(
                str(path), what, "An id is a folder's name: without slashes or quotes, not empty, no dot in front."
            )
        for name in filter(key, row):
            listed.exact.setdefault(name, set()).add(student)
            for spelling in _spellings(name):
                listed.ids.setdefault(spelling, set()).add(student)
    if not listed.ids:
        raise BadStudentList(str(path), "it lists nobody", FORM)
    return listed
