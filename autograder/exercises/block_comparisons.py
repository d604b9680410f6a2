"""Comparisons for lesson 04: names of parameters, gradients, what dropout drops, one entry of a dict of counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from autograder.exercises.comparisons import Tolerance, describe_call, raised_text, same_form, same_shape, values_within
from autograder.exercises.declaration import Case, Comparison, Observation, Other, Raised, Returned
from autograder.results import Text


def _shapes(value: Mapping[str, Any]) -> dict[str, tuple[int, ...] | None]:
    return {name: tuple(part.shape) if isinstance(part, Tensor) else None for name, part in value.items()}


def _constructed(case: Case) -> str:
    return describe_call(Case(case.function, case.args, case.kwargs))


def same_names(case: Case, expected: Observation, observed: Observation) -> Text | None:
    """Two dicts of tensors have the same names, and the same shape under each name."""
    if isinstance(expected, Raised) or isinstance(observed, Raised):
        return same_shape(case, expected, observed)
    right, found = expected.value, observed.value
    if not isinstance(found, dict) or not isinstance(right, dict):
        return same_shape(case, expected, observed)
    if _shapes(right) == _shapes(found):
        return None
    kind_en, kind_zh = ("parameters", "参数") if case.steps[-1].do == "parameters" else ("state_dict", "state_dict")
    missing, extra = [", ".join(sorted(a.keys() - b.keys())) for a, b in ((right, found), (found, right))]
    shaped = [name for name in right.keys() & found.keys() if _shapes(right)[name] != _shapes(found)[name]]
    shapes = ", ".join(f"{name} {_shapes(found)[name]}" for name in sorted(shaped))
    en = [f"missing: {missing}"] * bool(missing) + [f"not asked for: {extra}"] * bool(extra)
    zh = [f"缺少 {missing}"] * bool(missing) + [f"多出 {extra}"] * bool(extra)
    if shaped:
        en.append(f"of another shape than asked for: {shapes}")
        zh.append(f"形状与题目要求不同：{shapes}")
    return Text(
        en=f"{kind_en} of {_constructed(case)}: {'; '.join(en)}.",
        zh=f"{_constructed(case)} 的 {kind_zh}：{'；'.join(zh)}。",
    )


def common_values_within(tolerance: Tolerance) -> Comparison:
    """The tensors that both dicts name; missing and extra names are counted by `same_names`, not here."""
    within = values_within(tolerance)

    def compare(case: Case, expected: Observation, observed: Observation) -> Text | None:
        if isinstance(expected, Raised) or isinstance(observed, Raised):
            return same_shape(case, expected, observed)
        right, found = expected.value, observed.value
        if not isinstance(right, dict) or not isinstance(found, dict):
            return same_shape(case, expected, observed)
        names = [name for name in right if name in found]
        if not names:
            return same_names(case, expected, observed)
        for name in names:
            if (right[name] is None) == (found[name] is None):
                continue
            without_en, without_zh = ("no", "没有") if found[name] is None else ("a", "有")
            return Text(
                en=f"{describe_call(case)}: after backward, {name} has {without_en} gradient.",
                zh=f"{describe_call(case)}：反向传播之后，{name} {without_zh}梯度。",
            )
        pick = [{name: value[name] for name in names} for value in (right, found)]
        return within(case, Returned(pick[0]), Returned(pick[1]))

    return compare


def form_alike(case: Case, expected: Observation, observed: Observation) -> Text | None:
    """As `same_form`, but two errors of one class are alike: the order of two factors changes torch's words."""
    if isinstance(expected, Raised) and isinstance(observed, Raised) and expected.types == observed.types:
        return None
    return same_form(case, expected, observed)


def refused_alike(case: Case, expected: Observation, observed: Observation) -> Text | None:
    """Both went on, or both ended in an error of one class that names, or does not name, what the case asks for."""

    def met(observation: Observation) -> tuple[str, bool] | None:
        if isinstance(observation, Returned):
            return None
        return observation.types[0], all(name in observation.message for name in case.error_names)

    if met(expected) == met(observed):
        return None
    if isinstance(observed, Raised):
        return raised_text(case, observed)
    return Text(en=f"{describe_call(case)} raised nothing.", zh=f"{describe_call(case)} 没有抛出异常。")


def _share_is_fair(dropped: Tensor, share: float) -> bool:
    """As many as chance allows (six standard deviations, once in 5e8), and independently: no row, no column as one."""
    slack = 6 * math.sqrt(share * (1 - share) / dropped.numel())
    rows = dropped.flatten(0, -2)
    mixed = bool((rows.any(0) & ~rows.all(0)).all()) and bool((rows.any(1) & ~rows.all(1)).any())
    return abs(float(dropped.double().mean()) - share) <= slack and mixed


def dropped_hidden(y: Tensor, width: int, share: float) -> bool | None:
    """What a feed-forward network shows whose hidden features are all alike and come out one by one, then as a sum.

    Args:
        y: `(batch, length, d_model)`: columns 0 … width - 1 are the hidden features, column `width` is their sum.

    Returns:
        True when single hidden features are missing, and the rest is scaled up to make up for it; None when none is
        missing; False otherwise. Which activation made the features does not matter.
    """
    hidden, total = y[..., :width], y[..., width]
    dropped = hidden.abs() < 1e-3
    if not dropped.any():
        return None
    kept = hidden[~dropped]
    if kept.numel() == 0 or not bool((total - hidden.sum(-1)).abs().max() < 1e-3 * width):
        return False
    level = float(kept.mean()) * (1 - share)
    alike = bool((kept - kept.mean()).abs().max() < 1e-3)
    known = any(abs(level - value) < 1e-3 for value in (1.0, 0.841345))  # 1 after relu, after gelu
    return alike and known and _share_is_fair(dropped, share)


def dropped_before_addition(y: Tensor, x: Tensor, parts: list[Tensor], share: float) -> bool | None:
    """Whether each of `parts` lost single features before it was added to x, with a norm or without one after it.

    A norm is an affine map at each position. Features in which all parts are zero pass through it undropped; they
    give the map away, which is then undone. So this holds for norms of any kind, right or wrong.

    Args:
        y: `(batch, length, d_model)`, what came out.
        x: the same shape, what went in.
        parts: what was added, broadcastable to x; where one is not zero, the others are.

    Returns:
        True, or None when nothing was dropped anywhere, or False.
    """
    parts = [part.double().expand_as(x) for part in parts]
    y, x = y.double(), x.double()
    still = torch.stack([(part == 0).flatten(0, 1).all(0) for part in parts]).all(0)
    fixed, seen = x[..., still], y[..., still]
    centred = fixed - fixed.mean(-1, keepdim=True)
    slope = (centred * seen).sum(-1, keepdim=True) / centred.square().sum(-1, keepdim=True)
    straight = (seen - seen.mean(-1, keepdim=True) - slope * centred).abs().max() < 1e-3 * slope.abs().max()
    if not bool(straight) or not bool((slope > 1e-3).all()):
        return False
    added = (y - seen.mean(-1, keepdim=True)) / slope + fixed.mean(-1, keepdim=True) - x
    exact, none_dropped = [], []
    for part in parts:
        columns = (part != 0).flatten(0, 1).any(0)
        ratio = added[..., columns] / part[..., columns]  # 0, or the scale, the same at all features of a position
        dropped = ratio.abs() < 1e-2
        scale = ratio.amax(-1, keepdim=True)
        if not bool((dropped | ((ratio - scale).abs() < 1e-2 * scale)).all()):
            return False
        none_dropped.append(not bool(dropped.any()))
        if not none_dropped[-1] and not _share_is_fair(dropped, share):
            return False
        full = ratio[~dropped]
        exact.append(bool((full * (1 - share) - 1).abs().max() < 1e-2) if full.numel() else False)
    if all(none_dropped):
        return None
    return any(exact) and not any(none_dropped)


def dropout_text(case: Case, found: bool | None, share: float) -> Text:
    """What to say when `dropped_…` found None or False."""
    call = describe_call(case)
    if found is None:
        return Text(
            en=f"{call}, in train mode: no feature is dropped although dropout is {share:g}.",
            zh=f"{call}，训练模式：dropout 为 {share:g}，却没有任何特征被丢弃。",
        )
    return Text(
        en=f"{call}, in train mode: what is dropped, or the scale of what is left, doesn't fit dropout={share:g} at "
        "the place that the task names.",
        zh=f"{call}，训练模式：被丢弃的特征，或剩余特征的缩放，与题目指定位置上的 dropout={share:g} 不符。",
    )


def same_counts_form(case: Case, expected: Observation, observed: Observation) -> Text | None:
    """A dict with the same keys whose values are all whole numbers of Python's own kind."""
    if isinstance(expected, Raised) or isinstance(observed, Raised):
        return same_form(case, expected, observed)
    right, found = expected.value, observed.value
    if not isinstance(right, dict) or not isinstance(found, dict):
        return same_form(case, expected, observed)
    kinds = {
        name: value.type_name if isinstance(value, Other) else type(value).__name__ for name, value in found.items()
    }
    missing, extra = [", ".join(sorted(a.keys() - b.keys())) for a, b in ((right, found), (found, right))]
    en = [f"missing: {missing}"] * bool(missing) + [f"not asked for: {extra}"] * bool(extra)
    zh = [f"缺少 {missing}"] * bool(missing) + [f"多出 {extra}"] * bool(extra)
    other = ", ".join(
        f"{name} {kinds[name]}" for name in right if name in found and type(found[name]) is not type(right[name])
    )
    if other:
        en.append(f"values of another type than asked for: {other}")
        zh.append(f"值的类型与题目要求不同：{other}")
    if not en:
        return None
    return Text(en=f"{describe_call(case)}: {'; '.join(en)}.", zh=f"{describe_call(case)}：{'；'.join(zh)}。")


def same_count(name: str) -> Comparison:
    """One entry of a dict of counts, by its value; a float or a tensor of the right value is right here."""
    exactly = values_within(Tolerance(0.0, "counts are whole numbers below 2**53"))

    def compare(case: Case, expected: Observation, observed: Observation) -> Text | None:
        if isinstance(expected, Raised) or isinstance(observed, Raised):
            return same_shape(case, expected, observed)
        if not isinstance(expected.value, dict) or not isinstance(observed.value, dict):
            return same_counts_form(case, expected, observed)
        there = [name in side.value for side in (expected, observed)]
        if there[0] != there[1]:
            return Text(
                en=f"{describe_call(case)}: there is {'no' if there[0] else 'an'} entry {name!r}.",
                zh=f"{describe_call(case)}：{'缺少' if there[0] else '有'}条目 {name!r}。",
            )
        if not there[0]:
            return same_counts_form(case, expected, observed)  # which other keys, then
        return exactly(case, Returned({name: expected.value[name]}), Returned({name: observed.value[name]}))

    return compare
