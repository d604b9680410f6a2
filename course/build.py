"""Lessons to notebooks: `course/lessons/*.md` → `source/` → (nbgrader's GenerateAssignment) → `release/`."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbformat import NotebookNode
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from course.inline import Toolbox, inline, read_toolbox, tool_modules

ROOT = Path(__file__).resolve().parent.parent
BADGES, TOOLS = "badges", "tools"
MYST = "md:myst"
TOOLS_HEADER = (
    "# @title Course tools: run this cell once. It draws the figures and runs the checks; no need to read it."
)


class LessonError(Exception):
    """A lesson cannot be built; the message names the file, the cell and the remedy."""


@dataclass(frozen=True)
class Course:
    """Where things are. `root` holds `course/lessons`, `pyproject.toml` and `nbgrader_config.py`."""

    root: Path = ROOT

    @property
    def lessons(self) -> list[Path]:
        return sorted((self.root / "course" / "lessons").glob("[0-9][0-9]-*.md"))

    def translation(self, lesson: Path) -> Path:
        return lesson.parent / "zh" / lesson.name

    @property
    def repository(self) -> str:
        """Address of the public repository, for badges: the one setting `tool.order-matters.repository`."""
        settings = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))
        return str(settings["tool"]["order-matters"]["repository"]).rstrip("/")


def english_hash(text: str) -> str:
    """What binds a translated cell to its original: the first 12 hex digits of the SHA-256 of the English text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def build_notebook(course: Course, toolbox: Toolbox, lesson: Path, *, chinese: bool) -> NotebookNode:
    """One instructor notebook, answers and hidden tests included, in English or with Chinese prose."""
    notebook: NotebookNode = jupytext.read(lesson, fmt=MYST)
    prose = _read_translation(course, lesson, notebook) if chinese else {}
    for cell in notebook.cells:
        name = cell.metadata.get("name")
        if cell.cell_type == "markdown" and name in prose:
            cell.source = prose[name]
    _name_cells(lesson, notebook)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code" and cell.metadata["name"] != TOOLS]
    for cell in notebook.cells:
        if cell.metadata["name"] == BADGES:
            cell.source = _badges(course, lesson.stem, chinese=chinese)
        elif cell.metadata["name"] == TOOLS:
            try:
                cell.source = f"{TOOLS_HEADER}\n{inline(toolbox, code)}"
            except ValueError as error:
                raise LessonError(f"{lesson}: {error}") from error
            cell.metadata.update(
                cellView="form",
                jupyter={"source_hidden": True},
                nbgrader={
                    "grade": False,
                    "grade_id": TOOLS,
                    "locked": True,
                    "schema_version": 3,
                    "solution": False,
                    "task": False,
                },
            )
    notebook.metadata = NotebookNode(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            "license": {"name": "CC BY 4.0"},
            "title": _title(lesson, notebook),
        }
    )
    if not chinese:
        # Paired by Jupytext: saving the source notebook in JupyterLab writes the lesson text too.
        formats = f"source//{lesson.stem}//ipynb,course/lessons///md:myst"
        notebook.metadata["jupytext"] = {"formats": formats}
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    nbformat.validate(notebook)
    return notebook


def _name_cells(lesson: Path, notebook: NotebookNode) -> None:
    seen: set[str] = set()
    for number, cell in enumerate(notebook.cells):
        name = cell.metadata.get("name")
        if not name:
            start = cell.source.strip().splitlines()[:1]
            raise LessonError(f"{lesson}: cell {number} ({cell.cell_type}, {start}) has no name; give it one.")
        if name in seen or not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", name):
            raise LessonError(f"{lesson}: the cell name {name!r} is taken or not lower-case-with-hyphens.")
        seen.add(name)
        cell["id"] = name
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", name)
        if grade_id != name:
            raise LessonError(f"{lesson}: cell {name!r} has the grade_id {grade_id!r}; they must be equal.")
    for needed in (BADGES, TOOLS):
        if needed not in seen:
            raise LessonError(f"{lesson}: there is no cell named {needed!r}, which the build fills in.")


def _title(lesson: Path, notebook: NotebookNode) -> str:
    """The lesson's heading: the first line of the form `# …` in the cell `title`."""
    for cell in notebook.cells:
        if cell.metadata["name"] == "title" and (heading := re.search(r"^# (.+)$", cell.source, flags=re.MULTILINE)):
            return heading.group(1).strip()
    raise LessonError(f"{lesson}: there is no cell named 'title' with a heading `# …`.")


def _read_translation(course: Course, lesson: Path, notebook: NotebookNode) -> dict[str, str]:
    path = course.translation(lesson)
    translation = jupytext.read(path, fmt=MYST)
    found: dict[str, str] = {}
    originals = {
        cell.metadata.get("name"): cell.source
        for cell in notebook.cells
        if cell.cell_type == "markdown" and cell.metadata.get("name") != BADGES
    }
    for cell in translation.cells:
        name = cell.metadata.get("name")
        if cell.cell_type != "markdown" or name not in originals or name in found:
            raise LessonError(f"{path}: the cell {name!r} has no English prose cell of that name, or comes twice.")
        if cell.metadata.get("english") != english_hash(originals[name]):
            raise LessonError(
                f"{path}: the cell {name!r} translates an older English text. Revise it, then set "
                f'"english": "{english_hash(originals[name])}".'
            )
        found[name] = cell.source
    missing = [name for name in originals if name not in found]
    if missing:
        raise LessonError(f"{path}: not translated yet: {', '.join(missing)}.")
    return found


def _badges(course: Course, lesson: str, *, chinese: bool) -> str:
    folder = "release/zh" if chinese else "release"
    repository = course.repository
    colab = repository.replace("https://github.com", "https://colab.research.google.com/github")
    image = "https://colab.research.google.com/assets/colab-badge.svg"
    open_text, solution = ("在 Colab 中打开", "参考解答") if chinese else ("Open in Colab", "Worked solution")
    return (
        f"[![{open_text}]({image})]({colab}/blob/main/{folder}/{lesson}/{lesson}.ipynb)\n\n"
        f"[{solution}]({repository}/blob/main/source/{lesson}/{lesson}.ipynb)"
    )


def build(course: Course, target: Path) -> list[Path]:
    """Write `source/` and `release/` below `target`; returns the paths of the notebooks, relative to it."""
    toolbox = read_toolbox(tool_modules(course.root / "course"))
    written: list[Path] = []
    for lesson in course.lessons:
        name = lesson.stem
        editions = [False, True] if course.translation(lesson).exists() else [False]
        for chinese in editions:
            notebook = build_notebook(course, toolbox, lesson, chinese=chinese)
            with tempfile.TemporaryDirectory() as scratch:
                source = Path(scratch) / "source" / name / f"{name}.ipynb"
                _write(notebook, source)
                _generate_assignment(course, Path(scratch), name)
                released = Path(scratch) / "release" / name / f"{name}.ipynb"
                _write(nbformat.read(released, as_version=4), released)  # one layout of JSON, whoever wrote it
                folder = Path("release/zh" if chinese else "release")
                pairs = [(released, folder / name / released.name)]
                if not chinese:
                    pairs.append((source, Path("source") / name / source.name))
                for built, place in pairs:
                    (target / place).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(built, target / place)
                    written.append(place)
    return written


def _write(notebook: NotebookNode, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(notebook, indent=1) + "\n", encoding="utf-8")


def nbgrader_config(root: Path) -> Config:
    """The course's `nbgrader_config.py`, as nbgrader itself would load it."""
    config: Config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
    return config


def _generate_assignment(course: Course, scratch: Path, assignment: str) -> None:
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory

    config: Any = nbgrader_config(course.root)
    config.CourseDirectory.root = str(scratch)
    config.CourseDirectory.assignment_id = assignment
    converter = GenerateAssignment(
        coursedir=CourseDirectory(config=config), config=config, no_database=True, create_assignment=False
    )
    converter.preprocessors = [pp for pp in converter.preprocessors if pp.__name__ != "SaveCells"]
    converter.start()


def differences(course: Course) -> Iterator[Path]:
    """Notebooks below the root that are not what the lessons build, or that no lesson builds."""
    with tempfile.TemporaryDirectory() as scratch:
        built = build(course, Path(scratch))
        for place in built:
            here = course.root / place
            if not here.exists() or here.read_bytes() != (Path(scratch) / place).read_bytes():
                yield place
        for folder in ("source", "release"):
            for stray in sorted((course.root / folder).rglob("*.ipynb")):
                place = stray.relative_to(course.root)
                if place not in built and ".ipynb_checkpoints" not in place.parts:
                    yield place
