"""Comparisons for lesson 05: the names and shapes of a module's state, and gradients by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from autograder.exercises.comparisons import Tolerance, describe_call, same_form, values_within
from autograder.exercises.declaration import Case, Comparison, Observation, Raised, Returned
from autograder.results import Text


def _names(expected: Mapping[str, Any], observed: Any) -> tuple[list[str], list[str]]:
    """Names that are missing, and names that nobody asked for."""
    found = observed if isinstance(observed, dict) else {}
    return sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())


def same_state(case: Case, expected: Observation, observed: Observation) -> Text | None:
    """Two dicts of tensors have the same names, shapes and dtypes; values are not looked at."""
    if isinstance(expected, Raised) or isinstance(observed, Raised):
        return same_form(case, expected, observed)
    missing, extra = _names(expected.value, observed.value)
    if missing or extra:
        parts = [("missing", "缺少", missing), ("not asked for", "多出", extra)]
        said = [(en, zh, ", ".join(names)) for en, zh, names in parts if names]
        return Text(
            en=f"{describe_call(case)}, its parameters and state: "
            + "; ".join(f"{en}: {n}" for en, _, n in said)
            + ".",
            zh=f"{describe_call(case)} 的参数与状态：" + "；".join(f"{zh} {n}" for _, zh, n in said) + "。",
        )
    for name, tensor in expected.value.items():
        found = observed.value[name]
        if same_form(case, Returned(tensor), Returned(found)) is not None:
            kind = f"{found.dtype} {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            kind = kind.removeprefix("torch.")
            return Text(en=f"{describe_call(case)}: {name} is {kind}.", zh=f"{describe_call(case)}：{name} 是 {kind}。")
    return None


def _meant(expected: Mapping[str, Any], observed: Any, name: str) -> str:
    """`name`, or the only other name that has a gradient of its shape: a wrong name costs its own points only."""
    missing, extra = _names(expected, observed)
    shapes = {other: observed[other].shape for other in extra if isinstance(observed[other], Tensor)}
    wanted = getattr(expected[name], "shape", None)
    fitting = [other for other, shape in shapes.items() if shape == wanted]
    return fitting[0] if name in missing and len(fitting) == 1 else name


def gradients_within(tolerance: Tolerance) -> Comparison:
    """Each gradient lies within `tolerance`, and None stands where None is expected; more gradients do no harm."""
    within = values_within(tolerance)

    def compare(case: Case, expected: Observation, observed: Observation) -> Text | None:
        if isinstance(expected, Raised) or isinstance(observed, Raised):
            return within(case, expected, observed)
        for name, gradient in expected.value.items():
            meant = _meant(expected.value, observed.value, name)
            if not isinstance(observed.value, dict) or meant not in observed.value:
                return Text(
                    en=f"{describe_call(case)} has no {name} that a gradient could reach.",
                    zh=f"{describe_call(case)} 没有 {name}，梯度无处可传。",
                )
            found = observed.value[meant]
            if (gradient is None) != (found is None):
                return Text(
                    en=f"{describe_call(case)}: {'no' if found is None else 'a'} gradient arrives at {name}.",
                    zh=f"{describe_call(case)}：{'没有' if found is None else '有'}梯度传到 {name}。",
                )
            if gradient is not None and within(case, Returned(gradient), Returned(found)):
                return Text(
                    en=f"{describe_call(case)}: the gradient of {name} is off.",
                    zh=f"{describe_call(case)}：{name} 的梯度不对。",
                )
        return None

    return compare
