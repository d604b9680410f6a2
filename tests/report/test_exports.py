"""Exports, read back as the platforms read: every score where it belongs, everything else as it was."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from autograder.errors import OrderMattersError
from autograder.grading.marks import FinalScore, FinalScores
from autograder.report.exports import Export, export_scores
from autograder.report.sheets import number, safe_text
from autograder.results import Outcome, SubmissionResult, Text, Verdict
from tests.report.platforms import canvas_import, gradescope_archive, moodle_grade_import, moodle_worksheet

MAXIMA = {"pair-frequencies": 2.0, "causal-mask": 1.0, "reflection": 3.0}


def student(name: str, *points: float, penalty: float = 0.0, **fields: Any) -> FinalScore:
    """Somebody who handed in, with points for each exercise."""
    raw = sum(points)
    return FinalScore(
        student=name,
        first_name=fields.pop("first_name", ""),
        last_name=fields.pop("last_name", ""),
        email=fields.pop("email", ""),
        lms_user_id=fields.pop("lms_user_id", ""),
        submitted=fields.pop("submitted", True),
        timestamp=datetime(2026, 3, 4, 5, 6),
        raw_score=raw,
        late_penalty=penalty,
        score=max(0.0, raw - penalty),
        max_score=6.0,
        waiting=fields.pop("waiting", 0),
        exercises=dict(zip(MAXIMA, points, strict=True)),
        comments=fields.pop("comments", {}),
    )


STUDENTS = (
    student("101", 2, 1, 2.5, comments={"reflection": "Well <seen>."}),
    student("student-02", 0.5, 1, 0, penalty=1),
    student("student-03", 2, 0, 0, email="Three@school.test"),
    student("student-04", 0, 0, 0, submitted=False),
    student("student-05", 1, 1, 0.123456, lms_user_id="105", waiting=1),
)
SCORES = FinalScores("01-tiny", None, 6.0, MAXIMA, STUDENTS)
SAID = SubmissionResult(
    "101",
    Outcome.GRADED,
    None,
    1.6,
    (
        Verdict("pair-frequencies", 2.0, 2.0, None, Text("All right.", "对。"), ()),
        Verdict("causal-mask", 0.0, 1.0, "upside-down", Text("Turned.", "反了。"), ()),
    ),
)
EXPORT = Export(SCORES, "Tiny: two exercises", {"101": SAID})

CANVAS = '''\
Student,ID,SIS User ID,SIS Login ID,Section,Notes,Week 0 (7),Tiny: two exercises (8),Current Score,Final Score
,,,,,,Manual Posting,,,
    Points Possible,,,,,,10,6,(read only),(read only)
"One, A ""Al""",101,u1,student-01,L1,=1+1,4,1.00,40,40
"Two, B",102,u2,STUDENT-02,L1,,5,,50,50
"Three, C",103,u3,three@school.test,"L1, L2",,,EX,0,0
"Four, 四",104,u4,student-04,L1,,,3,0,0
"Five, E",105,u5,e5,L1,,,,0,0
"Six, F",106,u6,student-06,L1,,,2,0,0
"Student, Test",999,,0f3a,L1,,,,,
'''


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Writes the platform's file."""

    def make(text: str) -> Path:
        path = tmp_path / "platform.csv"
        path.write_bytes(text.encode())
        return path

    return make


def cells(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def changes(before: list[list[str]], after: list[list[str]]) -> set[tuple[int, int]]:
    """Places of the cells that differ."""
    return {
        (row, place) for row, line in enumerate(before) for place, cell in enumerate(line) if after[row][place] != cell
    }


def test_canvas_takes_every_score(write: Callable[[str], Path], tmp_path: Path) -> None:
    """By id, login, e-mail or the platform's id; who handed nothing in, or is unknown here, keeps what Canvas has."""
    out = tmp_path / "out.csv"
    notes = export_scores("canvas", replace(EXPORT, into=write(CANVAS)), out)
    taken = canvas_import(out, 8)
    assert taken == {"101": "5.5", "102": "0.5", "103": "2", "104": "3", "105": "2.1235", "106": "2", "999": ""}
    assert notes[0] == "4 scores in the column 'Tiny: two exercises (8)' of 6 students"
    assert notes[-1] == "answers still wait to be graded by hand and count 0: student-05"


def test_canvas_keeps_everything_else(write: Callable[[str], Path], tmp_path: Path) -> None:
    """Cell by cell, order included: names with commas and quotes, notes, posting row, read-only columns."""
    path, out = write(CANVAS), tmp_path / "out.csv"
    export_scores("canvas", replace(EXPORT, into=path), out)
    before, after = cells(path), cells(out)
    assert changes(before, after) == {(3, 7), (4, 7), (5, 7), (7, 7)}
    assert [len(line) for line in after] == [len(line) for line in before]


def test_a_second_export_changes_nothing(write: Callable[[str], Path], tmp_path: Path) -> None:
    """What came out may go in again."""
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    export_scores("canvas", replace(EXPORT, into=write(CANVAS)), first)
    export_scores("canvas", replace(EXPORT, into=first), second)
    assert first.read_bytes() == second.read_bytes()


def test_canvas_with_decimal_commas(write: Callable[[str], Path], tmp_path: Path) -> None:
    """Semicolons and a byte-order mark stay; numbers have a comma, as Canvas writes there."""
    text = "\ufeffStudent;ID;SIS Login ID;Section;01-tiny (8)\n    Points Possible;;;;6,0\nTwo;102;student-02;L;\n"
    path, out = write(text), tmp_path / "out.csv"
    export_scores("canvas", replace(EXPORT, into=path), out)
    assert out.read_bytes().startswith(b"\xef\xbb\xbfStudent;ID;")
    assert "Two;102;student-02;L;0,5" in out.read_text(encoding="utf-8-sig")
    assert canvas_import(out, 8) == {"102": "0.5"}


def test_canvas_gets_a_new_column(write: Callable[[str], Path], tmp_path: Path) -> None:
    """Where there is none of that name: before the computed ones, with its points, and told."""
    text = CANVAS.replace("Tiny: two exercises (8)", "Other (8)")
    out = tmp_path / "out.csv"
    notes = export_scores("canvas", replace(EXPORT, into=write(text)), out)
    assert canvas_import(out, "01-tiny")["101"] == "5.5"
    assert cells(out)[0][-3:] == ["01-tiny", "Current Score", "Final Score"]
    assert cells(out)[2][-3] == "6"
    assert any("a new one was added" in note for note in notes)


def test_scores_are_converted_only_when_asked(write: Callable[[str], Path], tmp_path: Path) -> None:
    """Another maximum is an error that names both, and --scale."""
    path, out = write(CANVAS.replace(",10,6,", ",10,100,")), tmp_path / "out.csv"
    with pytest.raises(OrderMattersError, match=r"is out of 100 points, 01-tiny out of 6\..*--scale"):
        export_scores("canvas", replace(EXPORT, into=path), out)
    assert not out.exists()
    export_scores("canvas", replace(EXPORT, into=path, scale=True), out)
    assert float(canvas_import(out, 8)["101"]) == pytest.approx(100 * 5.5 / 6, abs=1e-4)


BAD_CANVAS = {
    "another file": ("a,b\n1,2\n", "is not Canvas's gradebook: its columns are a, b"),
    "only a header": (CANVAS.splitlines()[0] + "\n", "has no row below its header"),
    "empty": ("", "has no row below its header"),
    "two columns": (CANVAS.replace("Week 0 (7)", "01-tiny (7)"), "has 2 columns of that name"),
    "one person twice": (CANVAS.replace("Two, B", "Two, C").replace("e5,L1", "student-02,L1"), "fits two rows"),
    "two students in one row": (
        CANVAS.replace("student-01", "student-02").replace("STUDENT-02", "x"),
        "fits two students",
    ),
    "read only": (CANVAS.replace(",10,6,", ",10,6 (read only),"), "it is read only"),
    "open quote": ('Student,ID,Section\n"a', "is no table of comma-separated values"),
}


@pytest.mark.parametrize(("text", "said"), BAD_CANVAS.values(), ids=BAD_CANVAS)
def test_a_canvas_file_that_does_not_fit(text: str, said: str, write: Callable[[str], Path], tmp_path: Path) -> None:
    """Never a guess: an error that names the file or the people, and nothing is written."""
    with pytest.raises(OrderMattersError, match=said):
        export_scores("canvas", replace(EXPORT, into=write(text)), tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_a_column_can_be_named(write: Callable[[str], Path], tmp_path: Path) -> None:
    """By title or whole heading; one that is not there is an error that lists those that are."""
    out = tmp_path / "out.csv"
    path = write(CANVAS.replace(",10,6,", ",6,6,"))
    export_scores("canvas", replace(EXPORT, into=path, column="Week 0"), out)
    assert canvas_import(out, 7)["101"] == "5.5"
    with pytest.raises(OrderMattersError, match=r"no column 'Week 9'. It has: Notes, Week 0 \(7\)"):
        export_scores("canvas", replace(EXPORT, into=path, column="Week 9"), out)


def test_a_file_saved_by_a_spreadsheet(tmp_path: Path) -> None:
    """Not UTF-8: said, with the remedy."""
    path = tmp_path / "latin.csv"
    path.write_bytes("Student,ID,Section\nMüller,1,L\n".encode("latin-1"))
    with pytest.raises(OrderMattersError, match="is not UTF-8"):
        export_scores("canvas", replace(EXPORT, into=path), tmp_path / "out.csv")


WORKSHEET = """\
Identifier,Full name,Email address,Status,Grade,Maximum grade,Grade can be changed,Last modified (submission),\
Last modified (grade),Feedback comments
Participant 101,A One,one@school.test,Submitted for grading,,6.00,Yes,"Monday, 2 March 2026",-,
Participant 202,B Two,student-02@school.test,Submitted for grading,3.00,6.00,Yes,-,"Monday, 2 March 2026",old
Participant 303,C Three,three@school.test,Submitted for grading,,6.00,No,-,-,
Participant 404,D Four,four@school.test,No submission,,6.00,Yes,-,-,
Participant 105,E Five,five@school.test,Submitted for grading,,6.00,Yes,-,-,
"""


def test_moodles_worksheet_is_filled_in(write: Callable[[str], Path], tmp_path: Path) -> None:
    """By participant, e-mail or its local part; locked grades and everything else stay."""
    path, out = write(WORKSHEET), tmp_path / "out.csv"
    notes = export_scores("moodle", replace(EXPORT, into=path), out)
    taken = moodle_worksheet(out, 6.0)
    assert {who: grade for who, (grade, _) in taken.items()} == {"101": 5.5, "202": 0.5, "105": 2.1235}
    assert taken["101"][1] == (
        "pair-frequencies: 2 / 2 All right.<br>causal-mask: 1 / 1<br>reflection: 2.5 / 3 Well &lt;seen&gt;."
    )
    assert taken["202"][1].endswith("<br>−1: late")
    assert notes[:2] == [
        "3 grades for 5 participants",
        "Moodle has locked the grades of student-03; they were left as they are",
    ]
    before, after = cells(path), cells(out)
    assert changes(before, after) == {(row, place) for row in (1, 2, 5) for place in (4, 9)}


def test_another_file_is_no_worksheet(write: Callable[[str], Path], tmp_path: Path) -> None:
    """The missing column is named, with where to get the file."""
    with pytest.raises(OrderMattersError, match=r"no column 'Identifier'.*Download grading worksheet"):
        export_scores("moodle", replace(EXPORT, into=write("Name,Grade\na,1\n")), tmp_path / "out.csv")


def test_moodles_grade_import(tmp_path: Path) -> None:
    """Everybody who handed in, grade and feedback together; the platform's id where it is known."""
    out = tmp_path / "out.csv"
    export_scores("moodle", EXPORT, out)
    taken = moodle_grade_import(out)
    assert {who: grade for who, (grade, _) in taken.items()} == {
        "101": 5.5,
        "student-02": 0.5,
        "student-03": 2.0,
        "105": 2.1235,
    }
    assert all(feedback for _, feedback in taken.values())


def test_gradescope_takes_the_archive(tmp_path: Path) -> None:
    """The score that counts has penalty and marks by hand in it; messages stand where points were not changed since."""
    out = tmp_path / "out.zip"
    export_scores("gradescope", EXPORT, out)
    found = gradescope_archive(out)
    assert {who: results["counts"] for who, results in found.items()} == {
        one.student: one.score for one in STUDENTS if one.submitted
    }
    first = {test["name"]: test for test in found["101"]["tests"]}
    assert [test["max_score"] for test in first.values()] == list(MAXIMA.values())
    assert [test["status"] for test in first.values()] == ["passed", "passed", "failed"]
    assert first["pair-frequencies"]["output"] == "All right."
    assert first["causal-mask"]["output"] == ""  # a person gave the point since: the verdict is no longer true
    assert first["reflection"]["output"] == "Well <seen>."
    assert found["101"]["execution_time"] == 2
    assert "lateness" in found["student-02"]["output"]
    again = tmp_path / "again.zip"
    export_scores("gradescope", EXPORT, again)
    assert again.read_bytes() == out.read_bytes()


def test_gradescope_into_a_folder_stays_in_it(tmp_path: Path) -> None:
    """A student's id is no path."""
    scores = replace(SCORES, students=(student("../../up", 1, 1, 1), student("a/b", 0, 0, 0)))
    export_scores("gradescope", replace(EXPORT, scores=scores), tmp_path / "out")
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json"))
    assert len(found) == 2
    assert all(name.startswith("out/") and name.count("/") == 2 for name in found)


def test_the_csv_form(tmp_path: Path) -> None:
    """nbgrader's columns come first; who has not handed in has no score, not zero."""
    out = tmp_path / "out.csv"
    export_scores("csv", EXPORT, out)
    rows = [dict(zip(cells(out)[0], row, strict=True)) for row in cells(out)[1:]]
    assert [(row["student_id"], row["score"], row["submitted"]) for row in rows] == [
        ("101", "5.5", "yes"),
        ("student-02", "0.5", "yes"),
        ("student-03", "2", "yes"),
        ("student-04", "", "no"),
        ("student-05", "2.1235", "yes"),
    ]
    assert (rows[1]["raw_score"], rows[1]["late_submission_penalty"]) == ("1.5", "1")
    assert [rows[0][name] for name in MAXIMA] == ["2", "1", "2.5"]


def test_a_name_is_no_formula(tmp_path: Path) -> None:
    """Students choose file names; a spreadsheet shows this one and does not run it."""
    evil = '=HYPERLINK("https://x.test","A")'
    scores = replace(SCORES, students=(student(evil, 1, 1, 1),))
    for to in ("csv", "moodle"):
        out = tmp_path / f"{to}.csv"
        export_scores(to, replace(EXPORT, scores=scores), out)
        assert not [cell for row in cells(out) for cell in row if cell.startswith(("=", "+", "@"))]
        assert f"'{evil}" in cells(out)[1]
    assert [safe_text(text) for text in ("a", "-1", "+1", "@x", "")] == ["a", "'-1", "'+1", "'@x", ""]


def test_the_json_form(tmp_path: Path) -> None:
    """Everything, as plain data."""
    out = tmp_path / "out.json"
    export_scores("json", EXPORT, out)
    document = json.loads(out.read_text(encoding="utf-8"))
    assert (document["export_version"], document["assignment"], document["max_score"]) == (1, "01-tiny", 6.0)
    assert document["maxima"] == MAXIMA
    assert document["students"][1] == {
        "student": "student-02",
        "first_name": "",
        "last_name": "",
        "email": "",
        "lms_user_id": "",
        "submitted": True,
        "timestamp": "2026-03-04T05:06:00",
        "raw_score": 1.5,
        "late_penalty": 1,
        "score": 0.5,
        "max_score": 6.0,
        "waiting": 0,
        "exercises": {"pair-frequencies": 0.5, "causal-mask": 1, "reflection": 0},
        "comments": {},
    }


def test_what_cannot_be_asked(tmp_path: Path) -> None:
    """Canvas without its file, a file where none is used, a class that handed nothing in."""
    with pytest.raises(OrderMattersError, match="--into FILE"):
        export_scores("canvas", EXPORT, tmp_path / "a")
    with pytest.raises(OrderMattersError, match="has no use with --to csv"):
        export_scores("csv", replace(EXPORT, into=tmp_path / "x"), tmp_path / "a")
    with pytest.raises(OrderMattersError, match="no submission of 01-tiny"):
        export_scores("csv", replace(EXPORT, scores=replace(SCORES, students=(STUDENTS[3],))), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("points", "text"), [(0.0, "0"), (10.0, "10"), (100.0, "100"), (0.5, "0.5"), (1 / 3, "0.3333"), (2.00001, "2")]
)
def test_numbers_have_as_few_digits_as_needed(points: float, text: str) -> None:
    """Four decimals at most; zeros before the point stay."""
    assert number(points) == text
