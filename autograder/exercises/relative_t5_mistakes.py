"""Known mistakes of t5-bias: those of its own, and those of the bucket rule and the distances behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from autograder.exercises.declaration import Answer, Mistake
from autograder.exercises.relative_bucket_mistakes import RULE_MISTAKES
from autograder.reference import relative
from autograder.results import Text

NOT_INHERITED = {
    "last-bucket-not-kept",  # these two look for rows that the table lacks, which is one error: `rows-past-the-table`
    "last-bucket-one-too-high",
    "always-both-directions",  # the same as `direction-not-passed-on`
}

Forward = Callable[[Any, int, int], Tensor]
"""`(module, query_len, key_len)` -> bias. The module has `table`, `settings` and `bucket`."""


def buckets(module: Any, distance: Tensor) -> Tensor:
    found: Tensor = module.bucket(distance.to(module.table.weight.device), *module.settings)
    return found


def rows(module: Any, distance: Tensor) -> Tensor:
    """`(query_len, key_len, n_heads)`."""
    found: Tensor = module.table.weight[buckets(module, distance)]
    return found


def _right(module: Any, query_len: int, key_len: int) -> Tensor:
    return rows(module, relative.relative_distance(query_len, key_len)).permute(2, 0, 1)


def _module(
    run: Forward = _right,
    *,
    table: Callable[[int, int], Any] = nn.Embedding,
    bucket: Answer = relative.t5_bucket,
    settings: Callable[[bool, int, int], tuple[Any, ...]] = lambda *given: given,
) -> type[nn.Module]:
    class T5Bias(nn.Module):
        def __init__(
            self, n_heads: int, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128
        ) -> None:
            super().__init__()
            self.table = table(n_buckets, n_heads)
            self.bucket = bucket
            self.settings = settings(bidirectional, n_buckets, max_distance)

        def forward(self, query_len: int, key_len: int) -> Tensor:
            return run(self, query_len, key_len)

    return T5Bias


class _OtherName(nn.Module):
    def __init__(self, n_heads: int, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128) -> None:
        super().__init__()
        self.relative_attention_bias = nn.Embedding(n_buckets, n_heads)
        self.settings = bidirectional, n_buckets, max_distance

    def forward(self, query_len: int, key_len: int) -> Tensor:
        bucket = relative.t5_bucket(relative.relative_distance(query_len, key_len), *self.settings)
        return self.relative_attention_bias.weight[bucket].permute(2, 0, 1)


class _BareParameter(nn.Module):
    def __init__(self, n_heads: int, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(n_buckets, n_heads))
        self.settings = bidirectional, n_buckets, max_distance

    def forward(self, query_len: int, key_len: int) -> Tensor:
        bucket = relative.t5_bucket(relative.relative_distance(query_len, key_len), *self.settings)
        return self.table[bucket].permute(2, 0, 1)


def _at(distance: Callable[[int, int], Tensor]) -> Forward:
    """Right, at other distances."""
    return lambda module, query_len, key_len: rows(module, distance(query_len, key_len)).permute(2, 0, 1)


def _from_zero(query_len: int, key_len: int) -> Tensor:
    return torch.arange(key_len) - torch.arange(query_len)[:, None]


def _late(by: int) -> Callable[[int, int], Tensor]:
    return lambda query_len, key_len: relative.relative_distance(query_len, key_len) - by


def _changed(change: Callable[[Tensor], Tensor]) -> Forward:
    return lambda module, query_len, key_len: change(_right(module, query_len, key_len))


def _read_in_order(module: Any, query_len: int, key_len: int) -> Tensor:
    found = rows(module, relative.relative_distance(query_len, key_len))
    return found.reshape(-1, query_len, key_len)


def _no_buckets(module: Any, query_len: int, key_len: int) -> Tensor:
    distance = relative.relative_distance(query_len, key_len)
    found: Tensor = module.table(distance - distance.min())
    return found.permute(2, 0, 1)


def _one_head(module: Any, query_len: int, key_len: int) -> Tensor:
    return _right(module, query_len, key_len)[:1].expand(module.table.weight.shape[1], -1, -1)


def _with_the_past_only(module: Any, query_len: int, key_len: int) -> Tensor:
    distance = relative.relative_distance(query_len, key_len)
    return _right(module, query_len, key_len).masked_fill(distance > 0, -torch.inf)


def _on_the_cpu(module: Any, query_len: int, key_len: int) -> Tensor:
    bias = _right(module, query_len, key_len)
    return torch.zeros(bias.shape, dtype=bias.dtype) if bias.is_meta else bias.cpu()


def _mistake(slug: str, module: type[nn.Module], en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"T5Bias": module})


T5_BIAS = (
    *(
        Mistake(
            wrong.slug,
            Text(
                en=f"The buckets behind your bias are wrong. {wrong.text.en}", zh=f"偏置所用的桶不对。{wrong.text.zh}"
            ),
            {"T5Bias": _module(bucket=wrong.bucket)},
        )
        for wrong in RULE_MISTAKES
        if wrong.slug not in NOT_INHERITED
    ),
    _mistake(
        "rows-past-the-table",
        _module(bucket=next(wrong.bucket for wrong in RULE_MISTAKES if wrong.slug == "last-bucket-not-kept")),
        "Far distances look for a row past the end of the table. All distances from the largest on share the last "
        "bucket of their direction.",
        "远的距离查到了表外的行。从最大距离起，同一方向的所有距离共用最后一个桶。",
    ),
    _mistake(
        "sizes-swapped",
        _module(table=lambda n_buckets, n_heads: nn.Embedding(n_heads, n_buckets)),
        "The two sizes of your table are swapped: it has one row for each head. What is a row looked up by?",
        "表的两个大小写反了：现在每个 head 占一行。想一想：是用什么去查一行的？",
    ),
    _mistake(
        "bare-parameter",
        _BareParameter,
        "The values are right, but `table` is itself the tensor; saved weights are looked for under `table.weight`.",
        "数值没错，但 `table` 本身就是张量；而保存的权重要用 `table.weight` 这个名字去找。",
    ),
    _mistake(
        "another-name",
        _OtherName,
        "The module works, but its table has another name in the state than the task gives it. Saved weights are found "
        "by name.",
        "模块能用，但表在 state 里的名字和题目规定的不同。保存的权重是按名字找的。",
    ),
    _mistake(
        "heads-left-last",
        _module(_changed(lambda bias: bias.permute(1, 2, 0))),
        "The heads stand on the last axis, as the look-up leaves them. Scores have them before queries and keys.",
        "head 停在最后一个轴上，也就是查表之后的样子。而在分数里，head 在查询和键的前面。",
    ),
    _mistake(
        "heads-moved-by-reshape",
        _module(_read_in_order),
        "The shape is right, but numbers of different heads are mixed: `reshape` and `view` read on in order and move "
        "no axis.",
        "形状对了，但不同 head 的数混在了一起：`reshape` 和 `view` 只是按顺序往下读，并不会移动轴。",
    ),
    _mistake(
        "queries-and-keys-swapped",
        _module(_changed(lambda bias: bias.mT)),
        "The axes of queries and keys are swapped. Rows belong to queries.",
        "查询和键的轴写反了。行属于查询。",
    ),
    _mistake(
        "batch-axis-added",
        _module(_changed(lambda bias: bias[None])),
        "There is an axis in front that the task doesn't ask for. Broadcasting adds it by itself.",
        "前面多了一个题目没有要求的轴。广播会自动补上它。",
    ),
    _mistake(
        "queries-from-zero",
        _module(_at(_from_zero)),
        "With fewer queries than keys your distances are wrong: the queries are the last positions, not the first.",
        "查询比键少时，你的距离不对：查询是最后的那些位置，而不是最前面的。",
    ),
    _mistake(
        "distances-backwards",
        _module(_at(lambda query_len, key_len: -relative.relative_distance(query_len, key_len))),
        "Your distances are query minus key: before and after are exchanged, and with one direction the whole past "
        "falls into one bucket.",
        "你的距离是查询减键：前后颠倒了，而单向时整个过去都落进了同一个桶。",
    ),
    _mistake(
        "one-place-late",
        _module(_at(_late(1))),
        "All distances behind your bias are too small by 1.",
        "偏置所用的距离都小了 1。",
    ),
    _mistake(
        "one-place-early",
        _module(_at(_late(-1))),
        "All distances behind your bias are too large by 1.",
        "偏置所用的距离都大了 1。",
    ),
    _mistake(
        "no-buckets",
        _module(_no_buckets),
        "You look the table up by distances made non-negative. Rows belong to buckets: use the rule of the exercise "
        "before.",
        "你直接拿（变成非负的）距离去查表了。行对应的是桶：请用上一题的规则。",
    ),
    _mistake(
        "settings-not-passed-on",
        _module(settings=lambda bidirectional, n_buckets, max_distance: (bidirectional,)),
        "`n_buckets` and `max_distance` don't reach the bucket rule, which then uses its defaults.",
        "`n_buckets` 和 `max_distance` 没有传给分桶规则，于是规则用了默认值。",
    ),
    _mistake(
        "direction-not-passed-on",
        _module(settings=lambda bidirectional, n_buckets, max_distance: (True, n_buckets, max_distance)),
        "`bidirectional` doesn't reach the bucket rule, which then uses its default.",
        "`bidirectional` 没有传给分桶规则，于是规则用了默认值。",
    ),
    _mistake(
        "one-head-for-all",
        _module(_one_head),
        "All heads get the same bias. Each has a column of its own.",
        "所有 head 得到了同样的偏置。每个 head 各有一列。",
    ),
    _mistake(
        "future-masked",
        _module(_with_the_past_only),
        "There is −inf in your bias. A mask is something else, and comes later; here every bucket has its number.",
        "你的偏置里有 −inf。掩码是另一回事，以后才加；在这里每个桶都有自己的数。",
    ),
    _mistake(
        "sign-of-the-bias",
        _module(_changed(torch.neg)),
        "Your bias is the table's number with the opposite sign. It is trained: it finds its sign by itself.",
        "你的偏置是表里的数取了相反数。它是学出来的，正负由训练决定。",
    ),
    _mistake(
        "table-not-trained",
        _module(_changed(Tensor.detach)),
        "No gradient reaches your table, so it stays as it was made. Look for `.detach()`, `.data`, `no_grad` or "
        "`torch.tensor(…)`.",
        "梯度传不到你的表，它会一直停留在初始值。请查找 `.detach()`、`.data`、`no_grad` 或 `torch.tensor(…)`。",
    ),
    _mistake(
        "always-float32",
        _module(_changed(Tensor.float)),
        "The bias is float32 whatever the table is. It should have the dtype of the table.",
        "无论表是什么 dtype，偏置都是 float32。它应当与表的 dtype 一致。",
    ),
    _mistake(
        "moved-to-the-cpu",
        _module(_on_the_cpu),
        "The bias doesn't stay on the device of the table. Look for `.cpu()`, or for a result made without a device.",
        "偏置没有留在表所在的设备上。请查找 `.cpu()`，或者新建结果时没有指定设备的地方。",
    ),
)
"""The known mistakes of t5-bias."""
