"""What a page says about the lesson: its title, and where in it each exercise is explained."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

import nbformat
from nbformat import NotebookNode

from autograder.grading.assignments import Assignment
from autograder.notebooks.cells import grade_id, is_answer
from autograder.results import Language

HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", flags=re.MULTILINE)
COLAB = re.compile(r"https://colab\.research\.google\.com/[^\s)]+\.ipynb")


@dataclass(frozen=True)
class Section:
    """A heading of the lesson. `link` opens the notebook there; None when the notebook is published nowhere."""

    heading: str
    link: str | None


@dataclass(frozen=True)
class Lesson:
    """A lesson in one language.

    Attributes:
        file: the released notebook, relative to the course folder.
        reading: for each answer cell, by grade id: the section that explains it, if there is one, and the task itself.
    """

    title: str
    file: str
    reading: Mapping[str, tuple[Section, ...]]


def find_lesson(assignment: Assignment, language: Language) -> Lesson:
    """The lesson in this language, or in English where there is no such edition."""
    editions = [f"release/{assignment.name}"]
    if language == "zh":
        editions.insert(0, f"release/zh/{assignment.name}")
    for edition in editions:
        path = assignment.root / edition / f"{assignment.name}.ipynb"
        if path.exists():
            return _read(str(path), f"{edition}/{assignment.name}.ipynb", path.stat().st_mtime_ns)
    title = str(assignment.release.metadata.get("title", assignment.name))
    return Lesson(title, f"{editions[-1]}/{assignment.name}.ipynb", {})


@lru_cache(maxsize=16)
def _read(path: str, file: str, written_at: int) -> Lesson:
    """The file as it is; the time makes a changed file another one."""
    notebook = nbformat.read(path, 4)
    return Lesson(str(notebook.metadata.get("title", file)), file, reading_of(notebook.cells))


def reading_of(cells: Sequence[NotebookNode]) -> dict[str, tuple[Section, ...]]:
    """For each answer cell the section before its task, and its task: the nearest headings above it."""
    addresses = [match.group() for cell in cells for match in COLAB.finditer(cell.source)]
    published = addresses[0] if addresses else None

    def section(place: int, heading: str) -> Section:
        link = f"{published}#scrollTo={quote(cells[place]['id'])}" if published else None
        return Section(_plain(heading), link)

    headings = [
        (place, texts[-1])
        for place, cell in enumerate(cells)
        if cell.cell_type == "markdown"
        and cell["id"] != "title"
        and not is_answer(cell)
        and (texts := HEADING.findall(_visible(cell.source)))
    ]
    answers = [(place, grade_id(cell) or "") for place, cell in enumerate(cells) if is_answer(cell)]
    above = {name: [item for item in headings if item[0] < place] for place, name in answers}
    tasks = {items[-1][0] for items in above.values() if items}
    found: dict[str, tuple[Section, ...]] = {}
    for name, items in above.items():
        if not items:
            continue
        lessons = [] if "quiz" in name else [item for item in items[:-1] if item[0] not in tasks]
        found[name] = tuple(section(*item) for item in [*lessons[-1:], items[-1]])
    return found


def _visible(source: str) -> str:
    """The text without fenced code, in which a comment looks like a heading."""
    return re.sub(r"^(```+|~~~+).*?^\1", "", source, flags=re.MULTILINE | re.DOTALL)


def _plain(heading: str) -> str:
    """A heading without Markdown's marks and without the points, which the page shows itself."""
    text = re.sub(r"[*_`$]", "", heading)
    return re.sub(r"\s*[(（]\d+(?:\.\d+)?\s*(?:points?|分)[)）]$", "", text)
