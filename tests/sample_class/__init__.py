"""A class of made-up students, right, wrong, half done and worse, with what grading must find for each."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import nbformat

from tests.sample_class import (
    embedding_plus_position,
    feed_forward_and_add_norm,
    learned_and_rotary_encodings,
    relative_encodings,
    sinusoidal_encoding,
    why_order_matters,
)
from tests.sample_class.student import Student

_CLASSES: dict[str, tuple[Student, ...]] = {
    lesson.ASSIGNMENT: lesson.STUDENTS
    for lesson in (
        why_order_matters,
        sinusoidal_encoding,
        embedding_plus_position,
        feed_forward_and_add_norm,
        learned_and_rotary_encodings,
        relative_encodings,
    )
}
ASSIGNMENTS = tuple(_CLASSES)


def sample_class(assignment: str) -> dict[str, Student]:
    """The students of a lesson by name: student-01, student-02, … Raises KeyError for a lesson without a class."""
    return {f"student-{number:02d}": student for number, student in enumerate(_CLASSES[assignment], start=1)}


def write_class(
    course_root: Path, assignment: str, folder: Path, students: Collection[str] | None = None
) -> list[Path]:
    """Write what the class hands in, in nbgrader's layout.

    Args:
        course_root: the folder that holds `release/`.
        assignment: a lesson's name, such as 02-sinusoidal-encoding.
        folder: where `<student>/<assignment>/<assignment>.ipynb` goes.
        students: only these; everybody when None.

    Returns:
        The files written, by student.
    """
    release = nbformat.read(course_root / "release" / assignment / f"{assignment}.ipynb", as_version=4)
    written = []
    for name, student in sample_class(assignment).items():
        if students is not None and name not in students:
            continue
        path = folder / name / assignment / f"{assignment}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(student.form(student.notebook(release)))
        written.append(path)
    return written
