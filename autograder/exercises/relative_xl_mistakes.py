"""Known mistakes of transformer-xl-scores."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from autograder.exercises.declaration import Answer, Mistake
from autograder.exercises.relative_shift_mistakes import RULE_MISTAKES
from autograder.reference import relative
from autograder.results import Text

Part = Callable[[Tensor, Tensor, Tensor], Tensor]
"""`(query, key or relative, bias (heads, 1, d))` -> one half of the scores, before the shift."""
Mask = Callable[[Tensor, Tensor], Tensor]
"""`(scores, future (q, k))` -> masked scores."""


def _with_bias(query: Tensor, other: Tensor, bias: Tensor) -> Tensor:
    return (query + bias) @ other.mT


def _without_bias(query: Tensor, other: Tensor, bias: Tensor) -> Tensor:
    return query @ other.mT


def _bias_on_the_other_side(query: Tensor, other: Tensor, bias: Tensor) -> Tensor:
    return query @ (other + bias).mT


def _left_out(query: Tensor, other: Tensor, bias: Tensor) -> Tensor:
    return torch.zeros_like(query @ other.mT)


def _fill(value: float) -> Mask:
    return lambda scores, future: scores.masked_fill(future, value)


RIGHT_MASK = _fill(-math.inf)


def _scores(
    content: Part = _with_bias,
    position: Part = _with_bias,
    *,
    shift: Answer = relative.relative_shift,
    scale: Callable[[Tensor, Tensor, int, int], Tensor] = lambda content, position, d, heads: (
        (content + position) / math.sqrt(d)
    ),
    mask: Mask = RIGHT_MASK,
    swapped: bool = False,
    rows: Callable[[Tensor], Tensor] = lambda relative: relative,
) -> Answer:
    """The four terms, right but for what is replaced."""

    def transformer_xl_scores(
        query: Tensor, key: Tensor, relative: Tensor, content_bias: Tensor, position_bias: Tensor
    ) -> Tensor:
        (_, heads, q, d), k = query.shape, key.shape[-2]
        u, v = content_bias[:, None], position_bias[:, None]
        u, v = (v, u) if swapped else (u, v)
        found = scale(content(query, key, u), shift(position(query, rows(relative), v)), d, heads)
        return mask(found, torch.ones(q, k, dtype=torch.bool, device=query.device).triu(k - q + 1))

    return transformer_xl_scores


def _future_from(first: Callable[[int, int], int]) -> Mask:
    """In row i, the key number i + first(q, k) is the first that is masked."""

    def mask(scores: Tensor, future: Tensor) -> Tensor:
        q, k = future.shape
        return scores.masked_fill(torch.ones_like(future).triu(first(q, k)), -math.inf)

    return mask


def _after(change: Callable[[Tensor], Tensor]) -> Answer:
    return lambda *given: change(relative.transformer_xl_scores(*given))


def _bias_not_broadcast(
    query: Tensor, key: Tensor, relative: Tensor, content_bias: Tensor, position_bias: Tensor
) -> Tensor:
    """(heads, d) meets (batch, heads, q, d) as if its heads were queries."""
    return _scores()(query + content_bias, key, relative, torch.zeros_like(content_bias), position_bias)  # type: ignore[no-any-return]


def _in_place(query: Tensor, key: Tensor, relative_rows: Tensor, content_bias: Tensor, position_bias: Tensor) -> Tensor:
    found = relative.transformer_xl_scores(query, key, relative_rows, content_bias, position_bias)
    if not query.requires_grad:
        query += content_bias[:, None]
    return found


def _mask_on_the_cpu(
    query: Tensor, key: Tensor, relative_rows: Tensor, content_bias: Tensor, position_bias: Tensor
) -> Tensor:
    future = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).triu(key.shape[-2] - query.shape[-2] + 1)
    scores = relative.transformer_xl_scores(query, key, relative_rows, content_bias, position_bias)
    return scores.masked_fill(future, -math.inf)


def _moved(query: Tensor, key: Tensor, relative_rows: Tensor, content_bias: Tensor, position_bias: Tensor) -> Tensor:
    found = relative.transformer_xl_scores(query, key, relative_rows, content_bias, position_bias)
    return torch.zeros(found.shape, dtype=found.dtype) if found.is_meta else found.cpu()


def _mistake(slug: str, answer: Answer, en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"transformer_xl_scores": answer})


TRANSFORMER_XL_SCORES = (
    *(
        Mistake(
            wrong.slug,
            Text(
                en=f"The position scores are shifted wrongly. {wrong.text.en}",
                zh=f"位置分数的移位不对。{wrong.text.zh}",
            ),
            {"transformer_xl_scores": _scores(shift=wrong.shift)},
        )
        for wrong in RULE_MISTAKES
        if wrong.slug != "columns-count-up"  # the same as `rows-of-distances-upside-down`
    ),
    _mistake(
        "content-shifted-too",
        _scores(content=lambda query, key, bias: relative.relative_shift(_with_bias(query, key, bias))),
        "The content scores are shifted too. Their columns are keys already; only the columns of `relative` are "
        "distances.",
        "内容分数也被移位了。它的列本来就是键；只有 `relative` 的列才是距离。",
    ),
    _mistake(
        "biases-swapped",
        _scores(swapped=True),
        "The two biases are in each other's place. One belongs to the content term, one to the position term.",
        "两个偏置互换了位置。一个属于内容项，一个属于位置项。",
    ),
    _mistake(
        "content-bias-missing",
        _scores(content=_without_bias),
        "`content_bias` has no effect: the term with the keys lacks it.",
        "`content_bias` 没有起作用：与键相乘的那一项里缺了它。",
    ),
    _mistake(
        "position-bias-missing",
        _scores(position=_without_bias),
        "`position_bias` has no effect: the term with the distances lacks it.",
        "`position_bias` 没有起作用：与距离相乘的那一项里缺了它。",
    ),
    _mistake(
        "both-biases-missing",
        _scores(_without_bias, _without_bias),
        "Neither bias has an effect. Of the paper's four terms two are missing.",
        "两个偏置都没有起作用。论文的四项里缺了两项。",
    ),
    _mistake(
        "biases-added-to-the-keys",
        _scores(_bias_on_the_other_side, _bias_on_the_other_side),
        "The biases are added to the keys and the distances. They stand in the place of the query's position: add them "
        "to the query.",
        "你把偏置加到了键和距离向量上。它们取代的是查询的位置：应当加到查询上。",
    ),
    _mistake(
        "bias-on-the-wrong-axis",
        _bias_not_broadcast,
        "A bias meets the queries as if its rows were positions. Its first axis is the heads: give it an axis of "
        "size 1 for the length.",
        "偏置和查询相加时，它的行被当成了位置。它的第一个轴是 head：请为 length 补一个大小为 1 的轴。",
    ),
    _mistake(
        "rows-of-distances-upside-down",
        _scores(rows=lambda rows: rows.flip(-2)),
        "You read `relative` from distance 0 upwards. Its first row is the largest distance.",
        "你把 `relative` 读成了从距离 0 往上数。它的第一行是最大的距离。",
    ),
    _mistake(
        "position-term-missing",
        _scores(position=_left_out),
        "There is no position in your scores: only content counts.",
        "你的分数里没有位置：只有内容在起作用。",
    ),
    _mistake(
        "content-term-missing",
        _scores(content=_left_out),
        "There is no content in your scores: the keys have no effect.",
        "你的分数里没有内容：键没有起作用。",
    ),
    _mistake(
        "scale-missing",
        _scores(scale=lambda content, position, d, heads: content + position),
        "Your scores are not scaled. Divide by the root of the head's width, as in ordinary attention.",
        "你的分数没有缩放。请像普通注意力那样，除以 head 宽度的平方根。",
    ),
    _mistake(
        "multiplied-by-the-root",
        _scores(scale=lambda content, position, d, heads: (content + position) * math.sqrt(d)),
        "You multiply by the root of the head's width. It divides.",
        "你乘了 head 宽度的平方根。应当是除。",
    ),
    _mistake(
        "divided-by-the-width",
        _scores(scale=lambda content, position, d, heads: (content + position) / d),
        "You divide by the head's width itself, not by its root.",
        "你除以的是 head 宽度本身，而不是它的平方根。",
    ),
    _mistake(
        "scale-of-all-heads",
        _scores(scale=lambda content, position, d, heads: (content + position) / math.sqrt(heads * d)),
        "You divide by the root of the width of all heads together. It is the width of one.",
        "你除以的是所有 head 总宽度的平方根。应当是一个 head 的宽度。",
    ),
    _mistake(
        "scale-of-four-terms",
        _scores(scale=lambda content, position, d, heads: (content + position) / math.sqrt(4 * d)),
        "Your scores are half as large as they should be: the number of terms is in the scale. That is DeBERTa's idea.",
        "你的分数只有应有的一半：缩放里多了项数。那是 DeBERTa 的做法。",
    ),
    _mistake(
        "position-not-scaled",
        _scores(scale=lambda content, position, d, heads: content / math.sqrt(d) + position),
        "Only the content part is scaled. Scale the sum.",
        "只有内容部分缩放了。应当对两部分之和缩放。",
    ),
    _mistake(
        "content-not-scaled",
        _scores(scale=lambda content, position, d, heads: content + position / math.sqrt(d)),
        "Only the position part is scaled. Scale the sum.",
        "只有位置部分缩放了。应当对两部分之和缩放。",
    ),
    _mistake(
        "future-not-masked",
        _scores(mask=lambda scores, future: scores),
        "The future is not masked: what the shift leaves there are scores of other queries.",
        "未来没有被遮住：移位之后留在那里的，是别的查询的分数。",
    ),
    _mistake(
        "masked-with-a-finite-number",
        _scores(mask=_fill(-1e9)),
        "The future has a very low score. The task asks for −inf, whose weight after the softmax is exactly zero.",
        "未来的分数只是一个很小的数。题目要求 −inf，这样 softmax 之后的权重正好是零。",
    ),
    _mistake(
        "masked-with-zero",
        _scores(mask=_fill(0.0)),
        "The future has score 0, which the softmax takes for an ordinary score. Which score has weight zero?",
        "未来的分数是 0，而 softmax 会把它当成普通的分数。什么样的分数，权重才是零？",
    ),
    _mistake(
        "mask-forgets-the-memory",
        _scores(mask=_future_from(lambda q, k: 1)),
        "With fewer queries than keys you mask keys that come before the query. The queries are the last positions.",
        "查询比键少时，你遮住了查询之前的键。查询是最后的那些位置。",
    ),
    _mistake(
        "own-position-masked",
        _scores(mask=_future_from(lambda q, k: k - q)),
        "A query can't see its own position. The future begins one further.",
        "查询看不到自己的位置了。未来是从下一个位置开始的。",
    ),
    _mistake(
        "mask-one-too-late",
        _scores(mask=_future_from(lambda q, k: k - q + 2)),
        "Each query sees one key of the future. Where does the future begin?",
        "每个查询都看到了一个未来的键。未来是从哪里开始的？",
    ),
    _mistake(
        "past-masked-instead",
        _scores(mask=lambda scores, future: scores.masked_fill(~future, -math.inf)),
        "You mask the past and leave the future: the mask is inverted.",
        "你遮住了过去，留下了未来：掩码取反了。",
    ),
    _mistake(
        "weights-returned",
        _after(lambda scores: scores.softmax(-1)),
        "You return weights: the softmax comes later. The task asks for scores.",
        "你返回的是权重：softmax 是以后的事。题目要的是分数。",
    ),
    _mistake(
        "no-gradient",
        _after(Tensor.detach),
        "No gradient passes through your scores. Look for `.detach()`, `.data`, `.numpy()`, `no_grad` or "
        "`torch.tensor(…)`.",
        "梯度传不过你的分数。请查找 `.detach()`、`.data`、`.numpy()`、`no_grad` 或 `torch.tensor(…)`。",
    ),
    _mistake(
        "input-changed",
        _in_place,
        "The query is different after the call: `+=` writes into the tensor that was handed to you.",
        "调用之后，query 变了：`+=` 会直接写进传入的张量。",
    ),
    _mistake(
        "always-float32",
        _after(Tensor.float),
        "The scores are float32 whatever the query is. They should have its dtype.",
        "无论 query 是什么 dtype，分数都是 float32。它应当与 query 的 dtype 一致。",
    ),
    _mistake(
        "mask-made-on-the-cpu",
        _mask_on_the_cpu,
        "Your mask is made on the CPU, so the scores can't meet it on another device. Give the new tensor the "
        "device of the query.",
        "你的掩码建在 CPU 上，在别的设备上就无法和分数一起计算。新建张量时，请指定 query 所在的设备。",
    ),
    _mistake(
        "moved-to-the-cpu",
        _moved,
        "The scores don't stay on the device of the query. Look for `.cpu()`, `.numpy()` or a result made without a "
        "device.",
        "分数没有留在 query 所在的设备上。请查找 `.cpu()`、`.numpy()`，或者新建结果时没有指定设备的地方。",
    ),
)
"""The known mistakes of transformer-xl-scores."""
