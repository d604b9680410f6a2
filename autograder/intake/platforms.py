"""How learning platforms name what they export: from a name to student, attempt and the file's own name.

Each class says where its naming is written down. Everything is decided by names; nothing is opened here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath

from autograder.intake.entries import METADATA, Entry
from autograder.intake.gradescope import Metadata

LEVELS = 3
"""In how many levels of folders a platform's names are looked for: archives get unpacked into folders of folders."""


@dataclass(frozen=True)
class Parsed:
    """What a name says.

    Attributes:
        who: the student's id on the platform: stable there, and the same in every assignment where it has such an id.
        known_as: all that the platform calls the student, for a list that maps names to ids.
        when: when it was handed in, in whatever zone the platform uses; None when the name does not say.
        order: which of several files is later, where only a number says so.
        own: the name under which the student handed the file in; None when that follows in the path below.
    """

    who: str
    known_as: tuple[str, ...]
    when: datetime | None = None
    order: int | None = None
    own: str | None = None


class Platform:
    """A platform's naming."""

    name: str

    def parse(self, part: str) -> Parsed | None:
        """What one part of a path says, a file's name or a folder's; None when it is not in this form."""
        raise NotImplementedError

    def skips(self, part: str) -> bool:
        """Whether this is something that the platform adds, nobody's work."""
        return False

    def plausible(self, reads: Sequence[Read]) -> bool:
        """Whether files that look like this platform's can all be."""
        return True

    def told_apart(self, reads: Sequence[Read]) -> list[Read]:
        """The same with one id for each student, where the names alone do not give that."""
        return list(reads)


class Canvas(Platform):
    """`lastfirst_LATE_12345_67890_name-2.ipynb`: name, user id, attachment id, the file's own name.

    Written in Canvas' own source, `get_filename` and `add_upload_submission` in lib/content_zipper.rb of
    instructure/canvas-lms. The name is the sortable one in small letters, without what is no letter, digit or
    underscore; anonymous assignments have `anon_<id>` instead of name and user id; what was typed in or linked is
    `…_12345_text.html` or `…_link.html`. The download holds the latest attempt only. A file of the same name handed in
    again gets -1, -2, …; a higher attachment id is later.
    """

    name = "Canvas"
    _upload = re.compile(
        r"(?:(?P<name>.*?)_)??(?:(?i:late)_)?(?P<user>anon_[0-9A-Za-z]+|\d+)_(?P<attachment>\d+)_(?P<own>.+)", re.DOTALL
    )
    _typed = re.compile(
        r"(?:(?P<name>.*?)_)??(?:(?i:late)_)?(?P<user>anon_[0-9A-Za-z]+|\d+)_(?P<own>(?:text|link)\.html)"
    )

    def parse(self, part: str) -> Parsed | None:
        if typed := self._typed.fullmatch(part):
            return Parsed(typed["user"], _known(typed["user"], typed["name"]), own=typed["own"])
        if not (found := self._upload.fullmatch(part)):
            return None
        order = int(found["attachment"][:18])
        return Parsed(found["user"], _known(found["user"], found["name"]), order=order, own=found["own"])

    def plausible(self, reads: Sequence[Read]) -> bool:
        """No two attachments have one id, unless a download is there twice; `class_01_02_name.ipynb` is not Canvas'."""
        attachments = [read.parsed.order for read in reads if read.parsed.order is not None]
        return 2 * len(set(attachments)) >= len(attachments)


class Moodle(Platform):
    """`Name Surname_12345_assignsubmission_file/…`, or flat, `Name Surname_12345_assignsubmission_file_name.ipynb`.

    Written in Moodle's own source, mod/assign/classes/downloader.php (`get_student_prefix`,
    `load_submissionplugin_filelist`); older versions end the folder's name with an underscore. Which form it is, is the
    choice "Download submissions in folders". The number is made for the assignment: the same student has another in the
    next one, so the name is the id here. With blind marking the name is `Participant`, in team work the group's.
    """

    name = "Moodle"
    _form = re.compile(
        r"(?P<name>.+?)(?:_(?P<number>\d+))?_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<own>.*))?", re.DOTALL
    )

    def parse(self, part: str) -> Parsed | None:
        if not (found := self._form.fullmatch(part)):
            return None
        name, number = found["name"], found["number"] or ""
        known = _known(name, number, f"{name}_{number}") if number else (name,)
        return Parsed(name, known, own=found["own"] or None)

    def told_apart(self, reads: Sequence[Read]) -> list[Read]:
        """Two students of one name get the number behind it."""
        numbers: dict[str, set[tuple[str, ...]]] = {}
        for read in reads:
            numbers.setdefault(read.parsed.who, set()).add(read.parsed.known_as)
        return [
            replace(read, parsed=replace(read.parsed, who=read.parsed.known_as[-1]))
            if len(numbers[read.parsed.who]) > 1
            else read
            for read in reads
        ]


class Blackboard(Platform):
    """`Assignment_userid_attempt_2026-01-02-03-04-05_name.ipynb`, and one `….txt` for each attempt.

    Blackboard's help does not write the form down; nbgrader's documentation collects such names
    (https://nbgrader.readthedocs.io/en/latest/user_guide/managing_assignment_files_manually.html), and the README of
    kwurst/bb-file-cleanup describes both. The word before the date is in the language of the course. The user name is
    what stands after the last underscore; the text file has it in parentheses, should it hold one itself.
    """

    name = "Blackboard"
    _form = re.compile(
        r"(?P<head>.+?)_[^\W\d_]+_(?P<when>\d{4}(?:-\d\d){5})(?:_(?P<own>.+)|(?P<note>\.txt))?", re.DOTALL
    )

    def __init__(self, users: Sequence[str] = ()) -> None:
        self._users = sorted(users, key=len, reverse=True)

    def parse(self, part: str) -> Parsed | None:
        if not (found := self._form.fullmatch(part)) or (when := _blackboard_time(found["when"])) is None:
            return None
        head = found["head"]
        user = next((user for user in self._users if head.endswith("_" + user)), head.rpartition("_")[2])
        return Parsed(user, _known(user), when, own="note.txt" if found["note"] else found["own"])

    @staticmethod
    def user_in_note(text: str) -> str | None:
        """The user name that a text file gives in its first lines: `Name: Student One (student_01)`."""
        found = re.search(r"\(([^()\n]+)\)\s*$", "\n".join(text.splitlines()[:1]))
        return found[1].strip() if found else None


class Brightspace(Platform):
    """`12345-67890 - Name - Jan 2, 2026 304 PM - name.ipynb`: user, folder, name, date, the file's own name.

    D2L's documentation does not write the form down. This is what programs that read such downloads agree on; where
    many files were handed in at once, the same without the last part names a folder. The date is written as the user's
    settings say; one that is not understood leaves attempts in no order. `index.html` is D2L's own.
    """

    name = "Brightspace"
    _form = re.compile(
        r"(?P<user>\d+)-\d+ - (?P<name>.+?) - (?P<when>[^-/]*\d{4}[^-/]*?)(?: - (?P<own>.+))?", re.DOTALL
    )

    def parse(self, part: str) -> Parsed | None:
        if not (found := self._form.fullmatch(part)):
            return None
        known = _known(found["user"], found["name"], *found["name"].split(" - "))
        return Parsed(found["user"], known, brightspace_time(found["when"]), own=found["own"])

    def skips(self, part: str) -> bool:
        return part == "index.html"


class Nbgrader(Platform):
    """`student+assignment+2026-01-02 03:04:05.000000 UTC+random/`, as nbgrader's exchange keeps what is submitted.

    Written in nbgrader's own source, nbgrader/exchange/default/submit.py. (What lies in `submitted/`, and archives of
    it, needs no reading of names: it is the plain layout.)
    """

    name = "nbgrader"
    _form = re.compile(
        r"(?P<user>[^+]+)\+(?P<assignment>[^+]+)\+(?P<when>\d{4}-\d\d-\d\d[ T]\d\d[:_]\d\d[:_]\d\d)[^+]*(?:\+.*)?"
    )

    def __init__(self, assignment: str) -> None:
        self._assignment = assignment.casefold()

    def parse(self, part: str) -> Parsed | None:
        found = self._form.fullmatch(part)
        if not found or found["assignment"].casefold() != self._assignment:
            return None
        try:
            when = datetime.fromisoformat(found["when"].replace("_", ":"))
        except ValueError:
            return None
        return Parsed(found["user"], _known(found["user"]), when)

    def skips(self, part: str) -> bool:
        return bool(self._form.fullmatch(part))


class Gradescope(Platform):
    """`submission_12345/` with the student's files, and `submission_metadata.yml`, which says whose they are.

    Gradescope's help does not write the form down. Public programs that read the export agree on it: a mapping from
    folders to `:submitters:` with `:name:`, `:sid:` and `:email:`, several where a group hands in. Numbers rise.
    """

    name = "Gradescope"

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata

    def parse(self, part: str) -> Parsed | None:
        if part not in self.metadata and not re.fullmatch(r"submission_\d+", part):
            return None
        number = re.search(r"\d{1,18}$", part)
        return Parsed(part, (part,), order=int(number[0]) if number else None)

    def skips(self, part: str) -> bool:
        return part.lower() == METADATA

    def told_apart(self, reads: Sequence[Read]) -> list[Read]:
        """Each of a group that handed in together has what was handed in."""
        found = []
        for read in reads:
            submitters = self.metadata.get(read.parsed.who, [])
            named = [replace(read.parsed, who=one.who, known_as=one.known_as) for one in submitters]
            found += [replace(read, parsed=parsed) for parsed in named or [read.parsed]]
        return found


@dataclass(frozen=True)
class Read:
    """An entry whose name was understood; its path is now the student's own.

    Attributes:
        around: the folders in which such names lie.
    """

    parsed: Parsed
    entry: Entry
    around: tuple[str, ...] = ()


def read_names(platform: Platform, entries: Sequence[Entry]) -> tuple[list[Read], list[Entry]]:
    """The entries with a name of this platform at some level, and the others; what the platform adds is left out."""
    read: list[Read] = []
    others: list[Entry] = []
    for entry in entries:
        parts = entry.path.parts
        for level, part in enumerate(parts[:LEVELS]):
            if parsed := platform.parse(part):
                below = parts[level + 1 :]
                own = ([parsed.own] if parsed.own else []) + list(below)
                read.append(Read(parsed, entry.at(PurePosixPath(*(own or [part]))), parts[:level]))
                break
        else:
            if not any(platform.skips(part) for part in parts[:LEVELS]):
                others.append(entry)
    return read, others


def _known(*names: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def _blackboard_time(text: str) -> datetime | None:
    try:
        return datetime(*map(int, text.split("-")))  # type: ignore[arg-type]
    except ValueError:
        return None


MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def brightspace_time(text: str) -> datetime | None:
    """`Jan 2, 2026 304 PM`, `2 January, 2026 15:04` and the like; None for anything else."""
    words = re.findall(r"[^\W\d_]+|\d+(?::\d+)*", text.replace(".", ""))
    month = next((MONTHS.index(word[:3].lower()) + 1 for word in words if word[:3].lower() in MONTHS), None)
    half = next((word.lower() for word in words if word.lower() in ("am", "pm")), None)
    numbers = [word for word in words if word[0].isdigit()]
    if month is None or len(numbers) != 3:
        return None
    day, year, clock = numbers[0], numbers[1], numbers[2].replace(":", "")
    if not 3 <= len(clock) <= 6 or not day.isdecimal() or not year.isdecimal():
        return None
    hour, minute = (int(clock[:-4]), int(clock[-4:-2])) if len(clock) > 4 else (int(clock[:-2]), int(clock[-2:]))
    if half:
        hour = hour % 12 + 12 * (half == "pm")
    try:
        return datetime(int(year), month, int(day), hour, minute)
    except ValueError:
        return None
