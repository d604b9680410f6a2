"""Known mistakes of learned-position."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.exercises.declaration import Mistake
from autograder.reference import sinusoidal
from autograder.results import Text

Forward = Callable[[Any, Tensor, int], Tensor]
"""`(module, x, offset)` -> result. The module has `table` and `max_len`."""


def _refuse(module: Any, end: int) -> None:
    if end > module.max_len:
        raise ValueError(f"{end} positions, but max_len={module.max_len}")


def _checked(add: Forward) -> Forward:
    """`add`, after the check that the task asks for."""

    def run(module: Any, x: Tensor, offset: int) -> Tensor:
        _refuse(module, offset + x.shape[1])
        return add(module, x, offset)

    return run


def _rows(module: Any, x: Tensor, offset: int) -> Tensor:
    rows: Tensor = module.table.weight[offset : offset + x.shape[1]]
    return rows


def _right(module: Any, x: Tensor, offset: int) -> Tensor:
    return x + _rows(module, x, offset)


def _module(run: Forward, table: Callable[[int, int], Any] = nn.Embedding) -> type[nn.Module]:
    class LearnedPosition(nn.Module):
        def __init__(self, max_len: int, d_model: int) -> None:
            super().__init__()
            self.max_len = max_len
            self.table = table(max_len, d_model)
            self.dropout = nn.Dropout(0.1)

        def forward(self, x: Tensor, offset: int = 0) -> Tensor:
            return run(self, x, offset)

    return LearnedPosition


def _by_lookup(first: Callable[[int], int]) -> Forward:
    """Rows looked up by number, the first number made from the offset."""

    def add(module: Any, x: Tensor, offset: int) -> Tensor:
        start = first(offset)
        rows: Tensor = module.table(torch.arange(start, start + x.shape[1], device=x.device))
        return x + rows

    return _checked(add)


def _refusing_when(refused: Callable[[Any, Tensor, int], bool]) -> Forward:
    """Right rows, behind a check that refuses when `refused` says so."""

    def run(module: Any, x: Tensor, offset: int) -> Tensor:
        if refused(module, x, offset):
            raise ValueError(f"offset={offset} does not fit max_len={module.max_len}")
        return _right(module, x, offset)

    return run


def _batch_as_positions(module: Any, x: Tensor, offset: int) -> Tensor:
    _refuse(module, offset + len(x))
    rows: Tensor = module.table.weight[offset : offset + len(x)]
    return x + rows[:, None]


def _length_of_the_batch(module: Any, x: Tensor, offset: int) -> Tensor:
    _refuse(module, offset + len(x))
    rows: Tensor = module.table.weight[offset : offset + len(x)]
    return x + rows


def _in_place(module: Any, x: Tensor, offset: int) -> Tensor:
    x += _rows(module, x, offset)
    return x


def _stretched(module: Any, x: Tensor, offset: int) -> Tensor:
    columns = module.table.weight.T[None]  # interpolate wants positions last
    return x + F.interpolate(columns, size=x.shape[1], mode="linear")[0].T


def _centred(module: Any, x: Tensor, offset: int) -> Tensor:
    table: Tensor = module.table.weight - module.table.weight.mean(0)
    return x + table[offset : offset + x.shape[1]]


def _on_the_cpu(module: Any, x: Tensor, offset: int) -> Tensor:
    # A "meta" tensor has no values to bring to the CPU; the result only has to be there.
    return torch.zeros(x.shape, dtype=x.dtype) if x.is_meta else _right(module, x, offset).cpu()


class _Sinusoidal(nn.Module):
    encoding: Tensor

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.max_len = max_len
        table = sinusoidal.sinusoidal_encoding(max_len, d_model + d_model % 2)[:, :d_model]
        self.register_buffer("encoding", table, persistent=False)

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        _refuse(self, offset + x.shape[1])
        return x + self.encoding[offset : offset + x.shape[1]]


class _BareParameter(nn.Module):
    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.table = nn.Parameter(torch.randn(max_len, d_model))

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        _refuse(self, offset + x.shape[1])
        return x + self.table[offset : offset + x.shape[1]]


class _OtherName(nn.Module):
    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.position_embeddings = nn.Embedding(max_len, d_model)

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        _refuse(self, offset + x.shape[1])
        return x + self.position_embeddings.weight[offset : offset + x.shape[1]]


def _mistake(slug: str, module: type[nn.Module], en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"LearnedPosition": module})


LEARNED_POSITION = (
    _mistake(
        "sizes-swapped",
        _module(_checked(_right), lambda max_len, d_model: nn.Embedding(d_model, max_len)),
        "The two sizes of your table are swapped: it has one row for each feature. Ask what a row of the table is "
        "added to.",
        "表的两个大小写反了：现在每个特征占一行。想一想：表的一行是要加到什么上面的？",
    ),
    _mistake(
        "sizes-swapped-and-looked-up",
        _module(_by_lookup(lambda offset: offset), lambda max_len, d_model: nn.Embedding(d_model, max_len)),
        "The two sizes of your table are swapped: it has one row for each feature, so look-ups run past its end. Ask "
        "what a row of the table is added to.",
        "表的两个大小写反了：现在每个特征占一行，所以查表会越界。想一想：表的一行是要加到什么上面的？",
    ),
    _mistake(
        "positions-from-one",
        _module(_by_lookup(lambda offset: offset + 1)),
        "Your first position takes the second row of the table. Positions count from 0; the last row counts too.",
        "第一个位置取到的是表的第二行。位置从 0 数起；最后一行也要用得到。",
    ),
    _mistake(
        "offset-ignored",
        _module(_checked(lambda module, x, offset: x + module.table.weight[: x.shape[1]])),
        "`offset` changes nothing: a sequence that starts later gets the rows of the beginning. Follow the argument "
        "through your code.",
        "`offset` 没有起作用：从后面开始的序列，取到的仍是表的开头几行。请顺着这个参数检查代码。",
    ),
    _mistake(
        "offset-one-too-many",
        _module(_by_lookup(lambda offset: offset + 1 if offset else 0)),
        "With an offset you take one row too late. If 5 tokens came before, the next one has the position after "
        "theirs: write down the numbers from the very first token on.",
        "有 offset 时，你取的行晚了一行。前面若已有 5 个 token，下一个紧接其后：请从第一个 token 起把编号写出来看看。",
    ),
    _mistake(
        "offset-one-too-few",
        _module(_by_lookup(lambda offset: offset - 1 if offset else 0)),
        "With an offset you take one row too early: `offset` is itself the position of the first token of x.",
        "有 offset 时，你取的行早了一行：`offset` 本身就是 x 里第一个 token 的位置。",
    ),
    _mistake(
        "end-stays-behind",
        _module(_checked(lambda module, x, offset: x + module.table.weight[offset : x.shape[1]])),
        "Your slice starts at `offset` and still ends where it would end without one, so it has too few rows.",
        "切片从 `offset` 开始，终点却还是没有 offset 时的终点，所以取到的行数不够。",
    ),
    _mistake(
        "end-not-checked",
        _module(_right),
        "Past the end of the table you raise no ValueError. Whatever happens instead (another error, rows used twice) "
        "hides what is wrong. Check before you take the rows.",
        "超出表的末尾时，你没有抛出 ValueError。改为发生的别的事情（别的异常，或者重复使用某些行）会掩盖问题。"
        "请在取行之前检查。",
    ),
    _mistake(
        "last-row-refused",
        _module(_refusing_when(lambda module, x, offset: offset + x.shape[1] >= module.max_len)),
        "A sequence that ends exactly on the last row is refused. It still fits: check the comparison in your `if`.",
        "恰好用到最后一行的序列被拒绝了。它还放得下：请检查 `if` 里的比较。",
    ),
    _mistake(
        "one-past-the-end-accepted",
        _module(_refusing_when(lambda module, x, offset: offset + x.shape[1] > module.max_len + 1)),
        "Your check refuses sequences that are far too long, and lets through one that is too long by a single row.",
        "太长的序列会被拒绝，只多出一行的却放行了。请检查比较的边界。",
    ),
    _mistake(
        "check-without-offset",
        _module(_refusing_when(lambda module, x, offset: x.shape[1] > module.max_len)),
        "Your check looks at the length alone. A short sequence that starts late runs past the end too.",
        "你的检查只看长度。从很靠后的位置开始的短序列，也会超出末尾。",
    ),
    _mistake(
        "check-of-offset-alone",
        _module(_refusing_when(lambda module, x, offset: offset >= module.max_len)),
        "Your check looks at the first position alone. The last one decides whether the sequence fits.",
        "你的检查只看第一个位置。放不放得下，要看最后一个位置。",
    ),
    _mistake(
        "batch-taken-for-positions",
        _module(_batch_as_positions),
        "All tokens of one sentence get the same row, and each sentence another: you count along the batch. Which axis "
        "of x holds the positions?",
        "同一句话里的所有 token 加的是同一行，不同的句子加不同的行：你是沿着 batch 轴数的。x 的哪个轴才是位置？",
    ),
    _mistake(
        "length-taken-from-the-batch",
        _module(_length_of_the_batch),
        "You take as many rows as there are sentences, not as there are tokens. `len(x)` is the size of the first "
        "axis.",
        "你取的行数等于句子的个数，而不是 token 的个数。`len(x)` 是第一个轴的大小。",
    ),
    _mistake(
        "whole-table-added",
        _module(_checked(lambda module, x, offset: x + module.table.weight)),
        "You add the whole table. It fits only a sequence of exactly max_len tokens.",
        "你加上的是整张表。只有恰好 max_len 个 token 的序列才对得上。",
    ),
    _mistake(
        "padding-row",
        _module(
            _by_lookup(lambda offset: offset),
            lambda max_len, d_model: nn.Embedding(max_len, d_model, padding_idx=0),
        ),
        "The row of position 0 is never trained: `padding_idx` freezes a row. Position 0 is a position like any other.",
        "位置 0 的那一行永远得不到训练：`padding_idx` 会冻结一行。位置 0 和别的位置一样，是正常的位置。",
    ),
    _mistake(
        "table-not-trained",
        _module(_checked(lambda module, x, offset: x + _rows(module, x, offset).detach())),
        "No gradient arrives at the table, so it stays random for ever. Look for `.data`, `.detach()`, `no_grad` or a "
        "frozen table.",
        "没有梯度传到表上，它会永远停在随机值。请查找 `.data`、`.detach()`、`no_grad`，或者被冻结的表。",
    ),
    _mistake(
        "table-centred",
        _module(_checked(_centred)),
        "The mean of the table is subtracted, so every row takes part in every result, and all of them are trained at "
        "each step. Only the rows used should be.",
        "你先减去了整张表的平均，于是每一行都参与每个结果，每一步所有的行都会被训练。应当只有用到的行才被训练。",
    ),
    _mistake(
        "table-stretched",
        _module(_checked(_stretched)),
        "The whole table is stretched or squeezed to the length of x, as vision models do with images of another "
        "size. Here a position keeps its row whatever the length.",
        "你把整张表拉伸或压缩到了 x 的长度，像视觉模型处理不同大小的图片那样。这里无论长度是多少，"
        "每个位置都用自己的那一行。",
    ),
    _mistake(
        "sinusoidal-instead-of-learned",
        _Sinusoidal,
        "Your table holds sines and cosines and can't be trained: the module has no parameter. Here the rows are "
        "learned.",
        "你的表里是正弦和余弦，不能训练：这个模块没有参数。这里的每一行都是学出来的。",
    ),
    _mistake(
        "bare-parameter",
        _BareParameter,
        "The trained numbers stand in the state as `table`, and the task names them `table.weight`. Which module of "
        "`torch.nn` is a table with a weight?",
        "可训练的数在 state 里名叫 `table`，而题目要求的名字是 `table.weight`。`torch.nn` 里哪个模块就是一张带 weight "
        "的表？",
    ),
    _mistake(
        "another-name",
        _OtherName,
        "The module works, but its table has another name in the state than the task gives it. Saved weights are found "
        "by name.",
        "模块能用，但表在 state 里的名字和题目规定的不同。保存的权重是按名字找的。",
    ),
    _mistake(
        "input-scaled",
        _module(_checked(lambda module, x, offset: math.sqrt(x.shape[-1]) * x + _rows(module, x, offset))),
        "x is scaled before the rows are added. That belongs to the token embedding of lesson 03, not here.",
        "加上表的行之前，x 被放大了。那是第 03 课词嵌入里的步骤，不属于这里。",
    ),
    _mistake(
        "rows-scaled",
        _module(_checked(lambda module, x, offset: x + math.sqrt(x.shape[-1]) * _rows(module, x, offset))),
        "The rows are scaled before they are added. They are trained: they find their own size.",
        "表的行在相加之前被放大了。它们是学出来的，大小由训练决定。",
    ),
    _mistake(
        "input-missing",
        _module(_checked(_rows)),
        "You return the rows of the table alone. What happened to x?",
        "你只返回了表的行。x 到哪里去了？",
    ),
    _mistake(
        "concatenated",
        _module(_checked(lambda module, x, offset: torch.cat([x, _rows(module, x, offset).expand_as(x)], dim=-1))),
        "Your result is twice as wide as x: the rows stand beside it. Look again at the sign between the two in the "
        "task.",
        "你的结果比 x 宽一倍：表的行接在了旁边。请再看一眼题目里两者之间是什么运算。",
    ),
    _mistake(
        "multiplied",
        _module(_checked(lambda module, x, offset: x * _rows(module, x, offset))),
        "x is multiplied by the rows. Look again at the sign between the two in the task.",
        "x 和表的行做了乘法。请再看一眼题目里两者之间是什么运算。",
    ),
    _mistake(
        "dropout-added",
        _module(_checked(lambda module, x, offset: module.dropout(_right(module, x, offset)))),
        "Some of your values are zero and the others too large: there is a dropout. This module has none.",
        "你的结果有些是零，其余的偏大：里面用了 dropout。这个模块不需要它。",
    ),
    _mistake(
        "input-changed",
        _module(_checked(_in_place)),
        "x is different after the call: `+=` writes into the tensor that was handed to you.",
        "调用之后 x 变了：`+=` 会直接写进传入的张量。",
    ),
    _mistake(
        "always-float32",
        _module(_checked(lambda module, x, offset: _right(module, x, offset).float())),
        "The result is float32 whatever x is. It should have the dtype of x.",
        "无论 x 是什么 dtype，结果都是 float32。它应当与 x 的 dtype 一致。",
    ),
    _mistake(
        "moved-to-the-cpu",
        _module(_checked(_on_the_cpu)),
        "The result doesn't stay on the device of x. Look for `.cpu()`, or for a new tensor made without a device.",
        "结果没有留在 x 所在的设备上。请查找 `.cpu()`，或者新建张量时没有指定设备的地方。",
    ),
)
"""The known mistakes of learned-position."""
