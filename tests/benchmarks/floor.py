"""The floor under grading: a warm process is forked, the fork executes the cells that grading runs, and nothing else.

No sandbox, no channel, no IPython; `grade` judges in the same process; no notebook, gradebook or page is written.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from pathlib import Path


def seconds_each(course: Path, assignment: str, students: list[str], workers: int) -> float:
    """Wall seconds a submission, with so many of them at a time."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, f"{_measure(course, assignment, students, workers)}".encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    if not said:
        raise RuntimeError("the floor could not be measured: its process failed")
    return float(said)


def _measure(course: Path, assignment: str, students: list[str], workers: int) -> float:
    import torch

    import autograder.examiner.local  # what `grade` imports
    from autograder.grading.assignments import load_assignment
    from autograder.kernels import zygote
    from autograder.notebooks.fitting import fit
    from autograder.notebooks.reading import read_notebook
    from autograder.notebooks.slicing import needed_cells

    assert autograder.examiner.local.grade_here
    os.environ["NBGRADER_EXECUTION"] = "autograde"  # a visible check that fails does not end its cell then
    torch.set_num_threads(1)
    zygote.load()
    loaded = load_assignment(course, assignment)
    jobs = []
    for student in students:
        (path,) = (course / "submitted" / student).rglob("*.ipynb")
        notebook = fit(read_notebook(path), loaded.source, loaded.release).notebook
        needed = needed_cells(notebook, loaded.source)
        jobs.append([notebook.cells[index].source for index in sorted(needed)])

    started = time.perf_counter()
    running: set[int] = set()
    for sources in jobs:
        if len(running) == workers:
            running.remove(os.wait()[0])
        pid = os.fork()
        if pid == 0:
            try:
                _execute(sources)
            finally:
                os._exit(0)
        running.add(pid)
    while running:
        running.remove(os.wait()[0])
    return (time.perf_counter() - started) / len(jobs)


def _execute(sources: list[str]) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for source in sources:
            with contextlib.suppress(Exception):
                exec(compile(source, "cell", "exec"), namespace)
