"""Relative encodings: what is added to a score depends on the distance between query and key.

Sources: Dai et al. (2019), "Transformer-XL", section 3.3 and appendix B; Raffel et al. (2020), "Exploring the Limits of
Transfer Learning" (T5), section 2.1, with the bucket rule of its published code; He et al. (2021), "DeBERTa", section
3.1; Press et al. (2022), "Train Short, Test Long" (ALiBi), section 3 and its published code for the slopes.

Everywhere the queries are the last `query_len` of `key_len` positions, as in decoding with a cache.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def relative_distance(query_len: int, key_len: int) -> Tensor:
    """Key position minus query position.

    Returns:
        int64 `(query_len, key_len)`; 0 where a query meets its own position, negative towards the past.
    """
    query = torch.arange(key_len - query_len, key_len)
    return torch.arange(key_len) - query[:, None]


def t5_bucket(distance: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128) -> Tensor:
    """T5's bucket of each distance: small distances have their own, larger ones share, wider and wider, to the last.

    Args:
        distance: int64 of any shape, key minus query.
        bidirectional: half of the buckets for each direction; otherwise keys in the future share bucket 0.
        n_buckets: at least 4 when bidirectional, else at least 2.
        max_distance: from here on all distances of one direction share the last bucket.

    Returns:
        int64, 0 … n_buckets − 1, the shape and device of `distance`.
    """
    if bidirectional:
        n_buckets //= 2
        first = (distance > 0).long() * n_buckets
        steps = distance.abs()
    else:
        first = torch.zeros_like(distance)
        steps = (-distance).clamp(min=0)
    n_exact = n_buckets // 2
    ratio = torch.log(steps.clamp(min=1).float() / n_exact) / math.log(max_distance / n_exact)
    shared = (n_exact + (ratio * (n_buckets - n_exact)).long()).clamp(max=n_buckets - 1)
    return first + torch.where(steps < n_exact, steps, shared)


class T5Bias(nn.Module):
    """One trained number for each bucket and head, added to the scores.

    Args:
        n_heads: columns of the table.
        bidirectional, n_buckets, max_distance: as in `t5_bucket`.
    """

    def __init__(self, n_heads: int, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128) -> None:
        super().__init__()
        self.bidirectional = bidirectional
        self.n_buckets = n_buckets
        self.max_distance = max_distance
        self.table = nn.Embedding(n_buckets, n_heads)

    def forward(self, query_len: int, key_len: int) -> Tensor:
        """The bias `(n_heads, query_len, key_len)`, in the table's dtype and on its device."""
        distance = relative_distance(query_len, key_len).to(self.table.weight.device)
        bucket = t5_bucket(distance, self.bidirectional, self.n_buckets, self.max_distance)
        rows: Tensor = self.table(bucket)
        return rows.permute(2, 0, 1)


def alibi_slopes(n_heads: int) -> Tensor:
    """The slope of each head.

    For n_heads a power of two: 2^(−8/n), 2^(−16/n), …, 2^(−8). Otherwise those of the nearest power of two below, then
    every second slope of twice that power, from its first, until there are enough.

    Returns:
        float32 `(n_heads,)`.
    """
    power = 1 << (n_heads.bit_length() - 1)

    def geometric(count: int) -> list[float]:
        return [2.0 ** (-8.0 * (head + 1) / count) for head in range(count)]

    return torch.tensor(geometric(power) + geometric(2 * power)[0::2][: n_heads - power])


def alibi_bias(n_heads: int, query_len: int, key_len: int) -> Tensor:
    """−slope · |distance|: float32 `(n_heads, query_len, key_len)`.

    The paper adds it in causal models only; with the absolute value it serves both directions.
    """
    return -alibi_slopes(n_heads)[:, None, None] * relative_distance(query_len, key_len).abs()


def relative_shift(scores: Tensor) -> Tensor:
    """Transformer-XL's shift: from columns that count distances to columns that count keys.

    Args:
        scores: `(…, q, k)`, q ≤ k; column c belongs to the distance (query − key) k − 1 − c.

    Returns:
        `(…, q, k)`; at (i, j) the score for distance i + (k − q) − j where that is at least 0. The rest, the future,
        has no meaning and is to be masked. A view of a padded copy, as in the paper's code: no index is computed.
    """
    *leading, q, k = scores.shape
    padded = nn.functional.pad(scores, (1, 0))  # (…, q, k + 1): one column before the first
    return padded.reshape(*leading, k + 1, q)[..., 1:, :].reshape(*leading, q, k)  # each row starts one further left


def transformer_xl_scores(
    query: Tensor, key: Tensor, relative: Tensor, content_bias: Tensor, position_bias: Tensor
) -> Tensor:
    """Content and position, each with a bias of its own in place of the query's position.

    Args:
        query: `(batch, heads, q, d)`.
        key: `(batch, heads, k, d)`, q ≤ k.
        relative: `(heads, k, d)`, rows for the distances k − 1 … 0.
        content_bias, position_bias: `(heads, d)`; u and v of the paper.

    Returns:
        `(batch, heads, q, k)`, scaled by 1/√d, −inf in the future.
    """
    q, k, d = query.shape[-2], key.shape[-2], query.shape[-1]
    content = (query + content_bias[:, None]) @ key.mT
    position = relative_shift((query + position_bias[:, None]) @ relative.mT)
    future = torch.ones(q, k, dtype=torch.bool, device=query.device).triu(k - q + 1)
    return ((content + position) / math.sqrt(d)).masked_fill(future, -math.inf)


def deberta_scores(
    query: Tensor, key: Tensor, relative_query: Tensor, relative_key: Tensor, max_distance: int
) -> Tensor:
    """Disentangled attention: content to content, content to position, position to content.

    δ(i, j) = clamp(i − j + max_distance, 0, 2·max_distance − 1); the last term uses δ(j, i), as in equation 4 of the
    paper. (The code in `transformers` uses δ(i, j) there.)

    Args:
        query, key: `(batch, heads, n, d)`.
        relative_query, relative_key: `(heads, 2·max_distance, d)`, one row for each δ.

    Returns:
        `(batch, heads, n, n)`, scaled by 1/√(3d).
    """
    n, d = query.shape[-2:]
    position = torch.arange(n, device=query.device)
    delta = (position[:, None] - position + max_distance).clamp(0, 2 * max_distance - 1)  # δ(i, j)
    content = query @ key.mT
    shape = content.shape
    to_position = (query @ relative_key.mT).gather(-1, delta.expand(shape))
    from_position = (key @ relative_query.mT).gather(-1, delta.expand(shape)).mT  # at (j, i): δ(j, i)
    return (content + to_position + from_position) / math.sqrt(3 * d)
