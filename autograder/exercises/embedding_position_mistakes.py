"""Lesson 03: wrong position modules that people really write, and what to tell them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from autograder.exercises.declaration import Mistake
from autograder.reference.embedding import SinusoidalPosition
from autograder.reference.sinusoidal import sinusoidal_encoding
from autograder.results import Text


class _Position(SinusoidalPosition):
    """The reference in parts: the check, the rows that are added, and how they are added."""

    def check(self, offset: int, length: int) -> None:
        if offset + length > self.max_len:
            raise ValueError(f"offset + length = {offset + length} is past max_len = {self.max_len}")

    def rows(self, x: Tensor, offset: int) -> Tensor:
        return self.encoding[offset : offset + x.shape[1]]

    def add(self, x: Tensor, rows: Tensor) -> Tensor:
        return x + rows.to(x.dtype)

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        self.check(offset, x.shape[1])
        return self.add(x, self.rows(x, offset))


def _with_rows(pick: Callable[[Tensor, Tensor, int], Tensor]) -> type[nn.Module]:
    """`pick` takes rows of the encoding for x and offset."""

    class Position(_Position):
        def rows(self, x: Tensor, offset: int) -> Tensor:
            return pick(self.encoding, x, offset)

    return Position


def _adding(add: Callable[[Tensor, Tensor], Tensor]) -> type[nn.Module]:
    """`add` makes the result of x and the rows of the encoding."""

    class Position(_Position):
        def add(self, x: Tensor, rows: Tensor) -> Tensor:
            return add(x, rows)

    return Position


def _checking(refused: Callable[[int, int, int], bool]) -> type[nn.Module]:
    """`refused` says for offset, length and max_len whether there is an error."""

    class Position(_Position):
        def check(self, offset: int, length: int) -> None:
            if refused(offset, length, self.max_len):
                raise ValueError(f"offset + length = {offset + length} is past max_len = {self.max_len}")

    return Position


class _OwnTable(_Position):
    """The encoding is kept by `keep` instead of a non-persistent buffer of the right shape."""

    def __init__(self, d_model: int, max_len: int = 5000, base: float = 10000.0) -> None:
        nn.Module.__init__(self)
        self.max_len = max_len
        self.keep(sinusoidal_encoding(max_len, d_model, base))

    def keep(self, encoding: Tensor) -> None:
        raise NotImplementedError


class _Parameter(_OwnTable):
    def keep(self, encoding: Tensor) -> None:
        self.encoding = nn.Parameter(encoding)


class _PersistentBuffer(_OwnTable):
    def keep(self, encoding: Tensor) -> None:
        self.register_buffer("encoding", encoding)


class _Attribute(_OwnTable):
    def keep(self, encoding: Tensor) -> None:
        self.encoding = encoding


class _ExtraAxis(_OwnTable):
    def keep(self, encoding: Tensor) -> None:
        self.register_buffer("encoding", encoding[None], persistent=False)

    def rows(self, x: Tensor, offset: int) -> Tensor:
        return self.encoding[0, offset : offset + x.shape[1]]


class _OtherName(_OwnTable):
    pe: Tensor

    def keep(self, encoding: Tensor) -> None:
        self.register_buffer("pe", encoding, persistent=False)

    def rows(self, x: Tensor, offset: int) -> Tensor:
        return self.pe[offset : offset + x.shape[1]]


class _BaseIgnored(_Position):
    def __init__(self, d_model: int, max_len: int = 5000, base: float = 10000.0) -> None:
        super().__init__(d_model, max_len)


class _MaxLenIgnored(_Position):
    def __init__(self, d_model: int, max_len: int = 5000, base: float = 10000.0) -> None:
        super().__init__(d_model, base=base)


class _OffsetRemembered(_Position):
    seen = 0

    def rows(self, x: Tensor, offset: int) -> Tensor:
        start = offset or self.seen
        self.seen = start + x.shape[1]
        return self.encoding[start : start + x.shape[1]]


class _HalvesInsteadOfPairs(_Position):
    def __init__(self, d_model: int, max_len: int = 5000, base: float = 10000.0) -> None:
        super().__init__(d_model, max_len, base)
        self.encoding = torch.cat([self.encoding[:, 0::2], self.encoding[:, 1::2]], dim=1)


def _written_into(x: Tensor, rows: Tensor) -> Tensor:
    if not x.requires_grad:
        x += rows.to(x.dtype)
        return x
    return x + rows.to(x.dtype)


def _mistake(slug: str, answer: Any, en: str, zh: str) -> Mistake:
    return Mistake(slug=slug, message=Text(en=en, zh=zh), answers={"SinusoidalPosition": answer})


SINUSOIDAL_POSITION = (
    _mistake(
        "encoding-is-a-parameter",
        _Parameter,
        "The encoding is a parameter: it counts among what is learned, and is saved with the weights. It is computed, "
        "not learned. Modules have another kind of tensor that moves with them.",
        "位置编码成了参数：它被算作要学习的东西，也会和权重一起保存。它是算出来的，不是学出来的。"
        "模块另有一种会随模块移动的张量。",
    ),
    _mistake(
        "buffer-is-saved",
        _PersistentBuffer,
        "The encoding is a buffer, and it is saved with the weights: checkpoints grow, and fit one max_len only. What "
        "can be computed again needn't be saved; look at the arguments of register_buffer.",
        "位置编码是 buffer，但会和权重一起保存：存档变大，而且只适合一种 max_len。能重新算出来的就不必保存；"
        "请看 register_buffer 的参数。",
    ),
    _mistake(
        "encoding-left-behind",
        _Attribute,
        "The encoding is an ordinary attribute, so the module doesn't know it: when the model moves to another device, "
        "it stays behind. It has to be registered.",
        "位置编码只是普通属性，模块不知道它的存在：模型移到别的设备时，它留在原地。需要把它登记到模块里。",
    ),
    _mistake(
        "buffer-has-an-extra-axis",
        _ExtraAxis,
        "The sums are right, but the buffer has one axis too many. A table of positions has rows and columns; adding "
        "it to a batch needs no axis of its own.",
        "加得对，但 buffer 多了一个轴。位置表只有行和列；加到一个 batch 上并不需要再添一个轴。",
    ),
    _mistake(
        "other-buffer-name",
        _OtherName,
        "The sums are right, but no buffer has the name that the task gives. Attributes have to be named exactly as "
        "asked.",
        "加得对，但没有一个 buffer 叫题目给出的名字。属性名必须与题目完全一致。",
    ),
    _mistake(
        "wrong-axis",
        _with_rows(lambda encoding, x, offset: encoding[offset : offset + x.shape[0], None]),
        "Each sequence of the batch gets its own number, and all its positions the same one. That is code for inputs "
        "with the length first; here the batch is.",
        "batch 里的每个序列各得一个编号，而序列内所有位置的编号都一样。那是长度轴在前的写法；这里 batch 在前。",
    ),
    _mistake(
        "offset-ignored",
        _with_rows(lambda encoding, x, offset: encoding[: x.shape[1]]),
        "Offset changes nothing: every call starts again at position 0. When a model writes one token at a time, each "
        "would stand in first place.",
        "offset 没有起作用：每次调用都从位置 0 重新开始。模型逐个生成 token 时，每个 token 都会站在第一位。",
    ),
    _mistake(
        "end-not-moved",
        _with_rows(lambda encoding, x, offset: encoding[offset : x.shape[1]]),
        "The slice starts at the offset, but its end stays where it was, so there are too few rows or none. A slice "
        "names its two ends, not an end and a size.",
        "切片从 offset 开始，终点却没有移动，于是行数太少，甚至一行也没有。切片写的是两端，而不是起点和长度。",
    ),
    _mistake(
        "offset-one-short",
        _with_rows(lambda encoding, x, offset: encoding[max(offset - 1, 0) :][: x.shape[1]]),
        "With an offset, every vector gets the number of its left neighbour. Offset says how many came before; count "
        "from 0 what number the next one has.",
        "有 offset 时，每个向量拿到的都是左边邻居的编号。offset 表示前面已经有多少个；从 0 数起，下一个是几号？",
    ),
    _mistake(
        "positions-from-one",
        _with_rows(lambda encoding, x, offset: encoding.roll(-1, 0)[offset : offset + x.shape[1]]),
        "Your first position is number 1. In this course positions count from 0.",
        "你的第一个位置是 1 号。本课程的位置从 0 数起。",
    ),
    _mistake(
        "offset-remembered",
        _OffsetRemembered,
        "The module remembers where the last call ended and goes on from there. One sequence must not change the "
        "positions of the next: only the argument says where a call starts.",
        "模块记住了上一次调用结束的地方，并从那里继续。一个序列不应影响下一个序列的位置：从哪里开始，只由参数决定。",
    ),
    _mistake(
        "one-row-for-all",
        _with_rows(lambda encoding, x, offset: encoding[offset : offset + 1]),
        "All positions get the same row, that of the first one. Look at how many rows your slice takes.",
        "所有位置得到的都是同一行，即第一个位置的那行。请看你的切片取了几行。",
    ),
    _mistake(
        "reversed",
        _with_rows(lambda encoding, x, offset: encoding[offset : offset + x.shape[1]].flip(0)),
        "The positions run backwards: the last vector gets the number of the first one.",
        "位置是倒着数的：最后一个向量得到了第一个的编号。",
    ),
    _mistake(
        "end-unchecked",
        _checking(lambda offset, length, max_len: False),
        "Past the end of the table there is no clear error: the slice is quietly shorter than the input. Compare the "
        "last position with max_len before you add.",
        "超出表的末尾时没有明确的报错：切片只是悄悄变短了。相加之前，请把最后的位置与 max_len 比较。",
    ),
    _mistake(
        "last-position-refused",
        _checking(lambda offset, length, max_len: offset + length >= max_len),
        "An input that just fits is refused. A table with n rows has room for n positions: look at the edge of your "
        "comparison.",
        "刚好放得下的输入也被拒绝了。有 n 行的表容得下 n 个位置：请看你比较时的边界。",
    ),
    _mistake(
        "length-alone-checked",
        _checking(lambda offset, length, max_len: length > max_len),
        "The check looks at the length alone. With an offset, a short input can run past the end too.",
        "检查时只看了长度。有 offset 时，短的输入也可能越过末尾。",
    ),
    _mistake(
        "offset-alone-checked",
        _checking(lambda offset, length, max_len: offset >= max_len or length > max_len),
        "The check looks at where the input starts. It can start inside the table and end outside.",
        "检查时只看了输入从哪里开始。它可能从表内开始，却在表外结束。",
    ),
    _mistake(
        "max-len-ignored",
        _MaxLenIgnored,
        "The table has 5000 rows whatever max_len says. That is only the default.",
        "无论 max_len 是多少，表都有 5000 行。那只是默认值。",
    ),
    _mistake(
        "base-ignored",
        _BaseIgnored,
        "Base changes nothing: it doesn't reach the function that makes the table.",
        "base 没有起作用：它没有传到生成表的那个函数。",
    ),
    _mistake(
        "halves-instead-of-neighbours",
        _HalvesInsteadOfPairs,
        "All sines stand in the first half of the columns and all cosines in the second. In this lesson the two of a "
        "pair are neighbours.",
        "所有正弦在前一半列，所有余弦在后一半列。在这一课里，一对中的两列相邻。",
    ),
    _mistake(
        "lifted-to-float32",
        _adding(lambda x, rows: x + rows),
        "The input is in half precision and the result in float32: the sum took the dtype of the table. From here on "
        "the whole model would run in float32, or stop with an error.",
        "输入是半精度，结果却是 float32：和的 dtype 跟着表走了。这样一来，后面的模型要么都用 float32，要么报错。",
    ),
    _mistake(
        "float32-forced",
        _adding(lambda x, rows: (x + rows).float()),
        "The result is always float32. The task asks for the dtype of x, also when it is float64.",
        "结果总是 float32。题目要求与 x 的 dtype 相同，x 为 float64 时也一样。",
    ),
    _mistake(
        "x-changed-in-place",
        _adding(_written_into),
        "The sums are right, but they are written into the tensor that was handed in. Whoever still needs the "
        "embeddings finds them changed. Make a new tensor.",
        "加得对，但结果写进了传入的张量。还要用词嵌入的人会发现它被改动了。请生成一个新的张量。",
    ),
    _mistake(
        "gradient-cut",
        _adding(lambda x, rows: x.detach() + rows.to(x.dtype)),
        "The sums are right, but no gradient passes through to the input, so the embeddings below could not learn. "
        "It is enough that the encoding itself asks for none.",
        "加得对，但梯度传不到输入，下面的词嵌入就学不到东西。只要编码本身不要求梯度就够了。",
    ),
    _mistake(
        "encoding-alone",
        _adding(lambda x, rows: rows.to(x.dtype).expand_as(x) + 0 * x),
        "The result holds the positions alone: the input is gone. Who you are and where you are belong together.",
        "结果里只有位置，输入不见了。“你是谁”和“你在哪里”要合在一起。",
    ),
    _mistake(
        "concatenated",
        _adding(lambda x, rows: torch.cat([x, rows.to(x.dtype).expand_as(x)], dim=-1)),
        "The encoding is put beside the input, which doubles the width. The task asks for a sum.",
        "编码被拼接在输入旁边，宽度翻了一倍。题目要的是相加。",
    ),
    _mistake(
        "multiplied",
        _adding(lambda x, rows: x * rows.to(x.dtype)),
        "The encoding multiplies the input, and wipes out what meets a zero. The task asks for a sum.",
        "编码与输入相乘了，遇到零的地方，输入就被抹掉。题目要的是相加。",
    ),
    _mistake(
        "scaled-here-too",
        _adding(lambda x, rows: x * math.sqrt(x.shape[-1]) + rows.to(x.dtype)),
        "The input is scaled before the sum. That is the job of the embedding, and has been done when vectors come "
        "here.",
        "相加之前，输入又被缩放了。缩放是词嵌入的工作，向量到这里时已经做过了。",
    ),
)
