"""Tolerant reading: whatever an editor made of a notebook, its cells are found; what is no notebook is said plainly."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from autograder.errors import UnreadableNotebook
from autograder.notebooks import reading
from autograder.notebooks.reading import SubmittedCell, parse_notebook, read_notebook

CELL = {"cell_type": "code", "id": "c1", "metadata": {}, "source": "x = 1\ny = 2", "outputs": [], "execution_count": 3}


def notebook(*cells: object, **top: object) -> bytes:
    return json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **top}).encode()


def cell(**changes: Any) -> dict[str, Any]:
    return {**CELL, **changes}


def test_a_plain_notebook() -> None:
    """Kind, source, nbgrader's id and the cell's name or id."""
    marks = {"name": "pair", "nbgrader": {"grade_id": "pair"}, "tags": ["skip-execution"]}
    cells = parse_notebook(
        notebook(CELL, cell(metadata=marks), {"cell_type": "markdown", "source": "text"}), "a.ipynb"
    ).cells
    assert cells == (
        SubmittedCell("code", "x = 1\ny = 2", None, "c1"),
        SubmittedCell("code", "x = 1\ny = 2", "pair", "pair"),
        SubmittedCell("markdown", "text", None, None),
    )


WHOLE = notebook(CELL)
FORMS: dict[str, bytes] = {
    "UTF-8": WHOLE,
    "UTF-8 with BOM": b"\xef\xbb\xbf" + WHOLE,
    "UTF-16 little-endian": WHOLE.decode().encode("utf-16-le").join([b"\xff\xfe", b""]),
    "UTF-16 big-endian": WHOLE.decode().encode("utf-16-be").join([b"\xfe\xff", b""]),
    "blanks around": b"\n  " + WHOLE + b"\n\n",
    "source as a list of lines": notebook(cell(source=["x = 1\n", "y = 2"])),
    "Windows line ends": notebook(cell(source="x = 1\r\ny = 2")),
    "an older minor version": notebook(CELL, nbformat_minor=2),
    "a newer version": notebook(CELL, nbformat=5, nbformat_minor=0),
    "no version": json.dumps({"cells": [CELL]}).encode(),
    "format 3": json.dumps(
        {"worksheets": [{"cells": [{"cell_type": "code", "input": "x = 1\ny = 2", "id": "c1"}]}]}
    ).encode(),
    "widget state without state": notebook(CELL, metadata={"widgets": {"application/vnd": {}}}),
    "cells that are no cells": notebook(None, 3, "text", [], CELL),
    "null in a source list": notebook(cell(source=["x = 1\n", None, "y = 2"])),
}


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS)
def test_the_same_cell_in_every_form(data: bytes) -> None:
    """Encodings, line ends, formats and debris of other tools do not matter."""
    assert parse_notebook(data, "a.ipynb").cells == (SubmittedCell("code", "x = 1\ny = 2", None, "c1"),)


ODD_CELLS: dict[str, dict[str, Any]] = {
    "null id": cell(id=None),
    "number as id": cell(id=7),
    "metadata null": cell(metadata=None),
    "metadata a list": cell(metadata=[1]),
    "nbgrader null": cell(metadata={"nbgrader": None}),
    "nbgrader a text": cell(metadata={"nbgrader": "yes"}),
    "grade_id a number": cell(metadata={"nbgrader": {"grade_id": 5}}),
    "schema version of the future": cell(metadata={"nbgrader": {"schema_version": 99}}),
    "name a list": cell(metadata={"name": ["a"]}),
    "source null": cell(source=None),
    "source a number": cell(source=5),
    "no source": {"cell_type": "code"},
    "nothing": {},
    "raw": cell(cell_type="raw"),
    "unknown type": cell(cell_type="heading"),
}


@pytest.mark.parametrize("odd", ODD_CELLS.values(), ids=ODD_CELLS)
def test_an_odd_cell_is_a_cell(odd: dict[str, Any]) -> None:
    """It is read as far as it goes, and never runs unless it is code."""
    (found,) = parse_notebook(notebook(odd), "a.ipynb").cells
    assert found.kind == ("code" if odd.get("cell_type") == "code" else "markdown")
    assert found.grade_id is None
    assert isinstance(found.source, str)
    assert found.cell_id in (None, "c1")


def test_a_bad_name_leaves_the_id() -> None:
    """Half of the identity is better than none."""
    (found,) = parse_notebook(notebook(cell(metadata={"name": 5})), "a.ipynb").cells
    assert found.cell_id == "c1"


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    """JSON can hold it; no kernel can be sent it, and no file can be written with it."""
    (found,) = parse_notebook(rb'{"cells": [{"cell_type": "code", "source": "s = \"\ud83d\""}]}', "a.ipynb").cells
    assert found.source == 's = "?"'


UNREADABLE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\t", "is empty"),
    "not JSON": (b"print('hello')", "is not JSON"),
    "half a notebook": (WHOLE[: len(WHOLE) // 2], "is not JSON"),
    "an HTML page": (b"<!DOCTYPE html><html></html>", "is not JSON"),
    "a zip archive": (b"PK\x03\x04\x14\x00\x00\x00\x08\x00\xff\xfe", "is not text"),
    "a picture": (b"\x89PNG\r\n\x1a\n\xff\xd8", "is not text"),
    "Latin-1": ('{"cells": [{"source": "é"}]}'.encode("latin-1"), "is not text"),
    "half of UTF-16": (b"\xff\xfe{", "is not text"),
    "a list": (b"[1, 2]", "JSON list"),
    "a number": (b"5", "JSON int"),
    "null": (b"null", "JSON NoneType"),
    "an object without cells": (b'{"metadata": {}}', "no list of cells"),
    "cells null": (b'{"cells": null}', "no list of cells"),
    "cells a text": (b'{"cells": "x = 1"}', "no list of cells"),
    "worksheets a number": (b'{"worksheets": 3}', "no list of cells"),
    "brackets without end": (b"[" * 200_000, "nested too deeply"),
    "a number of 5000 digits": (b'{"cells": [' + b"9" * 5000 + b"]}", "not a notebook"),
}


@pytest.mark.parametrize(("data", "why"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_notebook_is_said(data: bytes, why: str) -> None:
    """One typed error that names the file and what is wrong with it."""
    with pytest.raises(UnreadableNotebook, match=why) as caught:
        parse_notebook(data, "a.ipynb")
    assert "a.ipynb" in str(caught.value)


@pytest.mark.parametrize("sheet", [{"cells": None}, {"cells": 5}, {}, None, 3], ids=repr)
def test_odd_worksheets_have_no_cells(sheet: object) -> None:
    """Format 3 with debris in it is a notebook without cells."""
    assert parse_notebook(json.dumps({"worksheets": [sheet]}).encode(), "a.ipynb").cells == ()


def test_changed_bytes_are_cells_or_unreadable() -> None:
    """1000 notebooks with changed, cut and doubled bytes: cells or UnreadableNotebook, nothing else."""
    chance = random.Random(3)
    whole = notebook(cell(metadata={"nbgrader": {"grade_id": "pair"}}), {"cell_type": "markdown", "source": ["a", "b"]})
    unreadable = 0
    for _ in range(1000):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(data))
            if chance.random() < 0.5:
                data[at] = chance.randrange(256)
            else:
                data[at : at + chance.randrange(8)] = data[at : at + chance.randrange(8)]
        try:
            found = parse_notebook(bytes(data), "a.ipynb").cells
        except UnreadableNotebook:
            unreadable += 1
        else:
            assert all(isinstance(one, SubmittedCell) for one in found)
    assert 100 < unreadable < 1000


def test_a_file_is_read(tmp_path: Path) -> None:
    """From disk, the same."""
    path = tmp_path / "Hausaufgabe 第一次.ipynb"
    path.write_bytes(WHOLE)
    assert read_notebook(path) == parse_notebook(WHOLE, "a.ipynb")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is checked before the bytes are loaded."""
    monkeypatch.setattr(reading, "MAX_NOTEBOOK_BYTES", 10)
    path = tmp_path / "a.ipynb"
    path.write_bytes(WHOLE)
    with pytest.raises(UnreadableNotebook, match="at most 10"):
        read_notebook(path)


def test_what_is_not_a_file_is_said(tmp_path: Path) -> None:
    """Missing, a folder, a pipe that would block, a broken link."""
    folder, pipe, link = (tmp_path / name for name in ("folder.ipynb", "pipe.ipynb", "link.ipynb"))
    folder.mkdir()
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "gone")
    for path in (tmp_path / "missing.ipynb", folder, pipe, link):
        with pytest.raises(UnreadableNotebook, match=path.name):
            read_notebook(path)


def test_the_number_of_cells_is_bounded() -> None:
    """Of whatever kind they are."""
    assert len(parse_notebook(notebook(*[CELL] * 1000), "a.ipynb").cells) == 1000
    with pytest.raises(UnreadableNotebook, match=r"a\.ipynb has 1001 cells; a notebook has at most 1000"):
        parse_notebook(notebook(*[{}] * 1001), "a.ipynb")
