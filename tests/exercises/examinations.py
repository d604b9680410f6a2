"""Examinations shared by the tests of the declarations: the known mistakes are worked out once for each seed."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Any

from autograder.examiner.client import observe_all
from autograder.examiner.judge import Examination, seed_for
from autograder.exercises import EXERCISES
from autograder.exercises.declaration import Case, Draw
from autograder.results import Verdict

SEEDS = tuple(seed_for(b"tests", f"student-{number}", "") for number in range(int(os.environ.get("SEEDS", "2"))))
"""Students whose cases the declarations are tried on. `SEEDS=20 make test` tries more of them."""


@functools.cache
def examination(exercise: str, seed: int) -> Examination:
    return Examination(EXERCISES[exercise], seed, "cpu")


def verdict_on(exercise: str, answers: Sequence[Any], seed: int = SEEDS[0]) -> Verdict:
    """What the grader says about these answers, one for each function of the exercise."""
    examined = examination(exercise, seed)
    return examined.judge(observe_all(examined.questions, answers))


def message_of(exercise: str, slug: str) -> str:
    """The English message of a known mistake."""
    return next(mistake.message.en for mistake in EXERCISES[exercise].mistakes if mistake.slug == slug)


def lost(verdict: Verdict) -> list[str]:
    """The criteria in which points are missing."""
    return [criterion.name for criterion in verdict.criteria if criterion.score < criterion.max_score]


def cases_of(exercise: str, seed: int, accelerator: str = "cpu") -> list[Case]:
    """One student's cases."""
    return list(EXERCISES[exercise].cases(Draw(seed, accelerator)))
