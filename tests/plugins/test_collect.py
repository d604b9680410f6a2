"""`nbgrader zip_collect` with what platforms export, in a real course folder with the course's own configuration."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from tests.conftest import TINY, Answer
from tests.e2e.helpers import run
from tests.intake.makers import mark_of, notebook, tar_bytes, write_folder, zip_bytes

pytestmark = pytest.mark.slow


def collected(course: Path) -> dict[str, str]:
    """The mark of each notebook in submitted/; nothing else lies there."""
    found = {}
    for path in sorted((course / "submitted").rglob("*")):
        if path.is_file():
            student, assignment, name = path.relative_to(course / "submitted").parts
            assert (assignment, name) == (TINY, f"{TINY}.ipynb")
            found[student] = mark_of(path)
    return found


def test_downloads_of_several_kinds_in_one_run(tmp_path: Path, tiny_course: Path) -> None:
    """Moodle's zip, late attempts of Blackboard's, a student's own archive, a broken one, one that leads outside."""
    attempt = "Tiny_student01_attempt_2026-01-0{}-03-04-05_work.ipynb"
    moodle = {
        "Name Surname_1_assignsubmission_file/any name.ipynb": notebook("moodle"),
        "李 雷_2_assignsubmission_file/作业.zip": zip_bytes({"within/x.ipynb": notebook("within")}),
        "Other Name_3_assignsubmission_file/report.pdf": b"%PDF",
        "../../evil.ipynb": notebook("evil"),
    }
    write_folder(
        tiny_course / "downloaded" / TINY / "archive",
        {"class.zip": zip_bytes(moodle), "broken.zip": b"PK", "class.tar.gz": tar_bytes({"README": b"x"})},
    )
    done = run("nbgrader", "zip_collect", TINY, cwd=tiny_course)
    assert done.status == 0, done.stderr
    assert collected(tiny_course) == {"Name Surname": "moodle", "李 雷": "within"}
    for said in ("leads out of the archive", "broken.zip", "Moodle export", "Other Name: There is no notebook"):
        assert said in done.stderr
    assert not list(tmp_path.rglob("evil.ipynb"))

    archive = tiny_course / "downloaded" / TINY / "archive"
    for path in archive.iterdir():
        path.unlink()
    attempts = {
        attempt.format(day): content for day, content in ((1, notebook("old")), (2, notebook("new")), (3, b"{"))
    }
    write_folder(archive, attempts)
    (tiny_course / "students.csv").write_text("student,user\nstudent-01,student01\n", encoding="utf-8")
    option = f"--PlatformCollector.students={tiny_course / 'students.csv'}"
    done = run("nbgrader", "zip_collect", TINY, "--force", option, cwd=tiny_course)
    assert done.status == 0, done.stderr
    assert collected(tiny_course)["student-01"] == "new"
    assert "attempts that do not count (2)" in done.stderr


def test_what_was_collected_is_what_nbgrader_grades(tiny_course: Path, answered: Answer) -> None:
    """The file lands under the released name: `nbgrader autograde` finds it."""
    work = nbformat.writes(answered())
    write_folder(tiny_course / "downloaded" / TINY / "archive", {f"surname_1_2_{TINY}-3.ipynb": work})
    assert run("nbgrader", "zip_collect", TINY, cwd=tiny_course).status == 0
    assert (tiny_course / "submitted" / "1" / TINY / f"{TINY}.ipynb").read_text(encoding="utf-8") == work


def test_an_instructors_own_expression_has_precedence(tiny_course: Path) -> None:
    """What was set up for nbgrader's collector goes on to work."""
    write_folder(tiny_course / "downloaded" / TINY / "archive", {f"my-student-01-{TINY}.ipynb": notebook("mine")})
    option = rf"--FileNameCollectorPlugin.named_regexp=.*/my-(?P<student_id>student-\d+)-(?P<file_id>{TINY})"
    done = run("nbgrader", "zip_collect", TINY, option, cwd=tiny_course)
    assert done.status == 0, done.stderr
    assert collected(tiny_course) == {"student-01": "mine"}


def test_nothing_to_collect_is_an_error_that_says_so(tiny_course: Path) -> None:
    write_folder(tiny_course / "downloaded" / TINY / "archive", {"notes.txt": b"x"})
    done = run("nbgrader", "zip_collect", TINY, cwd=tiny_course)
    assert done.status != 0
    assert "no submissions in" in done.stderr
    assert "Traceback" not in done.stderr
