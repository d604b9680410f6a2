"""Tolerant reading: from the bytes of a file to its cells. Tags and foreign metadata are dropped here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.errors import UnreadableNotebook
from autograder.results import Text

MAX_NOTEBOOK_BYTES = 50 * 2**20
"""A notebook with every figure embedded has less than 2 MiB."""
MAX_CELLS = 1000
"""A lesson has 75 at most; the time that fitting takes grows with the square of their number."""
MAX_CELL_CHARACTERS = 100_000
MAX_CODE_CHARACTERS = 1_000_000
"""Of a code cell, and of all of them: code is parsed here, and Python's parser may take a kilobyte a character."""
HALF = re.compile("[\ud800-\udfff]")
"""Half of a character of UTF-16, alone. JSON can hold it; no kernel can be sent it."""


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


@dataclass(frozen=True)
class Submitted:
    """A notebook as it was handed in.

    Attributes:
        repairs: what was wrong with the file and had to be mended in reading, for the instructor.
    """

    cells: tuple[SubmittedCell, ...]
    repairs: tuple[Text, ...] = ()


def read_notebook(path: Path) -> Submitted:
    """The notebook in a file.

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
    return parse_notebook(data, path.name)


def parse_notebook(data: bytes, name: str) -> Submitted:
    """A notebook given as bytes: UTF-8 with or without BOM, or UTF-16; formats 3 and 4."""
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
    if len(cells) > MAX_CELLS:
        raise UnreadableNotebook(f"{name} has {len(cells)} cells; a notebook has at most {MAX_CELLS}")
    found = [cell for cell in cells if isinstance(cell, dict)]
    texts = [_text(cell) for cell in found]
    read = tuple(_cell(cell, text) for cell, (text, _) in zip(found, texts, strict=True))
    require_bounded_code([cell.source for cell in read if cell.kind == "code"], name)
    repairs = (UTF_16,) if encoding == "utf-16" else ()
    return Submitted(read, (*repairs, *_told(document, found, texts, len(cells) - len(found))))


def require_bounded_code(sources: Sequence[str], name: str) -> None:
    """Raises UnreadableNotebook where the code cells of the notebook `name` are too long to be parsed here."""
    lengths = [len(source) for source in sources]
    if lengths and max(lengths) > MAX_CELL_CHARACTERS:
        raise UnreadableNotebook(
            f"{name} has a code cell of {max(lengths)} characters; a cell has at most {MAX_CELL_CHARACTERS}"
        )
    if sum(lengths) > MAX_CODE_CHARACTERS:
        raise UnreadableNotebook(f"{name} has {sum(lengths)} characters of code; {MAX_CODE_CHARACTERS} are allowed")


def _cell(cell: dict[str, Any], text: str) -> SubmittedCell:
    metadata = cell.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    nbgrader = metadata.get("nbgrader")
    grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    names = [name for name in (metadata.get("name"), cell.get("id")) if isinstance(name, str) and name]
    outputs = cell.get("outputs")
    return SubmittedCell(
        kind="code" if cell.get("cell_type") == "code" else "markdown",
        source=text.replace("\r\n", "\n")
        .encode("utf-8", errors="replace")
        .decode("utf-8"),  # a lone surrogate becomes "?"
        grade_id=grade_id if isinstance(grade_id, str) else None,
        cell_id=names[0] if names else None,
        outputs=tuple(part for part in outputs if isinstance(part, dict)) if isinstance(outputs, list) else (),
    )


def _text(cell: dict[str, Any]) -> tuple[str, bool]:
    """The text of a cell's source, and whether that is all of it."""
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, str):
        return source, True
    if not isinstance(source, list):
        return "", False
    try:
        return "".join(source), True
    except TypeError:
        return "".join(part for part in source if isinstance(part, str)), False


UTF_16 = Text(en="the file was in UTF-16, not in UTF-8", zh="文件是 UTF-16 编码，不是 UTF-8")
FORMAT_3 = Text(en="it was written in notebook format 3, read as format 4", zh="笔记本格式为 3，按格式 4 读取")
NO_FORMAT = Text(
    en="its format number was wrong or missing, read as format 4", zh="笔记本格式号有误或缺失，按格式 4 读取"
)
CELL_TYPES = ("code", "markdown", "raw", "heading")
MAX_LANGUAGE = 40
"""Characters that are shown of what a file says about its language."""


def _told(
    document: dict[str, Any], cells: Sequence[dict[str, Any]], texts: Sequence[tuple[str, bool]], left_out: int
) -> Iterator[Text]:
    """What an instructor should know about the file.

    Args:
        texts: of each cell, as `_text` gives it.
        left_out: how many entries of the list of cells were no cells.
    """
    if "cells" not in document or document["cells"] is None:
        yield FORMAT_3
    elif document.get("nbformat") != 4 or not isinstance(document.get("nbformat_minor"), int):
        yield NO_FORMAT
    language = _other_language(document.get("metadata"))
    if language:
        yield Text(
            en=f"its kernel was for {language}; it was run with Python", zh=f"内核语言为 {language}，用 Python 运行"
        )
    if left_out:
        yield Text(
            en=f"entries of its list of cells that were no cells, left out: {left_out}",
            zh=f"单元格列表中有 {left_out} 项不是单元格，已略去",
        )
    odd = sum(cell.get("cell_type") not in CELL_TYPES for cell in cells)
    if odd:
        yield Text(en=f"cells of an unknown type, read as text: {odd}", zh=f"{odd} 个单元格类型未知，按文本读取")
    damaged = sum(not whole for _, whole in texts)
    if damaged:
        yield Text(
            en=f"cells whose source was no text or had gaps, of which the text was kept: {damaged}",
            zh=f"{damaged} 个单元格的内容不是文本或有缺失，只保留其中的文本",
        )
    halves = sum(HALF.search(text) is not None for text, _ in texts)
    if halves:
        yield Text(
            en=f"cells with half a character (a lone surrogate), now a question mark: {halves}",
            zh=f"{halves} 个单元格含有半个字符（单独的代理码位），已换成问号",
        )


def _other_language(metadata: Any) -> str | None:
    """The language of the notebook's kernel, if the file names one that is not Python."""
    metadata = metadata if isinstance(metadata, dict) else {}
    parts = {
        name: part if isinstance(part := metadata.get(name), dict) else {} for name in ("kernelspec", "language_info")
    }
    kernel = parts["kernelspec"]
    named = [kernel.get("language"), parts["language_info"].get("name")]
    languages = [name.strip() for name in named if isinstance(name, str) and name.strip()]
    if not languages and kernel.get("name") == "ir":  # Colab writes only this for R
        languages = ["R"]
    if not languages or any("python" in name.lower() for name in languages):
        return None
    return "".join(letter for letter in languages[0] if letter.isprintable())[:MAX_LANGUAGE]
