"""Lesson 04, feed-forward and add & norm: its exercises. The parts of the block stand in `block_parts`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from autograder.exercises import block_alternatives as alternatives
from autograder.exercises import block_comparisons as compare
from autograder.exercises.add_norm_mistakes import ADD_NORM_MISTAKES
from autograder.exercises.block_cost_mistakes import BLOCK_COST_MISTAKES
from autograder.exercises.block_parts import (
    DTYPE,
    EPS,
    EVALUATION,
    FEED_FORWARD,
    INPUTS,
    LAYER_NORM,
    LESSON,
    NORM_TOLERANCE,
    VALUES,
    away_from_zero,
    backward_steps,
    dropout_criterion,
    form_cases,
    gradient_criterion,
    names_cases,
    names_criterion,
    norm_inputs,
    random_seed,
    random_state,
    share,
    telling_gelu,
)
from autograder.exercises.block_quiz import QUIZ
from autograder.exercises.comparisons import Tolerance, inputs_untouched, same_form, values_within
from autograder.exercises.declaration import Case, Criterion, Draw, Exercise, Step, forward, load, mode
from autograder.exercises.encoder_block_mistakes import ENCODER_BLOCK_MISTAKES
from autograder.reference import block as reference
from autograder.results import Text

# Add & norm


def _add_norm_cases(draw: Draw) -> list[Case]:
    cases = []

    def ask(tag: str, *extra: float, device: str = "cpu", **kwargs: float) -> None:
        x, sublayer = norm_inputs(draw)
        d_model = x.shape[-1]
        values = random_state(draw, {"norm.weight": (d_model,), "norm.bias": (d_model,)})
        steps: tuple[Step, ...] = (load(values, by_shape=True), forward(x, sublayer))
        if tag == "eval":
            steps = (load(values, by_shape=True), mode(train=False), random_seed(draw), forward(x, sublayer))
        if tag == "gradient":
            steps = backward_steps(values, draw.normal(*x.shape), x, sublayer)
        cases.append(Case("AddNorm", (d_model, *extra), kwargs, tag, device, steps=steps))

    ask("values")
    ask("values", device=draw.accelerator)
    ask("eps", 0.0, round(draw.uniform(0.5, 1.5), 2))
    ask("eps", eps=round(draw.uniform(2.0, 4.0), 2))
    ask("eval", share(draw))
    ask("eval", dropout=share(draw))
    ask("gradient")
    x, sublayer = norm_inputs(draw)
    cases += names_cases("AddNorm", x.shape[-1])
    cases += form_cases("AddNorm", x.shape[-1], inputs=(x, sublayer), device=draw.other_device)

    x, sublayer = draw.normal(3, 40, 14), away_from_zero(draw.normal(3, 40, 14))
    sublayer[..., draw.sample(range(14), 6)] = 0.0
    cases.append(
        Case(
            "AddNorm",
            (14,),
            {"dropout": share(draw)},
            "train",
            steps=(mode(train=True), random_seed(draw), forward(x, sublayer)),
        )
    )
    return cases


def _add_norm_dropped(case: Case, y: Tensor) -> tuple[bool | None, float]:
    x, sublayer = case.steps[-1].args
    share = float(case.kwargs["dropout"])
    return compare.dropped_before_addition(y, x, [sublayer], share), share


_norm_values = values_within(NORM_TOLERANCE)

ADD_NORM = Exercise(
    id="add-norm",
    lesson=LESSON,
    functions=("AddNorm",),
    reference={"AddNorm": reference.AddNorm},
    cases=_add_norm_cases,
    criteria=(
        names_criterion(0.25),
        Criterion("values", VALUES, 0.5, _norm_values),
        Criterion("eps", EPS, 0.25, _norm_values, ("eps",)),
        dropout_criterion(0.25, _add_norm_dropped),
        Criterion("eval", EVALUATION, 0.25, _norm_values, ("eval",)),
        gradient_criterion(0.25),
        Criterion("form", DTYPE, 0.125, same_form, ("dtype",)),
        Criterion("inputs", INPUTS, 0.125, inputs_untouched),
    ),
    mistakes=ADD_NORM_MISTAKES,
    alternatives=alternatives.ADD_NORM,
)


# The block

BLOCK_TOLERANCE = Tolerance(
    2e-4,
    "two sublayers in float32, at most 12 products a sum and values below 30: below 2e-5 in any order; GELU's tanh "
    "form, the nearest mistake, is off by more than 5e-4 in its case, the others by more than 1e-2 somewhere",
)


def _block_shapes(d_model: int, d_ff: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for name in ("query", "key", "value", "output"):
        shapes |= {f"attention.{name}.weight": (d_model, d_model), f"attention.{name}.bias": (d_model,)}
    shapes |= {"feed_forward.expand.weight": (d_ff, d_model), "feed_forward.expand.bias": (d_ff,)}
    shapes |= {"feed_forward.contract.weight": (d_model, d_ff), "feed_forward.contract.bias": (d_model,)}
    for name in ("attention_norm", "feed_forward_norm"):
        shapes |= {f"{name}.weight": (d_model,), f"{name}.bias": (d_model,)}
    return shapes


def _block_sizes(draw: Draw) -> tuple[int, int, int, int, int]:
    """batch, length, d_model, heads, d_ff; these and the width of a head all differ."""
    while True:
        n_heads, head_dim = draw.sizes(2, 2, 4)
        batch, length, d_ff = draw.sizes(3, 3, 13)
        sizes = (batch, length, n_heads * head_dim, n_heads, d_ff)
        if len({*sizes, head_dim}) == 6:
            return sizes


def _block_cases(draw: Draw) -> list[Case]:
    cases = []

    def ask(tag: str, *extra: Any, device: str = "cpu", mask: str = "", **kwargs: Any) -> None:
        batch, length, d_model, n_heads, d_ff = _block_sizes(draw)
        values = random_state(draw, _block_shapes(d_model, d_ff))
        if kwargs.get("activation") == "gelu":
            values = telling_gelu(draw, values, "feed_forward.")
        x = draw.normal(batch, length, d_model)
        step = forward(x)
        if mask == "rows":
            step = forward(x, draw.mask(length, length))
        elif mask == "padding":
            step = forward(x, mask=draw.mask(batch, 1, 1, length))
        steps: tuple[Step, ...] = (load(values, by_shape=True), step)
        if tag == "eval":
            steps = (load(values, by_shape=True), mode(train=False), random_seed(draw), step)
        if tag == "gradient":
            steps = backward_steps(values, draw.normal(*x.shape), x)
        cases.append(Case("EncoderBlock", (d_model, n_heads, d_ff, *extra), kwargs, tag, device, steps=steps))

    ask("post")
    ask("pre", 0.0, "relu", True, device=draw.accelerator)
    ask("mask", mask="padding")
    ask("mask", norm_first=True, mask="rows")
    ask("activation", activation="gelu", norm_first=True)
    ask("eval", share(draw))
    ask("eval", dropout=share(draw), norm_first=True)
    ask("gradient")
    ask("gradient", norm_first=True)
    _, _, d_model, n_heads, d_ff = _block_sizes(draw)
    cases += names_cases("EncoderBlock", d_model, n_heads, d_ff)
    for norm_first in (False, True):
        cases.append(_block_in_training(draw, norm_first))
    return cases


def _block_in_training(draw: Draw, norm_first: bool) -> Case:
    """Both sublayers give their last bias, whatever comes in, each in features of its own: dropout inside is free."""
    d_model, n_heads, d_ff = 24, 2, draw.integer(5, 9)
    values = random_state(draw, _block_shapes(d_model, d_ff))
    order = torch.tensor(draw.sample(range(d_model), d_model))
    for number, layer in enumerate(("attention.output", "feed_forward.contract")):
        values[f"{layer}.weight"] = torch.zeros_like(values[f"{layer}.weight"])
        bias = torch.zeros(d_model)
        bias[order[8 * number : 8 * number + 8]] = away_from_zero(draw.normal(8))
        values[f"{layer}.bias"] = bias
    for norm in ("attention_norm", "feed_forward_norm"):
        values |= {f"{norm}.weight": torch.ones(d_model), f"{norm}.bias": torch.zeros(d_model)}
    x = draw.normal(3, 40, d_model)
    return Case(
        "EncoderBlock",
        (d_model, n_heads, d_ff),
        {"dropout": share(draw), "norm_first": norm_first},
        "train",
        steps=(load(values, by_shape=True), mode(train=True), random_seed(draw), forward(x)),
    )


def _block_dropped(case: Case, y: Tensor) -> tuple[bool | None, float]:
    values, share = case.steps[0].args[0], float(case.kwargs["dropout"])
    parts = [values["attention.output.bias"], values["feed_forward.contract.bias"]]
    return compare.dropped_before_addition(y, case.steps[-1].args[0], parts, share), share


_block_values = values_within(BLOCK_TOLERANCE)

ENCODER_BLOCK = Exercise(
    id="encoder-block",
    lesson=LESSON,
    functions=("EncoderBlock",),
    reference={"EncoderBlock": reference.EncoderBlock},
    cases=_block_cases,
    criteria=(
        names_criterion(0.5),
        Criterion("post", Text(en="norm after each addition", zh="先相加、后归一化"), 0.75, _block_values, ("post",)),
        Criterion("pre", Text(en="norm before each sublayer", zh="先归一化、后进子层"), 0.75, _block_values, ("pre",)),
        Criterion("mask", Text(en="mask", zh="掩码"), 0.5, _block_values, ("mask",)),
        Criterion("activation", Text(en="activation", zh="激活函数"), 0.25, _block_values, ("activation",)),
        dropout_criterion(0.5, _block_dropped),
        Criterion("eval", EVALUATION, 0.25, _block_values, ("eval",)),
        gradient_criterion(0.25),
        Criterion("inputs", INPUTS, 0.25, inputs_untouched, ("post", "pre")),
    ),
    mistakes=ENCODER_BLOCK_MISTAKES,
    alternatives=alternatives.ENCODER_BLOCK,
)


# What a block costs


def _cost_cases(draw: Draw) -> list[Case]:
    """Small sizes, and sizes of real models; all differ, and no two formulas then give one number."""
    cases = []
    for low, high in ((3, 9), (11, 29)):
        while True:
            length, n_heads, head_dim, d_ff = draw.sizes(4, low, high)
            d_model = n_heads * head_dim
            if len({length, n_heads, head_dim, d_ff, d_model}) == 5:
                break
        cases.append(Case("block_cost", (length, d_model, n_heads, d_ff)))
    n_heads = draw.integer(6, 12)
    sizes = {"length": draw.integer(200, 500), "d_model": 64 * n_heads, "n_heads": n_heads, "d_ff": 256 * n_heads}
    cases.append(Case("block_cost", kwargs=sizes))
    return cases


BLOCK_COST = Exercise(
    id="block-cost",
    lesson=LESSON,
    functions=("block_cost",),
    reference={"block_cost": reference.block_cost},
    cases=_cost_cases,
    criteria=(
        Criterion("form", Text(en="keys and types", zh="键与类型"), 0.25, compare.same_counts_form),
        Criterion("parameters", Text(en="parameters", zh="参数量"), 0.75, compare.same_count("parameters")),
        Criterion(
            "attention-scores",
            Text(en="attention scores", zh="注意力分数"),
            0.5,
            compare.same_count("attention_scores"),
        ),
        Criterion("multiply-adds", Text(en="multiply-adds", zh="乘加次数"), 0.5, compare.same_count("multiply_adds")),
    ),
    mistakes=BLOCK_COST_MISTAKES,
    alternatives=alternatives.BLOCK_COST,
)

EXERCISES = (FEED_FORWARD, LAYER_NORM, ADD_NORM, ENCODER_BLOCK, BLOCK_COST, QUIZ)
"""The exercises of lesson 04, in the order of the lesson."""
