"""The sinusoidal encoding of Vaswani et al. (2017), "Attention Is All You Need", section 3.5.

Everything is computed in float64 on the CPU, where it is right on every platform, and then moved: not every accelerator
has float64.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def _check_width(d_model: int) -> None:
    if d_model < 2 or d_model % 2:
        raise ValueError(f"d_model must be even and at least 2, got d_model={d_model}")


def pair_frequencies(d_model: int, base: float = 10000.0) -> Tensor:
    """Frequency of every pair of columns, in radians per position.

    Args:
        d_model: width of the encoding; even, at least 2.
        base: ratio of the longest to the shortest wavelength in the limit of many pairs.

    Returns:
        float64 `(d_model // 2,)`: `base ** (-2 * i / d_model)` for pair i.

    Raises:
        ValueError: d_model is odd or below 2.
    """
    _check_width(d_model)
    pair = torch.arange(d_model // 2, dtype=torch.float64)
    return base ** (-2.0 * pair / d_model)


def encode_position(position: int, d_model: int, base: float = 10000.0) -> Tensor:
    """The encoding of one position.

    Returns:
        float32 `(d_model,)`: column 2i is the sine of the angle of pair i, column 2i + 1 its cosine.

    Raises:
        ValueError: d_model is odd or below 2.
    """
    angle = position * pair_frequencies(d_model, base)  # (d_model // 2,), radians
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten().float()


def sinusoidal_encoding(
    n_positions: int,
    d_model: int,
    base: float = 10000.0,
    device: torch.device | str | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The encodings of positions 0 … n_positions − 1, one a row.

    Returns:
        `(n_positions, d_model)` in `dtype` on `device`, each value rounded once from float64.

    Raises:
        ValueError: d_model is odd or below 2.
    """
    position = torch.arange(n_positions, dtype=torch.float64)
    angle = torch.outer(position, pair_frequencies(d_model, base))  # (n_positions, d_model // 2), radians
    encoding = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)  # sin, cos, sin, cos, …
    return encoding.to(dtype=dtype).to(device=device)


def wavelengths(d_model: int, base: float = 10000.0) -> Tensor:
    """How many positions each pair needs for a full turn: float64 `(d_model // 2,)`.

    Raises:
        ValueError: d_model is odd or below 2.
    """
    return 2.0 * math.pi / pair_frequencies(d_model, base)


def shift_matrix(offset: int, d_model: int, base: float = 10000.0) -> Tensor:
    """The linear map that moves the encoding of every position by `offset`, which may be negative.

    Returns:
        float64 `(d_model, d_model)`: M with `M @ encode(p) == encode(p + offset)` for every position p.

    Raises:
        ValueError: d_model is odd or below 2.
    """
    angle = offset * pair_frequencies(d_model, base)
    sine = torch.arange(0, d_model, 2)  # the sine column of each pair
    cosine = sine + 1
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
    matrix[sine, sine] = matrix[cosine, cosine] = angle.cos()
    matrix[sine, cosine] = angle.sin()  # sin(a + b) = sin a cos b + cos a sin b
    matrix[cosine, sine] = -angle.sin()  # cos(a + b) = cos a cos b − sin a sin b
    return matrix


def position_similarity(encoding: Tensor) -> Tensor:
    """Dot products of all rows of `(n, d)` with all rows: `(n, n)`, in the dtype and on the device of `encoding`."""
    return encoding @ encoding.T
