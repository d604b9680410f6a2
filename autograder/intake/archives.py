"""Unpacking archives that strangers made: into a folder of our own, within bounds, with a reason for what is refused.

Only what grading needs is written out: notebooks, archives within (one level), and the platforms' lists. Other files
are kept by name only, as empty files, so that a student can be told what was found instead of a notebook.
"""

from __future__ import annotations

import errno
import gzip
import stat
import struct
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from autograder.errors import BadArchive
from autograder.intake import names
from autograder.intake.bounds import CLASS, MIB, Bounds
from autograder.intake.entries import ARCHIVES, FOREIGN_ARCHIVES
from autograder.intake.writing import (
    DAMAGE,
    DEVICE,
    ENCRYPTED,
    FULL,
    LINK,
    METHOD,
    Swollen,
    Unpacked,
    Writer,
    damaged,
)

MAX_HEADER_BYTES = 64 * 1024
"""Of a tar's own records, such as a long name."""


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
    writer = Writer(unpacked, bounds)
    if name.endswith(".zip"):
        _unpack_zip(archive, writer)
    elif name.endswith(ARCHIVES):
        _unpack_tar(archive, writer, packed=magic.startswith(b"\x1f\x8b"))
    else:
        raise BadArchive(archive.name, "it is no .zip, .tar, .tar.gz or .tgz file", "Unpack it and give the folder.")
    return unpacked


def _unpack_zip(archive: Path, writer: Writer) -> None:
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
            folder = name.endswith(("/", "\\"))
            path = writer.place(name, folder=folder)
            if path is None or folder:
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
            raise Swollen(str(self._limit))
        return block


def _unpack_tar(archive: Path, writer: Writer, *, packed: bool) -> None:
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
        except DAMAGE as error:
            if isinstance(error, OSError) and error.errno in FULL:
                raise
            # What came before is there and is used.
            writer.refuse(f"{archive.name} after {members} members", damaged(error))


def _write_tar_member(file: tarfile.TarFile, member: tarfile.TarInfo, writer: Writer) -> None:
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
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise  # the disk's fault; a place that cannot be is the archive's
        raise BadArchive(
            archive.name, f"it can't be opened ({error})", "Download it again, or unpack it and give the folder."
        ) from error


def _too_many(archive: Path, bounds: Bounds) -> BadArchive:
    return BadArchive(
        archive.name, f"it holds more than {bounds.members} files", "Unpack it yourself and give the folder."
    )
