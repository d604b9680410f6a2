"""Lesson 05, learned and rotary encodings: its exercises. The known mistakes stand in the modules beside this one."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from autograder.exercises import (
    rotary_alternatives,
    rotary_angles_mistakes,
    rotary_attention_mistakes,
    rotary_conversion_mistakes,
    rotary_rotation_mistakes,
)
from autograder.exercises.comparisons import (
    EXACT,
    Tolerance,
    inputs_untouched,
    raises_value_error,
    same_form,
    values_within,
)
from autograder.exercises.declaration import (
    Answer,
    Case,
    Criterion,
    Draw,
    Exercise,
    Mistake,
    Step,
    backward,
    forward,
    load,
    parameters,
    state,
)
from autograder.exercises.declaration import to as moved
from autograder.exercises.learned import LEARNED_POSITION, LESSON
from autograder.exercises.rotary_comparisons import gradients_within, same_state
from autograder.exercises.rotary_quiz import QUIZ
from autograder.reference import rotary
from autograder.results import Text

FORM = Text(en="shape, dtype and device", zh="形状、dtype 与设备")
VALUES = Text(en="values", zh="数值")
BASE = Text(en="another base", zh="换一个 base")
FAR = Text(en="positions past 4096", zh="4096 之后的位置")
INPUT = Text(en="the input stays as it is", zh="输入保持不变")
GRADIENT = Text(en="gradient", zh="梯度")
HALF = Text(en="values in half precision", zh="半精度下的数值")


def _angle_error(case: Case, expected: Tensor) -> Tensor:
    """What the contract allows at each position; where a known mistake has lost the positions' axes, at the largest."""
    positions: Tensor = case.args[0].double()
    known = expected.shape[:-1] == positions.shape
    return 1e-5 + 6e-7 * (positions.unsqueeze(-1) if known else positions.max())


ANGLE_TOLERANCE = Tolerance(
    _angle_error,
    "the contract: angles may be computed in float32, whose rounding moves an angle by up to 6e-7 of the position; the "
    "nearest mistake, float16, moves some angle of a case by 4e-3 at least",
)
ANGLE_RECOGNISED = Tolerance(
    lambda case, expected: _angle_error(case, expected) + 1e-4 * expected.abs(),
    "for naming a mistake only: angles that wrongly grow reach 1e7, where float32 rounds by 1",
)
ROTATION_TOLERANCE = Tolerance(
    1e-5,
    "two products of numbers below 6 and their sum in float32 round by 2e-6 at most, and the angles are given; the "
    "mistakes differ by more than 0.1",
)
HALF_TOLERANCE = Tolerance(
    lambda case, expected: 1e-5 + torch.finfo(case.args[0].dtype).eps * expected.abs(),
    "answer and reference are each rounded once to the dtype, half a unit in the last place each, and a unit is at "
    "most eps times the value; with sums rounded on the way, results near zero are off by eps times the terms",
)


def _scattered(draw: Draw, low: int, high: int, count: int) -> Tensor:
    """Positions `(count,)` out of order and with gaps."""
    while True:
        found = draw.sample(range(low, high), count)
        if found != sorted(found) and max(found) - min(found) >= count:
            return torch.tensor(found)


def _values(name: str, title: Text, points: float, *tags: str) -> Criterion:
    return Criterion(name, title, points, values_within(ANGLE_TOLERANCE), tags, alike=values_within(ANGLE_RECOGNISED))


def _angle_cases(draw: Draw) -> list[Case]:
    def ask(tag: str, positions: Tensor, head_dim: int, *base: float, device: str = "cpu", **kwargs: float) -> Case:
        return Case("rotary_angles", (positions, head_dim, *base), kwargs, tag, device)

    def batch(low: int, high: int) -> Tensor:
        return torch.stack([_scattered(draw, low, high, 5) for _ in range(draw.integer(2, 3))])

    odd = [2 * draw.integer(1, 4) + 1, 2 * draw.integer(5, 30) + 1]
    few = torch.arange(draw.integer(3, 5))
    return [
        ask("values", torch.arange(draw.integer(3, 7)), draw.even(8, 12)),
        ask("values", _scattered(draw, 1, 60, 7), draw.even(16, 24)),
        ask("values", torch.tensor([draw.integer(20, 90)]), draw.even(8, 12)),
        ask("far", _scattered(draw, 4097, 20_000, 5), draw.even(8, 12)),
        ask("far", draw.integer(4097, 9000) + torch.arange(9), draw.even(4, 6)),
        ask("batch", batch(1, 90), draw.even(8, 12)),
        ask("batch", batch(1, 90)[:, None], draw.even(6, 10)),
        ask("base", _scattered(draw, 1, 60, 4), draw.even(6, 12), round(draw.uniform(50.0, 500.0), 1)),
        ask("base", _scattered(draw, 1, 60, 4), draw.even(14, 20), base=float(draw.integer(20_000, 900_000))),
        ask("device", _scattered(draw, 1, 60, 5), draw.even(8, 12), device=draw.other_device),
        ask("values", _scattered(draw, 1, 60, 5), draw.even(8, 12), device=draw.accelerator),
        *(Case("rotary_angles", (few, d), tag="errors", error_names=("head_dim", str(d))) for d in odd),
        Case("rotary_angles", (few, 2), tag="errors"),
    ]


ROTARY_ANGLES = Exercise(
    id="rotary-angles",
    lesson=LESSON,
    functions=("rotary_angles",),
    reference={"rotary_angles": rotary.rotary_angles},
    cases=_angle_cases,
    criteria=(
        Criterion("form", FORM, 0.5, same_form, ("values", "far", "batch", "base", "device")),
        _values("values", VALUES, 0.5, "values"),
        _values("far", FAR, 0.25, "far"),
        _values("batch", Text(en="positions for each sequence", zh="每个序列各自的位置"), 0.25, "batch"),
        _values("base", BASE, 0.25, "base"),
        Criterion("errors", Text(en="an odd head_dim", zh="奇数的 head_dim"), 0.25, raises_value_error, ("errors",)),
    ),
    mistakes=rotary_angles_mistakes.ROTARY_ANGLES,
    alternatives=rotary_alternatives.ROTARY_ANGLES,
)


def _rotation_cases(function: str, draw: Draw) -> list[Case]:
    def angles(*shape: int) -> Tensor:
        """Angles as they come for positions up to 5000, not too near to full turns."""
        return (draw.normal(*shape).abs() + 0.3) * draw.integer(1, 900)

    def sizes() -> tuple[int, int, int, int]:
        """batch, heads, length and head_dim, all different; neither half the head_dim nor twice another."""
        batch, heads = draw.sizes(2, 2, 3)
        return batch, heads, draw.integer(8, 9), draw.even(10, 14)

    def ask(tag: str, x: Tensor, turn: Tensor, device: str = "cpu", **fields: object) -> Case:
        return Case(function, (x, turn), tag=tag, device=device, **fields)  # type: ignore[arg-type]

    def heads(tag: str, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Case:
        b, h, n, d = sizes()
        return ask(tag, draw.normal(b, h, n, d, dtype=dtype), angles(n, d // 2), device)

    b, h, n, d = sizes()
    return [
        ask("values", draw.normal(n, d), draw.normal(n, d // 2)),
        heads("values"),
        heads("values", device=draw.accelerator),
        heads("device", device=draw.other_device),
        ask("broadcast", draw.normal(b, h, n, d), angles(b, 1, n, d // 2)),
        ask("broadcast", draw.normal(b, h, n, d), angles(1, d // 2)),
        ask("broadcast", draw.normal(b, h, 1, d), angles(b, 1, 1, d // 2)),
        *(heads("dtype", dtype) for dtype in (torch.float64, torch.bfloat16, torch.float16)),
        ask("gradient", draw.normal(b, n, d), angles(n, d // 2), track=True, steps=(backward(draw.normal(b, n, d)),)),
    ]


def _rotation(
    function: str,
    reference: Answer,
    points: Mapping[str, float],
    mistakes: tuple[Mistake, ...],
    alternatives: Mapping[str, Mapping[str, Answer]],
) -> Exercise:
    right = values_within(ROTATION_TOLERANCE)
    return Exercise(
        id=function.replace("_", "-"),
        lesson=LESSON,
        functions=(function,),
        reference={function: reference},
        cases=lambda draw: _rotation_cases(function, draw),
        criteria=(
            Criterion("form", FORM, points["form"], same_form, ("values", "broadcast", "dtype", "device")),
            Criterion("values", VALUES, points["values"], right),
            Criterion(
                "broadcast",
                Text(en="angles to broadcast", zh="需要广播的角度"),
                points["broadcast"],
                right,
                ("broadcast",),
            ),
            Criterion("half-precision", HALF, points["half"], values_within(HALF_TOLERANCE), ("dtype",)),
            Criterion("gradient", GRADIENT, points["gradient"], gradients_within(ROTATION_TOLERANCE), ("gradient",)),
            Criterion("input", INPUT, points["input"], inputs_untouched, ("values", "broadcast")),
        ),
        mistakes=mistakes,
        alternatives=alternatives,
    )


ROTATE_ADJACENT = _rotation(
    "rotate_adjacent",
    rotary.rotate_adjacent,
    {"form": 0.5, "values": 1.0, "broadcast": 0.5, "half": 0.5, "gradient": 0.25, "input": 0.25},
    rotary_rotation_mistakes.ROTATE_ADJACENT,
    rotary_alternatives.ROTATE_ADJACENT,
)
ROTATE_HALVES = _rotation(
    "rotate_halves",
    rotary.rotate_halves,
    {"form": 0.25, "values": 0.75, "broadcast": 0.25, "half": 0.25, "gradient": 0.25, "input": 0.25},
    rotary_rotation_mistakes.ROTATE_HALVES,
    rotary_alternatives.ROTATE_HALVES,
)


def _conversion_cases(draw: Draw) -> list[Case]:
    def ask(tag: str, n_heads: int, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Case:
        """Heads of width 6 to 10. They could share d_model evenly, too: as heads of another width."""
        head_dim = draw.even(6, 10)
        d_model = n_heads * (head_dim + 2 * draw.integer(1, 3))
        return Case(
            "adjacent_to_halves", (draw.normal(n_heads * head_dim, d_model, dtype=dtype), n_heads), {}, tag, device
        )

    return [
        ask("values", draw.integer(3, 5)),
        ask("values", 2),
        ask("one", 1),
        ask("dtype", draw.integer(3, 4), dtype=torch.float64),
        ask("dtype", draw.integer(3, 4), dtype=torch.bfloat16),
        ask("device", draw.integer(3, 4), device=draw.other_device),
        ask("values", draw.integer(3, 4), device=draw.accelerator),
    ]


ADJACENT_TO_HALVES = Exercise(
    id="adjacent-to-halves",
    lesson=LESSON,
    functions=("adjacent_to_halves",),
    reference={"adjacent_to_halves": rotary.adjacent_to_halves},
    cases=_conversion_cases,
    criteria=(
        Criterion("form", FORM, 0.25, same_form, ("values", "one", "dtype", "device")),
        Criterion(
            "values", Text(en="the order of the rows", zh="行的次序"), 1.0, values_within(EXACT), ("values", "dtype")
        ),
        Criterion("one-head", Text(en="a single head", zh="只有一个 head"), 0.5, values_within(EXACT), ("one",)),
        Criterion("input", INPUT, 0.25, inputs_untouched, ("values", "one")),
    ),
    mistakes=rotary_conversion_mistakes.ADJACENT_TO_HALVES,
    alternatives=rotary_alternatives.ADJACENT_TO_HALVES,
)


def _attention_error(case: Case, expected: Tensor) -> float:
    """Grows with the largest position in the last call."""
    call = next(step for step in reversed(case.steps) if step.do == "forward")
    given = [value for value in (*call.args, *call.kwargs.values()) if isinstance(value, Tensor)]
    largest = max((int(value.max()) for value in given if value.dtype == torch.int64), default=10)
    return 1e-4 + 5 * (1e-5 + 6e-7 * largest)


ATTENTION_TOLERANCE = Tolerance(
    _attention_error,
    "four float32 projections of at most 24 terms and a softmax stay within 1e-4; angles may be off by 1e-5 + 6e-7 × "
    "position (the contract), and a score moves with its angles by at most a few times as much; the mistakes differ by "
    "more than 0.1",
)
HALF_ATTENTION_TOLERANCE = Tolerance(
    0.1,
    "bfloat16 projections, scores and averages, each rounded to 8 bits, in any order: 0.04 at worst over 60 seeds; "
    "rounded positions or angles turn pairs by whole radians and move results by more than 1",
)


GRADIENT_TOLERANCE = Tolerance(
    2e-3,
    "gradients sum over at most 27 positions and the projections behind, with angles to 40: 1e-4 at worst in float32; "
    "the mistakes differ by more than 0.1",
)


def _attention_cases(draw: Draw) -> list[Case]:
    def build(
        tag: str,
        sizes: tuple[int, int, int, int],
        *call: object,
        base: tuple[float, ...] = (),
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
        with_gradient: bool = False,
        **kwargs: object,
    ) -> Case:
        batch, length, n_heads, d_model = sizes
        layers = {
            f"{name}.{part}": draw.normal(*shape) * size
            for name, gain in (("query", 1.5), ("key", 1.5), ("value", 1.0), ("output", 1.0))
            for part, shape, size in (("weight", (d_model, d_model), gain / d_model**0.5), ("bias", (d_model,), 0.3))
        }
        x = draw.normal(batch, length, d_model, dtype=dtype)
        steps: list[Step] = [load(layers), forward(x, *call, track=with_gradient, **kwargs)]
        if dtype != torch.float32:
            steps.insert(0, moved(dtype))
        if with_gradient:
            steps.append(backward(draw.normal(batch, length, d_model)))
        return Case("RotaryAttention", (d_model, n_heads, *base), {}, tag, device, steps=tuple(steps))

    def sizes() -> tuple[int, int, int, int]:
        """batch, length, n_heads and d_model; these and head_dim are all different."""
        n_heads, batch = draw.sizes(2, 2, 3)
        return batch, draw.sample((7, 9), 1)[0], n_heads, n_heads * draw.sample((4, 6), 1)[0]

    def positions(size: tuple[int, int, int, int], low: int, high: int) -> Tensor:
        return _scattered(draw, low, high, size[1])

    def for_each(size: tuple[int, int, int, int], low: int = 0, high: int = 40) -> Tensor:
        return torch.stack([positions(size, low, high) for _ in range(size[0])])

    a, b, c, d, e, f, g, h, i, j, m = (sizes() for _ in range(11))
    k = (*a[:3], 8 * a[2])  # wide enough heads for a rounded angle to differ from the angle of a rounded position
    _, _, n_heads, d_model = a
    return [
        *(Case("RotaryAttention", (d_model, n_heads), tag="state", steps=(see(),)) for see in (state, parameters)),
        build("values", a),
        build("values", b, device=draw.accelerator),
        build("positions", c, positions(c, 0, 40)),
        build("positions", d, positions=positions(d, 4097, 4300)),
        build("batch", e, for_each(e)),
        build("batch", f, positions=for_each(f, 4097, 4200)),
        build("mask", g, mask=torch.ones(g[1], g[1], dtype=torch.bool).tril()),
        build("mask", h, positions(h, 0, 40), draw.mask(h[0], 1, 1, h[1])),
        build("base", i, positions(i, 0, 40), base=(round(draw.uniform(20.0, 90.0), 1),)),
        build("dtype", j, positions(j, 0, 40), dtype=torch.float64),
        build("half", k, positions(k, 257, 1500), dtype=torch.bfloat16),
        build("half", k, for_each(k, 257, 1500), dtype=torch.bfloat16),
        build("device", k, device=draw.other_device),
        build("gradient", m, for_each(m), with_gradient=True),
    ]


_attends = values_within(ATTENTION_TOLERANCE)

ROTARY_ATTENTION = Exercise(
    id="rotary-attention",
    lesson=LESSON,
    functions=("RotaryAttention",),
    reference={"RotaryAttention": rotary.RotaryAttention},
    cases=_attention_cases,
    criteria=(
        Criterion(
            "state", Text(en="names and shapes of the layers", zh="各层的名字与形状"), 0.25, same_state, ("state",)
        ),
        Criterion("form", FORM, 0.25, same_form, ("values", "dtype", "half", "device")),
        Criterion("values", VALUES, 1.0, _attends, ("values", "dtype")),
        Criterion("positions", Text(en="given positions", zh="给定的位置"), 0.75, _attends, ("positions",)),
        Criterion("batch", Text(en="positions for each sequence", zh="每个序列各自的位置"), 0.5, _attends, ("batch",)),
        Criterion("mask", Text(en="mask", zh="掩码"), 0.5, _attends, ("mask",)),
        Criterion("base", BASE, 0.25, _attends, ("base",)),
        Criterion("half-precision", HALF, 0.25, values_within(HALF_ATTENTION_TOLERANCE), ("half",)),
        Criterion("gradient", GRADIENT, 0.25, gradients_within(GRADIENT_TOLERANCE), ("gradient",)),
    ),
    mistakes=rotary_attention_mistakes.ROTARY_ATTENTION,
    alternatives=rotary_alternatives.ROTARY_ATTENTION,
)

EXERCISES = (
    LEARNED_POSITION,
    ROTARY_ANGLES,
    ROTATE_ADJACENT,
    ROTATE_HALVES,
    ADJACENT_TO_HALVES,
    ROTARY_ATTENTION,
    QUIZ,
)
