"""The released notebooks as a student meets them: nothing given away, no unexplained stop, no installation."""

from __future__ import annotations

import copy
import importlib.metadata
import json
import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from packaging.requirements import Requirement

from autograder.exercises import EXERCISES
from tests.e2e.helpers import ROOT, notebook_path, read, run, thorough_but, write
from tests.sample_class import ASSIGNMENTS, sample_class

NEEDED = ("torch", "numpy", "matplotlib", "ipykernel")
EDITIONS = [
    pytest.param(edition, assignment, id=f"{edition}-{assignment[:2]}")
    for edition in ("release", "release/zh")
    for assignment in ASSIGNMENTS
    if notebook_path(ROOT, edition, assignment).exists()
]


def _code(notebook: NotebookNode) -> dict[str, str]:
    return {cell["id"]: cell.source for cell in notebook.cells if cell.cell_type == "code"}


@pytest.mark.parametrize(("edition", "assignment"), EDITIONS)
def test_release_gives_nothing_away(edition: str, assignment: str) -> None:
    """No solution, no hidden test, no word of the grader, no quiz answer, no output."""
    released = read(notebook_path(ROOT, edition, assignment))
    source = read(notebook_path(ROOT, "source", assignment))
    text = json.dumps(released)
    for secret in ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "autograder", "grade("):
        assert secret not in text, secret
    given = "\n".join(_code(released).values())
    hidden = [
        line.strip()
        for cell in source.cells
        for part in re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", cell.source, flags=re.DOTALL)
        for line in part.splitlines()
        if len(line.strip()) > 35
    ]
    assert len(hidden) > 4
    for line in hidden:
        assert line not in given
    assert all(not cell.get("outputs") for cell in released.cells)
    quiz = next(
        name for name, exercise in EXERCISES.items() if exercise.lesson == assignment and "q1" in exercise.functions
    )
    assert set(re.findall(r'= "(.*?)"', _code(released)[quiz])) == {"?"}


@pytest.mark.parametrize(("edition", "assignment"), EDITIONS)
def test_editions_share_their_code(edition: str, assignment: str) -> None:
    """Every edition has the same code cells, names and marks, so that work in either is graded alike."""
    english, other = (read(notebook_path(ROOT, folder, assignment)) for folder in ("release", edition))
    assert _code(other) == _code(english)
    for one, two in zip(english.cells, other.cells, strict=True):
        assert (one["id"], one.cell_type, one.metadata) == (two["id"], two.cell_type, two.metadata)


def _importable() -> list[str]:
    """Top-level modules of the packages that a student needs and of everything these require."""
    wanted, found = list(NEEDED), set[str]()
    while wanted:
        name = wanted.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in found:
            continue
        try:
            requirements = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform or Python
        found.add(key)
        for line in requirements:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                wanted.append(requirement.name)
    modules = importlib.metadata.packages_distributions()
    return sorted(
        module
        for module, owners in modules.items()
        if any(re.sub(r"[-_.]+", "-", owner).lower() in found for owner in owners)
    )


BLOCKER = """
import sys

ALLOWED = {allowed!r}


class OnlyWhatStudentsHave:
    # Finds nothing that a student has not installed.

    def __init__(self, finder):
        self._finder = finder

    def __getattr__(self, name):
        return getattr(self._finder, name)

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in ALLOWED or top in sys.stdlib_module_names or top.startswith("_sysconfigdata"):
            return self._finder.find_spec(name, path, target)
        return None


sys.meta_path[:] = [OnlyWhatStudentsHave(finder) for finder in sys.meta_path]
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Variables for a kernel in which only torch, numpy, matplotlib, ipykernel and their requirements exist."""
    folder = tmp_path_factory.mktemp("bare")
    allowed = _importable()
    assert {"torch", "numpy", "matplotlib", "ipykernel", "IPython"} <= set(allowed)
    assert not {"autograder", "course", "nbgrader", "jupytext", "ipywidgets", "tests"} & set(allowed)
    (folder / "sitecustomize.py").write_text(BLOCKER.format(allowed=set(allowed)), encoding="utf-8")
    return {
        "PYTHONPATH": str(folder),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "OMP_NUM_THREADS": "1",
    }


RUNNER = """
import json
import os
import sys

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

path, environment = sys.argv[1], json.loads(sys.argv[2])
notebook = nbformat.read(path, as_version=4)
manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
client = NotebookClient(notebook, km=manager, allow_errors=True, timeout=300, startup_timeout=120)
client.execute(cwd=os.getcwd(), env={**os.environ, **environment})
nbformat.write(notebook, path)
"""


def _run(notebook: NotebookNode, environment: Mapping[str, str], folder: Path) -> dict[str, list[NotebookNode]]:
    """Run all cells in a fresh kernel of this interpreter, an error or not; each code cell's outputs."""
    path = write(notebook, folder / "lesson.ipynb")
    done = run("python", "-c", RUNNER, path, json.dumps(environment), cwd=folder)
    assert done.status == 0, done.stderr
    return {cell["id"]: cell.outputs for cell in read(path).cells if cell.cell_type == "code"}


def _errors(outputs: list[NotebookNode]) -> list[str]:
    return [f"{output.ename}: {output.evalue}" for output in outputs if output.output_type == "error"]


def _printed(outputs: list[NotebookNode]) -> str:
    return "".join(output.text for output in outputs if output.output_type == "stream")


def _up_to_the_first_test(notebook: NotebookNode) -> tuple[list[NotebookNode], str]:
    """The code cells that "Run all" runs in an untouched notebook, and the id of the last one."""
    found = []
    for cell in copy.deepcopy(notebook).cells:
        if cell.cell_type == "code":
            cell["id"] = f"untouched-{cell['id']}"
            found.append(cell)
            if cell.metadata.get("nbgrader", {}).get("grade"):
                break
    return found, found[-1]["id"]


def _assert_says_what_to_do(outputs: list[NotebookNode]) -> None:
    (error,) = _errors(outputs)
    assert error.startswith("CheckFailed: ")
    assert "no answer yet. Write it in the cell above" in error
    shown = next(output for output in outputs if output.output_type == "error").traceback
    assert len(shown) == 1, "the explanation stands alone, without a traceback"


MEASURE = """
import importlib
import time

blocked = []
for name in ("autograder", "course", "nbgrader", "jupytext", "nbformat"):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        blocked.append(name)
print("blocked", *blocked)
print("seconds", time.process_time())
"""


@pytest.mark.slow
@pytest.mark.parametrize("assignment", thorough_but(ASSIGNMENTS[0]))
def test_release_runs_without_installation(assignment: str, bare: Mapping[str, str], tmp_path: Path) -> None:
    """ "Run all" in one kernel: first before the first answer, then with answers in place. Nothing of ours is there.

    Untouched, everything runs up to the first exercise, whose check says what to do. Answered, all cells run and every
    check passes, in a minute on two cores: of the kernel's own processor time, for the time on the wall depends on what
    else the machine does.
    """
    notebook = read(notebook_path(ROOT, "release", assignment))
    untouched, first_test = _up_to_the_first_test(notebook)
    notebook = sample_class(assignment)["student-01"].notebook(notebook)
    notebook.cells.append(new_code_cell(dedent(MEASURE), id="measure"))
    notebook.cells[:0] = untouched
    outputs = _run(notebook, bare, tmp_path)
    before = {cell["id"]: outputs.pop(cell["id"]) for cell in untouched}
    assert next(name for name, found in before.items() if _errors(found)) == first_test
    _assert_says_what_to_do(before[first_test])
    for name, found in outputs.items():
        assert _errors(found) == [], name
    measured = _printed(outputs.pop("measure"))
    assert "blocked autograder course nbgrader jupytext nbformat\n" in measured
    assert float(measured.rpartition("seconds ")[2]) < 60
    exercises = [name for name, exercise in EXERCISES.items() if exercise.lesson == assignment]
    for exercise in exercises:
        assert f"{exercise}: the visible checks pass." in _printed(outputs[f"test-{exercise}"])
    figures = [
        output
        for found in outputs.values()
        for output in found
        if output.output_type == "display_data" and "image/png" in output.data
    ]
    assert len(figures) > 3


@pytest.mark.parametrize("below", ["", "release", "the folder of the notebook"])
@pytest.mark.parametrize(("edition", "assignment"), EDITIONS)
def test_jupyterlab_with_jupytext_opens_it(edition: str, assignment: str, below: str) -> None:
    """Wherever JupyterLab was started: `make lab` starts it in release/, a student in a folder of their own."""
    from jupyter_server.services.contents.largefilemanager import LargeFileManager
    from jupytext.sync_contentsmanager import build_sync_jupytext_contents_manager_class

    path = notebook_path(ROOT, edition, assignment)
    root = {"": ROOT, "release": ROOT / "release"}.get(below, path.parent)
    manager = build_sync_jupytext_contents_manager_class(LargeFileManager)(root_dir=str(root))
    opened = manager.get(path.relative_to(root).as_posix(), type="notebook", content=True)
    assert [cell["source"] for cell in opened["content"]["cells"]] == [cell.source for cell in read(path).cells]
