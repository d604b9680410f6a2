"""Does the size of a class matter? Seconds a submission, and the memory of the process that writes, at 50 and at 1000.

The submissions to lesson 02 are assembled from the sample class and shuffled. Started by `make bench`; the sizes can be
chosen: `python -m tests.benchmarks.scale 50 1000`.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.benchmarks.grading import ASSIGNMENT, ROOT, STUDENTS, WORKERS, steady_seconds
from tests.sample_class import write_class

REPEATS = 3
"""Of a small class, whose time varies by a tenth from run to run; the median counts."""


def course_folder(place: Path, count: int) -> Path:
    """A course folder with a class of this size."""
    folder = place / "course"
    for name in ("source", "release"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    write_class(ROOT, ASSIGNMENT, place / "class")
    names = [STUDENTS[number % len(STUDENTS)] for number in range(count)]
    random.Random(count).shuffle(names)
    for number, name in enumerate(names):
        (original,) = (place / "class" / name).rglob("*.ipynb")
        target = folder / "submitted" / f"student-{number + 1:04d}" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
        target.parent.mkdir(parents=True)
        shutil.copy(original, target)
    return folder


def measure(count: int) -> tuple[float, float, float]:
    """Seconds a submission once the workers are warm; the writing process's peak memory in MiB: grading, and in all.

    The end of a run writes one page about everybody, which is as long as the class is large.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = course_folder(Path(scratch), count)
        command = [str(Path(sys.executable).parent / "autograder"), "grade", ASSIGNMENT, "--workers", str(WORKERS)]
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        grading_mib = peak_mib = 0.0
        with (Path(scratch) / "said").open("w+") as said:
            process = subprocess.Popen(command, cwd=folder, env={**os.environ, "PATH": path}, stdout=said, stderr=said)
            while process.poll() is None:
                status = Path(f"/proc/{process.pid}/status")
                fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
                peak_mib = max(peak_mib, int(fields.get("VmRSS", "0 kB").split()[0]) / 1024)
                if not (folder / "reports").exists():
                    grading_mib = peak_mib
                threading.Event().wait(0.2)
            if process.returncode:
                said.seek(0)
                raise RuntimeError(f"{command} ended with {process.returncode}: {said.read()[-2000:]}")
        return steady_seconds(folder), grading_mib, peak_mib


def main(sizes: list[int]) -> None:
    """Measure each size and print what changes from the first to the last."""
    found = {}
    for count in sizes:
        started = time.monotonic()
        runs = sorted(measure(count) for _ in range(1 if count > 200 else REPEATS))
        found[count] = runs[len(runs) // 2]
        seconds, grading, peak = found[count]
        whole = (time.monotonic() - started) / len(runs)
        print(
            f"{count:5d} submissions: {seconds:.3f} s each, {grading:.0f} MiB in the writer while it grades, "
            f"{peak:.0f} MiB with the report; {whole:.0f} s in all",
            flush=True,
        )
    changes = [100 * (last / first - 1) for first, last in zip(found[sizes[0]], found[sizes[-1]], strict=True)]
    print("time a submission: {:+.0f} %; memory: {:+.0f} % while grading, {:+.0f} % with the report".format(*changes))


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [50, 1000])
