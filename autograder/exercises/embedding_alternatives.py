"""Other right answers to lesson 03, in the ways in which people write them. Each must get full marks."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.reference.embedding import SinusoidalPosition, TokenEmbedding
from autograder.reference.sinusoidal import sinusoidal_encoding


class _ScaledBeforeLookup(nn.Module):
    """The scale multiplies the whole table before rows are taken."""

    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model, padding_id)

    def forward(self, tokens: Tensor) -> Tensor:
        width = self.table.weight.shape[1]
        return F.embedding(tokens, self.table.weight * width**0.5, self.table.padding_idx)


class _InitialisedSmall(TokenEmbedding):
    """Its own first values, with the padding row put back to zero."""

    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__(vocab_size, d_model, padding_id)
        with torch.no_grad():
            self.table.weight.normal_(0.0, d_model**-0.5)
            if padding_id is not None:
                self.table.weight[padding_id].zero_()


class _Table(nn.Module):
    """No nn.Embedding: a parameter, indexed."""

    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model))
        self.padding_id = padding_id
        if padding_id is not None:
            self.weight.data[padding_id] = 0

    def forward(self, tokens: Tensor) -> Tensor:
        found = self.weight[tokens]
        if self.padding_id is None:
            return found
        return found.masked_fill((tokens == self.padding_id).unsqueeze(-1), 0)


class _OwnTable(nn.Module):
    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__()
        self.table = _Table(vocab_size, d_model, padding_id)
        self.register_buffer("scale", torch.tensor(math.sqrt(d_model)), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        found: Tensor = self.table(tokens) * self.scale
        return found


class _GradientHook(nn.Module):
    """The padding row's gradient is wiped by a hook."""

    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        self.d_model = d_model
        if padding_id is not None:
            nn.init.zeros_(self.table.weight[padding_id])
            keep = torch.ones(vocab_size, 1)
            keep[padding_id] = 0
            wipe: Any = self.table.weight.register_hook  # torch leaves this method untyped
            wipe(lambda gradient: gradient * keep.to(gradient))

    def forward(self, tokens: Tensor) -> Tensor:
        return torch.mul(self.table(tokens), math.sqrt(self.d_model))


class _OneHot(nn.Module):
    """A product with one-hot rows: slower, and right."""

    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model, padding_idx=padding_id)

    def forward(self, tokens: Tensor) -> Tensor:
        weight, padding_id = self.table.weight, self.table.padding_idx
        rows = (tokens.unsqueeze(-1) == torch.arange(len(weight), device=tokens.device)).to(weight.dtype)
        if padding_id is not None:
            rows = rows * (tokens != padding_id).unsqueeze(-1)
        found: Tensor = rows @ weight * weight.shape[-1] ** 0.5
        return found


TOKEN_EMBEDDING: dict[str, dict[str, Any]] = {
    "scaled-before-lookup": {"TokenEmbedding": _ScaledBeforeLookup},
    "gradient-hook": {"TokenEmbedding": _GradientHook},
    "initialised-small": {"TokenEmbedding": _InitialisedSmall},
    "own-table": {"TokenEmbedding": _OwnTable},
    "one-hot": {"TokenEmbedding": _OneHot},
}


class _Selected(nn.Module):
    """Rows are selected by position numbers; the buffer is float64."""

    encoding: Tensor

    def __init__(self, d_model: int, max_len: int = 5000, base: float = 10000.0) -> None:
        super().__init__()
        encoding = sinusoidal_encoding(max_len, d_model, base, dtype=torch.float64)
        self.register_buffer("encoding", encoding, persistent=False)

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        _, length, _ = x.size()
        max_len = self.encoding.size(0)
        if offset + length > max_len:
            raise ValueError(f"positions {offset} to {offset + length - 1} do not fit: max_len is {max_len}")
        positions = torch.arange(offset, offset + length, device=x.device)
        return x.add(self.encoding[positions].type_as(x))


class _Narrowed(nn.Module):
    """The table is made the old way: zeros, slices, float32; rows by narrow."""

    encoding: Tensor

    def __init__(self, d_model: int, max_len: int = 5000, base: float = 10000.0) -> None:
        super().__init__()
        position = torch.arange(max_len).float().unsqueeze(1)
        slowing = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(base) / d_model))
        table = torch.zeros(max_len, d_model)
        table[:, 0::2] = torch.sin(position * slowing)
        table[:, 1::2] = torch.cos(position * slowing)
        self.max_len = max_len
        self.register_buffer("encoding", table, persistent=False)

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        if x.shape[1] > self.max_len - offset:
            raise ValueError(f"max_len={self.max_len} is too short for offset={offset} and length={x.shape[1]}")
        rows = self.encoding.narrow(0, offset, x.shape[1])
        return (x + rows.float()).to(x.dtype)


class _InPlaceOnACopy(nn.Module):
    def __init__(self, d_model: int, max_len: int = 5000, base: float = 10000.0) -> None:
        super().__init__()
        self.register_buffer("encoding", sinusoidal_encoding(max_len, d_model, base), False)
        self.register_buffer("counted", torch.arange(max_len), False)

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        encoding = self.get_buffer("encoding")
        end, max_len = offset + x.shape[1], len(encoding)
        if not end <= max_len:
            raise ValueError(f"max_len is {max_len}, but the last position would be {end - 1}")
        result = x.clone()
        for place, position in enumerate(range(offset, end)):
            result[:, place] += encoding[position].to(dtype=x.dtype, device=x.device)
        return result


SINUSOIDAL_POSITION: dict[str, dict[str, Any]] = {
    "selected-float64": {"SinusoidalPosition": _Selected},
    "narrowed-float32": {"SinusoidalPosition": _Narrowed},
    "in-place-on-a-copy": {"SinusoidalPosition": _InPlaceOnACopy},
}


class _FunctionalDropout(nn.Module):
    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        max_len: int = 5000,
        dropout: float = 0.1,
        padding_id: int | None = None,
    ) -> None:
        super().__init__()
        self.share = dropout
        self.tokens = TokenEmbedding(vocab_size, d_model, padding_id)
        self.place = SinusoidalPosition(d_model, max_len)

    def forward(self, tokens: Tensor, offset: int = 0) -> Tensor:
        return F.dropout(self.place(self.tokens(tokens), offset=offset), p=self.share, training=self.training)


class _OwnDropout(nn.Module):
    """Dropout written out, from random numbers that it draws before the look-up."""

    def __init__(self, vocab_size: int, d_model: int, *rest: Any, **options: Any) -> None:
        super().__init__()
        names = dict(zip(("max_len", "dropout", "padding_id"), rest, strict=False)) | options
        self.tokens = TokenEmbedding(vocab_size, d_model, names.get("padding_id"))
        self.where = SinusoidalPosition(max_len=names.get("max_len", 5000), d_model=d_model)
        self.keep = 1 - names.get("dropout", 0.1)

    def forward(self, tokens: Tensor, offset: int = 0) -> Tensor:
        weight = self.tokens.table.weight
        chance = torch.rand(*tokens.shape, weight.shape[1], device=tokens.device)
        placed: Tensor = self.where(self.tokens(tokens), offset)
        if not self.training:
            return placed
        return torch.where(chance < self.keep, placed / self.keep, torch.zeros_like(placed))


class _Pipeline(nn.Module):
    """Modules in a row; the scale and the sum are done here, the encoding comes from the buffer."""

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        max_len: int = 5000,
        dropout: float = 0.1,
        padding_id: int | None = None,
    ) -> None:
        super().__init__()
        self.tokens = nn.Module()
        self.tokens.table = nn.Embedding(vocab_size, d_model, padding_idx=padding_id)
        self.register_buffer("encoding", sinusoidal_encoding(max_len, d_model), persistent=False)
        self.last = nn.Sequential(nn.Identity(), nn.Dropout(dropout))

    def forward(self, tokens: Tensor, offset: int = 0) -> Tensor:
        rows = self.get_buffer("encoding")[offset:][: tokens.size(1)]
        vectors: Tensor = F.embedding(tokens, self.get_parameter("tokens.table.weight"))
        padding: Any = self.tokens.table.padding_idx  # type: ignore[union-attr]
        if padding is not None:
            vectors = vectors * (tokens != padding)[:, :, None]
        found: Tensor = self.last(vectors * vectors.shape[2] ** 0.5 + rows.to(vectors))
        return found


TRANSFORMER_INPUT: dict[str, dict[str, Any]] = {
    "functional-dropout": {"TransformerInput": _FunctionalDropout},
    "own-dropout": {"TransformerInput": _OwnDropout},
    "pipeline": {"TransformerInput": _Pipeline},
}


def _mask_by_view(tokens: Tensor, padding_id: int) -> Tensor:
    batch, length = tokens.shape
    return tokens.ne(padding_id).view(batch, 1, 1, length)


def _mask_by_filling(tokens: Tensor, padding_id: int) -> Tensor:
    mask = torch.ones(tokens.shape[0], 1, 1, tokens.shape[1], dtype=torch.bool, device=tokens.device)
    return mask.masked_fill(tokens[:, None, None, :] == padding_id, False)


def _mask_by_arithmetic(tokens: Tensor, padding_id: int) -> Tensor:
    return (tokens - padding_id).unsqueeze(1).unsqueeze(2).bool()


PADDING_MASK: dict[str, dict[str, Any]] = {
    "view": {"padding_mask": _mask_by_view},
    "filling": {"padding_mask": _mask_by_filling},
    "arithmetic": {"padding_mask": _mask_by_arithmetic},
    "not-equal": {"padding_mask": lambda tokens, padding_id: ~(tokens == padding_id).unsqueeze(-2).unsqueeze(-2)},
}
