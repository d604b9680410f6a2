"""Gradescope's `submission_metadata.yml`, of which only who handed in what is kept.

The file also holds every result of every attempt. It is read event by event, so that neither its size nor what is
hidden in it (aliases, tags, depths) costs memory or makes an object.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from autograder.errors import OrderMattersError

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
SUBMITTERS = ":submitters"


@dataclass
class Submitter:
    """Who handed in, as far as Gradescope says."""

    name: str = ""
    sid: str = ""
    email: str = ""

    @property
    def who(self) -> str:
        """The id by which the student is known elsewhere too."""
        return self.sid or self.email or self.name

    @property
    def known_as(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for text in (self.sid, self.email, self.name) if text))


Metadata = dict[str, list[Submitter]]
"""From a folder's name to those who handed it in."""


@dataclass
class _Level:
    """A mapping or a list that is open, and the key in it at which the reading stands."""

    mapping: bool
    key: str | None = field(default=None)


def read_metadata(path: Path) -> Metadata:
    """Raises OrderMattersError when the file is no such list."""
    metadata: Metadata = {}
    try:
        with path.open("rb") as file:
            for keys, value in _scalars(file):
                folder, rest = (keys[0], keys[1:]) if keys else (None, ())
                if folder is None or not rest or rest[0] != SUBMITTERS:
                    continue
                submitters = metadata.setdefault(folder, [])
                if len(rest) == 1:  # a list item begins
                    submitters.append(Submitter())
                elif len(rest) == 2 and submitters and rest[1] in (":name", ":sid", ":email"):
                    setattr(submitters[-1], rest[1][1:], value)
    except (yaml.YAMLError, UnicodeError, ValueError) as error:
        problem = getattr(error, "problem", None) or type(error).__name__
        raise OrderMattersError(
            f"{path.name} can't be read ({problem}). Download the export from Gradescope again."
        ) from error
    return {folder: [one for one in submitters if one.who] for folder, submitters in metadata.items()}


def _scalars(file: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each value with the keys that lead to it, lists apart; a mapping in a list begins with its keys and no value."""
    levels: list[_Level] = []

    def keys() -> tuple[str, ...]:
        return tuple(level.key for level in levels if level.mapping and level.key is not None)

    def done() -> None:
        if levels and levels[-1].mapping:
            levels[-1].key = None

    for event in yaml.parse(file, Loader=Loader):
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            mapping = isinstance(event, yaml.MappingStartEvent)
            if mapping and levels and not levels[-1].mapping and len(levels) == 3:
                yield keys(), ""
            if levels and levels[-1].mapping and levels[-1].key is None:
                levels[-1].key = ""  # a key that is no text
            levels.append(_Level(mapping))
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            levels.pop()
            done()
        elif isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent)):
            text = event.value if isinstance(event, yaml.ScalarEvent) else ""
            if levels and levels[-1].mapping and levels[-1].key is None:
                levels[-1].key = text
            else:
                if levels and levels[-1].mapping and len(levels) <= 4:
                    null = isinstance(event, yaml.ScalarEvent) and event.style is None and text in ("", "~", "null")
                    yield keys(), "" if null else text
                done()
