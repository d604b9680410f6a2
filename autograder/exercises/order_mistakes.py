"""Lesson 01: wrong implementations of its smaller exercises that people really write, and what to tell them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.exercises.declaration import Answer, Mistake
from autograder.results import Text

Layer = Callable[[Tensor], Tensor]


def _mask(slug: str, answer: Answer, en: str, zh: str) -> Mistake:
    return Mistake(slug=slug, message=Text(en=en, zh=zh), answers={"causal_mask": answer})


def _ones(length: int, device: Any) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool, device=device)


CAUSAL_MISTAKES = (
    _mask(
        "strict-triangle",
        lambda length, device=None: _ones(length, device).tril(-1),
        "A position can't see itself in your mask, and the first one sees nothing. Look at the diagonal.",
        "在你的掩码里，每个位置看不到自己，第一个位置什么也看不到。请看对角线。",
    ),
    _mask(
        "one-step-ahead",
        lambda length, device=None: _ones(length, device).tril(1),
        "Each position also sees the next one: your triangle is one diagonal too wide.",
        "每个位置还能看到后面一个位置：你的三角形多了一条对角线。",
    ),
    _mask(
        "transposed",
        lambda length, device=None: _ones(length, device).triu(),
        "Each position sees itself and the future: rows and columns are exchanged. A row belongs to a query.",
        "每个位置看到的是自己和未来：行与列弄反了。每一行属于一个查询。",
    ),
    _mask(
        "inverted",
        lambda length, device=None: _ones(length, device).triu(1),
        "Your mask is True where looking is forbidden. Read again what True means in this course.",
        "你的掩码在禁止关注的地方为 True。请再看一遍本课程里 True 表示什么。",
    ),
    _mask(
        "itself-only",
        lambda length, device=None: torch.eye(length, dtype=torch.bool, device=device),
        "Each position sees itself and nothing else. Who else is already known when a position is computed?",
        "每个位置只能看到自己。计算某个位置时，还有哪些位置是已知的？",
    ),
    _mask(
        "everything-allowed",
        lambda length, device=None: _ones(length, device),
        "Every position sees every other one: nothing is blocked.",
        "每个位置都能看到所有位置：什么也没有挡住。",
    ),
    _mask(
        "float-mask",
        lambda length, device=None: torch.ones(length, length, device=device).tril(),
        "The pattern is there, as floating-point numbers. The task asks for another dtype; `~mask` fails on these.",
        "图案是对的，但它是浮点数。题目要求的是另一种 dtype；对浮点数无法使用 ~mask。",
    ),
    _mask(
        "integer-mask",
        lambda length, device=None: torch.ones(length, length, dtype=torch.int64, device=device).tril(),
        "The pattern is there, as whole numbers. The task asks for another dtype; `~mask` turns 1 into -2 here.",
        "图案是对的，但它是整数。题目要求的是另一种 dtype；对整数来说，~mask 会把 1 变成 -2。",
    ),
    _mask(
        "additive-mask",
        lambda length, device=None: torch.full((length, length), -torch.inf, device=device).triu(1),
        "This is a mask to be added to scores, with 0 and minus infinity. Here a mask says yes or no.",
        "这是要加到分数上的掩码，由 0 和负无穷组成。本课程里的掩码只回答“可以”或“不可以”。",
    ),
    _mask(
        "extra-axis",
        lambda length, device=None: _ones(length, device).tril().unsqueeze(0),
        "Your mask has a third axis. Compare its shape with the task's; broadcasting adds leading axes by itself.",
        "你的掩码多了一个轴。请与题目要求的形状对照；前面的轴由广播自动补上。",
    ),
    _mask(
        "device-ignored",
        lambda length, device=None: _ones(length, None).tril(),
        "The argument `device` is not used: the mask is always made on the default device.",
        "没有用到参数 device：掩码总是建在默认设备上。",
    ),
)


def _gap(slug: str, answer: Answer, en: str, zh: str) -> Mistake:
    return Mistake(slug=slug, message=Text(en=en, zh=zh), answers={"permutation_gap": answer})


def _measured(measure: Callable[[Tensor, Tensor], Any]) -> Answer:
    """`measure` makes the result of layer(x[:, permutation]) and layer(x)[:, permutation]."""
    return lambda layer, x, permutation: measure(layer(x[:, permutation]), layer(x)[:, permutation])


def _largest(a: Tensor, b: Tensor) -> float:
    return (a - b).abs().max().item()


def _order_overwritten(layer: Layer, x: Tensor, permutation: Tensor) -> float:
    after = layer(x)[:, permutation]
    x[:] = x[:, permutation]
    return _largest(layer(x), after)


GAP_MISTAKES = (
    _gap(
        "features-permuted",
        lambda layer, x, permutation: _largest(layer(x[..., permutation]), layer(x)[..., permutation]),
        "The permutation reorders features, not positions. Check which axis of x counts the positions.",
        "被重排的是特征，而不是位置。请检查 x 的哪个轴对应位置。",
    ),
    _gap(
        "batch-permuted",
        lambda layer, x, permutation: _largest(layer(x[permutation]), layer(x)[permutation]),
        "The permutation reorders the sentences of the batch, not the positions inside them. Check which axis you "
        "index.",
        "被重排的是 batch 中的句子，而不是句子里的位置。请检查你在哪个轴上取下标。",
    ),
    _gap(
        "output-not-permuted",
        lambda layer, x, permutation: _largest(layer(x[:, permutation]), layer(x)),
        "Outputs are compared that belong to different words: only one side was reordered. "
        "A layer that ignores order should give 0.",
        "比较的两个输出对应的不是同一个词：只有一边重排了。对忽略顺序的层，结果应当是 0。",
    ),
    _gap(
        "input-not-permuted",
        lambda layer, x, permutation: _largest(layer(x), layer(x)[:, permutation]),
        "The layer never sees the reordered input: your number only says how its outputs differ among themselves.",
        "这个层从未见过重排后的输入：你得到的只是它各个输出之间的差别。",
    ),
    _gap(
        "inverse-permutation",
        lambda layer, x, permutation: _largest(layer(x[:, permutation]), layer(x)[:, permutation.argsort()]),
        "One side is reordered by the inverse permutation. It shows on permutations that do not undo themselves: "
        "swap two words and it looks fine, rotate three and it doesn't.",
        "有一边用的是逆排列。只有当排列不是自己的逆时才会露馅：交换两个词看不出问题，轮换三个词就能看出来。",
    ),
    _gap(
        "same-side-twice",
        lambda layer, x, permutation: _largest(layer(x[:, permutation]), layer(x[:, permutation])),
        "Your gap is 0 for every layer, even one that depends on order: both sides of the difference are the same "
        "thing.",
        "无论什么层，你得到的差距都是 0，哪怕它依赖顺序：相减的两边是同一个东西。",
    ),
    _gap(
        "mean-difference",
        _measured(lambda a, b: (a - b).abs().mean().item()),
        "You average the differences. The task asks for one that no other exceeds.",
        "你取的是差的平均值。题目要的是没有别的差能超过的那一个。",
    ),
    _gap(
        "summed-difference",
        _measured(lambda a, b: (a - b).abs().sum().item()),
        "You add the differences up, so the gap grows with the size of x. The task asks for one of them.",
        "你把所有的差加了起来，x 越大差距就越大。题目要的是其中的一个。",
    ),
    _gap(
        "signed-difference",
        _measured(lambda a, b: (a - b).max().item()),
        "A large negative difference goes unseen: the signs are still there when you take the maximum.",
        "很大的负差被漏掉了：取最大值时，正负号还在。",
    ),
    _gap(
        "difference-of-maxima",
        _measured(lambda a, b: abs(a.abs().max() - b.abs().max()).item()),
        "You subtract two maxima. They may sit at different places; compare entry by entry first.",
        "你是用两个最大值相减，而它们可能不在同一个位置。请先逐项比较。",
    ),
    _gap(
        "squared-difference",
        _measured(lambda a, b: ((a - b) ** 2).max().item()),
        "The difference is squared, so it no longer has the unit of the outputs.",
        "差被平方了，不再与输出同一量纲。",
    ),
    _gap(
        "norm-of-difference",
        _measured(lambda a, b: (a - b).norm().item()),
        "You take the length of the whole difference (root of the sum of squares). The task asks about single entries.",
        "你取的是整个差的长度（平方和的平方根）。题目问的是单个元素。",
    ),
    _gap(
        "relative-difference",
        _measured(lambda a, b: ((a - b).abs().max() / b.abs().max()).item()),
        "The gap is divided by the size of the outputs. The task asks for an absolute difference.",
        "差距除以了输出的大小。题目要的是绝对的差。",
    ),
    _gap(
        "first-sentence-only",
        _measured(lambda a, b: (a[0] - b[0]).abs().max().item()),
        "Only the first sentence of the batch counts in your gap.",
        "你的差距只看了 batch 中的第一个句子。",
    ),
    _gap(
        "tensor-returned",
        _measured(lambda a, b: (a - b).abs().max()),
        "The value is right, and it is still a tensor. The task asks for a Python number.",
        "数值是对的，但它还是一个张量。题目要的是 Python 的数。",
    ),
    _gap(
        "yes-or-no",
        _measured(lambda a, b: torch.allclose(a, b)),
        "You answer whether the two agree. The task asks by how much they differ.",
        "你回答的是两者是否相等。题目问的是相差多少。",
    ),
    _gap(
        "x-overwritten",
        _order_overwritten,
        "x is in another order after the call. Reorder a copy.",
        "调用之后，x 的顺序变了。请在副本上重排。",
    ),
)


def _vector(slug: str, answer: Answer, en: str, zh: str) -> Mistake:
    return Mistake(slug=slug, message=Text(en=en, zh=zh), answers={"sentence_vector": answer})


def _scores(x: Tensor) -> Tensor:
    return x @ x.T / math.sqrt(x.shape[-1])


def _attended(x: Tensor) -> Tensor:
    return _scores(x).softmax(-1) @ x


def _pair(x: Tensor) -> tuple[Tensor, Tensor]:
    return _attended(x), _scores(x).softmax(-1)


def _causal(x: Tensor) -> Tensor:
    blocked = torch.ones_like(x @ x.T).triu(1).bool()
    return (_scores(x).masked_fill(blocked, -torch.inf).softmax(-1) @ x).mean(0)


def _stored_in_x(x: Tensor) -> Tensor:
    x[:] = _attended(x)
    return x.mean(0)


VECTOR_MISTAKES = (
    _vector(
        "plain-mean",
        lambda x: x.mean(0),
        "Your vector is the plain mean of x, as if there were no attention. Either attention is not used, or its "
        "softmax runs over the wrong axis: then each word is handed out exactly once, and the mean can't tell.",
        "你的向量就是 x 的普通平均，好像没有做过注意力。要么没用上注意力，要么 softmax 的轴不对："
        "那样每个词恰好被分出去一次，取平均就看不出差别了。",
    ),
    _vector(
        "mean-over-features",
        lambda x: _attended(x).mean(-1),
        "You get one number a word: the mean runs over the features. One vector for the sentence has as many numbers "
        "as a word.",
        "每个词得到了一个数：平均是在特征上取的。整句的向量应当和一个词的向量一样长。",
    ),
    _vector(
        "summed",
        lambda x: _attended(x).sum(0),
        "The outputs are added up, so longer sentences give larger vectors. The task asks for something else.",
        "输出被直接相加，句子越长向量越大。题目要的不是这个。",
    ),
    _vector(
        "largest",
        lambda x: _attended(x).amax(0),
        "You keep the largest value of each feature. The task asks for another summary.",
        "你保留的是每个特征的最大值。题目要的是另一种汇总。",
    ),
    _vector(
        "last-position",
        lambda x: _attended(x)[-1],
        "Your vector is the output at the last position alone. All positions should count.",
        "你的向量只是最后一个位置的输出。所有位置都应当计入。",
    ),
    _vector(
        "first-position",
        lambda x: _attended(x)[0],
        "Your vector is the output at the first position alone. All positions should count.",
        "你的向量只是第一个位置的输出。所有位置都应当计入。",
    ),
    _vector(
        "unscaled",
        lambda x: (x @ x.T).softmax(-1).matmul(x).mean(0),
        "The attention inside is not scaled. Use, or repair, your function `attention`.",
        "里面的注意力没有缩放。请使用（或修好）你的 attention 函数。",
    ),
    _vector(
        "scaled-by-length",
        lambda x: (x @ x.T / math.sqrt(len(x))).softmax(-1).matmul(x).mean(0),
        "The attention inside is scaled by the length of the sentence. The scale belongs to the width of the vectors.",
        "里面的注意力是按句子长度缩放的。缩放应当取决于向量的宽度。",
    ),
    _vector(
        "causal",
        _causal,
        "Your words look back only. The task has no mask: every word sees the whole sentence.",
        "你的每个词只看前面。题目里没有掩码：每个词都能看到整句。",
    ),
    _vector(
        "not-averaged",
        _attended,
        "This is the output at every position. The last step, one vector for the whole sentence, is missing.",
        "这是每个位置的输出。还差最后一步：整句只要一个向量。",
    ),
    _vector(
        "axis-kept",
        lambda x: _attended(x).mean(0, keepdim=True),
        "The result still has an axis of length 1 for the positions. Compare its shape with the task's.",
        "结果里还留着一个长度为 1 的位置轴。请与题目要求的形状对照。",
    ),
    _vector(
        "pair-not-unpacked",
        lambda x: _pair(x).mean(0),  # type: ignore[attr-defined]
        "`attention` returns two things, and you take the mean of the pair. Pick the one you need first.",
        "attention 返回两个结果，而你对这一对直接求平均。请先取出需要的那一个。",
    ),
    _vector(
        "x-changed",
        _stored_in_x,
        "x is different after the call: attention's output is stored in it. Give the output a name of its own.",
        "调用之后 x 变了：注意力的输出存进了 x。请给输出另起一个名字。",
    ),
)
