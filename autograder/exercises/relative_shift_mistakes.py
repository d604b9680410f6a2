"""Known mistakes of relative-shift, in parts that transformer-xl-scores uses too: it inherits them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from autograder.exercises.declaration import Answer, Mistake
from autograder.reference import relative
from autograder.results import Text


def _columns(column: Callable[[Tensor, Tensor, int, int], Tensor]) -> Answer:
    """Output (i, j) is the input at column `column(i, j, q, k)`; past an end of the row it goes on at the other."""

    def relative_shift(scores: Tensor) -> Tensor:
        q, k = scores.shape[-2:]
        i = torch.arange(q, device=scores.device)[:, None]
        j = torch.arange(k, device=scores.device)[None]
        index = column(i, j, q, k) % k
        return scores.gather(-1, index.expand(scores.shape))

    return relative_shift


def _drop_the_last_row(scores: Tensor) -> Tensor:
    *leading, q, k = scores.shape
    return F.pad(scores, (1, 0)).reshape(*leading, k + 1, q)[..., :-1, :].reshape(*leading, q, k)


def _pad_behind(scores: Tensor) -> Tensor:
    *leading, q, k = scores.shape
    return F.pad(scores, (0, 1)).reshape(*leading, k + 1, q)[..., 1:, :].reshape(*leading, q, k)


def _pad_a_row(scores: Tensor) -> Tensor:
    """The padding is put before the queries, not before the columns."""
    *leading, q, k = scores.shape
    return F.pad(scores, (0, 0, 1, 0)).reshape(*leading, k, q + 1)[..., 1:].reshape(*leading, q, k)


def _without_padding(scores: Tensor) -> Tensor:
    *leading, q, k = scores.shape
    return scores.reshape(*leading, k, q).reshape(*leading, q, k)


def _not_cut(scores: Tensor) -> Tensor:
    *leading, q, k = scores.shape
    return F.pad(scores, (1, 0)).reshape(*leading, k + 1, q)


@dataclass(frozen=True)
class ShiftMistake:
    """A wrong shift, and what is wrong with it."""

    slug: str
    shift: Answer
    text: Text


def _wrong(slug: str, shift: Answer, en: str, zh: str) -> ShiftMistake:
    return ShiftMistake(slug, shift, Text(en=en, zh=zh))


RULE_MISTAKES = (
    _wrong(
        "not-shifted",
        lambda scores: scores.clone(),
        "Column j is taken as if it were key j. A column belongs to a distance, and each query is at another distance "
        "from key j.",
        "你把第 j 列当成了第 j 个键。一列对应的是距离，而每个查询到第 j 个键的距离各不相同。",
    ),
    _wrong(
        "shifted-the-other-way",
        _columns(lambda i, j, q, k: j - (q - 1 - i)),
        "Your rows move to the right. Ask which column the first key gets in the first row: it is nearer than in the "
        "last.",
        "你的各行向右移动了。想一想第一行里第一个键取的是哪一列：它比在最后一行里更近。",
    ),
    _wrong(
        "rows-counted-from-the-other-end",
        _columns(lambda i, j, q, k: j + i),
        "The first row stays and the last moves most. It is the last query that sees the largest distance, so its row "
        "is the one that fits already.",
        "第一行没有动，最后一行移动得最多。看得到最大距离的是最后一个查询，所以原本就对齐的应当是它那一行。",
    ),
    _wrong(
        "rows-moved-to-the-right-from-the-first",
        _columns(lambda i, j, q, k: j - i),
        "Each row moves one further to the right than the one before. Compare with the task: the nearest key should "
        "take the last column.",
        "每一行都比前一行更向右移一格。请对照题目：最近的键应当取最后一列。",
    ),
    _wrong(
        "one-column-too-far",
        _columns(lambda i, j, q, k: j + q - i),
        "Every row has moved one column too far to the left. Which column belongs to distance 0?",
        "每一行都向左多移了一列。距离 0 对应哪一列？",
    ),
    _wrong(
        "one-column-too-few",
        _columns(lambda i, j, q, k: j + q - 2 - i),
        "Every row has moved one column too few. Which column belongs to distance 0?",
        "每一行都向左少移了一列。距离 0 对应哪一列？",
    ),
    _wrong(
        "columns-count-up",
        _columns(lambda i, j, q, k: i + k - q - j),
        "You take column c for distance c. The columns count down: the first belongs to the largest distance.",
        "你把第 c 列当成了距离 c。列是倒着数的：第一列对应最大的距离。",
    ),
    _wrong(
        "memory-forgotten",
        _columns(lambda i, j, q, k: k - 1 - i + j),
        "With fewer queries than keys your rows are off: the queries are the last positions, not the first.",
        "查询比键少时，你的各行对不上：查询是最后的那些位置，而不是最前面的。",
    ),
    _wrong(
        "first-row-kept-last-row-dropped",
        _drop_the_last_row,
        "After the padding you drop the wrong end. The number that was put in first is the one to get rid of.",
        "补零之后，你去掉的是错误的一端。应当去掉最先补进去的那一端。",
    ),
    _wrong(
        "padded-behind",
        _pad_behind,
        "The extra column stands behind the last one. Put it before the first and write out a case with 2 queries.",
        "补的那一列放在了最后一列之后。请放到第一列之前，并写出只有 2 个查询时的情形看看。",
    ),
    _wrong(
        "padded-a-row",
        _pad_a_row,
        "You pad a row of zeros, not a column. It is each row that has to become one longer.",
        "你补的是一行零，而不是一列。要变长一格的是每一行。",
    ),
)
"""What is wrong with the shift itself: transformer-xl-scores inherits these."""


def _in_place(scores: Tensor) -> Tensor:
    shifted = relative.relative_shift(scores)
    if not scores.requires_grad:
        scores.copy_(shifted)
    return shifted


def _mistake(slug: str, answer: Answer, en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"relative_shift": answer})


RELATIVE_SHIFT = (
    *(Mistake(wrong.slug, wrong.text, {"relative_shift": wrong.shift}) for wrong in RULE_MISTAKES),
    _mistake(
        "row-not-dropped",
        _not_cut,
        "Your result still has the padding in it, and other sizes than the input. Cut it and go back to the shape.",
        "补的零还在结果里，大小也和输入不同。请截掉它，再恢复形状。",
    ),
    _mistake(
        "transposed",
        lambda scores: relative.relative_shift(scores).mT,
        "Rows and columns of your result are swapped. Rows belong to queries.",
        "结果的行和列写反了。行属于查询。",
    ),
    _mistake(
        "no-gradient",
        lambda scores: relative.relative_shift(scores.detach()),
        "No gradient passes through your result. Look for `.detach()`, `.data`, `.numpy()`, `no_grad` or "
        "`torch.tensor(…)`.",
        "梯度传不过你的结果。请查找 `.detach()`、`.data`、`.numpy()`、`no_grad` 或 `torch.tensor(…)`。",
    ),
    _mistake(
        "input-changed",
        _in_place,
        "The scores are different after the call: you write into the tensor that was handed to you.",
        "调用之后，传入的分数变了：你写进了传入的张量。",
    ),
    _mistake(
        "always-float32",
        lambda scores: relative.relative_shift(scores).float(),
        "The result is float32 whatever the scores are. It should have their dtype.",
        "无论分数是什么 dtype，结果都是 float32。它应当与分数的 dtype 一致。",
    ),
    _mistake(
        "moved-to-the-cpu",
        lambda scores: (
            torch.zeros(scores.shape, dtype=scores.dtype) if scores.is_meta else relative.relative_shift(scores.cpu())
        ),
        "The result doesn't stay on the device of the scores. Look for `.cpu()`, or for a new tensor made without a "
        "device.",
        "结果没有留在分数所在的设备上。请查找 `.cpu()`，或者新建张量时没有指定设备的地方。",
    ),
)
"""The known mistakes of relative-shift."""
