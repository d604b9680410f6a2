"""Other right answers to the rotary exercises, in the ways in which people write them. Each must get full marks."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.reference import rotary


def _require_even(head_dim: int) -> None:
    if head_dim % 2 != 0:
        raise ValueError(f"head_dim has to be even, but head_dim is {head_dim}")


def _angles_float32(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
    _require_even(head_dim)
    inverse = 1.0 / base ** (torch.arange(0, head_dim, 2, device=positions.device).float() / head_dim)
    return positions.unsqueeze(-1).float() * inverse


def _angles_by_exp(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
    _require_even(head_dim)
    exponent = torch.arange(head_dim // 2, device=positions.device) * (-2 * math.log(base) / head_dim)
    return torch.einsum("...l,i->...li", positions.to(torch.float32), exponent.exp())


def _angles_by_list(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
    _require_even(head_dim)
    columns = [positions / base ** (2 * i / head_dim) for i in range(head_dim // 2)]
    return torch.stack(columns, dim=-1).to(torch.float32)


def _angles_by_pow(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
    if head_dim & 1:
        raise ValueError(f"odd head_dim: {head_dim}")
    pairs = torch.arange(head_dim // 2, dtype=torch.float64, device=positions.device)
    angles = positions.double()[..., None] * torch.pow(torch.tensor(base, dtype=torch.float64), -2 * pairs / head_dim)
    return angles.type(torch.float32)


ROTARY_ANGLES: dict[str, dict[str, Any]] = {
    "float32": {"rotary_angles": _angles_float32},
    "exp-einsum": {"rotary_angles": _angles_by_exp},
    "pair-by-pair": {"rotary_angles": _angles_by_list},
    "float64-inside": {"rotary_angles": _angles_by_pow},
}


def _adjacent_complex(x: Tensor, angles: Tensor) -> Tensor:
    wide = x.double() if x.dtype == torch.float64 else x.float()
    pairs = torch.view_as_complex(wide.reshape(*x.shape[:-1], -1, 2))
    hands = torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(pairs * hands).flatten(-2).type_as(x)


def _adjacent_by_slices(x: Tensor, angles: Tensor) -> Tensor:
    result = torch.empty_like(x)
    first, second = x[..., 0::2].float(), x[..., 1::2].float()
    result[..., 0::2] = first * torch.cos(angles) - second * torch.sin(angles)
    result[..., 1::2] = first * torch.sin(angles) + second * torch.cos(angles)
    return result


def _adjacent_by_partner(x: Tensor, angles: Tensor) -> Tensor:
    wide = x.to(torch.float64)
    partner = torch.stack([-wide[..., 1::2], wide[..., ::2]], dim=-1).reshape(x.shape)
    doubled = angles.repeat_interleave(2, dim=-1)
    return (wide * doubled.cos() + partner * doubled.sin()).to(x.dtype)


def _adjacent_by_matrix(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = angles.double().cos(), angles.double().sin()
    blocks = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], dim=-2)  # (…, pairs, 2, 2)
    pairs = x.double().view(*x.shape[:-1], -1, 2, 1)
    return (blocks @ pairs).flatten(-3).to(x.dtype)


def _adjacent_pair_by_pair(x: Tensor, angles: Tensor) -> Tensor:
    columns = []
    for i in range(x.shape[-1] // 2):
        a, b, angle = x[..., 2 * i].float(), x[..., 2 * i + 1].float(), angles[..., i]
        columns += [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]
    return torch.stack(columns, dim=-1).to(x.dtype)


def _adjacent_through_halves(x: Tensor, angles: Tensor) -> Tensor:
    order = torch.arange(x.shape[-1], device=x.device).view(-1, 2).T.flatten()
    return rotary.rotate_halves(x[..., order], angles)[..., order.argsort()]


ROTATE_ADJACENT = {
    "complex": {"rotate_adjacent": _adjacent_complex},
    "slices": {"rotate_adjacent": _adjacent_by_slices},
    "partner": {"rotate_adjacent": _adjacent_by_partner},
    "matrix": {"rotate_adjacent": _adjacent_by_matrix},
    "pair-by-pair": {"rotate_adjacent": _adjacent_pair_by_pair},
    "through-halves": {"rotate_adjacent": _adjacent_through_halves},
}


def _halves_by_partner(x: Tensor, angles: Tensor) -> Tensor:
    wide = x.float()
    first, second = wide.chunk(2, dim=-1)
    angle = torch.cat((angles, angles), dim=-1)
    return (wide * angle.cos() + torch.cat((-second, first), dim=-1) * angle.sin()).to(x.dtype)


def _halves_by_roll(x: Tensor, angles: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    sign = torch.ones(x.shape[-1], device=x.device)
    sign[:half] = -1
    partner = x.float().roll(half, dims=-1) * sign
    return (x.float() * angles.cos().tile(2) + partner * angles.sin().tile(2)).to(x.dtype)


def _halves_complex(x: Tensor, angles: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    hands = torch.complex(x[..., :half].double(), x[..., half:].double()) * torch.exp(1j * angles.double())
    return torch.cat([hands.real, hands.imag], dim=-1).to(x.dtype)


def _halves_by_slices(x: Tensor, angles: Tensor) -> Tensor:
    half = x.size(-1) // 2
    result = torch.zeros_like(x)
    a, b = x[..., :half], x[..., half:]
    result[..., :half] = a * angles.cos() - b * angles.sin()  # float32 angles make float32 products
    result[..., half:] = a * angles.sin() + b * angles.cos()
    return result


ROTATE_HALVES = {
    "partner": {"rotate_halves": _halves_by_partner},
    "roll": {"rotate_halves": _halves_by_roll},
    "complex": {"rotate_halves": _halves_complex},
    "slices": {"rotate_halves": _halves_by_slices},
}


def _convert_by_list(weight: Tensor, n_heads: int) -> Tensor:
    head_dim = weight.shape[0] // n_heads
    rows = [h * head_dim + i for h in range(n_heads) for start in (0, 1) for i in range(start, head_dim, 2)]
    return weight[rows]


def _convert_by_chunks(weight: Tensor, n_heads: int) -> Tensor:
    return torch.cat([torch.cat([head[0::2], head[1::2]]) for head in weight.chunk(n_heads)])


def _convert_by_rearranging(weight: Tensor, n_heads: int) -> Tensor:
    rows, width = weight.shape
    return weight.view(n_heads, rows // n_heads // 2, 2, width).permute(0, 2, 1, 3).reshape(rows, width)


def _convert_into_empty(weight: Tensor, n_heads: int) -> Tensor:
    result, heads = torch.empty_like(weight), weight.reshape(n_heads, -1, weight.shape[1])
    half = heads.shape[1] // 2
    target = result.view(heads.shape)
    target[:, :half] = heads[:, ::2]
    target[:, half:] = heads[:, 1::2]
    return result


def _convert_by_matrix(weight: Tensor, n_heads: int) -> Tensor:
    rows = torch.arange(len(weight), device=weight.device).view(n_heads, -1)
    order = torch.cat([rows[:, ::2], rows[:, 1::2]], dim=1).flatten()
    return torch.eye(len(weight), dtype=weight.dtype, device=weight.device)[order] @ weight


ADJACENT_TO_HALVES = {
    "list": {"adjacent_to_halves": _convert_by_list},
    "chunks": {"adjacent_to_halves": _convert_by_chunks},
    "rearranging": {"adjacent_to_halves": _convert_by_rearranging},
    "into-empty": {"adjacent_to_halves": _convert_into_empty},
    "permutation-matrix": {"adjacent_to_halves": _convert_by_matrix},
}


class _Fused(nn.Module):
    """With torch's own attention."""

    def __init__(self, d_model: int, n_heads: int, base: float = 10000.0) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model) for _ in range(4))
        self.n_heads, self.head_dim, self.base = n_heads, d_model // n_heads, base

    def forward(self, x: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        batch, length, d_model = x.shape
        if positions is None:
            positions = torch.arange(length, device=x.device)
        angles = _angles_float32(positions.expand(batch, length), self.head_dim, self.base)[:, None]
        q, k, v = (
            layer(x).view(batch, length, self.n_heads, self.head_dim).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        q, k = _adjacent_complex(q, angles), _adjacent_complex(k, angles)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        output: Tensor = self.output(mixed.transpose(1, 2).reshape(batch, length, d_model))
        return output


class _ThroughHalves(_Fused):
    """The halves pairing on converted weights gives the same scores."""

    def forward(self, x: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        numbers = torch.arange(x.shape[1], device=x.device) if positions is None else positions
        angles = rotary.rotary_angles(numbers, self.head_dim, self.base)
        angles = angles if angles.dim() == 2 else angles[:, None]

        def heads(weight: Tensor, bias: Tensor) -> Tensor:
            return F.linear(x, weight, bias).view(*x.shape[:2], self.n_heads, -1).transpose(1, 2)

        def converted(layer: nn.Linear) -> Tensor:
            weight = rotary.adjacent_to_halves(layer.weight, self.n_heads)
            bias = rotary.adjacent_to_halves(layer.bias[:, None], self.n_heads)[:, 0]
            return rotary.rotate_halves(heads(weight, bias), angles)

        scores = converted(self.query) @ converted(self.key).transpose(-2, -1) * self.head_dim**-0.5
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), float("-inf"))
        mixed = scores.softmax(dim=-1) @ heads(self.value.weight, self.value.bias)
        output: Tensor = self.output(mixed.transpose(1, 2).flatten(-2))
        return output


class _HeadByHead(nn.Module):
    """A loop over heads, float32 throughout."""

    def __init__(self, d_model: int, n_heads: int, base: float = 10000.0) -> None:
        super().__init__()
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        self.n_heads, self.base = n_heads, base

    def forward(self, x: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        batch, length, _ = x.shape
        numbers = positions if positions is not None else torch.arange(length, device=x.device)
        if mask is not None:
            mask = torch.broadcast_to(mask, (batch, self.n_heads, length, length))
        mixed = []
        triples = zip(*(layer(x).chunk(self.n_heads, -1) for layer in (self.query, self.key, self.value)), strict=True)
        for head, (q, k, v) in enumerate(triples):
            angles = rotary.rotary_angles(numbers, q.shape[-1], self.base)
            q, k = _adjacent_by_partner(q.float(), angles), _adjacent_by_partner(k.float(), angles)
            scores = torch.einsum("bid,bjd->bij", q, k) / math.sqrt(q.shape[-1])
            if mask is not None:
                scores = torch.where(mask[:, head], scores, -1e9)
            mixed.append(torch.einsum("bij,bjd->bid", scores.softmax(-1), v.float()))
        output: Tensor = self.output(torch.cat(mixed, dim=-1).to(x.dtype))
        return output


class _CountsFromOne(_Fused):
    """Scores depend on distances alone, so a shift of all positions changes nothing."""

    def forward(self, x: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        numbers = torch.arange(x.shape[1], device=x.device) if positions is None else positions
        return super().forward(x, numbers + 1, mask)


ROTARY_ATTENTION: dict[str, dict[str, Any]] = {
    "fused": {"RotaryAttention": _Fused},
    "through-halves": {"RotaryAttention": _ThroughHalves},
    "head-by-head": {"RotaryAttention": _HeadByHead},
    "counts-from-one": {"RotaryAttention": _CountsFromOne},
}
