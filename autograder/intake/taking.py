"""From what `--submissions` names, a folder or an archive of any platform, to one submission a student."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path, PurePosixPath

from autograder.errors import BadArchive, NoSubmissions
from autograder.intake.archives import is_archive
from autograder.intake.desk import REFUSED, Desk, Intake
from autograder.intake.entries import METADATA, Entry, is_leftover
from autograder.intake.exports import recognise, take_export
from autograder.intake.plain import EXPECTED, take_plain
from autograder.intake.students import read_students
from autograder.intake.writing import LINK, Unpacked


def take_in(path: Path, assignment: str, assignments: Collection[str] = (), students: Path | None = None) -> Intake:
    """The submissions in a folder, an archive, or a folder of archives.

    Args:
        assignments: the names of all assignments of the course.
        students: a CSV file that maps what the platform calls students to their ids.

    Raises:
        NoSubmissions: nothing there, or nothing that is a submission.
        BadArchive: `path` is an archive of which nothing can be taken.
        BadStudentList: the CSV file can't be used.
    """
    desk = Desk(assignment, read_students(students) if students else None)
    try:
        _sort(desk, path, assignments)
        if not desk.intake.submissions:
            raise NoSubmissions(str(path), EXPECTED)
        return desk.done()
    except BaseException:
        desk.clean()
        raise


def _sort(desk: Desk, path: Path, assignments: Collection[str]) -> None:
    if path.is_file() and is_archive(path):
        unpacked = desk.unpack(path)
        platform, reads, others = recognise(desk, unpacked.entries)
        if platform is not None:
            return take_export(desk, platform, reads, others)
        try:
            return take_plain(desk, unpacked.folder, assignments, (), ours=True)
        except NoSubmissions as error:
            raise NoSubmissions(str(path), EXPECTED) from error
    if not path.is_dir():
        return take_plain(desk, path, assignments, (), ours=False)
    entries = list(_walk(path))
    platform, reads, others = recognise(desk, entries)
    loose: list[tuple[Entry, Unpacked]] = []
    if platform is None and (archives := [entry for entry in entries if entry.is_archive and not entry.path.parts[1:]]):
        # A download for each section of the class, or one archive a student.
        loose = list(_unpacked(desk, archives))
        rest = [entry for entry in entries if not entry.is_archive or entry.path.parts[1:]]
        platform, reads, others = recognise(desk, rest + [one for _, unpacked in loose for one in unpacked.entries])
    if platform is not None:
        return take_export(desk, platform, reads, others)
    return take_plain(desk, path, assignments, loose, ours=False)


def _unpacked(desk: Desk, archives: Sequence[Entry]) -> Iterable[tuple[Entry, Unpacked]]:
    for entry in archives:
        if entry.file is None:
            continue
        try:
            yield entry, desk.unpack(entry.file)
        except BadArchive as error:
            desk.intake.note(REFUSED, f"{entry.path}: {error.why}")


def _walk(folder: Path) -> Iterable[Entry]:
    """The files below a folder, links not followed."""
    for where, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            file = Path(where, name)
            path = PurePosixPath(os.fsencode(file.relative_to(folder)).decode("utf-8", "backslashreplace"))
            if is_leftover(path):
                continue
            entry = Entry(path, file)
            opened = entry.is_archive or name.lower() == METADATA or name.endswith(".txt")
            yield Entry(path, None, LINK) if opened and (file.is_symlink() or not file.is_file()) else entry
