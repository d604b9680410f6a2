"""Comparisons for lesson 03: one table of a module alone, names apart from values, and what dropout does by chance."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from autograder.exercises.comparisons import Tolerance, describe_call, same_shape, values_within
from autograder.exercises.declaration import Case, Comparison, Observation, Raised, Returned
from autograder.results import Text

NAMES = frozenset({"table.weight", "tokens.table.weight", "encoding"})
"""The names of parameters and buffers that the lesson's modules have."""

WATCHED = {
    "state": Text(en="the state_dict", zh="state_dict"),
    "parameters": Text(en="the parameters", zh="参数"),
    "buffers": Text(en="the buffers", zh="buffer"),
    "backward": Text(en="the gradients", zh="梯度"),
}


def _shapes(value: Any) -> dict[str, tuple[int, ...]]:
    """The shapes in what `state`, `parameters` or `buffers` observed, by name."""
    if not isinstance(value, dict):
        return {}
    return {name: tuple(part.shape) for name, part in value.items() if isinstance(part, Tensor)}


def _told(names: dict[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in sorted(names.items())) or "–"


def _other_names(case: Case, found: dict[str, tuple[int, ...]]) -> Text:
    watched = WATCHED[case.steps[-1].do]
    return Text(
        en=f"{describe_call(case)}: {watched.en} should be others. Yours: {_told(found)}.",
        zh=f"{describe_call(case)}：{watched.zh}不符合要求。你的是：{_told(found)}。",
    )


def names_and_shapes(case: Case, expected: Observation, observed: Observation) -> Text | None:
    """A module holds tensors of the same names and shapes. Of buffers, more than were asked for may be there."""
    if isinstance(expected, Raised) or isinstance(observed, Raised):
        return same_shape(case, expected, observed)
    wanted, found = _shapes(expected.value), _shapes(observed.value)
    if case.steps[-1].do == "buffers":
        same = all(found.get(name) == shape for name, shape in wanted.items())
    else:
        same = wanted == found
    return None if same and isinstance(observed.value, dict) else _other_names(case, found)


def names_alike(case: Case, expected: Observation, observed: Observation) -> Text | None:
    """Two modules go wrong in their names in the same way: any wrong name is as good as another."""
    if isinstance(expected, Raised) or isinstance(observed, Raised):
        return same_shape(case, expected, observed)

    def kinds(shapes: dict[str, tuple[int, ...]]) -> list[tuple[str, tuple[int, ...]]]:
        return sorted((name if name in NAMES else "", shape) for name, shape in shapes.items())

    found = _shapes(observed.value)
    return None if kinds(_shapes(expected.value)) == kinds(found) else _other_names(case, found)


def _table(case: Case, value: Any) -> Tensor | None:
    """The table of embeddings among a module's tensors or gradients: by its name, else the only one of its shape."""
    if not isinstance(value, dict):
        return None
    named = [part for name, part in value.items() if name in NAMES and isinstance(part, Tensor)]
    shaped = [part for part in value.values() if isinstance(part, Tensor) and tuple(part.shape) == case.args[:2]]
    found = [part for part in named if tuple(part.shape) == case.args[:2]] or shaped
    return found[0] if len(found) == 1 else None


def _without_gradient(observation: Observation) -> Observation:
    """An error that says "no gradient" counts as an observation of no gradient."""
    if isinstance(observation, Raised) and "does not require grad" in observation.message:
        return Returned({})
    return observation


def input_gradient_within(tolerance: Tolerance) -> Comparison:
    """The gradient that reaches the first argument; those of parameters are counted elsewhere."""
    within = values_within(tolerance)

    def compare(case: Case, expected: Observation, observed: Observation) -> Text | None:
        wanted, found = _without_gradient(expected), _without_gradient(observed)
        if isinstance(wanted, Raised) or isinstance(found, Raised):
            return same_shape(case, wanted, found)
        right, yours = (side.value.get("input 0") if isinstance(side.value, dict) else None for side in (wanted, found))
        if right is not None and yours is not None:
            return within(case, Returned({"gradient": right}), Returned({"gradient": yours}))
        if right is yours:
            return None
        return Text(
            en=f"{describe_call(case)}: no gradient reaches the input.",
            zh=f"{describe_call(case)}：没有梯度到达输入。",
        )

    return compare


def same_zeros(case: Case, expected: Observation, observed: Observation) -> Text | None:
    """The same vectors are zero throughout: rows of a table, of its gradient, or vectors of an output.

    Other values may differ: they are random in a new module, and what they should be is judged elsewhere.
    """
    wanted, found = _without_gradient(expected), _without_gradient(observed)
    if isinstance(wanted, Raised) or isinstance(found, Raised):
        return same_shape(case, wanted, found)
    right, yours = _zero_vectors(case, wanted.value), _zero_vectors(case, found.value)
    if right == yours:
        return None
    gradient = case.steps[-1].do == "backward"
    if yours is None:
        return Text(
            en=f"{describe_call(case)}: " + ("no gradient reaches the table." if gradient else "there is no table."),
            zh=f"{describe_call(case)}：" + ("没有梯度到达词嵌入表。" if gradient else "找不到词嵌入表。"),
        )
    places = ", ".join(map(str, yours)) or "–"
    if gradient:
        return Text(
            en=f"{describe_call(case)}: the rows of your table that get no gradient: {places}.",
            zh=f"{describe_call(case)}：你的表里没有得到梯度的行：{places}。",
        )
    return Text(
        en=f"{describe_call(case)}: the vectors that are zero throughout, in your new module: {places}.",
        zh=f"{describe_call(case)}：在你刚建好的模块里，全为零的向量：{places}。",
    )


def _zero_vectors(case: Case, value: Any) -> list[Any] | None:
    """The places of vectors that are zero throughout; None when there are no vectors."""
    vectors = _table(case, value) if isinstance(value, dict) else value
    if not isinstance(vectors, Tensor) or vectors.dim() < 2:
        return None
    places = (vectors == 0).all(dim=-1).nonzero().tolist()
    return [place[0] if len(place) == 1 else tuple(place) for place in places]


def errors_by_type(compare: Comparison) -> Comparison:
    """`compare`, but two errors of one type agree: what an error says depends on the way of writing."""

    def compare_observations(case: Case, expected: Observation, observed: Observation) -> Text | None:
        if isinstance(expected, Raised) and isinstance(observed, Raised) and expected.types[0] == observed.types[0]:
            return None
        return compare(case, expected, observed)

    return compare_observations


SAME = 2e-4
"""Values of one cell that lie nearer than this are one value; rounding moves them by at most 1e-5."""
FREQUENT = 0.05
"""A value that fewer of the rows have may be missing in another run by chance."""


def _same_values(first: Tensor, second: Tensor) -> bool:
    """In each cell, nearly every value of either run occurs in the other one."""
    columns = [value.flatten(1).T.contiguous().sort(dim=1).values for value in (first, second)]  # (cells, rows)
    for values, others in (columns, columns[::-1]):
        right = torch.searchsorted(others, values).clamp(max=others.shape[1] - 1)
        nearest = torch.minimum(
            (others.gather(1, right) - values).abs(), (others.gather(1, (right - 1).clamp(min=0)) - values).abs()
        )
        if bool(((nearest > SAME).double().mean(dim=1) >= FREQUENT).any()):
            return False
    return True


def _shares(value: Tensor) -> Tensor:
    """How often a cell has its smallest magnitude, alone, and together with its neighbour along each axis.

    With dropout, that is the share of dropped cells; the pairs tell whether cells are dropped independently.
    """
    magnitude = value.abs()
    low = magnitude <= magnitude.amin(dim=0) + SAME
    pairs = [(low & low.roll(1, dims=axis)).double().mean() for axis in range(low.dim())]
    return torch.stack([low.double().mean(), *pairs])


def same_chances(share: float) -> Comparison:
    """What a module returns for many equal rows is distributed alike, whichever random numbers it drew.

    The case's tokens are one sequence, repeated; so a cell's values over the batch show everything that dropout does
    to it: in eval mode one value, in train mode two. Shares may differ by `share`.
    """

    def compare(case: Case, expected: Observation, observed: Observation) -> Text | None:
        if isinstance(expected, Raised) or isinstance(observed, Raised) or same_shape(case, expected, observed):
            return same_shape(case, expected, observed)
        right, found = expected.value.double().cpu(), observed.value.double().cpu()
        finite = bool(right.isfinite().all()), bool(found.isfinite().all())
        if all(finite):
            close = (_shares(right) - _shares(found)).abs() <= share
            if bool(close.all()) and _same_values(right, found):
                return None
        elif finite[0] == finite[1]:
            return None
        train = any(step.do == "mode" and step.args[0] for step in case.steps)
        zeros = f"{float((found == 0).double().mean()):.0%}"
        changing = f"{float((found != found[:1]).any(dim=0).double().mean()):.0%}"
        return Text(
            en=f"{describe_call(case)} in {'train' if train else 'eval'} mode, every row the same sequence: "
            f"{zeros} of your values are 0, and {changing} of the cells change from row to row.",
            zh=f"{describe_call(case)}，{'train' if train else 'eval'} 模式，每一行都是同一个序列："
            f"你的值中有 {zeros} 为 0，有 {changing} 的单元逐行不同。",
        )

    return compare
