"""The two obvious ways to mark positions, which lesson 01 tries and drops: the number, and the fraction of the way."""

from __future__ import annotations

import torch
from torch import Tensor


def add_integer_positions(x: Tensor) -> Tensor:
    """Add t to every feature of position t. `x` is `(batch, length, d_model)`; the result has its shape and dtype."""
    position = torch.arange(x.shape[1], device=x.device)
    return x + position[:, None]


def add_fraction_positions(x: Tensor) -> Tensor:
    """Add t / (length - 1) to every feature of position t; a single position gets 0. Shapes as above."""
    length = x.shape[1]
    position = torch.arange(length, dtype=torch.float64, device=x.device)
    return x + (position / max(length - 1, 1)).to(x.dtype)[:, None]
