"""Unpacking archives that strangers made: into a folder of our own, within bounds, with a reason for what is refused.

Only what grading needs is written out: notebooks, archives within (one level), and the platforms' lists. Other files
are kept by name only, as empty files, so that a student can be told what was found instead of a notebook.
"""

from __future__ import annotations

import errno
import gzip
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

from autograder.errors import BadArchive
from autograder.intake import names
from autograder.intake.entries import ARCHIVES, FOREIGN_ARCHIVES, METADATA, Entry, Refused, is_leftover, is_notebook
from autograder.notebooks.reading import MAX_NOTEBOOK_BYTES
from autograder.results import Text

MIB = 2**20
BLOCK = 256 * 1024
FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Bounds:
    """What an archive may cost.

    Attributes:
        members: how many files and folders it may hold.
        total_bytes: of all files that are written out.
        ratio: how many times larger than its packed form a file above `ratio_from_bytes` may be. Notebooks reach 30.
        directory_bytes: size of a zip's list of its members, which is read into memory whole.
    """

    members: int = 50_000
    total_bytes: int = 8 * 1024 * MIB
    ratio: int = 200
    ratio_from_bytes: int = 2 * MIB
    directory_bytes: int = 16 * MIB


CLASS = Bounds()
STUDENT = Bounds(members=2_000, total_bytes=200 * MIB, directory_bytes=MIB)
"""For an archive that one student handed in."""
MAX_STUDENT_ARCHIVE_BYTES = 100 * MIB
MAX_HEADER_BYTES = 64 * 1024
"""Of a tar's own records, such as a long name."""

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
    """What came out of an archive."""

    folder: Path
    entries: list[Entry] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    refusals: dict[Path, Text] = field(default_factory=dict)
    """Why a file below `folder` is only an empty stand-in for one that was refused."""


def is_archive(path: Path) -> bool:
    return path.name.lower().endswith(ARCHIVES + FOREIGN_ARCHIVES)


def unpack(archive: Path, into: Path, bounds: Bounds = CLASS) -> Unpacked:
    """Unpack a .zip, .tar, .tar.gz or .tgz file into the folder `into`, which must not exist.

    Members that are refused are named in the result with the reason; the others are unpacked.

    Raises:
        BadArchive: no archive of these kinds, or nothing of it can be read.
    """
    into.mkdir(parents=True)
    unpacked = Unpacked(into)
    name = archive.name.lower()
    with archive.open("rb") as file:
        magic = file.read(8)
    if name.endswith(FOREIGN_ARCHIVES) or magic.startswith((b"Rar!", b"7z\xbc\xaf\x27\x1c")):
        raise BadArchive(archive.name, "it is a 7z or rar archive", "Unpack it yourself and give the folder.")
    writer = _Writer(unpacked, bounds, within=bounds is not CLASS)
    if name.endswith(".zip"):
        _unpack_zip(archive, writer)
    elif name.endswith(ARCHIVES):
        _unpack_tar(archive, writer, packed=magic.startswith(b"\x1f\x8b"))
    else:
        raise BadArchive(archive.name, "it is no .zip, .tar, .tar.gz or .tgz file", "Unpack it and give the folder.")
    return unpacked


class _Writer:
    """Writes members below one folder, and knows what has been used up."""

    def __init__(self, unpacked: Unpacked, bounds: Bounds, *, within: bool) -> None:
        self.unpacked = unpacked
        self.bounds = bounds
        self._within = within
        self._left = bounds.total_bytes
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
                    written = _copy(stream, file, min(limit, self._left))
                if written is None:
                    reason = self._too_much(path, limit + 1, None, limit) or FULL_ARCHIVE
                else:
                    self._left -= written
            except _DAMAGE as error:
                if isinstance(error, OSError) and error.errno in FULL:
                    raise
                reason = _damaged(error)
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
        if self._within and path.name.lower().endswith(ARCHIVES + FOREIGN_ARCHIVES):
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
        return FULL_ARCHIVE if size > self._left else None

    def _on_disk(self, path: PurePosixPath) -> Path:
        return self.unpacked.folder.joinpath(*map(names.on_disk, path.parts))


_DAMAGE = (
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


def _damaged(error: Exception) -> Text:
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


def _unpack_zip(archive: Path, writer: _Writer) -> None:
    with _opening(archive):
        if (size := _directory_bytes(archive)) > writer.bounds.directory_bytes:
            raise BadArchive(archive.name, f"its list of members has {size} bytes", "Unpack it and give the folder.")
        file = zipfile.ZipFile(archive)
    with file:
        members = file.infolist()
        if len(members) > writer.bounds.members:
            raise _too_many(archive, writer.bounds)
        for member in members:
            name = names.zip_name(member.orig_filename, member.flag_bits, member.extra)
            path = writer.place(name, folder=member.is_dir())
            if path is None or member.is_dir():
                continue
            kind = stat.S_IFMT(member.external_attr >> 16)
            reason = None
            if kind == stat.S_IFLNK:
                reason = LINK
            elif kind not in (0, stat.S_IFREG):
                reason = DEVICE
            elif member.flag_bits & 0x2041:  # encrypted, strongly encrypted, hidden headers
                reason = ENCRYPTED
            elif member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                reason = METHOD

            def opened(member: zipfile.ZipInfo = member) -> IO[bytes]:
                return file.open(member)

            writer.write(path, member.file_size, member.compress_size, reason, opened)


def _directory_bytes(archive: Path) -> int:
    """The size of a zip's list of members, before anything reads it into memory; 0 when there is none."""
    with archive.open("rb") as file:
        start = max(0, file.seek(0, 2) - 65_557)
        file.seek(start)
        tail = file.read()
        at = tail.rfind(b"PK\x05\x06")
        if at < 0 or len(tail) < at + 22:
            return 0
        size: int = struct.unpack_from("<I", tail, at + 12)[0]
        if size == 0xFFFFFFFF and at >= 20 and tail[at - 20 : at - 16] == b"PK\x06\x07":
            file.seek(struct.unpack_from("<Q", tail, at - 12)[0])
            record = file.read(56)
            if len(record) == 56 and record.startswith(b"PK\x06\x06"):
                size = struct.unpack_from("<Q", record, 40)[0]
        return size


class _CarefulInfo(tarfile.TarInfo):
    """A tar header that does not make tarfile read a name of gigabytes into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _CarefulInfo:
        info = super().frombuf(buf, encoding, errors)
        own = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
        if info.type in (*own, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK) and info.size > MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a record of {info.size} bytes that holds no file")
        return info


class _Metered:
    """A stream that ends with an error where an archive has become larger than it may."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream = stream
        self._left = limit
        self._limit = limit

    def read(self, size: int = -1) -> bytes:
        block = self._stream.read(size)
        self._left -= len(block)
        if self._left < 0:
            raise tarfile.ReadError(f"it unpacks to more than {self._limit} bytes")
        return block


def _unpack_tar(archive: Path, writer: _Writer, *, packed: bool) -> None:
    bounds = writer.bounds
    limit = bounds.total_bytes + 2048 * bounds.members
    if packed:
        limit = min(limit, max(16 * MIB, bounds.ratio * archive.stat().st_size))
    members = 0
    with archive.open("rb") as raw:
        stream: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        with _opening(archive):
            file = tarfile.open(  # noqa: SIM115
                fileobj=_Metered(stream, limit),  # type: ignore[call-overload]
                mode="r|",
                encoding="utf-8",
                errors="surrogateescape",
                tarinfo=_CarefulInfo,
            )
        try:
            for member in file:
                members += 1
                if members > bounds.members:
                    raise _too_many(archive, bounds)
                _write_tar_member(file, member, writer)
        except _DAMAGE as error:
            if isinstance(error, OSError) and error.errno in FULL:
                raise
            # What came before is there and is used.
            writer.refuse(f"{archive.name} after {members} members", _damaged(error))


def _write_tar_member(file: tarfile.TarFile, member: tarfile.TarInfo, writer: _Writer) -> None:
    name = names.decoded(member.name.encode("utf-8", "surrogateescape"))
    path = writer.place(name, folder=member.isdir())
    if path is None or member.isdir():
        return
    reason = None
    if member.issym() or member.islnk():
        reason = LINK
    elif not member.isreg() or member.issparse():
        reason = DEVICE
    writer.write(path, member.size, None, reason, lambda: file.extractfile(member))


@contextmanager
def _opening(archive: Path) -> Iterator[None]:
    try:
        yield
    except BadArchive:
        raise
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise  # the disk's fault; a place that cannot be is the archive's
        raise BadArchive(
            archive.name, f"it can't be opened ({error})", "Download it again, or unpack it and give the folder."
        ) from error


def _too_many(archive: Path, bounds: Bounds) -> BadArchive:
    return BadArchive(
        archive.name, f"it holds more than {bounds.members} files", "Unpack it yourself and give the folder."
    )


def discard(folder: Path) -> None:
    """Remove a folder of ours, as far as that is possible."""
    shutil.rmtree(folder, ignore_errors=True)
