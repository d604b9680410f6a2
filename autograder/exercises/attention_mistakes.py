"""Lesson 01: wrong implementations of attention that people really write, and what to tell them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.exercises.declaration import Answer, Mistake
from autograder.results import Text


def _scores(query: Tensor, key: Tensor) -> Tensor:
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


def _softmax(scores: Tensor, mask: Tensor | None, dim: int = -1) -> Tensor:
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(dim).nan_to_num(0.0)


def _divided_by(divisor: Callable[[Tensor, Tensor, Tensor], float]) -> Answer:
    def answer(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
        weights = _softmax(query @ key.transpose(-2, -1) / divisor(query, key, value), mask)
        return weights @ value, weights

    return answer


def _softmax_over(dim: int) -> Answer:
    def answer(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
        weights = _softmax(_scores(query, key), mask, dim)
        return weights @ value, weights

    return answer


def _masked_by(apply: Callable[[Tensor, Tensor], Tensor]) -> Answer:
    """`apply` makes weights of scores and mask."""

    def answer(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
        scores = _scores(query, key)
        weights = scores.softmax(-1) if mask is None else apply(scores, mask)
        return weights @ value, weights

    return answer


def _returning(pick: Callable[[Tensor, Tensor, Tensor], Any]) -> Answer:
    """`pick` makes the result of output, weights and masked scores."""

    def answer(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
        scores = _scores(query, key)
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = scores.softmax(-1).nan_to_num(0.0)
        return pick(weights @ value, weights, scores)

    return answer


def _scores_by(multiply: Callable[[Tensor, Tensor], Tensor]) -> Answer:
    def answer(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
        weights = _softmax(multiply(query, key) / math.sqrt(query.shape[-1]), mask)
        return weights @ value, weights

    return answer


def _without_softmax(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
    weights = _scores(query, key)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ value, weights


def _scaled_after_softmax(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
    weights = _softmax(query @ key.transpose(-2, -1), mask) / math.sqrt(query.shape[-1])
    return weights @ value, weights


def _three_axes_unpacked(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
    _batch, _length, width = query.shape
    weights = _softmax(query @ key.transpose(-2, -1) / math.sqrt(width), mask)
    return weights @ value, weights


def _keys_as_values(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
    weights = _softmax(_scores(query, key), mask)
    return weights @ key, weights


def _roles_swapped(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
    weights = _softmax(_scores(query, value), mask)
    return weights @ key, weights


def _float32_forced(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
    weights = _softmax(_scores(query.float(), key.float()), mask)
    return weights @ value.float(), weights


def _query_changed(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
    query /= math.sqrt(query.shape[-1])
    weights = _softmax(query @ key.transpose(-2, -1), mask)
    return weights @ value, weights


def _mistake(slug: str, answer: Answer, en: str, zh: str) -> Mistake:
    return Mistake(slug=slug, message=Text(en=en, zh=zh), answers={"attention": answer})


ATTENTION_MISTAKES = (
    _mistake(
        "softmax-over-queries",
        _softmax_over(-2),
        "softmax runs over the wrong axis: your columns of weights sum to 1. Each query shares out its own attention; "
        "ask which axis counts the places it can share it among.",
        "softmax 的轴不对：你的权重每一列之和为 1。每个查询分配的是它自己的注意力，想一想：它在哪个轴上分配？",
    ),
    _mistake(
        "softmax-fixed-axis",
        _softmax_over(2),
        "The axis of softmax is a fixed number counted from the front. It fits inputs with one batch axis only; with "
        "heads, or without a batch, it is another axis. Count it from the end that never changes.",
        "softmax 的轴写成了从前面数的固定编号，只适合恰好有一个 batch 轴的输入；多了 heads 轴或没有 batch 轴时，"
        "它就指向别的轴。请从固定不变的那一端数起。",
    ),
    _mistake(
        "softmax-missing",
        _without_softmax,
        "Your weights are raw scores: some are negative and a row doesn't sum to 1. A step of the formula between "
        "scores and mixing is missing.",
        "你的权重就是原始分数：有负数，每行之和也不是 1。公式里，打分和加权求和之间还有一步。",
    ),
    _mistake(
        "unscaled",
        _divided_by(lambda query, key, value: 1.0),
        "The dot products go into softmax as they are. They grow with the width of the vectors, so your weights are "
        "too peaked. Look at the denominator in the formula.",
        "点积没有缩放就进了 softmax。点积会随向量宽度增大，所以你的权重过于集中。请看公式里的分母。",
    ),
    _mistake(
        "scaled-by-width",
        _divided_by(lambda query, key, value: query.shape[-1]),
        "The scores are divided by too much: the whole width of a query. Your weights are too even. "
        "Look at how the width enters the formula.",
        "分数除得太多了：除以了查询向量的整个宽度，权重因此过于平均。请看公式里宽度是以什么形式出现的。",
    ),
    _mistake(
        "scale-multiplied",
        _divided_by(lambda query, key, value: query.shape[-1] ** -0.5),
        "The scale is applied the wrong way round: it makes the scores larger. Its purpose is to keep wide vectors "
        "from giving large scores.",
        "缩放的方向反了：它把分数放大了。缩放的目的，是不让宽向量产生过大的分数。",
    ),
    _mistake(
        "scaled-by-key-count",
        _divided_by(lambda query, key, value: math.sqrt(key.shape[-2])),
        "The scale is taken from the number of keys. A dot product adds up one term for each feature, not for each "
        "key: read the size from another axis.",
        "缩放用的是键的个数。点积是按特征逐项相加的，与键的个数无关：请换一个轴取大小。",
    ),
    _mistake(
        "scaled-by-query-count",
        _divided_by(lambda query, key, value: math.sqrt(query.shape[-2])),
        "The scale is taken from the number of queries. A score is about one query and one key; how many others there "
        "are doesn't matter. Read the size from another axis.",
        "缩放用的是查询的个数。一个分数只涉及一个查询和一个键，与还有多少别的查询无关：请换一个轴取大小。",
    ),
    _mistake(
        "scale-fixed-axis",
        _divided_by(lambda query, key, value: math.sqrt(query.shape[2])),
        "The size in your scale is read from an axis with a fixed number, counted from the front. It fits inputs with "
        "one batch axis only; with heads, or without a batch, it is another size.",
        "缩放所用的大小取自从前面数的固定编号的轴，只适合恰好有一个 batch 轴的输入；多了 heads 轴或没有 batch 轴时，"
        "取到的就是别的大小。",
    ),
    _mistake(
        "scaled-by-value-width",
        _divided_by(lambda query, key, value: math.sqrt(value.shape[-1])),
        "The scale is taken from the width of the values. Values take no part in the dot products, and their width may "
        "differ from that of the vectors that do.",
        "缩放用的是值（value）的宽度。值不参与点积，它的宽度也可以和参与点积的向量不同。",
    ),
    _mistake(
        "scaled-after-softmax",
        _scaled_after_softmax,
        "The scaling comes after softmax, so your weights no longer sum to 1. Check the order of the two steps.",
        "缩放放在了 softmax 之后，权重之和不再是 1。请检查这两步的先后。",
    ),
    _mistake(
        "mask-ignored",
        _masked_by(lambda scores, mask: scores.softmax(-1)),
        "The mask changes nothing: blocked keys still get weight. Follow the argument `mask` through your code.",
        "掩码没有起作用：被挡住的键仍有权重。请顺着参数 mask 检查你的代码。",
    ),
    _mistake(
        "mask-inverted",
        _masked_by(lambda scores, mask: scores.masked_fill(mask, -torch.inf).softmax(-1).nan_to_num(0.0)),
        "The mask works the wrong way round: your queries attend exactly where they must not. "
        "Read again what True means here, and what `masked_fill` does where it finds True.",
        "掩码用反了：查询恰好关注了不许关注的位置。请再看一遍这里 True 表示什么，"
        "以及 masked_fill 对 True 的位置做什么。",
    ),
    _mistake(
        "mask-zeroes-scores",
        _masked_by(lambda scores, mask: scores.masked_fill(~mask, 0.0).softmax(-1)),
        "Blocked scores become 0, and softmax turns a score of 0 into a weight like any other. "
        "Which score does softmax turn into no weight at all?",
        "被挡住的分数变成了 0，而 softmax 会把分数 0 照样变成正的权重。什么样的分数经过 softmax 才会得到零权重？",
    ),
    _mistake(
        "mask-added",
        _masked_by(lambda scores, mask: (scores + mask).softmax(-1)),
        "The boolean mask is added to the scores as 0 and 1. Allowed keys gain a little and blocked ones keep their "
        "weight. A boolean mask says which scores to replace.",
        "布尔掩码被当作 0 和 1 加到了分数上：允许的键只多了一点，被挡住的键权重还在。布尔掩码说的是哪些分数要被替换。",
    ),
    _mistake(
        "mask-after-softmax",
        _masked_by(lambda scores, mask: scores.softmax(-1) * mask),
        "Blocked weights are set to 0 after softmax, so what is left of a row no longer sums to 1. "
        "A query should share out all of its attention among the keys it may see.",
        "掩码是在 softmax 之后把权重置零的，每行剩下的权重之和不再是 1。查询应当把全部注意力分给它能看到的键。",
    ),
    _mistake(
        "mask-fills-weights",
        _masked_by(lambda scores, mask: scores.softmax(-1).masked_fill(~mask, -torch.inf)),
        "Blocked places hold minus infinity after softmax: the fill came one step too late, on weights where it "
        "belongs on something else.",
        "softmax 之后，被挡住的位置是负无穷：填充晚了一步，填在了权重上，而它本该填在别处。",
    ),
    _mistake(
        "nan-rows",
        _masked_by(lambda scores, mask: scores.masked_fill(~mask, -torch.inf).softmax(-1)),
        "A query that may attend to nothing gives NaN: softmax over a row of minus infinities divides 0 by 0. "
        "Treat such a row as the task says.",
        "不能关注任何位置的查询得到了 NaN：对一整行负无穷做 softmax，相当于 0 除以 0。请按题目的要求处理这样的行。",
    ),
    _mistake(
        "uniform-rows",
        _masked_by(lambda scores, mask: scores.masked_fill(~mask, -1e9).softmax(-1)),
        "A query that may attend to nothing attends to everything, evenly: when a whole row holds the same very low "
        "number, softmax sees no difference in it. Treat such a row as the task says.",
        "不能关注任何位置的查询，却平均地关注了所有位置：整行都是同一个很小的数时，softmax 看不出差别。"
        "请按题目的要求处理这样的行。",
    ),
    _mistake(
        "nan-weights",
        _returning(lambda output, weights, scores: (output, scores.softmax(-1))),
        "The output is right, but the weights that you return still hold NaN for a query that may attend to nothing. "
        "Repair the weights before they are used, not the output after.",
        "输出是对的，但对于不能关注任何位置的查询，你返回的权重里仍有 NaN。应当在使用之前修好权重，"
        "而不是事后再修输出。",
    ),
    _mistake(
        "weights-missing",
        _returning(lambda output, weights, scores: output),
        "Only one result comes back. The task asks for two: later cells draw the second.",
        "只返回了一个结果。题目要求返回两个：后面的单元格要画出第二个。",
    ),
    _mistake(
        "order-swapped",
        _returning(lambda output, weights, scores: (weights, output)),
        "Both results are there, in the wrong order. Compare the `return` line with the signature.",
        "两个结果都有，但顺序反了。请把 return 那一行与函数签名对照一下。",
    ),
    _mistake(
        "scores-returned",
        _returning(lambda output, weights, scores: (output, scores)),
        "The second result holds the scores as they are before softmax; its rows don't sum to 1.",
        "第二个结果是 softmax 之前的分数，每行之和不是 1。",
    ),
    _mistake(
        "keys-as-values",
        _keys_as_values,
        "The weights are right, but they mix the keys: your output has the width of a key. What do the weights "
        "average?",
        "权重是对的，但加权求和用的是键：你的输出宽度等于键的宽度。权重应当对什么求平均？",
    ),
    _mistake(
        "key-and-value-swapped",
        _roles_swapped,
        "Queries are compared with the values, which may have another width. Check which two of the three are "
        "compared and which one is mixed.",
        "查询是和值（value）做的比较，而值的宽度可以不同。请检查：三者之中，哪两个相互比较，哪一个被加权求和？",
    ),
    _mistake(
        "all-axes-transposed",
        _scores_by(lambda query, key: query @ key.T),
        "`.T` reverses all axes, the batch too. It fits a matrix without a batch only; swap no more than the two axes "
        "that the product needs.",
        ".T 会把所有轴都反过来，包括 batch 轴，只适合没有 batch 的矩阵。请只交换矩阵乘法需要的那两个轴。",
    ),
    _mistake(
        "fixed-axes-transposed",
        _scores_by(lambda query, key: query @ key.transpose(1, 2)),
        "The two axes that you swap have fixed numbers counted from the front. They fit inputs with one batch axis "
        "only; with heads, or without a batch, they are other axes.",
        "交换的两个轴写成了从前面数的固定编号，只适合恰好有一个 batch 轴的输入；多了 heads 轴或没有 batch 轴时，"
        "它们就是别的轴。",
    ),
    _mistake(
        "three-axes-unpacked",
        _three_axes_unpacked,
        "Your code takes the shape of the query apart into exactly three sizes, so it stops on inputs with heads or "
        "without a batch. Ask for no more sizes than the formula needs.",
        "你的代码把 query 的形状恰好拆成三个大小，遇到带 heads 轴或没有 batch 轴的输入就会出错。公式需要几个大小，"
        "就只取几个。",
    ),
    _mistake(
        "float32-forced",
        _float32_forced,
        "The result is float32 whatever the inputs are. It should have the dtype of the inputs.",
        "无论输入是什么 dtype，结果总是 float32。结果的 dtype 应当与输入一致。",
    ),
    _mistake(
        "input-changed",
        _query_changed,
        "One of the arguments is different after the call. Look for an operation in place: `/=`, `*=`, `masked_fill_`, "
        "or an assignment to a slice.",
        "调用之后，有一个参数变了。请查找原地操作：/=、*=、masked_fill_，或者对切片的赋值。",
    ),
)
