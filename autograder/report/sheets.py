"""Comma-separated files that learning platforms write and read: kept as they are but for the cells that get a score."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import OrderMattersError
from autograder.grading.marks import FinalScore, FinalScores


@dataclass
class Table:
    """A file's rows of cells. `delimiter` is "," or ";", as platforms write it where the comma is the decimal sign."""

    name: str
    rows: list[list[str]]
    delimiter: str = ","
    byte_order_mark: bool = False


def read_table(path: Path) -> Table:
    """Read a platform's file.

    Raises:
        OrderMattersError: it can't be opened, is not UTF-8, is no such table, or has no row below its header.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise OrderMattersError(f"{path} can't be read: {error.strerror}.") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OrderMattersError(
            f"{path} is not UTF-8 (byte {error.start}). Use the platform's own file, not one saved by a spreadsheet."
        ) from error
    header = text.partition("\n")[0]
    delimiter = ";" if header.count(";") > header.count(",") else ","
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise OrderMattersError(f"{path} is no table of comma-separated values: {error}.") from error
    rows = [row for row in rows if row]
    if len(rows) < 2:
        raise OrderMattersError(f"{path} has no row below its header.")
    width = len(rows[0])
    return Table(path.name, [row + [""] * (width - len(row)) for row in rows], delimiter, data[:3] == b"\xef\xbb\xbf")


def write_table(table: Table, path: Path) -> None:
    """Write the rows, quoted only where they need it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8-sig" if table.byte_order_mark else "utf-8", newline="") as file:
        csv.writer(file, delimiter=table.delimiter, lineterminator="\n").writerows(table.rows)


def number(points: float, decimal: str = ".") -> str:
    """Points with at most four decimals, as few as needed."""
    text = f"{points:.4f}".rstrip("0").rstrip(".")
    return text.replace(".", decimal)


def parse_number(text: str) -> float | None:
    """A number in a platform's file, with a decimal point or comma; None for anything else."""
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        return None


def safe_text(text: str) -> str:
    """A text cell that a spreadsheet shows and does not compute: one that opens like a formula gets an apostrophe.

    Names come from file names, which students choose. See https://owasp.org/www-community/attacks/CSV_Injection.
    """
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


@dataclass(frozen=True)
class Matched:
    """Which student stands in which row.

    Attributes:
        rows: number of the row, by student.
        strangers: students with a score who are in no row.
        unknown: numbers of the rows whose person has no submission in the gradebook.
    """

    rows: Mapping[int, FinalScore]
    strangers: tuple[str, ...]
    unknown: tuple[int, ...]


def match_students(
    scores: FinalScores, table: Table, keys: Mapping[int, Sequence[Sequence[str]]], lms_keys: Mapping[int, str]
) -> Matched:
    """Find each student's row.

    A student whose id in the platform is in the gradebook (`lms_user_id`) is found by it alone. Others are found by
    nbgrader's id or their e-mail address, compared without regard to case.

    Args:
        keys: for each row's number what may name its person, in order: the first kind that names anybody counts.
        lms_keys: for each row's number the platform's own id of the person.

    Raises:
        OrderMattersError: two rows fit one student, or two students one row.
    """
    students = [student for student in scores.students if student.submitted]
    rows: dict[int, FinalScore] = {}
    for student in students:
        if student.lms_user_id:
            places = [row for row, key in lms_keys.items() if key == student.lms_user_id]
        else:
            places = _places({_plain(name) for name in (student.student, student.email) if name.strip()}, keys)
        if len(places) > 1:
            first, second = (row + 1 for row in places[:2])
            raise OrderMattersError(
                f"{student.student} fits two rows of {table.name}, {first} and {second}. Tell them apart by the "
                f"platform's id: nbgrader db student add {student.student} --lms-user-id ID"
            )
        for row in places:
            if row in rows:
                raise OrderMattersError(
                    f"row {row + 1} of {table.name} fits two students, {rows[row].student} and {student.student}. Tell "
                    "them apart by the platform's id: nbgrader db student add STUDENT --lms-user-id ID"
                )
            rows[row] = student
    found = {student.student for student in rows.values()}
    return Matched(
        rows,
        tuple(student.student for student in students if student.student not in found),
        tuple(row for row in keys if row not in rows),
    )


def _places(names: set[str], keys: Mapping[int, Sequence[Sequence[str]]]) -> list[int]:
    """The rows that these names fit, by the first kind of key that fits any."""
    for kind in range(max(map(len, keys.values()), default=0)):
        places = [
            row
            for row, kinds in keys.items()
            if kind < len(kinds) and names & {_plain(key) for key in kinds[kind] if key.strip()}
        ]
        if places:
            return places
    return []


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()


def listed(names: Sequence[str], most: int = 10) -> str:
    """The names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def converted(student: FinalScore, maximum: float | None, *, scale: bool) -> float:
    """The score on the platform's scale. `maximum` is the platform's; None where it has none."""
    if not scale or maximum is None or not student.max_score:
        return student.score
    return student.score * maximum / student.max_score


def check_maximum(scores: FinalScores, maximum: float | None, *, scale: bool, where: str) -> None:
    """Refuse to write points into a column of another scale. Raises OrderMattersError."""
    if maximum is not None and not scale and abs(maximum - scores.max_score) > 1e-6:
        raise OrderMattersError(
            f"{where} is out of {maximum:g} points, {scores.assignment} out of {scores.max_score:g}. "
            "Make them equal on the platform, or convert the scores with --scale."
        )
