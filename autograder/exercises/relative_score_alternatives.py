"""Other right answers to the exercises on Transformer-XL and DeBERTa, in the ways in which people write them."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from autograder.reference import relative


def _shift_as_in_the_code(x: Tensor) -> Tensor:
    """The lines of the paper's code, with the axes of queries and keys in front."""
    moved = x.movedim((-2, -1), (0, 1))
    pad = torch.zeros(moved.shape[0], 1, *moved.shape[2:], dtype=x.dtype, device=x.device)
    padded = torch.cat([pad, moved], dim=1)
    padded = padded.view(moved.shape[1] + 1, moved.shape[0], *moved.shape[2:])
    return padded[1:].view_as(moved).movedim((0, 1), (-2, -1))


def _shift_by_gather(scores: Tensor) -> Tensor:
    q, k = scores.shape[-2:]
    i, j = torch.arange(q, device=scores.device)[:, None], torch.arange(k, device=scores.device)
    distance = i + (k - q) - j
    column = (k - 1 - distance).clamp(max=k - 1)
    shifted = torch.gather(scores, -1, column.expand_as(scores))
    return shifted.masked_fill(distance < 0, -math.inf)


def _shift_row_by_row(scores: Tensor) -> Tensor:
    q = scores.shape[-2]
    rows = [scores[..., i, :].roll(-(q - 1 - i), dims=-1) for i in range(q)]
    return torch.stack(rows, dim=-2)


def _shift_by_slices(scores: Tensor) -> Tensor:
    q, k = scores.shape[-2:]
    result = torch.full_like(scores, math.nan)  # nobody looks at the future
    for i in range(q):
        n = i + (k - q) + 1
        result[..., i, :n] = scores[..., i, k - n :]
    return result


def _shift_by_flat_index(scores: Tensor) -> Tensor:
    q, k = scores.shape[-2:]
    flat = torch.cat([scores.flatten(-2), torch.zeros_like(scores[..., 0, :])], dim=-1)
    start = q - 1 + torch.arange(q, device=scores.device) * (k - 1)
    return flat[..., start[:, None] + torch.arange(k, device=scores.device)]


RELATIVE_SHIFT: dict[str, dict[str, Any]] = {
    "as-in-the-code": {"relative_shift": _shift_as_in_the_code},
    "gather": {"relative_shift": _shift_by_gather},
    "row-by-row": {"relative_shift": _shift_row_by_row},
    "slices": {"relative_shift": _shift_by_slices},
    "flat-index": {"relative_shift": _shift_by_flat_index},
}


def _xl_einsum(query: Tensor, key: Tensor, relative: Tensor, content_bias: Tensor, position_bias: Tensor) -> Tensor:
    content = torch.einsum("bhqd,bhkd->bhqk", query + content_bias[None, :, None], key)
    position = torch.einsum("bhqd,hkd->bhqk", query + position_bias[None, :, None], relative)
    scores = (content + _shift_by_gather(position)) / float(query.shape[-1]) ** 0.5
    q, k = scores.shape[-2:]
    seen = torch.ones(q, k, device=query.device).tril(k - q).bool()
    masked: Tensor = scores.masked_fill(~seen, float("-inf"))
    return masked


def _xl_four_terms(query: Tensor, key: Tensor, relative: Tensor, content_bias: Tensor, position_bias: Tensor) -> Tensor:
    heads, d = content_bias.shape
    a = query @ key.transpose(-2, -1)
    b = _shift_row_by_row(query @ relative.transpose(-2, -1))
    c = (key @ content_bias.view(heads, d, 1)).transpose(-2, -1)
    e = _shift_row_by_row((relative @ position_bias[..., None]).mT.expand(a.shape))
    q, k = a.shape[-2:]
    rows, columns = torch.arange(k - q, k, device=a.device), torch.arange(k, device=a.device)
    return torch.where(columns > rows[:, None], -math.inf, (a + b + c + e) * d**-0.5)


def _xl_without_shift(
    query: Tensor, key: Tensor, relative: Tensor, content_bias: Tensor, position_bias: Tensor
) -> Tensor:
    """The row for each pair is looked up."""
    q, k, d = query.size(-2), key.size(-2), query.size(-1)
    distance = torch.arange(k - q, k, device=query.device)[:, None] - torch.arange(k, device=query.device)
    rows = relative[:, (k - 1 - distance).clamp(0, k - 1)]  # (heads, q, k, d)
    content = torch.matmul(query + content_bias.unsqueeze(1), key.transpose(2, 3))
    position = torch.einsum("bhqd,hqkd->bhqk", query + position_bias.unsqueeze(1), rows)
    scores = (content + position) / math.sqrt(d)
    mask = torch.zeros(q, k, dtype=scores.dtype, device=query.device).masked_fill(distance < 0, -math.inf)
    return scores + mask


def _xl_pair_by_pair(
    query: Tensor, key: Tensor, relative: Tensor, content_bias: Tensor, position_bias: Tensor
) -> Tensor:
    q, k, d = query.shape[2], key.shape[2], query.shape[3]
    rows = []
    for i in range(q):
        row = []
        for j in range(k):
            distance = i + (k - q) - j
            if distance < 0:
                row.append(torch.full(query.shape[:2], -math.inf, dtype=query.dtype, device=query.device))
                continue
            content = ((query[:, :, i] + content_bias) * key[:, :, j]).sum(-1)
            position = ((query[:, :, i] + position_bias) * relative[:, k - 1 - distance]).sum(-1)
            row.append((content + position) / math.sqrt(d))
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2)


TRANSFORMER_XL_SCORES: dict[str, dict[str, Any]] = {
    "einsum": {"transformer_xl_scores": _xl_einsum},
    "four-terms": {"transformer_xl_scores": _xl_four_terms},
    "without-shift": {"transformer_xl_scores": _xl_without_shift},
    "pair-by-pair": {"transformer_xl_scores": _xl_pair_by_pair},
}


def _delta(n: int, max_distance: int, device: torch.device) -> Tensor:
    position = torch.arange(n, device=device)
    return torch.clamp(position.unsqueeze(1) - position.unsqueeze(0) + max_distance, 0, 2 * max_distance - 1)


def _deberta_by_look_up(
    query: Tensor, key: Tensor, relative_query: Tensor, relative_key: Tensor, max_distance: int
) -> Tensor:
    """The row for each pair is looked up before anything is multiplied."""
    index = _delta(query.shape[-2], max_distance, query.device)
    content = torch.einsum("bhid,bhjd->bhij", query, key)
    to = torch.einsum("bhid,hijd->bhij", query, relative_key[:, index])
    back = torch.einsum("bhjd,hijd->bhij", key, relative_query[:, index.T])
    return (content + to + back) / math.sqrt(3 * query.shape[-1])


def _deberta_by_gather(
    query: Tensor, key: Tensor, relative_query: Tensor, relative_key: Tensor, max_distance: int
) -> Tensor:
    """Both look-ups at (i, j) with the second index reversed."""
    batch, heads, n, d = query.shape
    index = _delta(n, max_distance, query.device).expand(batch, heads, n, n)
    to = torch.gather(query @ relative_key.transpose(1, 2), 3, index)
    back = torch.gather(relative_query @ key.transpose(2, 3), 2, index.transpose(2, 3))
    scale = 1 / math.sqrt(3 * d)
    return query @ key.transpose(2, 3) * scale + to * scale + back * scale


def _deberta_scaled_first(
    query: Tensor, key: Tensor, relative_query: Tensor, relative_key: Tensor, max_distance: int
) -> Tensor:
    n, d = query.shape[-2:]
    distance = relative.relative_distance(n, n).to(query.device)  # key minus query
    toward, backward = (
        (sign * distance + max_distance).clamp(0, 2 * max_distance - 1).expand(*query.shape[:-1], n) for sign in (-1, 1)
    )
    query, key = query / (3 * d) ** 0.25, key / (3 * d) ** 0.25
    relative_query, relative_key = relative_query / (3 * d) ** 0.25, relative_key / (3 * d) ** 0.25
    position = (query @ relative_key.mT).gather(-1, toward)
    content = (relative_query @ key.mT).mT.gather(-1, backward.mT).mT
    return query @ key.mT + position + content


def _deberta_pair_by_pair(
    query: Tensor, key: Tensor, relative_query: Tensor, relative_key: Tensor, max_distance: int
) -> Tensor:
    n, d = query.shape[-2:]

    def delta(i: int, j: int) -> int:
        return min(max(i - j + max_distance, 0), 2 * max_distance - 1)

    rows = []
    for i in range(n):
        row = []
        for j in range(n):
            q, k = query[:, :, i], key[:, :, j]
            row.append((q * (k + relative_key[:, delta(i, j)]) + k * relative_query[:, delta(j, i)]).sum(-1))
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2) / math.sqrt(3 * d)


def _deberta_by_one_hot(
    query: Tensor, key: Tensor, relative_query: Tensor, relative_key: Tensor, max_distance: int
) -> Tensor:
    n, d = query.shape[-2:]
    chosen = F.one_hot(_delta(n, max_distance, query.device), 2 * max_distance).to(query)  # (i, j, row)
    to = torch.einsum("bhid,hrd,ijr->bhij", query, relative_key, chosen)
    back = torch.einsum("bhjd,hrd,jir->bhij", key, relative_query, chosen)
    return (query @ key.mT + to + back) / math.sqrt(3.0 * d)


DEBERTA_SCORES: dict[str, dict[str, Any]] = {
    "look-up": {"deberta_scores": _deberta_by_look_up},
    "gather": {"deberta_scores": _deberta_by_gather},
    "scaled-first": {"deberta_scores": _deberta_scaled_first},
    "pair-by-pair": {"deberta_scores": _deberta_pair_by_pair},
    "one-hot": {"deberta_scores": _deberta_by_one_hot},
}
