"""A platform's export: whose it is, and one submission for each student in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from autograder.errors import OrderMattersError
from autograder.intake.attempts import Attempt
from autograder.intake.desk import GROUPS, IGNORED, REFUSED, Desk
from autograder.intake.entries import METADATA, Entry
from autograder.intake.gradescope import read_metadata
from autograder.intake.platforms import (
    Blackboard,
    Brightspace,
    Canvas,
    Gradescope,
    Moodle,
    Nbgrader,
    Parsed,
    Platform,
    Read,
    read_names,
)

NOTE_BYTES = 4096
"""Of a text file of Blackboard's, in which the first line is wanted."""


def recognise(desk: Desk, entries: Sequence[Entry]) -> tuple[Platform | None, list[Read], list[Entry]]:
    """The platform that most names belong to, if they are the larger part of all; what it names, and the rest."""
    candidates: list[Platform] = [Moodle(), _blackboard(entries), Brightspace(), Nbgrader(desk.assignment)]
    candidates += _gradescope(desk, entries)
    candidates.append(Canvas())
    best: tuple[Platform | None, list[Read], list[Entry]] = (None, [], list(entries))
    most = 0
    for platform in candidates:
        reads, others = read_names(platform, entries)
        work, rest = _work(read.entry for read in reads), _work(others)
        fits = work >= rest if work else not rest and len(reads) > len(others)
        if reads and fits and platform.plausible(reads) and (best[0] is None or work > most):
            best, most = (platform, reads, others), work
    return best


def take_export(desk: Desk, platform: Platform, reads: Sequence[Read], others: Sequence[Entry]) -> None:
    """Sort what was read by student and attempt, and choose."""
    desk.intake.platform = platform.name
    beside, ignored = _beside(others, reads)
    desk.intake.note(IGNORED, *ignored)
    if isinstance(platform, Gradescope):
        _note_groups(desk, platform, reads)
    attempts: dict[str, dict[object, Attempt]] = {}
    everything = [*platform.told_apart(reads), *beside]
    desk.meet((read.parsed.who, read.parsed.known_as) for read in everything)
    for read in everything:
        for part in desk.opened(read):
            own = attempts.setdefault(desk.student(part.parsed.who), {})
            attempt = own.setdefault(part.parsed.when, Attempt(part.parsed.when))
            attempt.files.append((part.entry, part.parsed.order))
    desk.intake.submissions += [desk.chosen(student, list(own.values())) for student, own in attempts.items()]


def stem(name: str) -> str:
    """A file's name without what says of what kind it is."""
    short = Path(name).stem
    return short[: -len(".tar")] if short.lower().endswith(".tar") else short


def _work(entries: Iterable[Entry]) -> int:
    return sum(entry.is_notebook or entry.is_archive for entry in entries)


def _blackboard(entries: Sequence[Entry]) -> Blackboard:
    """Blackboard with the user names that its text files give."""
    plain = Blackboard()
    users = set()
    for entry in entries:
        if entry.name.endswith(".txt") and entry.file and plain.parse(entry.name):
            with entry.file.open("rb") as file:
                users.add(plain.user_in_note(file.read(NOTE_BYTES).decode("utf-8-sig", "replace")))
    return Blackboard([user for user in users if user])


def _gradescope(desk: Desk, entries: Sequence[Entry]) -> list[Platform]:
    """Gradescope with its list, if there is one; students may have a file of that name deeper down."""
    lists = sorted(
        (entry for entry in entries if entry.name.lower() == METADATA), key=lambda entry: len(entry.path.parts)
    )
    if not lists or lists[0].file is None:
        return []
    try:
        return [Gradescope(read_metadata(lists[0].file))]
    except OrderMattersError as error:
        desk.intake.note(REFUSED, str(error))
        return [Gradescope({})]


def _note_groups(desk: Desk, platform: Gradescope, reads: Sequence[Read]) -> None:
    for folder in dict.fromkeys(read.parsed.who for read in reads):
        group = [one.who for one in platform.metadata.get(folder, [])]
        if len(group) > 1:
            desk.intake.note(GROUPS, f"{folder}: {', '.join(group)}")


def _beside(others: Sequence[Entry], reads: Sequence[Read]) -> tuple[list[Read], list[str]]:
    """Notebooks among a platform's export without a name of its kind, read as in the plain layout; the rest's names."""
    around, _ = Counter(read.around for read in reads).most_common(1)[0]
    found, ignored = [], []
    for entry in others:
        parts = entry.path.parts
        below = parts[len(around) :] if parts[: len(around)] == around else parts
        if not entry.is_notebook:
            ignored.append(str(entry.path))
            continue
        who = below[0] if len(below) > 1 else stem(entry.name)
        found.append(Read(Parsed(who, (who,)), entry.at(PurePosixPath(*(below[1:] or below)))))
    return found, ignored
