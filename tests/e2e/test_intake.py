"""`autograder grade` on what a platform exports: one command, every student, what the instructor is told."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from tests.conftest import TINY, Answer
from tests.e2e.helpers import by_student, grade_here, run
from tests.intake.makers import write_zip, zip_bytes

pytestmark = pytest.mark.slow

WRONG = "def causal_mask(length, device=None):\n    return torch.ones(length, length).triu()"


def test_a_canvas_download(tiny_course: Path, answered: Answer, tmp_path: Path) -> None:
    """Late, twice, in a zip of the student's own, names in Chinese, a bomb, a way out: the rest is graded."""
    right, wrong = nbformat.writes(answered()), nbformat.writes(answered(causal_mask=WRONG))
    download = write_zip(
        tmp_path / "submissions.zip",
        {
            f"surnamename_11_101_{TINY}.ipynb": right,
            f"lateone_LATE_12_102_{TINY}-2.ipynb": wrong,
            f"lateone_LATE_12_103_{TINY}-3.ipynb": "{",
            "李雷_13_104_作业 (1).zip": zip_bytes({"作业/x.ipynb": right}),
            f"bomb_14_105_{TINY}.ipynb": bytes(30 * 2**20),
            "typed_15_text.html": "<p>my answer</p>",
            "../../evil_16_106_x.ipynb": right,
        },
    )
    students = tmp_path / "students.csv"
    students.write_text(
        'student,name,canvas\nstudent-01,"Surname, Name",\nstudent-02,,12\nstudent-03,李雷,\nstudent-09,Absent,\n',
        encoding="utf-8",
    )
    done, results = grade_here(tiny_course, TINY, download, "--students", str(students))
    found = by_student(results)
    assert {name: (one["outcome"], one["score"]) for name, one in found.items()} == {
        "student-01": ("graded", 3.0),
        "student-02": ("graded", 2.0),
        "student-03": ("graded", 3.0),
        "14": ("rejected", 0.0),
        "15": ("rejected", 0.0),
    }
    assert "unpacks to more than 200 times its size" in found["14"]["reason"]
    assert "only text.html" in found["15"]["reason"]
    for said in (
        "Canvas export: 5 students",
        "../../evil_16_106_x.ipynb: its path leads out of the archive",
        f"student-02: {TINY}-3.ipynb: lateone_LATE_12_103_{TINY}-3.ipynb is not JSON",
        "15 = typed",
        "student-09",
    ):
        assert said in done.stdout
    assert (tiny_course / "feedback" / "student-03" / TINY / f"{TINY}.html").exists()
    assert not list(tmp_path.rglob("evil*"))

    again, _ = grade_here(tiny_course, TINY, download, "--students", str(students))
    assert "5 unchanged" in again.stdout


def test_a_moodle_download(tiny_course: Path, answered: Answer, tmp_path: Path) -> None:
    """Names in two scripts, two students of one name, one with no notebook; messages in Chinese."""
    right, wrong = nbformat.writes(answered()), nbformat.writes(answered(causal_mask=WRONG))
    download = write_zip(
        tmp_path / "课程-作业-7.zip",
        {
            "李 雷_201_assignsubmission_file/作业.ipynb": right,
            "Name Surname_202_assignsubmission_file/work.ipynb": right,
            "Name Surname_203_assignsubmission_file/work (2).ipynb": wrong,
            "No Name_204_assignsubmission_onlinetext/onlinetext.html": "<p>text</p>",
        },
    )
    done, results = grade_here(tiny_course, TINY, download, "--language", "zh")
    assert {name: one["score"] for name, one in by_student(results).items()} == {
        "Name Surname_202": 3.0,
        "Name Surname_203": 2.0,
        "No Name": 0.0,
        "李 雷": 3.0,
    }
    assert "没有笔记本文件" in by_student(results)["No Name"]["reason"]
    assert "Moodle export: 4 students" in done.stdout


REFUSED = {
    "a broken archive": ("broken.zip", b"PK\x03\x04", "'broken.zip' was not unpacked: it can't be opened"),
    "a 7z": ("class.7z", b"7z\xbc\xaf\x27\x1c", "it is a 7z or rar archive. Unpack it yourself and give the folder"),
}


@pytest.mark.parametrize(("name", "content", "said"), REFUSED.values(), ids=REFUSED)
def test_an_archive_that_cannot_be_used_is_one_line(tiny_course: Path, name: str, content: bytes, said: str) -> None:
    (tiny_course / name).write_bytes(content)
    done = run("autograder", "grade", TINY, "--submissions", name, cwd=tiny_course)
    assert (done.status, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_bad_list_of_students_is_one_line(tiny_course: Path) -> None:
    (tiny_course / "students.csv").write_text("name,id\nx,1\n", encoding="utf-8")
    done = run("autograder", "grade", TINY, "--students", "students.csv", cwd=tiny_course)
    assert (done.status, done.stdout) == (2, "")
    assert "--students students.csv can't be used: its columns are name, id" in done.stderr
