"""Known mistakes of deberta-scores."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from autograder.exercises.declaration import Answer, Mistake
from autograder.reference import relative
from autograder.results import Text

Delta = Callable[[Tensor, int], Tensor]
"""`(i − j (n, n), max_distance)` -> row of a table."""
Terms = Callable[[Tensor, Tensor, Tensor, int], Tensor]
"""`(content, to position, from position, d)` -> scores."""


def delta(difference: Tensor, max_distance: int) -> Tensor:
    return (difference + max_distance).clamp(0, 2 * max_distance - 1)


def _all(content: Tensor, to: Tensor, back: Tensor, d: int) -> Tensor:
    return (content + to + back) / math.sqrt(3 * d)


def _take(products: Tensor, index: Tensor) -> Tensor:
    """`products (batch, heads, n, rows)` at `index (n, n)`."""
    return products.gather(-1, index.expand(*products.shape[:2], *index.shape))


def _scores(
    first: Delta = delta,
    last: Delta = lambda difference, k: delta(-difference, k),
    *,
    terms: Terms = _all,
    tables_swapped: bool = False,
    one_head: bool = False,
) -> Answer:
    """Right but for what is replaced. `first` and `last` make δ of each term from i − j."""

    def deberta_scores(
        query: Tensor, key: Tensor, relative_query: Tensor, relative_key: Tensor, max_distance: int
    ) -> Tensor:
        n, d = query.shape[-2:]
        position = torch.arange(n, device=query.device)
        difference = position[:, None] - position
        if tables_swapped:
            relative_query, relative_key = relative_key, relative_query
        if one_head:
            relative_query, relative_key = relative_query[:1], relative_key[:1]
        to = _take(query @ relative_key.mT, first(difference, max_distance))
        back = _take(key @ relative_query.mT, last(difference, max_distance).T).mT
        return terms(query @ key.mT, to, back, d)

    return deberta_scores


def _last_term_not_transposed(
    query: Tensor, key: Tensor, relative_query: Tensor, relative_key: Tensor, max_distance: int
) -> Tensor:
    """K of row i in place of K of column j."""
    n, d = query.shape[-2:]
    position = torch.arange(n, device=query.device)
    index = delta(position[:, None] - position, max_distance)
    return _all(query @ key.mT, _take(query @ relative_key.mT, index), _take(key @ relative_query.mT, index), d)


def _query_in_the_last_term(
    query: Tensor, key: Tensor, relative_query: Tensor, relative_key: Tensor, max_distance: int
) -> Tensor:
    n, d = query.shape[-2:]
    position = torch.arange(n, device=query.device)
    index = delta(position[:, None] - position, max_distance)
    to, back = _take(query @ relative_key.mT, index), _take(query @ relative_query.mT, index.T)
    return _all(query @ key.mT, to, back, d)


def _position_to_position(
    query: Tensor, key: Tensor, relative_query: Tensor, relative_key: Tensor, max_distance: int
) -> Tensor:
    n, d = query.shape[-2:]
    position = torch.arange(n, device=query.device)
    index = delta(position[:, None] - position, max_distance)
    fourth = (relative_query @ relative_key.mT)[:, index.T, index]
    return relative.deberta_scores(query, key, relative_query, relative_key, max_distance) + fourth / math.sqrt(3 * d)


def _by_index(query: Tensor, key: Tensor, relative_query: Tensor, relative_key: Tensor, max_distance: int) -> Tensor:
    """Without the clamp, written with square brackets: a negative row counts from the end, one past the end raises."""
    n, d = query.shape[-2:]
    position = torch.arange(n, device=query.device)
    index = position[:, None] - position + max_distance
    to = torch.einsum("bhid,hijd->bhij", query, relative_key[:, index])
    back = torch.einsum("bhjd,hijd->bhij", key, relative_query[:, index.T])
    return _all(query @ key.mT, to, back, d)


def _after(change: Callable[[Tensor], Tensor]) -> Answer:
    return lambda *given: change(relative.deberta_scores(*given))


def _in_place(query: Tensor, key: Tensor, relative_query: Tensor, relative_key: Tensor, max_distance: int) -> Tensor:
    found = relative.deberta_scores(query, key, relative_query, relative_key, max_distance)
    if not query.requires_grad:
        query /= math.sqrt(3 * query.shape[-1])
    return found


def _moved(query: Tensor, key: Tensor, relative_query: Tensor, relative_key: Tensor, max_distance: int) -> Tensor:
    found = relative.deberta_scores(query, key, relative_query, relative_key, max_distance)
    return torch.zeros(found.shape, dtype=found.dtype) if found.is_meta else found.cpu()


def _mistake(slug: str, answer: Answer, en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"deberta_scores": answer})


DEBERTA_SCORES = (
    _mistake(
        "index-order-of-the-code",
        _scores(last=delta),
        "Your last term takes row δ(i, j), as the code in `transformers` does. The paper, and this task, take δ(j, i) "
        "there: seen from the key, the distance has the other sign. Everything else fits.",
        "你的最后一项取的是 δ(i, j) 那一行，和 `transformers` 的代码一样。论文和本题在那里用 δ(j, i)："
        "从键的角度看，距离的符号相反。其余都对。",
    ),
    _mistake(
        "index-orders-exchanged",
        _scores(lambda difference, k: delta(-difference, k), delta),
        "The two index orders are exchanged: the term with the query takes δ(j, i), the one with the key δ(i, j). Each "
        "should start from its own position.",
        "两处下标的次序正好对调了：含查询的一项用了 δ(j, i)，含键的一项用了 δ(i, j)。每一项都应从自己的位置出发。",
    ),
    _mistake(
        "first-term-from-the-key",
        _scores(first=lambda difference, k: delta(-difference, k)),
        "The term with the query takes row δ(j, i). It asks how far the key is from the query: look at the order.",
        "含查询的一项取了 δ(j, i) 那一行。它问的是从查询到键有多远：请检查次序。",
    ),
    _mistake(
        "last-term-not-transposed",
        _last_term_not_transposed,
        "In your last term row i uses key i. It is key j that is multiplied: after the look-up the two axes have to "
        "change places.",
        "你的最后一项里，第 i 行用的是第 i 个键。相乘的应当是第 j 个键：查表之后，两个轴要对调。",
    ),
    _mistake(
        "query-in-the-last-term",
        _query_in_the_last_term,
        "Your last term multiplies the query. Position to content means: the position's query meets the key.",
        "你的最后一项乘的是查询。“位置到内容”是指：位置的查询向量与键相乘。",
    ),
    _mistake(
        "tables-swapped",
        _scores(tables_swapped=True),
        "`relative_query` and `relative_key` are in each other's place. A query meets a key, also where one of them "
        "comes from a position.",
        "`relative_query` 和 `relative_key` 互换了位置。相乘的总是一个查询和一个键，即使其中之一来自位置。",
    ),
    _mistake(
        "scale-of-one-term",
        _scores(terms=lambda content, to, back, d: (content + to + back) / math.sqrt(d)),
        "You scale as for one term. Three are added here, so the sum spreads wider: the scale counts them.",
        "你的缩放只按一项算。这里把三项相加，和的散布更大：缩放里要算上项数。",
    ),
    _mistake(
        "scale-of-two-terms",
        _scores(terms=lambda content, to, back, d: (content + to + back) / math.sqrt(2 * d)),
        "You scale as for two terms. Count them again: the content term is one too.",
        "你的缩放按两项算。请再数一遍：内容项也是一项。",
    ),
    _mistake(
        "three-outside-the-root",
        _scores(terms=lambda content, to, back, d: (content + to + back) / (3 * math.sqrt(d))),
        "The 3 stands outside the root in your scale. It belongs under it.",
        "缩放里的 3 写在了根号外面。它应当在根号里面。",
    ),
    _mistake(
        "scale-missing",
        _scores(terms=lambda content, to, back, d: content + to + back),
        "Your scores are not scaled.",
        "你的分数没有缩放。",
    ),
    _mistake(
        "multiplied-by-the-root",
        _scores(terms=lambda content, to, back, d: (content + to + back) * math.sqrt(3 * d)),
        "You multiply by the root. It divides.",
        "你乘了平方根。应当是除。",
    ),
    _mistake(
        "content-scaled-alone",
        _scores(terms=lambda content, to, back, d: content / math.sqrt(3 * d) + to + back),
        "Only the content term is scaled. Scale the sum of all three.",
        "只有内容项缩放了。应当对三项之和缩放。",
    ),
    _mistake(
        "positions-scaled-alone",
        _scores(terms=lambda content, to, back, d: content + (to + back) / math.sqrt(3 * d)),
        "Only the position terms are scaled. Scale the sum of all three.",
        "只有两个位置项缩放了。应当对三项之和缩放。",
    ),
    _mistake(
        "content-missing",
        _scores(terms=lambda content, to, back, d: (to + back) / math.sqrt(3 * d)),
        "The content term is missing: the product of query and key.",
        "缺了内容项：查询与键的乘积。",
    ),
    _mistake(
        "content-to-position-missing",
        _scores(terms=lambda content, to, back, d: (content + back) / math.sqrt(3 * d)),
        "`relative_key` has no effect: the term from content to position is missing.",
        "`relative_key` 没有起作用：缺了“内容到位置”这一项。",
    ),
    _mistake(
        "position-to-content-missing",
        _scores(terms=lambda content, to, back, d: (content + to) / math.sqrt(3 * d)),
        "`relative_query` has no effect: the term from position to content is missing.",
        "`relative_query` 没有起作用：缺了“位置到内容”这一项。",
    ),
    _mistake(
        "position-terms-missing",
        _scores(terms=lambda content, to, back, d: content / math.sqrt(3 * d)),
        "There is no position in your scores: only the content term is there.",
        "你的分数里没有位置：只有内容项。",
    ),
    _mistake(
        "position-to-position-added",
        _position_to_position,
        "There is a fourth term in your scores, position to position. DeBERTa leaves it out: relative to each other, "
        "two positions say the same at every place.",
        "你的分数里多了第四项“位置到位置”。DeBERTa 没有这一项：相对而言，两个位置在哪里说的都一样。",
    ),
    _mistake(
        "offset-missing",
        _scores(
            lambda difference, k: difference.clamp(0, 2 * k - 1),
            lambda difference, k: (-difference).clamp(0, 2 * k - 1),
        ),
        "Distances below zero all fall into row 0: the offset that brings them into the table is missing.",
        "所有负的距离都落到了第 0 行：缺了把它们移进表里的偏移量。",
    ),
    _mistake(
        "offset-one-too-small",
        _scores(
            lambda difference, k: (difference + k - 1).clamp(0, 2 * k - 1),
            lambda difference, k: (k - 1 - difference).clamp(0, 2 * k - 1),
        ),
        "Your rows are one too low: distance 0 should take the row in the middle of the table, the first of its second "
        "half.",
        "你取的行号小了 1：距离 0 应当取表正中的那一行，也就是后一半的第一行。",
    ),
    _mistake(
        "clamped-to-half-the-table",
        _scores(
            lambda difference, k: (difference + k).clamp(0, k),
            lambda difference, k: (k - difference).clamp(0, k),
        ),
        "Your clamp ends in the middle of the table, so all of one direction shares a row. The table has two rows for "
        "each unit of the largest distance.",
        "你的截断停在了表的正中，于是一个方向的距离全挤在同一行。表的行数是最大距离的两倍。",
    ),
    _mistake(
        "distances-not-clamped",
        _scores(lambda difference, k: difference + k, lambda difference, k: k - difference),
        "Long texts run past the ends of the tables. Far distances share the first or the last row.",
        "文本一长，就越过了表的两端。远的距离应当共用第一行或最后一行。",
    ),
    _mistake(
        "distances-not-clamped-and-indexed",
        _by_index,
        "Long texts run past the ends of the tables; and on the way a negative row number counts from the end. Far "
        "distances share the first or the last row.",
        "文本一长，就越过了表的两端；而负的行号会从末尾倒数。远的距离应当共用第一行或最后一行。",
    ),
    _mistake(
        "clamped-one-too-late",
        _scores(
            lambda difference, k: (difference + k).clamp(0, 2 * k),
            lambda difference, k: (k - difference).clamp(0, 2 * k),
        ),
        "Your clamp allows one row too many: if there are 2k rows and the first is 0, what is the last?",
        "你的截断多放过了一行：一共 2k 行、从 0 数起，最后一行是几？",
    ),
    _mistake(
        "clamped-one-too-early",
        _scores(
            lambda difference, k: (difference + k).clamp(1, 2 * k - 1),
            lambda difference, k: (k - difference).clamp(1, 2 * k - 1),
        ),
        "Row 0 of the tables is never used. Distances on one side reach one further than on the other.",
        "表的第 0 行从来没有用到。一侧的距离比另一侧多到达一格。",
    ),
    _mistake(
        "one-head-for-all",
        _scores(one_head=True),
        "All heads use the tables of the first. Each has its own.",
        "所有 head 用的都是第一个 head 的表。每个 head 各有自己的表。",
    ),
    _mistake(
        "weights-returned",
        _after(lambda scores: scores.softmax(-1)),
        "You return weights: the softmax comes later. The task asks for scores.",
        "你返回的是权重：softmax 是以后的事。题目要的是分数。",
    ),
    _mistake(
        "future-masked",
        _after(lambda scores: scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)),
        "The future is masked in your scores. DeBERTa is an encoder: each token sees all others.",
        "你的分数里把未来遮住了。DeBERTa 是编码器：每个 token 都能看到其他所有 token。",
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
        "The query is different after the call: an operation in place, such as `/=`, writes into the tensor that was "
        "handed to you.",
        "调用之后，query 变了：`/=` 之类的原地操作会直接写进传入的张量。",
    ),
    _mistake(
        "always-float32",
        _after(Tensor.float),
        "The scores are float32 whatever the query is. They should have its dtype.",
        "无论 query 是什么 dtype，分数都是 float32。它应当与 query 的 dtype 一致。",
    ),
    _mistake(
        "moved-to-the-cpu",
        _moved,
        "The scores don't stay on the device of the query. Look for `.cpu()`, `.numpy()` or a result made without a "
        "device.",
        "分数没有留在 query 所在的设备上。请查找 `.cpu()`、`.numpy()`，或者新建结果时没有指定设备的地方。",
    ),
)
"""The known mistakes of deberta-scores."""
