"""Finding the submissions in a folder, in each of the layouts that people have."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import NoSubmissions
from autograder.results import Text

LAYOUTS = "<student>/<assignment>/<notebook>.ipynb, <student>/<any>.ipynb or <student>.ipynb"


@dataclass(frozen=True)
class Submission:
    """What one student handed in: a notebook file, or the reason why there is none to grade."""

    student: str
    notebook: Path | None
    problem: Text | None = None


def find_submissions(path: Path, assignment: str, assignments: Collection[str] = ()) -> list[Submission]:
    """The submissions below `path`, sorted by student.

    A student whose folder holds only other assignments did not submit this one and is left out.

    Args:
        assignments: the names of all assignments of the course.

    Raises:
        NoSubmissions: `path` does not exist, is neither a folder nor a notebook, or holds none.
    """
    if path.is_file() and _is_notebook(path):
        return [Submission(_readable(path.stem), path)]
    if not path.is_dir():
        what = "a folder or a notebook there" if not path.exists() else f"a folder with {LAYOUTS}"
        raise NoSubmissions(str(path), what)
    found: dict[str, Submission] = {}
    for entry in sorted(path.iterdir(), key=lambda entry: (entry.is_file(), entry.name)):
        if entry.name.startswith((".", "__")):
            continue
        if entry.is_dir():
            submission = _in_folder(entry, assignment, assignments)
        elif _is_notebook(entry):
            submission = Submission(_readable(entry.stem), entry)
        else:
            submission = None
        if submission is None:
            continue
        if submission.student in found:
            submission = ambiguous(submission.student, [_readable(entry.name), submission.student + "/"])
        found[submission.student] = submission
    if not found:
        raise NoSubmissions(str(path), LAYOUTS)
    return [found[student] for student in sorted(found)]


def ignored_files(path: Path) -> list[str]:
    """What lies in a folder of submissions and is neither a notebook nor a student's folder."""
    if not path.is_dir():
        return []
    return sorted(
        _readable(entry.name)
        for entry in path.iterdir()
        if entry.is_file() and not _is_notebook(entry) and not entry.name.startswith((".", "__"))
    )


def _is_notebook(path: Path) -> bool:
    return path.suffix.lower() == ".ipynb" and not path.name.startswith(".")


def _readable(name: str) -> str:
    """A file's name as text: bytes that are no UTF-8 (an archive made under another code page) are written out."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _in_folder(folder: Path, assignment: str, assignments: Collection[str]) -> Submission | None:
    student = _readable(folder.name)
    entries = [entry for entry in sorted(folder.iterdir()) if not entry.name.startswith(".")]
    folders = {entry.name.casefold(): entry for entry in entries if entry.is_dir()}
    loose = any(_is_notebook(entry) for entry in entries)
    own = folders.get(assignment.casefold())
    if own is not None and not (loose and not any(map(_is_notebook, own.iterdir()))):
        return _pick(student, own, assignment)
    known = {name.casefold() for name in assignments} or set(folders)
    if folders and not loose and set(folders) <= known:
        return None
    return _pick(student, folder, assignment)


def _pick(student: str, folder: Path, assignment: str) -> Submission:
    notebooks = sorted(entry for entry in folder.iterdir() if _is_notebook(entry))
    named = [notebook for notebook in notebooks if notebook.stem.casefold() == assignment.casefold()]
    if named or len(notebooks) == 1:
        return Submission(student, (named or notebooks)[0])
    if notebooks:
        return ambiguous(student, [_readable(notebook.name) for notebook in notebooks])
    others = sorted(_readable(entry.name) for entry in folder.iterdir())[:5]
    en = f"There is no notebook (.ipynb) in {_readable(folder.name)}/" + (
        f", only {', '.join(others)}." if others else ": it is empty."
    )
    zh = f"{_readable(folder.name)}/ 中没有笔记本文件（.ipynb）" + (
        f"，只有 {'、'.join(others)}。" if others else "，文件夹是空的。"
    )
    return Submission(student, None, Text(en=en, zh=zh))


def ambiguous(student: str, names: Sequence[str]) -> Submission:
    """A submission of which it is not clear what counts: these do, equally."""
    listed_en, listed_zh = ", ".join(names), "、".join(names)
    return Submission(
        student,
        None,
        Text(
            en=f"It is not clear which notebook counts: {listed_en}. Keep one.",
            zh=f"无法判断以哪个笔记本为准：{listed_zh}。请只保留一个。",
        ),
    )
