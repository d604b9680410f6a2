"""Other right answers to the exercises on distances and biases, in the ways in which people write them."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.reference import relative


def _distance_by_list(query_len: int, key_len: int) -> Tensor:
    first = key_len - query_len
    return torch.tensor([[j - (first + i) for j in range(key_len)] for i in range(query_len)])


def _distance_of_the_last_rows(query_len: int, key_len: int) -> Tensor:
    position = torch.arange(key_len)
    return (position[None, :] - position[:, None])[key_len - query_len :]


def _distance_by_windows(query_len: int, key_len: int) -> Tensor:
    """Each row is the one below it, one further right: windows over one long row."""
    line = torch.arange(-(key_len - 1), query_len)
    return line.unfold(0, key_len, 1).flip(0)


def _distance_by_sums(query_len: int, key_len: int) -> Tensor:
    ones = torch.ones(query_len, key_len, dtype=torch.int64)
    return ones.cumsum(1) - ones.cumsum(0) - (key_len - query_len)


RELATIVE_DISTANCE = {
    "list": {"relative_distance": _distance_by_list},
    "last-rows": {"relative_distance": _distance_of_the_last_rows},
    "windows": {"relative_distance": _distance_by_windows},
    "sums": {"relative_distance": _distance_by_sums},
}


def _bucket_as_in_transformers(
    distance: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128
) -> Tensor:
    result = torch.zeros_like(distance)
    if bidirectional:
        n_buckets = n_buckets // 2
        result = result + (distance > 0).to(torch.long) * n_buckets
        n = torch.abs(distance)
    else:
        n = -torch.min(distance, torch.zeros_like(distance))
    exact = n_buckets // 2
    large = exact + (
        torch.log(n.float() / exact) / math.log(max_distance / exact) * (n_buckets - exact)  # log(0) is thrown away
    ).to(torch.long)
    large = torch.min(large, torch.full_like(large, n_buckets - 1))
    return result + torch.where(n < exact, n, large)


def _bucket_by_edges(
    distance: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128
) -> Tensor:
    """Where each shared bucket begins, then a search."""
    half = n_buckets // 2 if bidirectional else n_buckets
    exact = half // 2
    shared = half - exact
    edges = [exact * (max_distance / exact) ** (step / shared) for step in range(1, shared)]
    steps = distance.abs() if bidirectional else (-distance).clamp(min=0)
    beyond = torch.bucketize(
        steps.double(), torch.tensor(edges, dtype=torch.float64, device=distance.device), right=True
    )
    place = torch.where(steps < exact, steps, exact + beyond)
    return place + half * (distance > 0) if bidirectional else place


def _bucket_one_by_one(
    distance: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128
) -> Tensor:
    half = n_buckets // 2 if bidirectional else n_buckets
    exact = half // 2

    def place(d: int) -> int:
        start = half if bidirectional and d > 0 else 0
        steps = abs(d) if bidirectional else max(-d, 0)
        if steps < exact:
            return start + steps
        share = math.log(steps / exact) / math.log(max_distance / exact)
        return start + min(exact + math.floor(share * (half - exact)), half - 1)

    found = [place(d) for d in distance.flatten().tolist()]
    return torch.tensor(found, device=distance.device).view(distance.shape)


def _bucket_by_counting(
    distance: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128
) -> Tensor:
    """In float64, with log2, and a list of thresholds searched by Python for distances up to the largest."""
    half = n_buckets // 2 if bidirectional else n_buckets
    exact = half // 2
    edges = list(range(1, exact)) + [
        exact * 2 ** (math.log2(max_distance / exact) * step / (half - exact)) for step in range(half - exact)
    ]
    table = torch.tensor([bisect.bisect_right(edges, steps) for steps in range(max_distance + 1)])
    steps = distance.abs() if bidirectional else (-distance).clamp(min=0)
    place = table.to(distance.device)[steps.clamp(max=max_distance)]
    return torch.where(distance > 0, place + half, place) if bidirectional else place


T5_BUCKET = {
    "as-in-transformers": {"t5_bucket": _bucket_as_in_transformers},
    "edges": {"t5_bucket": _bucket_by_edges},
    "one-by-one": {"t5_bucket": _bucket_one_by_one},
    "table": {"t5_bucket": _bucket_by_counting},
}


class _ByIndexing(nn.Module):
    def __init__(self, n_heads: int, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128) -> None:
        super().__init__()
        self.n_buckets, self.max_distance, self.bidirectional = n_buckets, max_distance, bidirectional
        self.table = nn.Embedding(n_buckets, n_heads)
        nn.init.normal_(self.table.weight, std=0.02)

    def buckets(self, query_len: int, key_len: int) -> Tensor:
        return relative.t5_bucket(
            relative.relative_distance(query_len, key_len), self.bidirectional, self.n_buckets, self.max_distance
        )

    def forward(self, query_len: int, key_len: int) -> Tensor:
        return self.table.weight.T[:, self.buckets(query_len, key_len).to(self.table.weight.device)]


class _ByOneHot(_ByIndexing):
    def forward(self, query_len: int, key_len: int) -> Tensor:
        weight = self.table.weight
        chosen = F.one_hot(self.buckets(query_len, key_len), self.n_buckets).to(weight)
        return torch.einsum("qkn,nh->hqk", chosen, weight)


class _LastRows(_ByIndexing):
    """The whole square, then the rows of the last queries."""

    def forward(self, query_len: int, key_len: int) -> Tensor:
        whole: Tensor = self.table(self.buckets(key_len, key_len).to(self.table.weight.device))
        return whole.movedim(-1, 0)[:, -query_len:]


class _Rows(nn.Module):
    """A table without `nn.Embedding`."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(rows, width))


class _OwnTable(_ByIndexing):
    def __init__(self, n_heads: int, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128) -> None:
        super().__init__(n_heads, bidirectional, n_buckets, max_distance)
        self.table = _Rows(n_buckets, n_heads)  # type: ignore[assignment]


class _HeadByHead(_ByIndexing):
    def forward(self, query_len: int, key_len: int) -> Tensor:
        bucket = self.buckets(query_len, key_len)
        return torch.stack([column[bucket] for column in self.table.weight.unbind(1)])


T5_BIAS: dict[str, dict[str, Callable[..., nn.Module]]] = {
    "indexing": {"T5Bias": _ByIndexing},
    "one-hot": {"T5Bias": _ByOneHot},
    "last-rows": {"T5Bias": _LastRows},
    "own-table": {"T5Bias": _OwnTable},
    "head-by-head": {"T5Bias": _HeadByHead},
}


def _slopes_by_recursion(n_heads: int) -> Tensor:
    def numbers(n: int) -> list[float]:
        if math.log2(n).is_integer():
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start * start**i for i in range(n)]
        closest = 2 ** math.floor(math.log2(n))
        return numbers(closest) + numbers(2 * closest)[0::2][: n - closest]

    return torch.tensor(numbers(n_heads))


def _slopes_by_pow(n_heads: int) -> Tensor:
    power = 2 ** math.floor(math.log2(n_heads))
    first = torch.pow(torch.tensor(2 ** (-8 / power)), torch.arange(1, 1 + power))
    odd = torch.arange(1, 1 + 2 * (n_heads - power), 2)
    return torch.cat([first, torch.pow(torch.tensor(2 ** (-4 / power)), odd)])


def _slopes_from_above(n_heads: int) -> Tensor:
    """All slopes of the next power of two, those of the power below first."""
    above = 2 ** math.ceil(math.log2(n_heads))
    slopes = 1.0 / 2 ** (torch.arange(1, above + 1).float() * 8 / above)
    return slopes if above == n_heads else torch.cat([slopes[1::2], slopes[::2]])[:n_heads]


def _slopes_one_by_one(n_heads: int) -> Tensor:
    power = 1
    while 2 * power <= n_heads:
        power *= 2
    slopes = torch.empty(n_heads)
    for head in range(n_heads):
        slopes[head] = 2 ** (-8 * (head + 1) / power) if head < power else 2 ** (-4 * (2 * (head - power) + 1) / power)
    return slopes


ALIBI_SLOPES = {
    "recursion": {"alibi_slopes": _slopes_by_recursion},
    "pow": {"alibi_slopes": _slopes_by_pow},
    "from-above": {"alibi_slopes": _slopes_from_above},
    "one-by-one": {"alibi_slopes": _slopes_one_by_one},
}


def _bias_by_einsum(n_heads: int, query_len: int, key_len: int) -> Tensor:
    distance = relative.relative_distance(query_len, key_len).abs().float()
    return -torch.einsum("h,qk->hqk", _slopes_by_pow(n_heads), distance)


def _bias_by_outer(n_heads: int, query_len: int, key_len: int) -> Tensor:
    distance = _distance_by_sums(query_len, key_len).abs()
    return torch.outer(-_slopes_by_recursion(n_heads), distance.flatten().float()).view(n_heads, query_len, key_len)


def _bias_from_both_sides(n_heads: int, query_len: int, key_len: int) -> Tensor:
    distance = relative.relative_distance(query_len, key_len)
    return relative.alibi_slopes(n_heads).view(-1, 1, 1) * torch.minimum(distance, -distance)


def _bias_head_by_head(n_heads: int, query_len: int, key_len: int) -> Tensor:
    distance = relative.relative_distance(query_len, key_len).abs()
    return torch.stack([-slope * distance for slope in relative.alibi_slopes(n_heads).tolist()])


ALIBI_BIAS: dict[str, dict[str, Any]] = {
    "einsum": {"alibi_bias": _bias_by_einsum},
    "outer": {"alibi_bias": _bias_by_outer},
    "both-sides": {"alibi_bias": _bias_from_both_sides},
    "head-by-head": {"alibi_bias": _bias_head_by_head},
}
