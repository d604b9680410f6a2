"""Right answers in files that are malformed, or that an editor has rewritten: they keep their points."""

from __future__ import annotations

import copy
import json
from typing import Any

from nbformat import NotebookNode

from tests.e2e.kinds import BY_NAME, EXERCISES, STRIPPED, Kind, cell_of, insert_before, marks_of
from tests.sample_class.student import from_colab, with_mark, without_ids, without_metadata

# The file.


def _utf_16(notebook: NotebookNode) -> bytes:
    return json.dumps(notebook, ensure_ascii=False).encode("utf-16")


def _windows_line_ends(notebook: NotebookNode) -> bytes:
    for cell in notebook.cells:
        cell.source = cell.source.replace("\n", "\r\n")
    return json.dumps(notebook, indent=1).replace("\n", "\r\n").encode()


def _format_3(notebook: NotebookNode) -> bytes:
    cells: list[dict[str, Any]] = []
    for cell in notebook.cells:
        old = {"cell_type": cell.cell_type, "metadata": cell.metadata}
        if cell.cell_type == "code":
            cells.append({**old, "input": cell.source, "language": "python", "prompt_number": 1, "outputs": []})
        else:
            cells.append({**old, "source": cell.source})
    cells.insert(1, {"cell_type": "heading", "level": 1, "metadata": {}, "source": "Mine"})
    sheets = [{"cells": cells[:5], "metadata": {}}, {"cells": cells[5:], "metadata": {}}]
    return json.dumps({"metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0, "worksheets": sheets}).encode()


def _format_numbers_gone(notebook: NotebookNode) -> None:
    del notebook["nbformat"], notebook["nbformat_minor"]


def _format_of_the_future(notebook: NotebookNode) -> None:
    notebook.nbformat, notebook.nbformat_minor = 5, "x"


def _not_a_number(notebook: NotebookNode) -> None:
    notebook.metadata["loss"] = float("nan")
    for cell in notebook.cells:
        cell.metadata["score"] = float("inf")
        if cell.cell_type == "code":
            cell.outputs = [
                {"output_type": "display_data", "data": {"text/plain": "x"}, "metadata": {"n": float("nan")}}
            ]


def _null_metadata(notebook: NotebookNode) -> bytes:
    document = copy.deepcopy(notebook)
    document["metadata"] = None
    return json.dumps(document).encode()


def _debris_among_cells(notebook: NotebookNode) -> bytes:
    document = json.loads(json.dumps(notebook))
    document["cells"][2:2] = [None, 7, "text", [], {}]
    return json.dumps(document).encode()


def _half_a_character(notebook: NotebookNode) -> bytes:
    cell_of(notebook, "wavelengths").source += "\n# \ud83d half of an emoji"
    return json.dumps(notebook).encode()


def _sources_with_nulls(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell["source"] = [None, *cell.source.splitlines(keepends=True), None]


def _garbage_outputs(notebook: NotebookNode) -> None:
    garbage = [None, 5, {}, {"output_type": 5, "data": "x"}, {"output_type": "stream", "text": {"a": [None]}}]
    for number, cell in enumerate(notebook.cells):
        cell["outputs"] = ["text", garbage, None, {"a": 1}][number % 4]
        cell["execution_count"] = "many"


def _huge_output(notebook: NotebookNode) -> None:
    cell_of(notebook, "imports").outputs = [{"output_type": "stream", "name": "stdout", "text": "x" * 3_000_000}]


def _huge_line(notebook: NotebookNode) -> None:
    insert_before(notebook, "wavelengths", "numbers = '" + "9" * 90_000 + "'")


# Metadata and ids.


def _null_ids(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell["id"] = None


def _odd_metadata(notebook: NotebookNode) -> None:
    for number, cell in enumerate(notebook.cells):
        if marks_of(cell):
            cell.metadata["nbgrader"]["schema_version"] = (1, 99, None)[number % 3]
        cell["id"] = None
    notebook.metadata["kernelspec"] = {"name": "no-such-kernel", "display_name": "?", "language": "julia"}
    notebook.metadata["language_info"] = {"name": "julia", "file_extension": ".jl"}


def _same_ids(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell["id"] = "cell"


def _widgets_without_state(notebook: NotebookNode) -> None:
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"a": {"model_name": "HBoxModel"}}}


def _only_ids(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell.metadata = {}


def _only_answers_stripped(notebook: NotebookNode) -> None:
    for name in EXERCISES:
        cell = cell_of(notebook, name)
        cell.metadata, cell["id"] = {}, f"x-{name}"


def _kaggle(notebook: NotebookNode) -> None:
    notebook.metadata["kaggle"] = {"accelerator": "nvidiaTeslaT4", "dataSources": [], "isGpuEnabled": True}
    notebook.nbformat_minor = 4
    for cell in notebook.cells:
        cell.pop("id", None)
        cell.metadata["trusted"] = True


def _vs_code(notebook: NotebookNode) -> None:
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"{number:08x}"
        cell.metadata["vscode"] = {"languageId": "python"}
    notebook.metadata.kernelspec = {"display_name": ".venv (3.12)", "language": "python", "name": "python3"}


def _pycharm(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell.metadata.setdefault("pycharm", {"name": "#%%\n", "is_executing": True})
        cell.metadata.setdefault("ExecuteTime", {"end_time": "2026-01-01T00:00:00.000000Z"})
        cell["source"] = cell.source.splitlines(keepends=True)


def _percent_script(notebook: NotebookNode) -> bytes:
    """To `# %%` cells and back: no metadata, new ids, a blank line in front of each cell."""
    for number, cell in enumerate(notebook.cells):
        cell.metadata, cell["id"], cell.source = {}, f"vsc-{number}", f"\n{cell.source}\n"
    return json.dumps(notebook).encode()


def _jupytext(notebook: NotebookNode) -> None:
    """With `cell_metadata_filter: -all`: no metadata, no ids, magics in comments."""
    notebook.metadata["jupytext"] = {"cell_metadata_filter": "-all", "formats": "ipynb,py:percent"}
    for cell in notebook.cells:
        cell.metadata = {}
        del cell["id"]


SOURCES_KEPT = "cells whose source was no text or had gaps, of which the text was kept: {}"
NO_NUMBER = "its format number was wrong or missing, read as format 4"
DAMAGED_FILES: dict[str, Kind] = {
    "byte-order-mark": Kind(with_mark),
    "windows-line-ends": Kind(_windows_line_ends),
    "utf-16": Kind(_utf_16, repairs=("the file was in UTF-16, not in UTF-8",)),
    "format-3": Kind(_format_3, repairs=("it was written in notebook format 3, read as format 4",)),
    "format-4-without-ids": Kind(without_ids),
    "format-numbers-gone": Kind(_format_numbers_gone, repairs=(NO_NUMBER,)),
    "format-of-the-future": Kind(_format_of_the_future, repairs=(NO_NUMBER,)),
    "not-a-number": Kind(_not_a_number),
    "null-metadata": Kind(_null_metadata),
    "debris-among-cells": Kind(
        _debris_among_cells,
        repairs=(
            "entries of its list of cells that were no cells, left out: 4",
            "cells of an unknown type, read as text: 1",
        ),
    ),
    "half-a-character": Kind(
        _half_a_character, repairs=("cells with half a character (a lone surrogate), now a question mark: 1",)
    ),
    "sources-with-nulls": Kind(_sources_with_nulls, repairs=(SOURCES_KEPT.format(11),)),
    "garbage-outputs": Kind(_garbage_outputs),
    "huge-output": Kind(_huge_output),
    "huge-line": Kind(_huge_line),
    "null-ids": Kind(_null_ids),
    "odd-metadata": Kind(_odd_metadata, repairs=("its kernel was for julia; it was run with Python",)),
    "same-ids": Kind(_same_ids),
    "widgets-without-state": Kind(_widgets_without_state),
    "only-ids": Kind(_only_ids, repairs=(STRIPPED + "their ids",)),
    "no-metadata": Kind(without_metadata, repairs=(STRIPPED + "what they define",)),
    "only-answers-stripped": Kind(_only_answers_stripped, repairs=(BY_NAME.format(", ".join(EXERCISES)),)),
    "colab": Kind(from_colab),
    "kaggle": Kind(_kaggle),
    "vs-code": Kind(_vs_code),
    "pycharm": Kind(_pycharm),
    "percent-script": Kind(_percent_script, repairs=(STRIPPED + "what they define",)),
    "jupytext": Kind(_jupytext, repairs=(STRIPPED + "what they define",)),
}
