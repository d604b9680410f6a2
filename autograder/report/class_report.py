"""The class report: one page that stands alone, for the person who teaches.

Self-contained, printable, in English or Chinese. What students wrote never reaches it except their names, which are
escaped like everything else; the page's policy lets only its own style and script work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from autograder.grading.assignments import Assignment
from autograder.report.class_words import WORDS
from autograder.report.feedback import OUTCOMES
from autograder.report.feedback_pages import feedback_place
from autograder.report.lesson import find_lesson
from autograder.report.page import render
from autograder.report.plots import (
    Say,
    class_map,
    distribution_plot,
    exercises_plot,
    mistakes_plot,
    scatter_plot,
    time_plot,
)
from autograder.report.statistics import (
    NO_ANSWER,
    criterion_statistics,
    exercise_statistics,
    mistake_statistics,
    repair_statistics,
    share,
    summary,
)
from autograder.report.stored import reports_folder
from autograder.results import Language, Outcome, SubmissionResult, Verdict

SLOWEST = 3


@dataclass(frozen=True)
class Row:
    """One student in the class table; a verdict is None where the submission has no such exercise."""

    result: SubmissionResult
    share: float
    verdicts: tuple[Verdict | None, ...]


def class_page(
    assignment: str,
    title: str,
    results: Sequence[SubmissionResult],
    language: Language,
    *,
    made: str | None = None,
    pages: Mapping[str, str] | None = None,
    sandbox: bool = True,
) -> str:
    """The report as HTML.

    Args:
        title: the lesson's title in `language`.
        made: when the results were made, as text; left out by default.
        pages: address of a student's feedback page, relative to the report, for those who have one.
        sandbox: whether the submissions ran in one; the page says so if not.
    """
    say = speaker(language)
    exercises = exercise_statistics(results)
    found = mistake_statistics(results)
    mistakes = [item for item in found if item.mistake not in NO_ANSWER]
    unanswered = [item for item in found if item.mistake in NO_ANSWER]
    criteria = criterion_statistics(results)
    shares = summary([100 * share(result) for result in results])
    points = summary([result.score for result in results])
    slowest = sorted(results, key=lambda result: (-result.seconds, result.student))[:SLOWEST]
    rows = [Row(result, share(result), _verdicts(result, [item.exercise for item in exercises])) for result in results]
    links = pages or {}
    return render(
        "class_report.html.j2",
        styles=("page.css", "class_report.css"),
        script="class_report.js",
        assignment=assignment,
        title=title,
        language=language,
        words={name: text.in_language(language) for name, text in WORDS.items()},
        outcomes={outcome: text.in_language(language) for outcome, text in OUTCOMES.items()},
        made=made,
        sandbox=sandbox,
        results=results,
        pages={result.student: links.get(result.student) for result in results},
        shares=shares,
        points=points,
        max_score=max((result.max_score for result in results), default=0.0),
        seconds=sum(result.seconds for result in results),
        counts={
            "graded": sum(result.outcome is Outcome.GRADED for result in results),
            "partly": sum(result.outcome is Outcome.PARTLY_GRADED for result in results),
            "rejected": sum(result.outcome is Outcome.REJECTED for result in results),
        },
        by_hand=sorted({item.exercise for result in results for item in result.by_hand}),
        exercises=exercises,
        mistakes=mistakes,
        unanswered=unanswered,
        nobody=[item for item in criteria if item.passed == 0],
        everybody=[item for item in criteria if item.passed == item.judged],
        slow=", ".join(f"{result.student} ({result.seconds:.1f} s)" for result in slowest),
        troubled=[result for result in results if result.outcome is not Outcome.GRADED],
        repairs=repair_statistics(results),
        repaired=sum(bool(result.repairs) for result in results),
        rows=rows,
        plots={
            "distribution": distribution_plot(results, say),
            "exercises": exercises_plot(exercises, say),
            "scatter": scatter_plot(exercises, say),
            "map": class_map(results, exercises, say),
            "mistakes": mistakes_plot(mistakes, say),
            "time": time_plot(results, say),
        },
    )


def speaker(language: Language) -> Say:
    """The report's words in one language, filled in."""

    def say(word: str, **values: object) -> str:
        return WORDS[word].in_language(language).format(**values)

    return say


def _verdicts(result: SubmissionResult, exercises: Sequence[str]) -> tuple[Verdict | None, ...]:
    found = {verdict.exercise: verdict for verdict in result.exercises}
    return tuple(found.get(exercise) for exercise in exercises)


def report_place(root: Path, assignment: str) -> Path:
    """Where a class's report lies."""
    return reports_folder(root) / f"{assignment}.html"


def write_report(
    assignment: Assignment,
    results: Sequence[SubmissionResult],
    language: Language,
    *,
    path: Path | None = None,
    made_at: datetime | None = None,
    sandbox: bool = True,
) -> Path:
    """Write the report of a class.

    Args:
        path: the file; in the course folder's `reports/` by default. Only there it links to the feedback pages.
        made_at: when the results were made; left out by default.
        sandbox: whether the submissions ran in one.
    """
    place = path or report_place(assignment.root, assignment.name)
    place.parent.mkdir(parents=True, exist_ok=True)
    pages = {}
    if path is None:
        for result in results:
            if feedback_place(assignment.root, result.student, assignment.name).is_file():
                student = quote(result.student, errors="surrogateescape")
                pages[result.student] = f"../feedback/{student}/{assignment.name}/{assignment.name}.html"
    html = class_page(
        assignment.name,
        find_lesson(assignment, language).title,
        results,
        language,
        made=made_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC") if made_at else None,
        pages=pages,
        sandbox=sandbox,
    )
    place.write_text(html, encoding="utf-8", errors="replace")
    return place
