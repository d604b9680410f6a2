"""The visible checks accept every right answer that the grader knows; lesson 06's tell every known mistake too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jupytext
import pytest

from autograder.exercises import EXERCISES
from course import checks
from tests.e2e.helpers import GIVEN

LESSONS = Path(__file__).parents[2] / "course" / "lessons"
LESSON = "06-relative-encodings"
CHECKED = [name for name, exercise in EXERCISES.items() if "q1" not in exercise.functions]
# A mistake of an exercise before: its own check names it, and this one uses the student's earlier answer.
EARLIER = {
    "t5-bias": {"odd-number-of-buckets"},
    "alibi-bias": {
        "plain-formula-for-every-number",
        "cut-from-the-next-power",
        "extra-slopes-not-skipped",
        "extra-slopes-there-already",
        "extra-slopes-from-the-end",
        "steepest-first-throughout",
    },
}


@cache
def cells(lesson: str) -> Mapping[str, str]:
    """A lesson's code cells by name, without hidden tests."""
    notebook = jupytext.read(LESSONS / f"{lesson}.md", fmt="md:myst")
    return {
        cell.metadata["name"]: re.split(r"### BEGIN HIDDEN TESTS", cell.source)[0]
        for cell in notebook.cells
        if cell.cell_type == "code"
    }


@cache
def solved(lesson: str) -> Mapping[str, Any]:
    """What a notebook knows in which all answers are the lesson's own, and all test cells have run."""
    known: dict[str, Any] = {name: value for name, value in vars(checks).items() if not name.startswith("_")}
    for name, source in cells(lesson).items():
        if name in GIVEN or name.removeprefix("test-") in CHECKED:
            exec(source, known)
    return known


def told(exercise: str, answers: Mapping[str, Any]) -> str | None:
    """What the check of the exercise says about these answers, in place of the lesson's own; None if it passes."""
    lesson = EXERCISES[exercise].lesson
    try:
        exec(cells(lesson)[f"test-{exercise}"], {**solved(lesson), **answers})
    except checks.CheckFailed as failure:
        return str(failure)
    return None


@pytest.fixture(autouse=True)
def not_graded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)


@pytest.mark.parametrize("exercise", CHECKED)
def test_every_right_answer_passes(exercise: str) -> None:
    """The reference and each alternative in another style."""
    assert told(exercise, EXERCISES[exercise].reference) is None
    for style, answers in EXERCISES[exercise].alternatives.items():
        assert told(exercise, answers) is None, style


@pytest.mark.parametrize("exercise", [name for name in CHECKED if EXERCISES[name].lesson == LESSON])
def test_every_known_mistake_is_told_at_once(exercise: str) -> None:
    """In one sentence, and not by an error from inside torch."""
    missed = {mistake.slug for mistake in EXERCISES[exercise].mistakes if told(exercise, mistake.answers) is None}
    assert missed <= EARLIER.get(exercise, set())
