"""Fitting a submission to the released notebook.

Everything locked comes from the course: tools, tests, hidden tests. From the student come the answers, changes to
cells that are not locked, and cells of their own. The order is the release's; a student's own cell stays behind the
cell that it followed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.notebooks.cells import defined_names, grade_id, is_answer, is_locked, is_test
from autograder.notebooks.matching import How, Match, is_untouched, match
from autograder.notebooks.pieces import put_together, taken_apart
from autograder.notebooks.reading import Submitted, SubmittedCell, require_bounded_code
from autograder.notebooks.repairs import Mended, repairs_of
from autograder.notebooks.slicing import names_of
from autograder.results import Text
from autograder.syntax import syntax_tree, without_magics


@dataclass(frozen=True)
class Fitted:
    """A notebook ready to run.

    Attributes:
        missing: grade ids of answer cells that the submission does not have; the unanswered cell stands there instead.
        found: grade ids of answer cells that it has.
        handed_in: for cells of the course, by id, the outputs that they had when the notebook was handed in.
        repairs: what was mended in reading and fitting, for the instructor; nothing for an honest notebook.
    """

    notebook: NotebookNode
    missing: tuple[str, ...]
    found: tuple[str, ...]
    handed_in: dict[str, tuple[dict[str, Any], ...]]
    repairs: tuple[Text, ...]


def fit(submitted: Submitted, source: NotebookNode, release: NotebookNode) -> Fitted:
    """Make one runnable notebook of a submission.

    Args:
        source: the instructor's notebook; its test cells hold the hidden tests.
        release: the student's notebook, cell for cell the same ids; its answer cells hold the stubs.

    Raises:
        UnreadableNotebook: what stands as text at an answer is too long for code.
    """
    stubs = {cell["id"]: cell for cell in release.cells}
    apart = taken_apart(submitted.cells, source, release)
    found_first = match(apart.cells, source, release)
    runs = _run(apart.cells, found_first, source)
    require_bounded_code([cell.source for cell, run in zip(apart.cells, runs, strict=True) if run], "the notebook")
    whole = put_together(apart.cells, found_first, source)
    cells, matches = whole.cells, whole.matches
    answered: dict[int, int] = {}  # place in the release -> the submitted cell that stands there
    untouched: set[int] = set()  # submitted cells that still are what was given out as an answer cell
    for number, found in enumerate(matches):
        if found is None:
            continue
        if is_answer(source.cells[found.place]) and is_untouched(cells[number], release.cells[found.place]):
            untouched.add(number)
        if found.place not in answered or (is_answer(source.cells[found.place]) and number not in untouched):
            answered[found.place] = number  # of several copies of an answer the last one counts, as it would when run
    anchors = _anchors(cells, matches, answered, untouched, source)
    extras: dict[int, list[NotebookNode]] = {}  # place in the release -> what stands behind it
    copies: dict[int, list[NotebookNode]] = {}  # place in the release -> earlier copies, in front of it
    for number, found in enumerate(matches):
        if found is None:
            extras.setdefault(anchors[number], []).append(_own_cell(cells[number], number))
        elif answered[found.place] != number and number not in untouched and not is_locked(source.cells[found.place]):
            behind = copies if number < answered[found.place] else extras
            behind.setdefault(found.place, []).append(_own_cell(cells[number], number))
    result = copy.copy(source)
    result.metadata = NotebookNode({key: source.metadata[key] for key in ("kernelspec", "language_info")})
    result.cells = list(extras.get(-1, []))
    missing: list[str] = []
    found_answers: list[str] = []
    elsewhere: list[int] = []
    defined = _defined_outside_locked_cells(cells, matches, source)
    for place, original in enumerate(source.cells):
        wanted = defined_names(original.source) if is_answer(original) and original.cell_type == "code" else frozenset()
        if place not in answered and wanted and wanted <= defined:
            # Written in another cell. The stub here would undo it.
            found_answers.append(grade_id(original) or "")
            elsewhere.append(place)
            result.cells += extras.get(place, [])
            continue
        given = stubs[original["id"]] if is_answer(original) else original
        cell = NotebookNode({**given, "metadata": copy.deepcopy(given.metadata)})
        if is_answer(original):
            (found_answers if place in answered else missing).append(grade_id(original) or "")
        if place in answered and not is_locked(original):
            cell.source = cells[answered[place]].source
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        result.cells += [*copies.get(place, []), cell, *extras.get(place, [])]
    handed_in = {source.cells[place]["id"]: cells[number].outputs for place, number in answered.items()}
    mended = Mended(
        cells=cells,
        matches=matches,
        answered=answered,
        untouched=untouched,
        elsewhere=(*elsewhere, *_brought_forward(matches, anchors, source)),
        taken_apart=apart.names,
        put_together=whole.places,
    )
    repairs = (*submitted.repairs, *repairs_of(mended, release))
    return Fitted(result, tuple(missing), tuple(found_answers), handed_in, repairs)


def _own_cell(cell: SubmittedCell, number: int) -> NotebookNode:
    name = f"own-{number}"
    found: NotebookNode = (
        new_code_cell(cell.source, id=name) if cell.kind == "code" else new_markdown_cell(cell.source, id=name)
    )
    return found


def _followed(matches: Sequence[Match | None]) -> list[int]:
    """For each submitted cell the place of the course's cell that it is or follows; -1 in front of all."""
    places, place = [], -1
    for found in matches:
        place = place if found is None else found.place
        places.append(place)
    return places


def _anchors(
    cells: Sequence[SubmittedCell],
    matches: Sequence[Match | None],
    answered: Mapping[int, int],
    untouched: AbstractSet[int],
    source: NotebookNode,
) -> list[int]:
    """For each submitted cell the place in the release behind which it stands.

    An own cell stands behind the cell that it followed. Where that is below a test, and a name that the test's answer
    should define is defined nowhere above it, the cell comes forward to the answer, and what it needs with it. So does
    what an answer needs that was found below its test.
    """
    anchors = _followed(matches)
    runs = _run(cells, matches, source)
    defined = [defined_names(cell.source) if run else frozenset[str]() for cell, run in zip(cells, runs, strict=True)]
    for number, found in enumerate(matches):
        dropped = found and number in untouched and answered[found.place] != number
        if found and (dropped or is_locked(source.cells[found.place])):
            defined[number] = frozenset()
            runs[number] = False
    known = [names | _set_by(cell) if run else names for names, cell, run in zip(defined, cells, runs, strict=True)]
    tests = {grade_id(cell): place for place, cell in enumerate(source.cells) if is_test(cell)}
    for place, original in enumerate(source.cells):
        test = tests.get(f"test-{grade_id(original)}")
        if test is None or original.cell_type != "code" or not is_answer(original):
            continue
        above = frozenset[str]().union(*(names for names, at in zip(known, anchors, strict=True) if at < test))
        below = [number for number, found in enumerate(matches) if found is None and anchors[number] >= test]
        wanted = defined_names(original.source) - above
        moved = [number for number in below if wanted & defined[number]]
        for number in moved:
            anchors[number] = place
        number = answered.get(place, -1)
        if number >= 0 and matches[number] == Match(place, How.DEFINITION):
            moved.append(number)
        while moved:
            names = names_of(cells[moved.pop()].source)
            needed = (names.reads | names.reads_later) - above
            for number in below:
                if anchors[number] >= test and needed & defined[number]:
                    anchors[number] = place - 1  # in front: it may be needed when the answer is defined
                    moved.append(number)
    return anchors


def _run(cells: Sequence[SubmittedCell], matches: Sequence[Match | None], source: NotebookNode) -> list[bool]:
    """Whether each cell is run as code: it is, or it stands where the course has code."""
    return [
        cell.kind == "code" or bool(found and source.cells[found.place].cell_type == "code")
        for cell, found in zip(cells, matches, strict=True)
    ]


def _set_by(cell: SubmittedCell) -> frozenset[str]:
    """The names that a cell may set at its top level: within `if`, by an import. Nothing of what does not parse."""
    if syntax_tree(cell.source) is None:
        return frozenset()
    names = names_of(without_magics(cell.source))
    return names.binds | names.changes


def _brought_forward(matches: Sequence[Match | None], anchors: Sequence[int], source: NotebookNode) -> list[int]:
    """Places of answers to which an own cell came forward."""
    moved = [anchor for anchor, before in zip(anchors, _followed(matches), strict=True) if anchor != before]
    return [anchor for anchor in moved if anchor >= 0 and is_answer(source.cells[anchor])]


def _defined_outside_locked_cells(
    cells: Sequence[SubmittedCell], matches: Sequence[Match | None], source: NotebookNode
) -> frozenset[str]:
    return frozenset[str]().union(
        *(
            defined_names(cell.source)
            for cell, found in zip(cells, matches, strict=True)
            if cell.kind == "code" and cell.source.strip() and not (found and is_locked(source.cells[found.place]))
        )
    )
