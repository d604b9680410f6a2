"""Grading as an ordinary user, also when the tests are run by root: the sandbox is a user namespace then."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from tests.conftest import TINY, Answer

pytestmark = pytest.mark.slow

UID = 12345
ROOT = Path(__file__).resolve().parents[2]
AS_USER = "import os, sys; os.setgroups([]); os.setgid({uid}); os.setuid({uid}); os.execv(sys.argv[1], sys.argv[1:])"
LOOK = """
import os
def causal_mask(length, device=None):
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
print(os.getuid(), os.path.exists({root!r}), os.listdir('/scratch'), os.path.exists('/proc/2'))
"""


def as_ordinary_user(command: list[str], readable: list[Path]) -> list[str]:
    """The command line that runs a command as a user without rights, who can enter these folders wherever they lie."""
    if os.geteuid() != 0:
        return command
    line = ["bwrap", "--dev-bind", "/", "/"]
    hidden = sorted({parent for path in readable for parent in path.parents if not parent.stat().st_mode & 0o001})
    for folder in hidden[:1]:
        line += ["--perms", "0755", "--tmpfs", str(folder)]
        for path in readable:
            if path.is_relative_to(folder):
                for parent in reversed([parent for parent in path.parents if parent.is_relative_to(folder)][:-1]):
                    line += ["--perms", "0755", "--dir", str(parent)]
                line += ["--bind", str(path), str(path)]
    return [*line, sys.executable, "-c", AS_USER.format(uid=UID), *command]


@pytest.fixture
def home() -> Iterator[Path]:
    """Not below pytest's folder, which is closed to others each time that a run of pytest starts."""
    with tempfile.TemporaryDirectory(prefix="user-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder) / "home"


def test_a_class_is_graded_by_an_ordinary_user(tiny_course: Path, answered: Answer, home: Path) -> None:
    """The real command: full marks for the right, the sandbox around the curious, and nothing of root's is needed."""
    for student, answer in (("ada", None), ("eve", LOOK.format(root=str(ROOT / "autograder" / "reference")))):
        folder = tiny_course / "submitted" / student / TINY
        folder.mkdir(parents=True)
        submitted = answered(**({"causal_mask": answer} if answer else {}))
        (folder / f"{TINY}.ipynb").write_text(nbformat.writes(submitted), encoding="utf-8")
    shutil.copytree(tiny_course, home / "course")
    if os.geteuid() == 0:
        for path in (home, *home.rglob("*")):
            os.chown(path, UID, UID)
    readable = [Path(sys.base_prefix), Path(sys.prefix), ROOT, home]
    command = [sys.executable, "-m", "autograder.cli", "grade", TINY, "--json", "out.json", "--workers", "1"]
    done = subprocess.run(
        as_ordinary_user(command, readable),
        cwd=home / "course",
        env={"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((home / "course" / "out.json").read_text(encoding="utf-8"))["submissions"]
    assert [(result["student"], result["outcome"], result["score"]) for result in results] == [
        ("ada", "graded", 3.0),
        ("eve", "graded", 3.0),
    ]
    executed = nbformat.read(home / "course" / "autograded" / "eve" / TINY / f"{TINY}.ipynb", as_version=4)
    (cell,) = [cell for cell in executed.cells if cell["id"] == "causal-mask"]
    uid = UID if os.geteuid() == 0 else os.geteuid()
    assert cell.outputs[0].text == f"{uid} False [] False\n"
