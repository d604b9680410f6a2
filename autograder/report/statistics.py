"""The numbers of a class report, from results alone.

Difficulty and discrimination are those of classical test theory (Crocker and Algina, Introduction to Classical and
Modern Test Theory, 1986, chapter 14). Discrimination is the correlation of an exercise with the rest of the lesson, the
exercise itself left out of the total (Henrysson, "Correction of item-total correlations in item analysis",
Psychometrika 28, 1963); for an exercise that is either right or wrong it is the point-biserial correlation.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograder.results import Outcome, SubmissionResult, Text, Verdict

NO_ANSWER = frozenset({"unanswered", "answer-missing"})
"""Mistake slugs that say that there was no answer; that is counted, but it is no mistake to discuss in class."""
ENOUGH_FOR_CORRELATION = 5
"""Submissions; a correlation of fewer says nothing."""


@dataclass(frozen=True)
class ExerciseStatistics:
    """One exercise over the class.

    Attributes:
        judged: submissions with a verdict; difficulty and counts are over these.
        full, partial, none: how many got all points, some, none.
        unjudged: submissions without a verdict, rejected ones included.
        difficulty: mean share of the points, 0 (nobody) to 1 (everybody); None when nothing was judged.
        discrimination: correlation with the rest of the lesson, -1 to 1; None when it can't be computed.
    """

    exercise: str
    max_score: float
    judged: int
    full: int
    partial: int
    none: int
    unjudged: int
    difficulty: float | None
    discrimination: float | None


@dataclass(frozen=True)
class MistakeStatistics:
    """A named mistake and who made it."""

    exercise: str
    mistake: str
    message: Text
    students: tuple[str, ...]


@dataclass(frozen=True)
class CriterionStatistics:
    """A criterion over the answers that were judged by criteria."""

    exercise: str
    name: str
    title: Text
    passed: int
    judged: int


@dataclass(frozen=True)
class RepairStatistics:
    """Something that was repaired in notebooks, and whose."""

    repair: Text
    students: tuple[str, ...]


@dataclass(frozen=True)
class Summary:
    """Five numbers of a list of numbers, and their mean."""

    least: float
    lower: float
    median: float
    upper: float
    most: float
    mean: float


def summary(values: Sequence[float]) -> Summary | None:
    """Quartiles by linear interpolation between the values; None for no values."""
    if not values:
        return None
    if len(values) == 1:
        return Summary(*([values[0]] * 6))
    lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    return Summary(min(values), lower, median, upper, max(values), statistics.fmean(values))


def share(result: SubmissionResult) -> float:
    """What was reached of what could be, 0 to 1."""
    return result.score / result.max_score if result.max_score else 0.0


def exercise_statistics(results: Sequence[SubmissionResult]) -> list[ExerciseStatistics]:
    """Every exercise, in the lesson's order."""
    found = []
    for exercise, max_score in _exercises(results).items():
        verdicts = [verdict for result in results for verdict in result.exercises if verdict.exercise == exercise]
        judged = [verdict for verdict in verdicts if verdict.judged]
        full = sum(verdict.score >= verdict.max_score for verdict in judged)
        none = sum(verdict.score <= 0 < verdict.max_score for verdict in judged)
        found.append(
            ExerciseStatistics(
                exercise=exercise,
                max_score=max_score,
                judged=len(judged),
                full=full,
                partial=len(judged) - full - none,
                none=none,
                unjudged=len(verdicts) - len(judged),
                difficulty=statistics.fmean(map(_part, judged)) if judged else None,
                discrimination=_discrimination(results, exercise),
            )
        )
    return found


def _exercises(results: Iterable[SubmissionResult]) -> dict[str, float]:
    return {verdict.exercise: verdict.max_score for result in results for verdict in result.exercises}


def _part(verdict: Verdict) -> float:
    return verdict.score / verdict.max_score if verdict.max_score else 0.0


def _discrimination(results: Iterable[SubmissionResult], exercise: str) -> float | None:
    """Pearson's correlation of the exercise with the rest, over submissions that were graded in full."""
    items, rests = [], []
    for result in results:
        if result.outcome is not Outcome.GRADED:
            continue
        own = [verdict.score for verdict in result.exercises if verdict.exercise == exercise]
        if own:
            items.append(own[0])
            rests.append(result.score - own[0])
    if len(items) < ENOUGH_FOR_CORRELATION or len(set(items)) == 1 or len(set(rests)) == 1:
        return None
    return statistics.correlation(items, rests)


def mistake_statistics(results: Iterable[SubmissionResult]) -> list[MistakeStatistics]:
    """The named mistakes, the most frequent first; having no answer comes after all of them, as a group of its own.

    What was not judged is no mistake.
    """
    students: dict[tuple[str, str], list[str]] = {}
    messages: dict[tuple[str, str], Text] = {}
    for result in results:
        for verdict in result.exercises:
            if verdict.judged and verdict.mistake:
                key = (verdict.exercise, verdict.mistake)
                students.setdefault(key, []).append(result.student)
                messages.setdefault(key, verdict.message)
    order = sorted(students, key=lambda key: (key[1] in NO_ANSWER, -len(students[key]), key))
    return [MistakeStatistics(*key, messages[key], tuple(sorted(students[key]))) for key in order]


def criterion_statistics(results: Sequence[SubmissionResult]) -> list[CriterionStatistics]:
    """Every criterion, in the lesson's order."""
    titles: dict[tuple[str, str], Text] = {}
    marks: dict[tuple[str, str], list[bool]] = {}
    for result in results:
        for verdict in result.exercises:
            for criterion in verdict.criteria if verdict.judged else ():
                key = (verdict.exercise, criterion.name)
                titles.setdefault(key, criterion.title)
                marks.setdefault(key, []).append(criterion.score >= criterion.max_score)
    order = {exercise: place for place, exercise in enumerate(_exercises(results))} if marks else {}
    keys = sorted(marks, key=lambda key: order.get(key[0], 0))
    return [CriterionStatistics(*key, titles[key], sum(marks[key]), len(marks[key])) for key in keys]


def repair_statistics(results: Iterable[SubmissionResult]) -> list[RepairStatistics]:
    """What was repaired, the most frequent first."""
    students: dict[Text, list[str]] = {}
    for result in results:
        for repair in result.repairs:
            students.setdefault(repair, []).append(result.student)
    order = sorted(students, key=lambda repair: (-len(students[repair]), repair.en))
    return [RepairStatistics(repair, tuple(sorted(students[repair]))) for repair in order]
