"""Other right answers to lesson 04, in the ways in which people write them. Each must get full marks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.reference.block import MultiHeadAttention

Alternatives = dict[str, dict[str, Any]]


class _FeedForwardByModules(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        match activation:
            case "relu":
                self.bend: nn.Module = nn.ReLU()
            case "gelu":
                self.bend = nn.GELU()
            case other:
                raise ValueError(f"no activation called {other!r}")
        self.expand = nn.Linear(d_model, d_ff)
        self.contract = nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(p=dropout)

    def forward(self, x: Tensor) -> Any:
        for layer in (self.expand, self.bend, self.drop, self.contract):
            x = layer(x)
        return x


class _FeedForwardByFormula(nn.Module):
    """GELU by its definition, ReLU by clamping, dropout by hand."""

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        if activation not in {"relu", "gelu"}:
            raise ValueError(f"activation: 'relu' or 'gelu', not {activation}")
        self.expand, self.contract = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.activation, self.p = activation, dropout

    def forward(self, x: Tensor) -> Tensor:
        hidden = x @ self.expand.weight.T + self.expand.bias
        if self.activation == "relu":
            hidden = hidden.clamp(min=0)
        else:
            hidden = hidden * 0.5 * (1.0 + torch.erf(hidden / math.sqrt(2.0)))
        if self.training and self.p > 0:
            hidden = hidden * (torch.rand_like(hidden) >= self.p) / (1 - self.p)
        return hidden @ self.contract.weight.T + self.contract.bias


class _FeedForwardByParts(nn.Module):
    """Own parameters under the right names; function forms throughout."""

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        functions: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "gelu": F.gelu}
        try:
            self.function = functions[activation]
        except KeyError:
            raise ValueError(f"activation = {activation} is not one of {sorted(functions)}") from None
        self.expand, self.contract = nn.Module(), nn.Module()
        for part, rows, columns in ((self.expand, d_ff, d_model), (self.contract, d_model, d_ff)):
            part.weight = nn.Parameter(torch.randn(rows, columns) / columns**0.5)
            part.bias = nn.Parameter(torch.zeros(rows))
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.function(F.linear(x, self.expand.weight, self.expand.bias))  # type: ignore[arg-type]
        hidden = F.dropout(hidden, self.dropout, self.training)
        return F.linear(hidden, self.contract.weight, self.contract.bias)  # type: ignore[arg-type]


FEED_FORWARD: Alternatives = {
    "modules": {"FeedForward": _FeedForwardByModules},
    "formula": {"FeedForward": _FeedForwardByFormula},
    "parts": {"FeedForward": _FeedForwardByParts},
}


class _Affine(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps


class _NormByVar(_Affine):
    def forward(self, x: Tensor) -> Tensor:
        variance, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
        return torch.addcmul(self.bias, (x - mean) * torch.rsqrt(variance + self.eps), self.weight)


class _NormByMoments(_Affine):
    """Variance as the mean of squares minus the squared mean."""

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        variance = (x**2).mean(dim=-1, keepdim=True) - mean**2
        return (x - mean) / torch.sqrt(variance + self.eps) * self.weight + self.bias


class _NormByEinsum(_Affine):
    """Sums by products with a vector of ones."""

    def forward(self, x: Tensor) -> Tensor:
        ones = torch.full_like(self.weight, 1 / x.shape[-1])
        centred = x - torch.einsum("...d,d->...", x, ones)[..., None]
        variance = torch.einsum("...d,...d,d->...", centred, centred, ones)[..., None]
        return self.weight * centred * (variance + self.eps) ** -0.5 + self.bias


class _NormInDouble(_Affine):
    """Computed in float64, given back in the input's dtype."""

    def forward(self, x: Tensor) -> Tensor:
        wide = x.double()
        wide = (wide - wide.mean(-1, True)) / (wide.std(-1, unbiased=False, keepdim=True) ** 2 + self.eps).sqrt()
        return (wide * self.weight + self.bias).to(x.dtype)


class _NormByLength(_Affine):
    """The centred vector divided by its length, times the root of the width."""

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.sum(-1, keepdim=True) / x.size(-1)
        length = torch.sqrt((centred * centred).sum(-1, keepdim=True) + x.size(-1) * self.eps)
        return centred / length * math.sqrt(x.size(-1)) * self.weight + self.bias


LAYER_NORM: Alternatives = {
    "var-mean": {"LayerNorm": _NormByVar},
    "moments": {"LayerNorm": _NormByMoments},
    "einsum": {"LayerNorm": _NormByEinsum},
    "float64-inside": {"LayerNorm": _NormInDouble},
    "length": {"LayerNorm": _NormByLength},
}


class _AddTorchNorm(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.0, eps: float = 1e-5) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=eps)
        self.p = dropout

    def forward(self, x: Tensor, sublayer_output: Tensor) -> Any:
        return self.norm(F.dropout(sublayer_output, p=self.p, training=self.training) + x)


class _AddNormByHand(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.0, eps: float = 1e-5) -> None:
        super().__init__()
        self.norm = _NormByVar(d_model, eps)
        self.keep = 1 - dropout

    def forward(self, x: Tensor, sublayer_output: Tensor) -> Any:
        if self.training and self.keep < 1:
            kept = torch.bernoulli(torch.full_like(sublayer_output, self.keep))
            sublayer_output = sublayer_output * kept / self.keep
        return self.norm(x + sublayer_output)


class _AddNormByFunction(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.0, eps: float = 1e-5) -> None:
        super().__init__()
        self.norm = _Affine(d_model, eps)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, sublayer_output: Tensor) -> Any:
        total = torch.add(x, self.dropout(sublayer_output))
        return F.layer_norm(total, total.shape[-1:], self.norm.weight, self.norm.bias, self.norm.eps)


ADD_NORM: Alternatives = {
    "torch-norm": {"AddNorm": _AddTorchNorm},
    "by-hand": {"AddNorm": _AddNormByHand},
    "function": {"AddNorm": _AddNormByFunction},
}


class _BlockOfTorch(nn.Module):
    """torch's norms, a dropout of its own for each sublayer, none inside the feed-forward network."""

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
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = _FeedForwardByModules(d_model, d_ff, activation)
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention_dropout, self.feed_forward_dropout = nn.Dropout(dropout), nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Any:
        residual = x
        if self.norm_first:
            x = self.attention_norm(x)
        x = residual + self.attention_dropout(self.attention(x, mask=mask))
        if not self.norm_first:
            x = self.attention_norm(x)
        residual = x
        if self.norm_first:
            x = self.feed_forward_norm(x)
        x = residual + self.feed_forward_dropout(self.feed_forward(x))
        return x if self.norm_first else self.feed_forward_norm(x)


class _BlockByClosure(nn.Module):
    """One frame for both sublayers; dropout inside the feed-forward network too, with draws of its own."""

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
        self.attention_norm = _NormByVar(d_model)
        self.feed_forward_norm = _NormByVar(d_model)
        self.feed_forward = _FeedForwardByFormula(d_model, d_ff, activation, dropout)
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.p, self.order = dropout, "pre" if norm_first else "post"

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        def framed(x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Any:
            inner = sublayer(norm(x) if self.order == "pre" else x)
            total = x + F.dropout(inner, self.p, self.training)
            return total if self.order == "pre" else norm(total)

        x = framed(x, self.attention_norm, lambda x: self.attention(x, mask))
        return framed(x, self.feed_forward_norm, self.feed_forward)  # type: ignore[no-any-return]


ENCODER_BLOCK: Alternatives = {
    "torch-norms": {"EncoderBlock": _BlockOfTorch},
    "closure": {"EncoderBlock": _BlockByClosure},
}


def _cost_by_shapes(length: int, d_model: int, n_heads: int, d_ff: int) -> dict[str, int]:
    """Every matrix once, by its rows and columns."""
    linear = [(d_model, d_model)] * 4 + [(d_model, d_ff), (d_ff, d_model)]
    head_dim = d_model // n_heads
    products = [length * rows * columns for rows, columns in linear]
    products += n_heads * [length * head_dim * length, length * length * head_dim]
    return {
        "multiply_adds": sum(products),
        "parameters": sum((rows + 1) * columns for rows, columns in linear) + sum([d_model] * 4),
        "attention_scores": sum(length**2 for _ in range(n_heads)),
    }


def _cost_by_module(length: int, d_model: int, n_heads: int, d_ff: int) -> dict[str, int]:
    """The parameters counted on the real thing, without memory for it."""
    with torch.device("meta"):
        block = _BlockOfTorch(d_model, n_heads, d_ff)
    return {
        "parameters": sum(parameter.numel() for parameter in block.parameters()),
        "attention_scores": n_heads * length * length,
        "multiply_adds": length * d_model * (4 * d_model + 2 * length + 2 * d_ff),
    }


BLOCK_COST: Alternatives = {"shapes": {"block_cost": _cost_by_shapes}, "module": {"block_cost": _cost_by_module}}
