"""Judging in the student's own process, for plain nbgrader and for checking one's own work."""

from __future__ import annotations

import builtins
import linecache
import os
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from autograder.errors import UnknownExercise
from autograder.examiner.judge import Sources, judge_here, seed_for
from autograder.exercises import EXERCISES
from autograder.results import Language

LANGUAGE_VARIABLE = "ORDER_MATTERS_LANGUAGE"


def grade_here(exercise: str, answers: Sequence[Any]) -> float:
    """Print what is right or wrong and return the points."""
    if exercise not in EXERCISES:
        raise UnknownExercise(exercise, sorted(EXERCISES))
    language: Language = "zh" if os.environ.get(LANGUAGE_VARIABLE) == "zh" else "en"
    seed = seed_for(b"self-check", "", exercise)
    verdict = judge_here(EXERCISES, exercise, answers, seed, "auto", _sources(answers))
    print(f"{verdict.score:g} / {verdict.max_score:g}  {verdict.message.in_language(language)}")
    return verdict.score


def _sources(answers: Sequence[Any]) -> Sources:
    """The cells in which the answers were defined, and all cells that have run, as far as IPython keeps them."""
    functions = [
        part
        for answer in answers
        for part in (vars(answer).values() if isinstance(answer, type) else [answer])
        if isinstance(part, FunctionType)
    ]
    files = dict.fromkeys(function.__code__.co_filename for function in functions)
    answer = "\n".join("".join(linecache.getlines(file)) for file in files)
    shell = getattr(builtins, "get_ipython", lambda: None)()
    return Sources(answer, tuple(shell.user_ns.get("In", ())) if shell else ())
