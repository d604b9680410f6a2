"""Known mistakes of alibi-slopes and alibi-bias."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from autograder.exercises.declaration import Answer, Mistake
from autograder.reference import relative
from autograder.results import Text


def _power_below(n: int) -> int:
    return 1 << (n.bit_length() - 1)


def _power_above(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _geometric(count: int) -> Tensor:
    """The slopes of `count` heads by the plain formula, whatever the count."""
    return 2.0 ** (-8.0 * torch.arange(1, count + 1) / count)


def _with_extra(extra: Callable[[int, int], Tensor]) -> Answer:
    """Right for powers of two; `extra(power below, how many are missing)` fills up otherwise."""

    def alibi_slopes(n_heads: int) -> Tensor:
        power = _power_below(n_heads)
        return torch.cat([_geometric(power), extra(power, n_heads - power)])

    return alibi_slopes


def _after(change: Callable[[Tensor], Tensor]) -> Answer:
    return lambda n_heads: change(relative.alibi_slopes(n_heads))


def _times(exponent: Callable[[Tensor, int], Tensor]) -> Answer:
    """2 to `exponent(head from 1, heads)` in the geometric series, the filling up right."""

    def series(count: int) -> Tensor:
        return 2.0 ** exponent(torch.arange(1.0, count + 1), count)

    def alibi_slopes(n_heads: int) -> Tensor:
        power = _power_below(n_heads)
        return torch.cat([series(power), series(2 * power)[0::2][: n_heads - power]])

    return alibi_slopes


@dataclass(frozen=True)
class SlopeMistake:
    """Wrong slopes, and what is wrong with them."""

    slug: str
    slopes: Answer
    text: Text


def _wrong(slug: str, slopes: Answer, en: str, zh: str) -> SlopeMistake:
    return SlopeMistake(slug, slopes, Text(en=en, zh=zh))


RULE_MISTAKES = (
    _wrong(
        "exponents-from-zero",
        _times(lambda head, count: -8 * (head - 1) / count),
        "Your first slope is 1: the exponents start at 0. The steepest head already has the first step behind it.",
        "你的第一个斜率是 1：指数从 0 开始了。最陡的 head 已经走过了第一步。",
    ),
    _wrong(
        "plain-formula-for-every-number",
        _geometric,
        "You use the formula for powers of two with every number of heads. For the others there is a second step: look "
        "at the rule again.",
        "无论有多少 head，你都用了 2 的幂的公式。其他数目还有第二步：请再看一遍规则。",
    ),
    _wrong(
        "cut-from-the-next-power",
        lambda n_heads: _geometric(_power_above(n_heads))[:n_heads],
        "You take the slopes of the next power of two above and cut them off. Start with all slopes of the power "
        "below.",
        "你取了上方最近的 2 的幂的斜率，再截断。应当先取下方最近的 2 的幂的全部斜率。",
    ),
    _wrong(
        "extra-slopes-not-skipped",
        _with_extra(lambda power, missing: _geometric(2 * power)[:missing]),
        "The slopes that fill up are neighbours in the longer series. Every second one is already there: skip those.",
        "用来补足的斜率在更长的数列里是相邻的。其中每隔一个就已经有了：请跳过。",
    ),
    _wrong(
        "extra-slopes-there-already",
        _with_extra(lambda power, missing: _geometric(2 * power)[1::2][:missing]),
        "The slopes that fill up are there already, so two heads see the same. Take those of the longer series that "
        "lie between.",
        "你补上的斜率本来就有了，于是两个 head 看到的一样。请取更长的数列里夹在中间的那些。",
    ),
    _wrong(
        "extra-slopes-from-the-end",
        _with_extra(lambda power, missing: _geometric(2 * power)[0::2].flip(0)[:missing]),
        "The slopes that fill up come from the flat end of the longer series. Begin with the steepest.",
        "用来补足的斜率是从更长数列平缓的那一端取的。应当从最陡的开始。",
    ),
    _wrong(
        "steepest-first-throughout",
        _after(lambda slopes: slopes.sort(descending=True).values),
        "The slopes are right but sorted. The rule puts those that fill up behind the others, which matters for stored "
        "weights: each head was trained with its own.",
        "斜率没错，但被排了序。规则把补足的那些放在最后；这对保存的权重很重要：每个 head 是配着自己的斜率训练的。",
    ),
    _wrong(
        "flattest-first",
        _times(lambda head, count: -8 * (count + 1 - head) / count),
        "Your series runs from the flattest slope to the steepest. It starts with the steepest.",
        "你的数列从最平缓的斜率排到最陡的。应当从最陡的开始。",
    ),
    _wrong(
        "eight-heads-assumed",
        _times(lambda head, count: -head),
        "Each slope is half of the one before, for any number of heads. That is so for 8 heads only: what keeps the "
        "last slope the same for others?",
        "无论有多少 head，每个斜率都是前一个的一半。只有 8 个 head 时才是这样："
        "其他数目时，要怎样才能使最后一个斜率不变？",
    ),
    _wrong(
        "eight-missing",
        _times(lambda head, count: -head / count),
        "Your slopes are all between one half and 1. The exponent runs down to minus 8, not to minus 1.",
        "你的斜率全在二分之一和 1 之间。指数应当一直降到负 8，而不是负 1。",
    ),
    _wrong(
        "exponent-upside-down",
        _times(lambda head, count: -head * count / 8),
        "The number of heads stands on the wrong side of the fraction in the exponent. More heads, smaller steps.",
        "指数的分数里，head 的数目放反了位置。head 越多，步子应当越小。",
    ),
    _wrong(
        "base-e",
        _times(lambda head, count: -8 * head / count / math.log(2)),
        "The slopes fall too fast, as powers of e instead of powers of 2.",
        "斜率下降得太快：你用了 e 的幂，而不是 2 的幂。",
    ),
    _wrong(
        "negative-slopes",
        _after(torch.neg),
        "Your slopes are negative. A slope is positive; the minus sign belongs to the bias.",
        "你的斜率是负数。斜率是正的；负号属于偏置。",
    ),
)
"""What is wrong with the slopes themselves: alibi-bias inherits these."""


def _slopes(slug: str, answer: Answer, en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"alibi_slopes": answer})


ALIBI_SLOPES = (
    *(Mistake(wrong.slug, wrong.text, {"alibi_slopes": wrong.slopes}) for wrong in RULE_MISTAKES),
    _slopes(
        "float64",
        _after(Tensor.double),
        "Your slopes are float64. The task asks for float32.",
        "你的斜率是 float64。题目要求 float32。",
    ),
    _slopes(
        "a-list",
        lambda n_heads: relative.alibi_slopes(n_heads).tolist(),
        "Your slopes are a Python list. The task asks for a tensor.",
        "你的斜率是 Python 列表。题目要求张量。",
    ),
    _slopes(
        "axes-added",
        lambda n_heads: relative.alibi_slopes(n_heads)[:, None, None],
        "Your slopes have axes for queries and keys already. Here they are one row; the bias adds the axes.",
        "你的斜率已经带上了查询和键的轴。这里只要一行；加轴是偏置那一步的事。",
    ),
)
"""The known mistakes of alibi-slopes."""


def _bias(value: Callable[[Tensor, Tensor], Tensor]) -> Answer:
    """`value(slopes (n_heads, 1, 1), distance (query_len, key_len))`."""

    def alibi_bias(n_heads: int, query_len: int, key_len: int) -> Tensor:
        return value(relative.alibi_slopes(n_heads)[:, None, None], relative.relative_distance(query_len, key_len))

    return alibi_bias


def _with_slopes(slopes: Answer) -> Answer:
    def alibi_bias(n_heads: int, query_len: int, key_len: int) -> Tensor:
        steep: Tensor = slopes(n_heads)[:, None, None]
        return -steep * relative.relative_distance(query_len, key_len).abs()

    return alibi_bias


def _at(distance: Callable[[int, int], Tensor]) -> Answer:
    def alibi_bias(n_heads: int, query_len: int, key_len: int) -> Tensor:
        return -relative.alibi_slopes(n_heads)[:, None, None] * distance(query_len, key_len).abs()

    return alibi_bias


def _from_zero(query_len: int, key_len: int) -> Tensor:
    return torch.arange(key_len) - torch.arange(query_len)[:, None]


def _mistake(slug: str, answer: Answer, en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"alibi_bias": answer})


ALIBI_BIAS = (
    *(
        Mistake(
            wrong.slug,
            Text(
                en=f"The slopes behind your bias are wrong. {wrong.text.en}", zh=f"偏置所用的斜率不对。{wrong.text.zh}"
            ),
            {"alibi_bias": _with_slopes(wrong.slopes)},
        )
        for wrong in RULE_MISTAKES
        if wrong.slug != "negative-slopes"
    ),
    _mistake(
        "sign-of-the-bias",
        _bias(lambda slopes, distance: slopes * distance.abs()),
        "Your bias is positive: it favours the farthest keys. It is a penalty that grows with the distance.",
        "你的偏置是正数，于是越远的键越受偏爱。它应当是随距离增大的惩罚。",
    ),
    _mistake(
        "sign-of-the-distance-kept",
        _bias(lambda slopes, distance: slopes * distance),
        "Keys in the future get a bonus instead of a penalty: your distance keeps its sign. A causal mask would hide "
        "that; without one it shows.",
        "未来的键得到的是奖励而不是惩罚：你的距离保留了正负号。因果掩码会把它遮住；没有掩码时就露出来了。",
    ),
    _mistake(
        "distance-backwards",
        _bias(lambda slopes, distance: -slopes * distance),
        "Keys in the past get a bonus, keys in the future a penalty. Both should be penalised by how far they are.",
        "过去的键得到奖励，未来的键受到惩罚。两者都应当按远近受到惩罚。",
    ),
    _mistake(
        "number-of-the-key",
        _bias(lambda slopes, distance: (slopes * torch.arange(distance.shape[1])).expand(-1, *distance.shape)),
        "Your bias is slope times the number of the key, as in BLOOM's code. Under a causal mask the softmax makes the "
        "same of both; the task asks for the paper's bias, which needs no mask.",
        "你的偏置是斜率乘以键的编号，和 BLOOM 的代码一样。有因果掩码时，softmax 之后两者相同；"
        "但题目要的是论文里的偏置，它不依赖掩码。",
    ),
    _mistake(
        "distance-to-the-last-key",
        _bias(
            lambda slopes, distance: (
                -slopes * (distance.shape[1] - 1 - torch.arange(distance.shape[1])).expand(distance.shape)
            )
        ),
        "All queries have the same row: you measure from the last key, as MPT's code does. Under a causal mask the "
        "softmax makes the same of both; the task asks for the distance from each query.",
        "所有查询的行都一样：你是从最后一个键量起的，和 MPT 的代码一样。有因果掩码时，softmax 之后两者相同；"
        "但题目要的是从每个查询量起的距离。",
    ),
    _mistake(
        "future-without-penalty",
        _bias(lambda slopes, distance: slopes * distance.clamp(max=0)),
        "Keys in the future get no penalty. The mask comes later, if there is one; here both directions count.",
        "未来的键没有受到惩罚。掩码（如果有）是以后的事；在这里两个方向都要算。",
    ),
    _mistake(
        "future-masked",
        _bias(lambda slopes, distance: (-slopes * distance.abs()).masked_fill(distance > 0, -torch.inf)),
        "There is −inf in your bias: you mask the future. The mask is something else; the bias is finite everywhere.",
        "你的偏置里有 −inf：你把未来遮住了。掩码是另一回事；偏置处处是有限的数。",
    ),
    _mistake(
        "distance-squared",
        _bias(lambda slopes, distance: -slopes * distance**2),
        "Your penalty grows with the square of the distance. ALiBi's is linear.",
        "你的惩罚随距离的平方增长。ALiBi 是线性的。",
    ),
    _mistake(
        "queries-from-zero",
        _at(_from_zero),
        "With fewer queries than keys your distances are wrong: the queries are the last positions, not the first.",
        "查询比键少时，你的距离不对：查询是最后的那些位置，而不是最前面的。",
    ),
    _mistake(
        "one-place-late",
        _at(lambda q, k: relative.relative_distance(q, k) - 1),
        "A query is penalised at its own position: the distances behind your bias are too small by 1.",
        "查询在自己的位置上也受到了惩罚：偏置所用的距离小了 1。",
    ),
    _mistake(
        "one-place-early",
        _at(lambda q, k: relative.relative_distance(q, k) + 1),
        "A query is penalised at its own position: the distances behind your bias are too large by 1.",
        "查询在自己的位置上也受到了惩罚：偏置所用的距离大了 1。",
    ),
    _mistake(
        "slopes-missing",
        _bias(lambda slopes, distance: (-distance.abs().float()).expand(len(slopes), -1, -1)),
        "All heads get the same penalty. Each has its own slope.",
        "所有 head 受到同样的惩罚。每个 head 应当有自己的斜率。",
    ),
    _mistake(
        "queries-and-keys-swapped",
        _bias(lambda slopes, distance: -slopes * distance.abs().T),
        "The axes of queries and keys are swapped. Rows belong to queries.",
        "查询和键的轴写反了。行属于查询。",
    ),
    _mistake(
        "heads-last",
        _bias(lambda slopes, distance: (-slopes * distance.abs()).permute(1, 2, 0)),
        "The heads stand on the last axis. Scores have them before queries and keys.",
        "head 在最后一个轴上。而在分数里，head 在查询和键的前面。",
    ),
    _mistake(
        "batch-axis-added",
        _bias(lambda slopes, distance: (-slopes * distance.abs())[None]),
        "There is an axis in front that the task doesn't ask for. Broadcasting adds it by itself.",
        "前面多了一个题目没有要求的轴。广播会自动补上它。",
    ),
    _mistake(
        "float64",
        _bias(lambda slopes, distance: -slopes.double() * distance.abs()),
        "Your bias is float64. The task asks for float32.",
        "你的偏置是 float64。题目要求 float32。",
    ),
)
"""The known mistakes of alibi-bias."""
