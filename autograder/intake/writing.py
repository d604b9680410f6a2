"""Writing out what an archive holds: where each member lands, what is refused, what has been used up."""

from __future__ import annotations

import errno
import struct
import tarfile
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

from autograder.intake import names
from autograder.intake.bounds import MAX_STUDENT_ARCHIVE_BYTES, MIB, Bounds
from autograder.intake.entries import ARCHIVES, FOREIGN_ARCHIVES, METADATA, Entry, Refused, is_leftover, is_notebook
from autograder.notebooks.reading import MAX_NOTEBOOK_BYTES
from autograder.results import Text

BLOCK = 256 * 1024
FULL = (errno.ENOSPC, errno.EDQUOT)

ENCRYPTED = Text(en="it is encrypted; it can be handed in only without a password", zh="已加密；请提交无密码的文件")
LINK = Text(en="it is a link to another file", zh="它是指向其他文件的链接")
DEVICE = Text(en="it is a device or a pipe, not a file", zh="它是设备或管道，不是文件")
TWICE = Text(en="another file has the same name, letters' case aside", zh="已有同名文件（不区分大小写）")
METHOD = Text(en="it is packed by a method that learning platforms do not use", zh="压缩方法不受支持")
FULL_ARCHIVE = Text(
    en="the archive's other files use up the space that is allowed", zh="压缩包中的其他文件已占满允许的空间"
)
NESTED = Text(en="it is an archive within an archive within an archive", zh="压缩包嵌套层数过多")
FOREIGN = Text(
    en="7z and rar archives are not unpacked; a .zip or .tar.gz is", zh="不支持 7z 和 rar；请使用 .zip 或 .tar.gz"
)


@dataclass
class Unpacked:
    """What came out of an archive; `written` counts bytes."""

    folder: Path
    written: int = 0
    entries: list[Entry] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    refusals: dict[Path, Text] = field(default_factory=dict)
    """Why a file below `folder` is only an empty stand-in for one that was refused."""


class Writer:
    """Writes members below one folder, and knows what has been used up."""

    def __init__(self, unpacked: Unpacked, bounds: Bounds) -> None:
        self.unpacked = unpacked
        self.bounds = bounds
        self._folders: dict[str, PurePosixPath] = {}
        self._files: set[str] = set()

    def place(self, name: str, *, folder: bool) -> PurePosixPath | None:
        """The member's path; None when it is nobody's work or has no safe place."""
        path = names.safe_path(name)
        if isinstance(path, Text):
            self.refuse(name, path)
            return None
        if is_leftover(path):
            return None
        parents = list(reversed(path.parents))[1:] + ([path] if folder else [])
        placed = PurePosixPath()
        for parent in parents:
            key = names.same(str(parent))
            if key in self._files:
                self.refuse(name, TWICE)
                return None
            placed = self._folders.setdefault(key, placed / parent.name)
        if folder:
            self._on_disk(placed).mkdir(parents=True, exist_ok=True)
            return placed
        key = names.same(str(path))
        if key in self._files or key in self._folders:
            self.refuse(name, TWICE)
            return None
        self._files.add(key)
        return placed / path.name

    def refuse(self, name: str, why: Text) -> None:
        """Note it."""
        self.unpacked.refused.append(Refused(names.shown(name), why))

    def write(self, path: PurePosixPath, size: int, packed: int | None, reason: Text | None, source: Any) -> None:
        """One member.

        Args:
            size: bytes, as the archive says.
            packed: bytes in the archive, where they are known for this member alone.
            reason: why it is refused, if that is known already.
            source: called to open it.
        """
        target = self._on_disk(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        limit = self._limit(path)
        if limit is None and reason is None:
            target.touch()
            self.unpacked.entries.append(Entry(path, target))
            return
        limit = limit or 0
        reason = reason or self._too_much(path, size, packed, limit)
        if reason is None:
            try:
                with source() as stream, target.open("wb") as file:
                    written = _copy(stream, file, min(limit, self.left))
                if written is None:
                    reason = self._too_much(path, limit + 1, None, limit) or FULL_ARCHIVE
                else:
                    self.unpacked.written += written
            except DAMAGE as error:
                if isinstance(error, OSError) and error.errno in FULL:
                    raise
                reason = damaged(error)
        if reason is None:
            self.unpacked.entries.append(Entry(path, target))
            return
        target.write_bytes(b"")
        self.unpacked.refusals[target] = reason
        self.unpacked.entries.append(Entry(path, None, reason))
        self.refuse(str(path), reason)

    def _limit(self, path: PurePosixPath) -> int | None:
        """How large a file may be; None when its content is not needed."""
        name = path.name.lower()
        if is_notebook(name):
            return MAX_NOTEBOOK_BYTES
        if name.endswith(ARCHIVES + FOREIGN_ARCHIVES):
            return MAX_STUDENT_ARCHIVE_BYTES
        if name == METADATA:
            return 64 * MIB
        return MIB if name.endswith(".txt") else None

    def _too_much(self, path: PurePosixPath, size: int, packed: int | None, limit: int) -> Text | None:
        if not self.bounds.archives and path.name.lower().endswith(ARCHIVES + FOREIGN_ARCHIVES):
            return NESTED
        if path.name.lower().endswith(FOREIGN_ARCHIVES):
            return FOREIGN
        if size > limit:
            return Text(en=f"it has more than {limit} bytes", zh=f"文件超过 {limit} 字节")
        if packed is not None and size > max(self.bounds.ratio_from_bytes, self.bounds.ratio * packed):
            return Text(
                en=f"it unpacks to more than {self.bounds.ratio} times its size ({packed} to {size} bytes)",
                zh=f"解压后超过原大小的 {self.bounds.ratio} 倍（{packed} 到 {size} 字节）",
            )
        return FULL_ARCHIVE if size > self.left else None

    @property
    def left(self) -> int:
        """Bytes that may still be written."""
        return self.bounds.total_bytes - self.unpacked.written

    def _on_disk(self, path: PurePosixPath) -> Path:
        return self.unpacked.folder.joinpath(*map(names.on_disk, path.parts))


DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    struct.error,
    tarfile.TarError,
    UnicodeError,
    ValueError,
)
"""What the libraries raise over bytes that are no archive, or no longer one."""


class Swollen(tarfile.ReadError):
    """More came out of an archive than may."""


def damaged(error: Exception) -> Text:
    """The reason to give for an error of a library."""
    if isinstance(error, Swollen):
        return Text(en=f"it unpacks to more than {error} bytes", zh=f"解压后超过 {error} 字节")
    what = str(error) or type(error).__name__
    return Text(en=f"it is damaged ({what})", zh=f"文件已损坏（{what}）")


def _copy(stream: IO[bytes], file: BinaryIO, limit: int) -> int | None:
    """Copy; None when there are more than `limit` bytes, whatever the archive said."""
    written = 0
    while block := stream.read(BLOCK):
        written += len(block)
        if written > limit:
            return None
        file.write(block)
    return written
