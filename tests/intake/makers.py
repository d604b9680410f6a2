"""Archives as platforms make them, and as attackers do: real bytes, made here."""

from __future__ import annotations

import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

LESSON = "02-lesson"
Files = Mapping[str, bytes | str]


def notebook(mark: str = "x") -> bytes:
    """A notebook with one cell."""
    cell = {"cell_type": "code", "source": f"# {mark}", "metadata": {}, "outputs": [], "execution_count": None}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}).encode()


def mark_of(path: Path | None) -> str:
    """The mark in a notebook."""
    assert path is not None
    source: str = json.loads(path.read_bytes())["cells"][0]["source"]
    return source.removeprefix("# ")


def raw(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content


def zip_bytes(files: Files) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, raw(content))
    return buffer.getvalue()


def tar_bytes(files: Files, mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(raw(content))
            archive.addfile(info, io.BytesIO(raw(content)))
    return buffer.getvalue()


def write_zip(path: Path, files: Files) -> Path:
    path.write_bytes(zip_bytes(files))
    return path


def write_folder(root: Path, files: Files) -> Path:
    for name, content in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(raw(content))
    return root


def patched(data: bytes, *changes: tuple[int, str, int]) -> bytes:
    """A zip of one member with fields changed in both of its headers.

    Args:
        changes: offset of the field in the central header (in the local one it is 2 less), form, value.
    """
    central = data.rindex(b"PK\x01\x02")
    local = data.index(b"PK\x03\x04")
    changed = bytearray(data)
    for offset, form, value in changes:
        struct.pack_into(form, changed, central + offset, value)
        struct.pack_into(form, changed, local + offset - 2, value)
    return bytes(changed)


def named_raw(data: bytes, old: bytes, new: bytes) -> bytes:
    """A zip whose member's name is these bytes, in no encoding that anybody declares."""
    assert len(old) == len(new)
    return data.replace(old, new)
