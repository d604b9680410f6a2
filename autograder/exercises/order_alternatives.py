"""Lesson 01: other right answers, in styles that students really use. The tests ask full marks for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Layer = Callable[[Tensor], Tensor]
Pair = tuple[Tensor, Tensor]


def _fused(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Pair:
    scores = torch.matmul(query, key.transpose(-2, -1)) * query.size(-1) ** -0.5
    share = scores.exp() if mask is None else scores.exp() * mask
    weights = share / share.sum(dim=-1, keepdim=True).clamp_min(1e-30)
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return torch.nan_to_num(output), weights


def _einsum(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> list[Tensor]:
    scores = torch.einsum("...qd,...kd->...qk", query, key) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
    return [torch.einsum("...qk,...kv->...qv", weights, value), weights]


def _loops(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Pair:
    *leading, q, d = query.shape
    k, d_v = value.shape[-2:]
    allowed = torch.ones(1, 1, dtype=torch.bool) if mask is None else mask
    allowed = allowed.expand(*leading, q, k).reshape(-1, q, k)
    queries, keys, values = query.reshape(-1, q, d), key.reshape(-1, k, d), value.reshape(-1, k, d_v)
    weights = query.new_zeros(len(queries), q, k)
    output = query.new_zeros(len(queries), q, d_v)
    for n in range(len(queries)):
        for i in range(q):
            open_keys = [j for j in range(k) if allowed[n, i, j]]
            if not open_keys:
                continue
            scores = [float(queries[n, i].double() @ keys[n, j].double()) / math.sqrt(d) for j in open_keys]
            total = sum(math.exp(score - max(scores)) for score in scores)
            for j, score in zip(open_keys, scores, strict=True):
                weights[n, i, j] = math.exp(score - max(scores)) / total
                output[n, i] += weights[n, i, j] * values[n, j]
    return output.reshape(*leading, q, d_v), weights.reshape(*leading, q, k)


def _lowest_fill(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Pair:
    scores = query / math.sqrt(query.shape[-1]) @ key.mT
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    weights = torch.where(mask, scores, torch.finfo(scores.dtype).min).softmax(-1)
    weights = torch.where(mask.any(-1, keepdim=True), weights, torch.zeros_like(weights))
    return weights @ value, weights


def _log_mask(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Pair:
    scores = query @ key.swapaxes(-1, -2) / query.new_tensor(query.shape[-1]).sqrt()
    if mask is not None:
        scores = scores + mask.to(scores.dtype).log()
    weights = F.softmax(scores, dim=-1)
    weights = weights.masked_fill(weights.isnan(), 0)
    return weights.matmul(value), weights


def _renormalised(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Pair:
    weights = F.softmax((query.unsqueeze(-2) * key.unsqueeze(-3)).sum(-1) / query.shape[-1] ** 0.5, dim=-1)
    if mask is not None:
        weights = weights * mask
        weights = weights / weights.sum(-1, keepdim=True)
        weights[weights != weights] = 0.0
    return weights @ value, weights


def _double_inside(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Pair:
    q, k, v = query.double(), key.double(), value.double()
    bias = torch.zeros(1, 1, dtype=q.dtype, device=q.device)
    if mask is not None:
        bias = torch.zeros(mask.shape, dtype=q.dtype, device=q.device).masked_fill_(~mask, -1e30)
    weights = torch.softmax(q.matmul(k.mT) / math.sqrt(q.shape[-1]) + bias, -1) * (bias == 0)
    return (weights @ v).to(query.dtype), weights.to(query.dtype)


ATTENTION: Mapping[str, Mapping[str, Any]] = {
    "fused output, weights from exp and sum": {"attention": _fused},
    "einsum, minus infinity, nan_to_num": {"attention": _einsum},
    "loops over queries and keys, float64 sums": {"attention": _loops},
    "lowest finite fill, where": {"attention": _lowest_fill},
    "log of the mask added": {"attention": _log_mask},
    "masked after softmax, then renormalised": {"attention": _renormalised},
    "float64 inside, additive mask": {"attention": _double_inside},
}


def _filled_rows(length: int, device: Any = None) -> Tensor:
    mask = torch.zeros((length, length), dtype=torch.bool, device=device)
    for row in range(length):
        mask[row, : row + 1] = True
    return mask


def _compared(length: int, device: Any = None) -> Tensor:
    position = torch.arange(length, device=device)
    return position[None, :] <= position[:, None]


CAUSAL_MASK: Mapping[str, Mapping[str, Any]] = {
    "tril of ones, then bool": {
        "causal_mask": lambda length, device=None: torch.tril(torch.ones(length, length, device=device)).bool()
    },
    "positions compared": {"causal_mask": _compared},
    "not triu": {
        "causal_mask": lambda length, device=None: ~torch.ones(length, length, device=device).triu(diagonal=1).bool()
    },
    "triu equals 0": {
        "causal_mask": lambda length, device=None: torch.triu(torch.ones(length, length, device=device), 1) == 0
    },
    "rows filled in a loop": {"causal_mask": _filled_rows},
    "list of lists": {
        "causal_mask": lambda length, device=None: torch.tensor(
            [[key <= query for key in range(length)] for query in range(length)], device=device
        )
    },
    "running sum of the identity": {
        "causal_mask": lambda length, device=None: torch.eye(length, device=device).cumsum(dim=0) > 0
    },
    "from torch's additive mask": {
        "causal_mask": lambda length, device=None: (
            torch.nn.Transformer.generate_square_subsequent_mask(length, device=device) == 0
        )
    },
}


def _undone(layer: Layer, x: Tensor, permutation: Tensor) -> float:
    back = torch.argsort(permutation)
    return torch.max(torch.abs(layer(x[:, permutation, :])[:, back] - layer(x))).item()


def _selected(layer: Layer, x: Tensor, permutation: Tensor) -> float:
    with torch.no_grad():
        found = layer(torch.index_select(x, 1, permutation)).double()
        wanted = torch.index_select(layer(x), 1, permutation).double()
    return float(torch.linalg.vector_norm((found - wanted).flatten(), ord=math.inf))


def _gathered(layer: Layer, x: Tensor, permutation: Tensor) -> float:
    index = permutation.view(1, -1, 1).expand_as(x)
    difference = layer(x.gather(1, index)) - layer(x).gather(1, index)
    return max(difference.amax().item(), -difference.amin().item())


def _searched(layer: Layer, x: Tensor, permutation: Tensor) -> float:
    before, after = layer(x), layer(torch.stack([x[:, int(p)] for p in permutation], dim=1))
    gap = 0.0
    for to, come_from in enumerate(permutation.tolist()):
        for b in range(len(x)):
            gap = max(gap, *(abs(float(v)) for v in after[b, to] - before[b, come_from]))
    return gap


def _multiplied(layer: Layer, x: Tensor, permutation: Tensor) -> float:
    swap = torch.eye(len(permutation), dtype=x.dtype, device=x.device)[permutation]
    return float((layer(swap @ x) - swap @ layer(x)).abs().flatten().sort().values[-1])


PERMUTATION_GAP: Mapping[str, Mapping[str, Any]] = {
    "output put back in order": {"permutation_gap": _undone},
    "index_select, infinity norm in float64": {"permutation_gap": _selected},
    "gather, larger of two extremes": {"permutation_gap": _gathered},
    "loops": {"permutation_gap": _searched},
    "permutation as a matrix": {"permutation_gap": _multiplied},
}


def _mean_weights_first(x: Tensor) -> Tensor:
    weights = torch.softmax(x @ x.T / math.sqrt(x.shape[1]), dim=1)
    return weights.mean(dim=0) @ x


def _one_query_at_a_time(x: Tensor) -> Tensor:
    total = torch.zeros_like(x[0])
    for query in x:
        shares = ((x * query).sum(1) / x.shape[1] ** 0.5).exp()
        total += (shares[:, None] * x).sum(0) / shares.sum()
    return total / len(x)


SENTENCE_VECTOR: Mapping[str, Mapping[str, Any]] = {
    "mean of the weights first": {"sentence_vector": _mean_weights_first},
    "one query at a time": {"sentence_vector": _one_query_at_a_time},
    "fused attention": {
        "sentence_vector": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None])[0].mean(0)
    },
    "einsum in float64": {
        "sentence_vector": lambda x: (
            torch.einsum(
                "qk,kd->d", (torch.einsum("qd,kd->qk", x, x).double() / x.shape[1] ** 0.5).softmax(1), x.double()
            )
            .div(x.shape[0])
            .to(x.dtype)
        )
    },
}


def _integer_loop(x: Tensor) -> Tensor:
    found = x.clone()
    for t in range(x.shape[1]):
        found[:, t] += t
    return found


def _fraction_loop(x: Tensor) -> Tensor:
    found = x.clone()
    for t in range(1, x.shape[1]):
        found[:, t, :] = x[:, t, :] + t / (x.shape[1] - 1)
    return found


def _counted(x: Tensor) -> Tensor:
    return torch.ones_like(x).cumsum(dim=1) - 1


def _stacked(x: Tensor, last: int) -> Tensor:
    return torch.stack([column + t / last for t, column in enumerate(x.unbind(1))], dim=1)


NAIVE_POSITIONS: Mapping[str, Mapping[str, Any]] = {
    "loops over positions": {"add_integer_positions": _integer_loop, "add_fraction_positions": _fraction_loop},
    "arange and linspace in the dtype of x": {
        "add_integer_positions": lambda x: (
            x + torch.arange(x.size(1), dtype=x.dtype, device=x.device).view(1, -1, 1).expand_as(x)
        ),
        "add_fraction_positions": lambda x: (
            x + torch.linspace(0, 1, x.size(1), dtype=x.dtype, device=x.device)[None, :, None]
        ),
    },
    "running sum of ones": {
        "add_integer_positions": lambda x: x + _counted(x),
        "add_fraction_positions": lambda x: x + _counted(x) / max(1, x.size(1) - 1),
    },
    "stacked columns, one position apart": {
        "add_integer_positions": lambda x: _stacked(x, 1),
        "add_fraction_positions": lambda x: x if x.shape[1] == 1 else _stacked(x, x.shape[1] - 1),
    },
    "float64 inside": {
        "add_integer_positions": lambda x: (x.double() + torch.arange(x.shape[1], device=x.device)[:, None]).to(
            x.dtype
        ),
        "add_fraction_positions": lambda x: (
            x.double() + torch.arange(x.shape[1], device=x.device)[:, None] / max(x.shape[1] - 1, 1)
        ).to(x.dtype),
    },
}
