"""What an archive may cost."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True)
class Bounds:
    """What an archive may cost.

    Attributes:
        members: how many files and folders it may hold.
        total_bytes: of all files that are written out.
        ratio: how many times larger than its packed form a file above `ratio_from_bytes` may be. The lessons reach 4.
        directory_bytes: size of a zip's list of its members, which is read into memory whole.
        archives: whether archives in it are written out.
    """

    members: int = 50_000
    total_bytes: int = 8 * 1024 * MIB
    ratio: int = 200
    ratio_from_bytes: int = 8 * MIB
    directory_bytes: int = 16 * MIB
    archives: bool = True


CLASS = Bounds()
STUDENT = Bounds(members=2_000, total_bytes=64 * MIB, directory_bytes=MIB, archives=False)
"""For an archive that one student handed in."""
MAX_STUDENT_ARCHIVE_BYTES = 100 * MIB
