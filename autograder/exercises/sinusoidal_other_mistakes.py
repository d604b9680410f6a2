"""Known mistakes of wavelengths, shift-matrix and position-similarity."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from autograder.exercises.declaration import Mistake
from autograder.exercises.sinusoidal_frequency_mistakes import FREQUENCY_MISTAKES, Frequencies
from autograder.reference import sinusoidal
from autograder.results import Text


def _waves(
    of: Callable[[Tensor], Tensor], frequencies: Frequencies = sinusoidal.pair_frequencies
) -> Callable[..., Tensor]:
    def wavelengths(d_model: int, base: float = 10000.0) -> Tensor:
        return of(frequencies(d_model, base))

    return wavelengths


def _wavelength(slug: str, of: Callable[[Tensor], Tensor], en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"wavelengths": _waves(of)})


WAVELENGTHS = (
    _wavelength(
        "multiplied-by-the-frequency",
        lambda frequency: 2 * math.pi * frequency,
        "The wavelengths shrink from pair to pair, but a slower hand needs more positions for a turn. Check whether "
        "you "
        "multiply or divide; if that is right, check that your frequencies fall.",
        "波长一对比一对短，可转得越慢的指针，转一圈需要的位置应当越多。请检查用的是乘还是除；如果没错，"
        "再检查频率是不是递减。",
    ),
    _wavelength(
        "radian-instead-of-turn",
        lambda frequency: 1 / frequency,
        "You count the positions for one radian. How many radians has a full turn?",
        "你算的是转过一弧度需要多少位置。一整圈是多少弧度？",
    ),
    _wavelength(
        "half-turn",
        lambda frequency: math.pi / frequency,
        "You count the positions for half a turn: after that the hand points the opposite way.",
        "你算的是转半圈需要多少位置：那时指针正好指向相反的方向。",
    ),
    _wavelength(
        "degrees-in-a-turn",
        lambda frequency: 360 / frequency,
        "You divide the degrees of a turn by a frequency in radians. Both have to be in one unit.",
        "你用一圈的度数去除以弧度制的频率。两者的单位必须一致。",
    ),
    _wavelength(
        "turns-per-position",
        lambda frequency: frequency / (2 * math.pi),
        "Upside down: you count turns per position, and the task asks for positions per turn.",
        "上下颠倒了：你算的是每个位置转多少圈，题目问的是转一圈要多少个位置。",
    ),
    _wavelength(
        "each-wavelength-twice",
        lambda frequency: (2 * math.pi / frequency).repeat_interleave(2),
        "Each wavelength stands there twice, once for each column. The result has one entry for each pair.",
        "每个波长都出现了两次，每列一次。结果里每一对只应有一个数。",
    ),
    _wavelength(
        "float32-wavelengths",
        lambda frequency: (2 * math.pi / frequency).float(),
        "The result is float32. The task asks for double precision.",
        "结果是 float32，而题目要求双精度。",
    ),
    *(
        mistake.behind("wavelengths", _waves(lambda frequency: 2 * math.pi / frequency, mistake.frequencies))
        for mistake in FREQUENCY_MISTAKES
        if mistake.slug != "multiplied-instead-of-divided"  # the same numbers as multiplied-by-the-frequency
    ),
)
"""The known mistakes of wavelengths."""


def _blocks(
    block: Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor, Tensor]],
    frequencies: Frequencies = sinusoidal.pair_frequencies,
    angle: Callable[[int, Tensor], Tensor] = lambda offset, frequency: offset * frequency,
    *,
    halves: bool = False,
) -> Callable[..., Tensor]:
    """A shift matrix from `block(sin, cos)`, the four entries of each pair's block, row by row."""

    def shift_matrix(offset: int, d_model: int, base: float = 10000.0) -> Tensor:
        turn = angle(offset, frequencies(d_model, base))
        first = torch.arange(d_model // 2) if halves else torch.arange(0, d_model, 2)
        second = first + (d_model // 2 if halves else 1)
        matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
        places = ((first, first), (first, second), (second, first), (second, second))
        for place, entry in zip(places, block(turn.sin(), turn.cos()), strict=True):
            matrix[place] = entry
        return matrix

    return shift_matrix


def _right_block(sine: Tensor, cosine: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return cosine, sine, -sine, cosine


def _loose_blocks(offset: int, d_model: int, base: float = 10000.0) -> Tensor:
    turn = offset * sinusoidal.pair_frequencies(d_model, base)
    return torch.stack([turn.cos(), turn.sin(), -turn.sin(), turn.cos()], dim=-1).reshape(-1, 2, 2)


def _shift(slug: str, answer: Callable[..., Tensor], en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"shift_matrix": answer})


SHIFT_MATRIX = (
    _shift(
        "turns-the-wrong-way",
        _blocks(lambda sine, cosine: (cosine, -sine, sine, cosine)),
        "Your matrix goes the same way in the other direction. A transposed matrix does that, and so does the textbook "
        "rotation: it is written for pairs in the order (cosine, sine). Check both against the addition theorems.",
        "你的矩阵移动的距离对了，方向反了。矩阵转置会这样；照搬教科书的旋转矩阵也会这样，"
        "因为它针对的是（余弦，正弦）的顺序。请对照两角和公式检查。",
    ),
    _shift(
        "sign-of-the-offset-lost",
        _blocks(_right_block, angle=lambda offset, frequency: abs(offset) * frequency),
        "A negative offset moves forward like a positive one. Somewhere on the way the sign gets lost.",
        "负的偏移也像正的一样往前移动了。符号在某一步丢掉了。",
    ),
    _shift(
        "minus-sign-missing",
        _blocks(lambda sine, cosine: (cosine, sine, sine, cosine)),
        "Your blocks are symmetric, and a hand changes its length. Check the signs against the two addition theorems.",
        "你的 2 × 2 块是对称的，指针的长度会变。请对照两条两角和公式，检查正负号。",
    ),
    _shift(
        "sine-and-cosine-swapped",
        _blocks(lambda sine, cosine: (sine, cosine, -cosine, sine)),
        "With offset 0 your matrix moves things: in the blocks, sine and cosine stand in each other's places.",
        "偏移为 0 时，你的矩阵也会移动：在各个块里，正弦和余弦站错了位置。",
    ),
    _shift(
        "cross-terms-missing",
        _blocks(lambda sine, cosine: (cosine, 0 * sine, 0 * sine, cosine)),
        "Your matrix has entries on the diagonal only, so every column is on its own. A new sine needs more than the "
        "old "
        "sine: read the addition theorem to its end.",
        "你的矩阵只有对角线上有数，每一列各管各的。新的正弦不能只靠旧的正弦：请把两角和公式读完整。",
    ),
    _shift(
        "halves-instead-of-neighbours",
        _blocks(_right_block, halves=True),
        "Your blocks join the first half of the columns with the second half. Here the two columns of a pair are "
        "neighbours.",
        "你的块把前一半的列和后一半的列配在了一起。这里一对的两列是相邻的。",
    ),
    _shift(
        "entries-moved-instead-of-position",
        lambda offset, d_model, base=10000.0: torch.eye(d_model, dtype=torch.float64).roll(offset, 0),
        "Your matrix moves the numbers of a row to other columns. The offset belongs to the position: each hand turns, "
        "and stays in its columns.",
        "你的矩阵把一行里的数挪到了别的列。偏移针对的是位置：每根指针转动，但仍在自己的列里。",
    ),
    _shift(
        "degrees-instead-of-radians",
        _blocks(_right_block, angle=lambda offset, frequency: (offset * frequency).deg2rad()),
        "Your hands turn far too little, all by the same factor: somewhere the angles are taken for degrees.",
        "你的指针都转得太少，而且少的倍数相同：某处把角度当成了度数。",
    ),
    _shift(
        "blocks-not-assembled",
        _loose_blocks,
        "The small blocks are there, one for each pair, but they don't form one matrix yet. Where in the big matrix "
        "does "
        "each belong?",
        "每一对的小块都有了，但还没有拼成一个矩阵。每一块在大矩阵的什么位置？",
    ),
    _shift(
        "float32-matrix",
        lambda offset, d_model, base=10000.0: sinusoidal.shift_matrix(offset, d_model, base).float(),
        "The result is float32. The task asks for double precision: look where the matrix is made.",
        "结果是 float32，而题目要求双精度。请看看矩阵是在哪里创建的。",
    ),
    *(m.behind("shift_matrix", _blocks(_right_block, m.frequencies)) for m in FREQUENCY_MISTAKES),
)
"""The known mistakes of shift-matrix."""


def _by_distance(encoding: Tensor) -> Tensor:
    place = torch.arange(len(encoding), device=encoding.device)
    return (encoding @ encoding[0])[(place[:, None] - place).abs()]


def _normalised_in_place(encoding: Tensor) -> Tensor:
    encoding /= encoding.norm(dim=-1, keepdim=True)
    return encoding @ encoding.T


def _distances(encoding: Tensor) -> Tensor:
    return (encoding[:, None] - encoding).square().sum(-1).sqrt()


def _similarity(slug: str, answer: Callable[[Tensor], Tensor], en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"position_similarity": answer})


POSITION_SIMILARITY = (
    _similarity(
        "cosine-similarity",
        lambda encoding: (
            torch.nn.functional.normalize(encoding, dim=-1) @ torch.nn.functional.normalize(encoding, dim=-1).T
        ),
        "These are cosine similarities: each row was divided by its length. Plain dot products are asked for.",
        "这是余弦相似度：每一行都除以了自己的长度。题目要的就是点积。",
    ),
    _similarity(
        "normalised-in-place",
        _normalised_in_place,
        "Each row was divided by its length, and inside the tensor that was handed to you: the caller's rows have "
        "changed. "
        "Plain dot products are asked for, and the input stays as it is.",
        "每一行都除以了自己的长度，而且直接改在传入的张量里：调用者的数据变了。题目要的就是点积，输入应保持原样。",
    ),
    _similarity(
        "minus-distances",
        lambda encoding: -_distances(encoding),
        "These are distances with a minus sign. They grow with likeness too, but they are no dot products.",
        "这是取了负号的距离。它也随相似程度变大，但不是点积。",
    ),
    _similarity(
        "distances",
        _distances,
        "These are distances between rows: the diagonal is zero. Dot products are asked for.",
        "这是行与行之间的距离：对角线是零。题目要的是点积。",
    ),
    _similarity(
        "columns-compared",
        lambda encoding: encoding.T @ encoding,
        "You compared columns with columns: the size of your result is the width. Which factor has to be transposed?",
        "你比较的是列与列：结果的大小等于宽度。应当转置的是哪一个因子？",
    ),
    _similarity(
        "everything-summed",
        lambda encoding: (encoding * encoding).sum(),
        "You return a single number: the sum runs over the rows too. Each pair of rows has a dot product of its own.",
        "你只返回了一个数：求和把各行也加在了一起。每两行都有自己的点积。",
    ),
    _similarity(
        "each-row-with-itself",
        lambda encoding: (encoding * encoding).sum(-1),
        "You compare every row only with itself. Every row with every row is asked for.",
        "你只让每一行和自己相比。题目要的是每一行和每一行。",
    ),
    _similarity(
        "products-not-summed",
        lambda encoding: encoding * encoding,
        "You multiply entry by entry. A dot product also sums, and it compares every row with every row.",
        "你做的是逐元素相乘。点积还要求和，而且是每一行和每一行相比。",
    ),
    _similarity(
        "scaled-like-attention",
        lambda encoding: encoding @ encoding.T / math.sqrt(encoding.shape[-1]),
        "The dot products are divided by the root of the width, as in attention. Nothing is scaled here.",
        "点积除以了宽度的平方根，像注意力里那样。这里不需要缩放。",
    ),
    _similarity(
        "mean-of-products",
        lambda encoding: encoding @ encoding.T / encoding.shape[-1],
        "The products are averaged over the columns. A dot product sums them.",
        "各列的乘积取了平均。点积是求和。",
    ),
    _similarity(
        "softmax-applied",
        lambda encoding: (encoding @ encoding.T).softmax(-1),
        "Your rows sum to 1: a softmax came on top. The dot products themselves are asked for.",
        "你的每一行之和是 1：后面多做了一次 softmax。题目要的是点积本身。",
    ),
    _similarity(
        "centred-first",
        lambda encoding: (encoding - encoding.mean(0)) @ (encoding - encoding.mean(0)).T,
        "The mean row was subtracted first, as for a covariance. Take the rows as they are.",
        "先减去了各行的平均，像求协方差那样。请直接使用原来的行。",
    ),
    _similarity(
        "sign-dropped",
        lambda encoding: (encoding @ encoding.T).abs(),
        "No entry of your result is negative. Rows that point in opposite directions should show it.",
        "你的结果里没有负数。方向相反的两行应当看得出来。",
    ),
    _similarity(
        "one-value-per-distance",
        _by_distance,
        "You compare with row 0 only and reuse that for equal distances. It holds for sinusoidal rows; the function "
        "is to "
        "work for any rows.",
        "你只和第 0 行比较，再按距离重复使用。这只对正弦编码的行成立；这个函数应当适用于任何行。",
    ),
    _similarity(
        "always-float32",
        lambda encoding: (encoding @ encoding.T).float(),
        "The result is float32 whatever the input is. It should have the dtype of `encoding`.",
        "无论输入是什么，结果都是 float32。它应当与 `encoding` 的 dtype 一致。",
    ),
    _similarity(
        "moved-to-the-cpu",
        lambda encoding: (encoding @ encoding.T).cpu(),
        "The result doesn't stay on the device of `encoding`. Look for `.cpu()`, `.numpy()` or a new tensor made "
        "without a "
        "device.",
        "结果没有留在 `encoding` 所在的设备上。请找一找 `.cpu()`、`.numpy()`，或者新建张量时没有指定设备的地方。",
    ),
)
"""The known mistakes of position-similarity."""
