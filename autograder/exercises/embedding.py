"""Lesson 03, embedding plus position: its exercises. The known mistakes stand in the modules beside this one."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.exercises import (
    embedding_alternatives,
    embedding_cases,
    embedding_input_mistakes,
    embedding_mask_mistakes,
    embedding_position_mistakes,
    embedding_token_mistakes,
)
from autograder.exercises.comparisons import (
    EXACT,
    Tolerance,
    both,
    inputs_untouched,
    raises_value_error,
    same_form,
    values_within,
)
from autograder.exercises.declaration import Case, Criterion, Exercise
from autograder.exercises.embedding_comparisons import (
    errors_by_type,
    input_gradient_within,
    names_alike,
    names_and_shapes,
    same_chances,
    same_zeros,
)
from autograder.exercises.embedding_quiz import QUIZ
from autograder.reference import embedding
from autograder.results import Text

LESSON = "03-embedding-plus-position"

FORM = Text(en="shape and dtype, input untouched", zh="形状、dtype，且不改动输入")
NAMES = Text(en="what the module holds and saves", zh="模块持有和保存的内容")
VALUES = Text(en="values", zh="数值")
OFFSET = Text(en="another offset", zh="换一个 offset")
DTYPE_AND_DEVICE = Text(en="other dtypes and devices", zh="其他 dtype 和设备")

SCALE_TOLERANCE = Tolerance(
    lambda case, expected: 1e-6 * (1 + expected.abs()),
    "one product in float32, rounded twice at most, is off by 1.2e-7 of its size; the wrong scales differ by more than "
    "5 percent",
)

GRADIENT_TOLERANCE = Tolerance(
    1e-6,
    "the gradient of a sum is the weight itself, without any rounding",
)


def _position_error(case: Case, expected: Tensor) -> Tensor:
    """What the contract allows for angles in float32: 1e-5 + 6e-7 × position; then the rounding of one sum."""
    call = [step for step in case.steps if step.do == "forward"][-1]
    offset = call.args[1] if len(call.args) > 1 else call.kwargs.get("offset", 0)
    position = torch.arange(offset, offset + expected.shape[-2], dtype=torch.float64)[:, None]
    return 1e-5 + 6e-7 * position + 1e-6 * expected.abs()


POSITION_TOLERANCE = Tolerance(
    _position_error,
    "the contract: angles may be computed in float32, whose rounding moves an angle by up to 6e-7 of the position; "
    "then one product and one sum in float32. The mistakes move values by more than 1e-2",
)


def _half_error(case: Case, expected: Tensor) -> Tensor:
    call = [step for step in case.steps if step.do == "forward"][-1]
    eps: float = torch.finfo(call.args[0].dtype).eps
    return _position_error(case, expected) + eps * (expected.abs() + 0.5)


HALF_TOLERANCE = Tolerance(
    _half_error,
    "answer and reference each round the encoding once (a quarter of eps at most, because sines are below 1) and the "
    "sum once (half a unit in the last place, and a unit is at most eps times the value)",
)

CHANCE = 0.04
"""Two right runs with other random numbers: 512 rows of 3 × 6 cells at least are 9216 draws, so their shares of dropped
values differ by 0.007 in standard deviation (p = 0.4), a sixth of this. Known mistakes differ in the values themselves,
or by 0.09 and more in a share."""
ALIKE = 0.12
"""Looser, to name a mistake that drops whole vectors: fewer draws scatter more."""
TOKEN_EMBEDDING = Exercise(
    id="token-embedding",
    lesson=LESSON,
    functions=("TokenEmbedding",),
    reference={"TokenEmbedding": embedding.TokenEmbedding},
    cases=embedding_cases.token_embedding,
    criteria=(
        Criterion("form", FORM, 0.25, both(same_form, inputs_untouched)),
        Criterion("names", NAMES, 0.5, names_and_shapes, ("names",), alike=names_alike),
        Criterion(
            "values",
            VALUES,
            1.0,
            values_within(SCALE_TOLERANCE, errors_elsewhere=("device",)),
            ("values", "device"),
        ),
        Criterion("padding", Text(en="the padding row is zero", zh="填充行为零"), 0.5, same_zeros, ("padding",)),
        Criterion(
            "gradient",
            Text(en="gradient, none for padding", zh="梯度（填充行没有）"),
            0.5,
            same_zeros,
            ("gradient",),
        ),
        Criterion("dtype-and-device", DTYPE_AND_DEVICE, 0.25, same_form, ("dtype", "device")),
    ),
    mistakes=embedding_token_mistakes.TOKEN_EMBEDDING,
    alternatives=embedding_alternatives.TOKEN_EMBEDDING,
)


def _placed(name: str, title: Text, points: float, *tags: str) -> Criterion:
    compare = values_within(POSITION_TOLERANCE, errors_elsewhere=("device",))
    return Criterion(name, title, points, compare, tags, alike=errors_by_type(compare))


SINUSOIDAL_POSITION = Exercise(
    id="sinusoidal-position",
    lesson=LESSON,
    functions=("SinusoidalPosition",),
    reference={"SinusoidalPosition": embedding.SinusoidalPosition},
    cases=embedding_cases.sinusoidal_position,
    criteria=(
        Criterion("form", Text(en="shape and dtype", zh="形状与 dtype"), 0.25, same_form, ("values", "offset", "base")),
        _placed("values", VALUES, 0.75, "values", "device"),
        _placed("base", Text(en="another base", zh="换一个 base"), 0.25, "base"),
        _placed("offset", OFFSET, 0.5, "offset"),
        Criterion("names", NAMES, 0.5, names_and_shapes, ("names",), alike=names_alike),
        Criterion(
            "gradient",
            Text(en="gradient passes to the input", zh="梯度传到输入"),
            0.25,
            input_gradient_within(GRADIENT_TOLERANCE),
            ("gradient",),
        ),
        Criterion("dtype", Text(en="in the dtype of x", zh="与 x 的 dtype 相同"), 0.25, same_form, ("dtype",)),
        Criterion(
            "half-precision",
            Text(en="values in other dtypes", zh="其他 dtype 下的数值"),
            0.25,
            values_within(HALF_TOLERANCE),
            ("dtype",),
        ),
        Criterion("device", Text(en="another device", zh="其他设备"), 0.25, same_form, ("device",)),
        Criterion("errors", Text(en="past the end", zh="超出末尾"), 0.5, raises_value_error, ("errors",)),
        Criterion(
            "input",
            Text(en="the input stays as it is", zh="输入保持不变"),
            0.25,
            inputs_untouched,
            ("values", "offset"),
        ),
    ),
    mistakes=embedding_position_mistakes.SINUSOIDAL_POSITION,
    alternatives=embedding_alternatives.SINUSOIDAL_POSITION,
)


def _chances(name: str, title: Text, points: float) -> Criterion:
    return Criterion(name, title, points, same_chances(CHANCE), (name,), alike=same_chances(ALIKE))


TRANSFORMER_INPUT = Exercise(
    id="transformer-input",
    lesson=LESSON,
    functions=("TransformerInput",),
    reference={"TransformerInput": embedding.TransformerInput},
    cases=embedding_cases.transformer_input,
    criteria=(
        _placed("values", VALUES, 0.75, "values", "device"),
        _placed("offset", OFFSET, 0.5, "offset"),
        Criterion("names", NAMES, 0.5, names_and_shapes, ("names",), alike=names_alike),
        Criterion(
            "padding",
            Text(en="the padding row is zero and stays so", zh="填充行为零，并保持为零"),
            0.25,
            same_zeros,
            ("padding", "gradient"),
        ),
        _chances("train", Text(en="dropout in train mode", zh="训练模式下的 dropout"), 0.5),
        _chances("eval", Text(en="eval mode", zh="eval 模式"), 0.25),
        Criterion("dtype-and-device", DTYPE_AND_DEVICE, 0.25, same_form, ("dtype", "device")),
    ),
    mistakes=embedding_input_mistakes.TRANSFORMER_INPUT,
    alternatives=embedding_alternatives.TRANSFORMER_INPUT,
)


PADDING_MASK = Exercise(
    id="padding-mask",
    lesson=LESSON,
    functions=("padding_mask",),
    reference={"padding_mask": embedding.padding_mask},
    cases=embedding_cases.padding_mask,
    criteria=(
        Criterion(
            "form",
            Text(en="shape, dtype and device, input untouched", zh="形状、dtype 与设备，且不改动输入"),
            0.5,
            both(same_form, inputs_untouched),
            ("values", "device"),
        ),
        Criterion("values", VALUES, 0.5, values_within(EXACT, errors_elsewhere=("device",)), ("values", "device")),
    ),
    mistakes=embedding_mask_mistakes.PADDING_MASK,
    alternatives=embedding_alternatives.PADDING_MASK,
)

EXERCISES: tuple[Exercise, ...] = (TOKEN_EMBEDDING, SINUSOIDAL_POSITION, TRANSFORMER_INPUT, PADDING_MASK, QUIZ)
"""In the order of the lesson."""
