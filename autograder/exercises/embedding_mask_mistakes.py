"""Lesson 03: wrong padding masks that people really write, and what to tell them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.exercises.declaration import Mistake
from autograder.results import Text


def _mask(slug: str, answer: Callable[[Tensor, int], Tensor], en: str, zh: str) -> Mistake:
    return Mistake(slug=slug, message=Text(en=en, zh=zh), answers={"padding_mask": answer})


def _real(tokens: Tensor, padding_id: int) -> Tensor:
    return tokens != padding_id


def _overwriting(tokens: Tensor, padding_id: int) -> Tensor:
    mask = _real(tokens, padding_id)[:, None, None]
    tokens[tokens == padding_id] = 0
    tokens += 1
    return mask


def _on_the_cpu(tokens: Tensor, padding_id: int) -> Tensor:
    # A "meta" tensor has no values to bring to the CPU; the mask only has to be there.
    here = torch.zeros(tokens.shape, dtype=tokens.dtype) if tokens.is_meta else tokens.cpu()
    return _real(here, padding_id)[:, None, None]


PADDING_MASK = (
    _mask(
        "mask-inverted",
        lambda tokens, padding_id: (tokens == padding_id)[:, None, None],
        "The mask is the wrong way round: it marks the padding. In this course True means: may be attended to.",
        "掩码反了：它标出的是填充。在本课程里，True 表示“可以被关注”。",
    ),
    _mask(
        "mask-of-floats",
        lambda tokens, padding_id: _real(tokens, padding_id)[:, None, None].float(),
        "The mask is right but for its dtype: ones and zeros would be added to the scores and hide nothing. It is to "
        "be boolean.",
        "掩码只有 dtype 不对：1 和 0 会被加到分数上，什么也遮不住。它应当是布尔型。",
    ),
    _mask(
        "mask-of-integers",
        lambda tokens, padding_id: _real(tokens, padding_id)[:, None, None].long(),
        "The mask is right but for its dtype: it holds whole numbers, and ~ turns 1 into -2. It is to be boolean.",
        "掩码只有 dtype 不对：它装的是整数，而 ~ 会把 1 变成 -2。它应当是布尔型。",
    ),
    _mask(
        "mask-to-be-added",
        lambda tokens, padding_id: torch.zeros(tokens.shape, device=tokens.device).masked_fill(
            tokens == padding_id, -torch.inf
        )[:, None, None],
        "This is a mask to be added to scores: 0 and minus infinity. The task asks for one that says true or false.",
        "这是要加到分数上的掩码：0 和负无穷。题目要的是用真和假来表示的掩码。",
    ),
    _mask(
        "mask-without-axes",
        _real,
        "The mask has the shape of the tokens. Attention has two more axes between batch and keys: without them the "
        "mask fits by accident or not at all.",
        "掩码的形状与 tokens 相同。注意力在 batch 和键之间还有两个轴：少了它们，掩码要么碰巧对得上，要么根本对不上。",
    ),
    _mask(
        "mask-with-one-axis",
        lambda tokens, padding_id: _real(tokens, padding_id)[:, None],
        "One axis is missing between batch and keys. Count the axes of the scores: whose are they?",
        "batch 和键之间少了一个轴。请数一数分数有几个轴：各代表什么？",
    ),
    _mask(
        "mask-of-queries",
        lambda tokens, padding_id: _real(tokens, padding_id)[:, None, :, None],
        "The length stands on the axis of the queries. It is the keys that must not be looked at; what a padding token "
        "itself asks for does no harm.",
        "长度放在了查询的轴上。不该被看到的是键；填充 token 自己去查询什么，并没有坏处。",
    ),
    _mask(
        "mask-axes-last",
        lambda tokens, padding_id: _real(tokens, padding_id)[..., None, None],
        "The two new axes stand at the end. The last axis of the scores belongs to the keys.",
        "两个新轴加在了末尾。分数的最后一个轴属于键。",
    ),
    _mask(
        "mask-expanded",
        lambda tokens, padding_id: _real(tokens, padding_id)[:, None, None].expand(-1, 1, tokens.shape[1], -1),
        "The mask is repeated for every query. Broadcasting does that by itself, and with a cache of earlier keys "
        "there are fewer queries than keys.",
        "你为每个查询都重复了一遍掩码。广播会自动完成这件事；而且在使用缓存解码时，查询比键少。",
    ),
    _mask(
        "mask-batch-swapped",
        lambda tokens, padding_id: _real(tokens, padding_id).T[:, None, None],
        "Batch and length have changed places. Everything here is batch first.",
        "batch 轴和长度轴对调了。这里一律 batch 在前。",
    ),
    _mask(
        "padding-always-zero",
        lambda tokens, padding_id: (tokens != 0)[:, None, None],
        "The mask takes 0 for the padding, whatever the argument says. Some vocabularies have another padding token.",
        "你总把 0 当作填充，没有用到参数。有些词表的填充 token 是别的编号。",
    ),
    _mask(
        "padding-as-a-limit",
        lambda tokens, padding_id: (tokens > padding_id)[:, None, None],
        "Tokens with an id below the padding's are lost. Padding is one id, not a limit between ids.",
        "编号小于填充 id 的 token 都被丢掉了。填充是某一个编号，而不是编号之间的界线。",
    ),
    _mask(
        "all-after-the-first-padding",
        lambda tokens, padding_id: _real(tokens, padding_id).long().cumprod(dim=1).bool()[:, None, None],
        "Everything from the first padding on is hidden. Padding can stand at the front too, and then real tokens "
        "follow: judge each token by itself.",
        "从第一个填充开始，后面的全被遮住了。填充也可能在前面，之后还有真正的 token：请逐个判断。",
    ),
    _mask(
        "tokens-changed",
        _overwriting,
        "The mask is right, but the tokens that were handed in are changed. Work on a copy.",
        "掩码是对的，但传入的 tokens 被改动了。请在副本上操作。",
    ),
    _mask(
        "mask-made-on-the-cpu",
        _on_the_cpu,
        "The mask doesn't stay on the device of the tokens. Look for `.cpu()`, or for a new tensor made without a "
        "device.",
        "掩码没有留在 tokens 所在的设备上。请查找 `.cpu()`，或者新建张量时没有指定设备的地方。",
    ),
)
