"""Attention and what it knows of order. Source: Vaswani et al. (2017), "Attention Is All You Need", section 3.2.1.

Shape letters: q queries, k keys, d width of queries and keys, d_v width of values, … any leading axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Mix the values, each query with its own weights.

    Args:
        query: `(…, q, d)`.
        key: `(…, k, d)`.
        value: `(…, k, d_v)`.
        mask: bool, broadcastable to `(…, q, k)`; True = may attend. None: every query may attend to every key.

    Returns:
        output `(…, q, d_v)` and weights `(…, q, k)`, in the dtype of the inputs. A query that may attend to nothing has
        zero weights and zero output, and passes zero gradient.
    """
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        # The lowest finite number instead of -inf: softmax and its gradient stay finite on a fully blocked row.
        blocked = ~mask
        scores = scores.masked_fill(blocked, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1).masked_fill(blocked, 0.0)
    return weights @ value, weights


def causal_mask(length: int, device: torch.device | str | None = None) -> Tensor:
    """Who may attend to whom when nobody looks ahead: bool `(length, length)`, True on and below the diagonal."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def permutation_gap(layer: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> float:
    """How far a layer is from treating all orders alike: 0 for a layer that only carries its input's order along.

    Args:
        layer: deterministic, `(batch, length, d_model)` to `(batch, length, …)`.
        x: `(batch, length, d_model)`.
        permutation: `(length,)` int64, each index once.

    Returns:
        The largest absolute difference between `layer(x[:, permutation])` and `layer(x)[:, permutation]`.
    """
    return float((layer(x[:, permutation]) - layer(x)[:, permutation]).abs().max().item())


def sentence_vector(x: Tensor) -> Tensor:
    """One vector for a sentence: the mean over positions of self-attention, `(length, d_model)` to `(d_model,)`."""
    output, _ = attention(x, x, x)
    return output.mean(dim=0)
