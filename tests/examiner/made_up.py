"""A small exercise for tests of the examiner: two functions, five criteria, four known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from autograder.exercises.comparisons import EXACT, inputs_untouched, raises_value_error, same_form, values_within
from autograder.exercises.declaration import Case, Criterion, Draw, Exercise, Mistake
from autograder.results import Text


def double(x: Tensor) -> Tensor:
    return 2 * x


def shift(x: Tensor, by: int) -> Tensor:
    if by < 0:
        raise ValueError(f"by must not be negative, got by={by}")
    return x + by


def shift_backwards(x: Tensor, by: int) -> Tensor:
    if by < 0:
        raise ValueError(f"by must not be negative, got by={by}")
    return x - by


def shift_unchecked(x: Tensor, by: int) -> Tensor:
    return x + by


def shift_backwards_unchecked(x: Tensor, by: int) -> Tensor:
    return x - by


def cases(draw: Draw) -> list[Case]:
    rows, columns = draw.sizes(2)
    return [
        Case("double", (draw.normal(rows, columns),)),
        Case("double", (draw.normal(columns),)),
        Case("shift", (draw.normal(rows), draw.integer(1, 9)), tag="shift"),
        Case("shift", (draw.normal(columns),), {"by": draw.integer(10, 99)}, tag="shift"),
        Case("shift", (draw.normal(2), -3), tag="errors", error_names=("by", "-3")),
    ]


def text(word: str) -> Text:
    return Text(en=word, zh=f"{word}（中文）")


MADE_UP = Exercise(
    id="made-up",
    lesson="01-tiny",
    functions=("double", "shift"),
    reference={"double": double, "shift": shift},
    cases=cases,
    criteria=(
        Criterion("form", text("the form"), 0.5, same_form),
        Criterion("values", text("the values"), 1.5, values_within(EXACT)),
        Criterion("shift", text("the shift"), 2.0, values_within(EXACT), tags=("shift",)),
        Criterion("errors", text("bad arguments"), 1.0, raises_value_error, tags=("errors",)),
        Criterion("inputs", text("untouched inputs"), 0.5, inputs_untouched, tags=("values", "shift")),
    ),
    mistakes=(
        Mistake("tripled", text("You tripled."), {"double": lambda x: 3 * x}),
        Mistake("backwards", text("You shifted backwards."), {"shift": shift_backwards}),
        Mistake("unchecked", text("You did not check by."), {"shift": shift_unchecked}),
        Mistake("in-place", text("You wrote into the input."), {"double": lambda x: x.mul_(2)}),
    ),
)

RIGHT: tuple[Callable[..., Any], ...] = (double, shift)
