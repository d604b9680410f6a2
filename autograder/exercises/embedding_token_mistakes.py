"""Lesson 03: wrong token embeddings that people really write, and what to tell them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from autograder.exercises.declaration import Mistake
from autograder.reference.embedding import TokenEmbedding
from autograder.results import Text


class _Tokens(TokenEmbedding):
    """The reference with one thing to change: how many times a looked-up vector its output is."""

    def factor(self, tokens: Tensor) -> float:
        return self.scale

    def forward(self, tokens: Tensor) -> Tensor:
        scaled: Tensor = self.table(tokens) * self.factor(tokens)
        return scaled


def _times(number: Callable[[_Tokens, Tensor], float]) -> type[nn.Module]:
    class Scaled(_Tokens):
        def factor(self, tokens: Tensor) -> float:
            return number(self, tokens)

    return Scaled


def _padded(choose: Callable[[int | None, int], int | None]) -> type[nn.Module]:
    """`choose` makes the table's padding_idx of padding_id and vocab_size."""

    class Padded(_Tokens):
        def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
            super().__init__(vocab_size, d_model, choose(padding_id, vocab_size))

    return Padded


class _InitialisedAgain(_Tokens):
    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__(vocab_size, d_model, padding_id)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)


class _ZeroedByHand(_Tokens):
    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__(vocab_size, d_model)
        if padding_id is not None:
            with torch.no_grad():
                self.table.weight[padding_id] = 0.0


class _MaskedInForward(_Tokens):
    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__(vocab_size, d_model)
        self.padding_id = padding_id

    def forward(self, tokens: Tensor) -> Tensor:
        scaled = super().forward(tokens)
        return scaled if self.padding_id is None else scaled * (tokens != self.padding_id)[..., None]


class _SizesSwapped(_Tokens):
    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__(d_model, vocab_size, padding_id if padding_id is None or padding_id < d_model else None)
        self.scale = math.sqrt(d_model)


class _OtherName(nn.Module):
    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=padding_id)
        self.d_model = d_model

    def forward(self, tokens: Tensor) -> Tensor:
        scaled: Tensor = self.embedding(tokens) * math.sqrt(self.d_model)
        return scaled


class _ScaleInTheState(_Tokens):
    root: Tensor

    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__(vocab_size, d_model, padding_id)
        self.register_buffer("root", torch.tensor(math.sqrt(d_model)))


class _ScaleLearns(_Tokens):
    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__(vocab_size, d_model, padding_id)
        self.root = nn.Parameter(torch.tensor(math.sqrt(d_model)))

    def forward(self, tokens: Tensor) -> Tensor:
        scaled: Tensor = self.table(tokens) * self.root
        return scaled


class _ScaleLeftBehind(_Tokens):
    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__(vocab_size, d_model, padding_id)
        self.root = torch.tensor([d_model]).sqrt()

    def forward(self, tokens: Tensor) -> Tensor:
        scaled: Tensor = self.table(tokens) * self.root
        return scaled


class _AlwaysFloat32(_Tokens):
    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens).float()


class _Detached(_Tokens):
    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens).detach()


class _TransposedResult(_Tokens):
    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens).transpose(0, 1)


class _TokensOverwritten(_Tokens):
    def forward(self, tokens: Tensor) -> Tensor:
        found = super().forward(tokens)
        tokens[tokens == tokens.max()] = 0
        return found


def _mistake(slug: str, answer: Any, en: str, zh: str) -> Mistake:
    return Mistake(slug=slug, message=Text(en=en, zh=zh), answers={"TokenEmbedding": answer})


TOKEN_EMBEDDING = (
    _mistake(
        "unscaled",
        _times(lambda module, tokens: 1.0),
        "The vectors leave as they stand in the table. The task asks for one more step between look-up and result: "
        "read what happens to the size of the vectors, and why.",
        "向量从表里取出后原样返回了。查表与返回之间还有一步：请重读题目里关于向量大小的那句话。",
    ),
    _mistake(
        "scale-divided",
        _times(lambda module, tokens: 1 / module.scale),
        "The scale is applied the wrong way round: your vectors get smaller. That is the scale of attention scores; "
        "embeddings are to become larger, so that positions don't drown them.",
        "缩放的方向反了：你的向量变小了。那是注意力分数的缩放；词嵌入应当变大，才不会被位置编码淹没。",
    ),
    _mistake(
        "scale-without-root",
        _times(lambda module, tokens: module.scale**2),
        "The vectors are scaled by the width itself, which is too much. Look at the sign in front of d_model.",
        "你用宽度本身来缩放，放得太大了。请看 d_model 前面的那个符号。",
    ),
    _mistake(
        "scale-of-the-vocabulary",
        _times(lambda module, tokens: math.sqrt(module.table.num_embeddings)),
        "The scale is taken from the number of tokens in the vocabulary. It has to do with the width of one vector.",
        "缩放取自词表中 token 的个数。它应当取决于一个向量的宽度。",
    ),
    _mistake(
        "scale-of-the-length",
        _times(lambda module, tokens: math.sqrt(tokens.shape[1])),
        "The scale changes with the length of the sequence. A token's vector must not depend on how many others "
        "stand beside it.",
        "你的缩放随序列长度而变。一个 token 的向量不应取决于它旁边还有多少个 token。",
    ),
    _mistake(
        "scale-of-a-head",
        _times(lambda module, tokens: math.sqrt(module.table.embedding_dim / 8)),
        "The scale is taken from the width of one attention head. There are no heads here yet: a vector has its whole "
        "width.",
        "缩放取自一个注意力头的宽度。这里还没有头：向量的宽度是完整的。",
    ),
    _mistake(
        "scale-of-the-paper",
        _times(lambda module, tokens: math.sqrt(512)),
        "The scale is a fixed number, right for the model of the 2017 paper only. Take it from the module's own sizes.",
        "你的缩放是一个固定的数，只适合 2017 年论文里的那个模型。请用模块自己的尺寸来算。",
    ),
    _mistake(
        "padding-id-unused",
        _padded(lambda padding_id, vocab_size: None),
        "padding_id changes nothing: its row is an ordinary one, starts with random numbers and learns. The task says "
        "two things about this row.",
        "padding_id 没有起作用：它那一行和别的行一样，以随机数开始，也会学习。题目对这一行提出了两点要求。",
    ),
    _mistake(
        "padding-id-zero-unused",
        _padded(lambda padding_id, vocab_size: padding_id or None),
        "The padding works except when its id is 0. In Python 0 counts as false: ask whether an id was given, not "
        "whether it is true.",
        "填充 id 为 0 时，填充就不起作用了。在 Python 里 0 算作假：要问的是“有没有给出 id”，而不是“id 是否为真”。",
    ),
    _mistake(
        "padding-always-zero",
        _padded(lambda padding_id, vocab_size: 0),
        "It is always the row of token 0 that is kept at zero. Which row it is, and whether there is one at all, is "
        "said by the argument.",
        "保持为零的总是 0 号 token 的那一行。是哪一行、有没有这样一行，都由参数决定。",
    ),
    _mistake(
        "padding-last-row",
        _padded(lambda padding_id, vocab_size: None if padding_id is None else vocab_size - 1),
        "It is always the last row of the table that is kept at zero. Take the row that the argument names.",
        "保持为零的总是表的最后一行。应当是参数指定的那一行。",
    ),
    _mistake(
        "padding-row-overwritten",
        _InitialisedAgain,
        "The padding row learns nothing, but it is not zero: something writes random numbers into the whole table "
        "after the table was made. Look at the order of the lines.",
        "填充那一行不会学习，但它不为零：表建好之后，又有代码往整张表里写了随机数。请看各行代码的先后顺序。",
    ),
    _mistake(
        "padding-row-learns",
        _ZeroedByHand,
        "The padding row starts at zero, but a gradient reaches it, so the first training step moves it away. The "
        "table can be told about padding when it is made.",
        "填充那一行起初为零，但梯度会到达它，训练一步之后就不再为零。建表的时候就可以告诉它填充是哪一个。",
    ),
    _mistake(
        "padding-hidden-in-forward",
        _MaskedInForward,
        "Padding comes out as zero, but the row in the table is not zero: forward hides it. Whoever reads or saves the "
        "table finds random numbers there.",
        "填充的输出为零，但表里的那一行并不为零，只是在 forward 里被遮住了。读取或保存这张表时，那里仍是随机数。",
    ),
    _mistake(
        "table-sizes-swapped",
        _SizesSwapped,
        "The table has a row for each feature and a column for each token, so token ids run past its end. Ask what "
        "one row of the table is.",
        "你的表每个特征占一行、每个 token 占一列，所以 token id 会越界。想一想：表的一行代表什么？",
    ),
    _mistake(
        "other-parameter-name",
        _OtherName,
        "The vectors are right, but the weights have another name than the task gives. Saved weights are found by "
        "name, so attributes have to be named exactly as asked.",
        "向量是对的，但权重的名字与题目给出的不同。保存的权重靠名字来找，所以属性名必须与题目完全一致。",
    ),
    _mistake(
        "scale-in-the-state",
        _ScaleInTheState,
        "The scale is saved along with the weights. It follows from a size of the module, so nothing needs to be "
        "stored: an ordinary number will do.",
        "缩放系数和权重一起被保存了。它可以由模块的尺寸算出，不需要保存：用一个普通的数就行。",
    ),
    _mistake(
        "scale-learns",
        _ScaleLearns,
        "The scale is a parameter: training would change it. The task asks for a fixed number.",
        "缩放系数成了参数，训练会改变它。题目要的是一个固定的数。",
    ),
    _mistake(
        "scale-left-behind",
        _ScaleLeftBehind,
        "The scale is a tensor of its own that doesn't move with the module: on another device it is in the wrong "
        "place, and in half precision it lifts the result to float32. A plain number has neither problem.",
        "缩放系数是一个不随模块移动的张量：换了设备，它就不在正确的地方；在半精度下，它又把结果抬成 float32。"
        "用普通的数就没有这两个问题。",
    ),
    _mistake(
        "float32-forced",
        _AlwaysFloat32,
        "The result is float32 whatever the module's dtype. Leave the dtype as the table has it.",
        "无论模块是什么 dtype，结果都成了 float32。请保持与表相同的 dtype。",
    ),
    _mistake(
        "table-without-gradient",
        _Detached,
        "The values are right, but no gradient reaches the table, so it would never learn. Look for detach, .data or "
        "no_grad on the way.",
        "数值是对的，但没有梯度到达表，它永远学不到东西。请检查路上是否有 detach、.data 或 no_grad。",
    ),
    _mistake(
        "axes-swapped",
        _TransposedResult,
        "Batch and length have changed places in the result. Everything here is batch first, as it comes in.",
        "结果里 batch 轴和长度轴对调了。这里一律 batch 在前，与输入相同。",
    ),
    _mistake(
        "tokens-changed",
        _TokensOverwritten,
        "The result is right, but the tokens that were handed in are changed. Work on a copy.",
        "结果是对的，但传入的 tokens 被改动了。请在副本上操作。",
    ),
)
