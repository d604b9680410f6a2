"""Comparisons for lesson 01: the two results of attention apart, its empty rows alone, errors by their text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.exercises.comparisons import (
    Tolerance,
    describe_call,
    raised_text,
    same_form,
    same_shape,
    values_within,
)
from autograder.exercises.declaration import Case, Comparison, Observation, Other, Raised, Returned
from autograder.results import Text

ValueComparison = Callable[[Case, Any, Any], Text | None]


def _returned(case: Case, value: Any) -> Text:
    name = value.type_name if isinstance(value, Other) else type(value).__name__
    return Text(en=f"{describe_call(case)} returned a {name}.", zh=f"{describe_call(case)} 返回了 {name}。")


def errors_by_text(compare: ValueComparison) -> Comparison:
    """`compare` on the values; two errors agree when type and text agree.

    The text matters: a wrong axis and a swapped argument both end in a RuntimeError; only its text tells them apart.
    """

    def compare_observations(case: Case, expected: Observation, observed: Observation) -> Text | None:
        if isinstance(expected, Raised) and isinstance(observed, Raised):
            same = expected.types[:1] == observed.types[:1] and expected.message == observed.message
            return None if same else raised_text(case, observed)
        if isinstance(observed, Raised):
            return raised_text(case, observed)
        if isinstance(expected, Raised):
            return _returned(case, observed.value)
        return compare(case, expected.value, observed.value)

    return compare_observations


def _inside(compare: Comparison) -> Comparison:
    return errors_by_text(lambda case, expected, observed: compare(case, Returned(expected), Returned(observed)))


form: Comparison = _inside(same_form)
"""Type, shape, dtype and device; errors by their text."""

shape: Comparison = _inside(same_shape)
"""Type and shape; errors by their text."""


def values(tolerance: Tolerance) -> Comparison:
    """Every value lies within `tolerance`; errors by their text."""
    return _inside(values_within(tolerance))


def values_on(tag: str, tolerance: Tolerance) -> Comparison:
    """Every value on the cases with this tag; on other cases only where NaN stands. Errors by their text.

    With the other cases, an answer that is NaN everywhere is not taken for one that is NaN in a special case.
    """
    within = values_within(tolerance)

    def compare(case: Case, expected: Any, observed: Any) -> Text | None:
        if case.tag == tag:
            return within(case, Returned(expected), Returned(observed))
        if not isinstance(expected, Tensor) or not isinstance(observed, Tensor) or expected.shape != observed.shape:
            return None
        if observed.is_meta or torch.equal(expected.isnan().cpu(), observed.isnan().cpu()):
            return None
        return Text(en=f"{describe_call(case)} returned NaN.", zh=f"{describe_call(case)} 返回了 NaN。")

    return errors_by_text(compare)


def _shape_of(value: Any) -> tuple[int, ...] | None:
    return tuple(value.shape) if isinstance(value, Tensor) else None


def output_and_weights(case: Case, found: Any) -> tuple[Any, Any]:
    """The two results of `attention` in what it returned; None for one that is not there.

    A lone tensor is the output, and a swapped pair is put in order: the form criterion counts these two, and the other
    criteria can then judge what was computed.
    """
    query, key, value = case.args[:3]
    output_shape = (*query.shape[:-1], value.shape[-1])
    weights_shape = (*query.shape[:-1], key.shape[-2])
    if isinstance(found, Tensor):
        return found, None
    if not isinstance(found, (tuple, list)) or len(found) < 2:
        return None, None
    first, second = found[0], found[1]
    if _shape_of(first) == weights_shape and _shape_of(second) == output_shape:
        return second, first
    return first, second


def _missing(case: Case, name_en: str, name_zh: str) -> Text:
    return Text(en=f"{describe_call(case)} returned no {name_en}.", zh=f"{describe_call(case)} 没有返回{name_zh}。")


def output_within(tolerance: Tolerance) -> Comparison:
    """The output alone."""
    within = values_within(tolerance)

    def compare(case: Case, expected: Any, observed: Any) -> Text | None:
        right, found = output_and_weights(case, expected)[0], output_and_weights(case, observed)[0]
        if found is None:
            return None if right is None else _missing(case, "output", "输出")
        return within(case, Returned(right), Returned(found))

    return errors_by_text(compare)


def weights_within(tolerance: Tolerance) -> Comparison:
    """The weights alone."""
    within = values_within(tolerance)

    def compare(case: Case, expected: Any, observed: Any) -> Text | None:
        right, found = output_and_weights(case, expected)[1], output_and_weights(case, observed)[1]
        if found is None:
            return None if right is None else _missing(case, "weights", "权重")
        return within(case, Returned(right), Returned(found))

    return errors_by_text(compare)


Parts = tuple[Any, ...]


def _parts_in_both(expected: Parts, observed: Parts) -> tuple[Parts, Parts]:
    """Output and weights of both, or the outputs alone when either side has no weights."""
    count = 1 if expected[1] is None or observed[1] is None else 2
    return expected[:count], observed[:count]


def both_within(tolerance: Tolerance) -> Comparison:
    """Output and weights; weights that were not returned are not counted again here."""
    within = values_within(tolerance)

    def compare(case: Case, expected: Any, observed: Any) -> Text | None:
        right, found = _parts_in_both(output_and_weights(case, expected), output_and_weights(case, observed))
        return within(case, Returned(right), Returned(found))

    return errors_by_text(compare)


def empty_rows_within(tolerance: Tolerance) -> Comparison:
    """Output and weights of the queries that may attend to nothing; of all others only whether they are NaN.

    The mask is the fourth argument. Other rows are looked at so that NaN everywhere is not taken for NaN in empty rows.
    """
    both = values_within(tolerance)

    def rows(case: Case, part: Any) -> Any:
        if not isinstance(part, Tensor) or part.shape[:-1] != case.args[0].shape[:-1]:
            return part
        empty = case.args[3].any(dim=-1, keepdim=True).logical_not().to(part.device)
        return part.where(empty | part.isnan(), 0)

    def compare(case: Case, expected: Any, observed: Any) -> Text | None:
        right, found = _parts_in_both(output_and_weights(case, expected), output_and_weights(case, observed))
        right, found = tuple(rows(case, part) for part in right), tuple(rows(case, part) for part in found)
        difference = both(case, Returned(right), Returned(found))
        if difference is None:
            return None
        return Text(
            en=f"{describe_call(case)}: the rows of queries that may attend to nothing are off.",
            zh=f"{describe_call(case)}：不能关注任何位置的查询，其结果不对。",
        )

    return errors_by_text(compare)


def same_dtype_and_device(case: Case, expected: Any, observed: Any) -> Text | None:
    """Output and weights, as far as both are there, have the dtype and the device."""
    pairs = zip(output_and_weights(case, expected), output_and_weights(case, observed), strict=True)
    for right, found in pairs:
        if not isinstance(right, Tensor) or not isinstance(found, Tensor):
            continue
        if right.dtype != found.dtype or right.device.type != found.device.type:
            dtype = str(found.dtype).removeprefix("torch.")
            return Text(
                en=f"{describe_call(case)} returned {dtype} on {found.device.type}.",
                zh=f"{describe_call(case)} 返回的结果是 {dtype}，位于 {found.device.type}。",
            )
    return None


dtype_and_device: Comparison = errors_by_text(same_dtype_and_device)
"""Dtype and device of what attention returned; neither shapes nor values."""


def device_alone(case: Case, expected: Any, observed: Any) -> Text | None:
    """Both are tensors on the same kind of device."""
    if isinstance(expected, Tensor) and isinstance(observed, Tensor) and expected.device.type == observed.device.type:
        return None
    if not isinstance(expected, Tensor) and not isinstance(observed, Tensor):
        return None
    if not isinstance(observed, Tensor):
        return _returned(case, observed)
    place = observed.device.type
    return Text(
        en=f"{describe_call(case)} returned its result on {place}.", zh=f"{describe_call(case)} 的结果位于 {place}。"
    )


same_device: Comparison = errors_by_text(device_alone)
"""The device; neither shape, dtype nor values."""
