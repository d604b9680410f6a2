"""Lesson 06, scores: the exercises on Transformer-XL and DeBERTa. Known mistakes stand in other modules."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.exercises import (
    relative_deberta_mistakes,
    relative_score_alternatives,
    relative_shift_mistakes,
    relative_xl_mistakes,
)
from autograder.exercises.comparisons import Tolerance, inputs_untouched, same_form, values_within
from autograder.exercises.declaration import Case, Criterion, Draw, Exercise, backward
from autograder.exercises.relative_bias import CACHE, FORM_ANYWHERE, GRADIENT, INPUT, LESSON, SQUARE
from autograder.exercises.relative_comparisons import same_mask, without_future
from autograder.exercises.rotary_comparisons import gradients_within
from autograder.reference import relative
from autograder.results import Text

MOVED_TOLERANCE = Tolerance(
    1e-6, "the numbers are moved, not computed; the mistakes put other random numbers in their place"
)
SCORE_TOLERANCE = Tolerance(
    3e-5,
    "sums of at most 45 products of numbers below 8 in float32; the reference and every alternative were within 2e-6 "
    "of float64 over 60 seeds; the mistakes differ by more than 0.01 somewhere",
)
SCORE_GRADIENT = Tolerance(
    1e-4,
    "sums of at most 300 terms in float32, within 2e-6 of float64 over 60 seeds; the mistakes differ by more than 0.01",
)


def past_only(weights: Tensor) -> Tensor:
    """Weights of a backward pass that asks nothing about keys after the query."""
    q, k = weights.shape[-2:]
    return weights.tril(k - q)


def _shift_cases(draw: Draw) -> list[Case]:
    def ask(tag: str, *shape: int, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Case:
        return Case("relative_shift", (draw.normal(*shape, dtype=dtype),), tag=tag, device=device)

    def leading() -> list[int]:
        return draw.sizes(2, 2, 4)

    def sizes() -> tuple[int, int]:
        """q and k; neither is the other's half, and a memory is longer than one."""
        q = draw.integer(5, 7)
        return q, q + draw.integer(2, 4)

    n = draw.integer(5, 7)
    graded = draw.normal(*leading(), *sizes())
    return [
        ask("values", n, n),
        ask("values", *leading(), n + 1, n + 1),
        ask("values", *leading(), n, n, device=draw.accelerator),
        ask("cache", *sizes()),
        ask("cache", *leading(), *sizes()),
        ask("cache", 3, *sizes()),
        ask("cache", *leading(), 1, n),
        ask("dtype", *leading(), *sizes(), dtype=torch.float64),
        ask("dtype", *leading(), n, n, dtype=torch.bfloat16),
        ask("device", *leading(), *sizes(), device=draw.other_device),
        Case(
            "relative_shift",
            (graded,),
            tag="gradient",
            steps=(backward(past_only(draw.normal(*graded.shape))),),
            track=True,
        ),
    ]


_moved = without_future(values_within(MOVED_TOLERANCE))

RELATIVE_SHIFT = Exercise(
    id="relative-shift",
    lesson=LESSON,
    functions=("relative_shift",),
    reference={"relative_shift": relative.relative_shift},
    cases=_shift_cases,
    criteria=(
        Criterion("form", FORM_ANYWHERE, 0.25, same_form, ("values", "cache", "dtype", "device")),
        Criterion("values", SQUARE, 0.75, _moved),
        Criterion("cache", CACHE, 0.5, _moved, ("cache",)),
        Criterion("gradient", GRADIENT, 0.25, gradients_within(MOVED_TOLERANCE), ("gradient",)),
        Criterion("input", INPUT, 0.25, inputs_untouched, ("values", "cache")),
    ),
    mistakes=relative_shift_mistakes.RELATIVE_SHIFT,
    alternatives=relative_score_alternatives.RELATIVE_SHIFT,
)


def _xl_cases(draw: Draw) -> list[Case]:
    def ask(
        tag: str,
        q: int,
        k: int,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        with_gradient: bool = False,
    ) -> Case:
        batch, heads = draw.sizes(2, 2, 4)
        d = draw.sample((10, 11, 13), 1)[0]
        shapes = (batch, heads, q, d), (batch, heads, k, d), (heads, k, d), (heads, d), (heads, d)
        given = tuple(draw.normal(*shape, dtype=dtype) for shape in shapes)
        steps = (backward(past_only(draw.normal(batch, heads, q, k))),) if with_gradient else ()
        return Case("transformer_xl_scores", given, {}, tag, device, steps=steps, track=with_gradient)

    def sizes() -> tuple[int, int]:
        q = draw.integer(5, 6)
        return q, q + draw.integer(2, 3)

    return [
        ask("values", 6, 6),
        ask("values", 7, 7, device=draw.accelerator),
        ask("cache", *sizes()),
        ask("cache", 1, draw.integer(5, 7)),
        ask("cache", *sizes()),
        ask("dtype", *sizes(), dtype=torch.float64),
        ask("device", *sizes(), device=draw.other_device),
        ask("gradient", *sizes(), with_gradient=True),
    ]


_scored = without_future(values_within(SCORE_TOLERANCE))

TRANSFORMER_XL_SCORES = Exercise(
    id="transformer-xl-scores",
    lesson=LESSON,
    functions=("transformer_xl_scores",),
    reference={"transformer_xl_scores": relative.transformer_xl_scores},
    cases=_xl_cases,
    criteria=(
        Criterion("form", FORM_ANYWHERE, 0.25, same_form, ("values", "cache", "dtype", "device")),
        Criterion("values", SQUARE, 1.0, _scored, ("values", "dtype")),
        Criterion("cache", CACHE, 0.75, _scored, ("cache",)),
        Criterion("future", Text(en="the future", zh="未来"), 0.5, same_mask, ("values", "cache")),
        Criterion("gradient", GRADIENT, 0.25, gradients_within(SCORE_GRADIENT), ("gradient",)),
        Criterion("input", INPUT, 0.25, inputs_untouched, ("values", "cache")),
    ),
    mistakes=relative_xl_mistakes.TRANSFORMER_XL_SCORES,
    alternatives=relative_score_alternatives.TRANSFORMER_XL_SCORES,
)


def _deberta_cases(draw: Draw) -> list[Case]:
    def ask(
        tag: str,
        n: int,
        max_distance: int,
        *silent: str,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        with_gradient: bool = False,
    ) -> Case:
        """`silent` arguments are zero, so that one term stands alone."""
        batch, heads = draw.sizes(2, 2, 4)
        d = draw.sample((11, 13, 15), 1)[0]  # the tables have an even number of rows
        shapes = {
            "query": (batch, heads, n, d),
            "key": (batch, heads, n, d),
            "relative_query": (heads, 2 * max_distance, d),
            "relative_key": (heads, 2 * max_distance, d),
        }
        given = tuple(
            torch.zeros(shape) if name in silent else draw.normal(*shape, dtype=dtype) for name, shape in shapes.items()
        )
        steps = (backward(draw.normal(batch, heads, n, n)),) if with_gradient else ()
        return Case("deberta_scores", (*given, max_distance), tag=tag, device=device, steps=steps, track=with_gradient)

    def near() -> tuple[int, int]:
        n = draw.integer(5, 7)
        return n, n + draw.integer(1, 2)

    def far() -> tuple[int, int]:
        return draw.integer(7, 9), draw.integer(2, 3)

    return [
        ask("content", *near(), "relative_query", "relative_key"),
        ask("to-position", *near(), "key", "relative_query"),
        ask("from-position", *near(), "query", "relative_key"),
        ask("values", *near()),
        ask("values", *near(), device=draw.accelerator),
        ask("far", *far()),
        ask("far", draw.integer(9, 10), 4),
        ask("dtype", *near(), dtype=torch.float64),
        ask("device", *near(), device=draw.other_device),
        ask("gradient", *near(), with_gradient=True),
    ]


_added = values_within(SCORE_TOLERANCE)

DEBERTA_SCORES = Exercise(
    id="deberta-scores",
    lesson=LESSON,
    functions=("deberta_scores",),
    reference={"deberta_scores": relative.deberta_scores},
    cases=_deberta_cases,
    criteria=(
        Criterion("form", FORM_ANYWHERE, 0.25, same_form, ("values", "dtype", "device")),
        Criterion("content", Text(en="content to content", zh="内容到内容"), 0.5, _added, ("content",)),
        Criterion("to-position", Text(en="content to position", zh="内容到位置"), 0.75, _added, ("to-position",)),
        Criterion("from-position", Text(en="position to content", zh="位置到内容"), 0.75, _added, ("from-position",)),
        Criterion("values", Text(en="all terms together", zh="各项相加"), 0.5, _added, ("values", "dtype")),
        Criterion("far", Text(en="past the largest distance", zh="超过最大距离"), 0.75, _added, ("far",)),
        Criterion("gradient", GRADIENT, 0.25, gradients_within(SCORE_GRADIENT), ("gradient",)),
        Criterion("input", INPUT, 0.25, inputs_untouched, ("values", "far")),
    ),
    mistakes=relative_deberta_mistakes.DEBERTA_SCORES,
    alternatives=relative_score_alternatives.DEBERTA_SCORES,
)
