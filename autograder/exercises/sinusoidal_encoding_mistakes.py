"""Known mistakes of encode-position and sinusoidal-encoding: the same rows, once one by one and once as a table."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.exercises.declaration import Mistake
from autograder.exercises.sinusoidal_frequency_mistakes import FREQUENCY_MISTAKES, Frequencies, pairs, width_mistakes
from autograder.reference import sinusoidal
from autograder.results import Text

Rows = Callable[[Tensor, int, float], Tensor]
"""`(positions (n,) float64, d_model, base)` -> `(n, d_model)`, for a d_model that is even and at least 2."""


def interleave(angle: Tensor) -> Tensor:
    """Angles `(n, d_model // 2)` -> rows `(n, d_model)`."""
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


def angles(position: Tensor, d_model: int, base: float) -> Tensor:
    return torch.outer(position, sinusoidal.pair_frequencies(d_model, base))


def _rows_of(frequencies: Frequencies) -> Rows:
    return lambda position, d, base: interleave(torch.outer(position, frequencies(d, base)))


def _own_exponents(position: Tensor, d: int, base: float, factor: float) -> Tensor:
    """Every column has its own exponent, `factor` times its number; even columns sine, odd ones cosine."""
    column = torch.arange(d, dtype=torch.float64)
    angle = torch.outer(position, base ** (-factor * column / d))
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


def _swapped(position: Tensor, d: int, base: float) -> Tensor:
    angle = angles(position, d, base)
    return torch.stack([angle.cos(), angle.sin()], dim=-1).flatten(1)


def _sine_twice(position: Tensor, d: int, base: float) -> Tensor:
    return angles(position, d, base).sin().repeat_interleave(2, dim=1)


def _odd_columns_empty(position: Tensor, d: int, base: float) -> Tensor:
    rows = torch.zeros(len(position), d, dtype=torch.float64)
    rows[:, 0::2] = angles(position, d, base).sin()
    return rows


def _all_columns_into_half(position: Tensor, d: int, base: float) -> Tensor:
    rows = torch.zeros(len(position), d, dtype=torch.float64)
    rows[:, 0::2] = torch.outer(position, base ** (-torch.arange(d, dtype=torch.float64) / d)).sin()
    return rows


_ROWS: tuple[tuple[str, Rows, Text], ...] = (
    (
        "cosine-with-its-own-exponent",
        lambda position, d, base: _own_exponents(position, d, base, factor=1.0),
        Text(
            en="The two columns of a pair turn at different speeds: your cosine columns use an exponent of their own. "
            "Look at what the formula puts into sine and into cosine.",
            zh="同一对的两列转速不同：你的余弦列用了自己的指数。请看公式里正弦和余弦括号中各是什么。",
        ),
    ),
    (
        "every-column-its-own-pair",
        lambda position, d, base: _own_exponents(position, d, base, factor=2.0),
        Text(
            en="Every column has an exponent of its own, made from the column number as if it were a pair number. Ask "
            "what the two columns of a pair share, and which number names the pair.",
            zh="每一列都用了自己的指数，而且把列号当成了对的序号。请想一想：一对的两列共用什么，哪个数才是对的序号？",
        ),
    ),
    (
        "sine-and-cosine-swapped",
        _swapped,
        Text(
            en="Sine and cosine have changed places. Check which of the two goes into the even columns, counting "
            "columns "
            "from 0.",
            zh="正弦和余弦换了位置。列从 0 数起，请检查偶数列放的是哪一个。",
        ),
    ),
    (
        "halves-instead-of-neighbours",
        lambda position, d, base: torch.cat([f(angles(position, d, base)) for f in (torch.sin, torch.cos)], dim=-1),
        Text(
            en="All sines come first and all cosines after them. Here the two columns of a pair are neighbours: look "
            "at "
            "how you join sines and cosines.",
            zh="所有正弦排在前面，所有余弦排在后面。这里一对的两列应当相邻：请看看你是怎样把正弦和余弦拼起来的。",
        ),
    ),
    (
        "positions-from-one",
        lambda position, d, base: interleave(angles(position + 1, d, base)),
        Text(
            en="You encode the position after the one that is asked for. Positions count from 0.",
            zh="你编码的是所求位置的下一个位置。位置从 0 数起。",
        ),
    ),
    (
        "degrees-instead-of-radians",
        lambda position, d, base: interleave(angles(position, d, base).deg2rad()),
        Text(
            en="Your hands turn far too slowly, all by the same factor: somewhere the angles are taken for degrees. "
            "They "
            "are in radians already.",
            zh="你的指针都转得太慢，而且慢的倍数相同：某处把角度当成了度数。它们本来就是弧度。",
        ),
    ),
    (
        "sine-in-every-column",
        _sine_twice,
        Text(
            en="The odd columns hold sines too. Look for the place where they should get something else.",
            zh="奇数列里也是正弦。请找到本该给它们放别的东西的地方。",
        ),
    ),
    (
        "odd-columns-empty",
        _odd_columns_empty,
        Text(
            en="The odd columns are still zero: nothing was written into them. Check the slice that you assign to.",
            zh="奇数列仍然是零：没有写入任何东西。请检查你赋值的切片。",
        ),
    ),
    (
        "all-columns-into-half",
        _all_columns_into_half,
        Text(
            en="You assign to every second column, but on the right-hand side there is another number of angles. "
            "Count: "
            "how many angles has one position, and how many columns get a sine?",
            zh="你给隔一取一的列赋值，可右边角度的个数对不上。请数一数：一个位置有几个角度，有几列要放正弦？",
        ),
    ),
)


def _encode(rows: Rows) -> Callable[..., Tensor]:
    def encode_position(position: int, d_model: int, base: float = 10000.0) -> Tensor:
        sinusoidal.pair_frequencies(d_model, base)
        return rows(torch.tensor([position], dtype=torch.float64), d_model, base)[0].float()

    return encode_position


def _encode_with(check: Callable[[int], object]) -> Callable[..., Tensor]:
    def encode_position(position: int, d_model: int, base: float = 10000.0) -> Tensor:
        check(d_model)
        frequencies = base ** (-2.0 * pairs(max(d_model, 0)) / max(d_model, 1))
        return interleave(position * frequencies[None])[0].float()

    return encode_position


def _encoding(slug: str, answer: Callable[..., Tensor], en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"encode_position": answer})


ENCODE_POSITION = (
    *(Mistake(slug, text, {"encode_position": _encode(rows)}) for slug, rows, text in _ROWS),
    *(m.behind("encode_position", _encode(_rows_of(m.frequencies))) for m in FREQUENCY_MISTAKES),
    _encoding(
        "float64-result",
        lambda position, d_model, base=10000.0: sinusoidal.encode_position(position, d_model, base).double(),
        "The result is float64. Computing in double precision is fine; convert once, at the end.",
        "结果是 float64。用双精度计算没有问题，最后转换一次即可。",
    ),
    _encoding(
        "row-with-an-extra-axis",
        lambda position, d_model, base=10000.0: sinusoidal.encode_position(position, d_model, base)[None],
        "The numbers stand in a matrix with one row. One position is one row of numbers: one axis only.",
        "结果是只有一行的矩阵。一个位置就是一行数，只应有一个轴。",
    ),
    *width_mistakes("encode_position", _encode_with),
)
"""The known mistakes of encode-position."""


def _table(rows: Rows) -> Callable[..., Tensor]:
    def sinusoidal_encoding(
        n_positions: int,
        d_model: int,
        base: float = 10000.0,
        device: str | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        sinusoidal.pair_frequencies(d_model, base)
        return rows(torch.arange(n_positions, dtype=torch.float64), d_model, base).to(dtype).to(device)

    return sinusoidal_encoding


def _table_with(check: Callable[[int], object]) -> Callable[..., Tensor]:
    def sinusoidal_encoding(
        n_positions: int,
        d_model: int,
        base: float = 10000.0,
        device: str | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        check(d_model)
        frequencies = base ** (-2.0 * pairs(max(d_model, 0)) / max(d_model, 1))
        angle = torch.outer(torch.arange(n_positions, dtype=torch.float64), frequencies)
        return interleave(angle).to(dtype).to(device)

    return sinusoidal_encoding


def _half(angle_in: Callable[[Tensor, Tensor, torch.dtype], Tensor]) -> Callable[..., Tensor]:
    """A table with the angles `angle_in(positions, frequencies, dtype)`, both float32; right in float32 and float64."""

    def sinusoidal_encoding(
        n_positions: int,
        d_model: int,
        base: float = 10000.0,
        device: str | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        frequencies = sinusoidal.pair_frequencies(d_model, base).float()
        angle = angle_in(torch.arange(n_positions, dtype=torch.float32)[:, None], frequencies, dtype)
        return interleave(angle).to(dtype).to(device)

    return sinusoidal_encoding


def _tabulation(slug: str, answer: Callable[..., Tensor], en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"sinusoidal_encoding": answer})


_right = sinusoidal.sinusoidal_encoding

SINUSOIDAL_ENCODING = (
    *(Mistake(slug, text, {"sinusoidal_encoding": _table(rows)}) for slug, rows, text in _ROWS),
    *(m.behind("sinusoidal_encoding", _table(_rows_of(m.frequencies))) for m in FREQUENCY_MISTAKES),
    _tabulation(
        "stacked-along-the-wrong-axis",
        _table(
            lambda position, d, base: torch.stack(
                [f(angles(position, d, base)) for f in (torch.sin, torch.cos)]
            ).reshape(-1, d)
        ),
        "The shape is right and the numbers are in the wrong places: sines and cosines were stacked along the first "
        "axis, "
        "and the reshape mixed the rows. Print a small table and look where its numbers went.",
        "形状是对的，但数放错了地方：正弦和余弦沿第一个轴堆叠，reshape 之后各行混在了一起。"
        "请打印一个小表，看看数都跑到哪里去了。",
    ),
    _tabulation(
        "position-as-fraction-of-the-length",
        _table(lambda position, d, base: interleave(angles(position / max(len(position) - 1, 1), d, base))),
        "The positions are squeezed into the range from 0 to 1, so the step depends on the length of the table. A "
        "position "
        "is its number.",
        "位置被压缩到了 0 到 1 之间，于是步长随表的长度而变。位置就是它的序号。",
    ),
    _tabulation(
        "transposed",
        lambda n_positions, *args, **kwargs: _right(n_positions, *args, **kwargs).T,
        "Rows and columns have changed places: positions run along the second axis. Each row should be one position.",
        "行和列颠倒了：位置排在了第二个轴上。每一行应当是一个位置。",
    ),
    _tabulation(
        "batch-axis-added",
        lambda n_positions, *args, **kwargs: _right(n_positions, *args, **kwargs)[None],
        "There is an extra axis of size 1 in front. This function returns a plain table; a batch axis comes later.",
        "最前面多了一个大小为 1 的轴。这个函数返回的就是一张表，batch 轴以后才用得到。",
    ),
    _tabulation(
        "always-float64",
        lambda n_positions, d_model, base=10000.0, device=None, dtype=torch.float32: _right(
            n_positions, d_model, base, device, torch.float64
        ),
        "The result is float64 whatever `dtype` says. Computing in double precision is fine; convert the result.",
        "无论 `dtype` 是什么，结果都是 float64。用双精度计算没有问题，但结果要转换。",
    ),
    _tabulation(
        "dtype-ignored",
        lambda n_positions, d_model, base=10000.0, device=None, dtype=torch.float32: _right(
            n_positions, d_model, base, device
        ),
        "The argument `dtype` changes nothing: your result has its default dtype always.",
        "参数 `dtype` 不起作用：你的结果总是默认的 dtype。",
    ),
    _tabulation(
        "device-ignored",
        lambda n_positions, d_model, base=10000.0, device=None, dtype=torch.float32: _right(
            n_positions, d_model, base, None, dtype
        ),
        "The argument `device` changes nothing: your result stays on the default device.",
        "参数 `device` 不起作用：你的结果总在默认设备上。",
    ),
    _tabulation(
        "positions-in-half-precision",
        _half(lambda position, frequency, dtype: position.to(dtype) * frequency),
        "In a short dtype the positions themselves are rounded: large neighbours become the same number. Look at the "
        "dtype "
        "of your `arange`.",
        "在短的 dtype 里，位置本身就被舍入了：相邻的大位置变成了同一个数。请看看 `arange` 的 dtype。",
    ),
    _tabulation(
        "angles-in-half-precision",
        _half(lambda position, frequency, dtype: (position * frequency).to(dtype)),
        "The angles are rounded to `dtype` before sine and cosine see them. Ask what should be converted, and when.",
        "角度在求正弦、余弦之前就被舍入成了 `dtype`。请想一想：该转换的是什么，什么时候转换？",
    ),
    _tabulation(
        "everything-in-half-precision",
        _half(lambda position, frequency, dtype: position.to(dtype) * frequency.to(dtype)),
        "The whole computation runs in `dtype`, positions and frequencies included. A short dtype can hold the "
        "result, not "
        "the way to it.",
        "整个计算都在 `dtype` 里进行，连位置和频率也是。短的 dtype 装得下结果，却经不起计算过程。",
    ),
    *width_mistakes("sinusoidal_encoding", _table_with),
)
"""The known mistakes of sinusoidal-encoding."""
