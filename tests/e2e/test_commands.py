"""The commands themselves: what they refuse, and how; `check`; `doctor`."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.cli import main
from tests.conftest import TINY, Answer
from tests.e2e.helpers import ROOT, course_folder, grade_here, notebook_path, read, run, write
from tests.sample_class import ASSIGNMENTS, sample_class

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("commands")]

LESSON = ASSIGNMENTS[1]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course folder with one blank notebook handed in."""
    root = course_folder(tmp_path_factory.mktemp("course") / "course", whole=True)
    (root / "submitted").mkdir()
    (root / "submitted" / "blank.ipynb").write_bytes(notebook_path(root, "release", LESSON).read_bytes())
    (root / "empty").mkdir()
    (root / "notes.txt").write_text("no notebook", encoding="utf-8")
    (root / "half.ipynb").write_text('{"cells": [', encoding="utf-8")
    (root / "strange.ipynb").write_text('{"cells": [], "nbformat": 4, "nbformat_minor": 5}', encoding="utf-8")
    return root


REFUSED = {
    "unknown assignment": (("grade", "07-nothing"), "there is no assignment '07-nothing'", *ASSIGNMENTS),
    "missing folder": (("grade", LESSON, "--submissions", "nowhere"), "no submissions in 'nowhere'"),
    "empty folder": (("grade", LESSON, "--submissions", "empty"), "no submissions in 'empty'", "<student>.ipynb"),
    "no folder": (("grade", LESSON, "--submissions", "notes.txt"), "no submissions in 'notes.txt'"),
    "no workers": (("grade", LESSON, "--workers", "0"), "--workers is 0; it must be at least 1"),
    "negative time": (("grade", LESSON, "--cell-timeout", "-1"), "is -1; it must be above 0"),
    "no time": (("grade", LESSON, "--total-timeout", "0"), "is 0; it must be above 0"),
    "time that is none": (("grade", LESSON, "--test-timeout", "nan"), "is nan; it must be above 0"),
    "no course": (("grade", LESSON, "--course", "empty"), "is no course folder", "--course FOLDER"),
    "missing notebook": (("check", "nowhere.ipynb"), "'nowhere.ipynb'"),
    "unreadable notebook": (("check", "half.ipynb"), "half.ipynb is not JSON"),
    "foreign notebook": (("check", "strange.ipynb"), "no answer cell of any lesson", "--assignment"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_options_are_refused(
    case: str, course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2 and one line on stderr that names what was given and the remedy; nothing is written."""
    arguments, *named = REFUSED[case]
    monkeypatch.chdir(course)
    assert main(list(arguments)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    for part in named:
        assert part in printed.err
    assert not (course / "gradebook.db").exists()
    assert not (course / "feedback").exists()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("grade",), "assignment"),
        (("grade", LESSON, "--workers", "many"), "--workers: invalid int value: 'many'"),
        (("grade", LESSON, "--language", "fr"), "--language: invalid choice: 'fr'"),
        (("grade", LESSON, "--device", "abacus"), "--device: invalid choice: 'abacus'"),
        (("remark", LESSON), "invalid choice: 'remark'"),
        ((), "COMMAND"),
    ],
)
def test_wrong_usage_is_refused(
    arguments: tuple[str, ...], named: str, course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2; the last line on stderr says which argument is wrong."""
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    assert stopped.value.code == 2
    assert named in capsys.readouterr().err.splitlines()[-1]


def test_refusal_through_the_shell(course: Path) -> None:
    """The installed command: status 2, one line, no traceback."""
    done = run("autograder", "grade", "07-nothing", cwd=course)
    assert done.status == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_check_accepts_right_work(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`autograder check` on a whole lesson, right answers in place: status 0 and full points; nothing is written."""
    student = sample_class(LESSON)["student-02"]
    release = read(notebook_path(course, "release", LESSON))
    notebook = course / f"{LESSON} mine.ipynb"
    notebook.write_bytes(student.form(student.notebook(release)))
    before = sorted(course.rglob("*"))
    status = main(["check", str(notebook), "--course", str(course)])
    said = capsys.readouterr()
    assert status == 0, said
    marks = [cell.metadata.get("nbgrader", {}) for cell in release.cells]
    points = sum(mark.get("points", 0) for mark in marks)
    assert f"{LESSON}: {points:g} / {points:g}, graded" in said.out
    assert sorted(course.rglob("*")) == before


def test_doctor_finds_this_machine_well(course: Path) -> None:
    """`autograder doctor`: status 0, and a line for Python, the packages, the course and a kernel that runs."""
    done = run("autograder", "doctor", cwd=course)
    assert done.status == 0, done.stdout + done.stderr
    for what in (
        "Python: ",
        "torch: ",
        "nbgrader: ",
        f"course: {', '.join(ASSIGNMENTS)}",
        "kernel: starts, runs a cell",
    ):
        assert f"ok  {what}" in done.stdout


def test_doctor_says_how_to_mend(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a folder that is no course: status 1, and the remedy under the finding."""
    assert main(["doctor", "--course", str(course / "empty")]) == 1
    printed = capsys.readouterr().out
    assert "no  course: no source/ in" in printed
    assert "pass --course FOLDER" in printed


def test_sample_class_is_written_by_a_command(course: Path, tmp_path: Path) -> None:
    """`python -m tests.sample_class ASSIGNMENT FOLDER`, as the Makefile calls it, writes nbgrader's layout."""
    folder = tmp_path / "handed in"
    done = run("python", "-m", "tests.sample_class", LESSON, folder, "--course", course, cwd=ROOT)
    assert done.status == 0, done.stderr
    written = sorted(folder.rglob("*.ipynb"))
    assert written == [folder / name / LESSON / f"{LESSON}.ipynb" for name in sample_class(LESSON)]


def test_quiet_with_a_log_for_batch_use(tiny_course: Path, answered: Answer) -> None:
    """Nothing is printed; the log has a line for each submission, in this run and in the next."""
    folder = tiny_course / "handed in"
    write(answered(), folder / "student-01.ipynb")
    (folder / "student-02.ipynb").write_bytes(b"")
    for _ in range(2):
        done, _results = grade_here(tiny_course, TINY, folder, "--quiet", "--log", str(folder / "run.log"))
        assert (done.stdout, done.stderr) == ("", "")
    lines = [line.split("\t") for line in (folder / "run.log").read_text(encoding="utf-8").splitlines()]
    assert sorted((line[2], line[3], line[4]) for line in lines) == [
        ("student-01", "graded", "3/3"),
        ("student-01", "graded before", "3/3"),
        ("student-02", "rejected", "0/3"),
        ("student-02", "rejected before", "0/3"),
    ]
    assert {line[1] for line in lines} == {TINY}
