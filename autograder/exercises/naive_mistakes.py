"""Lesson 01: wrong ways to add the number or the fraction of a position, and what to tell those who wrote them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.exercises.declaration import Mistake
from autograder.results import Text

INTEGER = "add_integer_positions"
FRACTION = "add_fraction_positions"


def _steps(x: Tensor) -> Tensor:
    """The position numbers of x as a column `(length, 1)`."""
    return torch.arange(x.shape[1], device=x.device)[:, None]


def _last(x: Tensor) -> int:
    return max(x.shape[1] - 1, 1)


def _part_way(x: Tensor) -> Tensor:
    return (_steps(x) / _last(x)).to(x.dtype)


def _to_first_feature(positions: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def answer(x: Tensor) -> Tensor:
        found = x.clone()
        found[..., :1] += positions(x)
        return found

    return answer


def _counted_in_batch(x: Tensor) -> Tensor:
    return torch.arange(x.shape[0], device=x.device)[:, None, None]


def _fraction_or_nothing(x: Tensor, fraction: Callable[[Tensor, int], Tensor]) -> Tensor:
    return x.clone() if x.shape[1] == 1 else x + fraction(_steps(x), x.shape[1]).to(x.dtype)


def _mistake(slug: str, answers: dict[str, Any], en: str, zh: str) -> Mistake:
    return Mistake(slug=slug, message=Text(en=en, zh=zh), answers=answers)


NAIVE_MISTAKES = (
    _mistake(
        "integer-from-one",
        {INTEGER: lambda x: x + _steps(x) + 1},
        "Your position numbers are one too large everywhere. See from which number the course counts.",
        "你的位置编号处处大了 1。请看本课程从几开始数。",
    ),
    _mistake(
        "integer-reversed",
        {INTEGER: lambda x: x + _steps(x).flip(0)},
        "The last position gets the smallest number: your positions run backwards.",
        "最后一个位置得到了最小的编号：你的位置是倒着数的。",
    ),
    _mistake(
        "integer-on-batch",
        {INTEGER: lambda x: x + _counted_in_batch(x)},
        "You number the sentences of the batch, and all words of a sentence get the same number. Check the axis.",
        "你给 batch 里的句子编了号，同一句里所有词的编号相同。请检查所用的轴。",
    ),
    _mistake(
        "integer-on-features",
        {INTEGER: lambda x: x + torch.arange(x.shape[2], device=x.device)},
        "You number the features, and every position gets the same numbers. An axis of `x + numbers` is aligned from "
        "the right: check which one yours meets.",
        "你给特征编了号，每个位置加上的数都一样。x + 编号 时，轴是从右边对齐的：请看你的编号对上了哪个轴。",
    ),
    _mistake(
        "integer-first-feature",
        {INTEGER: _to_first_feature(_steps)},
        "Only the first feature gets the position number. Which features does the task name?",
        "只有第一个特征加上了位置编号。题目说的是哪些特征？",
    ),
    _mistake(
        "integer-multiplied",
        {INTEGER: lambda x: x * _steps(x)},
        "You multiply by the position number: the first word is erased.",
        "你乘上了位置编号：第一个词被抹成了 0。",
    ),
    _mistake(
        "integer-without-x",
        {INTEGER: lambda x: (x * 0) + _steps(x)},
        "Only the position numbers come back; the words themselves are lost.",
        "返回的只有位置编号，词本身丢了。",
    ),
    _mistake(
        "integer-scaled",
        {INTEGER: lambda x: x + _part_way(x)},
        "The whole-number function adds fractions. The two functions of this task differ.",
        "加整数编号的函数加上的却是分数。这道题的两个函数是不同的。",
    ),
    _mistake(
        "fraction-from-one",
        {FRACTION: lambda x: _fraction_or_nothing(x, lambda step, length: (step + 1) / length)},
        "Your fractions end where they should and start too high. What does the first position get?",
        "你的分数终点对了，起点却偏大。第一个位置应当得到什么？",
    ),
    _mistake(
        "fraction-of-length",
        {FRACTION: lambda x: _fraction_or_nothing(x, lambda step, length: step / length)},
        "Your fractions start where they should and never reach their end. Count the steps from first to last "
        "position.",
        "你的分数起点对了，却始终到不了终点。请数一数：从第一个位置到最后一个位置要走几步？",
    ),
    _mistake(
        "fraction-reversed",
        {FRACTION: lambda x: _fraction_or_nothing(x, lambda step, length: 1 - step / (length - 1))},
        "Your fractions run backwards: the first position gets the largest.",
        "你的分数是倒着走的：第一个位置得到了最大的。",
    ),
    _mistake(
        "fraction-floored",
        {FRACTION: lambda x: _fraction_or_nothing(x, lambda step, length: step // (length - 1))},
        "All positions but the last get 0: the division drops what is behind the decimal point.",
        "除最后一个位置外都加了 0：除法把小数部分丢掉了。",
    ),
    _mistake(
        "fraction-centred",
        {FRACTION: lambda x: _fraction_or_nothing(x, lambda step, length: 2 * step / (length - 1) - 1)},
        "Your fractions start below zero. Look at what the first position should get.",
        "你的分数从负数开始。请看第一个位置应当得到什么。",
    ),
    _mistake(
        "fraction-undivided",
        {FRACTION: lambda x: x + _steps(x)},
        "The fraction function adds whole numbers: the division is missing.",
        "加分数的函数加上的却是整数：少了除法。",
    ),
    _mistake(
        "fraction-on-batch",
        {FRACTION: lambda x: x + (_counted_in_batch(x) / (len(x) - 1)).to(x.dtype)},
        "Your fractions run over the sentences of the batch; all words of a sentence get the same one. Check the axis.",
        "你的分数是沿着 batch 里的句子走的，同一句里所有词都一样。请检查所用的轴。",
    ),
    _mistake(
        "fraction-of-features",
        {FRACTION: lambda x: x + (torch.arange(x.shape[2], device=x.device) / (x.shape[2] - 1)).to(x.dtype)},
        "Your fractions run over the features; every position gets the same ones. Check the axis.",
        "你的分数是沿着特征走的，每个位置都一样。请检查所用的轴。",
    ),
    _mistake(
        "fraction-first-feature",
        {FRACTION: _to_first_feature(_part_way)},
        "Only the first feature gets the fraction. Which features does the task name?",
        "只有第一个特征加上了分数。题目说的是哪些特征？",
    ),
    _mistake(
        "fraction-multiplied",
        {FRACTION: lambda x: x * _part_way(x)},
        "You multiply by the fraction: the first word is erased.",
        "你乘上了分数：第一个词被抹成了 0。",
    ),
    _mistake(
        "single-position-nan",
        {FRACTION: lambda x: x + (_steps(x) / (x.shape[1] - 1)).to(x.dtype)},
        "A sentence of one word gives NaN: 0 is divided by 0. The task says what a single position gets.",
        "只有一个词的句子得到 NaN：0 除以了 0。题目说明了只有一个位置时应当怎样。",
    ),
    _mistake(
        "single-position-error",
        {FRACTION: lambda x: x + (_steps(x) * (1 / (x.shape[1] - 1))).to(x.dtype)},
        "A sentence of one word stops your function with a division by zero. The task says what a single position "
        "gets.",
        "遇到只有一个词的句子，你的函数因除以零而出错。题目说明了只有一个位置时应当怎样。",
    ),
    _mistake(
        "single-position-one",
        {FRACTION: lambda x: x + 1 if x.shape[1] == 1 else x + _part_way(x)},
        "A sentence of one word is treated as if it stood at the end. The task says what a single position gets.",
        "只有一个词的句子被当成了句尾。题目说明了只有一个位置时应当怎样。",
    ),
    _mistake(
        "integer-dtype-promoted",
        {INTEGER: lambda x: x + _steps(x).float()},
        "The result of the whole-number function has another dtype than x: adding a tensor of wider numbers widens it.",
        "加整数编号的函数返回的 dtype 与 x 不同：加上精度更高的张量，结果也会变成那种 dtype。",
    ),
    _mistake(
        "integer-dtype-double",
        {INTEGER: lambda x: x + _steps(x).double()},
        "The result of the whole-number function is float64 whatever x is. It should have the dtype of x.",
        "无论 x 是什么 dtype，加整数编号的函数总是返回 float64。结果的 dtype 应当与 x 一致。",
    ),
    _mistake(
        "fraction-dtype-promoted",
        {FRACTION: lambda x: x + _steps(x) / _last(x)},
        "The result of the fraction function has another dtype than x: fractions made in float32 widen a narrower x.",
        "加分数的函数返回的 dtype 与 x 不同：用 float32 算出的分数会把精度较低的 x 变成 float32。",
    ),
    _mistake(
        "fraction-dtype-double",
        {FRACTION: lambda x: x + _steps(x).double() / _last(x)},
        "The result of the fraction function is float64 whatever x is. It should have the dtype of x.",
        "无论 x 是什么 dtype，加分数的函数总是返回 float64。结果的 dtype 应当与 x 一致。",
    ),
    _mistake(
        "integer-on-cpu",
        {INTEGER: lambda x: x + torch.arange(x.shape[1])[:, None]},
        "The whole-number function makes its numbers on the CPU, wherever x is. Ask x where it is.",
        "无论 x 在哪个设备上，加整数编号的函数都在 CPU 上造编号。请问一问 x 在哪里。",
    ),
    _mistake(
        "fraction-on-cpu",
        {FRACTION: lambda x: x + (torch.arange(x.shape[1])[:, None] / _last(x)).to(x.dtype)},
        "The fraction function makes its fractions on the CPU, wherever x is. Ask x where it is.",
        "无论 x 在哪个设备上，加分数的函数都在 CPU 上造分数。请问一问 x 在哪里。",
    ),
    _mistake(
        "x-changed",
        {INTEGER: lambda x: x.add_(_steps(x)), FRACTION: lambda x: x.add_(_part_way(x))},
        "Both functions change x itself. `+=` works in place, and the caller's tensor is another one afterwards.",
        "两个函数都改动了 x 本身。+= 是原地操作，调用者手里的张量也跟着变了。",
    ),
    _mistake(
        "x-changed-by-integer",
        {INTEGER: lambda x: x.add_(_steps(x))},
        "The whole-number function changes x itself. `+=` works in place, and the caller's tensor is another one "
        "afterwards.",
        "加整数编号的函数改动了 x 本身。+= 是原地操作，调用者手里的张量也跟着变了。",
    ),
    _mistake(
        "x-changed-by-fraction",
        {FRACTION: lambda x: x.add_(_part_way(x))},
        "The fraction function changes x itself. `+=` works in place, and the caller's tensor is another one "
        "afterwards.",
        "加分数的函数改动了 x 本身。+= 是原地操作，调用者手里的张量也跟着变了。",
    ),
)
