"""`make bench`: seconds a submission, stock `nbgrader autograde` and `autograder grade`, alternating in one run.

Both grade the same answers of lesson 02's sample class, in course folders of their own. The ratio is what counts:
seconds depend on the machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.sample_class import write_class

ROOT = Path(__file__).resolve().parent.parent.parent
ASSIGNMENT = "02-sinusoidal-encoding"
ROUNDS = 2
STUDENTS = ("student-01", "student-05", "student-08", "student-09")  # files that stock nbgrader reads


def course_folder(place: Path) -> Path:
    """A course folder with the submissions of STUDENTS and nothing graded yet."""
    for name in ("source", "release", "nbgrader_config.py", "pyproject.toml"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, place / name)
    everyone = place / "everyone"
    write_class(ROOT, ASSIGNMENT, everyone)
    for student in STUDENTS:
        shutil.copytree(everyone / student, place / "submitted" / student)
    return place


def timed(arguments: list[str], folder: Path) -> float:
    """Wall seconds of a command; RuntimeError with the end of what it said if it fails."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    started = time.perf_counter()
    done = subprocess.run(
        arguments, cwd=folder, env={**os.environ, "PATH": path}, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with status {done.returncode}: {done.stderr[-2000:]}")
    return time.perf_counter() - started


def main() -> None:
    """Print one line a round, then the ratio."""
    totals = {"nbgrader": 0.0, "ours": 0.0}
    for number in range(1, ROUNDS + 1):
        with tempfile.TemporaryDirectory() as scratch:
            folder = course_folder(Path(scratch))
            timed(["nbgrader", "generate_assignment", ASSIGNMENT, "--create", "--force"], folder)
            totals["nbgrader"] += timed(["nbgrader", "autograde", ASSIGNMENT, "--create"], folder)
        with tempfile.TemporaryDirectory() as scratch:
            folder = course_folder(Path(scratch))
            totals["ours"] += timed(["autograder", "grade", ASSIGNMENT, "--json", "out.json"], folder)
            graded = json.loads((folder / "out.json").read_text())
            assert [item["outcome"] for item in graded["submissions"]] == ["graded"] * len(STUDENTS)
        each = {name: total / (number * len(STUDENTS)) for name, total in totals.items()}
        print(f"round {number}: nbgrader {each['nbgrader']:.2f} s, ours {each['ours']:.2f} s a submission", flush=True)
    print(f"ratio: {totals['nbgrader'] / totals['ours']:.2f} times nbgrader's throughput, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
