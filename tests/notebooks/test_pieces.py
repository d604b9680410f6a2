"""Answers in several pieces, or in one cell with something else: each is whole again, and nothing else is touched."""

from __future__ import annotations

import copy
import random

import pytest
from nbformat import NotebookNode

from autograder.notebooks.cells import is_test
from tests.notebooks.helpers import MASK_ANSWER, PAIR_ANSWER, Cells, Fit, code, ids, position, source_of
from tests.notebooks.test_fitting import LOCKED, disturb

CLASS = """class pair_frequencies:
    def __init__(self):
        self.scale = 2

    def __call__(self, d_model):
        scaled = (
            d_model
            * self.scale
        )
        return scaled"""


def put(notebook: NotebookNode, name: str, *sources: str, same_marks: bool = False) -> None:
    """These code cells in the stead of the cell with this id; the first one keeps its id and marks."""
    place = position(notebook, name)
    first = notebook.cells[place]
    rest = []
    for number, source in enumerate(sources[1:]):
        piece = copy.deepcopy(first) if same_marks else code("")
        piece["id"], piece.source = f"piece-{number}", source
        rest.append(piece)
    first.source = sources[0]
    notebook.cells[place + 1 : place + 1] = rest


def cuts(text: str) -> list[tuple[str, str]]:
    """The text cut in two at each of its line ends."""
    lines = text.split("\n")
    return [("\n".join(lines[:cut]), "\n".join(lines[cut:])) for cut in range(1, len(lines))]


@pytest.mark.parametrize("same_marks", [False, True], ids=["second without marks", "same marks"])
@pytest.mark.parametrize("pieces", [*cuts(PAIR_ANSWER), *cuts(CLASS)], ids=lambda pieces: repr(pieces[0][-12:]))
def test_an_answer_cut_in_two_is_whole_again(
    fitted: Fit, submission: NotebookNode, tiny_source: NotebookNode, pieces: tuple[str, str], same_marks: bool
) -> None:
    """Wherever the cut is: behind the `def`, within brackets, between methods."""
    put(submission, "pair-frequencies", *pieces, same_marks=same_marks)
    result = fitted(submission)
    assert source_of(result.notebook, "pair-frequencies") == "\n".join(pieces)
    assert ids(result.notebook) == ids(tiny_source)


def test_an_answer_in_four_pieces_is_whole_again(fitted: Fit, submission: NotebookNode) -> None:
    """Three are code by themselves, without their indentation."""
    pieces = ["def pair_frequencies(d_model):", "    x = d_model", "    x += 1", "    return x"]
    put(submission, "pair-frequencies", *pieces)
    assert source_of(fitted(submission).notebook, "pair-frequencies") == "\n".join(pieces)


NOT_SPLIT = {
    "two functions": (PAIR_ANSWER, "def helper():\n    return 1"),
    "own cell with a slip": (PAIR_ANSWER, "print(pair_frequencies(3)"),
    "own cell that is indented": (PAIR_ANSWER, "    print(pair_frequencies(3))"),
    "answer with a slip": ("def pair_frequencies(d_model)\n    return 1", "x = 1"),
    "a magic": (PAIR_ANSWER, "%timeit pair_frequencies(3)"),
    "a return by mistake": (PAIR_ANSWER, "return pair_frequencies(3)"),
    "nothing": (PAIR_ANSWER, "\n"),
}


@pytest.mark.parametrize("pieces", NOT_SPLIT.values(), ids=NOT_SPLIT)
def test_what_was_not_split_is_not_joined(fitted: Fit, submission: NotebookNode, pieces: tuple[str, str]) -> None:
    """An own cell below an answer stays a cell."""
    put(submission, "pair-frequencies", *pieces)
    result = fitted(submission)
    assert source_of(result.notebook, "pair-frequencies") == pieces[0]
    assert pieces[1] in [cell.source for cell in result.notebook.cells]
    assert result.repairs == ()


@pytest.mark.parametrize("kept", ["answer", "test", "neither"])
@pytest.mark.parametrize("form", ["{answer}\n\n{test}", "{test}\n{answer}\n", "x = 1\n\n{answer}\n{test}\n\ny = 2"])
def test_an_answer_merged_with_its_test_is_taken_out(
    fitted: Fit, submission: NotebookNode, tiny_source: NotebookNode, kept: str, form: str
) -> None:
    """Whosever marks the merged cell has: the test is the course's, the answer has no line of it."""
    answer, test = (submission.cells[position(submission, name)] for name in ("causal-mask", "test-causal-mask"))
    merged, gone = (test, answer) if kept == "test" else (answer, test)
    merged.source = form.format(answer=answer.source, test=test.source)
    if kept == "neither":
        merged.metadata, merged["id"] = {}, "fresh"
    submission.cells.remove(gone)
    result = fitted(submission)
    assert [name for name in ids(result.notebook) if not name.startswith("own-")] == ids(tiny_source)
    assert MASK_ANSWER in source_of(result.notebook, "causal-mask")
    for cell in result.notebook.cells:
        assert ("with check(" in cell.source) == is_test(cell)
    said = [repair.en for repair in result.repairs if "another order" not in repair.en]
    assert said == ["taken out of merged cells: test-causal-mask"]


def test_what_is_added_to_a_test_is_still_dropped(
    fitted: Fit, submission: NotebookNode, tiny_source: NotebookNode
) -> None:
    """Only an answer is taken out of a locked cell; anything else written there goes, as before."""
    cell = submission.cells[position(submission, "test-causal-mask")]
    cell.source = f"check = print\n{cell.source}\ngrade = print"
    result = fitted(submission)
    assert ids(result.notebook) == ids(tiny_source)
    assert [repair.en for repair in result.repairs] == ["changed and restored: test-causal-mask"]


def test_an_answer_written_over_its_test_counts(
    fitted: Fit, submission: NotebookNode, tiny_source: NotebookNode
) -> None:
    """In the locked cell, whose text is gone."""
    submission.cells[position(submission, "test-causal-mask")].source = MASK_ANSWER
    del submission.cells[position(submission, "causal-mask")]
    result = fitted(submission)
    assert ids(result.notebook) == ids(tiny_source)
    assert source_of(result.notebook, "causal-mask") == MASK_ANSWER


class TestAnswersInOwnCells:
    """Where the cell made for an answer is as it was given out, or does not define it."""

    STUBS = ("pair-frequencies", "causal-mask")

    @pytest.fixture
    def blank(self, submission: NotebookNode, tiny_release: NotebookNode) -> NotebookNode:
        for name in self.STUBS:
            stub = tiny_release.cells[position(tiny_release, name)]
            submission.cells[position(submission, name)].source = stub.source
        return submission

    @pytest.mark.parametrize("where", [0, -1], ids=["at the top", "at the end"])
    def test_they_come_to_their_place(
        self, fitted: Fit, blank: NotebookNode, tiny_source: NotebookNode, where: int
    ) -> None:
        """The untouched cell would undo one at the top; the test would run before one at the end."""
        own = [code(PAIR_ANSWER), code(MASK_ANSWER)]
        blank.cells = [*own, *blank.cells] if where == 0 else [*blank.cells, *own]
        result = fitted(blank)
        assert ids(result.notebook) == ids(tiny_source)
        assert source_of(result.notebook, "pair-frequencies") == PAIR_ANSWER
        assert source_of(result.notebook, "causal-mask") == MASK_ANSWER

    def test_right_below_they_stay_where_they_are(self, fitted: Fit, blank: NotebookNode) -> None:
        """Nothing needs to be done there: a helper in front of the answer stays in front of it."""
        place = position(blank, "test-causal-mask")
        blank.cells[place:place] = [code("size = 3"), code(MASK_ANSWER + "\n\nassert size")]
        result = fitted(blank)
        place = position(result.notebook, "test-causal-mask")
        assert [cell.source for cell in result.notebook.cells[place - 2 : place]] == [
            "size = 3",
            MASK_ANSWER + "\n\nassert size",
        ]
        assert result.repairs == ()

    def test_what_they_need_comes_along_in_front(self, fitted: Fit, blank: NotebookNode) -> None:
        """Helpers of helpers too, in their order; nothing else moves."""
        chain = ["import math", "unrelated = 1", "turn = math.pi", "def helper(x=turn):\n    return x"]
        answer = "def causal_mask(length, device=None):\n    return helper()"
        blank.cells += [*map(code, chain), code(answer)]
        notebook = fitted(blank).notebook
        place = position(notebook, "causal-mask")
        assert notebook.cells[place].source == answer
        assert [cell.source for cell in notebook.cells[place - 2 : place]] == [chain[2], chain[3]]
        assert notebook.cells[-1].source == "unrelated = 1"

    def test_one_variable_of_a_like_name_is_no_answer(
        self, fitted: Fit, submission: NotebookNode, tiny_source: NotebookNode
    ) -> None:
        """An answer that is there stays, whatever own cells define."""
        submission.cells.append(code("causal_mask = 3"))
        result = fitted(submission)
        assert source_of(result.notebook, "causal-mask") == MASK_ANSWER
        assert [name for name in ids(result.notebook) if not name.startswith("own-")] == ids(tiny_source)
        assert result.notebook.cells[-1].source == "causal_mask = 3"


def merge_or_split(cells: Cells, chance: random.Random) -> None:
    """What an editor's menu does to cells."""
    at = chance.randrange(len(cells))
    if chance.random() < 0.5 and at + 1 < len(cells):
        cells[at].source += "\n\n" + cells.pop(at + 1).source
    else:
        lines = cells[at].source.split("\n")
        cut = chance.randint(0, len(lines))
        half = copy.deepcopy(cells[at])
        cells[at].source, half.source = "\n".join(lines[:cut]), "\n".join(lines[cut:])
        cells.insert(at + 1, half)


@pytest.mark.parametrize("block", range(4))
def test_whatever_is_merged_and_split_the_tests_are_the_courses(
    fitted: Fit, submission: NotebookNode, tiny_source: NotebookNode, block: int
) -> None:
    """200 histories: each locked cell once, as it was, in order; ids unique; each answer found or missing."""
    locked = {cell["id"]: cell.source for cell in tiny_source.cells if cell["id"] in LOCKED}
    for seed in range(50 * block, 50 * block + 50):
        chance = random.Random(seed)
        disturbed = copy.deepcopy(submission)
        for _ in range(chance.randint(1, 8)):
            if disturbed.cells and chance.random() < 0.7:
                merge_or_split(disturbed.cells, chance)
            else:
                disturb(disturbed.cells, chance)
        result = fitted(disturbed)
        found = result.notebook.cells
        assert {cell["id"]: cell.source for cell in found if cell["id"] in LOCKED} == locked, seed
        assert [cell["id"] for cell in found if cell["id"] in LOCKED] == list(locked), seed
        assert len({cell["id"] for cell in found}) == len(found), seed
        assert sorted((*result.missing, *result.found)) == ["causal-mask", "pair-frequencies", "reflection"], seed
        assert len(result.repairs) <= 9, seed
        assert all(len(repair.en) < 200 for repair in result.repairs), seed


@pytest.mark.parametrize("count", [5, 8])
def test_many_pieces_are_one_answer(fitted: Fit, submission: NotebookNode, count: int) -> None:
    """As many as anybody cuts by accident."""
    pieces = ["def pair_frequencies(d_model):", *["    d_model += 1"] * (count - 2), "    return d_model"]
    put(submission, "pair-frequencies", *pieces)
    assert source_of(fitted(submission).notebook, "pair-frequencies") == "\n".join(pieces)


def test_of_too_many_pieces_none_are_joined(fitted: Fit, submission: NotebookNode) -> None:
    """An answer without its end would be told to be put together, and return nothing."""
    pieces = ["def pair_frequencies(d_model):", *["    d_model += 1"] * 7, "    return d_model"]
    put(submission, "pair-frequencies", *pieces)
    result = fitted(submission)
    assert source_of(result.notebook, "pair-frequencies") == pieces[0]
    assert not any("put together" in repair.en for repair in result.repairs)


def test_what_is_too_long_to_be_split_by_accident_is_not_joined(fitted: Fit, submission: NotebookNode) -> None:
    """It would be parsed from every one of its pieces."""
    pieces = ["if 1:\n" + " d_model = 1\n" * 1700, PAIR_ANSWER.replace("\n", "\n\n")]
    put(submission, "pair-frequencies", *pieces)
    assert "put together" not in " ".join(repair.en for repair in fitted(submission).repairs)


def test_a_draft_of_a_method_stays_out_of_the_class(fitted: Fit, submission: NotebookNode) -> None:
    """Jupyter runs it as a function of its own; a method that the class lacks belongs to it."""
    draft = "    def __call__(self, d_model):\n        return 'draft'"
    put(submission, "pair-frequencies", CLASS, draft)
    result = fitted(submission)
    assert source_of(result.notebook, "pair-frequencies") == CLASS
    assert draft in [cell.source for cell in result.notebook.cells]
    lacking = draft.replace("__call__", "more")
    put(submission, "pair-frequencies", CLASS, lacking)
    assert source_of(fitted(submission).notebook, "pair-frequencies") == f"{CLASS}\n{lacking}"


def test_an_indented_answer_is_no_part_of_the_cell_above(fitted: Fit, submission: NotebookNode) -> None:
    """IPython takes the indentation of a whole cell away."""
    helper = "def helper(n):\n    return n"
    indented = "\n".join("    " + line for line in PAIR_ANSWER.split("\n"))
    place = position(submission, "pair-frequencies")
    submission.cells[place].source = indented
    submission.cells.insert(place, code(helper))
    result = fitted(submission)
    assert source_of(result.notebook, "pair-frequencies") == indented
    assert helper in [cell.source for cell in result.notebook.cells]


def test_a_piece_belongs_to_the_answer_that_it_defines(
    fitted: Fit, submission: NotebookNode, tiny_release: NotebookNode
) -> None:
    """Whatever marks the cell had in which several were merged."""
    merged = "\n\n".join([PAIR_ANSWER, source_of(tiny_release, "test-pair-frequencies"), MASK_ANSWER])
    submission.cells[position(submission, "causal-mask")].source = merged
    for name in ("pair-frequencies", "test-pair-frequencies"):
        del submission.cells[position(submission, name)]
    result = fitted(submission)
    assert source_of(result.notebook, "pair-frequencies") == PAIR_ANSWER
    assert source_of(result.notebook, "causal-mask") == MASK_ANSWER
    assert not any("copy" in repair.en for repair in result.repairs)
