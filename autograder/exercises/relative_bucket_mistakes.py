"""Known mistakes of t5-bucket, in parts that t5-bias uses too: it inherits them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from autograder.exercises.declaration import Answer, Mistake
from autograder.reference import relative
from autograder.results import Text

Place = Callable[[Tensor, int, int], Tensor]
"""`(steps, buckets of one direction, max_distance)` -> bucket inside the direction."""


def _ratio(steps: Tensor, n_exact: int, max_distance: int) -> Tensor:
    """0 at n_exact, 1 at max_distance."""
    return torch.log(steps.clamp(min=1).float() / n_exact) / math.log(max_distance / n_exact)


def _placed(
    steps: Tensor,
    n: int,
    max_distance: int,
    *,
    whole: Callable[[Tensor], Tensor] = torch.floor,
    last: Callable[[int], int | None] = lambda n: n - 1,
    exact: Callable[[int], int] = lambda n: n // 2,
    shared: Callable[[int], int] | None = None,
    start: bool = True,
) -> Tensor:
    """The right place, but for what is replaced."""
    n_exact = exact(n)
    count = shared(n) if shared else n - n_exact
    far = n_exact * start + whole(_ratio(steps, n_exact, max_distance) * count).long()
    end = last(n)
    far = far if end is None else far.clamp(max=end)
    return torch.where(steps < n_exact, steps, far)


def _linear(steps: Tensor, n: int, max_distance: int) -> Tensor:
    return steps.clamp(max=n - 1)


def _without_exact_in_the_ratio(steps: Tensor, n: int, max_distance: int) -> Tensor:
    n_exact = n // 2
    ratio = torch.log(steps.clamp(min=1).float()) / math.log(max_distance)
    return torch.where(steps < n_exact, steps, (n_exact + (ratio * (n - n_exact)).long()).clamp(max=n - 1))


def _log_of_the_wrong_end(steps: Tensor, n: int, max_distance: int) -> Tensor:
    n_exact = n // 2
    ratio = torch.log(steps.clamp(min=1).float() / n_exact) / math.log(max_distance)
    return torch.where(steps < n_exact, steps, (n_exact + (ratio * (n - n_exact)).long()).clamp(max=n - 1))


def _two_logarithms(steps: Tensor, n: int, max_distance: int) -> Tensor:
    n_exact = n // 2
    ratio = torch.log2(steps.clamp(min=1).float() / n_exact) / math.log(max_distance / n_exact)
    return torch.where(steps < n_exact, steps, (n_exact + (ratio * (n - n_exact)).long()).clamp(max=n - 1))


def _evenly(steps: Tensor, n: int, max_distance: int) -> Tensor:
    n_exact = n // 2
    ratio = (steps - n_exact) / (max_distance - n_exact)
    return torch.where(steps < n_exact, steps, (n_exact + (ratio * (n - n_exact)).floor().long()).clamp(max=n - 1))


def _bucket(
    place: Place = _placed,
    *,
    later: Callable[[Tensor], Tensor] = lambda distance: distance > 0,
    one_way: Callable[[Tensor], Tensor] = lambda distance: (-distance).clamp(min=0),
    both: bool | None = None,
    n: int | None = None,
    largest: int | None = None,
) -> Answer:
    """A bucket rule that is right but for what is replaced."""

    def t5_bucket(distance: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128) -> Tensor:
        n_buckets, max_distance = n or n_buckets, largest or max_distance
        if bidirectional if both is None else both:
            n_buckets //= 2
            return later(distance).long() * n_buckets + place(distance.abs(), n_buckets, max_distance)
        return place(one_way(distance), n_buckets, max_distance)

    return t5_bucket


def _not_halved(distance: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128) -> Tensor:
    """All buckets for each direction, the second direction half way up."""
    if not bidirectional:
        return relative.t5_bucket(distance, False, n_buckets, max_distance)
    return (distance > 0).long() * (n_buckets // 2) + _placed(distance.abs(), n_buckets, max_distance)


def _offset_of_all(
    distance: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128
) -> Tensor:
    """The upper half begins at the number of all buckets: added before halving."""
    bucket = relative.t5_bucket(distance, bidirectional, n_buckets, max_distance)
    return bucket + (distance > 0) * (n_buckets - n_buckets // 2) if bidirectional else bucket


def _sign_kept(distance: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128) -> Tensor:
    """Without the absolute value: whatever lies before the query is smaller than every bound."""
    if not bidirectional:
        return relative.t5_bucket(distance, False, n_buckets, max_distance)
    bucket = relative.t5_bucket(distance, True, n_buckets, max_distance)
    return torch.where(distance < 0, distance, bucket)


def _past_kept_negative(
    distance: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128
) -> Tensor:
    if bidirectional:
        return relative.t5_bucket(distance, True, n_buckets, max_distance)
    return distance.clamp(max=0)


def _direction_lost(
    distance: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128
) -> Tensor:
    return relative.t5_bucket(-distance.abs() if bidirectional else distance, bidirectional, n_buckets, max_distance)


def _after(change: Callable[[Tensor], Tensor]) -> Answer:
    def t5_bucket(distance: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128) -> Tensor:
        return change(relative.t5_bucket(distance, bidirectional, n_buckets, max_distance))

    return t5_bucket


def _in_place(distance: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128) -> Tensor:
    bucket = relative.t5_bucket(distance, bidirectional, n_buckets, max_distance)
    distance.abs_()
    return bucket


def _on_the_cpu(distance: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128) -> Tensor:
    # A "meta" tensor has no values to bring to the CPU; the result only has to be there.
    if distance.is_meta:
        return torch.zeros(distance.shape, dtype=torch.int64)
    return relative.t5_bucket(distance.cpu(), bidirectional, n_buckets, max_distance)


@dataclass(frozen=True)
class BucketMistake:
    """A wrong bucket rule, and what is wrong with it."""

    slug: str
    bucket: Answer
    text: Text


def _wrong(slug: str, bucket: Answer, en: str, zh: str) -> BucketMistake:
    return BucketMistake(slug, bucket, Text(en=en, zh=zh))


RULE_MISTAKES = (
    _wrong(
        "direction-swapped",
        _bucket(later=lambda distance: distance < 0),
        "Keys before the query get the upper half of the buckets, keys after it the lower. It is the other way round: "
        "look at the sign of key minus query.",
        "查询之前的键用了后一半的桶，之后的键用了前一半。应当反过来：请看键减查询的正负号。",
    ),
    _wrong(
        "direction-lost",
        _direction_lost,
        "Both directions share the same buckets. Look at when you take the absolute value, and when you ask for the "
        "sign.",
        "两个方向用了同样的桶。请检查：先取绝对值，还是先判断正负号？",
    ),
    _wrong(
        "distance-zero-in-the-upper-half",
        _bucket(later=lambda distance: distance >= 0),
        "Distance 0 falls into the upper half. Only keys after the query belong there.",
        "距离 0 落进了后一半。只有查询之后的键才属于那里。",
    ),
    _wrong(
        "buckets-not-halved",
        _not_halved,
        "With both directions, each of them still counts as if it had all buckets for itself. They share them.",
        "双向时，每个方向仍像独占所有的桶那样计算。两个方向是平分的。",
    ),
    _wrong(
        "last-bucket-not-kept",
        _bucket(lambda steps, n, m: _placed(steps, n, m, last=lambda n: None)),
        "Beyond the largest distance the bucket numbers go on growing. All distances from there on share the last "
        "bucket of their direction.",
        "超过最大距离之后，桶号还在增大。从那里起，同一方向的所有距离共用最后一个桶。",
    ),
    _wrong(
        "last-bucket-one-too-high",
        _bucket(lambda steps, n, m: _placed(steps, n, m, last=lambda n: n)),
        "The far end gets a bucket number one too high. If there are n buckets and the first is 0, what is the last?",
        "最远处的桶号大了 1。一共 n 个桶、从 0 数起，最后一个是几？",
    ),
    _wrong(
        "no-logarithm",
        _bucket(_linear),
        "Every distance has a bucket of its own until they run out. From the middle on, distances should share "
        "buckets that grow wider.",
        "你让每个距离各占一个桶，直到用完为止。从中间开始，距离应当共用越来越宽的桶。",
    ),
    _wrong(
        "shared-buckets-evenly-wide",
        _bucket(_evenly),
        "The shared buckets are all equally wide. They should grow: the logarithm of the distance goes up evenly, not "
        "the distance.",
        "共用的桶宽度都一样。它们应当越来越宽：均匀增加的是距离的对数，而不是距离本身。",
    ),
    _wrong(
        "rounded-to-the-nearest",
        _bucket(lambda steps, n, m: _placed(steps, n, m, whole=torch.round)),
        "The logarithmic part is rounded to the nearest whole number. It should be cut off, downwards.",
        "对数部分被四舍五入了。应当向下取整。",
    ),
    _wrong(
        "rounded-up",
        _bucket(lambda steps, n, m: _placed(steps, n, m, whole=torch.ceil)),
        "The logarithmic part is rounded up. It should be cut off, downwards.",
        "对数部分被向上取整了。应当向下取整。",
    ),
    _wrong(
        "shared-buckets-start-at-zero",
        _bucket(lambda steps, n, m: _placed(steps, n, m, start=False)),
        "The shared buckets start at 0 again, where the small distances already are. They go on after those.",
        "共用的桶又从 0 数起，和小距离的桶撞在了一起。它们应当接在小距离的桶后面。",
    ),
    _wrong(
        "logarithm-of-the-bare-distance",
        _bucket(_without_exact_in_the_ratio),
        "Your logarithm does not start at 0 where sharing starts, so there is a jump. What should the distance, and "
        "the largest distance, be divided by first?",
        "在开始共用的地方，你的对数不是从 0 起步的，于是出现了跳跃。距离和最大距离应当先除以什么？",
    ),
    _wrong(
        "logarithm-divided-by-another-range",
        _bucket(_log_of_the_wrong_end),
        "Your logarithm starts rightly but arrives too early or too late: at the largest distance it should have used "
        "up all shared buckets. Divide by the logarithm of what?",
        "你的对数起点对了，终点不对：到最大距离时应当正好用完共用的桶。应当除以什么的对数？",
    ),
    _wrong(
        "logarithms-of-two-kinds",
        _bucket(_two_logarithms),
        "Your two logarithms have different bases. Any base will do, if it is the same in both.",
        "你用的两个对数底数不同。用什么底数都行，只要两处一致。",
    ),
    _wrong(
        "upper-half-too-high",
        _offset_of_all,
        "For keys after the query you add the number of all buckets, so they land past the end. Half of them come "
        "before.",
        "对查询之后的键，你加上的是全部桶数，于是超出了末尾。排在前面的只有一半。",
    ),
    _wrong(
        "all-buckets-shared",
        _bucket(lambda steps, n, m: _placed(steps, n, m, shared=lambda n: n)),
        "The logarithm is spread over all buckets of a direction. The small distances have used some of them already.",
        "你把对数摊到了一个方向的所有桶上。其中一部分已经给小距离用掉了。",
    ),
    _wrong(
        "odd-number-of-buckets",
        _bucket(lambda steps, n, m: _placed(steps, n, m, shared=lambda n: n // 2)),
        "With an odd number of buckets in a direction, the last one stays empty: after the small distances one more is "
        "left than half.",
        "一个方向的桶数为奇数时，最后一个桶空着：小距离用掉一半（取整）之后，剩下的比一半多一个。",
    ),
    _wrong(
        "small-distances-too-few",
        _bucket(lambda steps, n, m: _placed(steps, n, m, exact=lambda n: max(n // 4, 1))),
        "Too few distances have a bucket of their own. It is half of the buckets of a direction; perhaps you halved "
        "once too often.",
        "独占一个桶的距离太少了。应当是一个方向的桶数的一半；也许你多除了一次 2。",
    ),
    _wrong(
        "future-not-joined",
        _bucket(one_way=torch.abs),
        "With one direction only, keys after the query get buckets as if they came before it. They all belong to the "
        "bucket of distance 0.",
        "单向时，查询之后的键被当成了之前的键来分桶。它们应当全都归入距离 0 的桶。",
    ),
    _wrong(
        "past-joined",
        _bucket(one_way=lambda distance: distance.clamp(min=0)),
        "With one direction only, all of the past falls into bucket 0, and the future is told apart. Look at the sign.",
        "单向时，整个过去都落进了 0 号桶，未来反而被区分开了。请检查正负号。",
    ),
    _wrong(
        "always-both-directions",
        _bucket(both=True),
        "`bidirectional=False` changes nothing: half of the buckets stay with the future, which a decoder never sees.",
        "`bidirectional=False` 没有起作用：一半的桶仍然留给了未来，而解码器从不看未来。",
    ),
    _wrong(
        "always-one-direction",
        _bucket(both=False),
        "Your rule never has two directions: keys after the query all share a bucket, even with `bidirectional=True`.",
        "你的规则始终是单向的：即使 `bidirectional=True`，查询之后的键也都挤在一个桶里。",
    ),
    _wrong(
        "number-of-buckets-fixed",
        _bucket(n=32),
        "`n_buckets` changes nothing in your answer: a number is written in the code instead.",
        "`n_buckets` 没有起作用：代码里写死了一个数。",
    ),
    _wrong(
        "largest-distance-fixed",
        _bucket(largest=128),
        "`max_distance` changes nothing in your answer: a number is written in the code instead.",
        "`max_distance` 没有起作用：代码里写死了一个数。",
    ),
    _wrong(
        "buckets-from-one",
        _after(lambda bucket: bucket + 1),
        "Your buckets count from 1. They are rows of a table, and rows count from 0.",
        "你的桶从 1 数起。它们是表的行号，而行从 0 数起。",
    ),
)
"""What is wrong in the rule itself: t5-bias inherits these."""


def _mistake(slug: str, answer: Answer, en: str, zh: str) -> Mistake:
    return Mistake(slug, Text(en=en, zh=zh), {"t5_bucket": answer})


T5_BUCKET = (
    *(Mistake(wrong.slug, wrong.text, {"t5_bucket": wrong.bucket}) for wrong in RULE_MISTAKES),
    _mistake(
        "absolute-value-missing",
        _sign_kept,
        "With both directions, keys before the query get negative bucket numbers: their distance is still negative "
        "when it is compared. The rule counts places, without a sign.",
        "双向时，查询之前的键得到了负的桶号：比较时它们的距离还是负数。规则数的是相隔几个位置，不带正负号。",
    ),
    _mistake(
        "past-left-negative",
        _past_kept_negative,
        "With one direction, the past keeps its negative distances, and with them negative bucket numbers. The rule "
        "counts places, without a sign.",
        "单向时，过去的距离仍是负数，桶号也就成了负数。规则数的是相隔几个位置，不带正负号。",
    ),
    _mistake(
        "floating-point",
        _after(Tensor.float),
        "Your bucket numbers are floating-point numbers, and a table can't be looked up by them. Bring them to int64.",
        "你的桶号是浮点数，没法拿去查表。请转成 int64。",
    ),
    _mistake(
        "int32",
        _after(Tensor.int),
        "Your bucket numbers are int32. The task asks for int64.",
        "你的桶号是 int32。题目要求 int64。",
    ),
    _mistake(
        "input-changed",
        _in_place,
        "The distances are different after the call: an operation in place, or `+=`, writes into the tensor that was "
        "handed to you.",
        "调用之后，传入的距离变了：原地操作或 `+=` 会直接写进传入的张量。",
    ),
    _mistake(
        "moved-to-the-cpu",
        _on_the_cpu,
        "The result doesn't stay on the device of the distances. Look for `.cpu()`, or for a new tensor made without a "
        "device.",
        "结果没有留在距离所在的设备上。请查找 `.cpu()`，或者新建张量时没有指定设备的地方。",
    ),
)
"""The known mistakes of t5-bucket."""
