"""What the sandbox shows and what it needs: a refusal names what is missing and the remedy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest

from autograder.kernels import sandbox, warm
from autograder.kernels.execution import Place, execute
from autograder.kernels.limits import Limits


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    """What is known of this machine's bubblewrap is found out again before and after each test."""
    sandbox._problem.cache_clear()
    yield
    sandbox._problem.cache_clear()


@pytest.fixture
def other_bwrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a program in bubblewrap's place."""

    def put(script: str) -> None:
        program = tmp_path / "bwrap"
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    return put


def test_an_old_bubblewrap_is_refused(other_bwrap: Callable[[str], None]) -> None:
    """It can't bound the folders in memory."""
    other_bwrap("echo bubblewrap 0.4.1")
    with pytest.raises(sandbox.NoSandbox, match=r"bubblewrap 0\.4\.1 is too old\. Install bubblewrap 0\.8 or newer"):
        sandbox.require()


def test_a_bubblewrap_that_may_not_start_is_refused(other_bwrap: Callable[[str], None]) -> None:
    """As in many containers: what it said, and what would allow it."""
    other_bwrap(
        'case "$*" in *version*) echo bubblewrap 0.8.0; exit 0;; esac\n'
        "echo No permissions to create a namespace >&2; exit 1"
    )
    with pytest.raises(sandbox.NoSandbox, match=r"No permissions to create a namespace.*userns.*--security-opt"):
        sandbox.require()


def test_another_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS and Windows have no such namespaces; an unknown processor has no filter here."""
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(sandbox.NoSandbox, match="needs Linux"):
        sandbox.require()
    monkeypatch.setattr("sys.platform", "linux")
    sandbox._problem.cache_clear()
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(sandbox.NoSandbox, match="riscv64"):
        sandbox.require()


def test_a_course_that_submissions_could_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A course inside a folder that the sandbox shows would give its solutions away."""
    course = tmp_path / "opt" / "course"
    course.mkdir(parents=True)
    sandbox.require(course)
    monkeypatch.setattr(sandbox, "SYSTEM", (str(tmp_path / "opt"),))
    with pytest.raises(sandbox.NoSandbox, match="which every submission can read"):
        sandbox.require(course)


def run(*sources: str) -> list[str]:
    """What each cell printed, in a sandbox that is made anew."""
    warm.stop_all()
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    execution = execute(
        notebook,
        place=Place(),
        limits=Limits(),
        environment={},
        is_test=lambda cell: False,
        before_cell=lambda cell: None,
        after_cell=lambda cell: None,
    )
    warm.stop_all()
    assert not execution.detail, execution.detail
    return ["".join(output.get("text", output.get("evalue", "")) for output in cell.outputs) for cell in notebook.cells]


@pytest.mark.slow
def test_an_installed_copy_of_the_grader_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip install` puts reference solutions among the packages that are shown: their folders are empty inside."""
    site = tmp_path / "site"
    for name in ("autograder", "course", "numpy_like"):
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").write_text("SECRET = 1\n", encoding="utf-8")
    shown = [*sandbox._shown(), site]
    monkeypatch.setattr(sandbox, "_shown", lambda: iter(shown))
    listing = (
        f"import os\nos.chdir({str(site)!r})\n"
        "for name in ('autograder', 'course', 'numpy_like'): print(os.listdir(name))"
    )
    assert run(listing) == ["[]\n[]\n['__init__.py']\n"]


@pytest.mark.slow
def test_the_owners_environment_and_files_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither variables, nor the folder the owner works in, nor its home; what is there can't be written."""
    monkeypatch.setenv("OF_THE_OWNER", "secret")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    environment, folder, home, written = run(
        "import os\nprint([name for name in os.environ if 'OWNER' in name])",
        f"print(os.path.exists({str(tmp_path / 'file')!r}))",
        f"print(os.path.exists('/home'), os.path.exists({str(Path.home() / '.bashrc')!r}))",
        "open(os.__file__, 'a')",
    )
    assert environment == "[]\n"
    assert folder == "False\n"
    assert home == "False False\n"
    assert "Read-only" in written or "Permission denied" in written
