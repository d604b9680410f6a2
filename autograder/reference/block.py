"""The Transformer's encoder block and its parts.

Sources: Vaswani et al. (2017), "Attention Is All You Need", sections 3.1 to 3.3 and 5.4; Ba, Kiros and Hinton (2016),
"Layer Normalization"; Hendrycks and Gimpel (2016), "Gaussian Error Linear Units"; Xiong et al. (2020), "On Layer
Normalization in the Transformer Architecture", for the norm before each sublayer.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.reference.attention import attention

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
"""What may bend between the two layers of a feed-forward network; "gelu" is the exact form, with the error function."""


class FeedForward(nn.Module):
    """Widen, bend, narrow: the same two layers for every position.

    Args:
        d_model: width of input and output.
        d_ff: width in between.
        activation: "relu" or "gelu"; anything else is refused with a ValueError.
        dropout: share of the widened features that is zeroed in train mode.

    Shapes:
        `(batch, length, d_model)` to `(batch, length, d_model)`.
    """

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}; got activation={activation!r}")
        self.activation = ACTIVATIONS[activation]
        self.expand = nn.Linear(d_model, d_ff)
        self.contract = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.contract(self.dropout(self.activation(self.expand(x))))
        return out


class LayerNorm(nn.Module):
    """Give the features of each position mean 0 and variance 1, then a learned scale and shift of their own.

    Args:
        d_model: number of features, the size of the last axis.
        eps: added to the (biased) variance, inside the root.

    Shapes:
        `(…, d_model)` to `(…, d_model)`, in the dtype of the input; half precision is computed in float32.
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        centred = wide - wide.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return (centred / (variance + self.eps).sqrt() * self.weight + self.bias).to(x.dtype)


class AddNorm(nn.Module):
    """`norm(x + dropout(sublayer_output))`, the frame around each sublayer in the 2017 paper."""

    def __init__(self, d_model: int, dropout: float = 0.0, eps: float = 1e-5) -> None:
        super().__init__()
        self.norm = LayerNorm(d_model, eps)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, sublayer_output: Tensor) -> Tensor:
        out: Tensor = self.norm(x + self.dropout(sublayer_output))
        return out


class MultiHeadAttention(nn.Module):
    """Self-attention in `n_heads` heads of width `d_model / n_heads`; the lesson gives this class.

    Shapes:
        x `(batch, length, d_model)`; mask bool, broadcastable to `(batch, heads, length, length)`, True = may attend;
        result `(batch, length, d_model)`.
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        query, key, value = (self._split(project(x)) for project in (self.query, self.key, self.value))
        mixed, _ = attention(query, key, value, mask)  # (batch, heads, length, head_dim)
        out: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return out

    def _split(self, x: Tensor) -> Tensor:
        """`(batch, length, d_model)` to `(batch, heads, length, head_dim)`."""
        return x.reshape(*x.shape[:2], self.n_heads, -1).transpose(1, 2)


class EncoderBlock(nn.Module):
    """Self-attention and feed-forward, each with a residual connection, dropout on its output, and a layer norm.

    Args:
        d_model: width of input and output.
        n_heads: attention heads.
        d_ff: width inside the feed-forward network.
        dropout: share of each sublayer's output that is zeroed in train mode (and, free, inside the feed-forward).
        activation: "relu" or "gelu".
        norm_first: False: norm after each addition (2017). True: norm before each sublayer, the sum itself stays as is.

    Shapes:
        x `(batch, length, d_model)`, mask as in `MultiHeadAttention`, result like x.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        activation: str = "relu",
        norm_first: bool = False,
    ) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation, dropout)
        self.attention_norm = LayerNorm(d_model)
        self.feed_forward_norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.norm_first:
            x = x + self.dropout(self.attention(self.attention_norm(x), mask))
            out: Tensor = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
            return out
        x = self.attention_norm(x + self.dropout(self.attention(x, mask)))
        out = self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))
        return out


def block_cost(length: int, d_model: int, n_heads: int, d_ff: int) -> dict[str, int]:
    """What one encoder block costs for one sequence.

    Returns:
        `parameters`: four attention projections and two feed-forward layers with biases, two layer norms.
        `attention_scores`: numbers in all heads' score matrices.
        `multiply_adds`: of the matrix products: projections, scores and mixing, feed-forward.
    """
    projections = 4 * (d_model * d_model + d_model)
    feed_forward = (d_model * d_ff + d_ff) + (d_ff * d_model + d_model)
    norms = 2 * (2 * d_model)
    return {
        "parameters": projections + feed_forward + norms,
        "attention_scores": n_heads * length * length,
        "multiply_adds": 4 * length * d_model**2 + 2 * length**2 * d_model + 2 * length * d_model * d_ff,
    }
