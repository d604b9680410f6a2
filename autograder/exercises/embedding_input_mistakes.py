"""Lesson 03: wrong input layers that people really write, and what to tell them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.exercises.declaration import Mistake
from autograder.reference.embedding import SinusoidalPosition, TokenEmbedding, TransformerInput
from autograder.results import Text


class _Input(TransformerInput):
    """The reference in parts: the vectors, the sum with positions, and dropout."""

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        max_len: int = 5000,
        dropout: float = 0.1,
        padding_id: int | None = None,
    ) -> None:
        super().__init__(vocab_size, d_model, max_len, dropout, padding_id)
        self.share = dropout
        self.padding_id = padding_id

    def vectors(self, tokens: Tensor) -> Tensor:
        found: Tensor = self.tokens(tokens)
        return found

    def summed(self, tokens: Tensor, offset: int) -> Tensor:
        placed: Tensor = self.position(self.vectors(tokens), offset)
        return placed

    def dropped(self, x: Tensor) -> Tensor:
        found: Tensor = self.dropout(x)
        return found

    def forward(self, tokens: Tensor, offset: int = 0) -> Tensor:
        return self.dropped(self.summed(tokens, offset))


def _summing(change: Callable[[_Input, Tensor, int], Tensor]) -> type[nn.Module]:
    """`change` makes the sum, before dropout, of module, tokens and offset."""

    class Input(_Input):
        def summed(self, tokens: Tensor, offset: int) -> Tensor:
            return change(self, tokens, offset)

    return Input


def _looking_up(change: Callable[[_Input, Tensor], Tensor]) -> type[nn.Module]:
    """`change` makes the vectors of module and tokens."""

    class Input(_Input):
        def vectors(self, tokens: Tensor) -> Tensor:
            return change(self, tokens)

    return Input


def _dropping(change: Callable[[_Input, Tensor], Tensor]) -> type[nn.Module]:
    """`change` makes the result of module and sum."""

    class Input(_Input):
        def dropped(self, x: Tensor) -> Tensor:
            return change(self, x)

    return Input


def _without_dropout_of_sum(change: Callable[[_Input, Tensor, int], Tensor]) -> type[nn.Module]:
    """`change` makes the result of module, tokens and offset."""

    class Input(_Input):
        def forward(self, tokens: Tensor, offset: int = 0) -> Tensor:
            return change(self, tokens, offset)

    return Input


def _placing(change: Callable[[Tensor, Tensor], Tensor]) -> type[nn.Module]:
    """`change` makes the sum of vectors and their rows of the encoding."""

    class Input(_Input):
        def summed(self, tokens: Tensor, offset: int) -> Tensor:
            vectors = self.vectors(tokens)
            return change(vectors, self.position.encoding[offset : offset + vectors.shape[1]].to(vectors))

    return Input


class _PlainTable(nn.Module):
    """`tokens` is nn.Embedding itself."""

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        max_len: int = 5000,
        dropout: float = 0.1,
        padding_id: int | None = None,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model, padding_idx=padding_id)
        self.position = SinusoidalPosition(d_model, max_len)
        self.dropout = nn.Dropout(dropout)
        self.scale = d_model**0.5

    def forward(self, tokens: Tensor, offset: int = 0) -> Tensor:
        found: Tensor = self.dropout(self.position(self.tokens(tokens) * self.scale, offset))
        return found


class _PositionSaved(_Input):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.position.register_buffer("encoding", self.position.encoding)


class _PositionLearns(_Input):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        encoding = self.position.encoding
        del self.position.encoding
        self.position.encoding = nn.Parameter(encoding)


class _PaddingForgotten(_Input):
    def __init__(self, vocab_size: int, d_model: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(vocab_size, d_model, *args, **kwargs)
        self.tokens = TokenEmbedding(vocab_size, d_model)


class _MaxLenForgotten(_Input):
    def __init__(self, vocab_size: int, d_model: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(vocab_size, d_model, *args, **kwargs)
        self.position = SinusoidalPosition(d_model)


class _DropoutForgotten(_Input):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dropout = nn.Dropout(0.1)


class _KeepProbability(_Input):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dropout = nn.Dropout(1 - self.share)


class _AlwaysFloat32(_Input):
    def dropped(self, x: Tensor) -> Tensor:
        return super().dropped(x).float()


def _unscaled_dropout(module: _Input, x: Tensor) -> Tensor:
    return x * (torch.rand_like(x) >= module.share) if module.training else x


def _masked_out(module: _Input, tokens: Tensor, offset: int) -> Tensor:
    placed: Tensor = module.position(module.tokens(tokens), offset)
    return placed if module.padding_id is None else placed * (tokens != module.padding_id)[..., None]


def _mistake(slug: str, answer: Any, en: str, zh: str) -> Mistake:
    return Mistake(slug=slug, message=Text(en=en, zh=zh), answers={"TransformerInput": answer})


TRANSFORMER_INPUT = (
    _mistake(
        "embedding-not-scaled",
        _looking_up(lambda module, tokens: module.tokens(tokens) / module.tokens.scale),
        "The embeddings are added as they stand in the table, unscaled. Is the scale missing in your TokenEmbedding, "
        "or does this module go round it?",
        "词嵌入没有缩放就相加了。是你的 TokenEmbedding 里少了缩放，还是这个模块绕过了它？",
    ),
    _mistake(
        "embedding-scale-divided",
        _looking_up(lambda module, tokens: module.tokens(tokens) / module.tokens.scale**2),
        "The embeddings are made smaller before the sum. The scale is there to make them larger: look at your "
        "TokenEmbedding.",
        "相加之前，词嵌入被缩小了。缩放的目的是放大它：请看你的 TokenEmbedding。",
    ),
    _mistake(
        "scaled-twice",
        _looking_up(lambda module, tokens: module.tokens(tokens) * module.tokens.scale),
        "The embeddings are scaled twice. One of your modules does it already.",
        "词嵌入被缩放了两次。你的某个模块已经做过了。",
    ),
    _mistake(
        "position-scaled-too",
        _placing(lambda vectors, rows: vectors + rows * rows.shape[-1] ** 0.5),
        "The positions are scaled along with the embeddings. Look at what stands inside the brackets that you "
        "multiply.",
        "位置编码也跟着词嵌入一起被缩放了。请看相乘的括号里有什么。",
    ),
    _mistake(
        "position-missing",
        _summing(lambda module, tokens, offset: module.vectors(tokens)),
        "No position is added: the module tells who, but not where. Shuffled words would come out as the same set of "
        "vectors.",
        "没有加上位置：模块只说了“是谁”，没说“在哪里”。打乱词序，出来的还是同一组向量。",
    ),
    _mistake(
        "token-missing",
        _summing(lambda module, tokens, offset: module.position(0 * module.vectors(tokens), offset)),
        "The positions come out alone: the embeddings are lost on the way.",
        "出来的只有位置：词嵌入在路上丢了。",
    ),
    _mistake(
        "position-added-twice",
        _placing(lambda vectors, rows: vectors + rows + rows),
        "The positions are added twice. One of your modules does the sum already: look at what SinusoidalPosition "
        "returns.",
        "位置被加了两次。你的某个模块已经做了相加：请看 SinusoidalPosition 返回的是什么。",
    ),
    _mistake(
        "embedding-added-twice",
        _placing(lambda vectors, rows: vectors + vectors + rows),
        "The embeddings are in the sum twice. SinusoidalPosition returns them with the positions already added.",
        "词嵌入在和里出现了两次。SinusoidalPosition 返回的结果里已经有它了。",
    ),
    _mistake(
        "wrong-axis",
        _summing(
            lambda module, tokens, offset: (
                module.vectors(tokens)
                + module.position.encoding[offset : offset + len(tokens), None].to(module.tokens.table.weight)
            )
        ),
        "Each sequence of the batch gets its own number, and all its positions the same one. Batch comes first here: "
        "look at the axis along which positions count.",
        "batch 里的每个序列各得一个编号，而序列内所有位置的编号都一样。这里 batch 在前：请看位置是沿哪个轴数的。",
    ),
    _mistake(
        "offset-not-passed-on",
        _summing(lambda module, tokens, offset: module.position(module.vectors(tokens))),
        "Offset changes nothing: it is accepted and not handed on. A model that writes one token at a time would put "
        "each in first place.",
        "offset 没有起作用：收下了，却没有往下传。模型逐个生成 token 时，会把每个 token 都放在第一位。",
    ),
    _mistake(
        "offset-one-short",
        _summing(lambda module, tokens, offset: module.position(module.vectors(tokens), max(offset - 1, 0))),
        "With an offset, every vector gets the number of its left neighbour. Offset says how many came before; count "
        "from 0 what number the next one has.",
        "有 offset 时，每个向量拿到的都是左边邻居的编号。offset 表示前面已经有多少个；从 0 数起，下一个是几号？",
    ),
    _mistake(
        "max-len-not-passed-on",
        _MaxLenForgotten,
        "max_len changes nothing: the table of positions has its default size, and a longer one that was asked for is "
        "not there.",
        "max_len 没有起作用：位置表总是默认大小，要求更长的表时得不到。",
    ),
    _mistake(
        "tokens-is-the-table-itself",
        _PlainTable,
        "The sums are right, but the saved weights are not called tokens.table.weight. The attribute has to be called "
        "tokens, and has to hold the module of exercise 1, not a bare table: saved weights are found by their name.",
        "加得对，但保存的权重不叫 tokens.table.weight。属性名必须是 tokens，里面放的必须是练习 1 的模块，"
        "而不是直接一张表：保存的权重是按名字找的。",
    ),
    _mistake(
        "position-saved",
        _PositionSaved,
        "The positions are saved along with the weights. Look at how SinusoidalPosition keeps its table.",
        "位置表和权重一起被保存了。请看 SinusoidalPosition 是怎样存放它的表的。",
    ),
    _mistake(
        "position-learns",
        _PositionLearns,
        "The positions are a parameter: training would change them. They are computed, not learned.",
        "位置表成了参数，训练会改变它。它是算出来的，不是学出来的。",
    ),
    _mistake(
        "padding-not-passed-on",
        _PaddingForgotten,
        "padding_id is accepted and not handed on: its row of the table is random and learns like any other.",
        "padding_id 收下了，却没有往下传：表里的那一行是随机数，也像别的行一样学习。",
    ),
    _mistake(
        "padding-masked-out",
        _summing(_masked_out),
        "Padding comes out as zero. Its embedding is zero, but it stands somewhere: the task asks for the sum at "
        "every position. Hiding padding is the mask's job.",
        "填充的输出为零。它的词嵌入是零，但它也站在某个位置上：题目要求每个位置都相加。遮住填充是掩码的工作。",
    ),
    _mistake(
        "dropout-missing",
        _dropping(lambda module, x: x),
        "There is no dropout: in train mode every value comes through.",
        "没有 dropout：训练模式下，所有的值都原样通过。",
    ),
    _mistake(
        "dropout-before-the-sum",
        _without_dropout_of_sum(
            lambda module, tokens, offset: module.position(module.dropout(module.vectors(tokens)), offset)
        ),
        "Dropout falls on the embeddings, before the positions are added, so positions are never dropped. Look at the "
        "order in the task.",
        "dropout 落在词嵌入上，在加位置之前，所以位置从不会被丢弃。请看题目里的先后顺序。",
    ),
    _mistake(
        "dropout-of-positions-alone",
        _without_dropout_of_sum(
            lambda module, tokens, offset: (
                module.vectors(tokens)
                + module.dropout(module.position(torch.zeros_like(module.vectors(tokens)), offset))
            )
        ),
        "Dropout falls on the positions alone. The task puts it after the sum.",
        "dropout 只落在位置上。题目把它放在相加之后。",
    ),
    _mistake(
        "dropout-of-each-part",
        _without_dropout_of_sum(
            lambda module, tokens, offset: (
                module.dropout(module.vectors(tokens))
                + module.dropout(module.position(torch.zeros_like(module.vectors(tokens)), offset))
            )
        ),
        "Embeddings and positions are dropped each on their own and then added, so a value is rarely 0. The task asks "
        "for one dropout, after the sum.",
        "词嵌入和位置各自做了 dropout 再相加，所以很少有值为 0。题目要的是相加之后的一次 dropout。",
    ),
    _mistake(
        "dropout-twice",
        _dropping(lambda module, x: module.dropout(module.dropout(x))),
        "Dropout is applied twice in a row: more is dropped than the argument says, and the rest is scaled twice.",
        "dropout 连做了两次：丢掉的比参数说的多，留下的也被放大了两次。",
    ),
    _mistake(
        "dropout-before-and-after",
        _without_dropout_of_sum(
            lambda module, tokens, offset: module.dropout(
                module.position(module.dropout(module.vectors(tokens)), offset)
            )
        ),
        "Dropout falls on the embeddings and once more on the sum. One of your modules does it already, or forward "
        "names it twice.",
        "词嵌入做了一次 dropout，和又做了一次。要么某个模块里已经有了，要么 forward 里写了两遍。",
    ),
    _mistake(
        "dropout-in-eval",
        _dropping(lambda module, x: F.dropout(x, module.share)),
        "Dropout also happens in eval mode, so a trained model would answer differently each time. A function doesn't "
        "know the module's mode: it has to be told, or a module has to be used.",
        "eval 模式下也在做 dropout，训练好的模型每次回答都会不同。函数不知道模块处于什么模式：要么告诉它，"
        "要么改用模块。",
    ),
    _mistake(
        "dropout-in-eval-alone",
        _dropping(lambda module, x: F.dropout(x, module.share, training=not module.training)),
        "Dropout happens in eval mode and not in train mode: the condition is the wrong way round.",
        "dropout 在 eval 模式下发生，训练模式下却没有：条件反了。",
    ),
    _mistake(
        "dropout-unscaled",
        _dropping(_unscaled_dropout),
        "The right share of values is dropped, but the others keep their size, so sums get smaller on average than in "
        "eval mode. Look up what dropout does to the values that it keeps.",
        "丢弃的比例是对的，但留下的值没有变，平均起来比 eval 模式小。请查一查 dropout 对留下的值做了什么。",
    ),
    _mistake(
        "dropout-argument-unused",
        _DropoutForgotten,
        "The share that is dropped doesn't follow the argument. It is always that of the default.",
        "丢弃的比例没有跟着参数变，总是默认值。",
    ),
    _mistake(
        "dropout-keeps-that-share",
        _KeepProbability,
        "The argument is taken for the share to keep. In torch it says how much is dropped.",
        "参数被当成了保留的比例。在 torch 里，它表示丢弃多少。",
    ),
    _mistake(
        "dropout-of-whole-vectors",
        _dropping(lambda module, x: F.dropout1d(x, module.share, module.training)),
        "Whole vectors are dropped: a token disappears entirely or not at all. Ordinary dropout decides for each "
        "number on its own.",
        "丢弃的是整个向量：一个 token 要么全没了，要么全在。普通的 dropout 对每个数单独决定。",
    ),
    _mistake(
        "float32-forced",
        _AlwaysFloat32,
        "The result is float32 whatever the module's dtype. Leave the dtype as the table has it.",
        "无论模块是什么 dtype，结果都成了 float32。请保持与词嵌入表相同的 dtype。",
    ),
)
