"""nbgrader's gradebook in a real PostgreSQL: grade, regrade, and two graders at once."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from autograder.errors import OrderMattersError
from autograder.grading.assignments import load_assignment
from autograder.grading.configuration import programs_found
from autograder.grading.gradebook import ClassBook, _add_student, _alone
from tests.conftest import TINY
from tests.e2e.helpers import COMMANDS, by_student, course_folder, grade_here
from tests.sample_class import write_class

PROGRAMS = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
FIRST, SECOND = "01-why-order-matters", "02-sinusoidal-encoding"

postgresql = [
    pytest.mark.slow,
    pytest.mark.xdist_group("postgresql"),
    pytest.mark.skipif(not PROGRAMS and not os.environ.get("CI"), reason="PostgreSQL's server is not installed"),
]


def as_postgres(*command: str, cwd: Path) -> None:
    """The server refuses to run as root; Debian's package has made a user for it."""
    other = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, **other)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr.decode()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of an empty database, in a server of this test's own that only a socket in a folder leads to."""
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    folder.chmod(0o755)
    if os.geteuid() == 0:
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
    programs = PROGRAMS[-1]
    as_postgres(f"{programs}/initdb", "-D", "data", "-A", "trust", "-U", "teacher", "--no-sync", cwd=folder)
    options = f"-k {folder} -c listen_addresses='' -F"
    as_postgres(f"{programs}/pg_ctl", "-D", "data", "-w", "-o", options, "-l", "log", "start", cwd=folder)
    try:
        as_postgres(f"{programs}/createdb", "-h", str(folder), "-U", "teacher", "marks", cwd=folder)
        yield f"postgresql+psycopg://teacher:secret@/marks?host={folder}"
    finally:
        as_postgres(f"{programs}/pg_ctl", "-D", "data", "-m", "immediate", "stop", cwd=folder)
        shutil.rmtree(folder)


class TestPostgreSQL:
    """With a server running."""

    pytestmark = postgresql

    def test_a_new_database_is_made_by_several_at_once(self, server: str) -> None:
        """Tables, course and students: everybody finds them, whoever was first."""
        made = server.replace("/marks?", "/fresh?")
        outside = create_engine(server, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        with outside.connect() as connection:
            connection.execute(text("CREATE DATABASE fresh"))
        students = [f"student-{number:02d}" for number in range(20)]

        def one(_: int) -> int:
            with _alone(made):
                opened = Gradebook(made, "order-matters")
            with opened as gradebook:
                for student in students:
                    _add_student(gradebook, student)
                return len(gradebook.students)

        with programs_found(), ThreadPoolExecutor(6) as pool:
            assert list(pool.map(one, range(6))) == [len(students)] * 6

    def test_two_graders_at_once_then_a_regrade(self, server: str, tmp_path: Path) -> None:
        """Different assignments into one database, side by side; then one again, with marks by hand kept."""
        root = course_folder(tmp_path / "course")
        for assignment in (FIRST, SECOND):
            whole = tmp_path / assignment
            write_class(root, assignment, whole)
            for student in sorted(whole.iterdir())[2:]:
                shutil.rmtree(student)
        running = [
            subprocess.Popen(
                [COMMANDS / "autograder", "grade", assignment, "--submissions", tmp_path / assignment, "--db", server,
                 "--workers", "1"],
                cwd=root,
                env={**os.environ, "PATH": f"{COMMANDS}{os.pathsep}{os.environ['PATH']}"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for assignment in (FIRST, SECOND)
        ]  # fmt: skip
        for process in running:
            said, _ = process.communicate(timeout=300)
            assert process.returncode == 0, said
            assert "postgresql+psycopg://teacher:***@/marks" in said
            assert "secret" not in said
        with Gradebook(server, "order-matters") as gradebook:
            assert sorted(assignment.name for assignment in gradebook.assignments) == [FIRST, SECOND]
            for assignment in (FIRST, SECOND):
                submission = gradebook.find_submission(assignment, "student-01")
                assert submission.score == submission.max_score > 0
            marked = gradebook.find_grade("test-wavelengths", SECOND, SECOND, "student-01")
            marked.manual_score = 0.25
            gradebook.db.commit()
        _, results = grade_here(root, SECOND, tmp_path / SECOND, "--db", server, "--rerun")
        assert by_student(results)["student-01"]["outcome"] == "graded"
        with Gradebook(server, "order-matters") as gradebook:
            marked = gradebook.find_grade("test-wavelengths", SECOND, SECOND, "student-01")
            assert (marked.manual_score, marked.score) == (0.25, 0.25)
        assert not (root / "gradebook.db").exists()


WRONG = {
    "no URL": ("gradebook", "is no database URL"),
    "no server": ("postgresql+psycopg://teacher:secret@/marks?host=/nowhere", "can't be reached"),
    "no folder": ("sqlite:////nowhere/at/all/gradebook.db", "can't be reached"),
    "no such kind": ("dbase://marks", "is no database URL"),
}


@pytest.mark.parametrize(("url", "said"), WRONG.values(), ids=WRONG)
def test_a_database_that_cannot_be_used_is_named(tiny_course: Path, url: str, said: str) -> None:
    """With the reason, and without the password."""
    with pytest.raises(OrderMattersError, match=said) as caught:
        ClassBook(load_assignment(tiny_course, TINY), url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", [None, "postgresql+psycopg://teacher@/marks?host=/nowhere"])
def test_the_search_path_is_what_it_was(tiny_course: Path, url: str | None) -> None:
    """nbgrader needs another one for a moment; a gradebook leaves the environment as it was, also when it fails."""
    before = dict(os.environ)
    with suppress(OrderMattersError):
        ClassBook(load_assignment(tiny_course, TINY), url)
    assert dict(os.environ) == before


def test_a_missing_driver_is_named(tiny_course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And how to install it."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(
        OrderMattersError, match=r"needs the package psycopg: pip install 'order-matters\[postgresql\]'"
    ):
        ClassBook(load_assignment(tiny_course, TINY), "postgresql+psycopg://teacher@/marks")
