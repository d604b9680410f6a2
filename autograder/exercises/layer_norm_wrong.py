"""Lesson 04: wrong layer norms that people really write; `layer_norm_mistakes` says what to tell them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from autograder.reference.block import LayerNorm

Formula = Callable[[Tensor, float], Tensor]


def normalised(x: Tensor, eps: float) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + eps).sqrt()


def normalising(formula: Formula) -> type[LayerNorm]:
    """Another formula of x and eps; scale and shift stay."""

    class Answer(LayerNorm):
        def forward(self, x: Tensor) -> Tensor:
            return formula(x, self.eps) * self.weight + self.bias

    return Answer


def over(*axes: int) -> type[LayerNorm]:
    def formula(x: Tensor, eps: float) -> Tensor:
        variance = x.var(axes, keepdim=True, unbiased=False)
        return (x - x.mean(axes, keepdim=True)) / (variance + eps).sqrt()

    return normalising(formula)


def finishing(finish: Callable[[Tensor, Tensor, Tensor], Tensor]) -> type[LayerNorm]:
    """`finish` makes the result of the normalised features, weight and bias."""

    class Answer(LayerNorm):
        def forward(self, x: Tensor) -> Tensor:
            return finish(normalised(x, self.eps), self.weight, self.bias)

    return Answer


def eps_is(fixed: float | None = None, default: float = 1e-5) -> type[LayerNorm]:
    class Answer(LayerNorm):
        def __init__(self, d_model: int, eps: float = default) -> None:
            super().__init__(d_model, eps if fixed is None else fixed)

    return Answer


def starting(weight: float, bias: float) -> type[LayerNorm]:
    class Answer(LayerNorm):
        def __init__(self, d_model: int, eps: float = 1e-5) -> None:
            super().__init__(d_model, eps)
            nn.init.constant_(self.weight, weight)
            nn.init.constant_(self.bias, bias)

    return Answer


class StartingAtRandom(LayerNorm):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__(d_model, eps)
        self.weight = nn.Parameter(torch.randn(d_model, generator=torch.Generator().manual_seed(0)))


class WithoutAffine(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return normalised(x, self.eps)


def named(weight: str, bias: str) -> type[nn.Module]:
    class Answer(nn.Module):
        def __init__(self, d_model: int, eps: float = 1e-5) -> None:
            super().__init__()
            self.eps = eps
            self.register_parameter(weight, nn.Parameter(torch.ones(d_model)))
            self.register_parameter(bias, nn.Parameter(torch.zeros(d_model)))

        def forward(self, x: Tensor) -> Tensor:
            scale, shift = self.parameters()
            return normalised(x, self.eps) * scale + shift

    return Answer


class PlainTensors(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = torch.ones(d_model)
        self.bias = torch.zeros(d_model)

    def forward(self, x: Tensor) -> Tensor:
        return normalised(x, self.eps) * self.weight + self.bias


class Buffers(nn.Module):
    weight: Tensor
    bias: Tensor

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", torch.ones(d_model))
        self.register_buffer("bias", torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        return normalised(x, self.eps) * self.weight + self.bias


class OneNumberEach(LayerNorm):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__(1, eps)


def annotated(x: Tensor, eps: float) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)


def eps_outside(x: Tensor, eps: float) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, unbiased=False) + eps)


def unbiased(x: Tensor, eps: float) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + eps).sqrt()


def eps_squared(x: Tensor, eps: float) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + eps**2).sqrt()


def no_eps(x: Tensor, eps: float) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True, unbiased=False)


def no_root(x: Tensor, eps: float) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + eps)


def root_multiplied(x: Tensor, eps: float) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) * (x.var(-1, keepdim=True, unbiased=False) + eps).sqrt()


def mean_kept(x: Tensor, eps: float) -> Tensor:
    return x / (x.var(-1, keepdim=True, unbiased=False) + eps).sqrt()


def root_mean_square(x: Tensor, eps: float) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


def around_zero(x: Tensor, eps: float) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.square().mean(-1, keepdim=True) + eps).sqrt()


def not_divided(x: Tensor, eps: float) -> Tensor:
    return x - x.mean(-1, keepdim=True)


def statistics_detached(x: Tensor, eps: float) -> Tensor:
    mean, variance = x.mean(-1, keepdim=True).detach(), x.var(-1, keepdim=True, unbiased=False).detach()
    return (x - mean) / (variance + eps).sqrt()


class Float32Forced(LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        return normalised(x.float(), self.eps) * self.weight.float() + self.bias.float()


class InPlace(LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        variance = x.var(-1, keepdim=True, unbiased=False)
        x -= x.mean(-1, keepdim=True)
        x /= (variance + self.eps).sqrt()
        return x * self.weight + self.bias
