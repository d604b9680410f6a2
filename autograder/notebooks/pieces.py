"""Cells that were merged are taken apart, answers that were split are put together."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from nbformat import NotebookNode

from autograder.notebooks.cells import defined_names, grade_id, is_answer, is_locked
from autograder.notebooks.matching import Match
from autograder.notebooks.reading import SubmittedCell
from autograder.syntax import syntax_tree

LONG_ENOUGH = 40
"""Characters. A locked text with fewer is not looked for inside other cells."""
MAX_PIECES = 8
MAX_JOINED_CHARACTERS = 20_000
"""Of one answer: what is longer was not split by accident."""


@dataclass(frozen=True)
class TakenApart:
    """Submitted cells of which none holds a locked cell's text beside an answer; `names` are those locked cells."""

    cells: tuple[SubmittedCell, ...]
    names: tuple[str, ...]


def taken_apart(cells: Sequence[SubmittedCell], source: NotebookNode, release: NotebookNode) -> TakenApart:
    """Take the texts of locked cells out of cells that hold an answer too, as editors merge them.

    Left where it stood, such a test would be read as part of the answer; and an answer merged into a test cell would be
    lost when that cell is restored.
    """
    locked = {
        cell.source.strip(): grade_id(cell) or ""
        for cell in release.cells
        if is_locked(cell) and cell.cell_type == "code" and len(cell.source.strip()) >= LONG_ENOUGH
    }
    answers = {
        grade_id(cell) or "": defined_names(cell.source)
        for cell in source.cells
        if is_answer(cell) and cell.cell_type == "code"
    }
    result: list[SubmittedCell] = []
    names: list[str] = []
    for cell in cells:
        whole = cell.source.strip()
        inside = [text for text in locked if text in whole and text != whole] if cell.kind == "code" else []
        pieces = _cut(whole, inside) if inside else []
        if not any(
            names & defined_names(piece) for piece in pieces if piece not in locked for names in answers.values()
        ):
            result.append(cell)
            continue
        for piece in pieces:
            if piece in locked:
                names.append(locked[piece])
                result.append(SubmittedCell("code", piece, locked[piece], None))
                continue
            defined = defined_names(piece)
            owner = next((name for name, wanted in answers.items() if wanted & defined), None)
            result.append(SubmittedCell("code", piece, owner, None))
    return TakenApart(tuple(result), tuple(dict.fromkeys(names)))


def _cut(whole: str, inside: Sequence[str]) -> list[str]:
    """The text cut at these texts, they themselves included, nothing blank."""
    pieces = re.split("(" + "|".join(map(re.escape, sorted(inside, key=len, reverse=True))) + ")", whole)
    return [piece.strip() if piece in inside else piece.strip("\n").rstrip() for piece in pieces if piece.strip()]


@dataclass(frozen=True)
class PutTogether:
    """Submitted cells and their matches, split answers in one cell each; `places` are theirs in the release."""

    cells: tuple[SubmittedCell, ...]
    matches: tuple[Match | None, ...]
    places: tuple[int, ...]


def put_together(cells: Sequence[SubmittedCell], matches: Sequence[Match | None], source: NotebookNode) -> PutTogether:
    """Join neighbouring cells that are one answer cut in the middle of a function or a class.

    That is an answer and own cells, or halves with the same marks, of which one is no code by itself, while together
    they are.
    """
    joined_cells: list[SubmittedCell] = []
    joined: list[Match | None] = []
    places: list[int] = []
    number = 0
    while number < len(cells):
        count = _pieces_of_one_answer(cells, matches, source, number)
        run = cells[number : number + count]
        match = next((match for match in matches[number : number + count] if match is not None), None)
        if count > 1 and match is not None:
            places.append(match.place)
            first = next(cell for cell, found in zip(run, matches[number:], strict=False) if found is match)
            joined_cells.append(replace(first, source="\n".join(cell.source for cell in run), outputs=run[-1].outputs))
        else:
            joined_cells.append(cells[number])
        joined.append(match)
        number += count
    return PutTogether(tuple(joined_cells), tuple(joined), tuple(places))


def _pieces_of_one_answer(
    cells: Sequence[SubmittedCell], matches: Sequence[Match | None], source: NotebookNode, start: int
) -> int:
    """How many cells from here on are one answer; 1 where nothing was split."""
    places: set[int] = set()
    best = 1
    for count in range(1, MAX_PIECES + 1):
        end = start + count
        if end > len(cells) or cells[end - 1].kind != "code" or not cells[end - 1].source.strip():
            break
        found = matches[end - 1]
        if found is not None:
            places.add(found.place)
        if len(places) > 1 or any(not is_answer(source.cells[place]) for place in places):
            break
        run = [cell.source for cell in cells[start:end]]
        text = "\n".join(run)
        if len(text) > MAX_JOINED_CHARACTERS or (best > 1 and not _continues(run[-1])):
            break
        if count > 1 and found is not None and _is_an_answer(run[-1], source.cells[found.place]):
            break  # it begins here, however it is indented
        if count > 1 and _methods("\n".join(run[:-1])) & defined_names(textwrap.dedent(run[-1])):
            break  # a draft of a method that the class has
        if count > 1 and places:
            best = count if _is_whole(text) and not all(map(_is_whole, run)) else best
    following = start + best
    if best == MAX_PIECES and following < len(cells) and _continues(cells[following].source):
        return 1  # a part of it would be worse than none
    return best


def _is_an_answer(text: str, original: NotebookNode) -> bool:
    """Whether the code, which may be indented as a whole, defines all that the course's answer cell does."""
    text = textwrap.dedent(text)
    return syntax_tree(text) is not None and defined_names(original.source) <= defined_names(text)


def _methods(text: str) -> frozenset[str]:
    """What the classes of the code define."""
    tree = syntax_tree(textwrap.dedent(text))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)] if tree else []
    return frozenset(part.name for node in classes for part in node.body if isinstance(part, ast.FunctionDef))


def _continues(text: str) -> bool:
    """Whether the code begins indented, as what was cut off a function does."""
    return text.lstrip("\n")[:1] in (" ", "\t")


@lru_cache(maxsize=1024)
def _is_whole(text: str) -> bool:
    """Whether the code can stand in a cell of its own. IPython takes away the indentation of a whole cell."""
    if re.match(r"[ \t]+(?:def|async|class|@)", text.lstrip("\n")):
        return False  # a method
    tree = syntax_tree(textwrap.dedent(text))
    return tree is not None and not _returns_outside(tree)


def _returns_outside(tree: ast.Module) -> bool:
    """Whether there is a `return` outside every function."""
    nodes: list[ast.AST] = list(tree.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Return):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.expr)):
            nodes += ast.iter_child_nodes(node)
    return False
