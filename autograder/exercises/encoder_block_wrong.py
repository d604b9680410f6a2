"""Lesson 04: wrong encoder blocks that people really write. What to tell them stands in `encoder_block_mistakes`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from autograder.exercises.layer_norm_wrong import normalising, unbiased
from autograder.reference.block import AddNorm, EncoderBlock, LayerNorm

Forward = Callable[[EncoderBlock, Tensor, Tensor | None], Any]
Part = Callable[[Tensor], Tensor]


def right(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    return EncoderBlock.forward(block, x, mask)


def running(post: Forward = right, pre: Forward = right) -> type[EncoderBlock]:
    """Another computation in one of the two orders, or in both."""

    class Answer(EncoderBlock):
        def forward(self, x: Tensor, mask: Tensor | None = None) -> Any:
            return (pre if self.norm_first else post)(self, x, mask)

    return Answer


def built(change: Callable[[EncoderBlock], None]) -> type[EncoderBlock]:
    """The right block, then changed."""

    class Answer(EncoderBlock):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            change(self)

    return Answer


def dropping(post: Callable[..., Any], pre: Callable[..., Any]) -> type[EncoderBlock]:
    """Each half of the block as a function of x, sublayer, norm and dropout."""

    def run(half: Callable[..., Any]) -> Forward:
        def forward(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
            x = half(x, lambda x: block.attention(x, mask), block.attention_norm, block.dropout)
            return half(x, block.feed_forward, block.feed_forward_norm, block.dropout)

        return forward

    return running(run(post), run(pre))


def post(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    x = block.attention_norm(x + block.dropout(block.attention(x, mask)))
    return block.feed_forward_norm(x + block.dropout(block.feed_forward(x)))


def pre(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    x = x + block.dropout(block.attention(block.attention_norm(x), mask))
    return x + block.dropout(block.feed_forward(block.feed_forward_norm(x)))


def post_from_x(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    middle = block.attention_norm(x + block.dropout(block.attention(x, mask)))
    return block.feed_forward_norm(x + block.dropout(block.feed_forward(middle)))


def pre_from_x(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    middle = x + block.dropout(block.attention(block.attention_norm(x), mask))
    return x + block.dropout(block.feed_forward(block.feed_forward_norm(middle)))


def pre_from_normed(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    x = block.attention_norm(x)
    x = x + block.dropout(block.attention(x, mask))
    x = block.feed_forward_norm(x)
    return x + block.dropout(block.feed_forward(x))


def pre_then_norm(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    return block.feed_forward_norm(pre(block, x, mask))


def pre_norm_of_output(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    x = x + block.attention_norm(block.dropout(block.attention(x, mask)))
    return x + block.feed_forward_norm(block.dropout(block.feed_forward(x)))


def pre_parallel(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    mixed = block.dropout(block.attention(block.attention_norm(x), mask))
    return x + mixed + block.dropout(block.feed_forward(block.feed_forward_norm(x)))


def post_parallel(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    middle = block.attention_norm(x + block.dropout(block.attention(x, mask)))
    return block.feed_forward_norm(middle + block.dropout(block.feed_forward(x)))


def pre_one_norm(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    x = x + block.dropout(block.attention(block.attention_norm(x), mask))
    return x + block.dropout(block.feed_forward(x))


def pre_in_place(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    x += block.dropout(block.attention(block.attention_norm(x), mask))
    x += block.dropout(block.feed_forward(block.feed_forward_norm(x)))
    return x


def post_last_only(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    x = x + block.dropout(block.attention(x, mask))
    return block.feed_forward_norm(x + block.dropout(block.feed_forward(x)))


def feed_forward_first_post(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    x = block.feed_forward_norm(x + block.dropout(block.feed_forward(x)))
    return block.attention_norm(x + block.dropout(block.attention(x, mask)))


def feed_forward_first_pre(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    x = x + block.dropout(block.feed_forward(block.feed_forward_norm(x)))
    return x + block.dropout(block.attention(block.attention_norm(x), mask))


def attention_only_post(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    return block.attention_norm(x + block.dropout(block.attention(x, mask)))


def attention_only_pre(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    return x + block.dropout(block.attention(block.attention_norm(x), mask))


def in_eval_too(block: EncoderBlock, values: Tensor) -> Any:
    return F.dropout(values, block.dropout.p)


def post_always_dropping(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    x = block.attention_norm(x + in_eval_too(block, block.attention(x, mask)))
    return block.feed_forward_norm(x + in_eval_too(block, block.feed_forward(x)))


def pre_always_dropping(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    x = x + in_eval_too(block, block.attention(block.attention_norm(x), mask))
    return x + in_eval_too(block, block.feed_forward(block.feed_forward_norm(x)))


def post_dropping_attention(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    x = block.attention_norm(x + block.dropout(block.attention(x, mask)))
    return block.feed_forward_norm(x + block.feed_forward(x))


def pre_dropping_attention(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    x = x + block.dropout(block.attention(block.attention_norm(x), mask))
    return x + block.feed_forward(block.feed_forward_norm(x))


def norm_shared(block: EncoderBlock) -> None:
    norm = block.attention_norm
    del block.attention_norm, block.feed_forward_norm
    block.norm = norm
    block.__dict__ |= {"attention_norm": norm, "feed_forward_norm": norm}  # found by name, but no parts of the module


def norm_aliased(block: EncoderBlock) -> None:
    block.feed_forward_norm = block.attention_norm


def with_norms(first: str, second: str) -> type[EncoderBlock]:
    """The two norms by name: which one serves attention, which one the feed-forward network."""

    def forward(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
        norms = getattr(block, first), getattr(block, second)
        if block.norm_first:
            x = x + block.dropout(block.attention(norms[0](x), mask))
            return x + block.dropout(block.feed_forward(norms[1](x)))
        x = norms[0](x + block.dropout(block.attention(x, mask)))
        return norms[1](x + block.dropout(block.feed_forward(x)))

    return running(forward, forward)


def norms_unbiased(block: EncoderBlock) -> None:
    width = len(block.attention_norm.weight)
    kind = normalising(unbiased)
    block.attention_norm, block.feed_forward_norm = kind(width), kind(width)


def relu(block: EncoderBlock) -> None:
    block.feed_forward.activation = F.relu


def gelu(block: EncoderBlock) -> None:
    block.feed_forward.activation = F.gelu


def gelu_tanh(block: EncoderBlock) -> None:
    if block.feed_forward.activation is F.gelu:
        block.feed_forward.activation = lambda x: F.gelu(x, approximate="tanh")


def linear(block: EncoderBlock) -> None:
    block.feed_forward.activation = lambda x: x


def dropout_fixed(block: EncoderBlock) -> None:
    block.dropout.p = 0.1


class AddNorms(nn.Module):
    """Built of the frame from the exercise before: its norm has a name of its own."""

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
        right = EncoderBlock(d_model, n_heads, d_ff, dropout, activation, norm_first)
        self.attention, self.feed_forward = right.attention, right.feed_forward
        self.attention_norm, self.feed_forward_norm = AddNorm(d_model, dropout), AddNorm(d_model, dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Any:
        if self.norm_first:
            first, second = self.attention_norm, self.feed_forward_norm
            x = x + first.dropout(self.attention(first.norm(x), mask))
            return x + second.dropout(self.feed_forward(second.norm(x)))
        x = self.attention_norm(x, self.attention(x, mask))
        return self.feed_forward_norm(x, self.feed_forward(x))


class TorchNames(nn.Module):
    """Named as in torch's own layer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        right = EncoderBlock(*args, **kwargs)
        self.self_attn, self.ff = right.attention, right.feed_forward
        self.norm1, self.norm2 = right.attention_norm, right.feed_forward_norm
        self.drop, self.norm_first = right.dropout, right.norm_first

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Any:
        if self.norm_first:
            x = x + self.drop(self.self_attn(self.norm1(x), mask))
            return x + self.drop(self.ff(self.norm2(x)))
        x = self.norm1(x + self.drop(self.self_attn(x, mask)))
        return self.norm2(x + self.drop(self.ff(x)))


class FinalNorm(EncoderBlock):
    """With a third norm of its own after the two sublayers, when the norm comes first."""

    def __init__(self, d_model: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(d_model, *args, **kwargs)
        self.final_norm = LayerNorm(d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Any:
        x = super().forward(x, mask)
        return self.final_norm(x) if self.norm_first else x


def without_mask(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    return right(block, x, None)


def mask_inverted(block: EncoderBlock, x: Tensor, mask: Tensor | None) -> Any:
    return right(block, x, None if mask is None else ~mask)
