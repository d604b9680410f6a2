"""How an observation is compared with the expected one. Each returns None, or what differs in both languages.

Texts name the call, the place and the student's own value; never the expected one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from autograder.exercises.declaration import Case, Comparison, MixPositions, Observation, Other, Raised, Returned
from autograder.results import LANGUAGES, Language, Text


@dataclass(frozen=True)
class Tolerance:
    """How far a value may lie from the reference, and why.

    Attributes:
        atol: absolute bound; either one number, or a function of (case, expected values in float64) that returns a
            number or a tensor broadcastable to the values.
        reason: why this bound accepts every right method and still tells the known mistakes apart.
    """

    atol: float | Callable[[Case, Tensor], float | Tensor]
    reason: str

    def bound(self, case: Case, expected: Tensor) -> Tensor:
        atol = self.atol(case, expected) if callable(self.atol) else self.atol
        return torch.as_tensor(atol, dtype=torch.float64)


EXACT = Tolerance(0.0, "whole numbers and booleans have one right value")


def describe(value: Any) -> str:
    """A value as it looks in a call, in short: numbers as they are, tensors by dtype and shape."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} tensor {tuple(value.shape)}"
    if isinstance(value, MixPositions):
        return "layer"
    if isinstance(value, Other):
        return value.type_name
    if isinstance(value, (tuple, list)):
        opening, closing = "[]" if isinstance(value, list) else "()"
        return f"{opening}{', '.join(describe(part) for part in value[:4])}{', …' if len(value) > 4 else ''}{closing}"
    if isinstance(value, float):
        return f"{value:.10g}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def describe_call(case: Case) -> str:
    """The question as a line of code, for messages."""
    if case.read:
        return case.function
    text = f"{case.function}({_arguments(case.args, case.kwargs)})"
    calls = [step for step in case.steps if step.do == "forward"]
    if calls:
        text += f"({_arguments(calls[-1].args, calls[-1].kwargs)})"
    return text


def _arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    return ", ".join(
        [describe(value) for value in args] + [f"{name}={describe(value)}" for name, value in kwargs.items()]
    )


def _kind(value: Any, language: Language, *, device: bool = False) -> str:
    """What sort of thing a value is; where it lives only when `device` asks for it."""
    if value is None:
        return "None"
    zh = language == "zh"
    if isinstance(value, Tensor):
        dtype, shape = str(value.dtype).removeprefix("torch."), tuple(value.shape)
        place = value.device.type if device else ""
        if zh:
            return (f"位于 {place} 上、" if place else "") + f"形状为 {shape} 的 {dtype} 张量"
        return f"a {dtype} tensor of shape {shape}" + (f" on {place}" if place else "")
    if isinstance(value, (tuple, list)):
        name = type(value).__name__
        return f"长度为 {len(value)} 的 {name}" if zh else f"a {name} of {len(value)}"
    name = value.type_name if isinstance(value, Other) else type(value).__name__
    if zh:
        return f"一个 {name}"
    return f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"


def raised_text(case: Case, observed: Raised) -> Text:
    """What to say when an answer raised although it should not have."""
    error = f"{observed.types[0]}: {observed.message}".strip().rstrip(":")
    return Text(
        en=f"{describe_call(case)} raised {error}",
        zh=f"{describe_call(case)} 抛出异常 {error}",
    )


def _form_difference(expected: Any, observed: Any, *, dtype: bool) -> bool:
    """Whether `observed` has another form (type, shape, device and, if asked, dtype) than `expected`."""
    if isinstance(expected, Tensor):
        if not isinstance(observed, Tensor) or expected.shape != observed.shape:
            return True
        return dtype and (expected.dtype != observed.dtype or expected.device.type != observed.device.type)
    if isinstance(expected, (tuple, list)):
        if not isinstance(observed, (tuple, list)) or len(expected) != len(observed):
            return True
        return any(_form_difference(e, o, dtype=dtype) for e, o in zip(expected, observed, strict=True))
    if isinstance(expected, dict):
        if not isinstance(observed, dict) or expected.keys() != observed.keys():
            return True
        return any(_form_difference(part, observed[name], dtype=dtype) for name, part in expected.items())
    if isinstance(expected, bool) or isinstance(observed, bool):
        return type(expected) is not type(observed)
    if isinstance(expected, float) and not dtype:
        return not isinstance(observed, (int, float)) and not (isinstance(observed, Tensor) and observed.numel() == 1)
    return type(expected) is not type(observed)


def _on_other_devices(expected: Any, observed: Any) -> bool:
    return (
        isinstance(expected, Tensor) and isinstance(observed, Tensor) and expected.device.type != observed.device.type
    )


def _same_error(expected: Raised, observed: Raised) -> bool:
    """Both errors have one type and one text but for the numbers in it (sizes differ with the way of writing)."""
    wanted, found = (re.sub(r"[\d\s,]+", " ", error.message) for error in (expected, observed))
    return expected.types[0] == observed.types[0] and wanted == found


def _stopped_for_want_of_values(case: Case, observed: Raised) -> bool:
    """Whether a right answer may have stopped only because torch's "meta" device has no values.

    That device stands in where there is no GPU. On a GPU the same answer would have gone on, and a grade must not
    depend on the machine that grades.
    """
    on_meta = "meta" in (case.device, case.kwargs.get("device"))
    return on_meta and observed.message == "Tensor.item() cannot be called on meta tensors"


def _form(*, dtype: bool) -> Comparison:
    def compare(case: Case, expected: Observation, observed: Observation) -> Text | None:
        if isinstance(observed, Raised):
            if isinstance(expected, Raised):
                return None if _same_error(expected, observed) else raised_text(case, observed)
            return None if _stopped_for_want_of_values(case, observed) else raised_text(case, observed)
        if isinstance(expected, Raised):
            return Text(
                en=f"{describe_call(case)} returned {_kind(observed.value, 'en')}.",
                zh=f"{describe_call(case)} 返回了{_kind(observed.value, 'zh')}。",
            )
        if not _form_difference(expected.value, observed.value, dtype=dtype):
            return None
        device = _on_other_devices(expected.value, observed.value)
        yours, wanted = (
            [_kind(v, language, device=device) for language in LANGUAGES] for v in (observed.value, expected.value)
        )
        return Text(
            en=f"{describe_call(case)} returned {yours[0]}, but the task asks for {wanted[0]}.",
            zh=f"{describe_call(case)} 返回{yours[1]}，而题目要求{wanted[1]}。",
        )

    return compare


same_form: Comparison = _form(dtype=True)
"""Type, shape, dtype and device agree; values are not looked at."""

same_shape: Comparison = _form(dtype=False)
"""Type and shape agree; neither dtype, device nor values are looked at."""


def _values(value: Any) -> Tensor | None:
    """Numbers as a float64 tensor on the CPU; None when there are no numbers to compare."""
    if isinstance(value, Tensor):
        return None if value.is_meta or value.is_complex() else value.cpu().double()
    if isinstance(value, (bool, int, float)):
        return torch.tensor(float(value), dtype=torch.float64)
    return None


def _names_differ(case: Case, expected: Mapping[str, Any], observed: Any) -> Text:
    """Two dicts of tensors have other names."""
    if not isinstance(observed, dict):
        return Text(
            en=f"{describe_call(case)} returned {_kind(observed, 'en')}.",
            zh=f"{describe_call(case)} 返回{_kind(observed, 'zh')}。",
        )
    missing = ", ".join(sorted(expected.keys() - observed.keys()))
    extra = ", ".join(sorted(observed.keys() - expected.keys()))
    return Text(
        en=f"{describe_call(case)}: "
        + "; ".join([f"missing: {missing}"] * bool(missing) + [f"not asked for: {extra}"] * bool(extra))
        + ".",
        zh=f"{describe_call(case)}："
        + "；".join([f"缺少 {missing}"] * bool(missing) + [f"多出 {extra}"] * bool(extra))
        + "。",
    )


def _first_difference(
    case: Case, expected: Any, observed: Any, tolerance: Tolerance, part: int | str | None = None
) -> Text | None:
    if isinstance(expected, dict):
        if not isinstance(observed, dict) or expected.keys() != observed.keys():
            return _names_differ(case, expected, observed)
        differences = (
            _first_difference(case, value, observed[name], tolerance, name) for name, value in expected.items()
        )
        return next(filter(None, differences), None)
    if isinstance(expected, (tuple, list)):
        if not isinstance(observed, (tuple, list)) or len(expected) != len(observed):
            return Text(
                en=f"{describe_call(case)} returned {_kind(observed, 'en')}, not {len(expected)} results.",
                zh=f"{describe_call(case)} 返回{_kind(observed, 'zh')}，而不是 {len(expected)} 个结果。",
            )
        for index, (e, o) in enumerate(zip(expected, observed, strict=True)):
            found = _first_difference(case, e, o, tolerance, part=index)
            if found:
                return found
        return None
    if isinstance(expected, str) or expected is None:
        if type(expected) is type(observed) and expected == observed:
            return None
        return Text(
            en=f"{describe_call(case)}: {describe(observed)}", zh=f"{describe_call(case)}：{describe(observed)}"
        )
    right, found_values = _values(expected), _values(observed)
    if right is None:
        return None  # a meta tensor: only its form can be compared
    if found_values is not None and right.dim() == 0 and found_values.numel() == 1:
        found_values = found_values.reshape(())
    if found_values is None or found_values.shape != right.shape:
        return Text(
            en=f"{describe_call(case)} returned {_kind(observed, 'en')}: its values can't be compared.",
            zh=f"{describe_call(case)} 返回{_kind(observed, 'zh')}，无法比较数值。",
        )
    # `<=` is False for NaN, so NaN never passes unless NaN is expected at that very place; equal infinities are equal.
    close = ((found_values - right).abs() <= tolerance.bound(case, right)) | (found_values == right)
    close |= found_values.isnan() & right.isnan()
    if bool(close.all()):
        return None
    wrong = int((~close).sum())
    place = tuple(int(i) for i in (~close).nonzero()[0])
    yours = f"{float(found_values[place]):.6g}"
    named = f" {part}" if isinstance(part, str) else f"第 {part} 个返回值"
    where_en = "" if part is None else f" in {part}" if isinstance(part, str) else f" in result {part}"
    where_en += f" at index {place}" if place else ""
    where_zh = ("结果" if part is None else named) + (f"在下标 {place} 处" if place else "")
    return Text(
        en=f"{describe_call(case)}: {wrong} of {right.numel()} values are off; yours{where_en} is {yours}.",
        zh=f"{describe_call(case)}：{right.numel()} 个值中有 {wrong} 个不对；你的{where_zh}为 {yours}。",
    )


def values_within(tolerance: Tolerance, *, errors_elsewhere: tuple[str, ...] = ()) -> Comparison:
    """Every value lies within `tolerance`; dtype is not looked at (compared in float64).

    An answer that raised differs, unless the case's tag is one of `errors_elsewhere`: then another criterion counts it.
    """

    def compare(case: Case, expected: Observation, observed: Observation) -> Text | None:
        if isinstance(observed, Raised) and case.tag in errors_elsewhere:
            return None
        if isinstance(observed, Raised) or isinstance(expected, Raised):
            return same_shape(case, expected, observed)
        return _first_difference(case, expected.value, observed.value, tolerance)

    return compare


def both(*comparisons: Comparison) -> Comparison:
    """The first difference that one of `comparisons` finds."""

    def compare(case: Case, expected: Observation, observed: Observation) -> Text | None:
        return next((found for one in comparisons if (found := one(case, expected, observed))), None)

    return compare


def _refusal(case: Case, observation: Observation) -> str:
    """How bad arguments were met: "refused", "refused without naming them" or "not refused" (another error, say)."""
    if isinstance(observation, Returned) or "ValueError" not in observation.types:
        return "not refused"
    named = all(name in observation.message for name in case.error_names)
    return "refused" if named else "refused without naming them"


def _is_unanswered(observation: Observation) -> bool:
    return isinstance(observation, Raised) and observation.types[0] == "NotImplementedError"


def raises_value_error(case: Case, expected: Observation, observed: Observation) -> Text | None:
    """Bad arguments (`case.error_names` says which) are refused with a ValueError that names them; good ones are not.

    Put good arguments at the edge beside the bad ones: raising always is no answer. Other errors than ValueError are
    all alike here, because what an unchecked size runs into depends on the way of writing.
    """
    if not case.error_names:
        if isinstance(observed, Raised) and isinstance(expected, Returned):
            return raised_text(case, observed)
        if isinstance(expected, Raised) and isinstance(observed, Returned):
            return Text(
                en=f"{describe_call(case)} returned {_kind(observed.value, 'en')}.",
                zh=f"{describe_call(case)} 返回了{_kind(observed.value, 'zh')}。",
            )
        return None
    if isinstance(observed, Raised) and _is_unanswered(observed) and not _is_unanswered(expected):
        return raised_text(case, observed)
    met = _refusal(case, observed)
    if met == _refusal(case, expected):
        return None
    call = describe_call(case)
    if isinstance(observed, Returned):
        return Text(
            en=f"{call} should raise ValueError, and returned {_kind(observed.value, 'en')}.",
            zh=f"{call} 应当抛出 ValueError，却返回了{_kind(observed.value, 'zh')}。",
        )
    if met != "refused without naming them":
        return raised_text(case, observed)
    missing = [name for name in case.error_names if name not in observed.message]
    return Text(
        en=f"{call}: the message of the ValueError should name the argument and its value; "
        f"it does not contain {', '.join(map(repr, missing))}.",
        zh=f"{call}：ValueError 的信息应写明参数名和它的值；其中缺少 {'、'.join(map(repr, missing))}。",
    )


def inputs_untouched(case: Case, expected: Observation, observed: Observation) -> Text | None:
    """The arguments are the same after the call as before."""

    def changed(observation: Observation) -> int | None:
        if isinstance(observation, Raised):
            return None
        calls = [step.args for step in case.steps if step.do == "forward"]
        given = calls[-1] if calls else case.args
        for index, (before, after) in enumerate(zip(given, observation.args_after, strict=False)):
            if not isinstance(before, Tensor) or (isinstance(after, Tensor) and after.is_meta):
                continue
            if not (isinstance(after, Tensor) and torch.equal(before, after.to(before.device))):
                return index
        return None

    if isinstance(observed, Raised) and isinstance(expected, Returned):
        return raised_text(case, observed)
    index = changed(observed)
    if (index is None) == (changed(expected) is None):
        return None
    return Text(
        en=f"{describe_call(case)} changed its argument number {(index or 0) + 1}. Work on a copy.",
        zh=f"{describe_call(case)} 改动了第 {(index or 0) + 1} 个参数。请在副本上计算。",
    )
