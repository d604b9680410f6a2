"""What one intake has on its desk: the result so far, the notes for the instructor, a folder for what is unpacked."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder.errors import BadArchive
from autograder.grading.submissions import Submission
from autograder.intake.archives import unpack
from autograder.intake.attempts import Attempt, choose
from autograder.intake.bounds import CLASS, STUDENT, Bounds
from autograder.intake.names import student_name
from autograder.intake.platforms import Read
from autograder.intake.students import StudentList, key
from autograder.intake.writing import Unpacked
from autograder.results import Text

SHOWN = 12
"""Lines that the terminal gets under one heading."""

REFUSED = "refused"
OLDER = "attempts that do not count"
IGNORED = "not recognised, ignored"
UNKNOWN = "not in --students, graded under the platform's name or id"
ABSENT = "in --students, and handed in nothing"
GROUPS = "handed in together"


@dataclass(eq=False)
class Intake:
    """What was taken in. Files of unpacked archives are there as long as this object is.

    Attributes:
        submissions: one a student, sorted.
        platform: whose export it is; None for the plain layouts.
        notes: what the instructor should know, by heading.
    """

    submissions: list[Submission] = field(default_factory=list)
    platform: str | None = None
    notes: dict[str, list[str]] = field(default_factory=dict)

    def note(self, heading: str, *lines: str) -> None:
        if lines:
            self.notes.setdefault(heading, []).extend(lines)

    def lines(self, everything: Path | None = None) -> list[str]:
        """The notes for a terminal; where a heading has more than a few lines, all are written to `everything`."""
        said = [f"{self.platform} export: {len(self.submissions)} students"] if self.platform else []
        cut = False
        for heading, lines in self.notes.items():
            said.append(f"{heading} ({len(lines)}):")
            said += [f"  {line}" for line in lines[:SHOWN]]
            if len(lines) > SHOWN:
                cut = True
                said.append(f"  … and {len(lines) - SHOWN} more" + (f", all in {everything}" if everything else ""))
        if cut and everything:
            everything.parent.mkdir(parents=True, exist_ok=True)
            whole = (
                f"{heading}:\n" + "".join(f"  {line}\n" for line in lines) for heading, lines in self.notes.items()
            )
            everything.write_text("".join(whole), encoding="utf-8", errors="backslashreplace")
        return said


class Desk:
    """Where one export is sorted.

    Attributes:
        refusals: why an unpacked file is only an empty stand-in for one that was refused.
    """

    def __init__(self, assignment: str, listed: StudentList | None) -> None:
        self.assignment = assignment
        self.intake = Intake()
        self.refusals: dict[Path, Text] = {}
        self._listed = listed
        self._folder: Path | None = None
        self._count = 0
        self._left = CLASS.total_bytes  # for all archives together, those of students too
        self._ids: dict[str, str] = {}
        self._listed_ids: dict[str, str] = {}

    def clean(self) -> None:
        """Remove what was unpacked."""
        if self._folder:
            _discard(self._folder)

    def done(self) -> Intake:
        """The result; it owns what was unpacked from now on."""
        intake = self.intake
        intake.submissions.sort(key=lambda submission: submission.student)
        if self._listed:
            absent = self._listed.students - {submission.student for submission in intake.submissions}
            intake.note(ABSENT, *sorted(absent))
        if self._folder:
            weakref.finalize(intake, _discard, self._folder)
        return intake

    def unpack(self, archive: Path, bounds: Bounds = CLASS, name: str | None = None) -> Unpacked:
        """Unpack into a folder of our own and note what was refused. Raises BadArchive."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="order-matters-intake-"))
        self._count += 1
        bounds = replace(bounds, total_bytes=min(bounds.total_bytes, self._left))
        unpacked = unpack(archive, self._folder / f"{self._count:05d}", bounds)
        self._left -= unpacked.written
        shown = name or archive.name
        self.intake.note(REFUSED, *(f"{shown}: {one.name}: {one.why.en}" for one in unpacked.refused))
        self.refusals |= unpacked.refusals
        return unpacked

    def opened(self, read: Read) -> list[Read]:
        """The same, or what is in it if it is an archive that a student handed in."""
        entry = read.entry
        if not entry.is_archive or entry.file is None:
            return [read]
        shown = f"{read.parsed.who}/{entry.path}"
        try:
            unpacked = self.unpack(entry.file, STUDENT, shown)
        except BadArchive as error:
            self.intake.note(REFUSED, f"{shown}: {error.why}")
            why = Text(en=error.why, zh=f"压缩包无法解压（{error.why}）")
            return [replace(read, entry=replace(entry, file=None, refusal=why))]
        return [replace(read, entry=member.at(entry.path / member.path)) for member in unpacked.entries] or [read]

    def meet(self, people: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Learn whom the platform knows, by id and all names, before anybody is looked up in the list.

        A name that two of them have maps neither: nobody gets another's work.
        """
        everybody: dict[str, dict[str, None]] = {}  # a set that keeps its order: ids come before names
        for who, names_of_one in people:
            everybody.setdefault(who, {}).update(dict.fromkeys(names_of_one))
        if self._listed is None:
            return
        names = Counter(name for known_as in everybody.values() for name in known_as)
        keys = Counter(same for known_as in everybody.values() for same in set(map(key, known_as)))
        for who, known_as in everybody.items():
            others = [name for name in known_as if names[name] > 1]
            alike = [name for name in known_as if keys[key(name)] > 1]
            found = self._listed.find(list(known_as), others, alike)
            if found is not None:
                self._listed_ids[who] = found
            else:
                self.intake.note(UNKNOWN, " = ".join(dict.fromkeys((who, *known_as))))

    def listed_id(self, who: str) -> str | None:
        """The student's id by the list."""
        return self._listed_ids.get(who)

    def student(self, who: str) -> str:
        """The student's id: from the list; else the platform's, made safe and unlike any other's."""
        found = self.listed_id(who)
        if found is not None:
            return found
        if who not in self._ids:
            wanted = name = student_name(who)
            taken = set(self._ids.values()) | (self._listed.students if self._listed else set())
            number = 2
            while name in taken:
                name, number = f"{wanted} ({number})", number + 1
            self._ids[who] = name
        return self._ids[who]

    def chosen(self, student: str, attempts: Sequence[Attempt]) -> Submission:
        """What counts of a student's attempts; the others are noted."""
        submission, said = choose(student, attempts, self.assignment)
        self.intake.note(OLDER, *(f"{student}: {line}" for line in said))
        return submission


def _discard(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
