"""Readers of what platforms import, written from their documentation and sources, not from our writers."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from pathlib import Path
from typing import Any


def canvas_import(path: Path, assignment_id: int | str) -> dict[str, str]:
    """What Canvas takes from a gradebook file for one assignment: grade by Canvas id.

    As its importer reads (`lib/gradebook_importer.rb`): the header begins with Student and ID; the columns of the
    students end with Section; an assignment is found by the number in parentheses, a new one by its title; the row with
    "Points Possible" and rows that only say Muted or Manual Posting are no students; the test student is one.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        text = file.read()
    lines = text.splitlines()[:3]
    semicolons = all(line.count(";") == lines[0].count(";") > 0 for line in lines)
    rows = [row for row in csv.reader(text.splitlines(), delimiter=";" if semicolons else ",") if any(row)]
    header = rows[0]
    assert "Student" in header[0]
    assert "ID" in header[1]
    columns = 3
    if re.search(r"SIS\s+Login\s+ID", header[2]):
        columns = 4
    elif re.search(r"SIS\s+User\s+ID", header[2]) and re.search(r"SIS\s+Login\s+ID", header[3]):
        columns = 5
    assert "Section" in header[columns - 1]
    computed = re.compile("(Current|Final) (Score|Points|Grade)|Override (Score|Grade|Status)")
    places = []
    for place in range(columns, len(header)):
        if computed.search(header[place]):
            continue
        named = re.fullmatch(r"(.*)\s\((\d+)\)", header[place])
        if str(assignment_id) in (named.groups() if named else (header[place],)):
            places.append(place)
    (place,) = places
    grades = {}
    for row in rows[1:]:
        if "Points Possible" in row[0] or all(re.fullmatch(r"\s*(Muted|Manual Posting.*)?\s*", cell) for cell in row):
            continue
        cell = row[place].strip()
        if re.fullmatch(r"-?[0-9.,]+%?", cell):  # decimal_comma_to_period
            *whole, last = re.split("[,.]", cell)
            cell = f"{''.join(whole)}.{last}" if whole else last
        grades[row[1]] = cell
    return grades


def moodle_worksheet(path: Path, maximum: float) -> dict[str, tuple[float, str]]:
    """What Moodle's offline grading takes: (grade, feedback) by participant's number.

    As `assignfeedback_offline_grade_importer` does: three columns must be there by name; the participant's number
    stands behind "Participant "; a grade that is empty, negative or above the maximum is skipped.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    header = rows[0]
    identifier, grade = header.index("Identifier"), header.index("Grade")
    assert "Last modified (grade)" in header
    comments = header.index("Feedback comments")
    taken = {}
    for row in rows[1:]:
        if row[grade] == "" or not 0 <= float(row[grade].replace(",", ".")) <= maximum:
            continue
        taken[row[identifier][len("Participant ") :]] = (float(row[grade].replace(",", ".")), row[comments])
    return taken


def moodle_grade_import(path: Path) -> dict[str, tuple[float, str]]:
    """A CSV for Moodle's grade import with "ID number" mapped to the user and the last two columns to one item."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    user = rows[0].index("ID number")
    assert rows[0][-2].endswith("(Real)")
    assert rows[0][-1].endswith("(Feedback)")
    assert {len(row) for row in rows} == {len(rows[0])}
    return {row[user]: (float(row[-2]), row[-1]) for row in rows[1:]}


VISIBILITIES = {"hidden", "after_due_date", "after_published", "visible"}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}


def gradescope_results(text: str) -> dict[str, Any]:
    """A results.json, held to "Output format" of Gradescope's autograder specifications: the score that would count."""
    document: dict[str, Any] = json.loads(text)
    known = {"score", "execution_time", "output", "output_format", "test_output_format", "test_name_format"}
    known |= {"visibility", "stdout_visibility", "extra_data", "tests", "leaderboard"}
    assert set(document) <= known
    assert isinstance(document.get("execution_time", 0), int)
    for test in document["tests"]:
        fields = {"score", "max_score", "status", "name", "name_format", "number", "output", "output_format", "tags"}
        assert set(test) <= fields | {"visibility", "extra_data"}
        assert test.get("status", "passed") in ("passed", "failed")
        assert test.get("visibility", "visible") in VISIBILITIES
        assert {test.get("output_format", "text"), test.get("name_format", "text")} <= FORMATS
        assert isinstance(test["number"], str)
    counted = document["score"] if "score" in document else sum(test["score"] for test in document["tests"])
    return {**document, "counts": counted}


def gradescope_archive(path: Path) -> dict[str, dict[str, Any]]:
    """Each student's results.json in an archive, by folder."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert all(re.fullmatch(r"[^/]+/results\.json", name) for name in names)
        return {name.partition("/")[0]: gradescope_results(archive.read(name).decode("utf-8")) for name in names}
