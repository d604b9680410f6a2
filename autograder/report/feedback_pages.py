"""Writes each student's feedback page, in the language of the student's own notebook."""

from __future__ import annotations

from pathlib import Path

from autograder.grading.assignments import Assignment
from autograder.grading.marks import HandMarks
from autograder.notebooks.language import language_of
from autograder.report.feedback import feedback_page
from autograder.report.lesson import find_lesson
from autograder.results import Language, SubmissionResult


def feedback_place(root: Path, student: str, assignment: str) -> Path:
    """Where a student's page lies: where nbgrader puts its own."""
    return root / "feedback" / student / assignment / f"{assignment}.html"


def write_feedback(
    assignment: Assignment,
    result: SubmissionResult,
    notebook: str | None,
    *,
    submitted: Path | None,
    language: Language | None,
    marks: HandMarks,
) -> Path:
    """Write a student's page.

    Args:
        notebook: the executed notebook as JSON, None when nothing was run.
        submitted: the file that was handed in.
        language: of the page; None for that of the submitted notebook, English where it can't be told.
        marks: what people gave.
    """
    spoken = language or (language_of(submitted) if submitted else None) or "en"
    lesson = find_lesson(assignment, spoken)
    page = feedback_place(assignment.root, result.student, assignment.name)
    page.parent.mkdir(parents=True, exist_ok=True)
    html = feedback_page(
        assignment.name,
        lesson.title,
        result,
        notebook,
        spoken,
        reading=lesson.reading,
        file=lesson.file,
        marks=marks,
    )
    page.write_text(html, encoding="utf-8", errors="replace")
    return page
