"""An assignment as grading needs it: its notebooks, its exercises, their points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.errors import OrderMattersError, UnknownAssignment
from autograder.notebooks.cells import grade_id, is_answer, is_test


@dataclass(frozen=True)
class Assignment:
    """One lesson. `root` is the course folder, which holds `source/` and `release/`.

    Attributes:
        source: the instructor's notebook with the hidden tests.
        release: the student's notebook.
        exercises: id of each automatically graded exercise and its points, in order.
        manual: grade ids and points of cells graded by hand.
        answers: grade ids of all answer cells.
    """

    root: Path
    name: str
    source: NotebookNode
    release: NotebookNode
    exercises: dict[str, float]
    manual: dict[str, float]
    answers: tuple[str, ...]


def assignment_names(root: Path) -> list[str]:
    """The assignments of the course: folders of `source/` that hold a notebook of the same name."""
    return sorted(path.parent.name for path in (root / "source").glob("*/*.ipynb") if path.stem == path.parent.name)


def load_assignment(root: Path, name: str) -> Assignment:
    """Read an assignment. Raises UnknownAssignment, or OrderMattersError when it was never built."""
    known = assignment_names(root)
    if name not in known:
        raise UnknownAssignment(name, known)
    released, written = (root / edition / name / f"{name}.ipynb" for edition in ("release", "source"))
    if not released.exists():
        raise OrderMattersError(f"{released} is missing. Build it with `python -m course build`.")
    return _read(root, name, released.stat().st_mtime_ns, written.stat().st_mtime_ns)


@lru_cache(maxsize=32)
def _read(root: Path, name: str, released_at: int, written_at: int) -> Assignment:
    """An assignment as its files are; the times make a changed file another one."""
    source, release = (nbformat.read(root / edition / name / f"{name}.ipynb", 4) for edition in ("source", "release"))
    tests = {grade_id(cell) or "": float(cell.metadata["nbgrader"]["points"]) for cell in source.cells if is_test(cell)}
    manual = {
        grade_id(cell) or "": float(cell.metadata["nbgrader"]["points"])
        for cell in source.cells
        if is_answer(cell) and cell.metadata["nbgrader"]["grade"]
    }
    return Assignment(
        root=root,
        name=name,
        source=source,
        release=release,
        exercises={test.removeprefix("test-"): points for test, points in tests.items()},
        manual=manual,
        answers=tuple(grade_id(cell) or "" for cell in source.cells if is_answer(cell)),
    )


def owner_of_answers(root: Path, grade_ids: set[str]) -> str | None:
    """The assignment that most of these answer cells belong to, or None."""
    counts = {name: len(grade_ids & set(load_assignment(root, name).answers)) for name in assignment_names(root)}
    best = max(counts, key=lambda name: counts[name], default=None)
    return best if best and counts[best] else None


def owner_of_texts(root: Path, texts: set[str]) -> str | None:
    """The assignment whose released notebook has the most cells with these texts, or None when none has three more.

    Cells that several lessons share, such as the imports, count for all of them alike.
    """
    counts = sorted(
        (len(texts & {cell.source.strip() for cell in load_assignment(root, name).release.cells if cell.source}), name)
        for name in assignment_names(root)
    )
    if not counts or counts[-1][0] < 3 + (counts[-2][0] if len(counts) > 1 else 0):
        return None
    return counts[-1][1]
