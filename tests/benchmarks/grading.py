"""How fast a class is graded: ours, in the sandbox, beside stock `nbgrader autograde`, on the same submissions.

Forty submissions to lesson 02 are assembled from the sample class. The two take turns. Then comes the floor, see there.
Printed are the ratios, whether the scores agree, and the memory that a worker takes. Started by `make bench`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import Gradebook

from tests.benchmarks import floor
from tests.sample_class import write_class

ROOT = Path(__file__).resolve().parent.parent.parent
ASSIGNMENT = "02-sinusoidal-encoding"
SUBMISSIONS = int(os.environ.get("SUBMISSIONS", "40"))
WORKERS = 2
STUDENTS = tuple(f"student-{number:02d}" for number in (1, 2, 5, 6, 8, 9, 11))
"""Right and wrong answers, without endless loops and crashes, in files that stock nbgrader grades: one without metadata
gets no grade from it, and no word about that."""
STOCK_CONFIGURATION = """c = get_config()
c.CourseDirectory.course_id = "order-matters"
c.Execute.timeout = 120
"""


def course_folder(place: Path, *, stock: bool) -> Path:
    """A course folder with the class in `submitted/`, and nbgrader's own settings or ours."""
    folder = place / "course"
    for name in ("source", "release"):
        shutil.copytree(ROOT / name, folder / name)
    if stock:
        (folder / "nbgrader_config.py").write_text(STOCK_CONFIGURATION, encoding="utf-8")
    else:
        shutil.copy(ROOT / "nbgrader_config.py", folder)
    whole = place / "class"
    write_class(ROOT, ASSIGNMENT, whole)
    for number in range(SUBMISSIONS):
        (original,) = (whole / STUDENTS[number % len(STUDENTS)]).rglob("*.ipynb")
        target = folder / "submitted" / f"student-{number + 1:03d}" / ASSIGNMENT
        target.mkdir(parents=True)
        shutil.copy(original, target / f"{ASSIGNMENT}.ipynb")
    return folder


@dataclass
class Timed:
    """What commands took, together.

    Attributes:
        peak_mib: private memory of a command's processes at its highest; pages that forks share count in each.
    """

    seconds: float = 0.0
    submissions: int = 0
    peak_mib: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self, arguments: list[str], folder: Path, submissions: int) -> None:
        """Run a command and add its wall time. RuntimeError with the end of what it said if it fails."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        started = time.perf_counter()
        with subprocess.Popen(
            arguments,
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            self._stop.clear()
            watcher = threading.Thread(target=self._watch, args=(process.pid,))
            watcher.start()
            said, _ = process.communicate()
        self.seconds += time.perf_counter() - started
        self.submissions += submissions
        self._stop.set()
        watcher.join()
        if process.returncode:
            raise RuntimeError(f"{' '.join(arguments)} ended with status {process.returncode}: {said[-2000:]}")

    def _watch(self, pid: int) -> None:
        while not self._stop.wait(0.5):
            self.peak_mib = max(self.peak_mib, sum(map(private_mib, [pid, *descendants(pid)])))

    @property
    def each_s(self) -> float:
        return self.seconds / self.submissions


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            children = [int(child) for child in (task / "children").read_text().split()]
            found += children + [below for child in children for below in descendants(child)]
    except OSError:
        return found  # it has ended
    return found


def private_mib(pid: int) -> float:
    try:
        fields = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
        )
    except OSError:
        return 0.0
    return int(fields.get("RssAnon", "0 kB").split()[0]) / 1024


def scores(folder: Path) -> dict[str, list[float]]:
    """Every student's points in nbgrader's gradebook, cell by cell."""
    with Gradebook(f"sqlite:///{folder}/gradebook.db", "order-matters") as gradebook:
        return {
            submission.student.id: sorted(
                round(float(grade.auto_score or 0.0), 6)
                for notebook in submission.notebooks
                for grade in notebook.grades
            )
            for submission in gradebook.assignment_submissions(ASSIGNMENT)
        }


def steady_seconds(folder: Path) -> float:
    """Seconds a submission between the first and the last result of a run, from the times of the executed notebooks."""
    times = sorted(path.stat().st_mtime for path in (folder / "autograded").rglob("*.ipynb"))
    return (times[-1] - times[0]) / (len(times) - 1)


def main() -> None:
    """Take turns: half of the class with nbgrader, the whole class with ours, twice; then the floor, twice."""
    stock, ours, steady = Timed(), Timed(), []
    students = [f"student-{number + 1:03d}" for number in range(SUBMISSIONS)]
    with tempfile.TemporaryDirectory() as scratch:
        theirs = course_folder(Path(scratch) / "theirs", stock=True)
        mine = course_folder(Path(scratch) / "ours", stock=False)
        Timed().run(["nbgrader", "generate_assignment", ASSIGNMENT, "--create", "--force"], theirs, 1)
        grade = ["autograder", "grade", ASSIGNMENT, "--workers", str(WORKERS), "--json", "out.json", "--rerun"]
        for half in (students[::2], students[1::2]):
            aside = theirs / "aside"
            for student in set(students) - set(half):  # nbgrader grades whatever lies in submitted/
                shutil.move(theirs / "submitted" / student, aside / student)
            stock.run(["nbgrader", "autograde", ASSIGNMENT, "--create", "--force"], theirs, len(half))
            for student in set(students) - set(half):
                shutil.move(aside / student, theirs / "submitted" / student)
            ours.run(grade, mine, SUBMISSIONS)
            steady.append(steady_seconds(mine))
            print(f"so far: nbgrader {stock.each_s:.2f} s, ours {ours.each_s:.3f} s a submission", flush=True)
        same = scores(theirs) == scores(mine)
        ran = json.loads((mine / "out.json").read_text(encoding="utf-8"))["submissions"]
        floor_s = min(floor.seconds_each(mine, ASSIGNMENT, students, WORKERS) for _ in range(2))
    steady_s = min(steady)
    print(f"{SUBMISSIONS} submissions to {ASSIGNMENT}, {WORKERS} workers, {os.cpu_count()} cores, sandbox on")
    print(f"nbgrader autograde:  {stock.each_s:7.3f} s a submission")
    print(f"autograder grade:    {ours.each_s:7.3f} s a submission, start included; {steady_s:.3f} s without it")
    print(f"floor:               {floor_s:7.3f} s a submission")
    print(f"throughput: {stock.each_s / ours.each_s:.1f} times nbgrader's, start included")
    print(f"distance from the floor: {steady_s / floor_s:.2f} times, without the start")
    print(f"peak memory: {ours.peak_mib / WORKERS:.0f} MiB a worker, all processes; nbgrader {stock.peak_mib:.0f} MiB")
    print(f"scores: {'identical' if same else 'DIFFERENT'}; {len(ran)} graded")
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    main()
