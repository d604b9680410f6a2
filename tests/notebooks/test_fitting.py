"""Fitting a submission to the release: the course's cells are the course's, the answers are the student's."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.errors import UnreadableNotebook
from autograder.notebooks.cells import defined_names, grade_id, is_answer, is_test
from autograder.notebooks.fitting import Fitted
from tests.conftest import TINY
from tests.notebooks.helpers import MASK_ANSWER, PAIR_ANSWER, Cells, code, ids, position, source_of


def test_an_honest_submission_is_the_source_with_its_answers(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode, tiny_source: NotebookNode
) -> None:
    """Same cells, same order, hidden tests in place, the answers the student's, no outputs."""
    result = fitted(submission)
    assert ids(result.notebook) == ids(tiny_source)
    assert source_of(result.notebook, "pair-frequencies") == PAIR_ANSWER
    assert source_of(result.notebook, "reflection") == "I saw dots."
    assert 'grade("pair-frequencies"' in source_of(result.notebook, "test-pair-frequencies")
    assert (result.missing, result.found) == ((), ("pair-frequencies", "causal-mask", "reflection"))
    assert all(cell.outputs == [] for cell in result.notebook.cells if cell.cell_type == "code")
    nbformat.validate(result.notebook)


def test_fitting_changes_neither_source_nor_release(
    fitted: Callable[[NotebookNode], Fitted],
    submission: NotebookNode,
    tiny_source: NotebookNode,
    tiny_release: NotebookNode,
) -> None:
    """Both serve a whole class."""
    before = copy.deepcopy((tiny_source, tiny_release))
    result = fitted(submission)
    for cell in result.notebook.cells:
        cell.source = "overwritten"
        cell.metadata["touched"] = True
    assert (tiny_source, tiny_release) == before


def test_the_untouched_release_is_unanswered_and_complete(
    fitted: Callable[[NotebookNode], Fitted], tiny_release: NotebookNode
) -> None:
    """Its stubs are answers, which say that there is none yet; no solution leaks in from the source."""
    result = fitted(tiny_release)
    assert result.missing == ()
    assert "NotImplementedError" in source_of(result.notebook, "pair-frequencies")
    assert "arange" not in source_of(result.notebook, "pair-frequencies")


@pytest.mark.parametrize("name", ["pair-frequencies", "causal-mask", "reflection"])
def test_a_missing_answer_is_the_stub(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode, tiny_release: NotebookNode, name: str
) -> None:
    """Never the solution; the other answers stay."""
    submission.cells = [cell for cell in submission.cells if cell["id"] != name]
    result = fitted(submission)
    assert result.missing == (name,)
    assert source_of(result.notebook, name) == source_of(tiny_release, name)
    assert len(result.found) == 2


def test_an_empty_notebook_has_nothing(fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode) -> None:
    """Every answer is missing and none found: the grader rejects it by that."""
    submission.cells = []
    result = fitted(submission)
    assert (result.found, len(result.missing)) == ((), 3)


LOCKED = ("tools", "test-pair-frequencies", "test-causal-mask")


@pytest.mark.parametrize("name", LOCKED)
@pytest.mark.parametrize("change", ["edited", "emptied", "deleted", "made markdown", "moved up"])
def test_a_locked_cell_is_restored(
    fitted: Callable[[NotebookNode], Fitted],
    submission: NotebookNode,
    tiny_source: NotebookNode,
    name: str,
    change: str,
) -> None:
    """Tools and tests, hidden ones included, are the course's, whatever was done to them."""
    (cell,) = [cell for cell in submission.cells if cell["id"] == name]
    if change == "edited":
        cell.source = "grade = lambda *_: 100"
    elif change == "emptied":
        cell.source = ""
    elif change == "deleted":
        submission.cells.remove(cell)
    elif change == "made markdown":
        cell.cell_type = "markdown"
    else:
        submission.cells.remove(cell)
        submission.cells.insert(0, cell)
    result = fitted(submission)
    assert ids(result.notebook) == ids(tiny_source)
    assert source_of(result.notebook, name) == source_of(tiny_source, name)


def test_tags_and_foreign_metadata_are_dropped(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode
) -> None:
    """A submitted skip-execution, Colab's marks and a kernel of another name do not get in."""
    submission.metadata = {"kernelspec": {"name": "malicious", "display_name": "x"}, "widgets": {}, "colab": {}}
    for cell in submission.cells:
        cell.metadata["tags"] = ["skip-execution", "raises-exception"]
        cell.metadata["colab"] = {"id": 1}
    submission.cells.insert(4, code("x = 1", tags=["skip-execution"]))
    notebook = fitted(submission).notebook
    assert notebook.metadata.kernelspec.name == "python3"
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert not any("tags" in cell.metadata or "colab" in cell.metadata for cell in notebook.cells)


def test_an_own_cell_stays_behind_its_neighbour(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode, tiny_source: NotebookNode
) -> None:
    """A helper before the answer runs before it; a cell at the top stays at the top, one at the end at the end."""
    place = position(submission, "pair-frequencies")
    submission.cells.insert(place, code("helper = 1"))
    submission.cells.insert(place + 1, code("second_helper = 2"))
    submission.cells.insert(0, code("first = 0"))
    submission.cells.append(nbformat.v4.new_markdown_cell("goodbye"))
    notebook = fitted(submission).notebook
    sources = [cell.source for cell in notebook.cells]
    place = position(notebook, "pair-frequencies")
    assert sources[0] == "first = 0"
    assert sources[place - 2 : place] == ["helper = 1", "second_helper = 2"]
    assert sources[-1] == "goodbye"
    assert [name for name in ids(notebook) if not name.startswith("own-")] == ids(tiny_source)
    assert len(set(ids(notebook))) == len(ids(notebook))


def test_changes_to_open_cells_are_kept(fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode) -> None:
    """A student may import something in the imports cell and play with an experiment."""
    submission.cells[position(submission, "imports")].source = "import torch\nimport math"
    notebook = fitted(submission).notebook
    assert source_of(notebook, "imports") == "import torch\nimport math"


def test_an_edited_copy_of_an_open_cell_is_an_own_cell(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode
) -> None:
    """JupyterLab copies a cell with its name: what was written into the copy must not get lost."""
    place = position(submission, "imports")
    copied = copy.deepcopy(submission.cells[place])
    copied["id"], copied.source = "fresh", "def helper():\n    return 1"
    submission.cells.insert(place + 1, copied)
    notebook = fitted(submission).notebook
    assert source_of(notebook, "imports") == "import torch"
    assert notebook.cells[position(notebook, "imports") + 1].source == copied.source


def runs_last(notebook: NotebookNode, name: str, test: str) -> str:
    """The source that defines `name` when the test cell runs: the last definition before it."""
    before = notebook.cells[: position(notebook, test)]
    return [cell.source for cell in before if cell.cell_type == "code" and name in defined_names(cell.source)][-1]


@pytest.mark.parametrize("distance", [1, 3])
def test_of_two_copies_of_an_answer_the_last_one_counts(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode, distance: int
) -> None:
    """As it would when run: the earlier copy stays, and stays in front."""
    place = position(submission, "pair-frequencies")
    copied = copy.deepcopy(submission.cells[place])
    copied["id"], copied.source = "fresh", PAIR_ANSWER.replace("mine", "newer")
    submission.cells.insert(place + distance, copied)
    notebook = fitted(submission).notebook
    assert source_of(notebook, "pair-frequencies") == copied.source
    assert runs_last(notebook, "pair_frequencies", "test-pair-frequencies") == copied.source
    assert PAIR_ANSWER in [cell.source for cell in notebook.cells]


def test_a_copied_test_cell_is_there_once(fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode) -> None:
    """With its metadata or without it, a copy of a test earns nothing twice."""
    for name in ("test-pair-frequencies", "test-causal-mask"):
        copied = copy.deepcopy(submission.cells[position(submission, name)])
        submission.cells.append(copied)
        submission.cells.append(code(copied.source))
        submission.cells.append(code(copied.source + "\nprint('mine')"))
    notebook = fitted(submission).notebook
    tests = [cell for cell in notebook.cells if 'with check("' in cell.source]
    assert [grade_id(cell) for cell in tests] == ["test-pair-frequencies", "test-causal-mask"]


def test_moved_answers_come_back_to_their_place(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode, tiny_source: NotebookNode
) -> None:
    """All cells in reverse order: the release's order, the student's answers."""
    submission.cells.reverse()
    result = fitted(submission)
    assert ids(result.notebook) == ids(tiny_source)
    assert source_of(result.notebook, "pair-frequencies") == PAIR_ANSWER
    assert result.missing == ()


def test_stripped_metadata_is_no_loss(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode, tiny_source: NotebookNode
) -> None:
    """Without any metadata or id, answers are found by what they define, texts by their place, the rest by its text."""
    for cell in submission.cells:
        cell.metadata = {}
        del cell["id"]
    result = fitted(submission)
    assert source_of(result.notebook, "pair-frequencies") == PAIR_ANSWER
    assert source_of(result.notebook, "causal-mask") == MASK_ANSWER
    assert source_of(result.notebook, "reflection") == "I saw dots."
    assert result.missing == ()
    assert ids(result.notebook) == ids(tiny_source)


@pytest.mark.parametrize(
    ("texts", "answer", "own"),
    [
        (["First, a note.", "YOUR ANSWER HERE\n\nDots."], "YOUR ANSWER HERE\n\nDots.", ["First, a note."]),
        (["Dots.", "And more dots."], "Dots.", ["And more dots."]),
        ([], None, []),
    ],
    ids=["the one that keeps the first line", "the first", "deleted"],
)
def test_a_text_without_metadata_is_found_by_its_place(
    fitted: Callable[[NotebookNode], Fitted],
    submission: NotebookNode,
    tiny_source: NotebookNode,
    texts: list[str],
    answer: str | None,
    own: list[str],
) -> None:
    """Notes elsewhere in the notebook are not taken for it; what else stands in the place stays as a note."""
    submission.cells[-1:] = [nbformat.v4.new_markdown_cell(text) for text in texts]
    submission.cells.insert(1, nbformat.v4.new_markdown_cell("What did you see? A note of mine, far away."))
    for cell in submission.cells:
        cell.metadata = {}
        cell.pop("id", None)
    result = fitted(submission)
    assert source_of(result.notebook, "reflection") == (answer or "YOUR ANSWER HERE")
    assert result.missing == (() if answer else ("reflection",))
    notes = [cell.source for cell in result.notebook.cells if cell["id"].startswith("own-")]
    assert notes == ["What did you see? A note of mine, far away.", *own]


def test_ids_alone_are_enough(fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode) -> None:
    """An editor that drops metadata and keeps cell ids loses nothing, free text included."""
    for cell in submission.cells:
        cell.metadata = {}
    result = fitted(submission)
    assert result.missing == ()
    assert source_of(result.notebook, "reflection") == "I saw dots."


@pytest.mark.parametrize("kind", ["markdown", "raw", "nonsense"])
def test_an_answer_whose_cell_type_changed_still_counts(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode, kind: str
) -> None:
    """The cell is the course's code cell again, with the student's text."""
    submission.cells[position(submission, "pair-frequencies")].cell_type = kind
    notebook = fitted(submission).notebook
    cell = notebook.cells[position(notebook, "pair-frequencies")]
    assert (cell.cell_type, cell.source) == ("code", PAIR_ANSWER)


def test_a_syntax_error_stays_with_its_answer(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode
) -> None:
    """With its metadata gone, an answer that does not parse is still known by its `def` line."""
    broken = "def pair_frequencies(d_model, base=10000.0):\n    return ((("
    cell = submission.cells[position(submission, "pair-frequencies")]
    cell.source = broken
    assert source_of(fitted(submission).notebook, "pair-frequencies") == broken
    cell.metadata = {}
    cell["id"] = "fresh"
    result = fitted(submission)
    assert source_of(result.notebook, "pair-frequencies") == broken
    assert result.missing == ()


def test_the_chinese_edition_fits_alike(
    fitted: Callable[[NotebookNode], Fitted],
    submission: NotebookNode,
    tiny_source: NotebookNode,
    built_once: Path,
) -> None:
    """Same ids, same code: with Chinese prose the same notebook runs."""
    chinese = nbformat.read(built_once / "release" / "zh" / TINY / f"{TINY}.ipynb", as_version=4)
    assert ids(chinese) == ids(tiny_source)
    for cell in chinese.cells:
        if is_answer(cell):
            cell.source = source_of(submission, cell["id"])
    result = fitted(chinese)
    english = fitted(submission)
    assert (result.found, result.missing) == (english.found, english.missing)
    assert [cell.source for cell in result.notebook.cells if cell.cell_type == "code"] == [
        cell.source for cell in english.notebook.cells if cell.cell_type == "code"
    ]
    assert source_of(result.notebook, "title").startswith("# 01 · 小课")


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(): pass\nclass C: pass\nx = y = 1\na, (b, c) = 1, (2, 3)", {"f", "C", "x", "y", "a", "b", "c"}),
        ("async def f(): pass\nq1: str = 'a'", {"f", "q1"}),
        ("if True:\n    def inner(): pass", set()),
        ("def f(:\n  x = 1\nclass D(\n", {"f", "D"}),
        ("x = '\\d'", {"x"}),
        ("x = 1\0", set()),
        ("(" * 300, set()),
        ("", set()),
    ],
)
def test_what_a_cell_defines(source: str, names: set[str]) -> None:
    """Top-level definitions; of code that does not parse, its `def` and `class` lines."""
    assert defined_names(source) == names


OPERATIONS = ("delete", "duplicate", "move", "edit", "strip", "strip all", "retype", "insert")


def disturb(cells: Cells, chance: random.Random) -> str:
    """One thing that people, editors and merges do to a notebook."""
    operation = chance.choice(OPERATIONS)
    if operation == "insert" or not cells:
        source = (
            chance.choice(["x = 1", "", "def helper():\n    return 2", "with open('f"]) + f"  # {chance.randrange(9)}"
        )
        cells.insert(chance.randint(0, len(cells)), code(source))
        return "insert"
    at = chance.randrange(len(cells))
    if operation == "delete":
        del cells[at]
    elif operation == "duplicate":
        copied = copy.deepcopy(cells[at])
        if chance.random() < 0.5:
            copied["id"] = f"copy-{chance.randrange(10**6)}"
        cells.insert(chance.randint(0, len(cells)), copied)
    elif operation == "move":
        cells.insert(chance.randrange(len(cells)), cells.pop(at))
    elif operation == "edit":
        cells[at].source += chance.choice(["\n# more", "\nx = 2", "\n(((", " \n"])
    elif operation == "strip":
        cells[at].metadata = {}
        cells[at].pop("id", None)
    elif operation == "strip all":
        for cell in cells:
            cell.metadata = {}
    else:
        cells[at].cell_type = chance.choice(["code", "markdown", "raw"])
    return operation


@pytest.mark.parametrize("block", range(6))
def test_invariants_hold_for_whatever_is_done_to_a_notebook(
    fitted: Callable[[NotebookNode], Fitted],
    submission: NotebookNode,
    tiny_source: NotebookNode,
    tiny_release: NotebookNode,
    block: int,
) -> None:
    """300 histories: every test once, the course's, in order; every answer once; ids unique; never a solution."""
    locked = {cell["id"]: cell.source for cell in tiny_source.cells if cell["id"] in LOCKED}
    stubs = {cell["id"]: cell.source for cell in tiny_release.cells}
    solutions = [cell.source for cell in tiny_source.cells if is_answer(cell) and cell.cell_type == "code"]
    for seed in range(50 * block, 50 * block + 50):
        chance = random.Random(seed)
        disturbed = copy.deepcopy(submission)
        history = [disturb(disturbed.cells, chance) for _ in range(chance.randint(1, 12))]
        result = fitted(disturbed)
        found = result.notebook.cells
        course = [cell["id"] for cell in found if not cell["id"].startswith("own-")]
        assert course == ids(tiny_source), history
        assert len({cell["id"] for cell in found}) == len(found), history
        for cell in found:
            if cell["id"] in locked:
                assert cell.source == locked[cell["id"]], history
            assert cell.source not in solutions, history
        tests = [cell for cell in found if is_test(cell)]
        assert [cell["id"] for cell in tests] == ["test-pair-frequencies", "test-causal-mask"], history
        answers = [cell["id"] for cell in found if is_answer(cell)]
        assert answers == ["pair-frequencies", "causal-mask", "reflection"], history
        assert sorted((*result.missing, *result.found)) == sorted(answers), history
        for name in result.missing:
            assert source_of(result.notebook, name) == stubs[name], history
        nbformat.validate(result.notebook)


def test_own_code_before_an_answer_never_lands_behind_its_test(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode
) -> None:
    """Even where the answer's neighbours were deleted, a helper runs before the test that needs it."""
    helper = code("def helper():\n    return 1")
    place = position(submission, "pair-frequencies")
    submission.cells = [helper, *submission.cells[place:]]
    notebook = fitted(submission).notebook
    own = next(index for index, cell in enumerate(notebook.cells) if cell.source == helper.source)
    assert own < position(notebook, "pair-frequencies")


@pytest.mark.parametrize("where", ["right behind it", "at the end", "in front of it"])
def test_a_copy_of_the_stub_never_undoes_an_answer(
    fitted: Callable[[NotebookNode], Fitted],
    submission: NotebookNode,
    tiny_release: NotebookNode,
    tiny_source: NotebookNode,
    where: str,
) -> None:
    """It is dropped, wherever it stands."""
    stub = copy.deepcopy(next(cell for cell in tiny_release.cells if cell["id"] == "causal-mask"))
    place = ids(submission).index("causal-mask")
    submission.cells.insert(
        {"right behind it": place + 1, "at the end": len(submission.cells), "in front of it": place}[where], stub
    )
    result = fitted(submission)
    assert source_of(result.notebook, "causal-mask") == MASK_ANSWER
    assert ids(result.notebook) == ids(tiny_source)


def test_an_answer_in_another_cell_gets_no_stub_behind_it(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode
) -> None:
    """The stub would define the name anew."""
    cells = {cell["id"]: cell for cell in submission.cells}
    cells["pair-frequencies"].source += "\n\n" + MASK_ANSWER
    submission.cells.remove(cells["causal-mask"])
    result = fitted(submission)
    assert "causal-mask" not in ids(result.notebook)
    assert result.missing == ()


def test_a_text_below_the_untouched_text_cell_is_the_answer(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode, tiny_release: NotebookNode
) -> None:
    """Marks and ids are all there, and the student wrote one cell lower."""
    place = ids(submission).index("reflection")
    submission.cells[place].source = tiny_release.cells[place].source
    submission.cells.insert(place + 1, nbformat.v4.new_markdown_cell("I saw dots, down here."))
    result = fitted(submission)
    assert source_of(result.notebook, "reflection") == "I saw dots, down here."
    assert not [name for name in ids(result.notebook) if name.startswith("own-")]


EXPERIMENT = "def pair_frequencies(d_model, base=10000.0):\n    return None  # an experiment"


@pytest.mark.parametrize(
    "answer",
    [
        "if True:\n    def pair_frequencies(d_model, base=10000.0):\n        return 'mine'",
        "try:\n    def pair_frequencies(d_model, base=10000.0):\n        return 'mine'\nfinally:\n    pass",
        "from math import sqrt as pair_frequencies",
    ],
    ids=["within if", "within try", "an import"],
)
@pytest.mark.parametrize("kind", ["code", "markdown"])
def test_an_experiment_below_the_test_stays_there(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode, answer: str, kind: str
) -> None:
    """However the answer above it defines the name."""
    cell = submission.cells[position(submission, "pair-frequencies")]
    cell.source, cell.cell_type = answer, kind
    submission.cells.insert(position(submission, "test-pair-frequencies") + 1, code(EXPERIMENT))
    result = fitted(submission)
    assert source_of(result.notebook, "pair-frequencies") == answer
    places = [cell.source for cell in result.notebook.cells]
    assert places.index(EXPERIMENT) > position(result.notebook, "test-pair-frequencies")
    assert not any("what they define" in repair.en for repair in result.repairs)


def test_without_marks_the_last_definition_above_the_test_is_the_answer(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode
) -> None:
    """A later one, or one of a part of what is asked for, is an experiment."""
    submission.cells.insert(position(submission, "test-pair-frequencies") + 1, code(EXPERIMENT))
    submission.cells.insert(position(submission, "pair-frequencies"), code(EXPERIMENT.replace("None", "0")))
    for cell in submission.cells:
        cell.metadata, cell["id"] = {}, None
    assert source_of(fitted(submission).notebook, "pair-frequencies") == PAIR_ANSWER


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_a_text_at_an_answer_is_no_way_around_the_limit_of_code(
    fitted: Callable[[NotebookNode], Fitted], submission: NotebookNode, kind: str
) -> None:
    """It would be run, and parsed, as code. A long text elsewhere is no harm: it may hold a picture."""
    long = "x\n" * 60_000
    submission.cells.insert(1, nbformat.v4.new_markdown_cell(long))
    fitted(submission)
    cell = submission.cells[position(submission, "pair-frequencies")]
    cell.cell_type, cell.source = kind, long
    with pytest.raises(UnreadableNotebook, match="a code cell of 120000 characters; a cell has at most 100000"):
        fitted(submission)
