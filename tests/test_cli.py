"""The command line: what it understands, its exit statuses, and errors that are one line with a remedy."""

from __future__ import annotations

import csv
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import autograder.commands
import autograder.doctor
from autograder import errors
from autograder.cli import _parser, main
from autograder.commands import course_root, limits_from
from autograder.doctor import Finding, run_doctor
from autograder.exercises import EXERCISES
from tests.conftest import TINY, Answer
from tests.report.platforms import gradescope_archive

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def inside(tiny_course: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Started in the course folder."""
    monkeypatch.chdir(tiny_course)
    return tiny_course


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on stderr of a command that could not run: status 2, nothing on stdout."""
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("error: ")
    return line


def test_defaults() -> None:
    """What a command means that says nothing."""
    options = _parser().parse_args(["grade", TINY])
    assert (options.assignment, options.submissions, options.json, options.course) == (TINY, None, None, Path())
    assert (options.workers, options.device, options.language) == (None, "auto", None)
    options = _parser().parse_args(["check", "a.ipynb"])
    assert (options.notebook, options.assignment, options.language) == (Path("a.ipynb"), None, None)


def test_everything_can_be_said() -> None:
    """Each option, with its type."""
    said = "--submissions in --json out.json --course c --workers 3 --device cpu --language zh"
    times = "--cell-timeout 1.5 --test-timeout 2 --total-timeout 9"
    options = _parser().parse_args(["grade", "x", *said.split(), *times.split()])
    assert (options.submissions, options.json, options.course) == (Path("in"), Path("out.json"), Path("c"))
    limits = limits_from(options)
    assert (limits.cell_timeout_s, limits.test_timeout_s, limits.total_timeout_s) == (1.5, 2.0, 9.0)
    assert (options.workers, options.device, options.language) == (3, "cpu", "zh")


BAD_ARGUMENTS = {
    "no command": [],
    "unknown command": ["marks"],
    "no assignment": ["grade"],
    "unknown language": ["grade", "x", "--language", "de"],
    "unknown device": ["check", "x", "--device", "tpu"],
    "workers no number": ["grade", "x", "--workers", "many"],
    "timeout no number": ["grade", "x", "--cell-timeout", "long"],
    "export to nowhere": ["export", "x"],
    "export to an unknown platform": ["export", "x", "--to", "paper"],
    "report in an unknown language": ["report", "x", "--language", "de"],
}


@pytest.mark.parametrize("arguments", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_arguments_that_make_no_sense(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """argparse's own status 2, with the usage."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: autograder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--help"], ["grade", "--help"], ["check", "--help"], ["report", "--help"], ["export", "--help"]]
)
def test_help_is_there(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Status 0."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 0
    assert "usage: autograder" in capsys.readouterr().out


def test_help_does_not_load_torch() -> None:
    """It answers at once: the rooms are imported by the command that needs them."""
    code = """
import sys
from autograder.cli import main
try:
    main(["--help"])
except SystemExit:
    print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_a_folder_that_is_no_course(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named, with what would make it one."""
    line = fails(capsys, "grade", TINY, "--course", str(tmp_path))
    assert str(tmp_path) in line
    assert "--course FOLDER" in line


def test_an_unknown_assignment(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The known ones are listed."""
    assert fails(capsys, "grade", "09-none") == f"error: there is no assignment '09-none'. Known assignments: {TINY}."


@pytest.mark.parametrize("arguments", [["report"], ["export", "--to", "csv"]])
def test_what_was_never_graded_has_no_report(
    inside: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """The remedy is in the message."""
    assert f"autograder grade {TINY}" in fails(capsys, arguments[0], TINY, *arguments[1:])


def test_an_export_does_not_overwrite_what_it_fills_in(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The platform's file is kept."""
    (inside / "c.csv").write_text("x", encoding="utf-8")
    line = fails(capsys, "export", TINY, "--to", "canvas", "--into", "c.csv", "--output", "./c.csv")
    assert "name another one" in line
    assert (inside / "c.csv").read_text(encoding="utf-8") == "x"


def test_an_assignment_that_was_never_released(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command that builds it is in the message."""
    (inside / "release" / TINY / f"{TINY}.ipynb").unlink()
    assert "python -m course build" in fails(capsys, "grade", TINY)


def test_no_submissions(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The default folder and a given one; nothing is written."""
    assert str(inside / "submitted") in fails(capsys, "grade", TINY)
    assert "nowhere" in fails(capsys, "grade", TINY, "--submissions", "nowhere")
    assert not (inside / "gradebook.db").exists()


@pytest.mark.parametrize("option", ["--cell-timeout", "--test-timeout", "--total-timeout", "--workers"])
@pytest.mark.parametrize("number", ["0", "-1"])
def test_numbers_below_their_bound(inside: Path, capsys: pytest.CaptureFixture[str], option: str, number: str) -> None:
    """The argument, its value and the bound."""
    line = fails(capsys, "grade", TINY, option, number)
    assert number in line
    assert "must be" in line


ONLY = {
    "unknown": ("causal-maks", (), "'causal-maks': 01-tiny has no such exercise"),
    "graded by hand": ("reflection", (), "reflection: it is graded by hand, in formgrader"),
    "with all cells": ("causal-mask", ("--all-cells",), "Leave one of them out"),
}


@pytest.mark.parametrize(("exercise", "more", "said"), ONLY.values(), ids=ONLY)
def test_only_what_is_judged_automatically(
    inside: Path, capsys: pytest.CaptureFixture[str], exercise: str, more: tuple[str, ...], said: str
) -> None:
    """Another exercise is named, with those that there are; nothing is written."""
    line = fails(capsys, "grade", TINY, "--only", "pair-frequencies", "--only", exercise, *more)
    assert said in line
    assert bool(more) or "pair-frequencies, causal-mask" in line
    assert not (inside / "gradebook.db").exists()


def test_not_a_number_is_no_timeout(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`nan` compares with nothing."""
    assert "must be above 0" in fails(capsys, "grade", TINY, "--cell-timeout", "nan")


CHECKS = {
    "missing": (None, "no submissions in"),
    "not JSON": ("print(1)", "is not JSON"),
    "of no lesson": ('{"cells": []}', "no answer cell of any lesson"),
}


@pytest.mark.parametrize(("content", "said"), CHECKS.values(), ids=CHECKS)
def test_check_of_what_is_no_notebook_of_ours(
    inside: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, said: str
) -> None:
    """One line, status 2."""
    path = tmp_path / "mine.ipynb"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert said in fails(capsys, "check", str(path))


def test_an_interrupt_is_not_a_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C: the shell's status 130."""

    def interrupted(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(autograder.commands, "run_grade", interrupted)
    assert main(["grade", TINY]) == 130
    assert capsys.readouterr().err == "stopped\n"


ERRORS: list[errors.OrderMattersError] = [
    errors.UnknownAssignment("09", ["01", "02"]),
    errors.UnknownAssignment("09", []),
    errors.UnknownExercise("x", ["a", "b"]),
    errors.NoSubmissions("folder", "a notebook"),
    errors.NoSuchDevice("cuda"),
    errors.ExaminerUnavailable("connection refused"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_a_person_can_mend_are_one_line(
    error: errors.OrderMattersError, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever it is: message, full stop, status 2."""

    def raises(options: object) -> int:
        raise error

    monkeypatch.setattr(autograder.commands, "run_check", raises)
    line = fails(capsys, "check", "a.ipynb")
    assert line == f"error: {error}"
    assert line.endswith(".")


@pytest.mark.parametrize(("remedy", "status"), [(None, 0), ("conda install it", 1)])
def test_doctor_ends_with_1_when_something_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], remedy: str | None, status: int
) -> None:
    """And prints the command that mends it, brackets included."""
    findings = [Finding("Python", "3.11"), Finding("torch", "[cpu] 2.13", remedy)]
    monkeypatch.setattr(autograder.doctor, "examine", lambda course: iter(findings))
    assert run_doctor(Path()) == status
    printed = capsys.readouterr().out
    assert "torch: [cpu] 2.13" in printed
    assert ("conda install it" in printed) is (status == 1)


def test_doctor_sees_the_course(tiny_course: Path, tmp_path: Path) -> None:
    """Released or not, and a folder without one."""
    assert autograder.doctor._course(tiny_course) == Finding("course", TINY)
    (tiny_course / "release" / TINY / f"{TINY}.ipynb").unlink()
    assert autograder.doctor._course(tiny_course).remedy == "python -m course build"
    assert "--course FOLDER" in str(autograder.doctor._course(tmp_path).remedy)


def test_a_missing_package_has_a_remedy() -> None:
    """What is not installed is said with the command that installs it."""
    finding = autograder.doctor._package("no-such-package-at-all")
    assert finding.state == "not installed"
    assert "pip install" in str(finding.remedy)


def test_course_root_is_absolute(inside: Path) -> None:
    """Workers run elsewhere."""
    assert course_root(Path()) == inside.resolve()


class TestWithKernels:
    """The commands as a person runs them, in processes of their own."""

    pytestmark = pytest.mark.slow

    def run(self, course: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "autograder.cli", *arguments, "--course", str(course)],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    def test_grade_writes_everything(
        self, tiny_course: Path, tmp_path: Path, answered: Answer, submit: Callable[..., Path]
    ) -> None:
        """Gradebook, executed notebooks, feedback, JSON, a private key; status 0 though one student failed."""
        submit(answered(), "ada")
        submit(answered(causal_mask=None), "emmy")
        out = tmp_path / "deep" / "er" / "results.json"
        places = ["--submissions", str(tmp_path / "submitted"), "--json", str(out)]
        done = self.run(tiny_course, "grade", TINY, "--workers", "1", *places)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        results: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        assert [(one["student"], one["score"]) for one in results["submissions"]] == [("ada", 3.0), ("emmy", 2.0)]
        assert "causal-mask (unanswered)" in done.stdout
        for student in ("ada", "emmy"):
            assert (tiny_course / "autograded" / student / TINY / f"{TINY}.ipynb").exists()
            assert "<html" in (tiny_course / "feedback" / student / TINY / f"{TINY}.html").read_text(encoding="utf-8")
        assert (tiny_course / "gradebook.db").exists()
        assert stat.S_IMODE((tiny_course / ".course-key").stat().st_mode) == 0o600
        report = tiny_course / "reports" / f"{TINY}.html"
        assert f"class report: {report}" in done.stdout
        assert "student" in report.read_text(encoding="utf-8")
        self.reports_and_exports(tiny_course, out)

    def reports_and_exports(self, course: Path, results: Path) -> None:
        """After grading: the report again, in Chinese and elsewhere; scores as CSV, the same by nbgrader's command."""
        done = self.run(course, "report", TINY, "--language", "zh")
        assert (done.returncode, done.stderr) == (0, "")
        assert "班级报告" in (course / "reports" / f"{TINY}.html").read_text(encoding="utf-8")
        page = course / "elsewhere.html"
        done = self.run(course, "report", TINY, "--json", str(results), "--output", str(page))
        assert done.stdout == f"class report: {page} (2 submissions)\n"
        done = self.run(course, "export", TINY, "--to", "csv")
        assert (done.returncode, done.stderr) == (0, "")
        assert "answers still wait to be graded by hand and count 0: ada, emmy" in done.stdout
        written = course / "exports" / f"{TINY}.csv"
        rows = list(csv.DictReader(written.read_text(encoding="utf-8").splitlines()))
        assert [(row["student_id"], row["score"], row["max_score"]) for row in rows] == [
            ("ada", "3", "6"),
            ("emmy", "2", "6"),
        ]
        for exporter, made in (
            ("CsvExport", "scores.csv"),
            ("GradescopeExport", "scores.zip"),
            ("CanvasExport", "c.csv"),
        ):
            command = [sys.executable, "-m", "nbgrader", "export", "--to", made]
            command += [f"--exporter=autograder.plugins.exporters.{exporter}"]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            ended = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True, check=False)
            assert ended.returncode == (exporter == "CanvasExport"), ended.stderr
            if ended.returncode:
                assert "Canvas imports only its own gradebook" in ended.stderr
        assert (course / "scores.csv").read_bytes() == written.read_bytes()
        found = gradescope_archive(course / "scores.zip")
        assert {student: results["counts"] for student, results in found.items()} == {"ada": 3.0, "emmy": 2.0}
        (said,) = [test["output"] for test in found["emmy"]["tests"] if test["name"] == "causal-mask"]
        assert said.startswith("There is no answer")

    def test_check_judges_one_notebook(self, tiny_course: Path, answered: Answer, submit: Callable[..., Path]) -> None:
        """Status 1 and each mistake's message; the assignment is found from the cells; nothing is written."""
        before = sorted(tiny_course.rglob("*"))
        wrong = "def causal_mask(length, device=None):\n    return torch.ones(length, length, device=device).tril()"
        done = self.run(tiny_course, "check", str(submit(answered(causal_mask=wrong), "ada")))
        assert done.returncode == 1, done.stderr
        assert f"{TINY}: 2.75 / 3, graded" in done.stdout
        message = next(mistake for mistake in EXERCISES["causal-mask"].mistakes if mistake.slug == "float-mask").message
        assert " ".join(message.en.split()) in " ".join(done.stdout.split())
        assert "reflection: graded by hand" in done.stdout
        assert sorted(tiny_course.rglob("*")) == before
