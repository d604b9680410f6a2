"""Comparisons for lesson 06: scores without their future, the future alone, and a form that forgives reading values."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from autograder.exercises.comparisons import describe_call, same_form, same_shape
from autograder.exercises.declaration import Case, Comparison, Observation, Raised, Returned
from autograder.results import Text

VERY_NEGATIVE = -1e4
"""No score of a case is near it; below it a number was put there to mask."""


def _future(scores: Tensor) -> Tensor:
    """Where keys come after the query, for the last q of k positions: bool `(q, k)`."""
    q, k = scores.shape[-2:]
    return torch.ones(q, k, dtype=torch.bool).triu(k - q + 1)


def _comparable(*observations: Observation) -> bool:
    """Whether all are tensors of one shape, with values and two axes at least."""
    values = [item.value if isinstance(item, Returned) else None for item in observations]
    tensors = [value for value in values if isinstance(value, Tensor) and not value.is_meta and not value.is_complex()]
    return len(tensors) == len(observations) and len({t.shape for t in tensors}) == 1 and tensors[0].dim() >= 2


def without_future(compare: Comparison) -> Comparison:
    """`compare`, with zeros in place of whatever both sides say about keys after the query."""

    def compared(case: Case, expected: Observation, observed: Observation) -> Text | None:
        if _comparable(expected, observed):
            expected, observed = (
                dataclasses.replace(item, value=item.value.cpu().masked_fill(_future(item.value), 0))
                for item in (expected, observed)
                if isinstance(item, Returned)
            )
        return compare(case, expected, observed)

    return compared


def _kinds(scores: Tensor) -> Tensor:
    """What stands at each place: 1 −inf, 2 a number so low that it was meant to mask, 3 zero, 4 nonsense, else 0."""
    wide = scores.cpu().double()
    kinds = (wide < VERY_NEGATIVE).long() * 2
    kinds[wide == -torch.inf] = 1
    kinds[wide == 0] = 3
    kinds[wide.isnan() | (wide == torch.inf)] = 4
    return kinds


def same_mask(case: Case, expected: Observation, observed: Observation) -> Text | None:
    """−inf stands at the same places; of other values only their kind is looked at (number, zero, "almost −inf")."""
    if isinstance(expected, Raised) or isinstance(observed, Raised):
        return same_form(case, expected, observed)
    if not _comparable(expected, observed):
        return same_shape(case, expected, observed) or _uncomparable(case, expected, observed)
    different = _kinds(expected.value) != _kinds(observed.value)
    if not bool(different.any()):
        return None
    place = tuple(int(i) for i in different.nonzero()[0])
    yours = f"{float(observed.value[place]):.6g}"
    return Text(
        en=f"{describe_call(case)}: {int(different.sum())} of {different.numel()} places differ in what is masked; "
        f"yours at index {place} is {yours}.",
        zh=f"{describe_call(case)}：{different.numel()} 处中有 {int(different.sum())} 处的掩码不对；"
        f"你的结果在下标 {place} 处为 {yours}。",
    )


def _uncomparable(case: Case, expected: Returned, observed: Returned) -> Text | None:
    """Of two tensors on torch's "meta" device nothing is known; of a complex one enough."""
    if isinstance(expected.value, Tensor) and expected.value.is_meta:
        return None
    return Text(
        en=f"{describe_call(case)}: the values can't be compared.",
        zh=f"{describe_call(case)}：无法比较数值。",
    )


def form_if_values_can_be_read(case: Case, expected: Observation, observed: Observation) -> Text | None:
    """`same_form`, but an answer that reads its numbers one by one is not blamed for stopping on the "meta" device.

    That device stands in where there is no GPU, and has no values. On a GPU the same answer would have gone on.
    """
    reads = isinstance(observed, Raised) and observed.message.startswith("Cannot copy out of meta tensor")
    return None if reads and case.device == "meta" else same_form(case, expected, observed)
