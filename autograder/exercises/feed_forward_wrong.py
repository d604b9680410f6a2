"""Lesson 04: wrong feed-forward networks that people really write; `feed_forward_mistakes` says what to tell them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.reference.block import FeedForward

Activation = Callable[[Tensor], Tensor]


class NoActivation(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.contract(self.dropout(self.expand(x)))
        return out


class ActivationLast(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.contract(self.dropout(self.expand(x))))


class ActivationTwice(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.contract(self.dropout(self.activation(self.expand(x)))))


def bending(**replaced: Activation) -> type[FeedForward]:
    """With other functions behind some of the names."""

    class Answer(FeedForward):
        def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
            super().__init__(d_model, d_ff, activation, dropout)
            self.activation = replaced.get(activation, self.activation)

    return Answer


class NamesSwapped(FeedForward):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__(d_model, d_ff, activation, dropout)
        self.contract = nn.Linear(d_model, d_ff)
        self.expand = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.expand(self.dropout(self.activation(self.contract(x))))
        return out


def named(expand: str, contract: str) -> type[nn.Module]:
    class Answer(nn.Module):
        def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
            super().__init__()
            right = FeedForward(d_model, d_ff, activation, dropout)
            self.bend = right.activation
            self.add_module(expand, right.expand)
            self.add_module(contract, right.contract)
            self.dropout = right.dropout

        def forward(self, x: Tensor) -> Any:
            return getattr(self, contract)(self.dropout(self.bend(getattr(self, expand)(x))))

    return Answer


class InSequence(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        if activation not in ("relu", "gelu"):
            raise ValueError(f"activation={activation!r}")
        bend = nn.ReLU() if activation == "relu" else nn.GELU()
        self.layers = nn.Sequential(nn.Linear(d_model, d_ff), bend, nn.Dropout(dropout), nn.Linear(d_ff, d_model))

    def forward(self, x: Tensor) -> Any:
        return self.layers(x)


def without_bias(*names: str) -> type[FeedForward]:
    class Answer(FeedForward):
        def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
            super().__init__(d_model, d_ff, activation, dropout)
            for name in names:
                getattr(self, name).register_parameter("bias", None)

    return Answer


class NoDropout(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.contract(self.activation(self.expand(x)))
        return out


class DropoutLast(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.dropout(self.contract(self.activation(self.expand(x))))
        return out


class DropoutTwice(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.dropout(self.contract(self.dropout(self.activation(self.expand(x)))))
        return out


class DropoutFirst(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.contract(self.activation(self.expand(self.dropout(x))))
        return out


class DropoutBeforeActivation(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.contract(self.activation(self.dropout(self.expand(x))))
        return out


class DropoutAlways(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.contract(F.dropout(self.activation(self.expand(x)), self.dropout.p))
        return out


class DropoutFixed(FeedForward):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__(d_model, d_ff, activation, 0.1)


class DropoutDefault(FeedForward):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__(d_model, d_ff, activation)
        self.dropout = nn.Dropout()


class DropoutUnscaled(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        hidden = self.activation(self.expand(x))
        if self.training:
            hidden = hidden * (torch.rand_like(hidden) > self.dropout.p)
        out: Tensor = self.contract(hidden)
        return out


class Residual(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


class Accepted(FeedForward):
    """Whatever is not "gelu" is taken for "relu"."""

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__(d_model, d_ff, "gelu" if activation == "gelu" else "relu", dropout)


class Late(FeedForward):
    """The name is looked at when the network is used."""

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__(d_model, d_ff, dropout=dropout)
        self.name = activation

    def forward(self, x: Tensor) -> Tensor:
        if self.name not in ("relu", "gelu"):
            raise ValueError(f"unknown activation {self.name}")
        hidden = self.expand(x).relu() if self.name == "relu" else F.gelu(self.expand(x))
        out: Tensor = self.contract(self.dropout(hidden))
        return out


def refusing(error: Callable[[str], Exception]) -> type[FeedForward]:
    class Answer(FeedForward):
        def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
            if activation not in ("relu", "gelu"):
                raise error(activation)
            super().__init__(d_model, d_ff, activation, dropout)

    return Answer


class Detached(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.contract(self.dropout(self.activation(self.expand(x))).detach())
        return out


class Float32Forced(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).float()


def quick_gelu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(1.702 * x)


def gelu_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")
