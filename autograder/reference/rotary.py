"""Rotary positions: queries and keys are turned, pair by pair, by an angle that grows with the position.

Source: Su et al. (2021), "RoFormer", sections 3.2.2 and 3.4.2, for the adjacent pairing. The halves pairing is that of
GPT-NeoX (Black et al., 2022), and of LLaMA and Qwen as the `transformers` library runs them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from autograder.reference.attention import attention


def rotary_angles(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
    """The angle of every pair at every position.

    Args:
        positions: int64 `(…, length)`, in any order, with any gaps.
        head_dim: width of one head; even.
        base: ratio of the longest to the shortest wavelength in the limit of many pairs.

    Returns:
        float32 `(…, length, head_dim // 2)`, in radians, on the device of `positions`.

    Raises:
        ValueError: head_dim is odd.
    """
    if head_dim % 2:
        raise ValueError(f"head_dim must be even, got head_dim={head_dim}")
    pair = torch.arange(head_dim // 2, dtype=torch.float64)
    frequency = (base ** (-2.0 * pair / head_dim)).to(positions.device)
    return (positions[..., None] * frequency).float()  # rounded once, from float64


def _turned(a: Tensor, b: Tensor, angles: Tensor) -> tuple[Tensor, Tensor]:
    cos, sin = angles.cos(), angles.sin()
    return a * cos - b * sin, a * sin + b * cos


def _wide(x: Tensor) -> Tensor:
    """x in float32 at least."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def rotate_adjacent(x: Tensor, angles: Tensor) -> Tensor:
    """Turn each pair of columns 2i, 2i + 1.

    Args:
        x: `(…, length, head_dim)`.
        angles: broadcastable to `(…, length, head_dim // 2)`.

    Returns:
        The shape and dtype of x; computed in float32 at least.
    """
    wide = _wide(x)
    turned = _turned(wide[..., 0::2], wide[..., 1::2], _wide(angles))
    return torch.stack(turned, dim=-1).flatten(-2).to(x.dtype)


def rotate_halves(x: Tensor, angles: Tensor) -> Tensor:
    """Turn each pair of columns i, i + head_dim / 2. Shapes and dtypes as in `rotate_adjacent`."""
    a, b = _wide(x).chunk(2, dim=-1)
    turned = _turned(a, b, _wide(angles))
    return torch.cat(turned, dim=-1).to(x.dtype)


def adjacent_to_halves(weight: Tensor, n_heads: int) -> Tensor:
    """Reorder a projection's rows so that the halves pairing gives the scores that the adjacent pairing gave.

    Args:
        weight: `(n_heads * head_dim, d_model)`, of queries or of keys.

    Returns:
        A new tensor of the same shape: in each head the even rows, then the odd ones.
    """
    rows, d_model = weight.shape
    paired = weight.reshape(n_heads, rows // n_heads // 2, 2, d_model)  # head, pair, member of the pair, column
    return paired.transpose(1, 2).reshape(rows, d_model)


class RotaryAttention(nn.Module):
    """Multi-head self-attention whose scores depend on distances; the adjacent pairing.

    Args:
        d_model: width of the input and output, a multiple of `n_heads`.
        n_heads: each of width d_model / n_heads, which is even.
    """

    def __init__(self, d_model: int, n_heads: int, base: float = 10000.0) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.base = base
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def _heads(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], self.n_heads, -1).transpose(1, 2)  # (batch, n_heads, length, head_dim)

    def forward(self, x: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Mix the positions of x.

        Args:
            x: `(batch, length, d_model)`.
            positions: int64 `(length,)` or `(batch, length)`; default 0 … length − 1.
            mask: bool, broadcastable to `(batch, n_heads, length, length)`; True = may attend.

        Returns:
            `(batch, length, d_model)`.
        """
        if positions is None:
            positions = torch.arange(x.shape[1], device=x.device)
        query, key, value = self._heads(self.query(x)), self._heads(self.key(x)), self._heads(self.value(x))
        angles = rotary_angles(positions, query.shape[-1], self.base).unsqueeze(-3)  # one angle for all heads
        mixed, _ = attention(rotate_adjacent(query, angles), rotate_adjacent(key, angles), value, mask)
        output: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return output
