"""Known mistakes about frequencies and about the width, which every function of lesson 02 can inherit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from autograder.exercises.declaration import Mistake
from autograder.reference import sinusoidal
from autograder.results import Text

Frequencies = Callable[[int, float], Tensor]
"""`(d_model, base)` -> `(d_model // 2,)`, for a d_model that is even and at least 2."""


@dataclass(frozen=True)
class FrequencyMistake:
    """A wrong way to compute frequencies, and what to tell whoever wrote it."""

    slug: str
    frequencies: Frequencies
    text: Text

    def behind(self, function: str, answer: Any) -> Mistake:
        """The same mistake in a function that is built on the frequencies."""
        return Mistake(
            self.slug,
            Text(
                en=f"The frequencies behind your result are wrong. {self.text.en} "
                "If you call `pair_frequencies` here, look there first.",
                zh=f"结果所用的频率不对。{self.text.zh}如果这里调用了 `pair_frequencies`，请先检查它。",
            ),
            {function: answer},
        )


def checked(frequencies: Frequencies) -> Callable[..., Tensor]:
    """`pair_frequencies` with these frequencies; a bad width is refused as it should be."""

    def pair_frequencies(d_model: int, base: float = 10000.0) -> Tensor:
        sinusoidal.pair_frequencies(d_model, base)
        return frequencies(d_model, base)

    return pair_frequencies


def pairs(d_model: int) -> Tensor:
    return torch.arange(d_model // 2, dtype=torch.float64)


FREQUENCY_MISTAKES = (
    FrequencyMistake(
        "column-index-as-pair-index",
        lambda d, base: base ** (-2.0 * torch.arange(0, d, 2, dtype=torch.float64) / d),
        Text(
            en="The exponent grows twice as fast as it should: the column number 2i stands where the pair number i "
            "belongs, or the 2 is counted twice. Check what your `arange` or loop really counts.",
            zh="指数增长得快了一倍：公式里该用对的序号 i，你用的是列号 2i，或者把 2 乘了两次。"
            "请检查 `arange` 或循环里数的究竟是什么。",
        ),
    ),
    FrequencyMistake(
        "factor-two-missing",
        lambda d, base: base ** (-pairs(d) / d),
        Text(
            en="The exponent grows only half as fast as it should. Take the second pair and compare the factors of its "
            "exponent with the formula, one by one.",
            zh="指数只增长了应有的一半。请以第二对为例，把指数里的因子和公式逐个对照。",
        ),
    ),
    FrequencyMistake(
        "multiplied-instead-of-divided",
        lambda d, base: base ** (2.0 * pairs(d) / d),
        Text(
            en="The frequencies grow from pair to pair, but each hand must turn more slowly than the one before. Check "
            "the sign of the exponent, or whether you multiply where you should divide.",
            zh="频率一对比一对大，可每根指针都应当比前一根转得慢。请检查指数的正负号，或者是不是该除的地方用了乘。",
        ),
    ),
    FrequencyMistake(
        "power-before-product",
        lambda d, base: base**-2 * pairs(d) / d,
        Text(
            en="Python takes the power before it multiplies, so only a part of your exponent went into the power. Look "
            "at the parentheses.",
            zh="Python 先算乘方，后算乘除，所以你的指数只有一部分进了乘方。请检查括号。",
        ),
    ),
    FrequencyMistake(
        "exponent-rounded-down",
        lambda d, base: base ** (-2.0 * pairs(d) // d),
        Text(
            en="From the second pair on, all frequencies are equal: the exponent is rounded down to a whole number. "
            "Look "
            "for a `//` where a true division belongs.",
            zh="从第二对开始，频率全都相等：指数被向下取整了。请找一找该用普通除法、却写成 `//` 的地方。",
        ),
    ),
    FrequencyMistake(
        "frequencies-all-equal",
        lambda d, base: base ** -(2.0 * pairs(d) // d),
        Text(
            en="All pairs have one and the same frequency: the exponent never changes. Rounding does that (`//`, or "
            "whole-number tensors), and so does an index that stays where it is.",
            zh="所有的对都是同一个频率：指数一直没有变。原因可能是取整（`//` 或整数张量），也可能是序号始终不动。",
        ),
    ),
    FrequencyMistake(
        "one-pair-too-few-in-the-spacing",
        lambda d, base: base ** (-pairs(d) / torch.tensor(d / 2 - 1, dtype=torch.float64)),
        Text(
            en="The exponents are spaced as in a range that includes its end: they are divided by one pair too few. "
            "Check the denominator, or your `linspace`.",
            zh="指数的间隔取成了包含终点的划分：作除数的对数少了一。请检查分母，或者检查 `linspace`。",
        ),
    ),
    FrequencyMistake(
        "pairs-from-one",
        lambda d, base: base ** (-2.0 * (pairs(d) + 1) / d),
        Text(
            en="Every pair has the frequency of the next one: the pairs are counted from 1. Check where your index "
            "starts.",
            zh="每一对用的都是下一对的频率：对的序号从 1 数起了。请检查序号从哪里开始。",
        ),
    ),
    FrequencyMistake(
        "base-ignored",
        lambda d, base: sinusoidal.pair_frequencies(d),
        Text(
            en="Another `base` changes nothing: a fixed number is written where the argument belongs, or the argument "
            "is not passed on.",
            zh="换一个 `base`，结果不变：该用参数的地方写死了一个数，或者参数没有传下去。",
        ),
    ),
    FrequencyMistake(
        "mixed-logarithms",
        lambda d, base: (-2.0 * pairs(d) / d * math.log10(base)).exp(),
        Text(
            en="Two kinds of logarithm are mixed: `exp` undoes the natural logarithm and no other. Check which `log` "
            "you "
            "call.",
            zh="混用了两种对数：与 `exp` 互逆的只有自然对数。请检查你调用的是哪个 `log`。",
        ),
    ),
    FrequencyMistake(
        "turns-instead-of-radians",
        lambda d, base: sinusoidal.pair_frequencies(d, base) / (2 * math.pi),
        Text(
            en="Every frequency is too small by the same factor: it counts turns per position, where radians per "
            "position are asked for. Look for a division by 2π.",
            zh="每个频率都小了同一个倍数：题目要的是每个位置转过的弧度，你给的是圈数。请找一找哪里除以了 2π。",
        ),
    ),
    FrequencyMistake(
        "slowest-pair-first",
        lambda d, base: sinusoidal.pair_frequencies(d, base).flip(0),
        Text(
            en="The pairs run from the slowest to the fastest. Check in which direction your index counts.",
            zh="各对是从最慢排到最快的。请检查序号是往哪个方向数的。",
        ),
    ),
)
"""Each one loses points in every function that is built on the frequencies."""


def width_mistakes(function: str, with_check: Callable[[Callable[[int], object]], Any]) -> tuple[Mistake, ...]:
    """Bad widths that are let through.

    Args:
        function: the function's name.
        with_check: makes the function, right but for its check of d_model: a callable that may raise ValueError.
    """

    def refuse(bad: bool, d_model: int) -> None:
        if bad:
            raise ValueError(f"d_model must be even and at least 2, got {d_model}")

    return (
        Mistake(
            "width-not-checked",
            Text(
                en="A d_model that is odd, zero or negative doesn't lead to a ValueError. Check the argument before "
                "you "
                "compute, and raise exactly that kind of error (`assert` raises another kind).",
                zh="d_model 为奇数、零或负数时，没有抛出 ValueError。请在计算之前检查参数，"
                "并且抛出的正是这种异常（`assert` 抛出的是另一种）。",
            ),
            {function: with_check(lambda d: None)},
        ),
        Mistake(
            "odd-width-accepted",
            Text(
                en="A d_model that is too small is refused, but an odd one is let through: it leaves a column without "
                "a partner.",
                zh="太小的 d_model 会被拒绝，奇数却放行了：那样会有一列落单。",
            ),
            {function: with_check(lambda d: refuse(d < 2, d))},
        ),
        Mistake(
            "small-width-accepted",
            Text(
                en="An odd d_model is refused, but zero or a negative number is let through: they are even, and yet "
                "there is no pair.",
                zh="奇数的 d_model 会被拒绝，零和负数却放行了：它们虽是偶数，却连一对也没有。",
            ),
            {function: with_check(lambda d: refuse(d % 2 == 1, d))},
        ),
    )


def _frequencies_with(check: Callable[[int], object]) -> Callable[..., Tensor]:
    def pair_frequencies(d_model: int, base: float = 10000.0) -> Tensor:
        check(d_model)
        return base ** (-2.0 * pairs(max(d_model, 0)) / max(d_model, 1))

    return pair_frequencies


def _frequencies(slug: str, answer: Callable[..., Tensor], en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"pair_frequencies": answer})


PAIR_FREQUENCIES = (
    *(Mistake(m.slug, m.text, {"pair_frequencies": checked(m.frequencies)}) for m in FREQUENCY_MISTAKES),
    _frequencies(
        "one-frequency-per-column",
        checked(lambda d, base: base ** (-2.0 * torch.arange(d, dtype=torch.float64) / d)),
        "There is one frequency for each column, but the two columns of a pair share one. Count pairs, not columns.",
        "每一列都有一个频率，而一对的两列应当共用一个。请按对来数，不要按列来数。",
    ),
    _frequencies(
        "each-frequency-twice",
        checked(lambda d, base: sinusoidal.pair_frequencies(d, base).repeat_interleave(2)),
        "Each frequency stands there twice, once for each column of its pair. The result has one entry for each pair.",
        "每个频率都出现了两次，一对的两列各一次。结果里每一对只应有一个数。",
    ),
    _frequencies(
        "float32-frequencies",
        checked(lambda d, base: sinusoidal.pair_frequencies(d, base).float()),
        "The result is float32. The task asks for double precision: look where the numbers come into being.",
        "结果是 float32，而题目要求双精度。请看看这些数是在哪里产生的。",
    ),
    *width_mistakes("pair_frequencies", _frequencies_with),
)
"""The known mistakes of pair-frequencies."""
