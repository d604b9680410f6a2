"""Known mistakes of adjacent-to-halves."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.exercises.declaration import Answer, Mistake
from autograder.reference import rotary
from autograder.results import Text


def _heads(order: Callable[[Tensor], Tensor]) -> Answer:
    """`order` makes the new order of a head's rows out of 0 … head_dim − 1."""

    def adjacent_to_halves(weight: Tensor, n_heads: int) -> Tensor:
        heads = weight.reshape(n_heads, -1, weight.shape[1])
        return heads[:, order(torch.arange(heads.shape[1], device=weight.device))].reshape(weight.shape)

    return adjacent_to_halves


def _evens_then_odds(rows: Tensor) -> Tensor:
    return torch.cat([rows[0::2], rows[1::2]])


def _inverse(rows: Tensor) -> Tensor:
    return torch.stack(rows.chunk(2), dim=1).flatten()


def _in_place(weight: Tensor, n_heads: int) -> Tensor:
    weight.copy_(rotary.adjacent_to_halves(weight, n_heads))
    return weight


def _heads_last(weight: Tensor, n_heads: int) -> Tensor:
    """The rows read as (head_dim, n_heads), as if the heads were woven."""
    woven = weight.reshape(-1, n_heads, weight.shape[1])
    return woven[_evens_then_odds(torch.arange(len(woven), device=weight.device))].flatten(0, 1)


def _width_from_columns(weight: Tensor, n_heads: int) -> Tensor:
    head_dim = weight.shape[1] // n_heads
    parts = [weight[h * head_dim : (h + 1) * head_dim] for h in range(n_heads)]
    return torch.cat([part[start::2] for part in parts for start in (0, 1)])


def _columns(weight: Tensor, n_heads: int) -> Tensor:
    return _evens_then_odds(weight.T).T


def _mistake(slug: str, answer: Answer, en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"adjacent_to_halves": answer})


ADJACENT_TO_HALVES = (
    _mistake(
        "inverse-order",
        _heads(_inverse),
        "This is the way back, from halves to neighbours. Take one pair: where do its two rows stand before, and where "
        "does the halves pairing look for them?",
        "这是反方向的转换：从 halves 到 adjacent。请取一对来看：它的两行原来在哪里，halves 配对又会到哪里去找它们？",
    ),
    _mistake(
        "across-heads",
        lambda weight, n_heads: _evens_then_odds(weight),
        "The rows are reordered over the whole matrix, so heads exchange rows. Each head has its own pairs: stay "
        "inside it.",
        "你在整个矩阵范围内重排了行，于是不同的 head 交换了行。每个 head 有自己的对：请在各个 head 之内重排。",
    ),
    _mistake(
        "across-heads-and-back",
        lambda weight, n_heads: _inverse(weight),
        "Two things are off: the rows are reordered over the whole matrix, not inside each head, and in the direction "
        "from halves to neighbours.",
        "有两处不对：你在整个矩阵范围内重排了行，而不是在各个 head 之内；方向也成了从 halves 到 adjacent。",
    ),
    _mistake(
        "columns-reordered",
        _columns,
        "You reorder columns. A column belongs to a feature of x; which part of the weight makes the entries of a "
        "query?",
        "你重排的是列。一列对应 x 的一个特征；查询的各个分量，是由权重的哪一部分产生的？",
    ),
    _mistake(
        "nothing-reordered",
        lambda weight, n_heads: weight.clone(),
        "The weight comes back as it was. The halves pairing would then turn rows together that were never a pair.",
        "权重原样返回了。这样一来，halves 配对会把本来不成对的行放在一起旋转。",
    ),
    _mistake(
        "odds-first",
        _heads(lambda rows: torch.cat([rows[1::2], rows[0::2]])),
        "The two members of each pair have changed places, which turns every pair the other way round.",
        "每一对的两个成员互换了位置，于是每一对都会往反方向转。",
    ),
    _mistake(
        "second-half-mirrored",
        _heads(lambda rows: torch.cat([rows[0::2], rows[1::2].flip(0)])),
        "The second half of each head runs backwards, so most pairs get the wrong partner.",
        "每个 head 的后一半顺序反了，于是大多数的行找错了搭档。",
    ),
    _mistake(
        "heads-woven",
        _heads_last,
        "You read the rows as if neighbours belonged to different heads. All rows of a head stand together, head after "
        "head.",
        "你读取行的方式，仿佛相邻的行属于不同的 head。实际上一个 head 的所有行排在一起，然后才是下一个 head。",
    ),
    _mistake(
        "heads-from-the-columns",
        _width_from_columns,
        "You compute the width of a head from the number of columns. That is d_model, the width of x; the rows are "
        "what the heads share.",
        "你用列数来计算每个 head 的宽度。列数是 x 的宽度 d_model；各个 head 分的是行。",
    ),
    _mistake(
        "one-head-assumed",
        lambda weight, n_heads: rotary.adjacent_to_halves(weight, 2 if n_heads > 1 else 1),
        "The number of heads in your code is fixed. Take it from the argument.",
        "你的代码里 head 的个数是写死的。请使用参数。",
    ),
    _mistake(
        "transposed",
        lambda weight, n_heads: rotary.adjacent_to_halves(weight, n_heads).T,
        "Your result is transposed: rows have become columns.",
        "你的结果转置了：行变成了列。",
    ),
    _mistake(
        "heads-not-joined",
        lambda weight, n_heads: rotary.adjacent_to_halves(weight, n_heads).reshape(n_heads, -1, weight.shape[1]),
        "The heads stand on an axis of their own. Bring the result back to the shape of the weight.",
        "head 单独占了一个轴。请把结果恢复成权重原来的形状。",
    ),
    _mistake(
        "input-changed",
        _in_place,
        "The weight that was handed to you is different after the call. Return a new tensor.",
        "调用之后，传入的权重变了。请返回一个新的张量。",
    ),
    _mistake(
        "always-float32",
        lambda weight, n_heads: rotary.adjacent_to_halves(weight, n_heads).float(),
        "The result is float32 whatever the weight is. It should have the dtype of the weight.",
        "无论权重是什么 dtype，结果都是 float32。它应当与权重的 dtype 一致。",
    ),
    _mistake(
        "moved-to-the-cpu",
        lambda weight, n_heads: (
            torch.zeros(weight.shape, dtype=weight.dtype)
            if weight.is_meta
            else rotary.adjacent_to_halves(weight.cpu(), n_heads)
        ),
        "The result doesn't stay on the device of the weight. Look for `.cpu()`, `.numpy()` or a new tensor made "
        "without a device.",
        "结果没有留在权重所在的设备上。请查找 `.cpu()`、`.numpy()`，或者新建张量时没有指定设备的地方。",
    ),
)
"""The known mistakes of adjacent-to-halves."""
