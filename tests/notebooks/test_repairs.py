"""What is told of a repaired notebook: each repair in one line, and nothing of an honest notebook."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from autograder.notebooks.fitting import Fitted, fit
from autograder.notebooks.reading import parse_notebook
from tests.notebooks.helpers import MASK_ANSWER, position
from tests.sample_class.student import from_colab, plain, with_mark, without_ids, without_metadata

FitBytes = Callable[[bytes], Fitted]
Change = Callable[[NotebookNode], None]


@pytest.fixture
def fit_bytes(tiny_source: NotebookNode, tiny_release: NotebookNode) -> FitBytes:
    return lambda data: fit(parse_notebook(data, "a.ipynb"), tiny_source, tiny_release)


@pytest.fixture
def told(fit_bytes: FitBytes) -> Callable[[NotebookNode], list[str]]:
    """The English repairs of a notebook, written as it is."""
    return lambda notebook: [repair.en for repair in fit_bytes(json.dumps(notebook).encode()).repairs]


def cell_of(notebook: NotebookNode, name: str) -> NotebookNode:
    return notebook.cells[position(notebook, name)]


def without(notebook: NotebookNode, *names: str) -> None:
    notebook.cells = [cell for cell in notebook.cells if cell["id"] not in names]


# Editors.


def from_kaggle(notebook: NotebookNode) -> bytes:
    document = copy.deepcopy(notebook)
    document.metadata = {
        "kernelspec": {"language": "python", "display_name": "Python 3", "name": "python3"},
        "language_info": {"name": "python", "version": "3.10.12"},
        "kaggle": {"accelerator": "none", "dataSources": [], "language": "python", "sourceType": "notebook"},
    }
    document.nbformat_minor = 4
    for cell in document.cells:
        cell.pop("id", None)
        cell.metadata.update({"trusted": True, "_uuid": "8f2839f25d086af736a60e9eeb907d3b93b6e0e5"})
    return json.dumps(document).encode()


def from_vs_code(notebook: NotebookNode) -> bytes:
    document = copy.deepcopy(notebook)
    document.metadata.kernelspec = {"display_name": ".venv", "language": "python", "name": "python3"}
    for number, cell in enumerate(document.cells):
        cell.metadata["vscode"] = {"languageId": "python"}
        cell["id"] = f"{number:08x}"
        cell.source = cell.source + "\n"
    return json.dumps(document).encode()


def from_jupyterlab(notebook: NotebookNode) -> bytes:
    document = copy.deepcopy(notebook)
    document.metadata.language_info = {"name": "python", "codemirror_mode": {"name": "ipython", "version": 3}}
    document.metadata.kernelspec = {"display_name": "torch", "language": "python", "name": "conda-env-torch-py"}
    for number, cell in enumerate(document.cells):
        if cell.cell_type == "code":
            cell.execution_count = number
            cell.outputs = [new_output("stream", name="stderr", text="a warning\n")]
            cell.metadata.update({"execution": {"iopub.execute_input": "2026"}, "scrolled": True, "collapsed": False})
        cell.metadata["tags"] = ["mine"]
    return nbformat.writes(document).encode()


def with_line_list(notebook: NotebookNode) -> bytes:
    document = copy.deepcopy(notebook)
    for cell in document.cells:
        cell.source = [line + "  \n" for line in cell.source.split("\n")]
    return json.dumps(document).replace("\n", "\r\n").encode()


EDITORS = [plain, without_ids, with_mark, from_colab, from_kaggle, from_vs_code, from_jupyterlab, with_line_list]


@pytest.mark.parametrize("editor", EDITORS, ids=lambda editor: editor.__name__)
@pytest.mark.parametrize("answers", ["none", "all", "all, with own cells"])
def test_an_honest_notebook_gives_none(
    fit_bytes: FitBytes,
    submission: NotebookNode,
    tiny_release: NotebookNode,
    editor: Callable[[NotebookNode], bytes],
    answers: str,
) -> None:
    """Whatever the editor writes of its own: ids, marks, counts, outputs, blanks, byte order mark, line ends."""
    notebook = copy.deepcopy(tiny_release if answers == "none" else submission)
    if answers == "all, with own cells":
        notebook.cells.insert(position(notebook, "causal-mask"), new_code_cell("def helper():\n    return 1", id="h"))
        notebook.cells.append(new_markdown_cell("A note.", id="n"))
        cell_of(notebook, "imports").source += "\nimport math"
        cell_of(notebook, "draw-dots").source = "# too slow for me"
    assert fit_bytes(editor(notebook)).repairs == ()


def test_the_chinese_edition_gives_none(fit_bytes: FitBytes, submission: NotebookNode, built_once: Any) -> None:
    """The same notebook, in another language."""
    chinese = nbformat.read(built_once / "release" / "zh" / "01-tiny" / "01-tiny.ipynb", as_version=4)
    assert fit_bytes(plain(chinese)).repairs == ()


def test_deleted_prose_is_not_worth_a_word(told: Callable[[NotebookNode], list[str]], submission: NotebookNode) -> None:
    """It is put back, and nobody needs to know."""
    without(submission, "title", "exercise-causal-mask")
    assert told(submission) == []


# Repairs, one by one: what is done to the notebook, and all that is told.


def strip_all(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell.metadata = {}


def strip_one(notebook: NotebookNode) -> None:
    cell_of(notebook, "causal-mask").metadata = {}


def strip_two_wholly(notebook: NotebookNode) -> None:
    for name in ("pair-frequencies", "reflection"):
        cell = cell_of(notebook, name)
        cell.metadata, cell["id"] = {}, f"x-{name}"


def edit_locked(notebook: NotebookNode) -> None:
    for name in ("tools", "test-causal-mask"):
        cell_of(notebook, name).source += "\nx = 1"


def retype_locked(notebook: NotebookNode) -> None:
    cell_of(notebook, "tools").cell_type = "raw"


def delete_some(notebook: NotebookNode) -> None:
    without(notebook, "tools", "imports", "causal-mask", "test-causal-mask", "title")


def delete_most(notebook: NotebookNode) -> None:
    notebook.cells = [cell_of(notebook, "pair-frequencies")]


def copy_answer(notebook: NotebookNode) -> None:
    for number in range(2):
        copied = copy.deepcopy(cell_of(notebook, "causal-mask"))
        copied["id"], copied.source = f"copy-{number}", copied.source + f"  # {number}"
        notebook.cells.append(copied)


def answer_in_own_cell(notebook: NotebookNode) -> None:
    without(notebook, "causal-mask")
    notebook.cells.append(new_code_cell(MASK_ANSWER, id="mine"))


def answer_below_the_test(notebook: NotebookNode) -> None:
    cell_of(notebook, "causal-mask").source = "# see the end"
    notebook.cells.append(new_code_cell(MASK_ANSWER, id="mine"))


def answers_in_one_cell(notebook: NotebookNode) -> None:
    cell_of(notebook, "pair-frequencies").source += "\n\n" + MASK_ANSWER
    without(notebook, "causal-mask")


def retype_answers(notebook: NotebookNode) -> None:
    cell_of(notebook, "causal-mask").cell_type = "markdown"
    cell_of(notebook, "imports").cell_type = "raw"
    cell_of(notebook, "reflection").cell_type = "code"


def move_one(notebook: NotebookNode) -> None:
    notebook.cells.append(notebook.cells.pop(position(notebook, "pair-frequencies")))


def reverse(notebook: NotebookNode) -> None:
    notebook.cells.reverse()


def merge_with_test(notebook: NotebookNode) -> None:
    cell_of(notebook, "causal-mask").source += "\n\n" + cell_of(notebook, "test-causal-mask").source
    without(notebook, "test-causal-mask")


def merge_into_test(notebook: NotebookNode) -> None:
    test = cell_of(notebook, "test-causal-mask")
    test.source = MASK_ANSWER + "\n" + test.source
    without(notebook, "causal-mask")


def split(notebook: NotebookNode) -> None:
    first, second = MASK_ANSWER.split("\n")
    cell_of(notebook, "causal-mask").source = first
    notebook.cells.insert(position(notebook, "causal-mask") + 1, new_code_cell(second, id="half"))


def text_below(notebook: NotebookNode) -> None:
    cell_of(notebook, "reflection").source = "YOUR ANSWER HERE"
    notebook.cells.append(new_markdown_cell("Down here.", id="mine"))


CHANGES: list[tuple[Change, list[str]]] = [
    (strip_all, ["nbgrader's metadata was gone from all 6 cells; answers were found by their ids"]),
    (strip_one, ["nbgrader's metadata was gone, found by id or text: causal-mask"]),
    (
        strip_two_wholly,
        [
            "answers in other cells, found by what they define: pair-frequencies",
            "texts in other cells, found by their place: reflection",
        ],
    ),
    (edit_locked, ["changed and restored: tools, test-causal-mask"]),
    (retype_locked, ["changed and restored: tools"]),
    (delete_some, ["missing and put back: tools, imports, causal-mask, test-causal-mask"]),
    (
        delete_most,
        [
            "missing and put back: tools, imports, test-pair-frequencies, draw-dots, causal-mask, test-causal-mask "
            "and 1 more"
        ],
    ),
    (copy_answer, ["more than one copy (of an answer the last one counts): causal-mask (3)"]),
    (answer_in_own_cell, ["answers in other cells, found by what they define: causal-mask"]),
    (answer_below_the_test, ["answers in other cells, found by what they define: causal-mask"]),
    (answers_in_one_cell, ["answers in other cells, found by what they define: causal-mask"]),
    (
        retype_answers,
        ["not in code cells, run as code: imports, causal-mask", "in code cells, read as text: reflection"],
    ),
    (move_one, ["cells were in another order; back in their place: pair-frequencies"]),
    (
        reverse,
        [
            "cells were in another order; back in their place: badges, tools, imports, exercise-pair-frequencies, "
            "pair-frequencies, test-pair-frequencies and 5 more"
        ],
    ),
    (merge_with_test, ["taken out of merged cells: test-causal-mask"]),
    (merge_into_test, ["taken out of merged cells: test-causal-mask"]),
    (split, ["answers split over several cells, put together: causal-mask"]),
    (text_below, ["texts in other cells, found by their place: reflection"]),
]


@pytest.mark.parametrize(("change", "said"), CHANGES, ids=lambda part: getattr(part, "__name__", ""))
def test_each_repair_is_told_in_one_line(
    told: Callable[[NotebookNode], list[str]], submission: NotebookNode, change: Change, said: list[str]
) -> None:
    """All of it, and nothing else."""
    change(submission)
    assert told(submission) == said


@pytest.mark.parametrize("change", [change for change, _ in CHANGES], ids=lambda change: change.__name__)
def test_repairs_speak_chinese(fit_bytes: FitBytes, submission: NotebookNode, change: Change) -> None:
    """Each text in both languages, with the same cells named."""
    change(submission)
    for repair in fit_bytes(json.dumps(submission).encode()).repairs:
        assert any("\u4e00" <= letter <= "\u9fff" for letter in repair.zh)
        assert ("causal-mask" in repair.en) == ("causal-mask" in repair.zh)


def test_without_any_metadata_the_ways_are_told(fit_bytes: FitBytes, submission: NotebookNode) -> None:
    """Code by what it defines, text by its place, what was left as given out by its text."""
    (repair,) = fit_bytes(without_metadata(submission)).repairs
    assert repair.en == (
        "nbgrader's metadata was gone from all 6 cells; answers were found by what they define and their place"
    )
    assert repair.zh == "全部 6 个单元格都丢失了 nbgrader 元数据；答案按所定义的名字、所在位置找到"


# What reading mends.

KERNELS: dict[str, tuple[dict[str, Any], str | None]] = {
    "none": ({}, None),
    "Python": ({"kernelspec": {"name": "x", "language": "python"}}, None),
    "Python of another name": ({"kernelspec": {"name": "xpython", "language": "Python 3"}}, None),
    "said by one of two": ({"kernelspec": {"language": "sage"}, "language_info": {"name": "python"}}, None),
    "debris": ({"kernelspec": [1], "language_info": {"name": 5}}, None),
    "Julia": ({"kernelspec": {"name": "julia-1.9", "language": "julia"}}, "julia"),
    "R as Colab writes it": ({"kernelspec": {"name": "ir", "display_name": "R"}}, "R"),
    "long": ({"language_info": {"name": "x\n" * 99}}, "x" * 20 + "x" * 20),
}


@pytest.mark.parametrize(("metadata", "language"), KERNELS.values(), ids=KERNELS)
def test_a_foreign_kernel_is_told(metadata: dict[str, Any], language: str | None) -> None:
    """Python under any name is none; what a file says is cut and shown without control characters."""
    document = {"cells": [], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    said = [repair.en for repair in parse_notebook(json.dumps(document).encode(), "a.ipynb").repairs]
    assert said == ([] if language is None else [f"its kernel was for {language}; it was run with Python"])


NO_NUMBER = "its format number was wrong or missing, read as format 4"
FILES: dict[str, tuple[bytes, list[str]]] = {
    "format 3": (b'{"worksheets": [{"cells": []}]}', ["it was written in notebook format 3, read as format 4"]),
    "no number": (b'{"cells": []}', [NO_NUMBER]),
    "number of the future": (b'{"cells": [], "nbformat": 5, "nbformat_minor": 0}', [NO_NUMBER]),
    "number as text": (b'{"cells": [], "nbformat": 4, "nbformat_minor": "5"}', [NO_NUMBER]),
    "older minor": (b'{"cells": [], "nbformat": 4, "nbformat_minor": 0}', []),
    "UTF-16": (
        '{"cells": [], "nbformat": 4, "nbformat_minor": 5}'.encode("utf-16"),
        ["the file was in UTF-16, not in UTF-8"],
    ),
}
CELLS: dict[str, tuple[str, list[str]]] = {
    "no cells": ("null, 3, []", ["entries of its list of cells that were no cells, left out: 3"]),
    "unknown types": (
        '{"source": "", "cell_type": "poem"}, {"source": ""}, {"source": "", "cell_type": [{}]}',
        ["cells of an unknown type, read as text: 3"],
    ),
    "gaps": (
        '{"cell_type": "raw", "source": ["a", null]}, {"cell_type": "code", "source": 5}, {"cell_type": "code"}',
        ["cells whose source was no text or had gaps, of which the text was kept: 2"],
    ),
    "half a character": (
        r'{"cell_type": "code", "source": "\ud83d"}, {"cell_type": "code", "source": ["\ud83d\ude00"]}',
        ["cells with half a character (a lone surrogate), now a question mark: 1"],
    ),
}
FILES |= {
    name: (f'{{"cells": [{cells}], "nbformat": 4, "nbformat_minor": 5}}'.encode(), said)
    for name, (cells, said) in CELLS.items()
}


@pytest.mark.parametrize(("data", "said"), FILES.values(), ids=FILES)
def test_what_reading_mends_is_told(data: bytes, said: list[str]) -> None:
    """Encoding, format, cells that are none, sources that are no text."""
    assert [repair.en for repair in parse_notebook(data, "a.ipynb").repairs] == said
