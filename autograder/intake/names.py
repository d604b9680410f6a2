"""Names from archives: what they mean, whether they are safe, and what they are called on disk."""

from __future__ import annotations

import hashlib
import re
import struct
import unicodedata
import zlib
from pathlib import PurePosixPath

from autograder.results import Text

MAX_NAME_BYTES = 180
"""Of one part of a path on disk; file systems allow 255, and a suffix may follow."""
MAX_DEPTH = 20
MAX_STUDENT_CHARACTERS = 100
MAX_SHOWN = 200
UTF8_FLAG = 0x800
UNICODE_PATH = 0x7075

ABSOLUTE = Text(en="its path is absolute", zh="路径是绝对路径")
UPWARDS = Text(en="its path leads out of the archive (..)", zh="路径指向压缩包之外（..）")
TOO_DEEP = Text(en=f"it lies more than {MAX_DEPTH} folders deep", zh=f"所在文件夹超过 {MAX_DEPTH} 层")
NO_NAME = Text(en="it has no name", zh="没有文件名")


def decoded(raw: bytes) -> str:
    """The text of a name whose encoding nobody wrote down.

    UTF-8 where it is valid UTF-8; GBK (Windows in Chinese) where the result is mostly common Chinese characters; code
    page 437 otherwise, which the zip format prescribes. Ids in the names are ASCII and the same in all three.
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        text = raw.decode("gbk")
    except UnicodeDecodeError:
        return raw.decode("cp437")
    # Letters with accents read as GBK give rare characters: the second byte of a common one is never ASCII.
    strange = [character for character in text if ord(character) > 127]
    common = [character for character in strange if _is_common_chinese(character)]
    return text if 2 * len(common) > len(strange) else raw.decode("cp437")


def _is_common_chinese(character: str) -> bool:
    try:
        return "\u4e00" <= character <= "\u9fff" and len(character.encode("gb2312")) == 2
    except UnicodeEncodeError:
        return False


def zip_name(name: str, flags: int, extra: bytes) -> str:
    """A zip member's name. `name` is as zipfile decodes it: UTF-8 if the flag says so, else code page 437."""
    if flags & UTF8_FLAG:
        return name
    raw = name.encode("cp437")
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        field, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == UNICODE_PATH and len(field) > 5 and struct.unpack_from("<xI", field)[0] == zlib.crc32(raw):
            return field[5:].decode("utf-8", "replace")
    return decoded(raw)


def _without_controls(name: str) -> str:
    return "".join("_" if unicodedata.category(character) in ("Cc", "Cs") else character for character in name)


def shown(name: str) -> str:
    """A name as a line for people holds it."""
    name = _without_controls(name)
    return name if len(name) <= MAX_SHOWN else name[:MAX_SHOWN] + "…"


def safe_path(name: str) -> PurePosixPath | Text:
    """A member's path below the archive, or why it has none. Backslashes separate too; control characters go."""
    name = _without_controls(name).replace("\\", "/")
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return ABSOLUTE
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        return UPWARDS
    if len(parts) > MAX_DEPTH:
        return TOO_DEEP
    return PurePosixPath(*parts) if parts else NO_NAME


def same(name: str) -> str:
    """Equal for names that some file system takes for one: letters' case and Unicode's forms make no difference."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def on_disk(part: str) -> str:
    """One part of a path, short enough for any file system; the file's suffix stays."""
    if len(part.encode()) <= MAX_NAME_BYTES:
        return part
    stem, dot, suffix = part.rpartition(".")
    if not dot or len(suffix) > 10:
        stem, suffix = part, ""
    mark = hashlib.sha256(part.encode()).hexdigest()[:12]
    return stem.encode()[: MAX_NAME_BYTES - 40].decode("utf-8", "ignore") + "~" + mark + dot * bool(suffix) + suffix


def student_name(text: str) -> str:
    """A student's id made of what a platform calls them: it names a folder, so nothing in it may lead elsewhere."""
    text = unicodedata.normalize("NFC", text)
    text = "".join(character if unicodedata.category(character)[0] != "C" else " " for character in text)
    text = re.sub(r'[/\\:*?"<>|]', "_", text)
    text = " ".join(text.split()).lstrip(". ")[:MAX_STUDENT_CHARACTERS].rstrip(". ")
    return text or "unnamed"
