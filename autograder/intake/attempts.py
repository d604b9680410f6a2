"""Which of a student's attempts counts: the latest one that holds a notebook which can be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from autograder.errors import UnreadableNotebook
from autograder.grading.submissions import Submission, ambiguous
from autograder.intake.entries import Entry
from autograder.notebooks.reading import read_notebook
from autograder.results import Text

VERSION = re.compile(r"(?:-\d{1,3}| ?\(\d{1,3}\))$")
"""What platforms and browsers add to a name that is taken: name-2, name (2)."""


@dataclass
class Attempt:
    """What a student handed in at one time.

    Attributes:
        when: None when the platform does not say.
        files: with the number by which the platform orders them, if it does.
    """

    when: datetime | None
    files: list[tuple[Entry, int | None]] = field(default_factory=list)

    @property
    def label(self) -> str:
        names = ", ".join(str(entry.path) for entry, _ in self.files)
        return f"{self.when:%Y-%m-%d %H:%M} ({names})" if self.when else names


def choose(student: str, attempts: Sequence[Attempt], assignment: str) -> tuple[Submission, list[str]]:
    """The submission of a student, and what has to be said about the attempts that do not count."""
    if len(attempts) > 1 and any(attempt.when is None for attempt in attempts):
        return ambiguous(student, [attempt.label for attempt in attempts]), []
    newest_first = sorted(attempts, key=lambda attempt: attempt.when or datetime.min, reverse=True)
    whole = [_notebooks(attempt, assignment) for attempt in newest_first]
    only = sum(len(found) if isinstance(found, list) else 2 for found in whole) == 1
    said: list[str] = []
    fallback: Submission | None = None
    for attempt, found in zip(newest_first, whole, strict=True):
        if not isinstance(found, list):
            if found.unclear:
                return ambiguous(student, found.names), said
            said.append(f"{attempt.label}: {found.problem.en}")
            fallback = fallback or Submission(student, None, found.problem)
            continue
        for entry in found:
            why = None if only else _unreadable(entry)
            if entry.refusal is not None:
                why = entry.refusal
            if why is None:
                counted = Submission(student, entry.file)
                return counted, said + _passed_over(attempt, entry, newest_first, whole)
            said.append(f"{entry.path}: {why.en}")
            if fallback is None:
                fallback = (
                    Submission(student, entry.file) if entry.file else Submission(student, None, _said(entry, why))
                )
    assert fallback is not None
    return fallback, said if len(said) > 1 else []


def _passed_over(
    attempt: Attempt, entry: Entry, newest_first: Sequence[Attempt], whole: Sequence[list[Entry] | _None]
) -> list[str]:
    """The older attempts, and older files of this one."""
    older = newest_first[newest_first.index(attempt) + 1 :]
    own = whole[newest_first.index(attempt)]
    earlier = [str(other.path) for other in own[own.index(entry) + 1 :]] if isinstance(own, list) else []
    return [f"{name}: older" for name in earlier] + [f"{other.label}: older" for other in older]


@dataclass(frozen=True)
class _None:
    """No notebook that counts: `problem` says why, or it is not clear which of `names` is meant."""

    problem: Text
    unclear: bool = False
    names: tuple[str, ...] = ()


def _notebooks(attempt: Attempt, assignment: str) -> list[Entry] | _None:
    """An attempt's notebook, before it the later versions of the same file where the platform orders them."""
    found = [(entry, order) for entry, order in attempt.files if entry.is_notebook]
    if not found:
        return _None(_no_notebook(attempt))
    named = [one for one in found if _stem(one[0], assignment) == assignment.casefold()]
    pool = named or found
    if len(pool) > 1 and any(order is None for _, order in pool):
        exact = [one for one in pool if one[0].name.casefold() == f"{assignment}.ipynb".casefold()]
        pool = exact if len(exact) == 1 else pool
    unordered = len(pool) > 1 and any(order is None for _, order in pool)
    if unordered or len({_stem(entry, assignment) for entry, _ in pool}) > 1:
        return _None(Text(en="", zh=""), unclear=True, names=tuple(str(entry.path) for entry, _ in pool))
    return [entry for entry, _ in sorted(pool, key=lambda one: one[1] or 0, reverse=True)]


def _stem(entry: Entry, assignment: str) -> str:
    """The name without what says which version it is. An assignment may be called lesson-2 itself."""
    stem = entry.name[: -len(".ipynb")].casefold()
    return stem if stem == assignment.casefold() else VERSION.sub("", stem)


def _no_notebook(attempt: Attempt) -> Text:
    refused = [entry for entry, _ in attempt.files if entry.refusal is not None]
    if refused and refused[0].refusal is not None:
        return _said(refused[0], refused[0].refusal)
    names = [str(entry.path) for entry, _ in attempt.files][:5]
    return Text(
        en=f"There is no notebook (.ipynb), only {', '.join(names)}.",
        zh=f"没有笔记本文件（.ipynb），只有 {'、'.join(names)}。",
    )


def _said(entry: Entry, why: Text) -> Text:
    return Text(en=f"{entry.path} can't be used: {why.en}.", zh=f"无法使用 {entry.path}：{why.zh}。")


def _unreadable(entry: Entry) -> Text | None:
    if entry.file is None:
        return entry.refusal
    try:
        read_notebook(entry.file)
    except UnreadableNotebook as error:
        return Text(en=str(error), zh=str(error))
    return None
