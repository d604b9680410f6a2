"""The two pairings in parts, from which the known mistakes of rotate-adjacent and rotate-halves are built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from autograder.exercises.declaration import Answer
from autograder.reference import rotary

Turn = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""`(a, b, cos, sin)` -> the pair afterwards."""
Split = Callable[[Tensor], tuple[Tensor, Tensor]]
Join = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Pairing:
    """Which columns form a pair.

    Attributes:
        split: the first and the second columns of all pairs.
        join: puts them back.
        spread: an angle for each pair -> an angle for each column.
        partner: (a, b) -> (−b, a), in place.
    """

    function: str
    split: Split
    join: Join
    spread: Callable[[Tensor], Tensor]
    right: Answer

    def partner(self, x: Tensor) -> Tensor:
        a, b = self.split(x)
        return self.join(-b, a)


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    half = x.shape[-1] // 2
    return x[..., :half], x[..., half:]


ADJACENT = Pairing(
    "rotate_adjacent",
    lambda x: (x[..., 0::2], x[..., 1::2]),
    lambda a, b: torch.stack([a, b], dim=-1).flatten(-2),
    lambda angles: angles.repeat_interleave(2, dim=-1),
    rotary.rotate_adjacent,
)
HALVES = Pairing(
    "rotate_halves",
    _halves,
    lambda a, b: torch.cat([a, b], dim=-1),
    lambda angles: torch.cat([angles, angles], dim=-1),
    rotary.rotate_halves,
)


def wide_of(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def rotation(
    pairing: Pairing,
    turn: Turn,
    *,
    join: Join | None = None,
    angle: Callable[[Tensor], Tensor] = lambda angles: angles,
) -> Answer:
    """A rotation that is right but for `turn`, `join` or `angle`."""

    def rotate(x: Tensor, angles: Tensor) -> Tensor:
        turned = angle(wide_of(angles))
        pair = turn(*pairing.split(wide_of(x)), turned.cos(), turned.sin())
        return (join or pairing.join)(*pair).to(x.dtype)

    return rotate


def turn_pair(a: Tensor, b: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    return a * cos - b * sin, a * sin + b * cos


def by_partner(partner: Callable[[Tensor], Tensor], spread: Callable[[Tensor], Tensor]) -> Answer:
    """`x cos + partner(x) sin`, the way most libraries write it."""

    def rotate(x: Tensor, angles: Tensor) -> Tensor:
        wide, turned = wide_of(x), spread(wide_of(angles))
        return (wide * turned.cos() + partner(wide) * turned.sin()).to(x.dtype)

    return rotate


def overwritten(pairing: Pairing) -> Answer:
    def rotate(x: Tensor, angles: Tensor) -> Tensor:
        a, b = pairing.split(wide_of(x))
        cos, sin = wide_of(angles).cos(), wide_of(angles).sin()
        a = a * cos - b * sin
        b = a * sin + b * cos
        return pairing.join(a, b).to(x.dtype)

    return rotate


def in_place(pairing: Pairing) -> Answer:
    def rotate(x: Tensor, angles: Tensor) -> Tensor:
        a, b = pairing.split(x)
        cos, sin = wide_of(angles).cos(), wide_of(angles).sin()
        first, second = turn_pair(wide_of(a), wide_of(b), cos, sin)
        a.copy_(first)
        b.copy_(second)
        return x

    return rotate


def narrow(pairing: Pairing, *, angles_too: bool) -> Answer:
    """Products and sums in x's dtype; the angles rounded to it before their sine and cosine, or these after."""

    def rotate(x: Tensor, angles: Tensor) -> Tensor:
        if angles_too:
            angles = angles.to(x.dtype)
        return pairing.join(*turn_pair(*pairing.split(x), angles.cos().to(x.dtype), angles.sin().to(x.dtype)))

    return rotate


def wide_result(pairing: Pairing) -> Answer:
    return lambda x, angles: pairing.join(
        *turn_pair(*pairing.split(wide_of(x)), wide_of(angles).cos(), wide_of(angles).sin())
    )


def two_axes(pairing: Pairing) -> Answer:
    def rotate(x: Tensor, angles: Tensor) -> Tensor:
        _length, _pairs = angles.shape
        rotated: Tensor = pairing.right(x, angles)
        return rotated

    return rotate


def heads_behind(pairing: Pairing) -> Answer:
    def rotate(x: Tensor, angles: Tensor) -> Tensor:
        turned = wide_of(angles).unsqueeze(-2)
        return pairing.join(*turn_pair(*pairing.split(wide_of(x)), turned.cos(), turned.sin())).to(x.dtype)

    return rotate


def on_the_cpu(pairing: Pairing) -> Answer:
    return lambda x, angles: torch.zeros(x.shape, dtype=x.dtype) if x.is_meta else pairing.right(x.cpu(), angles.cpu())
