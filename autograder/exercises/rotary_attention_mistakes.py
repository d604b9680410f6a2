"""Known mistakes of rotary-attention: each one is right but for what its class overrides."""

from __future__ import annotations

import torch
from torch import nn

from autograder.exercises.declaration import Mistake
from autograder.exercises.rotary_attention_parts import (
    BeforeSplitting,
    InputRotated,
    NoOutput,
    OtherNames,
    SinusoidalAdded,
    angles_of,
    backwards,
    but,
    causal_weights,
    half_angles,
    half_positions,
    linear_layers,
    turned,
    untouched,
    weights_by,
)
from autograder.exercises.rotary_rotation_parts import ADJACENT, HALVES
from autograder.reference import rotary
from autograder.results import Text


def _mistake(slug: str, module: type[nn.Module], en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"RotaryAttention": module})


ROTARY_ATTENTION = (
    _mistake(
        "values-rotated-too",
        but(turn_value=turned),
        "The values are rotated as well. Rotation is there to make scores depend on distance; what is mixed afterwards "
        "should not know where it stood.",
        "值（value）也被旋转了。旋转是为了让分数取决于距离；之后被加权求和的内容不应带上自己的位置。",
    ),
    _mistake(
        "only-queries-rotated",
        but(turn_key=untouched),
        "The queries are rotated, the keys are not, so a score depends on the query's position alone. The distance "
        "needs both.",
        "只旋转了查询，没有旋转键，于是分数只取决于查询的位置。要得到距离，两者缺一不可。",
    ),
    _mistake(
        "only-keys-rotated",
        but(turn_query=untouched),
        "The keys are rotated, the queries are not, so a score depends on the key's position alone. The distance needs "
        "both.",
        "只旋转了键，没有旋转查询，于是分数只取决于键的位置。要得到距离，两者缺一不可。",
    ),
    _mistake(
        "nothing-rotated",
        but(rotate=untouched),
        "Neither queries nor keys are rotated: this attention doesn't know any position.",
        "查询和键都没有旋转：这样的注意力不知道任何位置。",
    ),
    _mistake(
        "keys-turned-backwards",
        but(turn_key=backwards),
        "Queries and keys turn in opposite directions, so a score depends on the sum of two positions. The difference "
        "comes by itself when both turn alike.",
        "查询和键朝相反的方向旋转，于是分数取决于两个位置之和。两者同向旋转，差自然就出来了。",
    ),
    _mistake(
        "turned-backwards",
        but(rotate=backwards),
        "Queries and keys both turn the wrong way round: your scores are those of mirrored distances. Check the signs "
        "in `rotate_adjacent`.",
        "查询和键都往反方向转了：你的分数对应的是正负号相反的距离。请检查 `rotate_adjacent` 里的正负号。",
    ),
    _mistake(
        "positions-ignored",
        but(numbers=lambda self, x, positions: torch.arange(x.shape[1], device=x.device)),
        "Your result takes the tokens for neighbours, one after another, whatever `positions` says. Gaps and another "
        "order must show; follow the argument through your code.",
        "无论 `positions` 是什么，你都把 token 当成一个挨一个的。间隔和次序应当看得出来；请顺着这个参数检查代码。",
    ),
    _mistake(
        "positions-sorted",
        but(angles=angles_of(lambda positions: positions.sort(-1).values)),
        "The positions are brought into order before they are used. Each belongs to its token: take them as they come.",
        "位置在使用之前被排了序。每个位置属于自己的 token：请按给定的次序使用。",
    ),
    _mistake(
        "positions-of-the-first-sentence",
        but(angles=angles_of(lambda positions: positions if positions.dim() == 1 else positions[0])),
        "With positions of shape (batch, length), every sentence gets those of the first one.",
        "positions 的形状为 (batch, length) 时，你让每个句子都用了第一个句子的位置。",
    ),
    _mistake(
        "batch-lands-on-heads",
        but(angles=angles_of(place=lambda angles: angles)),
        "With positions of shape (batch, length), the angles have no axis for the heads, so their batch axis meets the "
        "heads. Write the shapes below each other, aligned on the right.",
        "positions 的形状为 (batch, length) 时，angles 没有给 heads 留出轴，于是它的 batch 轴对上了 heads。"
        "请把两个形状靠右对齐写出来看看。",
    ),
    _mistake(
        "heads-expected-behind-the-length",
        but(angles=angles_of(place=lambda angles: angles.unsqueeze(-2))),
        "The new axis of the angles stands behind the length, as if x were (batch, length, heads, head_dim). By the "
        "time you rotate, the heads stand in front of the length.",
        "你给 angles 加的新轴在 length 之后，仿佛 x 的形状是 (batch, length, heads, head_dim)。旋转的时候，heads 在 "
        "length 之前。",
    ),
    _mistake(
        "rotated-before-splitting",
        BeforeSplitting,
        "You rotate the whole width d_model and split it into heads afterwards, so each head gets other frequencies. "
        "Every head has all of them: split first.",
        "你先对整个宽度 d_model 旋转，再拆成多个 head，于是各个 head 的频率不同。每个 head 都应当有全部的频率：先拆分。"
        "",
    ),
    _mistake(
        "input-rotated",
        InputRotated,
        "x is rotated before the projections. A projection mixes the columns of a pair, and the values are turned too: "
        "rotate what comes out of the two projections that make scores.",
        "你在投影之前旋转了 x。投影会把一对的两列混到别处，值也跟着转了：应当旋转的，是用来打分的那两个投影的结果。",
    ),
    _mistake(
        "sinusoidal-added",
        SinusoidalAdded,
        "You add a sinusoidal encoding to x and rotate nothing. Rotary positions add nothing anywhere.",
        "你给 x 加上了正弦编码，什么都没有旋转。旋转位置编码在任何地方都不做加法。",
    ),
    _mistake(
        "halves-instead-of-neighbours",
        but(rotate=lambda self, x, angles: rotary.rotate_halves(x, angles)),
        "Your heads pair columns half a width apart. The task asks for the adjacent pairing: weights trained with one "
        "don't work with the other.",
        "你的 head 里，相隔半个宽度的两列成一对。题目要求的是 adjacent 配对：用一种配对训练的权重，换另一种就不能用。",
    ),
    _mistake(
        "rotate-half-with-interleaved-angles",
        but(
            rotate=lambda self, x, angles: (
                x * ADJACENT.spread(angles).cos().to(x.dtype)
                + HALVES.partner(x) * ADJACENT.spread(angles).sin().to(x.dtype)
            )
        ),
        "Two pairings are mixed: the angles are spread over neighbours, but each column meets a partner half a width "
        "away. At position 0 nothing shows.",
        "两种配对混在了一起：角度是按相邻的列展开的，可每一列的搭档却在半个宽度之外。在位置 0 看不出问题。",
    ),
    _mistake(
        "base-ignored",
        but(
            angles=lambda self, positions, x: rotary.rotary_angles(positions, self.d_model // self.n_heads).unsqueeze(
                -3
            )
        ),
        "Another `base` changes nothing: it is not passed on to the angles.",
        "换一个 `base`，结果不变：它没有传给计算角度的函数。",
    ),
    _mistake(
        "frequencies-of-d-model",
        but(
            angles=lambda self, positions, x: rotary.rotary_angles(positions, self.d_model, self.base)[
                ..., : self.d_model // self.n_heads // 2
            ].unsqueeze(-3)
        ),
        "The exponents of your frequencies are divided by d_model. A head is as wide as head_dim, and its last pair "
        "should be nearly as slow as the base allows.",
        "频率的指数除以了 d_model。一个 head 的宽度是 head_dim，它的最后一对应当慢到接近 base 所允许的程度。",
    ),
    _mistake(
        "mask-ignored",
        but(weights=weights_by(lambda scores, mask: scores.softmax(-1))),
        "The mask changes nothing: blocked keys still get weight.",
        "掩码没有起作用：被挡住的键仍有权重。",
    ),
    _mistake(
        "mask-inverted",
        but(weights=weights_by(lambda scores, mask: scores.masked_fill(mask, -torch.inf).softmax(-1).nan_to_num(0.0))),
        'The mask works the wrong way round: your queries attend exactly where they must not. True means "may attend".',
        "掩码用反了：查询恰好关注了不许关注的位置。True 表示“可以关注”。",
    ),
    _mistake(
        "mask-added",
        but(weights=weights_by(lambda scores, mask: (scores + mask).softmax(-1))),
        "The boolean mask is added to the scores as 0 and 1, so blocked keys keep a weight.",
        "布尔掩码被当作 0 和 1 加到了分数上，被挡住的键仍有权重。",
    ),
    _mistake(
        "mask-after-softmax",
        but(weights=weights_by(lambda scores, mask: scores.softmax(-1) * mask)),
        "Blocked weights are set to 0 after softmax, so what is left no longer sums to 1.",
        "掩码是在 softmax 之后把权重置零的，剩下的权重之和不再是 1。",
    ),
    _mistake(
        "always-causal",
        but(weights=causal_weights),
        "Nobody looks ahead in your answer, even without a mask. Who may attend to whom is for the argument `mask` to "
        "say.",
        "即使没有给掩码，你的结果里也没有谁能往后看。谁可以关注谁，应当由参数 `mask` 决定。",
    ),
    _mistake(
        "unscaled",
        but(scores=lambda self, query, key: query @ key.mT),
        "The scores are not scaled, so your weights are too peaked.",
        "分数没有缩放，权重过于集中。",
    ),
    _mistake(
        "scaled-by-d-model",
        but(scores=lambda self, query, key: query @ key.mT / self.d_model**0.5),
        "The scale is taken from d_model. Each head's dot product has head_dim terms.",
        "缩放用的是 d_model。每个 head 的点积有 head_dim 项。",
    ),
    _mistake(
        "scaled-by-the-whole-width",
        but(scores=lambda self, query, key: query @ key.mT / query.shape[-1]),
        "The scores are divided by the whole width of a head. Your weights are too even: look at how the width enters "
        "the formula.",
        "分数除以了 head 的整个宽度，权重过于平均：请看公式里宽度是以什么形式出现的。",
    ),
    _mistake(
        "softmax-over-queries",
        but(
            weights=lambda self, scores, mask: (
                (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-2).nan_to_num(0.0)
            )
        ),
        "softmax runs over the queries. Each query shares out its own attention among the keys.",
        "softmax 是沿着查询的轴做的。每个查询是把自己的注意力分配给各个键。",
    ),
    _mistake(
        "one-head",
        but(
            split=lambda self, x: x.unsqueeze(1),
            angles=lambda self, positions, x: rotary.rotary_angles(positions, self.d_model, self.base).unsqueeze(-3),
        ),
        "Your attention has one single head whatever `n_heads` says.",
        "无论 `n_heads` 是多少，你的注意力都只有一个头。",
    ),
    _mistake(
        "heads-cut-across-the-length",
        but(split=lambda self, x: x.reshape(len(x), self.n_heads, x.shape[1], -1)),
        "`reshape` alone cuts the length into pieces: a head gets parts of other tokens. Split the last axis, then "
        "move the new axis.",
        "只用 `reshape` 会把 length 切碎：一个 head 里混进了别的 token 的一部分。请先拆开最后一个轴，再移动新的轴。",
    ),
    _mistake(
        "heads-woven",
        but(
            split=lambda self, x: x.unflatten(-1, (-1, self.n_heads)).permute(0, 3, 1, 2),
            merge=lambda self, x: x.permute(0, 2, 3, 1).flatten(2),
        ),
        "A head takes every n-th column. Its columns stand together: the first head_dim belong to the first head.",
        "你的每个 head 是隔几列取一列的。一个 head 的列应当连在一起：最前面的 head_dim 列属于第一个 head。",
    ),
    _mistake(
        "heads-merged-without-moving",
        but(merge=lambda self, x: x.reshape(len(x), x.shape[2], -1)),
        "When the heads are joined again, the axes of heads and length are not moved back first, so tokens and heads "
        "get mixed up.",
        "合并各个 head 时，没有先把 heads 轴和 length 轴换回来，于是 token 和 head 混在了一起。",
    ),
    _mistake(
        "output-not-projected",
        but(finish=lambda self, mixed, x: mixed),
        "What the heads found is returned as it is. `output` is there, but never used.",
        "各个 head 的结果直接返回了。`output` 定义了，却没有用上。",
    ),
    _mistake(
        "output-missing",
        NoOutput,
        "There is no `output`: after the heads are joined, one more projection mixes what they found.",
        "缺少 `output`：合并各个 head 之后，还有一次投影，把它们的结果混合起来。",
    ),
    _mistake(
        "input-added",
        but(finish=lambda self, mixed, x: x + self.output(mixed)),
        "x is added to the result. The residual belongs to the block around this layer.",
        "结果里加上了 x。残差属于这一层外面的块。",
    ),
    _mistake(
        "other-names",
        OtherNames,
        "The four layers have other names in the state than the task gives them. Saved weights are found by name.",
        "四个层在 state 里的名字和题目规定的不同。保存的权重是按名字找的。",
    ),
    _mistake(
        "biases-missing",
        but(make=linear_layers(("query", "key", "value", "output"), bias=False)),
        "Your layers have no biases, so the state lacks half of its names. The task asks for plain `nn.Linear`.",
        "你的线性层没有偏置，state 里少了一半的名字。题目要求的是普通的 `nn.Linear`。",
    ),
    _mistake(
        "half-precision-angles",
        but(angles=half_angles),
        "In a half-precision model the angles are rounded to its dtype, which turns far positions by whole radians. "
        "Leave the angles as they come.",
        "模型是半精度时，角度也被舍入成了半精度，位置靠后时会差出好几弧度。角度算出来是什么精度，就保持什么精度。",
    ),
    _mistake(
        "half-precision-positions",
        but(angles=half_positions),
        "In a half-precision model the positions are rounded to its dtype: bfloat16 turns 257 into 256. Leave them "
        "whole numbers.",
        "模型是半精度时，位置也被转成了半精度：bfloat16 会把 257 变成 256。请让它保持整数。",
    ),
    _mistake(
        "always-float32",
        but(finish=lambda self, mixed, x: self.output(mixed).float()),
        "The result is float32 whatever x is. It should have the dtype of x.",
        "无论 x 是什么 dtype，结果都是 float32。它应当与 x 的 dtype 一致。",
    ),
    _mistake(
        "positions-made-on-the-cpu",
        but(numbers=lambda self, x, positions: torch.arange(x.shape[1]) if positions is None else positions),
        "Something is made on the CPU, and x may be elsewhere: the numbers 0, 1, 2 … when `positions` is not given, or "
        "the frequencies in `rotary_angles`. Make them where x is.",
        "有张量是在 CPU 上创建的，而 x 可能在别处：没有给 `positions` 时的 0、1、2……，或者 `rotary_angles` 里的频率。"
        "请在 x 所在的设备上创建。",
    ),
    _mistake(
        "no-gradient-through-rotation",
        but(rotate=lambda self, x, angles: rotary.rotate_adjacent(x.detach(), angles)),
        "No gradient arrives at `query` and `key`: the rotation cuts it off. Look there for `.detach()`, `.data`, "
        "`.numpy()` or `no_grad`.",
        "没有梯度传到 `query` 和 `key`：旋转那一步把它切断了。请在那里查找 `.detach()`、`.data`、`.numpy()` 或 "
        "`no_grad`。",
    ),
)
"""The known mistakes of rotary-attention."""
