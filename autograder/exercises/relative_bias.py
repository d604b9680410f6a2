"""Lesson 06, distances and biases: the exercises on distances, T5 and ALiBi. Known mistakes stand in other modules."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from autograder.exercises import (
    relative_alibi_mistakes,
    relative_bias_alternatives,
    relative_bucket_mistakes,
    relative_distance_mistakes,
    relative_t5_mistakes,
)
from autograder.exercises.comparisons import EXACT, Tolerance, inputs_untouched, same_form, values_within
from autograder.exercises.declaration import Case, Criterion, Draw, Exercise, backward, forward, load, parameters, state
from autograder.exercises.declaration import to as moved
from autograder.exercises.relative_comparisons import form_if_values_can_be_read
from autograder.exercises.rotary_comparisons import gradients_within, same_state
from autograder.reference import relative
from autograder.results import Text

LESSON = "06-relative-encodings"

FORM = Text(en="shape and dtype", zh="形状与 dtype")
FORM_ANYWHERE = Text(en="shape, dtype and device", zh="形状、dtype 与设备")
SQUARE = Text(en="as many queries as keys", zh="查询与键一样多")
CACHE = Text(en="fewer queries than keys", zh="查询比键少")
INPUT = Text(en="the input stays as it is", zh="输入保持不变")
GRADIENT = Text(en="gradient", zh="梯度")


def _fewer(draw: Draw, low: int = 2, high: int = 12) -> tuple[int, int]:
    """query_len and key_len, at least two keys more."""
    query_len = draw.integer(low, high - 2)
    return query_len, draw.integer(query_len + 2, high)


def _distance_cases(draw: Draw) -> list[Case]:
    def ask(tag: str, query_len: int, key_len: int) -> Case:
        return Case("relative_distance", (query_len, key_len), tag=tag)

    several, one = _fewer(draw), draw.integer(5, 12)
    return [
        *(ask("values", n, n) for n in draw.sizes(2, 3, 9)),
        ask("values", 1, 1),
        ask("cache", *several),
        ask("cache", *_fewer(draw, 3, 30)),
        ask("cache", 1, one),
        Case("relative_distance", kwargs={"query_len": 2, "key_len": draw.integer(5, 9)}, tag="cache"),
    ]


RELATIVE_DISTANCE = Exercise(
    id="relative-distance",
    lesson=LESSON,
    functions=("relative_distance",),
    reference={"relative_distance": relative.relative_distance},
    cases=_distance_cases,
    criteria=(
        Criterion("form", FORM, 0.25, same_form, ("values", "cache")),
        Criterion("values", SQUARE, 0.25, values_within(EXACT)),
        Criterion("cache", CACHE, 0.5, values_within(EXACT), ("cache",)),
    ),
    mistakes=relative_distance_mistakes.RELATIVE_DISTANCE,
    alternatives=relative_bias_alternatives.RELATIVE_DISTANCE,
)


def clear_of_edges(steps: int, bidirectional: bool, n_buckets: int, max_distance: int) -> bool:
    """Whether rounding can't move a distance to the bucket beside its own.

    Where a bucket begins exactly at a whole distance, the logarithm comes out a hair below or above in one precision or
    another. Such distances are not asked.
    """
    half = n_buckets // 2 if bidirectional else n_buckets
    exact = half // 2
    if steps <= exact or steps >= max_distance:
        return True
    share = math.log(steps / exact) / math.log(max_distance / exact) * (half - exact)
    return abs(share - round(share)) > 1e-4


def _shuffled(draw: Draw, distances: list[int], *shape: int) -> Tensor:
    return torch.tensor(draw.sample(distances, len(distances))).reshape(shape or (-1,))


def _bucket_cases(draw: Draw) -> list[Case]:
    def ask(tag: str, distance: Tensor, *settings: object, device: str = "cpu", **kwargs: object) -> Case:
        return Case("t5_bucket", (distance, *settings), kwargs, tag, device)

    def both_ways(low: int, high: int, *settings: int | bool) -> list[int]:
        """Distances of both signs, those at the edge of a bucket left out."""
        given = settings or (True, 32, 128)
        clear = [steps for steps in range(low, high) if clear_of_edges(steps, *given)]  # type: ignore[arg-type]
        return sorted({sign * steps for steps in clear for sign in (-1, 1)})

    def far(max_distance: int) -> list[int]:
        return [sign * n for sign in (-1, 1) for n in (max_distance, *draw.sample(range(max_distance + 1, 4000), 5))]

    def with_settings(bidirectional: bool, n_buckets: int, max_distance: int, named: bool = False) -> Case:
        given = (bidirectional, n_buckets, max_distance)
        distances = _shuffled(draw, [*both_ways(0, max_distance + 9, *given), -999, 999])
        if named:
            return ask("settings", distances, n_buckets=n_buckets, max_distance=max_distance)
        return ask("settings", distances, *given)

    one_way = _shuffled(draw, [*both_ways(0, 150, False, 32, 128), -700, 700])
    return [
        ask("near", _shuffled(draw, both_ways(0, 8), 3, 5)),
        ask("near", torch.tensor(-draw.integer(1, 7))),
        ask("shared", _shuffled(draw, both_ways(8, 128))),
        ask("shared", _shuffled(draw, draw.sample(both_ways(20, 128), 24), 2, 3, 4)),
        ask("end", _shuffled(draw, far(128))),
        ask("one-way", one_way, False),
        ask("one-way", _shuffled(draw, draw.sample(both_ways(0, 60, False, 32, 128), 21), 3, 7), bidirectional=False),
        with_settings(True, 2 * draw.sample((5, 7, 9, 11), 1)[0], draw.integer(40, 90)),
        with_settings(True, 4 * draw.sample((3, 4, 5, 6, 9), 1)[0], draw.integer(50, 99), named=True),
        with_settings(False, 2 * draw.integer(3, 9) + 1, draw.integer(30, 90)),
        with_settings(True, 4, draw.integer(5, 30)),
        with_settings(False, 2, draw.integer(5, 30)),
        ask("device", _shuffled(draw, both_ways(0, 20)), device=draw.other_device),
        ask("near", _shuffled(draw, both_ways(0, 8)), device=draw.accelerator),
    ]


_asked = ("near", "shared", "end", "one-way", "settings")

T5_BUCKET = Exercise(
    id="t5-bucket",
    lesson=LESSON,
    functions=("t5_bucket",),
    reference={"t5_bucket": relative.t5_bucket},
    cases=_bucket_cases,
    criteria=(
        Criterion(
            "form",
            FORM_ANYWHERE,
            0.5,
            form_if_values_can_be_read,
            (*_asked, "device"),
        ),
        Criterion(
            "near", Text(en="distances with a bucket each", zh="各占一个桶的距离"), 0.5, values_within(EXACT), ("near",)
        ),
        Criterion(
            "shared",
            Text(en="distances that share buckets", zh="共用桶的距离"),
            0.75,
            values_within(EXACT),
            ("shared",),
        ),
        Criterion("end", Text(en="past the largest distance", zh="超过最大距离"), 0.25, values_within(EXACT), ("end",)),
        Criterion("one-way", Text(en="one direction", zh="单向"), 0.5, values_within(EXACT), ("one-way",)),
        Criterion(
            "settings",
            Text(en="other numbers of buckets and distances", zh="换一组桶数与最大距离"),
            0.25,
            values_within(EXACT),
            ("settings",),
        ),
        Criterion("input", INPUT, 0.25, inputs_untouched, ("near", "shared", "end")),
    ),
    mistakes=relative_bucket_mistakes.T5_BUCKET,
    alternatives=relative_bias_alternatives.T5_BUCKET,
)

LOOK_UP_TOLERANCE = Tolerance(
    1e-5,
    "a look-up gives the number itself, a product with ones and zeros rounds by 1e-6 at most; the mistakes take other "
    "numbers of the table",
)
TABLE_GRADIENT = Tolerance(
    1e-4,
    "each entry sums at most 240 standard normal weights in float32, 2e-5 at worst; the mistakes differ by more "
    "than 0.1",
)


def _bias_cases(draw: Draw) -> list[Case]:
    def build(
        tag: str,
        query_len: int,
        key_len: int,
        *settings: bool | int,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        with_gradient: bool = False,
        **kwargs: bool | int,
    ) -> Case:
        n_heads = draw.sample([n for n in range(3, 10) if n not in (query_len, key_len)], 1)[0]
        n_buckets = int(kwargs.get("n_buckets", settings[1] if len(settings) > 1 else 32))
        steps = [load({"table.weight": draw.normal(n_buckets, n_heads)}, by_shape=True), forward(query_len, key_len)]
        if dtype != torch.float32:
            steps.insert(0, moved(dtype))
        if with_gradient:
            steps.append(backward(draw.normal(n_heads, query_len, key_len)))
        return Case("T5Bias", (n_heads, *settings), kwargs, tag, device, steps=tuple(steps))

    def settings(bidirectional: bool, key_len: int, fewest: int = 5) -> tuple[bool, int, int]:
        """Buckets and a largest distance below key_len, such that no distance is at the edge of a bucket."""
        while True:
            n_buckets = 2 * draw.integer(fewest, fewest + 6) if bidirectional else 2 * draw.integer(3, 7) + 1
            max_distance = draw.integer(key_len // 2, key_len - 6)
            if all(clear_of_edges(steps, bidirectional, n_buckets, max_distance) for steps in range(key_len)):
                return bidirectional, n_buckets, max_distance

    square = draw.integer(13, 16)  # with the defaults, a bucket begins exactly at distance 16
    long, longer = draw.integer(26, 30), draw.integer(31, 36)
    heads, buckets = draw.integer(3, 9), draw.integer(10, 20)
    named = settings(True, longer, 18)  # more buckets than the defaults: rows that exist, if the wrong ones
    return [
        *(Case("T5Bias", (heads, True, buckets, 50), tag="state", steps=(see(),)) for see in (state, parameters)),
        build("values", square, square),
        build("values", 1, 1),
        build("one-way", long, long, False),
        build("one-way", long, long, bidirectional=False),
        build("cache", *_fewer(draw, 2, 16)),
        build("cache", 1, draw.integer(10, 16)),
        build("settings", long, long, *settings(True, long)),
        build("settings", longer, longer, n_buckets=named[1], max_distance=named[2]),
        build("settings", long, long, *settings(False, long)),
        build("dtype", square - 3, square, dtype=torch.float64),
        build("dtype", square - 2, square, dtype=torch.bfloat16),
        build("device", square - 1, square, device="meta"),  # nothing here tells a GPU from it
        build("gradient", square - 4, square, with_gradient=True),
    ]


_looked_up = values_within(LOOK_UP_TOLERANCE)

T5_BIAS = Exercise(
    id="t5-bias",
    lesson=LESSON,
    functions=("T5Bias",),
    reference={"T5Bias": relative.T5Bias},
    cases=_bias_cases,
    criteria=(
        Criterion(
            "state", Text(en="names and shapes of the parameters", zh="参数的名字与形状"), 0.25, same_state, ("state",)
        ),
        Criterion("form", FORM_ANYWHERE, 0.25, same_form, ("values", "cache", "dtype", "device")),
        Criterion("values", SQUARE, 0.5, _looked_up),
        Criterion("one-way", Text(en="one direction", zh="单向"), 0.25, _looked_up, ("one-way",)),
        Criterion("cache", CACHE, 0.25, _looked_up, ("cache",)),
        Criterion(
            "settings",
            Text(en="other numbers of buckets and distances", zh="换一组桶数与最大距离"),
            0.25,
            _looked_up,
            ("settings",),
        ),
        Criterion("gradient", GRADIENT, 0.25, gradients_within(TABLE_GRADIENT), ("gradient",)),
    ),
    mistakes=relative_t5_mistakes.T5_BIAS,
    alternatives=relative_bias_alternatives.T5_BIAS,
)

SLOPE_TOLERANCE = Tolerance(
    lambda case, expected: 1e-5 * expected.abs(),
    "a slope that is multiplied up in float32 is off by 64 roundings at most, 4e-6 of its size; neighbouring slopes of "
    "the longest series here differ by 8 percent",
)
BIAS_TOLERANCE = Tolerance(
    lambda case, expected: 1e-5 * expected.abs() + 1e-9,
    "the slope's rounding and one product; the mistakes differ by 4 percent and more",
)


def _slope_cases(draw: Draw) -> list[Case]:
    def ask(tag: str, n_heads: int) -> Case:
        return Case("alibi_slopes", (n_heads,), tag=tag)

    return [
        *(ask("values", n) for n in (1, 8, *draw.sample((2, 4, 16, 32, 64), 2))),
        ask("others", draw.sample((6, 7, 12, 14), 1)[0]),
        ask("others", draw.sample((10, 11, 13, 20), 1)[0]),
        ask("others", draw.sample((24, 40, 48), 1)[0]),
        ask("others", draw.sample((3, 5, 9), 1)[0]),
    ]


ALIBI_SLOPES = Exercise(
    id="alibi-slopes",
    lesson=LESSON,
    functions=("alibi_slopes",),
    reference={"alibi_slopes": relative.alibi_slopes},
    cases=_slope_cases,
    criteria=(
        Criterion("form", FORM, 0.5, same_form, ("values", "others")),
        Criterion("values", Text(en="powers of two", zh="2 的幂"), 0.75, values_within(SLOPE_TOLERANCE)),
        Criterion(
            "others",
            Text(en="other numbers of heads", zh="其他 head 数"),
            0.75,
            values_within(SLOPE_TOLERANCE),
            ("others",),
        ),
    ),
    mistakes=relative_alibi_mistakes.ALIBI_SLOPES,
    alternatives=relative_bias_alternatives.ALIBI_SLOPES,
)


def _alibi_cases(draw: Draw) -> list[Case]:
    def ask(tag: str, n_heads: int, query_len: int, key_len: int) -> Case:
        return Case("alibi_bias", (n_heads, query_len, key_len), tag=tag)

    powers = draw.sample((2, 4, 16), 2)
    square = draw.sample((5, 6, 7, 9), 2)
    others = draw.sample((6, 11, 12, 13), 2)
    return [
        *(ask("values", n_heads, n, n) for n_heads, n in zip((8, powers[0]), square, strict=True)),
        ask("cache", powers[1], 5, 7 + draw.integer(1, 4)),
        ask("cache", 8, 3, draw.integer(5, 7)),
        ask("cache", 4, 1, draw.integer(6, 9)),
        *(ask("others", n_heads, n, n) for n_heads, n in zip(others, (8, 10), strict=True)),
        ask("others", 3, 4, 9),
    ]


_falls = values_within(BIAS_TOLERANCE)

ALIBI_BIAS = Exercise(
    id="alibi-bias",
    lesson=LESSON,
    functions=("alibi_bias",),
    reference={"alibi_bias": relative.alibi_bias},
    cases=_alibi_cases,
    criteria=(
        Criterion("form", FORM, 0.25, same_form, ("values", "cache", "others")),
        Criterion("values", SQUARE, 1.0, _falls),
        Criterion("cache", CACHE, 0.5, _falls, ("cache",)),
        Criterion("others", Text(en="other numbers of heads", zh="其他 head 数"), 0.25, _falls, ("others",)),
    ),
    mistakes=relative_alibi_mistakes.ALIBI_BIAS,
    alternatives=relative_bias_alternatives.ALIBI_BIAS,
)
