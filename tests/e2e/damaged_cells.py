"""Right answers in notebooks whose cells were copied, moved, merged, split, changed or deleted."""

from __future__ import annotations

import copy

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from tests.e2e.kinds import BY_NAME, EXERCISES, FULL, RIGHT, STRIPPED, TESTS, Kind, at, cell_of, insert_before, remove
from tests.sample_class.student import without_metadata

HELPER = "def full_turns(frequency):\n    return 2 * math.pi / frequency"
WITH_HELPER = "def wavelengths(d_model, base=10000.0):\n    return full_turns(pair_frequencies(d_model, base))"
FIRST_HALF = '''def wavelengths(d_model, base=10000.0):
    """Positions for one full turn."""
    frequency = pair_frequencies(d_model, base)'''
SECOND_HALF = "    return 2 * math.pi / frequency"


def _everything_twice(notebook: NotebookNode) -> None:
    notebook.cells = [copy.deepcopy(cell) for cell in notebook.cells for _ in range(2)]


def _older_copy_in_front(notebook: NotebookNode) -> None:
    older = copy.deepcopy(cell_of(notebook, "wavelengths"))
    older["id"], older.source = "older", "def wavelengths(d_model, base=10000.0):\n    return 17"
    notebook.cells.insert(at(notebook, "wavelengths"), older)


def _backwards(notebook: NotebookNode) -> None:
    notebook.cells.reverse()


def _answer_moved_to_the_end(notebook: NotebookNode) -> None:
    notebook.cells.append(notebook.cells.pop(at(notebook, "wavelengths")))


def _edited_tools(notebook: NotebookNode) -> None:
    cell_of(notebook, "tools").source = "check = print"
    cell_of(notebook, "test-wavelengths").source += "\nassert False"


def _only_answers(notebook: NotebookNode) -> None:
    notebook.cells = [cell_of(notebook, name) for name in EXERCISES]


def _other_types(notebook: NotebookNode) -> None:
    for name, kind in (("imports", "raw"), ("pair-frequencies", "markdown"), ("wavelengths", "poem")):
        cell_of(notebook, name).cell_type = kind


def _code_in_a_text_cell(notebook: NotebookNode) -> None:
    cell = cell_of(notebook, "title")
    cell.cell_type, cell.source = "code", HELPER


def _merged_with_tests(notebook: NotebookNode) -> None:
    """Each answer and its test in one cell, which has the metadata now of the one, now of the other."""
    for number, name in enumerate(EXERCISES):
        answer, test = cell_of(notebook, name), cell_of(notebook, f"test-{name}")
        kept, gone = (answer, test) if number % 2 else (test, answer)
        kept.source = f"{answer.source}\n\n{test.source}"
        remove(notebook, gone["id"])


def _all_in_one_cell(notebook: NotebookNode) -> None:
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    only = cell_of(notebook, "tools")
    only.metadata, only["id"], only.source = {}, "all", "\n\n# In[ ]:\n\n".join(sources)
    notebook.cells = [only]


def _all_answers_in_one(notebook: NotebookNode) -> None:
    cell_of(notebook, "pair-frequencies").source = "\n\n".join(cell_of(notebook, name).source for name in EXERCISES)
    remove(notebook, *EXERCISES[1:])


def _answers_at_the_end(notebook: NotebookNode) -> None:
    """In own cells below all tests, with a helper; the cells that were meant for them are untouched."""
    notebook.cells += [new_markdown_cell("# My answers", id="mine")]
    insert_before(notebook, "mine", HELPER, RIGHT["pair-frequencies"], WITH_HELPER, RIGHT["quiz-sinusoidal"])


def _answer_over_the_test(notebook: NotebookNode) -> None:
    cell_of(notebook, "test-wavelengths").source = RIGHT["wavelengths"] + "\nprint(wavelengths(8))"
    remove(notebook, "wavelengths")


def _split_function(notebook: NotebookNode) -> None:
    cell_of(notebook, "wavelengths").source = FIRST_HALF
    insert_before(notebook, "test-wavelengths", SECOND_HALF)


def _split_with_the_same_marks(notebook: NotebookNode) -> None:
    """As JupyterLab splits a cell: both halves have its metadata."""
    half = copy.deepcopy(cell_of(notebook, "wavelengths"))
    half["id"], half.source = "half", SECOND_HALF
    cell_of(notebook, "wavelengths").source = FIRST_HALF
    notebook.cells.insert(at(notebook, "test-wavelengths"), half)


def _helper_in_another_cell(notebook: NotebookNode) -> None:
    cell_of(notebook, "wavelengths").source = WITH_HELPER
    insert_before(notebook, "test-wavelengths", HELPER)


def _parts_in_other_cells(notebook: NotebookNode) -> None:
    """Of five names two in the answer cell, one above it, one below it, one below the test."""
    lines = RIGHT["quiz-sinusoidal"].strip().splitlines()
    cell_of(notebook, "quiz-sinusoidal").source = "\n".join(lines[:2])
    insert_before(notebook, "quiz-sinusoidal", lines[2])
    insert_before(notebook, "test-quiz-sinusoidal", lines[3])
    notebook.cells.append(new_markdown_cell("The last one:", id="last"))
    insert_before(notebook, "last", lines[4])


def _parts_without_metadata(notebook: NotebookNode) -> bytes:
    _parts_in_other_cells(notebook)
    return without_metadata(notebook)


def _cell_magics(notebook: NotebookNode) -> None:
    insert_before(
        notebook, "wavelengths", "!pip install einops\n%pip install tqdm", "%%bash\necho hello", "%timeit 1 + 1"
    )
    cell_of(notebook, "wavelengths").source = "%%time\n" + RIGHT["wavelengths"].strip()
    quiz = cell_of(notebook, "quiz-sinusoidal")
    quiz.metadata, quiz["id"], quiz.source = {}, "x", "%matplotlib inline\n" + RIGHT["quiz-sinusoidal"].strip()


def _tabs(notebook: NotebookNode) -> None:
    for name in EXERCISES:
        cell = cell_of(notebook, name)
        cell.source = cell.source.replace("    ", "\t")


def _own_cells_that_fail(notebook: NotebookNode) -> None:
    insert_before(notebook, "pair-frequencies", "1 / 0", "answer = input('name? ')", "def (:", "   indented = 1", "x =")


DAMAGED_CELLS: dict[str, Kind] = {
    "deletes-tests": Kind(
        lambda notebook: remove(notebook, *(f"test-{name}" for name in EXERCISES)),
        repairs=(f"missing and put back: {TESTS}",),
    ),
    "deletes-answer": Kind(
        lambda notebook: remove(notebook, "wavelengths"),
        exercises={**FULL, "wavelengths": "answer-missing"},
        repairs=("missing and put back: wavelengths",),
    ),
    "only-answers": Kind(_only_answers, repairs=(f"missing and put back: tools, imports, {TESTS}",)),
    "copies-cells": Kind(
        _everything_twice,
        repairs=(
            "more than one copy (of an answer the last one counts): tools (2), pair-frequencies (2), "
            "test-pair-frequencies (2), wavelengths (2), test-wavelengths (2), position-similarity (2) and 3 more",
        ),
    ),
    "older-copy": Kind(
        _older_copy_in_front, repairs=("more than one copy (of an answer the last one counts): wavelengths (2)",)
    ),
    "backwards": Kind(
        _backwards,
        repairs=(
            "cells were in another order; back in their place: tools, imports, pair-frequencies, "
            "test-pair-frequencies, wavelengths, test-wavelengths and 4 more",
        ),
    ),
    "answer-moved": Kind(
        _answer_moved_to_the_end, repairs=("cells were in another order; back in their place: wavelengths",)
    ),
    "edited-tools": Kind(_edited_tools, repairs=("changed and restored: tools, test-wavelengths",)),
    "other-types": Kind(
        _other_types,
        repairs=(
            "cells of an unknown type, read as text: 1",
            "not in code cells, run as code: imports, pair-frequencies, wavelengths",
        ),
    ),
    "code-in-a-text-cell": Kind(_code_in_a_text_cell, answers={"wavelengths": WITH_HELPER}),
    "merged-with-tests": Kind(_merged_with_tests, repairs=(f"taken out of merged cells: {TESTS}",)),
    "all-in-one-cell": Kind(
        _all_in_one_cell,
        repairs=(f"taken out of merged cells: tools, {TESTS}",),
    ),
    "all-answers-in-one": Kind(_all_answers_in_one, repairs=(BY_NAME.format(", ".join(EXERCISES[1:])),)),
    "answers-at-the-end": Kind(
        _answers_at_the_end,
        answers=None,
        exercises={**FULL, "position-similarity": "unanswered"},
        repairs=(BY_NAME.format("pair-frequencies, wavelengths, quiz-sinusoidal"),),
    ),
    "answer-over-the-test": Kind(
        _answer_over_the_test,
        repairs=(BY_NAME.format("wavelengths"), "missing and put back: test-wavelengths"),
    ),
    "split-function": Kind(_split_function, repairs=("answers split over several cells, put together: wavelengths",)),
    "split-with-the-same-marks": Kind(
        _split_with_the_same_marks, repairs=("answers split over several cells, put together: wavelengths",)
    ),
    "helper-in-another-cell": Kind(_helper_in_another_cell),
    "parts-in-other-cells": Kind(_parts_in_other_cells, repairs=(BY_NAME.format("quiz-sinusoidal"),)),
    "parts-without-metadata": Kind(_parts_without_metadata, repairs=(STRIPPED + "what they define",)),
    "magics": Kind(_cell_magics, repairs=(BY_NAME.format("quiz-sinusoidal"),)),
    "tabs": Kind(_tabs),
    "own-cells-that-fail": Kind(_own_cells_that_fail),
}
