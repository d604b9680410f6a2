"""What the end-to-end tests share: a course folder of their own, the real commands, JSON checked by hand."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode

from autograder import commands
from autograder.cli import main
from tests.sample_class import ASSIGNMENTS

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = Path(sys.executable).parent
GIVEN = ("imports", "given-encoding", "multi-head-attention")
"""The lessons' own code cells that answers and tests need. Of the others (figures, experiments) a class runs none."""
COURSE_KEY = b"the same for all courses of these tests, whose examiners can be one process"

Document = dict[str, Any]


def thorough_but(always: str) -> list[Any]:
    """All lessons as a test's parameters; all but this one are thorough."""
    return [pytest.param(name, id=name, marks=[] if name == always else pytest.mark.thorough) for name in ASSIGNMENTS]


def read(path: Path) -> NotebookNode:
    """A notebook as it is on disk."""
    return nbformat.read(path, as_version=4)


def write(notebook: NotebookNode, path: Path) -> Path:
    """Write a notebook without looking at it twice."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1), encoding="utf-8")
    return path


def notebook_path(root: Path, edition: str, assignment: str) -> Path:
    """`edition` is "source", "release" or "release/zh"."""
    return root / edition / assignment / f"{assignment}.ipynb"


def is_needed(cell: NotebookNode) -> bool:
    """Whether a class is graded with this cell: everything but figures and experiments."""
    return cell.cell_type != "code" or "nbgrader" in cell.metadata or cell["id"] in GIVEN


def course_folder(root: Path, *, whole: bool = False) -> Path:
    """A course folder as an instructor has it: notebooks and configuration, no gradebook yet.

    Args:
        whole: with all figures and experiments; they cost most of the time and nothing is graded in them.
    """
    for edition in ("source", "release"):
        shutil.copytree(ROOT / edition, root / edition)
    for name in ("nbgrader_config.py", "pyproject.toml"):
        shutil.copyfile(ROOT / name, root / name)
    for path in root.rglob("*.ipynb"):
        notebook = read(path)
        notebook.cells = [cell for cell in notebook.cells if whole or is_needed(cell)]
        write(notebook, path)
    return root


def short_lesson(root: Path, assignment: str, exercises: Sequence[str]) -> None:
    """Cut a lesson of a course folder down to its tools, its imports and these exercises."""
    kept = {"title", "tools", "imports", *exercises, *(f"test-{exercise}" for exercise in exercises)}
    for edition in ("source", "release", "release/zh"):
        path = notebook_path(root, edition, assignment)
        if path.exists():
            notebook = read(path)
            notebook.cells = [cell for cell in notebook.cells if cell["id"] in kept]
            write(notebook, path)


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str


def run(command: str, *arguments: str | Path, cwd: Path, timeout_s: float = 600.0, **environment: str) -> Done:
    """Run one of this environment's commands ("autograder", "nbgrader") the way a shell would."""
    path = os.pathsep.join([str(COMMANDS), os.environ.get("PATH", os.defpath)])
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    done = subprocess.run(
        [str(COMMANDS / command), *map(str, arguments)],
        cwd=cwd,
        env={**inherited, "PATH": path, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg", **environment},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def grade(
    root: Path, assignment: str, submissions: Path, *options: str, name: str = "results"
) -> tuple[Done, dict[str, Any]]:
    """`autograder grade … --json`; the command's end, and what it wrote.

    With one worker unless `options` say otherwise: each starts a warm process, and other tests run beside this one.
    `grade_here` is quicker.
    """
    results = root / f"{name}.json"
    if "--workers" not in options:
        options = ("--workers", "1", *options)
    done = run(
        "autograder",
        "grade",
        assignment,
        "--submissions",
        submissions,
        "--json",
        results,
        *options,
        cwd=root,
    )
    assert done.status == 0, done.stdout + done.stderr
    return done, json.loads(results.read_text(encoding="utf-8"))


class _Here(Executor):
    """A worker that is this process."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:  # as an executor does
            future.set_exception(error)
        return future


def grade_here(
    root: Path, assignment: str, submissions: Path, *options: str, name: str = "results"
) -> tuple[Done, dict[str, Any]]:
    """As `grade`, but in this process, whose warm process and examiners serve the next call too."""
    results = root / f"{name}.json"
    if not (root / ".course-key").exists():
        (root / ".course-key").write_bytes(COURSE_KEY)
    arguments = ["grade", assignment, "--submissions", str(submissions), "--json", str(results), *options]
    out, errors = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
    ):
        patch.chdir(root)
        patch.setattr(commands, "_workers", lambda scheduler, terms: lambda count: contextlib.nullcontext(_Here()))
        done = Done(main(arguments), out.getvalue(), errors.getvalue())
    assert done.status == 0, done.stdout + done.stderr
    return done, json.loads(results.read_text(encoding="utf-8"))


def by_student(results: Document) -> dict[str, Document]:
    return {submission["student"]: submission for submission in results["submissions"]}


def by_exercise(submission: Document) -> dict[str, Document]:
    return {exercise["id"]: exercise for exercise in submission["exercises"]}


def max_score(submission: Document) -> float:
    """What nbgrader shows: the points of the tests and those given by hand."""
    by_hand: float = sum(item["max_score"] for item in submission["by_hand"])
    return float(submission["max_score"]) + by_hand


def scores(submission: Document) -> dict[str, float]:
    return {exercise["id"]: exercise["score"] for exercise in submission["exercises"]}


def without_seconds(submission: Document) -> Document:
    """The part of a submission that a regrade must repeat."""
    return {name: value for name, value in submission.items() if name != "seconds"}


def without_messages(submission: Document) -> Document:
    """The part of a submission that does not depend on the language."""
    document = copy.deepcopy(without_seconds(submission))
    document["reason"] = document["reason"] is None
    document["repairs"] = len(document["repairs"])
    for exercise in document["exercises"]:
        del exercise["message"]
        for criterion in exercise["criteria"]:
            criterion["message"] = criterion["message"] is None
    return document


def assert_schema(results: Document, assignment: str, language: str = "en") -> None:
    """The JSON has exactly the documented keys and types (schema version 1), sorted by student."""

    def keys(document: Document, **types: type | tuple[type, ...]) -> None:
        assert list(document) == list(types), list(document)
        for name, kind in types.items():
            assert isinstance(document[name], kind), (name, document[name])
            assert not isinstance(document[name], bool), name

    text_or_null = (str, type(None))
    keys(results, schema_version=int, assignment=str, language=str, submissions=list)
    assert (results["schema_version"], results["assignment"], results["language"]) == (1, assignment, language)
    students = [submission["student"] for submission in results["submissions"]]
    assert students == sorted(set(students))
    for submission in results["submissions"]:
        keys(
            submission,
            student=str,
            outcome=str,
            reason=text_or_null,
            score=float,
            max_score=float,
            seconds=float,
            by_hand=list,
            repairs=list,
            exercises=list,
        )
        assert submission["outcome"] in ("graded", "partly-graded", "rejected")
        assert (submission["reason"] is None) == (submission["outcome"] == "graded")
        assert all(isinstance(repair, str) and repair for repair in submission["repairs"])
        for item in submission["by_hand"]:
            keys(item, id=str, max_score=float)
        for exercise in submission["exercises"]:
            keys(
                exercise,
                id=str,
                score=float,
                max_score=float,
                mistake=text_or_null,
                message=str,
                criteria=list,
            )
            assert 0.0 <= exercise["score"] <= exercise["max_score"]
            assert exercise["message"]
            assert exercise["score"] < exercise["max_score"] or exercise["mistake"] is None
            for criterion in exercise["criteria"]:
                keys(criterion, name=str, score=float, max_score=float, message=text_or_null)
                assert (criterion["message"] is None) == (criterion["score"] == criterion["max_score"])
            if exercise["criteria"]:
                for total in ("score", "max_score"):
                    assert sum(part[total] for part in exercise["criteria"]) == pytest.approx(exercise[total], abs=1e-6)
        for total in ("score", "max_score"):
            assert sum(exercise[total] for exercise in submission["exercises"]) == pytest.approx(
                submission[total], abs=1e-6
            )
