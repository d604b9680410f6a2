"""From the frames of a kernel to the outputs of a notebook's cells. The frames are hostile; nothing in them is trusted.

Each part is checked, cut to size and written anew. Kept are text, pictures and formulas: no HTML, no SVG and no script
of a submission reaches the pages of whoever grades it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Any

from nbformat import NotebookNode, from_dict

TEXT_TYPES = ("text/plain", "text/latex")
PICTURE_TYPES = ("image/png", "image/jpeg")
MAX_ERROR_LINES = 200
MAX_NAME = 200
MAX_OUTPUTS = 500
MAX_DISPLAYS = 50
"""Outputs of a notebook that can be updated; each update rewrites all of its name."""
MAX_DESCRIPTION = 2000
NOT_RUN = "[Not run while grading: nothing that is judged needs it. Shown as it was handed in.]\n"
CUT = "\n[The rest of this cell's output was cut off.]\n"


def output_of(kind: str, **fields: Any) -> NotebookNode:
    """An output of a cell. nbformat's own `new_output` checks each against a schema, which takes a millisecond."""
    if kind in ("display_data", "execute_result"):
        fields.setdefault("metadata", {})
    output: NotebookNode = from_dict({"output_type": kind, **fields})
    return output


class CellOutputs:
    """Collects the outputs of one cell.

    Args:
        cell: whose `outputs` is filled.
        room: how many bytes of text and pictures are kept.
        displays: outputs that can still be updated, by display id; shared by the cells of a notebook.
    """

    def __init__(self, cell: NotebookNode, room: int, displays: dict[str, list[NotebookNode]]) -> None:
        self._cell = cell
        self._room = room
        self._displays = displays
        self._clear_before_next = False
        self._cut = False

    def take(self, kind: str, content: dict[str, Any]) -> None:
        """One frame. What is malformed, unknown or too much leaves no trace but a line that says output was cut off."""
        match kind:
            case "stream":
                self._stream(content)
            case "display_data" | "execute_result":
                self._display(kind, content)
            case "update_display_data":
                self._update(content)
            case "error":
                self._error(content)
            case "clear_output":
                if content.get("wait") is True:
                    self._clear_before_next = True
                else:
                    self._cell.outputs = []

    def _stream(self, content: dict[str, Any]) -> None:
        name = "stderr" if content.get("name") == "stderr" else "stdout"
        text = self._fit(clean_text(content.get("text")))
        if not text:
            return
        self._make_way()
        last = self._cell.outputs[-1] if self._cell.outputs else None
        if last is not None and last.output_type == "stream" and last.name == name:
            last.text += text
        else:
            self._add(output_of("stream", name=name, text=text))

    def _display(self, kind: str, content: dict[str, Any]) -> None:
        data = self._data(content)
        if not data:
            return
        self._make_way()
        more = {"execution_count": self._cell.execution_count} if kind == "execute_result" else {}
        output = output_of(kind, data=data, metadata=_picture_metadata(content, data), **more)
        display_id = display_id_of(content)
        if self._add(output) and display_id and sum(map(len, self._displays.values())) < MAX_DISPLAYS:
            self._displays.setdefault(display_id, []).append(output)

    def _update(self, content: dict[str, Any]) -> None:
        data = self._data(content)
        for output in self._displays.get(display_id_of(content) or "", []) if data else []:
            output.data = dict(data)

    def _error(self, content: dict[str, Any]) -> None:
        lines = content.get("traceback")
        lines = lines[:MAX_ERROR_LINES] if isinstance(lines, list) else []
        self._make_way()
        self._add(
            output_of(
                "error",
                ename=clean_text(content.get("ename"))[:MAX_NAME] or "Error",
                evalue=self._fit(clean_text(content.get("evalue"))),
                traceback=[self._fit(clean_text(line)) for line in lines],
            )
        )

    def _data(self, content: dict[str, Any]) -> dict[str, str]:
        """The parts of a MIME bundle that are kept, each a text."""
        bundle = content.get("data")
        if not isinstance(bundle, dict):
            return {}
        kept = {}
        for kind in PICTURE_TYPES:
            picture = bundle.get(kind)
            if isinstance(picture, str) and len(picture) <= self._room and _is_base64(picture):
                self._room -= len(picture)
                kept[kind] = picture
            elif picture is not None:
                self._say_cut()
        for kind in TEXT_TYPES:
            text = self._fit(clean_text(bundle.get(kind)))
            if text:
                kept[kind] = text
        return kept

    def _fit(self, text: str) -> str:
        """As much of the text as there is room for."""
        size = len(text.encode())
        if size <= self._room:
            self._room -= size
            return text
        kept = text.encode()[: self._room].decode(errors="ignore")
        self._room = 0
        self._say_cut()
        return kept

    def _make_way(self) -> None:
        if self._clear_before_next:
            self._cell.outputs, self._clear_before_next = [], False

    def _add(self, output: NotebookNode) -> bool:
        """Whether there was room for it."""
        if len(self._cell.outputs) < MAX_OUTPUTS:
            self._cell.outputs.append(output)
            return True
        self._say_cut()
        return False

    def _say_cut(self) -> None:
        self._cut = True

    def finish(self) -> None:
        """Say so if something was cut off."""
        if self._cut:
            self._cell.outputs.append(output_of("stream", name="stdout", text=CUT))


def keep_handed_in(cell: NotebookNode, outputs: Sequence[dict[str, Any]], room: int) -> None:
    """Fill a cell that is not run with the outputs that were handed in, after the same checks, and say so."""
    kept = CellOutputs(cell, room, {})
    kept.take("stream", {"name": "stdout", "text": NOT_RUN})
    for output in outputs:
        text = output.get("text")
        kept.take(
            str(output.get("output_type")),
            {
                **{name: output.get(name) for name in ("name", "metadata")},
                "text": "".join(map(str, text)) if isinstance(text, list) else text,
                "data": {
                    kind: "".join(map(str, part)) if isinstance(part, list) else part for kind, part in data.items()
                }
                if isinstance(data := output.get("data"), dict)
                else None,
            },
        )
    kept.finish()


def clean_text(value: object) -> str:
    """A text that any file can hold: half characters and control characters, but for colours, replaced or removed."""
    if not isinstance(value, str):
        return ""
    whole = value.encode(errors="replace").decode()
    return re.sub("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]", "", whole)


def _picture_metadata(content: dict[str, Any], data: dict[str, str]) -> dict[str, dict[str, str]]:
    """The descriptions of pictures, for those who can't see them."""
    metadata = content.get("metadata")
    found = {}
    for kind in PICTURE_TYPES:
        about = metadata.get(kind) if isinstance(metadata, dict) and kind in data else None
        text = clean_text(about.get("alt")) if isinstance(about, dict) else ""
        if text:
            found[kind] = {"alt": text[:MAX_DESCRIPTION]}
    return found


def display_id_of(content: dict[str, Any]) -> str | None:
    """By what name the display can be updated later, if it can."""
    transient = content.get("transient")
    found = transient.get("display_id") if isinstance(transient, dict) else None
    return found if isinstance(found, str) and len(found) <= MAX_NAME else None


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.replace("\n", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
