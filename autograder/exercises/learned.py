"""Lesson 05, learned positions: the exercise. Its known mistakes stand in the module beside this one."""

from __future__ import annotations

import torch

from autograder.exercises import learned_alternatives, learned_mistakes
from autograder.exercises.comparisons import (
    Tolerance,
    both,
    inputs_untouched,
    raises_value_error,
    same_form,
    values_within,
)
from autograder.exercises.declaration import Case, Criterion, Draw, Exercise, backward, forward, load, parameters, state
from autograder.exercises.declaration import to as moved
from autograder.exercises.rotary_comparisons import gradients_within, same_state
from autograder.reference.learned import LearnedPosition
from autograder.results import Text

LESSON = "05-learned-and-rotary-encodings"

SUM_TOLERANCE = Tolerance(
    1e-5,
    "one float32 addition of numbers below 10 rounds by 1e-6 at most; the nearest mistake differs by 0.2",
)
SUM_IN_ANY_DTYPE = Tolerance(
    lambda case, expected: 1e-5 + torch.finfo(_dtype(case)).eps * expected.abs(),
    "answer and reference each round a sum once, half a unit in the last place, and a unit is at most eps times the "
    "value",
)


def _dtype(case: Case) -> torch.dtype:
    """The dtype to which the steps move the module; float32 when they don't."""
    found = next((step.args[0] for step in case.steps if step.do == "to"), torch.float32)
    assert isinstance(found, torch.dtype)
    return found


def _cases(draw: Draw) -> list[Case]:
    def sizes() -> tuple[int, int, int, int]:
        """batch, length, d_model and max_len, all different; the table is longer than two sequences."""
        batch, length, d_model = draw.sizes(3, 2, 9)
        return batch, length, d_model, 2 * length + draw.integer(10, 15)

    def ask(tag: str, batch: int, length: int, d_model: int, max_len: int, *offset: int, device: str = "cpu") -> Case:
        table = {"table.weight": draw.normal(max_len, d_model)}
        call = forward(draw.normal(batch, length, d_model), *offset)
        names = ("max_len", str(max_len)) if sum(offset) + length > max_len else ()
        return Case(
            "LearnedPosition", (max_len, d_model), {}, tag, device, names, steps=(load(table, by_shape=True), call)
        )

    def ask_dtype(dtype: torch.dtype) -> Case:
        batch, length, d_model, max_len = sizes()
        table = {"table.weight": draw.normal(max_len, d_model)}
        x = draw.normal(batch, length, d_model, dtype=dtype)
        steps = (moved(dtype), load(table, by_shape=True), forward(x, offset=draw.integer(1, 9)))
        return Case("LearnedPosition", (max_len, d_model), tag="dtype", steps=steps)

    def ask_gradient(*offset: int) -> Case:
        batch, length, d_model, max_len = sizes()
        call = forward(draw.normal(batch, length, d_model), *offset, track=True)
        table = {"table.weight": draw.normal(max_len, d_model)}
        steps = (load(table, by_shape=True), call, backward(draw.normal(batch, length, d_model)))
        return Case("LearnedPosition", (max_len, d_model), tag="gradient", steps=steps)

    def ends() -> list[Case]:
        """The last rows there are, and one row more; two rows more; the start past the end; the sequence too long."""
        batch, length, d_model, max_len = sizes()
        return [
            ask("errors", batch, length, d_model, max_len, max_len - length),
            ask("errors", batch, length, d_model, max_len, max_len - length + 1),
            ask("errors", batch, length + 1, d_model, max_len, max_len - 1),
            ask("errors", batch, length, d_model, max_len, max_len + draw.integer(1, 9)),
            ask("errors", batch, max_len, d_model, max_len),
            ask("errors", batch, max_len + 1, d_model, max_len),
        ]

    batch, _, d_model, max_len = sizes()
    return [
        *(
            Case("LearnedPosition", tuple(draw.sizes(2, 4, 40)), tag="state", steps=(see(),))
            for see in (state, parameters)
        ),
        ask("values", *sizes()),
        ask("values", *sizes()),
        ask("offset", *sizes(), draw.integer(1, 4)),
        ask("offset", *sizes(), draw.integer(5, 9)),
        ask("offset", batch, 1, d_model, max_len, draw.integer(2, 9)),
        ask("device", *sizes(), draw.integer(1, 4), device=draw.other_device),
        ask("values", *sizes(), device=draw.accelerator),
        *(ask_dtype(dtype) for dtype in (torch.float64, torch.bfloat16)),
        ask_gradient(),
        ask_gradient(draw.integer(3, 9)),
        *ends(),
    ]


LEARNED_POSITION = Exercise(
    id="learned-position",
    lesson=LESSON,
    functions=("LearnedPosition",),
    reference={"LearnedPosition": LearnedPosition},
    cases=_cases,
    criteria=(
        Criterion(
            "state", Text(en="names and shapes of the parameters", zh="参数的名字与形状"), 0.25, same_state, ("state",)
        ),
        Criterion("values", Text(en="values", zh="数值"), 0.75, values_within(SUM_TOLERANCE)),
        Criterion("offset", Text(en="an offset", zh="偏移"), 0.5, values_within(SUM_TOLERANCE), ("offset",)),
        Criterion("errors", Text(en="the end of the table", zh="表的末尾"), 0.5, raises_value_error, ("errors",)),
        Criterion(
            "gradient",
            Text(en="which rows are trained", zh="哪些行会被训练"),
            0.5,
            gradients_within(SUM_TOLERANCE),
            ("gradient",),
        ),
        Criterion(
            "dtype",
            Text(en="dtype and device", zh="dtype 与设备"),
            0.25,
            both(same_form, values_within(SUM_IN_ANY_DTYPE, errors_elsewhere=("device",))),
            ("dtype", "device"),
        ),
        Criterion("input", Text(en="the input stays as it is", zh="输入保持不变"), 0.25, inputs_untouched),
    ),
    mistakes=learned_mistakes.LEARNED_POSITION,
    alternatives=learned_alternatives.LEARNED_POSITION,
)
