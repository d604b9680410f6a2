"""Every declaration keeps its promises: right answers get full marks, every known mistake is named, nothing crashes."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from autograder.examiner.judge import Examination
from autograder.exercises import EXERCISES
from autograder.exercises.declaration import Exercise, Mistake
from autograder.results import LANGUAGES, Text
from tests.exercises.examinations import SEEDS, examination, verdict_on

LESSONS = Path(__file__).parents[2] / "course" / "lessons"

POINTS = {
    "attention": 4,
    "causal-mask": 1,
    "permutation-gap": 2,
    "sentence-vector": 1,
    "naive-positions": 2,
    "quiz-order": 2,
    "pair-frequencies": 2,
    "encode-position": 2,
    "sinusoidal-encoding": 4,
    "wavelengths": 1,
    "shift-matrix": 3,
    "position-similarity": 1,
    "quiz-sinusoidal": 2,
    "token-embedding": 3,
    "sinusoidal-position": 4,
    "transformer-input": 3,
    "padding-mask": 1,
    "quiz-embedding": 2,
    "feed-forward": 3,
    "layer-norm": 3,
    "add-norm": 2,
    "encoder-block": 4,
    "block-cost": 2,
    "quiz-block": 2,
    "learned-position": 3,
    "rotary-angles": 2,
    "rotate-adjacent": 3,
    "rotate-halves": 2,
    "adjacent-to-halves": 2,
    "rotary-attention": 4,
    "quiz-rotary": 2,
    "relative-distance": 1,
    "t5-bucket": 3,
    "t5-bias": 2,
    "alibi-slopes": 2,
    "alibi-bias": 2,
    "relative-shift": 2,
    "transformer-xl-scores": 3,
    "deberta-scores": 4,
    "quiz-relative": 2,
}
"""The points of the contract between lessons and grader."""

WITHOUT_NUMBERS = {"causal-mask", "padding-mask", "relative-distance", "t5-bucket"}
"""Their results are booleans or whole numbers."""

WITHOUT_FORMULA = {"causal-mask", "permutation-gap", "sentence-vector", "naive-positions"}

exercises = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES.keys())
mistakes = pytest.mark.parametrize(
    ("exercise", "mistake"),
    [pytest.param(e, m, id=f"{e.id}:{m.slug}") for e in EXERCISES.values() for m in e.mistakes],
)
alternatives = pytest.mark.parametrize(
    ("exercise", "answers"),
    [pytest.param(e, a, id=f"{e.id}:{name}") for e in EXERCISES.values() for name, a in e.alternatives.items()],
)


def replaced(exercise: Exercise, answers: Any) -> list[Any]:
    return [answers.get(name, exercise.reference[name]) for name in exercise.functions]


def is_quiz(exercise: Exercise) -> bool:
    return all(case.read for case in examination(exercise.id, SEEDS[0]).cases)


def texts(exercise: Exercise) -> Iterator[Text]:
    for mistake in exercise.mistakes:
        yield mistake.message
    for criterion in exercise.criteria:
        yield criterion.title


@exercises
def test_the_reference_gets_full_marks_for_every_seed(exercise: Exercise) -> None:
    for seed in SEEDS:
        verdict = verdict_on(exercise.id, replaced(exercise, {}), seed)
        assert (verdict.score, verdict.mistake) == (verdict.max_score, None), verdict.message.en


@alternatives
def test_every_other_right_answer_gets_full_marks(exercise: Exercise, answers: Any) -> None:
    for seed in SEEDS:
        verdict = verdict_on(exercise.id, replaced(exercise, answers), seed)
        assert verdict.score == verdict.max_score, verdict.message.en


@mistakes
def test_a_known_mistake_loses_points_and_is_told_what_it_is(exercise: Exercise, mistake: Mistake) -> None:
    for seed in SEEDS[1:] or SEEDS:  # one by default: there are a thousand mistakes
        verdict = verdict_on(exercise.id, replaced(exercise, mistake.answers), seed)
        assert verdict.score < verdict.max_score
        assert verdict.mistake == mistake.slug
        assert verdict.message == mistake.message
        lost = [criterion for criterion in verdict.criteria if criterion.score < criterion.max_score]
        assert {criterion.message for criterion in lost} == {mistake.message}


@exercises
def test_slugs_are_kebab_case_and_unique(exercise: Exercise) -> None:
    slugs = [mistake.slug for mistake in exercise.mistakes]
    assert len(set(slugs)) == len(slugs)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug) for slug in [*slugs, exercise.id])
    assert not {"unanswered"} & set(slugs)


@exercises
def test_points_follow_the_contract(exercise: Exercise) -> None:
    assert exercise.points == POINTS[exercise.id]
    assert all(criterion.points > 0 for criterion in exercise.criteria)
    assert len({criterion.name for criterion in exercise.criteria}) == len(exercise.criteria)


@exercises
def test_there_are_known_mistakes_enough(exercise: Exercise) -> None:
    if not is_quiz(exercise):
        assert len(exercise.mistakes) >= (1 if exercise.id in WITHOUT_FORMULA else 6)


@exercises
def test_messages_speak_both_languages(exercise: Exercise) -> None:
    messages = [mistake.message for mistake in exercise.mistakes]
    for text in texts(exercise):
        assert text.en
        assert text.zh
        assert text.en != text.zh
        assert not re.search(r"[一-鿿]", re.sub("[我爱你]", "", text.en))  # the example sentence
    assert all(re.search(r"[一-鿿]", message.zh) for message in messages)
    for language in LANGUAGES:
        assert len({message.in_language(language) for message in messages}) == len(messages)


def numbers_in(value: Any) -> Iterator[float]:
    if isinstance(value, Tensor):
        if not value.is_meta:
            yield from value.flatten().double().tolist()[:500]
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from numbers_in(part)
    elif isinstance(value, dict):
        yield from numbers_in(list(value.values()))
    elif isinstance(value, float):
        yield value


@exercises
def test_no_message_contains_an_expected_number(exercise: Exercise) -> None:
    said = {
        number
        for text in texts(exercise)
        for language in LANGUAGES
        for number in re.findall(r"\d+\.\d+|\d{3,}", text.in_language(language))
    }
    for seed in SEEDS:
        for observation in examination(exercise.id, seed)._expected:
            for value in numbers_in(getattr(observation, "value", None)):
                assert not {f"{value:.{digits}f}" for digits in range(1, 6)} & said


@exercises
def test_a_quiz_message_never_names_the_right_letter(exercise: Exercise) -> None:
    if is_quiz(exercise):
        for mistake in exercise.mistakes:
            (name,) = mistake.answers
            right = exercise.reference[name]
            for language in LANGUAGES:
                assert not re.search(rf"\b{right}\)|[\"'“(]{right}[\"'”)]", mistake.message.in_language(language))


@exercises
def test_one_seed_always_gives_the_same_cases_and_another_seed_others(exercise: Exercise) -> None:
    questions = [Examination(exercise, seed, "cpu").questions for seed in SEEDS]
    assert questions == [Examination(exercise, seed, "cpu").questions for seed in SEEDS]
    if not is_quiz(exercise) and exercise.id != "causal-mask":
        assert len(set(questions)) == len(SEEDS)


@exercises
def test_every_case_is_looked_at_and_every_criterion_looks_at_some(exercise: Exercise) -> None:
    tags = {case.tag for case in examination(exercise.id, SEEDS[0]).cases}
    assert {tag for criterion in exercise.criteria for tag in criterion.tags} == tags


class AlwaysEqual:
    """Claims to equal everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


NONSENSE: dict[str, Any] = {
    "none": None,
    "text": "sin",
    "array": np.ones((3, 4)),
    "list": [0.5, 0.5],
    "wrong tuple": (torch.ones(2), None, "three"),
    "equal to everything": AlwaysEqual(),
    "number": 0.123,
    "huge number": 10**40,
    "complex": 1j,
    "empty": torch.empty(0),
    "complex tensor": torch.ones(3, dtype=torch.complex64),
    "sparse": torch.eye(3).to_sparse(),
    "dtype": torch.float32,
    "not a number": math.nan,
    "function": len,
    "dictionary": {"a": {1: 2}},
}


@exercises
@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_gets_a_verdict_with_a_message(exercise: Exercise, nonsense: Any) -> None:
    answer = nonsense if is_quiz(exercise) else lambda *args, **kwargs: nonsense
    verdict = verdict_on(exercise.id, [answer for _ in exercise.functions], SEEDS[0])
    assert verdict.score < verdict.max_score / 2
    assert verdict.message.en
    assert verdict.message.zh
    assert all(criterion.message for criterion in verdict.criteria if criterion.score < criterion.max_score)


@exercises
@pytest.mark.parametrize("answer", [None, 3, "q", lambda: None], ids=["none", "number", "text", "no-arguments"])
def test_an_answer_that_cannot_be_called_gets_a_verdict(exercise: Exercise, answer: Any) -> None:
    verdict = verdict_on(exercise.id, [answer for _ in exercise.functions], SEEDS[0])
    assert verdict.score == 0
    assert verdict.message.en


@exercises
def test_an_answer_that_always_raises_is_told_so(exercise: Exercise) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("the plug was pulled")

    if not is_quiz(exercise):
        verdict = verdict_on(exercise.id, [broken for _ in exercise.functions], SEEDS[0])
        assert (verdict.score, verdict.mistake) == (0, None)
        assert "the plug was pulled" in verdict.message.en
        assert "the plug was pulled" in verdict.message.zh


@exercises
def test_an_unanswered_exercise_is_called_so(exercise: Exercise) -> None:
    def stub(*args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("write your answer here")

    if not is_quiz(exercise):
        verdict = verdict_on(exercise.id, [stub for _ in exercise.functions], SEEDS[0])
        assert (verdict.score, verdict.mistake) == (0, "unanswered")


def with_nan(value: Any) -> Any:
    if isinstance(value, torch.nn.Module):
        value.register_forward_hook(lambda module, inputs, output: with_nan(output))
        return value
    if isinstance(value, Tensor) and value.is_floating_point():
        return torch.full_like(value, math.nan)
    if isinstance(value, dict):
        return dict.fromkeys(value, math.nan)
    if isinstance(value, (tuple, list)):
        return type(value)(with_nan(part) for part in value)
    return math.nan if isinstance(value, float) else value


@exercises
def test_nan_is_never_right(exercise: Exercise) -> None:
    def spoilt(answer: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: with_nan(answer(*args, **kwargs))

    if not is_quiz(exercise) and exercise.id not in WITHOUT_NUMBERS:
        for seed in SEEDS:
            verdict = verdict_on(exercise.id, [spoilt(exercise.reference[name]) for name in exercise.functions], seed)
            assert verdict.score <= verdict.max_score / 2, verdict.message.en


@functools.cache
def lesson_cells(lesson: str) -> dict[str, str]:
    """The code cells of a lesson by name; empty when the lesson is not there."""
    path = LESSONS / f"{lesson}.md"
    if not path.exists():
        return {}
    cells = re.findall(r"```\{code-cell\} ipython3\n(.*?)\n```", path.read_text(encoding="utf-8"), re.DOTALL)
    return {match[1]: cell for cell in cells if (match := re.search(r"^:?name: *(\S+)$", cell, re.MULTILINE))}


@exercises
def test_the_lesson_hands_in_what_the_declaration_asks_for(exercise: Exercise) -> None:
    cells = lesson_cells(exercise.lesson)
    if not cells:
        pytest.skip("the lesson is not written yet")
    cell = cells[f"test-{exercise.id}"]
    assert re.search(r"points: (\d+)", cell)[1] == f"{exercise.points:g}"  # type: ignore[index]
    arguments = re.search(rf'^grade\("{exercise.id}", (.*)\)$', cell, re.MULTILINE)
    assert arguments
    assert tuple(arguments[1].split(", ")) == exercise.functions


@exercises
def test_the_lessons_own_answers_get_full_marks(exercise: Exercise) -> None:
    cells = lesson_cells(exercise.lesson)
    if not cells:
        pytest.skip("the lesson is not written yet")
    names: dict[str, Any] = {"torch": torch, "math": math, "nn": torch.nn, "F": torch.nn.functional}
    for name, cell in cells.items():
        given = "grade: false" in cell and "locked: true" in cell
        if f"grade_id: {name}," in cell and (given or "solution: true" in cell):
            exec(cell.split("\n---\n", 1)[1], names)
        elif name.startswith("given-"):  # what an earlier lesson taught
            exec(cell.split("\n\n", 1)[1], names)
        if name == exercise.id:
            break
    verdict = verdict_on(exercise.id, [names[function] for function in exercise.functions], SEEDS[0])
    assert verdict.score == verdict.max_score, verdict.message.en
