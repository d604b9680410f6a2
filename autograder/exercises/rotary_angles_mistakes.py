"""Known mistakes of rotary-angles."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.exercises.declaration import Answer, Mistake
from autograder.exercises.sinusoidal_frequency_mistakes import FREQUENCY_MISTAKES
from autograder.reference import rotary
from autograder.reference.sinusoidal import pair_frequencies
from autograder.results import Text


def _check(head_dim: int) -> None:
    if head_dim % 2:
        raise ValueError(f"head_dim={head_dim} is odd")


def _from(frequencies: Callable[[int, float], Tensor]) -> Answer:
    """Angles from these frequencies, everything else right."""

    def rotary_angles(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
        _check(head_dim)
        return (positions[..., None] * frequencies(head_dim, base).to(positions.device)).float()

    return rotary_angles


def _after(change: Callable[[Tensor], Tensor]) -> Answer:
    """Right angles, changed afterwards."""

    def rotary_angles(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
        return change(rotary.rotary_angles(positions, head_dim, base))

    return rotary_angles


def _at(change: Callable[[Tensor], Tensor]) -> Answer:
    """Right angles of other positions."""

    def rotary_angles(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
        return rotary.rotary_angles(change(positions), head_dim, base)

    return rotary_angles


def _in(dtype: torch.dtype) -> Answer:
    """Positions, frequencies and their product in half precision."""

    def rotary_angles(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
        _check(head_dim)
        frequency = pair_frequencies(head_dim, base).to(positions.device, dtype)
        return (positions[..., None].to(dtype) * frequency).float()

    return rotary_angles


def _double(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
    _check(head_dim)
    return positions[..., None] * pair_frequencies(head_dim, base).to(positions.device)


def _unchecked(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
    frequency = base ** (-2.0 * torch.arange(head_dim // 2, dtype=torch.float64) / head_dim)
    return (positions[..., None] * frequency.to(positions.device)).float()


def _frequencies_on_the_cpu(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
    _check(head_dim)
    return positions[..., None] * pair_frequencies(head_dim, base).float()


def _outer(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
    return rotary.rotary_angles(positions.flatten(), head_dim, base)


def _from_a_table(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
    table = rotary.rotary_angles(torch.arange(4096, device=positions.device), head_dim, base)
    if not positions.is_meta and int(positions.max()) >= len(table):
        raise IndexError(f"index {int(positions.max())} is out of bounds for dimension 0 with size {len(table)}")
    return table[positions]


def _whole_numbers(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
    _check(head_dim)
    frequency = pair_frequencies(head_dim, base).to(positions.device)
    return (positions[..., None] * frequency.to(positions.dtype)).float()


def _mistake(slug: str, answer: Answer, en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"rotary_angles": answer})


ROTARY_ANGLES = (
    *(
        _mistake(
            mistake.slug,
            _from(mistake.frequencies),
            f"The frequencies behind your angles are wrong. {mistake.text.en}",
            f"角度所用的频率不对。{mistake.text.zh}",
        )
        for mistake in FREQUENCY_MISTAKES
    ),
    _mistake(
        "positions-ignored",
        _at(lambda positions: torch.arange(positions.shape[-1], device=positions.device).expand_as(positions)),
        "Only the number of positions counts in your answer, not the positions themselves: you count 0, 1, 2 … anew. "
        "They may have gaps, or start anywhere.",
        "你只用了位置的个数，没有用位置本身：你又从 0、1、2 重新数起。位置之间可以有间隔，也可以从任何地方开始。",
    ),
    _mistake(
        "positions-from-one",
        _at(lambda positions: positions + 1),
        "Position 0 is turned already. Positions count from 0, and the argument gives them as they are.",
        "位置 0 就已经转动了。位置从 0 数起，参数给的就是位置本身。",
    ),
    _mistake(
        "counted-from-the-first",
        _at(lambda positions: positions - positions[..., :1]),
        "You subtract the first position, so every sequence starts at angle 0. Decoding goes on at later positions: "
        "take them as they are given.",
        "你减去了第一个位置，于是每个序列都从角度 0 开始。解码时会从后面的位置继续：请直接使用给定的位置。",
    ),
    _mistake(
        "bfloat16-angles",
        _in(torch.bfloat16),
        "The angles are computed in bfloat16. It has 8 bits for the number, so 257 turns into 256. Positions, "
        "frequencies and their product all need more.",
        "角度是用 bfloat16 算的。它只有 8 位有效数字，257 会变成 256。位置、频率和它们的积都需要更高的精度。",
    ),
    _mistake(
        "float16-angles",
        _in(torch.float16),
        "The angles are computed in float16. It has 11 bits for the number, so 2049 turns into 2048. Positions, "
        "frequencies and their product all need more.",
        "角度是用 float16 算的。它只有 11 位有效数字，2049 会变成 2048。位置、频率和它们的积都需要更高的精度。",
    ),
    _mistake(
        "rounded-frequencies",
        _whole_numbers,
        "Your frequencies are turned into whole numbers, so every pair but the fastest stands still. Look at the dtype "
        "when positions and frequencies meet.",
        "频率被变成了整数，于是除了最快的一对，其余的都不动。请看看位置和频率相乘时的 dtype。",
    ),
    _mistake(
        "float64-result",
        _double,
        "The result is float64. Compute in whatever you like; what you return should be as the task says.",
        "结果是 float64。中间用什么精度都可以，返回的结果要符合题目的要求。",
    ),
    _mistake(
        "degrees-instead-of-radians",
        _after(torch.rad2deg),
        "Your angles are in degrees. `torch.sin` and `torch.cos` take radians.",
        "你的角度以度为单位。`torch.sin` 和 `torch.cos` 用的是弧度。",
    ),
    _mistake(
        "degrees-taken-for-radians",
        _after(torch.deg2rad),
        "All your angles are too small by the same factor: somewhere they are converted from degrees, but position "
        "times frequency is in radians already.",
        "你的角度都小了同一个倍数：某处把它当成度数换算了，可位置乘频率本来就是弧度。",
    ),
    _mistake(
        "angle-taken-modulo",
        _after(lambda angles: angles % (2 * torch.pi)),
        "Full turns are taken away. Sine and cosine would not mind, but the task asks for position times frequency as "
        "it is.",
        "你把整圈去掉了。正弦和余弦不受影响，但题目要的就是位置乘频率本身。",
    ),
    _mistake(
        "each-angle-twice",
        _after(lambda angles: angles.repeat_interleave(2, dim=-1)),
        "Each angle stands there twice, once for each column of its pair. The result has one entry for each pair.",
        "每个角度都出现了两次，一对的两列各一次。结果里每一对只应有一个数。",
    ),
    _mistake(
        "angles-repeated-in-halves",
        _after(lambda angles: torch.cat([angles, angles], dim=-1)),
        "All angles stand there twice, one half behind the other. The result has one entry for each pair; which "
        "columns form a pair is decided later.",
        "所有的角度都出现了两遍，前一半和后一半各一遍。结果里每一对只应有一个数；哪两列成对，之后才决定。",
    ),
    _mistake(
        "sines-and-cosines-returned",
        lambda positions, head_dim, base=10000.0: (
            (angles := rotary.rotary_angles(positions, head_dim, base)).cos(),
            angles.sin(),
        ),
        "You return cosines and sines. The angles themselves are asked for; the next functions take them.",
        "你返回的是余弦和正弦。题目要的是角度本身，后面的函数会用到它。",
    ),
    _mistake(
        "axes-swapped",
        _after(lambda angles: angles.transpose(-1, -2)),
        "Your axes are the wrong way round: each row should be a position, each column a pair.",
        "两个轴反了：每一行应当是一个位置，每一列是一对。",
    ),
    _mistake(
        "leading-axes-lost",
        _outer,
        "Positions with a batch axis come back without it. `torch.outer` and `flatten` do that; let broadcasting put "
        "the pairs behind whatever axes there are.",
        "带 batch 轴的位置，结果里没有了这个轴。`torch.outer` 和 `flatten` 会这样；不管前面有几个轴，"
        "都可以靠广播把“对”放在最后。",
    ),
    _mistake(
        "first-row-for-all",
        _after(lambda angles: angles[:1].expand_as(angles) if angles.dim() > 2 else angles),
        "Each sequence of a batch may have its own positions; all of yours get those of the first.",
        "batch 里每个序列可以有自己的位置；你让所有序列都用了第一个序列的位置。",
    ),
    _mistake(
        "table-too-short",
        _from_a_table,
        "Your angles come from a table with an end, and later positions are not in it. Nothing has to be stored here: "
        "the formula holds at every position.",
        "你的角度取自一张有尽头的表，更后面的位置查不到。这里什么都不用存：公式在每个位置都成立。",
    ),
    _mistake(
        "width-not-checked",
        _unchecked,
        "An odd head_dim goes through, or is stopped by another error than ValueError. Its last column has no partner: "
        "refuse it, and say which argument is wrong and what it is.",
        "奇数的 head_dim 没有被拒绝，或者抛出的不是 ValueError。最后一列没有搭档：请拒绝它，"
        "并说明哪个参数不对、值是多少。",
    ),
    _mistake(
        "frequencies-made-on-the-cpu",
        _frequencies_on_the_cpu,
        "The frequencies are made on the CPU, and `positions` may be elsewhere. Make them where `positions` is.",
        "频率是在 CPU 上创建的，而 `positions` 可能在别处。请在 `positions` 所在的设备上创建。",
    ),
    _mistake(
        "made-on-the-cpu",
        lambda positions, head_dim, base=10000.0: (
            torch.zeros(*positions.shape, head_dim // 2)
            if positions.is_meta
            else rotary.rotary_angles(positions.cpu(), head_dim, base)
        ),
        "The result doesn't stay on the device of `positions`. Look for `.cpu()`, `.numpy()` or a new tensor made "
        "without a device.",
        "结果没有留在 `positions` 所在的设备上。请查找 `.cpu()`、`.numpy()`，或者新建张量时没有指定设备的地方。",
    ),
)
"""The known mistakes of rotary-angles."""
