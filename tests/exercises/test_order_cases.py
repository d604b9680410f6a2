"""What is special to the declarations of lesson 01: the draws rule out coincidences, and partial credit is fair."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from autograder.examiner.client import observe_all
from autograder.examiner.judge import Examination
from autograder.exercises import order
from autograder.exercises.declaration import Case, Draw, Exercise, MixPositions
from autograder.exercises.order_quiz import QUIZ
from autograder.reference.attention import permutation_gap
from autograder.results import Verdict

SEEDS = range(20)
LESSON = Path(__file__).parents[2] / "course" / "lessons" / "01-why-order-matters.md"


def _judge(exercise: Exercise, **answers: Any) -> Verdict:
    examination = Examination(exercise, 0, "cpu")
    in_order = [answers.get(name, exercise.reference[name]) for name in exercise.functions]
    return examination.judge(observe_all(examination.questions, in_order))


def _lost(verdict: Verdict) -> set[str]:
    return {criterion.name for criterion in verdict.criteria if criterion.message}


def _told(verdict: Verdict, exercise: Exercise) -> dict[str, str]:
    """The known mistake that each lost criterion names."""
    slugs = {mistake.message: mistake.slug for mistake in exercise.mistakes}
    return {c.name: slugs.get(c.message, "unnamed") for c in verdict.criteria if c.message}


def _mask_of(case: Case) -> Tensor | None:
    mask = case.args[3] if len(case.args) > 3 else case.kwargs.get("mask")
    assert mask is None or isinstance(mask, Tensor)
    return mask


@pytest.mark.parametrize("seed", SEEDS)
def test_all_sizes_of_an_attention_case_differ(seed: int) -> None:
    for case in order.ATTENTION.cases(Draw(seed)):
        query, key, value = case.args[:3]
        sizes = [*query.shape, key.shape[-2], value.shape[-1]]
        assert len(set(sizes)) == len(sizes), case


@pytest.mark.parametrize("seed", SEEDS)
def test_only_the_empty_rows_case_has_a_query_without_keys(seed: int) -> None:
    for case in order.ATTENTION.cases(Draw(seed)):
        mask = _mask_of(case)
        if mask is None:
            continue
        assert bool(mask.any(-1).all()) == (case.tag != "empty")
        assert not bool(mask.all(-1).any())


@pytest.mark.parametrize("seed", SEEDS)
def test_permutations_are_not_their_own_inverse_and_sizes_differ(seed: int) -> None:
    for case in order.PERMUTATION_GAP.cases(Draw(seed)):
        _, x, permutation = case.args
        assert not torch.equal(permutation, permutation.argsort())
        assert len(set(x.shape)) == 3


@pytest.mark.parametrize("seed", SEEDS)
def test_blind_layers_have_no_gap_and_aware_layers_hide_it_from_half_measures(seed: int) -> None:
    for case in order.PERMUTATION_GAP.cases(Draw(seed)):
        layer, x, permutation = case.args
        assert isinstance(layer, MixPositions)

        def mix(x: Tensor, weights: Tensor = layer.weights) -> Tensor:
            return torch.einsum("ij,bjd->bid", weights, x)

        gap = permutation_gap(mix, x, permutation)
        if case.tag == "blind":
            assert gap < 1e-5
            continue
        difference = mix(x[:, permutation]) - mix(x)[:, permutation]
        assert gap > 0.05
        assert difference.max() < gap - 0.009
        assert difference[0].abs().max() < gap - 0.009


@pytest.mark.parametrize("seed", SEEDS)
def test_on_a_gpu_no_axis_is_too_short_for_the_permutation(seed: int) -> None:
    on_gpu = [case for case in order.PERMUTATION_GAP.cases(Draw(seed, "cuda")) if case.device == "cuda"]
    assert on_gpu
    for case in on_gpu:
        _, x, permutation = case.args
        assert min(x.shape) >= len(permutation)


@pytest.mark.parametrize("exercise", order.EXERCISES[:5], ids=lambda exercise: exercise.id)
def test_every_formula_exercise_has_a_case_on_the_accelerator(exercise: Exercise) -> None:
    cases = exercise.cases(Draw(0, "cuda"))
    assert any(case.device == "cuda" or "cuda" in case.kwargs.values() for case in cases)


def _attend(scale: bool = True, fill: float = -math.inf, swapped: bool = False, alone: bool = False) -> Any:
    def answer(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
        scores = query @ key.transpose(-2, -1) / (math.sqrt(query.shape[-1]) if scale else 1)
        if mask is not None:
            scores = scores.masked_fill(~mask, fill)
        weights = scores.softmax(-1)
        if alone:
            return weights @ value
        return (weights, weights @ value) if swapped else (weights @ value, weights)

    return answer


def test_an_unscaled_answer_with_uniform_empty_rows_hears_of_both() -> None:
    verdict = _judge(order.ATTENTION, attention=_attend(scale=False, fill=-1e9))
    told = _told(verdict, order.ATTENTION)
    assert verdict.mistake == "unscaled"
    assert told.pop("empty-rows") == "uniform-rows"
    assert set(told.values()) == {"unscaled"}


def test_swapped_results_are_still_judged_for_what_they_hold() -> None:
    verdict = _judge(order.ATTENTION, attention=_attend(swapped=True))
    assert _told(verdict, order.ATTENTION) == {"form": "order-swapped", "empty-rows": "nan-rows"}
    assert verdict.score == 3.0


def test_missing_weights_cost_no_points_beyond_their_own() -> None:
    verdict = _judge(order.ATTENTION, attention=_attend(alone=True))
    assert _told(verdict, order.ATTENTION) == {
        "form": "weights-missing",
        "weights": "weights-missing",
        "empty-rows": "nan-rows",
    }


def test_empty_rows_repaired_with_another_value_are_lost_alone() -> None:
    def answer(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
        output, weights = _attend()(query, key, value, mask)
        return output.nan_to_num(1.0), weights.nan_to_num(1.0)

    assert _lost(_judge(order.ATTENTION, attention=answer)) == {"empty-rows"}


def test_an_error_with_another_text_is_not_named_after_a_known_one() -> None:
    def answer(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
        raise RuntimeError("The size of tensor a (1) must match the size of tensor b (99) at non-singleton dimension 0")

    verdict = _judge(order.ATTENTION, attention=answer)
    assert (verdict.score, verdict.mistake) == (0.0, None)


def test_a_float_mask_that_is_strict_too_hears_of_both() -> None:
    verdict = _judge(order.CAUSAL_MASK, causal_mask=lambda length, device=None: torch.ones(length, length).tril(-1))
    assert _told(verdict, order.CAUSAL_MASK) == {
        "form": "float-mask",
        "values": "strict-triangle",
        "device": "device-ignored",
    }
    assert verdict.score == 0.0


def test_mistakes_in_the_two_naive_functions_are_told_apart() -> None:
    verdict = _judge(
        order.NAIVE_POSITIONS,
        add_integer_positions=lambda x: x + torch.arange(1, x.shape[1] + 1, device=x.device)[:, None],
        add_fraction_positions=lambda x: (
            x + (torch.arange(x.shape[1], device=x.device) / (x.shape[1] - 1)).to(x.dtype)[:, None]
        ),
    )
    assert _told(verdict, order.NAIVE_POSITIONS) == {"integer": "integer-from-one", "single": "single-position-nan"}
    assert verdict.score == 1.25


def _nan(found: Any) -> Any:
    return tuple(_nan(part) for part in found) if isinstance(found, tuple) else found * math.nan


def test_nan_everywhere_is_not_taken_for_nan_in_a_special_case() -> None:
    everywhere = {name: lambda x, f=f: _nan(f(x)) for name, f in order.NAIVE_POSITIONS.reference.items()}
    assert _judge(order.NAIVE_POSITIONS, **everywhere).mistake is None
    right = order.ATTENTION.reference["attention"]
    assert _judge(order.ATTENTION, attention=lambda *inputs, **mask: _nan(right(*inputs, **mask))).mistake is None


@pytest.mark.parametrize("exercise", order.EXERCISES[:5], ids=lambda exercise: exercise.id)
def test_a_result_without_values_gets_a_verdict(exercise: Exercise) -> None:
    def moved(found: Any) -> Any:
        if isinstance(found, tuple):
            return tuple(moved(part) for part in found)
        return found.to("meta") if isinstance(found, Tensor) else torch.empty((), device="meta")

    def answer(name: str) -> Any:
        return lambda *args, **kwargs: moved(exercise.reference[name](*args, **kwargs))

    verdict = _judge(exercise, **{name: answer(name) for name in exercise.functions})
    assert verdict.score <= verdict.max_score / 2


def test_linspace_without_a_dtype_loses_the_form_alone() -> None:
    verdict = _judge(
        order.NAIVE_POSITIONS,
        add_fraction_positions=lambda x: x + torch.linspace(0, 1, x.shape[1], device=x.device)[:, None],
    )
    assert _told(verdict, order.NAIVE_POSITIONS) == {"fraction-form": "fraction-dtype-promoted"}


def test_a_tensor_gap_that_misses_negative_differences_hears_of_both() -> None:
    def answer(layer: Any, x: Tensor, permutation: Tensor) -> Any:
        return (layer(x[:, permutation]) - layer(x)[:, permutation]).max()

    told = _told(_judge(order.PERMUTATION_GAP, permutation_gap=answer), order.PERMUTATION_GAP)
    assert told == {"form": "tensor-returned", "aware": "signed-difference"}


def test_softmax_over_queries_shows_as_a_plain_mean_in_the_sentence_vector() -> None:
    def answer(x: Tensor) -> Any:
        return ((x @ x.T / x.shape[1] ** 0.5).softmax(0) @ x).mean(0)

    assert _judge(order.SENTENCE_VECTOR, sentence_vector=answer).mistake == "plain-mean"


def test_the_quiz_declares_every_letter_that_the_lesson_offers() -> None:
    lesson = LESSON.read_text(encoding="utf-8")
    questions = re.split(
        r'\+\+\+ \{"name": "question-\d"\}', lesson.split("```{code-cell} ipython3\n---\nname: quiz-order")[0]
    )[1:]
    offered = [re.findall(r"^- \*\*([a-d])\*\*", question, flags=re.MULTILINE) for question in questions]
    declared = [
        sorted([QUIZ.reference[name], *(m.answers[name] for m in QUIZ.mistakes if name in m.answers)])
        for name in QUIZ.functions
    ]
    assert offered == declared


def test_the_quiz_agrees_with_the_lessons_solution() -> None:
    cell = LESSON.read_text(encoding="utf-8").split("\nname: quiz-order\n")[1]
    solution = cell.split("### BEGIN SOLUTION\n")[1].split("### END SOLUTION")[0]
    letters: dict[str, Any] = {}
    exec(solution, {}, letters)
    assert letters == QUIZ.reference
