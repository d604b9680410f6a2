"""What intake works on: files with the names that they had on the platform, wherever they lie now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from autograder.results import Text

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
FOREIGN_ARCHIVES = (".7z", ".rar")
METADATA = "submission_metadata.yml"
"""Gradescope's list of who handed in what."""


@dataclass(frozen=True)
class Entry:
    """One file of an export.

    Attributes:
        path: its name on the platform, folders included, relative to the export.
        file: where it can be read; None when it was refused.
        refusal: why it was refused.
    """

    path: PurePosixPath
    file: Path | None
    refusal: Text | None = None

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def is_notebook(self) -> bool:
        return is_notebook(self.name)

    @property
    def is_archive(self) -> bool:
        """Of a kind that can be unpacked, or of one that people take for such."""
        return self.name.lower().endswith(ARCHIVES + FOREIGN_ARCHIVES)

    def at(self, path: PurePosixPath) -> Entry:
        """The same file under another name."""
        return replace(self, path=path)


@dataclass(frozen=True)
class Refused:
    """What was left out of an archive, and why."""

    name: str
    why: Text


def is_notebook(name: str) -> bool:
    return name.lower().endswith(".ipynb")


def is_leftover(path: PurePosixPath) -> bool:
    """What editors and systems leave behind: hidden files, checkpoints, __MACOSX."""
    return any(part.startswith((".", "__")) for part in path.parts)
