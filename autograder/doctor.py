"""`autograder doctor`: what this machine has, what is missing, and the command that mends it."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

PACKAGES = ("torch", "numpy", "matplotlib", "jupyterlab", "nbgrader", "nbclient", "ipykernel", "jupytext")


@dataclass(frozen=True)
class Finding:
    """One line of the report. `remedy` is the command or action that mends it; None when all is well or optional."""

    what: str
    state: str
    remedy: str | None = None


def run_doctor(course: Path) -> int:
    """Print the findings; 1 when one of them has a remedy, else 0."""
    console = Console()
    ailing = 0
    for finding in examine(course):
        mark = "[red]no[/]" if finding.remedy else "[green]ok[/]"
        console.print(f"{mark}  {finding.what}: ", end="", highlight=False)
        console.print(finding.state, markup=False, highlight=False, soft_wrap=True)
        if finding.remedy:
            ailing += 1
            console.print(f"      {finding.remedy}", markup=False, highlight=False, soft_wrap=True)
    return 1 if ailing else 0


def examine(course: Path) -> Iterator[Finding]:
    """The findings, cheapest first."""
    checks: tuple[Callable[[], Finding], ...] = (
        _python,
        *(lambda name=name: _package(name) for name in PACKAGES),
        lambda: _course(course),
        _disk,
        _sandbox,
        _gpu,
        _kernel,
    )
    for check in checks:
        yield check()


def _python() -> Finding:
    version = platform.python_version()
    remedy = (
        None if sys.version_info >= (3, 11) else "Install Python 3.11 or newer, remove .venv, run `make grade` again."
    )
    return Finding("Python", f"{version} ({sys.executable})", remedy)


def _package(name: str) -> Finding:
    try:
        return Finding(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "not installed", f"{sys.executable} -m pip install -c constraints.txt -e .")


def _course(course: Path) -> Finding:
    from autograder.grading.assignments import assignment_names

    names = assignment_names(course.resolve())
    if not names:
        return Finding(
            "course", f"no source/ in {course.resolve()}", "Start in the course folder or pass --course FOLDER."
        )
    unreleased = [name for name in names if not (course / "release" / name / f"{name}.ipynb").exists()]
    if unreleased:
        return Finding("course", f"not released: {', '.join(unreleased)}", "python -m course build")
    return Finding("course", ", ".join(names))


def _disk() -> Finding:
    free_gib = shutil.disk_usage(tempfile.gettempdir()).free / 2**30
    remedy = f"Free some space in {tempfile.gettempdir()} or set TMPDIR." if free_gib < 1 else None
    return Finding("temporary space", f"{free_gib:.1f} GiB free in {tempfile.gettempdir()}", remedy)


def _sandbox() -> Finding:
    from autograder.kernels.sandbox import NoSandbox, require

    try:
        found = require()
    except NoSandbox as error:
        return Finding("sandbox", error.why, error.remedy)
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return Finding("sandbox", f"{version} at {found}")


def _gpu() -> Finding:
    try:
        import torch
    except ImportError as error:
        return Finding(
            "GPU", f"torch can't be imported: {error}", "Install torch again: pip install --force-reinstall torch"
        )
    if torch.cuda.is_available():
        return Finding("GPU", f"{torch.cuda.get_device_name(0)}, CUDA {torch.version.cuda}")
    return Finding("GPU", "none; everything runs on the CPU")


def _kernel() -> Finding:
    from nbformat.v4 import new_code_cell, new_notebook

    from autograder.kernels.execution import Ending, Place, execute
    from autograder.kernels.limits import Limits

    notebook = new_notebook(cells=[new_code_cell("import autograder.examiner\nprint(6 * 7)")])
    execution = execute(
        notebook,
        place=Place(contained=_sandbox().remedy is None),
        limits=Limits(),
        environment={},
        is_test=lambda cell: False,
        before_cell=lambda cell: None,
        after_cell=lambda cell: None,
    )
    outputs = notebook.cells[0].outputs
    if execution.ending is Ending.FINISHED and outputs and outputs[0].get("text", "").strip() == "42":
        return Finding("kernel", f"starts, runs a cell and stops in {execution.seconds:.1f} s")
    said = execution.detail or "; ".join(str(output.get("evalue", "")) for output in outputs) or str(execution.ending)
    return Finding("kernel", f"does not work: {said}", f"{sys.executable} -m pip install -c constraints.txt -e .")
