"""Fitting a submission to the released notebook.

Everything locked comes from the course: tools, tests, hidden tests. From the student come the answers, changes to
cells that are not locked, and cells of their own. The order is the release's; a student's own cell stays behind the
cell that it followed.
"""

from __future__ import annotations

import ast
import copy
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.notebooks.reading import SubmittedCell


@dataclass(frozen=True)
class Fitted:
    """A notebook ready to run.

    Attributes:
        missing: grade ids of answer cells that the submission does not have; the unanswered cell stands there instead.
        found: grade ids of answer cells that it has.
        handed_in: for cells of the course, by id, the outputs that they had when the notebook was handed in.
    """

    notebook: NotebookNode
    missing: tuple[str, ...]
    found: tuple[str, ...]
    handed_in: dict[str, tuple[dict[str, Any], ...]]


def grade_id(cell: NotebookNode) -> str | None:
    """nbgrader's id of a cell of ours, or None."""
    found: str | None = cell.metadata.get("nbgrader", {}).get("grade_id")
    return found


def is_answer(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def is_test(cell: NotebookNode) -> bool:
    """Whether the cell is graded automatically."""
    marks = cell.metadata.get("nbgrader", {})
    return bool(marks.get("grade") and not marks.get("solution"))


def is_locked(cell: NotebookNode) -> bool:
    """Whether the cell's text is the course's own: tests, tools, given code."""
    marks = cell.metadata.get("nbgrader", {})
    return bool(marks) and not marks.get("solution") and bool(marks.get("locked") or marks.get("grade"))


@lru_cache(maxsize=1024)
def defined_names(source: str) -> frozenset[str]:
    """Functions, classes and variables that the code defines at its top level; nothing if it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\\d" in somebody's string
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # A cell that does not parse is often an answer with a slip in it: its `def` lines still tell which.
        return frozenset(re.findall(r"^(?:def|class) +(\w+)", source, flags=re.MULTILINE))
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name))
    return frozenset(names)


def fit(cells: Sequence[SubmittedCell], source: NotebookNode, release: NotebookNode) -> Fitted:
    """Make one runnable notebook of a submission.

    Args:
        cells: what was submitted.
        source: the instructor's notebook; its test cells hold the hidden tests.
        release: the student's notebook, cell for cell the same ids; its answer cells hold the stubs.
    """
    stubs = {cell["id"]: cell for cell in release.cells}
    places = _match(cells, source, release)
    answered: dict[int, int] = {}  # place in the release -> the submitted cell that stands there
    untouched: set[int] = set()  # submitted cells that still are what was given out as an answer cell
    for number, place in enumerate(places):
        if place is None:
            continue
        if is_answer(source.cells[place]) and cells[number].source.strip() == release.cells[place].source.strip():
            untouched.add(number)
        if place not in answered or (is_answer(source.cells[place]) and number not in untouched):
            answered[place] = number  # of several copies of an answer the last one counts, as it would when run
    extras: dict[int, list[NotebookNode]] = {}  # place in the release -> what stands behind it
    copies: dict[int, list[NotebookNode]] = {}  # place in the release -> earlier copies, in front of it
    anchor = -1
    for number, place in enumerate(places):
        if place is None:
            extras.setdefault(anchor, []).append(_own_cell(cells[number], number))
            continue
        anchor = place
        if answered[place] == number or number in untouched or is_locked(source.cells[place]):
            continue
        behind = copies if number < answered[place] else extras
        behind.setdefault(place, []).append(_own_cell(cells[number], number))
    result = copy.copy(source)
    result.metadata = NotebookNode({key: source.metadata[key] for key in ("kernelspec", "language_info")})
    result.cells = list(extras.get(-1, []))
    missing: list[str] = []
    found: list[str] = []
    elsewhere = frozenset[str]().union(
        *(defined_names(cell.source) for cell in cells if cell.kind == "code" and cell.source.strip())
    )
    for place, original in enumerate(source.cells):
        wanted = defined_names(original.source) if is_answer(original) and original.cell_type == "code" else frozenset()
        if place not in answered and wanted and wanted <= elsewhere:
            # Written in another cell. The stub here would undo it.
            found.append(grade_id(original) or "")
            result.cells += extras.get(place, [])
            continue
        given = stubs[original["id"]] if is_answer(original) else original
        cell = NotebookNode({**given, "metadata": copy.deepcopy(given.metadata)})
        if is_answer(original):
            (found if place in answered else missing).append(grade_id(original) or "")
        if place in answered and not is_locked(original):
            cell.source = cells[answered[place]].source
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        result.cells += [*copies.get(place, []), cell, *extras.get(place, [])]
    handed_in = {source.cells[place]["id"]: cells[number].outputs for place, number in answered.items()}
    return Fitted(result, tuple(missing), tuple(found), handed_in)


def _own_cell(cell: SubmittedCell, number: int) -> NotebookNode:
    name = f"own-{number}"
    found: NotebookNode = (
        new_code_cell(cell.source, id=name) if cell.kind == "code" else new_markdown_cell(cell.source, id=name)
    )
    return found


def _match(cells: Sequence[SubmittedCell], source: NotebookNode, release: NotebookNode) -> list[int | None]:
    """Each submitted cell's place in the release: by its marks, by id, by text, by what it defines, by where it is."""
    by_grade_id = {grade_id(cell): place for place, cell in enumerate(source.cells) if grade_id(cell)}
    by_id = {cell["id"]: place for place, cell in enumerate(source.cells)}
    by_text = {cell.source.strip(): by_id[cell["id"]] for cell in release.cells if cell.source.strip()}
    places: list[int | None] = []
    for cell in cells:
        place = by_grade_id.get(cell.grade_id) if cell.grade_id else None
        if place is None and cell.cell_id:
            place = by_id.get(cell.cell_id)
        if place is None:
            place = by_text.get(cell.source.strip())
        places.append(place)
    taken = {place for place in places if place is not None}
    for place, original in enumerate(source.cells):
        if place in taken or not is_answer(original) or original.cell_type != "code":
            continue
        wanted = defined_names(original.source)
        for number in reversed(range(len(cells))):
            if places[number] is None and cells[number].kind == "code" and wanted & defined_names(cells[number].source):
                places[number] = place
                break
    _match_texts(cells, release, places)
    tests = {grade_id(cell): place for place, cell in enumerate(source.cells) if is_test(cell)}
    for number, cell in enumerate(cells):  # copies of our own test cells whose metadata is gone
        opening = re.match(r'\s*with check\("([a-z0-9-]+)"\):', cell.source)
        if places[number] is None and opening:
            places[number] = tests.get(f"test-{opening.group(1)}")
    return places


def _match_texts(cells: Sequence[SubmittedCell], release: NotebookNode, places: list[int | None]) -> None:
    """Give a text answer the text that stands in its place, when its cell is gone, unmarked or untouched.

    That is a text of the student's own between the cells around it: the one that opens as the released text does, else
    the first.
    """
    for place, original in enumerate(release.cells):
        if not is_answer(original) or original.cell_type != "markdown":
            continue
        if any(
            found == place and cells[number].source.strip() != original.source.strip()
            for number, found in enumerate(places)
        ):
            continue
        before = max(
            (number for number, found in enumerate(places) if found is not None and found <= place), default=-1
        )
        after = next(
            (number for number, found in enumerate(places) if number > before and found is not None), len(cells)
        )
        own = [
            number for number in range(before + 1, after) if cells[number].kind == "markdown" and cells[number].source
        ]
        opening = original.source.strip().partition("\n")[0]
        alike = [number for number in own if cells[number].source.strip().startswith(opening)]
        if own:
            places[(alike or own)[0]] = place
