"""Lesson 02, the sinusoidal encoding: its exercises. The known mistakes stand in the modules beside this one."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.exercises import (
    sinusoidal_alternatives,
    sinusoidal_encoding_mistakes,
    sinusoidal_frequency_mistakes,
    sinusoidal_other_mistakes,
)
from autograder.exercises.comparisons import Tolerance, inputs_untouched, raises_value_error, same_form, values_within
from autograder.exercises.declaration import Case, Criterion, Draw, Exercise
from autograder.exercises.quiz import Question, quiz
from autograder.reference import sinusoidal
from autograder.results import Text

LESSON = "02-sinusoidal-encoding"

FORM = Text(en="shape and dtype", zh="形状与 dtype")
VALUES = Text(en="values", zh="数值")
BASE = Text(en="another base", zh="换一个 base")
FAR = Text(en="positions past 4096", zh="4096 之后的位置")
WIDTH = Text(en="widths that don't work", zh="不合理的宽度")

RELATIVE_TOLERANCE = Tolerance(
    lambda case, expected: 5e-6 * expected.abs(),
    "frequencies and wavelengths from float32 powers or exponentials are off by at most 2e-6 of their size (the "
    "rounding "
    "of the exponent, up to ln(base) = 11.4, times 1.2e-7); of the mistakes only wrong dtypes come nearer than 1e-2",
)


def _angle_error(case: Case, expected: Tensor) -> Tensor | float:
    """What the contract allows for angles in float32: 1e-5 + 6e-7 × position. The first argument is the position.

    In a table every row is a position, and its argument is their number.
    """
    if case.function == "sinusoidal_encoding":
        return 1e-5 + 6e-7 * torch.arange(expected.shape[0], dtype=torch.float64)[:, None]
    return 1e-5 + 6e-7 * abs(int(case.args[0]))


ANGLE_TOLERANCE = Tolerance(
    _angle_error,
    "the contract: angles may be computed in float32, whose rounding moves an angle by up to 6e-7 of the position; the "
    "mistakes move values by more than 1e-2 at small positions",
)

HALF_TOLERANCE = Tolerance(
    lambda case, expected: _angle_error(case, expected) + torch.finfo(case.kwargs["dtype"]).eps * expected.abs(),
    "answer and reference are each rounded once to the dtype, half a unit in the last place each, and a unit is at "
    "most "
    "eps times the value; a bfloat16 position past 256 is off by a whole radian",
)

SIMILARITY_TOLERANCE = Tolerance(
    1e-4,
    "sums of at most 14 products of size 10 in float32, in any order, agree within 2e-5; the mistakes differ by 0.1",
)

RECOGNISED = Tolerance(
    lambda case, expected: _angle_error(case, expected) + 0.1,
    "for naming a mistake only: frequencies that wrongly grow reach 3e3, and float32 then moves an angle by up to "
    "0.05; "
    "two different mistakes are further than 0.1 apart in some of the values",
)


def _values(name: str, title: Text, points: float, *tags: str) -> Criterion:
    """Values by the contract's tolerance. Errors on the other device count under that device's criterion, not here."""
    compare = values_within(ANGLE_TOLERANCE, errors_elsewhere=("device",))
    return Criterion(name, title, points, compare, tags, alike=values_within(RECOGNISED, errors_elsewhere=("device",)))


def _bad_widths(draw: Draw, function: str, *first: int) -> list[Case]:
    """Widths to refuse, and the smallest one that is not."""
    bad = (2 * draw.integer(1, 9) + 1, 1, 0, -2 * draw.integer(1, 5))
    refused = [Case(function, (*first, d), tag="errors", error_names=("d_model", str(d))) for d in bad]
    return [*refused, Case(function, (*first, 2), tag="errors")]


def _bases(draw: Draw) -> tuple[float, float]:
    """A base far below 10000 and one above."""
    return round(draw.uniform(50.0, 500.0), 1), float(draw.integer(20_000, 90_000))


def _frequency_cases(function: str, draw: Draw) -> list[Case]:
    small, large = _bases(draw)
    return [
        *(Case(function, (d,)) for d in (4, draw.even(6, 20), draw.even(30, 60), 512)),
        Case(function, (draw.even(6, 12), small), tag="base"),
        Case(function, (draw.even(14, 20),), {"base": large}, tag="base"),
    ]


PAIR_FREQUENCIES = Exercise(
    id="pair-frequencies",
    lesson=LESSON,
    functions=("pair_frequencies",),
    reference={"pair_frequencies": sinusoidal.pair_frequencies},
    cases=lambda draw: [*_frequency_cases("pair_frequencies", draw), *_bad_widths(draw, "pair_frequencies")],
    criteria=(
        Criterion("form", FORM, 0.5, same_form, ("values", "base")),
        Criterion("values", VALUES, 0.75, values_within(RELATIVE_TOLERANCE)),
        Criterion("base", BASE, 0.25, values_within(RELATIVE_TOLERANCE), ("base",)),
        Criterion("errors", WIDTH, 0.5, raises_value_error, ("errors",)),
    ),
    mistakes=sinusoidal_frequency_mistakes.PAIR_FREQUENCIES,
    alternatives=sinusoidal_alternatives.PAIR_FREQUENCIES,
)


def _position_cases(draw: Draw) -> list[Case]:
    small, large = _bases(draw)
    near = [0, 1, draw.integer(3, 9), draw.integer(11, 29)]
    far = [draw.integer(4097, 5000), draw.integer(9000, 20_000)]
    widths = [4, 6, 8, 10]
    return [
        *(Case("encode_position", (p, d)) for p, d in zip(near, [8, *draw.sample(widths, 3)], strict=True)),
        *(Case("encode_position", (p, d), tag="far") for p, d in zip(far, draw.sample(widths, 2), strict=True)),
        Case("encode_position", (draw.integer(2, 9), draw.even(6, 10), small), tag="base"),
        Case("encode_position", (draw.integer(11, 19), draw.even(6, 10)), {"base": large}, tag="base"),
        *_bad_widths(draw, "encode_position", draw.integer(3, 40)),
    ]


ENCODE_POSITION = Exercise(
    id="encode-position",
    lesson=LESSON,
    functions=("encode_position",),
    reference={"encode_position": sinusoidal.encode_position},
    cases=_position_cases,
    criteria=(
        Criterion("form", FORM, 0.25, same_form, ("values", "far", "base")),
        _values("values", VALUES, 0.75, "values"),
        _values("far", FAR, 0.25, "far"),
        _values("base", BASE, 0.25, "base"),
        Criterion("errors", WIDTH, 0.5, raises_value_error, ("errors",)),
    ),
    mistakes=sinusoidal_encoding_mistakes.ENCODE_POSITION,
    alternatives=sinusoidal_alternatives.ENCODE_POSITION,
)


def _table_cases(draw: Draw) -> list[Case]:
    small, large = _bases(draw)

    def table(n_positions: int, d_model: int, *, tag: str, **kwargs: object) -> Case:
        return Case("sinusoidal_encoding", (n_positions, d_model), kwargs, tag)

    return [
        table(draw.integer(5, 9), draw.even(12, 16), tag="values"),
        table(draw.integer(17, 29), draw.even(4, 10), tag="values"),
        table(draw.integer(4110, 4190), draw.even(4, 8), tag="far"),
        Case("sinusoidal_encoding", (draw.integer(3, 5), draw.even(6, 10), small), tag="base"),
        table(draw.integer(11, 15), draw.even(6, 10), tag="base", base=large),
        table(draw.integer(5, 7), draw.even(8, 12), tag="dtype", dtype=torch.float64),
        table(draw.integer(300, 400), draw.even(4, 8), tag="dtype", dtype=torch.bfloat16),
        table(draw.integer(300, 400), draw.even(4, 8), tag="dtype", dtype=torch.float16),
        table(draw.integer(5, 7), draw.even(8, 12), tag="device", device=draw.other_device),
        table(draw.integer(8, 11), draw.even(4, 6), tag="device", device=draw.accelerator),
        *_bad_widths(draw, "sinusoidal_encoding", draw.integer(3, 40)),
    ]


SINUSOIDAL_ENCODING = Exercise(
    id="sinusoidal-encoding",
    lesson=LESSON,
    functions=("sinusoidal_encoding",),
    reference={"sinusoidal_encoding": sinusoidal.sinusoidal_encoding},
    cases=_table_cases,
    criteria=(
        Criterion("form", FORM, 0.5, same_form, ("values", "far", "base")),
        _values("values", VALUES, 1.5, "values", "device"),
        _values("far", FAR, 0.5, "far"),
        _values("base", BASE, 0.25, "base"),
        Criterion("dtype", Text(en="the argument dtype", zh="参数 dtype"), 0.25, same_form, ("dtype",)),
        Criterion(
            "half-precision",
            Text(en="values in other dtypes", zh="其他 dtype 下的数值"),
            0.25,
            values_within(HALF_TOLERANCE),
            ("dtype",),
        ),
        Criterion("device", Text(en="the argument device", zh="参数 device"), 0.25, same_form, ("device",)),
        Criterion("errors", WIDTH, 0.5, raises_value_error, ("errors",)),
    ),
    mistakes=sinusoidal_encoding_mistakes.SINUSOIDAL_ENCODING,
    alternatives=sinusoidal_alternatives.SINUSOIDAL_ENCODING,
)

WAVELENGTHS = Exercise(
    id="wavelengths",
    lesson=LESSON,
    functions=("wavelengths",),
    reference={"wavelengths": sinusoidal.wavelengths},
    cases=lambda draw: _frequency_cases("wavelengths", draw),
    criteria=(
        Criterion("form", FORM, 0.25, same_form, ("values", "base")),
        Criterion("values", VALUES, 0.5, values_within(RELATIVE_TOLERANCE)),
        Criterion("base", BASE, 0.25, values_within(RELATIVE_TOLERANCE), ("base",)),
    ),
    mistakes=sinusoidal_other_mistakes.WAVELENGTHS,
    alternatives=sinusoidal_alternatives.WAVELENGTHS,
)


def _shift_cases(draw: Draw) -> list[Case]:
    small, large = _bases(draw)
    return [
        *(Case("shift_matrix", (k, draw.even(4, 10))) for k in (0, 1, draw.integer(3, 9), draw.integer(11, 29))),
        Case("shift_matrix", (-draw.integer(1, 9), draw.even(4, 10)), tag="negative"),
        Case("shift_matrix", (-draw.integer(11, 29), draw.even(4, 10)), tag="negative"),
        Case("shift_matrix", (draw.integer(4097, 5000), draw.even(4, 8)), tag="far"),
        Case("shift_matrix", (draw.integer(3, 5), draw.even(6, 10), small), tag="base"),
        Case("shift_matrix", (draw.integer(11, 15), draw.even(6, 10)), {"base": large}, tag="base"),
    ]


SHIFT_MATRIX = Exercise(
    id="shift-matrix",
    lesson=LESSON,
    functions=("shift_matrix",),
    reference={"shift_matrix": sinusoidal.shift_matrix},
    cases=_shift_cases,
    criteria=(
        Criterion("form", FORM, 0.5, same_form, ("values", "negative", "far", "base")),
        _values("values", VALUES, 1.5, "values"),
        _values("negative", Text(en="negative offsets", zh="负的偏移"), 0.5, "negative"),
        _values("far", Text(en="offsets past 4096", zh="超过 4096 的偏移"), 0.25, "far"),
        _values("base", BASE, 0.25, "base"),
    ),
    mistakes=sinusoidal_other_mistakes.SHIFT_MATRIX,
    alternatives=sinusoidal_alternatives.SHIFT_MATRIX,
)


def _similarity_cases(draw: Draw) -> list[Case]:
    n, d, wide, narrow = draw.sizes(4, 3, 9)

    def case(encoding: Tensor, *, tag: str = "values", device: str = "cpu") -> Case:
        return Case("position_similarity", (encoding,), tag=tag, device=device)

    return [
        case(draw.normal(n, n + d)),
        case(draw.normal(d + wide, d, dtype=torch.float64)),
        case(sinusoidal.sinusoidal_encoding(draw.integer(11, 15), draw.even(6, 10))),
        case(draw.normal(narrow, wide), tag="device", device=draw.other_device),
        case(draw.normal(wide, n), tag="device", device=draw.accelerator),
    ]


POSITION_SIMILARITY = Exercise(
    id="position-similarity",
    lesson=LESSON,
    functions=("position_similarity",),
    reference={"position_similarity": sinusoidal.position_similarity},
    cases=_similarity_cases,
    criteria=(
        Criterion(
            "form", Text(en="shape, dtype and device", zh="形状、dtype 与设备"), 0.25, same_form, ("values", "device")
        ),
        Criterion(
            "values",
            VALUES,
            0.5,
            values_within(SIMILARITY_TOLERANCE, errors_elsewhere=("device",)),
            ("values", "device"),
        ),
        Criterion("input", Text(en="the input stays as it is", zh="输入保持不变"), 0.25, inputs_untouched),
    ),
    mistakes=sinusoidal_other_mistakes.POSITION_SIMILARITY,
    alternatives=sinusoidal_alternatives.POSITION_SIMILARITY,
)

QUIZ = quiz(
    "quiz-sinusoidal",
    LESSON,
    2.0,
    (
        Question(
            answer="c",
            wrong={
                "a": Text(
                    en="Question 1: that is one turn of the fastest hand. Which pair is the slowest, and what is its "
                    "frequency?",
                    zh="第 1 题：那是最快的指针转一圈。最慢的是哪一对，它的频率是多少？",
                ),
                "b": Text(
                    en="Question 1: after so many positions that hand has turned by one radian. A turn is more.",
                    zh="第 1 题：经过这么多位置，那根指针只转了一弧度。一圈不止一弧度。",
                ),
                "d": Text(
                    en="Question 1: that is the limit for very many columns. With few columns the last exponent is "
                    "still "
                    "far from it: write it out.",
                    zh="第 1 题：那是列数极多时的极限。列数少时，最后一个指数离它还远：请把它写出来。",
                ),
            },
        ),
        Question(
            answer="b",
            wrong={
                "a": Text(
                    en="Question 2: this says where the numbers are stored, not what two of them can do together.",
                    zh="第 2 题：这只说了数存放在哪里，没有说两个数合在一起能做什么。",
                ),
                "c": Text(
                    en="Question 2: in the third quarter of a turn both are negative. And ask what happens to one "
                    "number "
                    "alone when the position moves on.",
                    zh="第 2 题：转到第三个四分之一圈时，两者都是负的。再想一想：位置移动时，单独一个数会怎样？",
                ),
                "d": Text(
                    en="Question 2: both columns of a pair have one frequency, so they repeat after the same number of "
                    "positions as one of them.",
                    zh="第 2 题：一对的两列频率相同，所以它们重复的周期和其中一列一样。",
                ),
            },
        ),
        Question(
            answer="b",
            wrong={
                "a": Text(
                    en="Question 3: each pair contributes the cosine of frequency times distance. What does a cosine "
                    "do when "
                    "the distance changes its sign?",
                    zh="第 3 题：每一对贡献的是（频率 × 距离）的余弦。距离变号时，余弦会怎样？",
                ),
            },
        ),
        Question(
            answer="d",
            wrong={
                "a": Text(
                    en="Question 4: the formula has a value at every position, and in the experiment one head was "
                    "right in "
                    "every window. Which one?",
                    zh="第 4 题：公式在每个位置都有值，而且实验中有一个头在每个窗口都对。是哪一个？",
                ),
                "b": Text(
                    en="Question 4: look at the addition theorems again: the four numbers of a block depend on the "
                    "offset "
                    "and the pair. Does the position occur in them?",
                    zh="第 4 题：请再看两角和公式：块里的四个数取决于偏移和对。其中出现位置了吗？",
                ),
                "c": Text(
                    en="Question 4: in the section on fingerprints you measured how near two of 1000 rows come, for "
                    "several widths. Read it again.",
                    zh="第 4 题：在讲“指纹”的那一节，你测量过 1000 行里最近的两行有多近。请再读一遍。",
                ),
            },
        ),
        Question(
            answer="a",
            wrong={
                "b": Text(
                    en="Question 5: an encoding with wrong exponents has this shape too. Which numbers would differ?",
                    zh="第 5 题：指数错了，形状也还是这样。哪些数会不同？",
                ),
                "c": Text(
                    en="Question 5: at position 0 every angle is zero, whatever the exponents are.",
                    zh="第 5 题：在位置 0，无论指数是什么，所有角度都是零。",
                ),
                "d": Text(
                    en="Question 5: sine and cosine lie in that range for every angle, right or wrong.",
                    zh="第 5 题：无论角度对错，正弦和余弦都在这个范围里。",
                ),
            },
        ),
    ),
)

EXERCISES = (
    PAIR_FREQUENCIES,
    ENCODE_POSITION,
    SINUSOIDAL_ENCODING,
    WAVELENGTHS,
    SHIFT_MATRIX,
    POSITION_SIMILARITY,
    QUIZ,
)
"""The exercises of lesson 02, in the order of the lesson."""
