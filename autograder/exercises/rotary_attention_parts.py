"""Rotary attention in parts, each of which a known mistake can get wrong alone, and the wrong parts."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from autograder.reference import rotary
from autograder.reference.sinusoidal import sinusoidal_encoding


class Parts(nn.Module):
    """Right as it stands; the known mistakes override one method each."""

    query: nn.Module
    key: nn.Module
    value: nn.Module
    output: nn.Module

    def __init__(self, d_model: int, n_heads: int, base: float = 10000.0) -> None:
        super().__init__()
        self.d_model, self.n_heads, self.base = d_model, n_heads, base
        self.make(d_model)

    def make(self, d_model: int) -> None:
        for name in ("query", "key", "value", "output"):
            setattr(self, name, nn.Linear(d_model, d_model))

    def prepare(self, x: Tensor, positions: Tensor) -> Tensor:
        return x

    def split(self, x: Tensor) -> Tensor:
        """`(batch, length, d_model)` -> `(batch, n_heads, length, head_dim)`."""
        return x.reshape(*x.shape[:2], self.n_heads, -1).transpose(1, 2)

    def merge(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2).flatten(2)

    def numbers(self, x: Tensor, positions: Tensor | None) -> Tensor:
        """The positions that are used."""
        return torch.arange(x.shape[1], device=x.device) if positions is None else positions

    def angles(self, positions: Tensor, x: Tensor) -> Tensor:
        """Broadcastable to `(batch, n_heads, length, head_dim // 2)`."""
        return rotary.rotary_angles(positions, self.d_model // self.n_heads, self.base).unsqueeze(-3)

    def rotate(self, x: Tensor, angles: Tensor) -> Tensor:
        return rotary.rotate_adjacent(x, angles)

    def turn_query(self, x: Tensor, angles: Tensor) -> Tensor:
        return self.rotate(x, angles)

    def turn_key(self, x: Tensor, angles: Tensor) -> Tensor:
        return self.rotate(x, angles)

    def turn_value(self, x: Tensor, angles: Tensor) -> Tensor:
        return x

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        scores: Tensor = query @ key.mT / query.shape[-1] ** 0.5
        return scores

    def weights(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1)

    def finish(self, mixed: Tensor, x: Tensor) -> Tensor:
        output: Tensor = self.output(mixed)
        return output

    def forward(self, x: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        positions = self.numbers(x, positions)
        prepared = self.prepare(x, positions)
        angles = self.angles(positions, x)
        query = self.turn_query(self.split(self.query(prepared)), angles)
        key = self.turn_key(self.split(self.key(prepared)), angles)
        value = self.turn_value(self.split(self.value(prepared)), angles)
        weights = self.weights(self.scores(query, key), mask)
        return self.finish(self.merge(weights @ value), x)


def but(**methods: Callable[..., object]) -> type[nn.Module]:
    """Rotary attention with other methods."""
    return type("RotaryAttention", (Parts,), methods)


def linear_layers(names: tuple[str, ...], *, bias: bool = True) -> Callable[..., None]:
    def make(self: Parts, d_model: int) -> None:
        for name in names:
            setattr(self, name, nn.Linear(d_model, d_model, bias=bias))

    return make


class OtherNames(Parts):
    def make(self, d_model: int) -> None:
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(d_model, d_model))

    def __getattr__(self, name: str) -> nn.Module:
        other = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "o_proj"}.get(name, name)
        found: nn.Module = super().__getattr__(other)  # type: ignore[assignment]
        return found


class NoOutput(Parts):
    make = linear_layers(("query", "key", "value"))

    def finish(self, mixed: Tensor, x: Tensor) -> Tensor:
        return mixed


class BeforeSplitting(Parts):
    """Rotates all of d_model, then splits into heads."""

    def angles(self, positions: Tensor, x: Tensor) -> Tensor:
        return rotary.rotary_angles(positions, self.d_model, self.base)

    def rotate(self, x: Tensor, angles: Tensor) -> Tensor:
        return self.split(rotary.rotate_adjacent(x.transpose(1, 2).flatten(2), angles))


class InputRotated(Parts):
    """Rotates x once, before the projections."""

    def prepare(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.merge(rotary.rotate_adjacent(self.split(x), self.angles(positions, x)))

    def rotate(self, x: Tensor, angles: Tensor) -> Tensor:
        return x


class SinusoidalAdded(Parts):
    def prepare(self, x: Tensor, positions: Tensor) -> Tensor:
        if positions.is_meta:
            return x
        table = sinusoidal_encoding(int(positions.max()) + 1, self.d_model, self.base, x.device, x.dtype)
        return x + table[positions]

    def rotate(self, x: Tensor, angles: Tensor) -> Tensor:
        return x


def half_angles(self: Parts, positions: Tensor, x: Tensor) -> Tensor:
    return rotary.rotary_angles(positions, self.d_model // self.n_heads, self.base).to(x.dtype).unsqueeze(-3)


def half_positions(self: Parts, positions: Tensor, x: Tensor) -> Tensor:
    # int64 -> x's dtype and back: where x is float32 nothing changes, in bfloat16 257 becomes 256.
    return rotary.rotary_angles(positions.to(x.dtype).long(), self.d_model // self.n_heads, self.base).unsqueeze(-3)


def angles_of(
    change: Callable[[Tensor], Tensor] = lambda positions: positions,
    place: Callable[[Tensor], Tensor] = lambda angles: angles.unsqueeze(-3),
) -> Callable[..., Tensor]:
    def angles(self: Parts, positions: Tensor, x: Tensor) -> Tensor:
        return place(rotary.rotary_angles(change(positions), self.d_model // self.n_heads, self.base))

    return angles


def weights_by(apply: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda self, scores, mask: scores.softmax(-1) if mask is None else apply(scores, mask)


def causal_weights(self: Parts, scores: Tensor, mask: Tensor | None) -> Tensor:
    triangle = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    return Parts.weights(self, scores, triangle if mask is None else mask & triangle)


def untouched(self: Parts, x: Tensor, angles: Tensor) -> Tensor:
    return x


def turned(self: Parts, x: Tensor, angles: Tensor) -> Tensor:
    return rotary.rotate_adjacent(x, angles)


def backwards(self: Parts, x: Tensor, angles: Tensor) -> Tensor:
    return rotary.rotate_adjacent(x, -angles)
