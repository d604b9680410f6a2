"""The plain layouts, in a folder or an archive: what `find_submissions` finds, and archives that students handed in."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from autograder.errors import NoSubmissions
from autograder.grading.submissions import LAYOUTS, Submission, ambiguous, find_submissions, ignored_files
from autograder.intake.archives import is_archive
from autograder.intake.attempts import Attempt
from autograder.intake.desk import IGNORED, Desk
from autograder.intake.entries import Entry, is_leftover, is_notebook
from autograder.intake.exports import stem
from autograder.intake.platforms import Parsed, Read
from autograder.intake.writing import Unpacked
from autograder.results import Text

EXPECTED = f"{LAYOUTS}, or a platform's export"


def take_plain(
    desk: Desk, root: Path, assignments: Collection[str], loose: Sequence[tuple[Entry, Unpacked]], *, ours: bool
) -> None:
    """Find the submissions below `root`.

    Args:
        loose: archives that lie in the folder itself, unpacked: taken for a student's, if there is a notebook in them.
        ours: whether `root` is a folder of ours, with what an archive held.
    """
    if ours:
        root = _without_wrapper(root, {name.casefold() for name in (*assignments, desk.assignment)})
    students = [(entry, unpacked) for entry, unpacked in loose if any(one.is_notebook for one in unpacked.entries)]
    try:
        found = find_submissions(root, desk.assignment, assignments)
    except NoSubmissions:
        if not students:
            raise
        found = []
    names = [one.student for one in found] + [stem(entry.name) for entry, _ in students]
    desk.meet((name, (name,)) for name in names)
    by_student: dict[str, list[Submission]] = {}
    for submission in found:
        student = desk.listed_id(submission.student) or submission.student
        by_student.setdefault(student, []).append(_opened(desk, root, _without_refused(desk, submission)))
    for entry, unpacked in students:
        name = stem(entry.name)
        student = desk.listed_id(name) or name
        attempt = Attempt(None, [(member.at(entry.path / member.path), None) for member in unpacked.entries])
        by_student.setdefault(student, []).append(replace(desk.chosen(student, [attempt]), student=entry.name))
    for student, own in by_student.items():
        submission = own[0] if len(own) == 1 else ambiguous(student, [one.student for one in own])
        desk.intake.submissions.append(replace(submission, student=student))
    taken = {entry.name for entry, _ in students}
    desk.intake.note(IGNORED, *(name for name in ignored_files(root) if name not in taken))


def _without_wrapper(root: Path, assignments: Collection[str]) -> Path:
    """The folder of students in an unpacked archive: one folder around all of them is nobody's."""
    inside = _seen(root)
    if len(inside) != 1 or not inside[0].is_dir():
        return root
    within = _seen(inside[0])
    folders = [entry for entry in within if entry.is_dir() and entry.name.casefold() not in assignments]
    notebooks = [entry for entry in within if is_notebook(entry.name)]
    return _without_wrapper(inside[0], assignments) if folders or len(notebooks) > 1 else root


def _seen(folder: Path) -> list[Path]:
    return [entry for entry in sorted(folder.iterdir()) if not is_leftover(PurePosixPath(entry.name))]


def _without_refused(desk: Desk, submission: Submission) -> Submission:
    """An empty stand-in gives way to the reason why the file was refused."""
    notebook = submission.notebook
    why = desk.refusals.get(notebook) if notebook else None
    if notebook is None or why is None:
        return submission
    text = Text(en=f"{notebook.name} can't be used: {why.en}.", zh=f"无法使用 {notebook.name}：{why.zh}。")
    return Submission(submission.student, None, text)


def _opened(desk: Desk, root: Path, submission: Submission) -> Submission:
    """The same, or what an archive holds where a student's folder has one, and no notebook."""
    student = submission.student
    if submission.notebook is not None:
        return submission
    places = [entry for entry in _seen(root) if entry.name == student and entry.is_dir()]
    places += [
        entry for place in places for entry in _seen(place) if entry.name.casefold() == desk.assignment.casefold()
    ]
    files = [file for place in places if place.is_dir() and not place.is_symlink() for file in _seen(place)]
    archives = [file for file in files if is_archive(file) and file.is_file() and not file.is_symlink()]
    if not archives or any(is_notebook(file.name) for file in files):
        return submission
    attempt = Attempt(None)
    for archive in archives:
        path = PurePosixPath(os.fsencode(archive.name).decode("utf-8", "backslashreplace"))
        read = Read(Parsed(student, (student,)), Entry(path, archive))
        attempt.files += [(part.entry, None) for part in desk.opened(read)]
    return desk.chosen(student, [attempt])
