"""Tolerant reading: from the bytes of a file to its cells. Tags and foreign metadata are dropped here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.errors import UnreadableNotebook

MAX_NOTEBOOK_BYTES = 50 * 2**20
"""A notebook with every figure embedded has less than 2 MiB."""
MAX_CELL_CHARACTERS = 100_000
MAX_CODE_CHARACTERS = 1_000_000
"""Of a code cell, and of all of them: code is parsed here, and Python's parser may take a kilobyte a character."""


@dataclass(frozen=True)
class SubmittedCell:
    """What counts of a submitted cell.

    Attributes:
        kind: "code" or "markdown" (raw cells are read as markdown: they are not run).
        grade_id: nbgrader's id, if the metadata survived.
        cell_id: the notebook format's id or name, if any.
        outputs: as they were handed in. Nobody has looked at them yet.
    """

    kind: str
    source: str
    grade_id: str | None
    cell_id: str | None
    outputs: tuple[dict[str, Any], ...] = ()


def read_cells(path: Path) -> list[SubmittedCell]:
    """The cells of a notebook file.

    Raises:
        UnreadableNotebook: not a file that can be read, too large, not JSON, or JSON that is no notebook.
    """
    try:
        if path.is_symlink():
            raise UnreadableNotebook(f"{path.name} is a link to another file")
        if path.exists() and not path.is_file():
            raise UnreadableNotebook(f"{path.name} is not a file")
        size = path.stat().st_size
        if size > MAX_NOTEBOOK_BYTES:
            raise UnreadableNotebook(f"{path.name} has {size} bytes; a notebook has at most {MAX_NOTEBOOK_BYTES}")
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableNotebook(f"{path.name} can't be opened: {error.strerror}") from error
    return parse_cells(data, path.name)


def parse_cells(data: bytes, name: str) -> list[SubmittedCell]:
    """The cells of a notebook given as bytes: UTF-8 with or without BOM, or UTF-16; formats 3 and 4."""
    if not data.strip():
        raise UnreadableNotebook(f"{name} is empty")
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        document: Any = json.loads(data.decode(encoding))
    except UnicodeDecodeError as error:
        raise UnreadableNotebook(f"{name} is not text in {encoding} ({error.reason} at byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise UnreadableNotebook(f"{name} is not JSON: {error.msg} in line {error.lineno}") from error
    except ValueError as error:  # a number of thousands of digits
        raise UnreadableNotebook(f"{name} is not a notebook: {error}") from error
    except RecursionError as error:
        raise UnreadableNotebook(f"{name} is nested too deeply to be a notebook") from error
    if not isinstance(document, dict):
        raise UnreadableNotebook(f"{name} holds a JSON {type(document).__name__}, not a notebook")
    cells = document.get("cells")
    if cells is None and isinstance(document.get("worksheets"), list):  # format 3
        sheets = [sheet.get("cells") for sheet in document["worksheets"] if isinstance(sheet, dict)]
        cells = [cell for sheet in sheets if isinstance(sheet, list) for cell in sheet]
    if not isinstance(cells, list):
        raise UnreadableNotebook(f"{name} has no list of cells")
    read = [_cell(cell) for cell in cells if isinstance(cell, dict)]
    lengths = [len(cell.source) for cell in read if cell.kind == "code"]
    if lengths and max(lengths) > MAX_CELL_CHARACTERS:
        raise UnreadableNotebook(
            f"{name} has a code cell of {max(lengths)} characters; a cell has at most {MAX_CELL_CHARACTERS}"
        )
    if sum(lengths) > MAX_CODE_CHARACTERS:
        raise UnreadableNotebook(f"{name} has {sum(lengths)} characters of code; {MAX_CODE_CHARACTERS} are allowed")
    return read


def _cell(cell: dict[str, Any]) -> SubmittedCell:
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    metadata = cell.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    nbgrader = metadata.get("nbgrader")
    grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    names = [name for name in (metadata.get("name"), cell.get("id")) if isinstance(name, str) and name]
    outputs = cell.get("outputs")
    text = source.replace("\r\n", "\n") if isinstance(source, str) else ""
    return SubmittedCell(
        kind="code" if cell.get("cell_type") == "code" else "markdown",
        source=text.encode("utf-8", errors="replace").decode("utf-8"),  # JSON can hold what no kernel can be sent
        grade_id=grade_id if isinstance(grade_id, str) else None,
        cell_id=names[0] if names else None,
        outputs=tuple(part for part in outputs if isinstance(part, dict)) if isinstance(outputs, list) else (),
    )
