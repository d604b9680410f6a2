"""Lesson 04, the parts of the block: feed-forward and layer norm, and what all exercises of the lesson share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from autograder.exercises import block_alternatives as alternatives
from autograder.exercises import block_comparisons as compare
from autograder.exercises.comparisons import (
    Tolerance,
    inputs_untouched,
    raises_value_error,
    same_form,
    same_shape,
    values_within,
)
from autograder.exercises.declaration import (
    Case,
    Criterion,
    Draw,
    Exercise,
    Observation,
    Raised,
    Rule,
    Step,
    backward,
    forward,
    load,
    mode,
    parameters,
    seed,
    state,
    to,
)
from autograder.exercises.feed_forward_mistakes import FEED_FORWARD_MISTAKES
from autograder.exercises.layer_norm_mistakes import LAYER_NORM_MISTAKES
from autograder.reference import block as reference
from autograder.results import Text

LESSON = "04-feed-forward-and-add-norm"

NAMES = Text(en="names and shapes of the parameters", zh="参数的名字与形状")
VALUES = Text(en="values", zh="数值")
EPS = Text(en="the argument eps", zh="参数 eps")
DTYPE = Text(en="dtype and device", zh="dtype 与设备")
GRADIENT = Text(en="gradients", zh="梯度")
INPUTS = Text(en="inputs left as they were", zh="不改动输入")
TRAINING = Text(en="dropout in train mode", zh="训练模式下的 dropout")
EVALUATION = Text(en="dropout in eval mode", zh="评估模式下的 dropout")

FEED_FORWARD_TOLERANCE = Tolerance(
    3e-5,
    "float32 sums of at most 9 products of size 4, then again: 5e-6 at worst in any order; GELU's tanh form, the "
    "nearest mistake, is off by 4e-4 at the inputs of the cases times weights of at least 0.3, all of one sign: "
    "above 3e-4",
)
NORM_TOLERANCE = Tolerance(
    1e-3,
    "in float32 the mean of squares minus the squared mean, a right way too, loses 1e-6 of a variance of 10; where "
    "four features happen to lie close together that grows to 3e-4; the nearest mistakes in these cases are off by "
    "1e-2",
)
GRADIENT_TOLERANCE = Tolerance(
    lambda case, expected: 3e-5 * (1 + float(expected.abs().max())),
    "cases are in float64, and an answer may compute in float32 inside: 1e-6 of the largest gradient, more behind a "
    "small variance; a lost path changes some gradient by a tenth or more",
)


def random_state(draw: Draw, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Random parameters: matrices that keep the size of what they multiply, scales near 1, shifts."""
    found = {}
    for name, shape in shapes.items():
        values = draw.normal(*shape)
        if len(shape) == 2:
            found[name] = values / shape[1] ** 0.5
        else:
            found[name] = 0.6 + 0.5 * values.abs() if name.endswith("weight") else 0.7 * values
    return found


def away_from_zero(values: Tensor, least: float = 0.5) -> Tensor:
    return torch.where(values < 0, -1.0, 1.0) * (least + values.abs())


def share(draw: Draw) -> float:
    return round(draw.uniform(0.2, 0.35), 2)


def random_seed(draw: Draw) -> Step:
    return seed(draw.integer(0, 2**31))


def names_cases(function: str, *args: Any) -> list[Case]:
    """The state_dict and the parameters: a buffer is in the one and not in the other."""
    return [Case(function, args, tag="names", steps=(observe(),)) for observe in (state, parameters)]


def form_cases(function: str, *args: Any, inputs: tuple[Tensor, ...], device: str) -> list[Case]:
    """In float64 and bfloat16, and on another device: only form is looked at."""
    found = []
    for dtype in (torch.float64, torch.bfloat16):
        cast = tuple(x.to(dtype) for x in inputs)
        found.append(Case(function, args, tag="dtype", steps=(to(dtype), forward(*cast))))
    return [*found, Case(function, args, tag="dtype", device=device, steps=(forward(*inputs),))]


def backward_steps(values: Mapping[str, Tensor], weights: Tensor, *inputs: Tensor) -> tuple[Step, ...]:
    """Everything in float64: no ReLU then changes sides through rounding."""
    doubled = tuple(x.double() for x in inputs)
    return (load(values, by_shape=True), to(torch.float64), forward(*doubled, track=True), backward(weights.double()))


def names_criterion(points: float) -> Criterion:
    return Criterion("names", NAMES, points, compare.same_names, ("names",))


def gradient_criterion(points: float) -> Criterion:
    return Criterion("gradient", GRADIENT, points, compare.common_values_within(GRADIENT_TOLERANCE), ("gradient",))


def dropout_criterion(points: float, found: Callable[[Case, Tensor], tuple[bool | None, float]]) -> Criterion:
    """Dropout in train mode, by its properties, so that every right way of drawing counts.

    A known mistake is recognised by the very values that the same seed gives.
    """

    def compared(case: Case, expected: Observation, observed: Observation) -> Text | None:
        if isinstance(observed, Raised):
            return same_shape(case, expected, observed)
        if difference := same_shape(case, expected, observed):
            return difference
        dropped, share = found(case, observed.value)
        return None if dropped else compare.dropout_text(case, dropped, share)

    return Criterion("train", TRAINING, points, compared, ("train",), alike=values_within(NORM_TOLERANCE))


# Feed-forward


def _feed_forward_state(draw: Draw, d_model: int, d_ff: int) -> dict[str, Tensor]:
    return random_state(
        draw,
        {
            "expand.weight": (d_ff, d_model),
            "expand.bias": (d_ff,),
            "contract.weight": (d_model, d_ff),
            "contract.bias": (d_model,),
        },
    )


def telling_gelu(draw: Draw, values: dict[str, Tensor], prefix: str = "") -> dict[str, Tensor]:
    """Widened features near 2.7 and -2.7, where GELU's two forms differ most, added up with positive weights."""
    bias = values[f"{prefix}expand.bias"]
    near = 2.7 + 0.1 * draw.normal(*bias.shape).clamp(-2, 2)
    return values | {
        f"{prefix}expand.weight": 0.05 * values[f"{prefix}expand.weight"],
        f"{prefix}expand.bias": torch.where(torch.arange(len(bias)) % 2 == 0, near, -near),
        f"{prefix}contract.weight": 0.3 + values[f"{prefix}contract.weight"].abs(),
    }


def _one_by_one(d_model: int, d_ff: int) -> dict[str, Tensor]:
    """With an input of ones every widened feature is 1; each comes out alone, then their sum in column d_ff."""
    contract = torch.zeros(d_model, d_ff)
    contract[:d_ff] = torch.eye(d_ff)
    contract[d_ff] = 1.0
    return {
        "expand.weight": torch.full((d_ff, d_model), 1 / d_model),
        "expand.bias": torch.zeros(d_ff),
        "contract.weight": contract,
        "contract.bias": torch.zeros(d_model),
    }


UNKNOWN_ACTIVATIONS = ("tanh", "sigmoid", "swish", "elu", "softplus", "silu")


def _feed_forward_cases(draw: Draw) -> list[Case]:
    cases = []

    def ask(tag: str, *extra: Any, device: str = "cpu", **kwargs: Any) -> None:
        batch, length, d_model, d_ff = draw.sizes(4, 3, 9)
        values = _feed_forward_state(draw, d_model, d_ff)
        if tag == "gelu":
            values = telling_gelu(draw, values)
        x = draw.normal(batch, length, d_model)
        steps: tuple[Step, ...] = (load(values, by_shape=True), forward(x))
        if tag == "eval":
            steps = (load(values, by_shape=True), mode(train=False), random_seed(draw), forward(x))
        if tag == "gradient":
            steps = backward_steps(values, draw.normal(batch, length, d_model), x)
        cases.append(Case("FeedForward", (d_model, d_ff, *extra), kwargs, tag, device, steps=steps))

    ask("relu")
    ask("relu", "relu", device=draw.accelerator)
    ask("gelu", "gelu")
    ask("gelu", activation="gelu", dropout=0.0)
    ask("eval", "relu", share(draw))
    ask("eval", dropout=share(draw))
    ask("gradient")

    batch, length, d_ff, d_model = *draw.sizes(2, 3, 9), draw.integer(10, 11), draw.integer(13, 15)
    cases += names_cases("FeedForward", d_model, d_ff)
    x = draw.normal(batch, length, d_model)
    cases += form_cases("FeedForward", d_model, d_ff, inputs=(x,), device=draw.other_device)
    steps = (load(_one_by_one(d_model, d_ff), by_shape=True), mode(train=True))
    ones = torch.ones(3, 40, d_model)
    for kwargs in ({"dropout": share(draw)}, {"activation": "gelu", "dropout": share(draw)}):
        cases.append(
            Case("FeedForward", (d_model, d_ff), kwargs, "train", steps=(*steps, random_seed(draw), forward(ones)))
        )

    first, second = (UNKNOWN_ACTIVATIONS[i] for i in draw.sample(range(len(UNKNOWN_ACTIVATIONS)), 2))
    cases += [
        Case("FeedForward", (d_model, d_ff, first), tag="errors", error_names=("activation", first)),
        Case(
            "FeedForward",
            (d_model, d_ff),
            {"activation": second},
            "errors",
            error_names=("activation", second),
            steps=(forward(x),),
        ),
        Case("FeedForward", (d_model, d_ff), {"activation": "gelu"}, "errors", steps=(forward(x),)),
    ]
    return cases


def _feed_forward_dropped(case: Case, y: Tensor) -> tuple[bool | None, float]:
    share = float(case.kwargs["dropout"])
    return compare.dropped_hidden(y, case.args[1], share), share


_feed_forward_values = values_within(FEED_FORWARD_TOLERANCE)

FEED_FORWARD = Exercise(
    id="feed-forward",
    lesson=LESSON,
    functions=("FeedForward",),
    reference={"FeedForward": reference.FeedForward},
    cases=_feed_forward_cases,
    criteria=(
        names_criterion(0.25),
        Criterion("relu", Text(en="values with ReLU", zh="使用 ReLU 时的数值"), 0.5, _feed_forward_values, ("relu",)),
        Criterion("gelu", Text(en="values with GELU", zh="使用 GELU 时的数值"), 0.5, _feed_forward_values, ("gelu",)),
        Criterion(
            "errors",
            Text(en="unknown activations", zh="未知的激活函数"),
            0.5,
            raises_value_error,
            ("errors",),
            alike=compare.refused_alike,
        ),
        dropout_criterion(0.5, _feed_forward_dropped),
        Criterion("eval", EVALUATION, 0.25, _feed_forward_values, ("eval",)),
        gradient_criterion(0.25),
        Criterion("dtype", DTYPE, 0.25, same_form, ("dtype",)),
    ),
    mistakes=FEED_FORWARD_MISTAKES,
    alternatives=alternatives.FEED_FORWARD,
)


# Layer norm

WITHOUT_READY_MADE = Rule(
    slug="ready-made-norm",
    message=Text(
        en="Your LayerNorm lets one of torch's own normalisation layers do the work. The task is to write the formula "
        "yourself, from mean, variance and root; after that you may use torch's wherever you like.",
        zh="你的 LayerNorm 用了 torch 现成的归一化层。题目要求自己用均值、方差和开方写出公式；做完这道题，其他地方都"
        "可以用现成的。",
    ),
    names=(
        *(
            f"torch.nn.{name}"
            for name in (
                *("LayerNorm", "RMSNorm", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"),
                *("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LazyBatchNorm1d"),
                *("LazyBatchNorm2d", "LazyBatchNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d"),
                *("LazyInstanceNorm3d", "TransformerEncoderLayer", "TransformerDecoderLayer"),
            )
        ),
        *(f"torch.nn.functional.{name}_norm" for name in ("layer", "rms", "group", "instance", "batch")),
        *(f"torch.native_{name}_norm" for name in ("layer", "group", "batch")),
        *(f"torch.{name}" for name in ("batch_norm_stats", "cudnn_batch_norm", "_fused_rms_norm")),
    ),
    operators=(
        *(f"aten::native_{name}_norm" for name in ("layer", "group", "batch")),
        *("aten::layer_norm", "aten::rms_norm", "aten::_fused_rms_norm", "aten::group_norm", "aten::batch_norm"),
        *("aten::instance_norm", "aten::_native_batch_norm_legit", "aten::_batch_norm_with_update"),
        *("aten::cudnn_batch_norm", "aten::batch_norm_stats"),
    ),
)
"""Group, instance, batch and RMS norm stand here because each is layer norm after one reshape, transpose or shift."""


def norm_inputs(draw: Draw) -> tuple[Tensor, ...]:
    """Two tensors `(batch, length, d_model)` with few features: the variance's two definitions then differ most."""
    batch, length, d_model = draw.sizes(3, 4, 8)
    shift = away_from_zero(draw.normal(1), 1.0)
    return 1.5 * draw.normal(batch, length, d_model) + shift, draw.normal(batch, length, d_model)


def _layer_norm_cases(draw: Draw) -> list[Case]:
    cases = []

    def ask(
        tag: str, x: Tensor, *steps: Step, device: str = "cpu", more: tuple[float, ...] = (), **kwargs: Any
    ) -> None:
        last = steps or (forward(x),)
        cases.append(Case("LayerNorm", (x.shape[-1], *more), kwargs, tag, device, steps=last))

    x, weights = norm_inputs(draw)
    affine = random_state(draw, {"weight": x.shape[-1:], "bias": x.shape[-1:]})
    cases += names_cases("LayerNorm", x.shape[-1])
    ask("start", x, state())
    ask("values", x)
    ask("affine", x, load(affine, by_shape=True), forward(x))
    ask("gradient", x, *backward_steps(affine, weights, x))
    x, _ = norm_inputs(draw)
    ask("values", x, device=draw.accelerator)
    x, _ = norm_inputs(draw)
    affine = random_state(draw, {"weight": x.shape[-1:], "bias": x.shape[-1:]})
    ask("affine", x, load(affine, by_shape=True), forward(x))
    cases += form_cases("LayerNorm", x.shape[-1], inputs=(x,), device=draw.other_device)
    ask("eps", norm_inputs(draw)[0], more=(round(draw.uniform(0.5, 1.5), 2),))
    ask("eps", norm_inputs(draw)[0], eps=round(draw.uniform(2.0, 4.0), 2))

    for leading in ((), draw.sizes(3, 2, 4)):
        x = 1.5 * draw.normal(*leading, draw.integer(5, 8)) + 1.0
        affine = random_state(draw, {"weight": x.shape[-1:], "bias": x.shape[-1:]})
        ask("leading", x, load(affine, by_shape=True), forward(x))

    batch, length, d_model = draw.sizes(3, 4, 8)
    still = away_from_zero(draw.normal(batch, length, d_model), 1.0) * 2e-3
    still[..., 0] *= -1  # no row of one sign only: its features differ
    still[0, 0] = 0.5
    ask("still", still)
    return cases


LAYER_NORM = Exercise(
    id="layer-norm",
    lesson=LESSON,
    functions=("LayerNorm",),
    reference={"LayerNorm": reference.LayerNorm},
    cases=_layer_norm_cases,
    criteria=(
        names_criterion(0.25),
        Criterion(
            "start",
            Text(en="values before training", zh="训练前的初值"),
            0.25,
            compare.common_values_within(Tolerance(0.0, "the first values are whole numbers, set and not computed")),
            ("start",),
        ),
        Criterion("values", VALUES, 0.5, values_within(NORM_TOLERANCE)),
        Criterion(
            "leading",
            Text(en="no leading axis, or three", zh="没有前导轴，或有三个"),
            0.25,
            values_within(NORM_TOLERANCE),
            ("leading",),
        ),
        Criterion(
            "affine",
            Text(en="learned scale and shift", zh="可学习的缩放与平移"),
            0.5,
            values_within(NORM_TOLERANCE),
            ("affine",),
        ),
        Criterion("eps", EPS, 0.25, values_within(NORM_TOLERANCE), ("eps",)),
        Criterion(
            "still",
            Text(en="features that hardly differ", zh="几乎没有差别的特征"),
            0.25,
            values_within(NORM_TOLERANCE),
            ("still",),
        ),
        gradient_criterion(0.25),
        Criterion("dtype", DTYPE, 0.25, same_form, ("dtype",), alike=compare.form_alike),
        Criterion("inputs", INPUTS, 0.25, inputs_untouched, ("values", "affine")),
    ),
    mistakes=LAYER_NORM_MISTAKES,
    alternatives=alternatives.LAYER_NORM,
    rules=(WITHOUT_READY_MADE,),
)
