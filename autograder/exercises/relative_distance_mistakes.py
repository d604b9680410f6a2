"""Known mistakes of relative-distance."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.exercises.declaration import Answer, Mistake
from autograder.reference import relative
from autograder.results import Text


def _grid(value: Callable[[Tensor, Tensor, int], Tensor]) -> Answer:
    """`value(query number i from 0 (q, 1), key number j (1, k), k − q)`."""

    def relative_distance(query_len: int, key_len: int) -> Tensor:
        return value(torch.arange(query_len)[:, None], torch.arange(key_len)[None], key_len - query_len)

    return relative_distance


def _after(change: Callable[[Tensor], Tensor]) -> Answer:
    return lambda query_len, key_len: change(relative.relative_distance(query_len, key_len))


def _mistake(slug: str, answer: Answer, en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"relative_distance": answer})


RELATIVE_DISTANCE = (
    _mistake(
        "sign-swapped",
        _after(lambda distance: -distance),
        "Every distance has the opposite sign: you subtract the key from the query. The past should be negative.",
        "每个距离的正负号都反了：你算的是查询位置减键位置。过去的键应当是负数。",
    ),
    _mistake(
        "queries-from-zero",
        _grid(lambda i, j, late: j - i),
        "Your queries count from 0. They are the last of the positions: with fewer queries than keys, where does the "
        "first query stand?",
        "你的查询从 0 数起。它们是最后的那些位置：查询比键少时，第一个查询在哪个位置？",
    ),
    _mistake(
        "cache-counted-backwards",
        _grid(lambda i, j, late: j - i + late),
        "Queries are moved, but the wrong way: with fewer queries than keys, a query should stand later, which makes "
        "its distances smaller.",
        "查询的位置移动了，但方向不对：查询比键少时，查询应当更靠后，距离因而更小。",
    ),
    _mistake(
        "one-place-late",
        _grid(lambda i, j, late: j - i - late - 1),
        "All distances are too small by 1. Which key stands at the position of the last query?",
        "所有距离都小了 1。最后一个查询所在的位置上，是哪个键？",
    ),
    _mistake(
        "one-place-early",
        _grid(lambda i, j, late: j - i - late + 1),
        "All distances are too large by 1. Which key stands at the position of the last query?",
        "所有距离都大了 1。最后一个查询所在的位置上，是哪个键？",
    ),
    _mistake(
        "sign-lost",
        _after(torch.abs),
        "Your distances have no sign, so past and future look alike.",
        "你的距离没有正负号，过去和未来就分不开了。",
    ),
    _mistake(
        "future-cut-off",
        _after(lambda distance: distance.clamp(max=0)),
        "All keys in the future have distance 0. The mask comes later; here they have distances like the others.",
        "未来的键距离全成了 0。掩码是以后的事；在这里它们和其他键一样有距离。",
    ),
    _mistake(
        "past-cut-off",
        _after(lambda distance: distance.clamp(min=0)),
        "All keys in the past have distance 0. They are the ones that matter most: their distances are negative.",
        "过去的键距离全成了 0。它们恰恰最重要：它们的距离是负数。",
    ),
    _mistake(
        "axes-swapped",
        _after(lambda distance: distance.T),
        "Rows and columns are swapped: a row belongs to a query, a column to a key.",
        "行和列写反了：一行对应一个查询，一列对应一个键。",
    ),
    _mistake(
        "axes-and-sign-swapped",
        _grid(lambda i, j, late: (i + late - j).T),
        "Rows and columns are swapped, and the sign too. With as many queries as keys the two cancel out, which hides "
        "them.",
        "行和列写反了，正负号也反了。查询与键一样多时两者互相抵消，所以看不出来。",
    ),
    _mistake(
        "floating-point",
        _after(Tensor.float),
        "Your distances are floating-point numbers. They are whole numbers, int64, since tables are looked up by them.",
        "你的距离是浮点数。它们应当是整数 int64，因为要拿它们去查表。",
    ),
    _mistake(
        "int32",
        _after(Tensor.int),
        "Your distances are int32. The task asks for int64, which is what `torch.arange` gives by itself.",
        "你的距离是 int32。题目要求 int64，也就是 `torch.arange` 默认的类型。",
    ),
    _mistake(
        "flat",
        _after(Tensor.flatten),
        "Your result is one long row. Each query should have a row of its own.",
        "你的结果是一长串。每个查询应当各占一行。",
    ),
)
"""The known mistakes of relative-distance."""
