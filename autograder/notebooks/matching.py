"""Which cell of the release each submitted cell is, whatever became of its marks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum

from nbformat import NotebookNode

from autograder.notebooks.cells import defined_names, grade_id, is_answer, is_locked, is_test
from autograder.notebooks.reading import SubmittedCell


class How(Enum):
    """By what a cell was recognised."""

    MARKS = "nbgrader's metadata"
    ID = "its id or name"
    TEXT = "its text, as it was given out"
    DEFINITION = "what it defines"
    PLACE = "where it stands"
    OPENING = "how a test cell of the course begins"


@dataclass(frozen=True)
class Match:
    """The cell of the release, by its place, that a submitted cell is."""

    place: int
    how: How


def match(cells: Sequence[SubmittedCell], source: NotebookNode, release: NotebookNode) -> list[Match | None]:
    """Each submitted cell's match; None for a student's own.

    By its marks, by id, by text, by what it defines, by where it is, in this order.
    """
    by_grade_id = {grade_id(cell): place for place, cell in enumerate(source.cells) if grade_id(cell)}
    by_id = {cell["id"]: place for place, cell in enumerate(source.cells)}
    by_text = {cell.source.strip(): by_id[cell["id"]] for cell in release.cells if cell.source.strip()}
    matches: list[Match | None] = []
    for cell in cells:
        place, how = by_grade_id.get(cell.grade_id) if cell.grade_id else None, How.MARKS
        if place is None and cell.cell_id:
            place, how = by_id.get(cell.cell_id), How.ID
        if place is None:
            place, how = by_text.get(cell.source.strip()), How.TEXT
        found = None if place is None or _is_own_code(cell, release.cells[place]) else Match(place, how)
        matches.append(found)
    _match_definitions(cells, source, release, matches)
    _match_texts(cells, release, matches)
    tests = {grade_id(cell): place for place, cell in enumerate(source.cells) if is_test(cell)}
    for number, cell in enumerate(cells):  # copies of our own test cells whose metadata is gone
        opening = re.match(r'\s*with check\("([a-z0-9-]+)"\):', cell.source)
        place = tests.get(f"test-{opening.group(1)}") if opening and matches[number] is None else None
        if place is not None:
            matches[number] = Match(place, How.OPENING)
    return matches


def is_untouched(cell: SubmittedCell, given: NotebookNode) -> bool:
    """Whether the cell's text is what was given out."""
    return cell.source.strip() == str(given.source).strip()


def _is_own_code(cell: SubmittedCell, given: NotebookNode) -> bool:
    """Whether code was written into one of the course's texts, which has become a code cell for it."""
    return (
        cell.kind == "code"
        and given.cell_type == "markdown"
        and not is_answer(given)
        and not is_untouched(cell, given)
        and bool(defined_names(cell.source))
    )


def _match_definitions(
    cells: Sequence[SubmittedCell], source: NotebookNode, release: NotebookNode, matches: list[Match | None]
) -> None:
    """Give an answer without a cell the cell that defines its names.

    So does an answer whose cell is as it was given out, unless the other stands between the untouched one and its test:
    it runs at the right time there.
    """
    numbers: dict[int, list[int]] = {}
    for number, found in enumerate(matches):
        if found is not None:
            numbers.setdefault(found.place, []).append(number)
    tests = {grade_id(cell): place for place, cell in enumerate(source.cells) if is_test(cell)}
    free = {
        number: defined_names(cell.source)
        for number, cell in enumerate(cells)
        if cell.kind == "code" and _may_be_an_answer(cell, matches[number], release)
    }
    for place, original in enumerate(source.cells):
        here = numbers.get(place, [])
        touched = any(not is_untouched(cells[number], release.cells[place]) for number in here)
        if touched or not is_answer(original) or original.cell_type != "code":
            continue
        wanted = defined_names(original.source)
        test = numbers.get(tests.get(f"test-{grade_id(original)}", -1), [len(cells)])[0]
        answer = _defining(wanted, free, test, partly=not here)
        if answer is not None and not (here and max(here) < answer < test):
            matches[answer] = Match(place, How.DEFINITION)
            del free[answer]


def _defining(wanted: AbstractSet[str], free: Mapping[int, AbstractSet[str]], test: int, *, partly: bool) -> int | None:
    """The cell that is the answer: the last one above the test that defines all names, else the last one that does.

    Args:
        free: what each cell that may be it defines.
        test: the number of the test's cell.
        partly: whether, if there is none, the last one counts that defines some of them.
    """
    whole = [number for number, names in free.items() if wanted <= names]
    above = [number for number in whole if number < test]
    some = [number for number, names in free.items() if wanted & names] if partly else []
    return next((max(numbers) for numbers in (above, whole, some) if numbers), None)


def _may_be_an_answer(cell: SubmittedCell, found: Match | None, release: NotebookNode) -> bool:
    """Own cells may, and locked cells that something else was written into."""
    if found is None:
        return True
    given = release.cells[found.place]
    return is_locked(given) and bool(defined_names(cell.source) - defined_names(given.source))


def _match_texts(cells: Sequence[SubmittedCell], release: NotebookNode, matches: list[Match | None]) -> None:
    """Give a text answer the text that stands in its place, when its cell is gone, unmarked or untouched.

    That is a text of the student's own between the cells around it: the one that opens as the released text does, else
    the first.
    """
    for place, original in enumerate(release.cells):
        if not is_answer(original) or original.cell_type != "markdown":
            continue
        if any(
            found is not None and found.place == place and not is_untouched(cells[number], original)
            for number, found in enumerate(matches)
        ):
            continue
        before = max(
            (number for number, found in enumerate(matches) if found is not None and found.place <= place), default=-1
        )
        after = next(
            (number for number, found in enumerate(matches) if number > before and found is not None), len(cells)
        )
        own = [
            number for number in range(before + 1, after) if cells[number].kind == "markdown" and cells[number].source
        ]
        opening = original.source.strip().partition("\n")[0]
        alike = [number for number in own if cells[number].source.strip().startswith(opening)]
        if own:
            matches[(alike or own)[0]] = Match(place, How.PLACE)
