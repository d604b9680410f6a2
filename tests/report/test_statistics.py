"""The numbers of a class report, against numpy and against counting by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autograder.report.statistics import (
    ENOUGH_FOR_CORRELATION,
    criterion_statistics,
    exercise_statistics,
    mistake_statistics,
    repair_statistics,
    summary,
)
from autograder.results import Outcome, Text, Verdict
from tests.report.made_class import EVIL, EXERCISES, made_class, submission
from tests.report.results import UNJUDGED, result


def test_discrimination_is_the_correlation_with_the_rest() -> None:
    """Corrected item-total correlation, by numpy, over what was graded in full; the item is not in its own total."""
    results = made_class(23)
    graded = [one for one in results if one.outcome is Outcome.GRADED]
    points = np.array([[verdict.score for verdict in one.exercises] for one in graded])
    found = exercise_statistics(results)
    assert [item.exercise for item in found] == list(EXERCISES)
    for column, item in enumerate(found):
        rest = np.delete(points, column, axis=1).sum(axis=1)
        assert item.discrimination == pytest.approx(np.corrcoef(points[:, column], rest)[0, 1], abs=1e-12)


def test_for_right_or_wrong_it_is_the_point_biserial() -> None:
    """(mean of those right − mean of those wrong) / σ · √(p q), the textbook's formula."""
    results = [submission(number) for number in range(1, 18)]
    item = exercise_statistics(results)[1]
    rest = np.array([one.score - one.exercises[1].score for one in results])
    right = np.array([one.exercises[1].score == 1.0 for one in results])
    p = right.mean()
    expected = (rest[right].mean() - rest[~right].mean()) / rest.std() * np.sqrt(p * (1 - p))
    assert item.discrimination == pytest.approx(expected, abs=1e-12)


def test_a_correlation_that_says_nothing_is_left_out() -> None:
    """Too few submissions, or all alike."""
    few = [submission(number) for number in range(1, ENOUGH_FOR_CORRELATION)]
    assert {item.discrimination for item in exercise_statistics(few)} == {None}
    alike = [replace(submission(9), student=f"s{number}") for number in range(12)]
    assert {item.discrimination for item in exercise_statistics(alike)} == {None}


def test_difficulty_counts_what_was_judged() -> None:
    """Full, partial, none and unjudged add up to the class; the mean is over the judged."""
    results = made_class()
    for item in exercise_statistics(results):
        assert item.full + item.partial + item.none == item.judged
        assert item.judged + item.unjudged == len(results)
    shift = exercise_statistics(results)[2]
    scores = [one.exercises[2].score / 3 for one in results if one.exercises[2].judged]
    assert shift.unjudged == 2
    assert shift.difficulty == pytest.approx(np.mean(scores))


def test_nothing_judged_has_no_difficulty() -> None:
    """None, not zero."""
    (item,) = exercise_statistics([result("s", UNJUDGED, outcome=Outcome.PARTLY_GRADED, reason=Text("x", "x"))])
    assert (item.difficulty, item.discrimination, item.unjudged) == (None, None, 1)


def test_mistakes_are_ranked_with_their_students() -> None:
    """The most frequent first; what was not judged is none; having no answer comes last."""
    empty = Verdict("wavelengths", 0.0, 1.0, "unanswered", Text("nothing", "空"), ())
    results = [*made_class(), *(result(f"z{number}", empty) for number in range(40))]
    found = mistake_statistics(results)
    assert [(item.exercise, item.mistake, len(item.students)) for item in found] == [
        ("pair-frequencies", "column-index", 4),
        ("shift-matrix", "transposed", 4),
        ("wavelengths", "unanswered", 40),
    ]
    assert found[0].students == (EVIL, "student-05", "student-10", "student-15")


def test_repairs_are_ranked_with_their_students() -> None:
    """The most frequent first, equals in alphabetical order; students sorted."""
    results = [
        replace(submission(number), repairs=tuple(Text(word, word) for word in words))
        for number, words in enumerate(("ba", "", "cb", "b"))
    ]
    found = [(item.repair.en, item.students) for item in repair_statistics(reversed(results))]
    assert found == [
        ("b", ("student-00", "student-02", "student-03")),
        ("a", ("student-00",)),
        ("c", ("student-02",)),
    ]
    assert repair_statistics([submission(1)]) == []


def test_criteria_that_everybody_or_nobody_met() -> None:
    """Counted over the answers that were judged by criteria."""
    found = {(item.exercise, item.name): (item.passed, item.judged) for item in criterion_statistics(made_class())}
    assert found["pair-frequencies", "form"] == (18, 18)
    assert found["shift-matrix", "values"] == (0, 17)


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_the_summary_is_numpys(size: int) -> None:
    """Quartiles by linear interpolation."""
    values = [float(value) for value in np.random.default_rng(size).normal(size=size)]
    found = summary(values)
    assert found is not None
    assert [found.lower, found.median, found.upper] == pytest.approx(np.percentile(values, [25, 50, 75]))
    assert (found.least, found.most) == (min(values), max(values))


def test_no_values_have_no_summary() -> None:
    """None."""
    assert summary([]) is None
