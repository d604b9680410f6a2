"""Finding the submissions in a folder, in each of the layouts that people have."""

from __future__ import annotations

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


def find_submissions(path: Path, assignment: str) -> list[Submission]:
    """The submissions below `path`, sorted by student.

    A student whose folder holds only other assignments did not submit this one and is left out.

    Raises:
        NoSubmissions: `path` does not exist, is neither a folder nor a notebook, or holds none.
    """
    if path.is_file() and path.suffix == ".ipynb":
        return [Submission(path.stem, path)]
    if not path.is_dir():
        what = "a folder or a notebook there" if not path.exists() else f"a folder with {LAYOUTS}"
        raise NoSubmissions(str(path), what)
    found: dict[str, Submission] = {}
    for entry in sorted(path.iterdir(), key=lambda entry: (entry.is_file(), entry.name)):
        if entry.name.startswith((".", "__")):
            continue
        if entry.is_dir():
            submission = _in_folder(entry, assignment)
        elif entry.suffix == ".ipynb":
            submission = Submission(entry.stem, entry)
        else:
            submission = None
        if submission is None:
            continue
        if submission.student in found:
            submission = _ambiguous(submission.student, [entry.name, submission.student + "/"])
        found[submission.student] = submission
    if not found:
        raise NoSubmissions(str(path), LAYOUTS)
    return [found[student] for student in sorted(found)]


def _in_folder(folder: Path, assignment: str) -> Submission | None:
    student = folder.name
    own = folder / assignment
    if own.is_dir():
        return _pick(student, own, assignment)
    if any(entry.suffix == ".ipynb" for entry in folder.iterdir()):
        return _pick(student, folder, assignment)
    others = [entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    return None if others else _pick(student, folder, assignment)


def _pick(student: str, folder: Path, assignment: str) -> Submission:
    notebooks = sorted(
        entry for entry in folder.iterdir() if entry.suffix == ".ipynb" and not entry.name.startswith(".")
    )
    named = [notebook for notebook in notebooks if notebook.stem == assignment]
    if named or len(notebooks) == 1:
        return Submission(student, (named or notebooks)[0])
    if notebooks:
        return _ambiguous(student, [notebook.name for notebook in notebooks])
    others = sorted(entry.name for entry in folder.iterdir())[:5]
    en = f"There is no notebook (.ipynb) in {folder.name}/" + (
        f", only {', '.join(others)}." if others else ": it is empty."
    )
    zh = f"{folder.name}/ 中没有笔记本文件（.ipynb）" + (
        f"，只有 {'、'.join(others)}。" if others else "，文件夹是空的。"
    )
    return Submission(student, None, Text(en=en, zh=zh))


def _ambiguous(student: str, names: list[str]) -> Submission:
    listed_en, listed_zh = ", ".join(names), "、".join(names)
    return Submission(
        student,
        None,
        Text(
            en=f"It is not clear which notebook counts: {listed_en}. Keep one.",
            zh=f"无法判断以哪个笔记本为准：{listed_zh}。请只保留一个。",
        ),
    )
