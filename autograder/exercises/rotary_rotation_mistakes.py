"""Known mistakes of rotate-adjacent and rotate-halves: what is common to both, then what is about the pairing."""

from __future__ import annotations

import torch

from autograder.exercises.declaration import Answer, Mistake
from autograder.exercises.rotary_rotation_parts import (
    ADJACENT,
    HALVES,
    Pairing,
    by_partner,
    heads_behind,
    in_place,
    narrow,
    on_the_cpu,
    overwritten,
    rotation,
    turn_pair,
    two_axes,
    wide_of,
    wide_result,
)
from autograder.reference import rotary
from autograder.results import Text


def _common(pairing: Pairing) -> list[tuple[str, Answer, str, str]]:
    """Mistakes that have nothing to do with which columns form a pair."""
    right = pairing.right
    return [
        (
            "turned-backwards",
            rotation(pairing, lambda a, b, cos, sin: (a * cos + b * sin, b * cos - a * sin)),
            "Each pair turns the other way round: the minus sign stands in the wrong line. Try the pair (1, 0) with a "
            "small angle: where should it go?",
            "每一对都往反方向转了：负号写在了另一行。拿 (1, 0) 和一个小角度试一试：它应当转到哪里？",
        ),
        (
            "minus-sign-missing",
            rotation(pairing, lambda a, b, cos, sin: (a * cos + b * sin, a * sin + b * cos)),
            "There is no minus sign in your result, so a pair changes its length. A rotation keeps it: compare both "
            "lines with the formula.",
            "你的式子里没有负号，所以一对的长度会变。旋转不改变长度：请把两行都和公式对照。",
        ),
        (
            "sine-and-cosine-swapped",
            rotation(pairing, lambda a, b, cos, sin: (a * sin - b * cos, a * cos + b * sin)),
            "With angle 0 your result is not x: sine and cosine stand in each other's places.",
            "角度为 0 时，结果不等于 x：正弦和余弦站错了位置。",
        ),
        (
            "cross-terms-missing",
            rotation(pairing, lambda a, b, cos, sin: (a * cos, b * cos)),
            "Each column is only scaled by a cosine: the two columns of a pair never meet. A rotation mixes them.",
            "每一列只是乘了一个余弦，一对里的两列从未相遇。旋转会把两列混在一起。",
        ),
        (
            "first-by-cosine-second-by-sine",
            rotation(pairing, lambda a, b, cos, sin: (a * cos, b * sin)),
            "One column of a pair is scaled by the cosine, the other by the sine. Each new column needs both old ones.",
            "一对里的一列乘了余弦，另一列乘了正弦。每个新的列都需要两个旧的列。",
        ),
        (
            "second-column-untouched",
            rotation(pairing, lambda a, b, cos, sin: (a * cos - b * sin, b)),
            "The second column of each pair comes back as it was. Both columns turn.",
            "每一对的第二列原样返回了。两列都要转。",
        ),
        (
            "first-column-untouched",
            rotation(pairing, lambda a, b, cos, sin: (a, a * sin + b * cos)),
            "The first column of each pair comes back as it was. Both columns turn.",
            "每一对的第一列原样返回了。两列都要转。",
        ),
        (
            "first-overwritten-too-early",
            overwritten(pairing),
            "Your second line uses the first column after it has been turned. Both lines need the old values: look at "
            "what a name, or a slice, holds by then.",
            "第二行用到的第一列已经是转过之后的了。两行都要用旧的值：请看看那时这个变量（或切片）里是什么。",
        ),
        (
            "angles-added",
            lambda x, angles: x + pairing.spread(wide_of(angles)).to(x.dtype),
            "The angles are added to x. They are angles: each pair turns by one.",
            "你把角度加到了 x 上。它们是角度：每一对要按它转动。",
        ),
        (
            "degrees-instead-of-radians",
            rotation(pairing, turn_pair, angle=torch.deg2rad),
            "Your pairs turn far too little, all by the same factor: somewhere the angles are taken for degrees.",
            "每一对都转得太少，而且少的倍数相同：某处把角度当成了度数。",
        ),
        (
            "not-turned",
            lambda x, angles: x.clone(),
            "x comes back as it was. What should the angles do?",
            "x 原样返回了。角度应当起什么作用？",
        ),
        (
            "half-precision-inside",
            narrow(pairing, angles_too=False),
            "With a half-precision x, products and sums are rounded to half precision on the way. Only the final "
            "result should be: compute wider, then come back.",
            "x 是半精度时，中间的乘积与和也被舍入成了半精度。只有最后的结果才应当这样：先用更高的精度计算，再转回来。",
        ),
        (
            "half-precision-angles",
            narrow(pairing, angles_too=True),
            "With a half-precision x, the angles are rounded to half precision before anything is computed, which "
            "changes them by whole radians far out. Bring x to the precision of the angles, not the angles to that of "
            "x.",
            "x 是半精度时，角度在计算之前就被舍入成了半精度，位置靠后时会差出好几弧度。"
            "应当让 x 迁就角度的精度，而不是让角度迁就 x。",
        ),
        (
            "dtype-not-restored",
            wide_result(pairing),
            "With a half-precision x the result stays in float32. The result has the dtype of x.",
            "x 是半精度时，结果停留在 float32。结果的 dtype 应当与 x 一致。",
        ),
        (
            "always-float32",
            lambda x, angles: right(x, angles).float(),
            "The result is float32 whatever x is. The result has the dtype of x.",
            "无论 x 是什么 dtype，结果都是 float32。结果的 dtype 应当与 x 一致。",
        ),
        (
            "no-gradient",
            lambda x, angles: right(x.detach(), angles),
            "No gradient passes through your result, so queries and keys could not be trained. Look for `.detach()`, "
            "`.data`, `.numpy()`, `no_grad` or `torch.tensor(…)`.",
            "梯度传不过你的结果，查询和键也就无法训练。请查找 `.detach()`、`.data`、`.numpy()`、`no_grad` 或 "
            "`torch.tensor(…)`。",
        ),
        (
            "input-changed",
            in_place(pairing),
            "x is different after the call: an assignment to a slice, or an operation in place, writes into the tensor "
            "that was handed to you.",
            "调用之后 x 变了：给切片赋值或者原地操作，会直接写进传入的张量。",
        ),
        (
            "two-axes-unpacked",
            two_axes(pairing),
            "Your code takes the shape of the angles apart into exactly two sizes. They may have more axes, or an axis "
            "of size 1: let broadcasting match them.",
            "你的代码把 angles 的形状恰好拆成两个大小。它可以有更多的轴，也可以有大小为 1 的轴：请让广播去匹配。",
        ),
        (
            "length-expected-elsewhere",
            heads_behind(pairing),
            "An axis is put into the angles, so they meet x as if its length stood one axis earlier. Here the length "
            "is the last axis but one, and the angles fit as they are.",
            "你在 angles 里插入了一个轴，仿佛 x 的 length 在更靠前的轴上。这里 length 是倒数第二个轴，angles "
            "本来就对得上。",
        ),
        (
            "pairs-left-apart",
            rotation(pairing, turn_pair, join=lambda a, b: torch.stack([a, b], dim=-1)),
            "Your result has one axis too many: the two columns of a pair stand on an axis of their own. Bring them "
            "back to where they were in x.",
            "你的结果多了一个轴：一对的两列单独占了一个轴。请把它们放回 x 里原来的位置。",
        ),
        (
            "moved-to-the-cpu",
            on_the_cpu(pairing),
            "The result doesn't stay on the device of x. Look for `.cpu()`, `.numpy()` or a new tensor made without a "
            "device.",
            "结果没有留在 x 所在的设备上。请查找 `.cpu()`、`.numpy()`，或者新建张量时没有指定设备的地方。",
        ),
    ]


def _mistakes(pairing: Pairing, own: list[tuple[str, Answer, str, str]]) -> tuple[Mistake, ...]:
    return tuple(
        Mistake(slug, Text(en=en, zh=zh), {pairing.function: answer})
        for slug, answer, en, zh in [*own, *_common(pairing)]
    )


ROTATE_ADJACENT = _mistakes(
    ADJACENT,
    [
        (
            "halves-instead-of-neighbours",
            rotary.rotate_halves,
            "You pair column i with the column half a width further on. That is the other pairing; here the two "
            "columns of a pair are neighbours.",
            "你把第 i 列和相隔一半宽度的那一列配成了对。那是另一种配对；这里一对的两列是相邻的。",
        ),
        (
            "rotate-half-with-interleaved-angles",
            by_partner(HALVES.partner, ADJACENT.spread),
            "Two pairings are mixed: the angles are spread over neighbours, but each column meets a partner half a "
            "width away. At position 0 nothing shows. Write out, for column 0, which angle and which partner it gets.",
            "两种配对混在了一起：角度是按相邻的列展开的，可每一列的搭档却在半个宽度之外。在位置 0 看不出问题。"
            "请写出第 0 列用的是哪个角度、和哪一列搭档。",
        ),
        (
            "neighbours-with-angles-in-halves",
            by_partner(ADJACENT.partner, HALVES.spread),
            "The partners are neighbours, as they should be, but the angles are repeated one half behind the other: "
            "the two columns of a pair get different angles.",
            "搭档是相邻的两列，这没错；可角度是前一半、后一半各重复一遍的，于是一对里的两列用了不同的角度。",
        ),
        (
            "pairs-not-woven-back",
            rotation(ADJACENT, turn_pair, join=HALVES.join),
            "The pairs are turned rightly, but put back in another order: all first columns, then all second ones. Put "
            "each column back to where it was in x.",
            "每一对转得没错，但放回的次序变了：先是所有的第一列，再是所有的第二列。请把每一列放回它在 x 里原来的位置。",
        ),
        (
            "halves-woven-together",
            rotation(HALVES, turn_pair, join=ADJACENT.join),
            "You pair columns half a width apart, and put each pair down as neighbours. Take neighbours as well as put "
            "them down.",
            "你取的是相隔半个宽度的两列，放回时却成了相邻的两列。取的时候也应当取相邻的。",
        ),
    ],
)
"""The known mistakes of rotate-adjacent."""

ROTATE_HALVES = _mistakes(
    HALVES,
    [
        (
            "neighbours-instead-of-halves",
            rotary.rotate_adjacent,
            "You pair neighbouring columns. That is the other pairing; here column i belongs to the column half a "
            "width further on.",
            "你把相邻的列配成了对。那是另一种配对；这里第 i 列的搭档在半个宽度之后。",
        ),
        (
            "rotate-half-with-interleaved-angles",
            by_partner(HALVES.partner, ADJACENT.spread),
            "The partners are half a width apart, as they should be, but the angles are spread over neighbours: the "
            "two columns of a pair get different angles. At position 0 nothing shows. `repeat_interleave` and `repeat` "
            "are not the same.",
            "搭档相隔半个宽度，这没错；可角度是按相邻的列展开的，于是一对里的两列用了不同的角度。在位置 0 看不出问题。"
            "`repeat_interleave` 和 `repeat` 不是一回事。",
        ),
        (
            "neighbours-with-angles-in-halves",
            by_partner(ADJACENT.partner, HALVES.spread),
            "Two pairings are mixed: the angles are repeated in halves, but each column meets its neighbour. Write "
            "out, for column 1, which angle and which partner it gets.",
            "两种配对混在了一起：角度是按前后两半重复的，可每一列的搭档却是相邻的列。请写出第 1 列用的是哪个角度、"
            "和哪一列搭档。",
        ),
        (
            "halves-woven-together",
            rotation(HALVES, turn_pair, join=ADJACENT.join),
            "The pairs are turned rightly, but put back as neighbours. Put each column back to where it was in x.",
            "每一对转得没错，放回时却成了相邻的两列。请把每一列放回它在 x 里原来的位置。",
        ),
        (
            "neighbours-put-into-halves",
            rotation(ADJACENT, turn_pair, join=HALVES.join),
            "You take neighbours as pairs and put them down half a width apart. Take the columns from where you put "
            "them down.",
            "你取的是相邻的两列，放回时却相隔半个宽度。从哪里取，就应当放回哪里。",
        ),
        (
            "halves-swapped",
            rotation(HALVES, turn_pair, join=lambda a, b: torch.cat([b, a], dim=-1)),
            "The two halves come back in each other's place.",
            "前后两半放回时互换了位置。",
        ),
        (
            "middle-mirrored",
            rotation(
                Pairing(
                    "rotate_halves",
                    lambda x: (x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :].flip(-1)),
                    lambda a, b: torch.cat([a, b.flip(-1)], dim=-1),
                    HALVES.spread,
                    rotary.rotate_halves,
                ),
                turn_pair,
            ),
            "You pair the first column with the last one and go on towards the middle. Both halves count in the same "
            "direction.",
            "你把第一列和最后一列配成对，再依次向中间靠。前后两半应当朝同一个方向数。",
        ),
    ],
)
"""The known mistakes of rotate-halves."""
