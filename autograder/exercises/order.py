"""Lesson 01, why order matters: its exercises."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.exercises import order_alternatives as alternatives
from autograder.exercises import order_comparisons as compare
from autograder.exercises.attention_mistakes import ATTENTION_MISTAKES
from autograder.exercises.comparisons import EXACT, Tolerance, inputs_untouched
from autograder.exercises.declaration import Case, Criterion, Draw, Exercise, MixPositions
from autograder.exercises.naive_mistakes import NAIVE_MISTAKES
from autograder.exercises.order_mistakes import CAUSAL_MISTAKES, GAP_MISTAKES, VECTOR_MISTAKES
from autograder.exercises.order_quiz import QUIZ
from autograder.reference import attention as reference
from autograder.reference import naive
from autograder.results import Text

LESSON = "01-why-order-matters"

INPUTS = Text(en="arguments left as they were", zh="不改动参数")
FORM = Text(en="shape and dtype", zh="形状与 dtype")

ATTENTION_TOLERANCE = Tolerance(
    3e-5,
    "float32 sums of at most 12 products of normal numbers, then averages of normal numbers: 2e-6 at worst in any "
    "order of summation; the nearest mistakes are off by more than 0.1",
)


def _attention_inputs(draw: Draw, *leading: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value with all sizes different, those of `leading` included (they are at most 4)."""
    q, k, d_v = draw.sizes(3, 5, 8)
    d = draw.integer(9, 12)
    return (
        draw.normal(*leading, q, d, dtype=dtype),
        draw.normal(*leading, k, d, dtype=dtype),
        draw.normal(*leading, k, d_v, dtype=dtype),
    )


def _attention_cases(draw: Draw) -> list[Case]:
    def ask(tag: str, inputs: tuple[Tensor, ...], device: str = "cpu", **kwargs: Tensor) -> Case:
        return Case("attention", inputs, kwargs, tag=tag, device=device)

    cases = [ask("values", _attention_inputs(draw, draw.integer(2, 4)), device) for device in ("cpu", draw.accelerator)]
    cases.append(ask("leading", _attention_inputs(draw)))
    cases.append(ask("leading", _attention_inputs(draw, *draw.sizes(2, 2, 4))))
    cases.append(ask("dtype", _attention_inputs(draw, draw.integer(2, 4), dtype=torch.float64)))
    cases.append(ask("dtype", _attention_inputs(draw, draw.integer(2, 4), dtype=torch.bfloat16)))

    inputs = query, key, _ = _attention_inputs(draw, batch := draw.integer(2, 4))
    q, k = query.shape[-2], key.shape[-2]
    cases.append(ask("mask", (*inputs, draw.mask(batch, q, k))))
    cases.append(ask("mask", inputs, mask=draw.mask(q, k)))

    inputs = query, key, _ = _attention_inputs(draw, batch)
    cases.append(ask("shared-mask", (*inputs, draw.mask(batch, 1, key.shape[-2]))))
    inputs = query, key, _ = _attention_inputs(draw, *draw.sizes(2, 2, 4))
    cases.append(ask("shared-mask", inputs, mask=draw.mask(query.shape[0], 1, 1, key.shape[-2])))

    inputs = query, key, _ = _attention_inputs(draw, batch)
    mask = draw.mask(batch, query.shape[-2], key.shape[-2])
    mask[0, draw.integer(0, query.shape[-2] - 1)] = False
    mask[-1, -1] = False
    cases.append(ask("empty", (*inputs, mask)))
    return cases


_both = compare.both_within(ATTENTION_TOLERANCE)

ATTENTION = Exercise(
    id="attention",
    lesson=LESSON,
    functions=("attention",),
    reference={"attention": reference.attention},
    cases=_attention_cases,
    criteria=(
        Criterion("form", Text(en="two results and their shapes", zh="两个结果及其形状"), 0.5, compare.shape),
        Criterion(
            "dtype", Text(en="dtype and device", zh="dtype 与设备"), 0.25, compare.dtype_and_device, ("values", "dtype")
        ),
        Criterion("weights", Text(en="weights", zh="权重"), 0.5, compare.weights_within(ATTENTION_TOLERANCE)),
        Criterion("output", Text(en="output", zh="输出"), 0.5, compare.output_within(ATTENTION_TOLERANCE)),
        Criterion("mask", Text(en="mask", zh="掩码"), 0.75, _both, ("mask",)),
        Criterion(
            "shared-mask",
            Text(en="a mask shared by queries or heads", zh="多个查询或多个头共用的掩码"),
            0.25,
            _both,
            ("shared-mask",),
        ),
        Criterion(
            "empty-rows",
            Text(en="queries that may attend to nothing", zh="不能关注任何位置的查询"),
            0.5,
            compare.empty_rows_within(ATTENTION_TOLERANCE),
            ("empty",),
        ),
        Criterion(
            "leading-axes", Text(en="no leading axis, or two", zh="没有前导轴，或有两个"), 0.5, _both, ("leading",)
        ),
        Criterion("inputs", INPUTS, 0.25, inputs_untouched, ("values", "mask")),
    ),
    mistakes=ATTENTION_MISTAKES,
    alternatives=alternatives.ATTENTION,
)


def _causal_cases(draw: Draw) -> list[Case]:
    cases = [Case("causal_mask", (length,)) for length in (1, draw.integer(3, 6), draw.integer(7, 12))]
    cases.append(Case("causal_mask", (draw.integer(3, 6),), {"device": draw.other_device}, tag="device"))
    return cases


CAUSAL_MASK = Exercise(
    id="causal-mask",
    lesson=LESSON,
    functions=("causal_mask",),
    reference={"causal_mask": reference.causal_mask},
    cases=_causal_cases,
    criteria=(
        Criterion("form", FORM, 0.25, compare.form),
        Criterion("values", Text(en="who may attend to whom", zh="谁可以关注谁"), 0.5, compare.values(EXACT)),
        Criterion("device", Text(en="device", zh="设备"), 0.25, compare.same_device, ("device",)),
    ),
    mistakes=CAUSAL_MISTAKES,
    alternatives=alternatives.CAUSAL_MASK,
)

BLIND_TOLERANCE = Tolerance(
    1e-4,
    "a layer that ignores order leaves only rounding, at most 8 float32 terms of size 10 in another order: below 1e-5; "
    "comparing outputs of different words gives more than 1e-1",
)
AWARE_TOLERANCE = Tolerance(
    1e-4,
    "gaps lie between 0.1 and 50 and round by about 1e-6 in float32; the cases keep the nearest mistakes 1e-2 away",
)


def _mixed(weights: Tensor, x: Tensor) -> Tensor:
    return torch.einsum("ij,bjd->bid", weights, x)


def _telling_input(draw: Draw, weights: Tensor, permutation: Tensor, batch: int, d_model: int) -> Tensor:
    """An x whose largest difference is negative and not in the first sentence: neither can be left out unseen."""
    while True:
        x = draw.normal(batch, len(weights), d_model)
        difference = _mixed(weights, x[:, permutation]) - _mixed(weights, x)[:, permutation]
        if -difference.min() < difference.max():
            x, difference = -x, -difference
        if difference[0].abs().max() == difference.abs().max():
            x, difference = x.flip(0), difference.flip(0)
        gap = difference.abs().max()
        if difference.max() < gap - 0.01 and difference[0].abs().max() < gap - 0.01:
            return x


def _gap_cases(draw: Draw) -> list[Case]:
    """Layers that ignore order, and layers that don't, with more or fewer sentences and features than positions.

    On an accelerator the length is the smallest size: a permutation on the wrong axis then stays in bounds. An index
    out of bounds would end every later computation on a GPU.
    """
    cases = []

    def ask(tag: str, weights: Tensor, x: Tensor, permutation: Tensor, device: str = "cpu") -> None:
        cases.append(Case("permutation_gap", (MixPositions(weights), x, permutation), tag=tag, device=device))

    for more_sentences in (True, False):
        small, length, large = sorted(draw.sizes(3, 3, 8))
        batch, d_model = (large, small) if more_sentences else (small, large)
        blind = draw.uniform(1.0, 3.0) * torch.eye(length) + draw.uniform(1.0, 3.0) / length
        ask("blind", blind, draw.normal(batch, length, d_model), draw.permutation(length))
        weights, permutation = draw.normal(length, length), draw.permutation(length)
        ask("aware", weights, _telling_input(draw, weights, permutation, batch, d_model), permutation)

    length, batch, d_model = sorted(draw.sizes(3, 3, 8))
    past_only = torch.ones(length, length).tril()
    past_only = past_only / past_only.sum(-1, keepdim=True)
    permutation = draw.permutation(length)
    ask("aware", past_only, _telling_input(draw, past_only, permutation, batch, d_model), permutation, draw.accelerator)
    return cases


PERMUTATION_GAP = Exercise(
    id="permutation-gap",
    lesson=LESSON,
    functions=("permutation_gap",),
    reference={"permutation_gap": reference.permutation_gap},
    cases=_gap_cases,
    criteria=(
        Criterion("form", Text(en="a Python number", zh="Python 的数"), 0.25, compare.form, ("blind", "aware")),
        Criterion(
            "blind",
            Text(en="layers that ignore order", zh="忽略顺序的层"),
            0.5,
            compare.values(BLIND_TOLERANCE),
            ("blind",),
        ),
        Criterion(
            "aware",
            Text(en="layers that use order", zh="利用顺序的层"),
            1.0,
            compare.values(AWARE_TOLERANCE),
            ("aware",),
        ),
        Criterion("inputs", INPUTS, 0.25, inputs_untouched, ("blind", "aware")),
    ),
    mistakes=GAP_MISTAKES,
    alternatives=alternatives.PERMUTATION_GAP,
)

VECTOR_TOLERANCE = Tolerance(
    3e-5,
    "as for attention: float32 averages of normal numbers keep 2e-6; the nearest mistakes are off by more than 1e-3",
)


def _vector_cases(draw: Draw) -> list[Case]:
    def ask(tag: str, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Case:
        length, d_model = draw.sizes(2, 3, 10)
        return Case("sentence_vector", (draw.normal(length, d_model, dtype=dtype),), tag=tag, device=device)

    return [ask("values"), ask("values"), ask("values", draw.accelerator), ask("dtype", dtype=torch.float64)]


SENTENCE_VECTOR = Exercise(
    id="sentence-vector",
    lesson=LESSON,
    functions=("sentence_vector",),
    reference={"sentence_vector": reference.sentence_vector},
    cases=_vector_cases,
    criteria=(
        Criterion("form", FORM, 0.25, compare.form, ("values", "dtype")),
        Criterion("values", Text(en="values", zh="数值"), 0.5, compare.values(VECTOR_TOLERANCE)),
        Criterion("inputs", INPUTS, 0.25, inputs_untouched),
    ),
    mistakes=VECTOR_MISTAKES,
    alternatives=alternatives.SENTENCE_VECTOR,
)

POSITION_TOLERANCE = Tolerance(
    1e-5,
    "one float32 addition of numbers below 32 rounds by 1e-6; the nearest mistake (dividing by length) is off by 0.1",
)


def _naive_cases(draw: Draw) -> list[Case]:
    cases = []
    for function, subject in (("add_integer_positions", "integer"), ("add_fraction_positions", "fraction")):
        for device in ("cpu", draw.accelerator):
            batch, length, d_model = draw.sizes(3, 3, 10)
            cases.append(Case(function, (draw.normal(batch, length, d_model),), tag=subject, device=device))
        for dtype, device in (
            (torch.float64, "cpu"),
            (torch.bfloat16, "cpu"),
            (torch.float32, draw.other_device),
        ):
            x = draw.normal(*draw.sizes(3, 3, 10), dtype=dtype)
            cases.append(Case(function, (x,), tag=f"{subject}-form", device=device))
        batch, d_model = draw.sizes(2, 3, 10)
        single = "single" if subject == "fraction" else subject
        cases.append(Case(function, (draw.normal(batch, 1, d_model),), tag=single))
    return cases


_positions = compare.values(POSITION_TOLERANCE)

NAIVE_POSITIONS = Exercise(
    id="naive-positions",
    lesson=LESSON,
    functions=("add_integer_positions", "add_fraction_positions"),
    reference={
        "add_integer_positions": naive.add_integer_positions,
        "add_fraction_positions": naive.add_fraction_positions,
    },
    cases=_naive_cases,
    criteria=(
        Criterion("integer", Text(en="position numbers", zh="位置编号"), 0.5, _positions, ("integer",)),
        Criterion("fraction", Text(en="position fractions", zh="位置分数"), 0.5, _positions, ("fraction",)),
        Criterion(
            "single",
            Text(en="a sentence of one word", zh="只有一个词的句子"),
            0.25,
            compare.values_on("single", POSITION_TOLERANCE),
            ("single", "fraction"),
        ),
        Criterion(
            "integer-form",
            Text(en="position numbers: shape, dtype, device", zh="位置编号：形状、dtype、设备"),
            0.25,
            compare.form,
            ("integer-form",),
        ),
        Criterion(
            "fraction-form",
            Text(en="position fractions: shape, dtype, device", zh="位置分数：形状、dtype、设备"),
            0.25,
            compare.form,
            ("fraction-form",),
        ),
        Criterion("inputs", INPUTS, 0.25, inputs_untouched, ("integer", "fraction")),
    ),
    mistakes=NAIVE_MISTAKES,
    alternatives=alternatives.NAIVE_POSITIONS,
)

EXERCISES = (ATTENTION, CAUSAL_MASK, PERMUTATION_GAP, SENTENCE_VECTOR, NAIVE_POSITIONS, QUIZ)
