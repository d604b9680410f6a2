"""Lesson 04: wrong counts of what a block costs, and what to tell those who make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from autograder.exercises.declaration import Mistake
from autograder.reference.block import block_cost
from autograder.results import Text

Count = Callable[[int, int, int, int], Any]


def _counting(**entries: Count) -> Callable[..., Any]:
    """Right but for these entries, each a function of length n, width d, heads h and d_ff f."""

    def answer(length: int, d_model: int, n_heads: int, d_ff: int) -> Any:
        found: dict[str, Any] = dict(block_cost(length, d_model, n_heads, d_ff))
        return found | {name: count(length, d_model, n_heads, d_ff) for name, count in entries.items()}

    return answer


def _returning(finish: Callable[[Mapping[str, int]], Any]) -> Callable[..., Any]:
    def answer(length: int, d_model: int, n_heads: int, d_ff: int) -> Any:
        return finish(block_cost(length, d_model, n_heads, d_ff))

    return answer


def _exchanged(length: int, d_model: int, n_heads: int, d_ff: int) -> Any:
    return block_cost(length, d_model, d_ff, n_heads)


def _parameters(count: Count) -> Callable[..., Any]:
    return _counting(parameters=count)


def _scores(count: Count) -> Callable[..., Any]:
    return _counting(attention_scores=count)


def _multiply_adds(count: Count) -> Callable[..., Any]:
    return _counting(multiply_adds=count)


def _mistake(slug: str, answer: Callable[..., Any], en: str, zh: str) -> Mistake:
    return Mistake(slug=slug, message=Text(en=en, zh=zh), answers={"block_cost": answer})


BLOCK_COST_MISTAKES = (
    _mistake(
        "no-biases",
        _parameters(lambda n, d, h, f: 4 * d * d + 2 * d * f + 4 * d),
        "Parameters: no linear layer has its bias. Each adds one number for each of its outputs.",
        "参数量：所有线性层都漏了偏置。每一层的每个输出都有一个偏置。",
    ),
    _mistake(
        "no-norms-or-no-projection-biases",
        _parameters(lambda n, d, h, f: 4 * (d * d + d) + 2 * d * f + f + d),
        "Parameters: four numbers for each feature of `d_model` are missing. Two things hold just that many: the "
        "biases of the projections in attention, and the two layer norms. Check both.",
        "参数量：对 d_model 的每个特征少算了四个数。恰好有这么多的有两处：注意力各投影的偏置，以及两个层归一化。请都"
        "检查一下。",
    ),
    _mistake(
        "no-feed-forward-biases",
        _parameters(lambda n, d, h, f: 4 * (d * d + d) + 2 * d * f + 4 * d),
        "Parameters: the two layers of the feed-forward network are counted without their biases.",
        "参数量：前馈网络的两层没有算偏置。",
    ),
    _mistake(
        "feed-forward-biases-alike",
        _parameters(lambda n, d, h, f: 4 * (d * d + d) + 2 * (d * f + f) + 4 * d),
        "Parameters: both layers of the feed-forward network get the same number of biases. A bias has one number "
        "for each output: how many outputs has the second layer?",
        "参数量：前馈网络两层的偏置个数算成了一样。偏置的个数等于输出的个数：第二层有几个输出？",
    ),
    _mistake(
        "one-norm",
        _parameters(lambda n, d, h, f: 4 * (d * d + d) + 2 * d * f + f + d + 2 * d),
        "Parameters: the norms hold more than you count. How many norms has a block, and how many vectors has each?",
        "参数量：归一化的参数比你算的多。一个块里有几个归一化层，每个有几个向量？",
    ),
    _mistake(
        "no-biases-and-norms",
        _parameters(lambda n, d, h, f: 4 * d * d + 2 * d * f),
        "Parameters: only the matrices are counted. Biases and layer norms belong to the count as well.",
        "参数量：只算了矩阵。偏置和层归一化也要算。",
    ),
    _mistake(
        "three-projections",
        _parameters(lambda n, d, h, f: 3 * (d * d + d) + 2 * d * f + f + d + 4 * d),
        "Parameters: a projection of attention is missing. What happens after the heads are put side by side again?",
        "参数量：注意力少了一个投影。各个头重新拼到一起之后，还要做什么？",
    ),
    _mistake(
        "one-feed-forward-layer",
        _parameters(lambda n, d, h, f: 4 * (d * d + d) + d * f + f + 4 * d),
        "Parameters: the feed-forward network has two layers, and you count one.",
        "参数量：前馈网络有两层，你只算了一层。",
    ),
    _mistake(
        "parameters-for-each-head",
        _parameters(lambda n, d, h, f: 4 * h * (d * d + d) + 2 * d * f + f + d + 4 * d),
        "Parameters: the projections are multiplied by the number of heads. The heads share the width among them.",
        "参数量：投影乘上了头数。各个头是把宽度分着用的。",
    ),
    _mistake(
        "parameters-for-each-position",
        _parameters(lambda n, d, h, f: n * (4 * (d * d + d) + 2 * d * f + f + d + 4 * d)),
        "Parameters: your count grows with the length. One set of weights serves all positions.",
        "参数量：你的结果随长度增长。所有位置共用一套权重。",
    ),
    _mistake(
        "scores-of-one-head",
        _scores(lambda n, d, h, f: n * n),
        "Attention scores: you count one head. Each head compares all pairs for itself.",
        "注意力分数：你只算了一个头。每个头都各自比较所有的词对。",
    ),
    _mistake(
        "scores-not-squared",
        _scores(lambda n, d, h, f: h * n),
        "Attention scores: your count grows in step with the length. How many pairs of words are there?",
        "注意力分数：你的结果与长度成正比。词与词有多少对？",
    ),
    _mistake(
        "scores-with-features",
        _scores(lambda n, d, h, f: h * n * d),
        "Attention scores: a score belongs to two positions. The width has no part in how many there are.",
        "注意力分数：一个分数对应两个位置。它们有多少个，与宽度无关。",
    ),
    _mistake(
        "scores-times-width",
        _scores(lambda n, d, h, f: n * n * d),
        "Attention scores: what you count is the work for one score after another, not how many scores there are.",
        "注意力分数：你算的是得到这些分数的计算量，而不是分数的个数。",
    ),
    _mistake(
        "scores-of-half-the-pairs",
        _scores(lambda n, d, h, f: h * n * (n + 1) // 2),
        "Attention scores: you count every pair once. Without a causal mask a word looks at another, and the other "
        "at it: those are two scores.",
        "注意力分数：你把每对词只算了一次。没有因果掩码时，甲看乙、乙看甲是两个分数。",
    ),
    _mistake(
        "scores-without-the-diagonal",
        _scores(lambda n, d, h, f: h * n * (n - 1)),
        "Attention scores: you leave out the score of a word with itself.",
        "注意力分数：你漏掉了词与它自己的分数。",
    ),
    _mistake(
        "products-for-each-head",
        _multiply_adds(lambda n, d, h, f: 4 * n * d * d + 2 * n * n * d * h + 2 * n * d * f),
        "Multiply-adds: scores and mixing are multiplied by the number of heads. Each head works on its share of the "
        "width only.",
        "乘加次数：打分和混合乘上了头数。每个头只处理宽度中自己的那一份。",
    ),
    _mistake(
        "everything-for-each-head",
        _multiply_adds(lambda n, d, h, f: h * (4 * n * d * d + 2 * n * n * d) + 2 * n * d * f),
        "Multiply-adds: all of attention is multiplied by the number of heads. Each head works on its share of the "
        "width only.",
        "乘加次数：整个注意力都乘上了头数。每个头只处理宽度中自己的那一份。",
    ),
    _mistake(
        "products-without-scores",
        _multiply_adds(lambda n, d, h, f: 4 * n * d * d + 2 * n * d * f),
        "Multiply-adds: only the linear layers are counted. Comparing the words with each other, and mixing them, "
        "are matrix products too.",
        "乘加次数：只算了线性层。词与词的比较、以及混合，也是矩阵乘法。",
    ),
    _mistake(
        "scores-without-mixing",
        _multiply_adds(lambda n, d, h, f: 4 * n * d * d + n * n * d + 2 * n * d * f),
        "Multiply-adds: attention has two products in which all words meet all words. You count one.",
        "乘加次数：注意力里有两次“所有词对所有词”的乘法。你只算了一次。",
    ),
    _mistake(
        "length-not-squared",
        _multiply_adds(lambda n, d, h, f: 4 * n * d * d + 2 * n * d + 2 * n * d * f),
        "Multiply-adds: scores and mixing grow in step with the length in your count. Every word meets every word.",
        "乘加次数：在你的结果里，打分和混合与长度成正比。而每个词都要和每个词打交道。",
    ),
    _mistake(
        "products-of-head-width",
        _multiply_adds(lambda n, d, h, f: 4 * n * d * d + 2 * n * n * (d // h) + 2 * n * d * f),
        "Multiply-adds: scores and mixing are counted for one head. All heads together use the whole width.",
        "乘加次数：打分和混合只算了一个头。所有头合起来用的是整个宽度。",
    ),
    _mistake(
        "three-products-of-projections",
        _multiply_adds(lambda n, d, h, f: 3 * n * d * d + 2 * n * n * d + 2 * n * d * f),
        "Multiply-adds: a projection is missing. What happens after the heads are put side by side again?",
        "乘加次数：少了一个投影。各个头重新拼到一起之后，还要做什么？",
    ),
    _mistake(
        "one-feed-forward-product",
        _multiply_adds(lambda n, d, h, f: 4 * n * d * d + 2 * n * n * d + n * d * f),
        "Multiply-adds: the feed-forward network widens and narrows. You count one of the two.",
        "乘加次数：前馈网络先变宽再变窄。你只算了其中一步。",
    ),
    _mistake(
        "operations-twice",
        _multiply_adds(lambda n, d, h, f: 2 * (4 * n * d * d + 2 * n * n * d + 2 * n * d * f)),
        "Multiply-adds: you count multiplications and additions one by one. A multiplication with its addition is "
        "one here.",
        "乘加次数：你把乘法和加法分开数了。这里一次乘法连同它的加法算一次。",
    ),
    _mistake(
        "one-position-only",
        _multiply_adds(lambda n, d, h, f: 4 * d * d + 2 * n * n * d + 2 * d * f),
        "Multiply-adds: the linear layers are counted for one position. They work at every position.",
        "乘加次数：线性层只算了一个位置。它们在每个位置上都要计算。",
    ),
    _mistake(
        "floats",
        _returning(lambda right: {name: float(value) for name, value in right.items()}),
        "The numbers are right, but they are floats. Counts are whole: where does your code divide, or use a power "
        "with a fraction?",
        "数值是对的，但它们是浮点数。个数应当是整数：你的代码在哪里做了除法，或用了小数次幂？",
    ),
    _mistake(
        "other-keys",
        _returning(lambda right: dict(zip(("params", "scores", "macs"), right.values(), strict=True))),
        "The keys of your dict are abbreviated. Use the three names of the task.",
        "你的字典的键用了缩写。请使用题目中的三个名字。",
    ),
    _mistake(
        "tuple-returned",
        _returning(lambda right: tuple(right.values())),
        "Three numbers come back without names. The task asks for a dict.",
        "返回的是三个没有名字的数。题目要的是字典。",
    ),
    _mistake(
        "arguments-exchanged",
        _exchanged,
        "Your function takes the number of heads and `d_ff` in another order than the signature of the task.",
        "你的函数里，头数和 d_ff 的顺序与题目给出的签名不同。",
    ),
)
