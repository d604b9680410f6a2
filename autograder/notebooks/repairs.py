"""What was mended in a submitted notebook, in few words for the instructor."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from nbformat import NotebookNode

from autograder.notebooks.cells import grade_id, is_answer, is_locked
from autograder.notebooks.matching import How, Match
from autograder.notebooks.reading import SubmittedCell
from autograder.results import Text

MAX_NAMES = 6
"""Cells that a message names; of the others it gives the number."""
OWN_MARKS = frozenset({How.MARKS, How.ID, How.TEXT, How.OPENING})
"""A cell recognised by these is the cell that was given out, or a copy of it."""
FOUND_BY = {
    How.ID: Text(en="their ids", zh="单元格 id"),
    How.TEXT: Text(en="their text", zh="文本"),
    How.DEFINITION: Text(en="what they define", zh="所定义的名字"),
    How.PLACE: Text(en="their place", zh="所在位置"),
}


@dataclass(frozen=True)
class Mended:
    """What fitting did.

    Attributes:
        cells: as submitted, merged ones taken apart and split ones put together.
        matches: for each of them the cell of the release that it is; None for an own cell.
        answered: place in the release -> the submitted cell that stands there.
        untouched: submitted cells that still are what was given out as an answer cell.
        elsewhere: places of answers that other cells define.
        taken_apart: names of locked cells that stood in one cell with an answer.
        put_together: places of answers that were in several pieces.
    """

    cells: Sequence[SubmittedCell]
    matches: Sequence[Match | None]
    answered: Mapping[int, int]
    untouched: AbstractSet[int]
    elsewhere: Sequence[int]
    taken_apart: Sequence[str]
    put_together: Sequence[int]


def repairs_of(mended: Mended, release: NotebookNode) -> Iterator[Text]:
    """One text for each kind of repair, none for an honest notebook, whichever editor saved it."""
    telling = _Telling(mended, release)
    yield from telling.lost_marks()
    yield from telling.pieces()
    yield from telling.other_cells()
    yield from telling.copies()
    yield from telling.types()
    yield from telling.order()
    yield from telling.restored()


class _Telling:
    def __init__(self, mended: Mended, release: NotebookNode) -> None:
        self._mended = mended
        self._given = release.cells
        self._numbers: dict[int, list[int]] = {}  # place in the release -> the submitted cells that are this one
        for number, found in enumerate(mended.matches):
            if found is not None:
                self._numbers.setdefault(found.place, []).append(number)

    def _how(self, number: int) -> How | None:
        found = self._mended.matches[number]
        return found.how if found else None

    def _kept_marks(self, place: int) -> bool:
        return any(self._how(number) is How.MARKS for number in self._numbers.get(place, []))

    def _names(self, places: Iterable[int]) -> Text:
        return _listed([_name(self._given[place]) for place in sorted(set(places))])

    def lost_marks(self) -> Iterator[Text]:
        marked = [place for place in self._numbers if grade_id(self._given[place])]
        lost = [place for place in marked if not self._kept_marks(place)]
        answers: dict[How, list[int]] = {}
        for place in lost:
            how = self._how(self._mended.answered[place])
            if how and is_answer(self._given[place]):
                answers.setdefault(how, []).append(place)
        if lost and len(lost) == len(marked):
            ways = [FOUND_BY[how] for how in FOUND_BY if how in answers]
            yield Text(
                en=f"nbgrader's metadata was gone from all {len(lost)} cells"
                + (f"; answers were found by {_and([way.en for way in ways], ' and ')}" if ways else ""),
                zh=f"全部 {len(lost)} 个单元格都丢失了 nbgrader 元数据"
                + (f"；答案按{_and([way.zh for way in ways], '、')}找到" if ways else ""),
            )
            return
        by_definition, by_place = answers.get(How.DEFINITION, []), answers.get(How.PLACE, [])
        named = self._names(set(lost) - set(by_definition) - set(by_place))
        if named.en:
            yield Text(
                en=f"nbgrader's metadata was gone, found by id or text: {named.en}",
                zh=f"丢失了 nbgrader 元数据，按 id 或文本找到：{named.zh}",
            )

    def pieces(self) -> Iterator[Text]:
        if self._mended.taken_apart:
            named = _listed(list(self._mended.taken_apart))
            yield Text(en=f"taken out of merged cells: {named.en}", zh=f"从合并的单元格中取出：{named.zh}")
        if self._mended.put_together:
            named = self._names(self._mended.put_together)
            yield Text(
                en=f"answers split over several cells, put together: {named.en}",
                zh=f"答案被拆到几个单元格中，已合并：{named.zh}",
            )

    def other_cells(self) -> Iterator[Text]:
        """Answers in cells that were not made for them."""
        all_lost = not any(map(self._kept_marks, self._numbers))
        found: dict[How, list[int]] = {How.DEFINITION: list(self._mended.elsewhere), How.PLACE: []}
        for place, number in self._mended.answered.items():
            how = self._how(number)
            if how in found and not all_lost:
                found[how].append(place)
        if found[How.DEFINITION]:
            named = self._names(found[How.DEFINITION])
            yield Text(
                en=f"answers in other cells, found by what they define: {named.en}",
                zh=f"答案写在别的单元格中，按所定义的名字找到：{named.zh}",
            )
        if found[How.PLACE]:
            named = self._names(found[How.PLACE])
            yield Text(
                en=f"texts in other cells, found by their place: {named.en}",
                zh=f"文字答案写在别的单元格中，按位置找到：{named.zh}",
            )

    def copies(self) -> Iterator[Text]:
        counts: dict[int, int] = {}
        for place, numbers in self._numbers.items():
            own = [number for number in numbers if self._how(number) in OWN_MARKS]
            if len(own) > 1 and grade_id(self._given[place]):
                counts[place] = len(own)
        if counts:
            named = _listed([f"{_name(self._given[place])} ({counts[place]})" for place in sorted(counts)])
            yield Text(
                en=f"more than one copy (of an answer the last one counts): {named.en}",
                zh=f"有多份副本（答案以最后一份为准）：{named.zh}",
            )

    def types(self) -> Iterator[Text]:
        changed: dict[str, list[int]] = {"code": [], "markdown": []}
        for place, number in self._mended.answered.items():
            given = self._given[place]
            counts = is_answer(given) or (given.cell_type == "code" and not is_locked(given))
            if counts and self._mended.cells[number].kind != given.cell_type:
                changed[given.cell_type].append(place)
        if changed["code"]:
            named = self._names(changed["code"])
            yield Text(en=f"not in code cells, run as code: {named.en}", zh=f"不是代码单元格，按代码运行：{named.zh}")
        if changed["markdown"]:
            named = self._names(changed["markdown"])
            yield Text(en=f"in code cells, read as text: {named.en}", zh=f"是代码单元格，按文本读取：{named.zh}")

    def order(self) -> Iterator[Text]:
        places = [found.place for found in self._mended.matches if found and found.how in OWN_MARKS]
        stood = list(dict.fromkeys(places))  # copies are told of by themselves
        moved = set(stood) - set(_rising(stood))
        if moved:
            named = self._names(moved)
            yield Text(
                en=f"cells were in another order; back in their place: {named.en}",
                zh=f"单元格顺序被打乱，已放回原位：{named.zh}",
            )

    def restored(self) -> Iterator[Text]:
        """Locked cells, and code and answers that are not there.

        Where an editor has replaced every id, an open cell that was changed can't be told from one that is gone.
        """
        ids = {cell["id"] for cell in self._given} & {cell.cell_id for cell in self._mended.cells}
        changed, gone = [], []
        for place, given in enumerate(self._given):
            numbers = self._numbers.get(place, [])
            if not numbers:
                if (grade_id(given) or (ids and given.cell_type == "code")) and place not in self._mended.elsewhere:
                    gone.append(place)
            elif is_locked(given) and not any(_is_same(self._mended.cells[number], given) for number in numbers):
                changed.append(place)
        if changed:
            named = self._names(changed)
            yield Text(en=f"changed and restored: {named.en}", zh=f"被改动，已恢复原文：{named.zh}")
        if gone:
            named = self._names(gone)
            yield Text(en=f"missing and put back: {named.en}", zh=f"缺失，已补回：{named.zh}")


def _name(cell: NotebookNode) -> str:
    return grade_id(cell) or str(cell["id"])


def _is_same(cell: SubmittedCell, given: NotebookNode) -> bool:
    """Whether kind and text are those given out; blanks at the ends of lines do not count."""
    return cell.kind == given.cell_type and _lines(cell.source) == _lines(given.source)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def _listed(names: Sequence[str]) -> Text:
    shown, more = list(names[:MAX_NAMES]), len(names) - MAX_NAMES
    if more <= 0:
        return Text(en=", ".join(shown), zh="、".join(shown))
    return Text(en=f"{', '.join(shown)} and {more} more", zh=f"{'、'.join(shown)}等 {len(names)} 个")


def _and(parts: Sequence[str], last: str) -> str:
    """The parts with commas, the last one after `last`."""
    return last.join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)


def _rising(places: Sequence[int]) -> list[int]:
    """A longest part of the list that rises."""
    ends: list[int] = []  # the smallest last element of a rising part of each length
    at: list[int] = []  # and its index
    before: list[int | None] = []
    for index, place in enumerate(places):
        length = bisect_left(ends, place)
        before.append(at[length - 1] if length else None)
        ends[length : length + 1], at[length : length + 1] = [place], [index]
    part: list[int] = []
    index_or_none = at[-1] if at else None
    while index_or_none is not None:
        part.append(places[index_or_none])
        index_or_none = before[index_or_none]
    return part[::-1]
