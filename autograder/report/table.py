"""The graded class in the terminal: one row a student, then which mistakes were made how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text as RichText

from autograder.report.statistics import NO_ANSWER
from autograder.results import Language, Outcome, SubmissionResult, printable

STYLES = {Outcome.GRADED: "", Outcome.PARTLY_GRADED: "yellow", Outcome.REJECTED: "red"}


def print_class(console: Console, assignment: str, results: Sequence[SubmissionResult], language: Language) -> None:
    """Print the class table, how many notebooks were repaired, and the ranking of mistakes."""
    table = Table(title=assignment, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("student", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("%", justify="right", no_wrap=True)
    table.add_column("s", justify="right", no_wrap=True)
    table.add_column("points lost in (mistake), or the reason", overflow="fold")
    for result in results:
        share = 100 * result.score / result.max_score if result.max_score else 0.0
        table.add_row(
            RichText(printable(result.student)),
            RichText(str(result.outcome), style=STYLES[result.outcome]),
            f"{result.score:g} / {result.max_score:g}",
            f"{share:.0f}",
            f"{result.seconds:.1f}",
            RichText(printable(_notes(result, language))),
        )
    console.print(table)
    repaired = sum(bool(result.repairs) for result in results)
    if repaired:
        notebooks = "notebook" if repaired == 1 else "notebooks"
        console.print(f"repaired: {repaired} {notebooks} (listed in the class report)")
    blank = Counter(
        verdict.exercise for result in results for verdict in result.exercises if verdict.mistake in NO_ANSWER
    )
    if blank:
        listed = ", ".join(f"{exercise} ({count})" for exercise, count in sorted(blank.items()))
        console.print(f"students without an answer: {listed}", markup=False, highlight=False, soft_wrap=True)
    counts = mistake_counts(results)
    if not counts:
        return
    ranking = Table(title="mistakes, the most frequent first", title_justify="left", box=SIMPLE_HEAD)
    for heading in ("students", "exercise", "mistake"):
        ranking.add_column(heading, justify="right" if heading == "students" else "left", no_wrap=heading != "mistake")
    for (exercise, mistake), count in counts:
        ranking.add_row(str(count), exercise, mistake)
    console.print(ranking)


def mistake_counts(results: Sequence[SubmissionResult]) -> list[tuple[tuple[str, str], int]]:
    """How many submissions made each named mistake: ((exercise, mistake), count), the most frequent first.

    What was not judged (a rejected submission, a test cell out of time) or not answered is no mistake and is left out.
    """
    counts = Counter(
        (verdict.exercise, verdict.mistake)
        for result in results
        for verdict in result.exercises
        if verdict.judged and verdict.mistake and verdict.mistake not in NO_ANSWER
    )
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _notes(result: SubmissionResult, language: Language) -> str:
    if result.outcome is Outcome.REJECTED and result.reason:
        return result.reason.in_language(language)
    lost = [
        f"{verdict.exercise} ({verdict.mistake})" if verdict.mistake else verdict.exercise
        for verdict in result.exercises
        if verdict.judged and verdict.score < verdict.max_score
    ]
    lost += [f"{item.exercise}: by hand" for item in result.by_hand]
    notes = ", ".join(lost)
    if result.reason:
        notes = f"{result.reason.in_language(language)}; {notes}" if notes else result.reason.in_language(language)
    return notes
