"""A run that is killed at any instant is finished by the next one: nothing is lost, nothing kept runs again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from tests.conftest import TINY, Answer
from tests.e2e.helpers import COMMANDS, by_student, grade_here, without_seconds

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

SUBMISSIONS = 10
KILLS = int(os.environ.get("KILLS", "3"))
LONGEST_S = 10.0
"""About what a whole run takes: kills fall into its start, its middle and its end."""
ANSWERS: tuple[dict[str, str], ...] = (
    {},
    {"causal_mask": "def causal_mask(length, device=None):\n    return torch.ones(length, length).tril()"},
    {"causal_mask": "import os\nos._exit(1)"},
    {"pair_frequencies": "def pair_frequencies(d_model:"},
)


def write_submissions(root: Path, answered: Answer) -> Path:
    folder = root / "handed-in"
    folder.mkdir()
    for number in range(SUBMISSIONS):
        text = json.dumps(answered(**ANSWERS[number % len(ANSWERS)]))
        (folder / f"student-{number:02d}.ipynb").write_text(text, encoding="utf-8")
    return folder


def marks(root: Path) -> dict[str, float]:
    with Gradebook(f"sqlite:///{root}/gradebook.db", "order-matters") as gradebook:
        return {found.student.id: found.score for found in gradebook.assignment_submissions(TINY)}


def test_killed_runs_come_to_what_one_run_comes_to(tiny_course: Path, answered: Answer) -> None:
    """Runs killed with SIGKILL at random moments (`KILLS=20`: twenty of them), then one to the end; one undisturbed."""
    folder = write_submissions(tiny_course, answered)
    draw = random.Random(KILLS)
    for _ in range(KILLS):
        process = subprocess.Popen(
            [COMMANDS / "autograder", "grade", TINY, "--submissions", folder, "--workers", "2"],
            cwd=tiny_course,
            env={**os.environ, "PATH": f"{COMMANDS}{os.pathsep}{os.environ['PATH']}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(draw.uniform(0.5, LONGEST_S))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    _, resumed = grade_here(tiny_course, TINY, folder)
    entries = (tiny_course / "journal" / f"{TINY}.jsonl").read_text(encoding="utf-8").splitlines()
    kept = [json.loads(line)["key"] for line in entries if line.startswith('{"key"') and line.endswith("}")]
    assert len(kept) == len(set(kept)) == SUBMISSIONS
    after_kills = marks(tiny_course)
    pages = {path.parent.parent.name for path in (tiny_course / "feedback").rglob("*.html")}

    _, undisturbed = grade_here(tiny_course, TINY, folder, "--rerun", name="undisturbed")
    assert comparable(resumed) == comparable(undisturbed)
    assert after_kills == marks(tiny_course)
    assert pages == set(by_student(undisturbed))


def comparable(results: dict[str, Any]) -> list[dict[str, Any]]:
    return [without_seconds(submission) for submission in results["submissions"]]
