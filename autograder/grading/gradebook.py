"""nbgrader's own gradebook: the assignment's cells, the scores, the executed notebooks where formgrader looks."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import reads
from nbgrader.api import Gradebook, InvalidEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties, CheckCellMetadata, ComputeChecksums, SaveCells
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution, parse_utc
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, OperationalError, SAWarning
from sqlalchemy.pool import NullPool

from autograder.errors import OrderMattersError
from autograder.grading.assignments import Assignment
from autograder.grading.configuration import load_config, programs_found
from autograder.grading.marks import HandMarks, cell_names, hand_marks
from autograder.notebooks.cells import grade_id, is_answer
from autograder.notebooks.executed import notebook_of
from autograder.results import SubmissionResult

MAKING = 0x0BDE3A77
"""The number of the lock that a grader holds in PostgreSQL while it makes what a new database lacks."""


class ClassBook:
    """The gradebook of one assignment. One writer at a time.

    Args:
        assignment: what is graded. Its course folder holds `nbgrader_config.py`, `autograded/` and the database.
        db_url: another database, as an SQLAlchemy URL.

    Raises:
        OrderMattersError: the database can't be reached, or it holds submissions to an older release with other
            exercises.
    """

    def __init__(self, assignment: Assignment, db_url: str | None = None) -> None:
        self._assignment = assignment
        self._config = load_config(assignment.root)
        if db_url is not None:
            self._config.CourseDirectory.db_url = db_url
        self._directory = CourseDirectory(config=self._config)
        self.db_url: str = self._directory.db_url
        try:
            self.shown_url = make_url(self.db_url).render_as_string(hide_password=True)
            with programs_found():
                _create(self.db_url)
                # One for all submissions: a new one would compile every statement anew.
                with _alone(self.db_url):
                    self._gradebook = Gradebook(self.db_url, self._directory.course_id)
        except ArgumentError as error:
            raise OrderMattersError(
                f"{db_url} is no database URL ({error}). Such as sqlite:////folder/gradebook.db or "
                "postgresql+psycopg://user@host/database."
            ) from error
        except ModuleNotFoundError as error:
            raise OrderMattersError(
                f"{self.shown_url} needs the package {error.name}: pip install 'order-matters[postgresql]'."
            ) from error
        except OperationalError as error:
            raise OrderMattersError(f"the database {self.shown_url} can't be reached: {error.orig}") from error
        self._register()

    def _resources(self, student: str) -> dict[str, Any]:
        return {
            "nbgrader": {
                "student": student,
                "assignment": self._assignment.name,
                "notebook": self._assignment.name,
                "db_url": self.db_url,
            }
        }

    def _register(self) -> None:
        """Make the assignment and its cells known, as `nbgrader generate_assignment` does."""
        with self._gradebook as gradebook:
            gradebook.update_or_create_assignment(self._assignment.name)
        notebook = nbformat.from_dict(self._assignment.source)
        try:
            for preprocessor in (CheckCellMetadata, ComputeChecksums, SaveCells):
                notebook, _ = preprocessor(config=self._config).preprocess(notebook, self._resources("."))
        except RuntimeError as error:
            name = self._assignment.name
            raise OrderMattersError(
                f"the gradebook {self.db_url} holds submissions to an older release of {name} ({error}). "
                f"Keep a copy of it, then run `nbgrader db assignment remove {name} --force` and grade again."
            ) from error
        with self._gradebook as gradebook:
            self._names = cell_names(gradebook.find_assignment(self._assignment.name))

    def save(self, result: SubmissionResult, notebook: str | None, submitted: Path | None) -> HandMarks:
        """Write one submission's scores and its executed notebook. Manual scores and comments stay, and are returned.

        Args:
            notebook: the executed notebook as JSON; None for a rejected submission, which gets no points.
            submitted: the file that was handed in; a `timestamp.txt` beside it says when (nbgrader's convention).
        """
        name, student = self._assignment.name, result.student
        timestamp = _timestamp(submitted)
        place = self.autograded(student)
        executed = notebook_of(notebook) if notebook is not None else None
        with _quiet(), self._gradebook as gradebook:
            _add_student(gradebook, student)
            fields = {"timestamp": timestamp} if timestamp else {}
            gradebook.update_or_create_submission(name, student, **fields)
            written = gradebook.find_submission_notebook(name, name, student)
            if executed is None:
                for grade in written.grades:
                    grade.auto_score, grade.needs_manual_grade = 0, False
            else:
                self._score(written, executed, _texts(place) if self._assignment.manual else {})
            late = gradebook.find_assignment(name).duedate is not None or written.late_submission_penalty is not None
            marks = hand_marks(written, self._names)  # before the commit, after which all would be read again
            gradebook.db.commit()
        place.unlink(missing_ok=True)
        if executed is None:
            return marks
        if late:
            AssignLatePenalties(config=self._config).preprocess(executed, self._resources(student))
            with self._gradebook as gradebook:
                marks = hand_marks(gradebook.find_submission_notebook(name, name, student), self._names)
        place.parent.mkdir(parents=True, exist_ok=True)
        unfinished = place.with_suffix(".unfinished")  # a run may be killed while it writes
        unfinished.write_text(str(notebook), encoding="utf-8")
        os.replace(unfinished, place)
        return marks

    def _score(self, written: Any, executed: NotebookNode, before: dict[str, str]) -> None:
        """What nbgrader's SaveAutoGrades does, with a few queries in place of some for each cell.

        One thing is done otherwise: what was graded by hand and has not changed since needs no second look.

        Args:
            written: the submission in the gradebook.
            before: the text answers that the grader has seen.
        """
        grades = {self._names[grade.cell_id]: grade for grade in written.grades}
        comments = {self._names[comment.cell_id]: comment for comment in written.comments}
        for cell in executed.cells:
            if is_grade(cell):
                name = grade_id(cell) or ""
                grade = grades[name]
                grade.auto_score, _ = determine_grade(cell)
                seen = name in self._assignment.manual and before.get(name) == cell.source
                marked = grade.manual_score is not None
                grade.needs_manual_grade = (marked and not seen) or (grade.auto_score is None and not marked)
            if is_solution(cell):
                untouched = cell.metadata.nbgrader.get("checksum") == compute_checksum(cell)
                comments[grade_id(cell) or ""].auto_comment = "No response." if untouched else None

    def autograded(self, student: str) -> Path:
        """Where formgrader looks for the student's executed notebook."""
        return autograded_place(self._assignment, student)


@contextmanager
def _alone(db_url: str) -> Iterator[None]:
    """One grader after the other on PostgreSQL: nbgrader looks for tables and course, then makes what is missing."""
    if make_url(db_url).get_backend_name() != "postgresql":
        yield
        return
    engine = create_engine(db_url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": MAKING})
        yield


def _add_student(gradebook: Gradebook, student: str) -> None:
    """Make the student known, unless another grader does so at this very moment."""
    try:
        gradebook.update_or_create_student(student)
    except InvalidEntry:
        gradebook.find_student(student)


def _create(db_url: str) -> None:
    """Make a new SQLite database whole or not at all: a run may be killed while nbgrader fills it."""
    path = make_url(db_url).database
    if not db_url.startswith("sqlite") or not path or Path(path).exists():
        return
    unfinished = Path(f"{path}.{os.getpid()}")
    gradebook = Gradebook(f"sqlite:///{unfinished}")
    gradebook.close()
    gradebook.engine.dispose()
    with suppress(FileExistsError):  # another grader was faster
        os.link(unfinished, path)
    unfinished.unlink()


def autograded_place(assignment: Assignment, student: str) -> Path:
    """Where formgrader looks for a student's executed notebook."""
    return assignment.root / "autograded" / student / assignment.name / f"{assignment.name}.ipynb"


def _texts(executed: Path) -> dict[str, str]:
    """The text of each answer cell of an executed notebook by its grade id; nothing when there is no such notebook."""
    try:
        cells = reads(executed.read_text(encoding="utf-8")).cells
    except (OSError, ValueError, AttributeError):
        return {}
    return {grade_id(cell) or "": cell.source for cell in cells if is_answer(cell)}


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out a warning that nbgrader's own `add_submission` raises under SQLAlchemy 2.1; the rows are complete."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Object of type <Submitted.*not in session", category=SAWarning)
        yield


def _timestamp(submitted: Path | None) -> datetime | None:
    """When the submission was handed in, in UTC without zone, as nbgrader stores it; None when nothing says so."""
    path = submitted.parent / "timestamp.txt" if submitted else None
    if path is None or not path.is_file():
        return None
    text = path.read_text(encoding="utf-8", errors="replace").strip()
    text = re.sub(r" ([+-]\d\d:?\d\d)$", r"\1", text)  # set apart, parse_utc takes +0800 for 800 seconds
    try:
        found: datetime = parse_utc(text)
    except (ValueError, OverflowError):
        logging.getLogger(__name__).warning("%s holds no date: %.40r", path, text)
        return None
    return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
