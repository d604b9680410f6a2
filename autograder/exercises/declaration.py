"""What an exercise is: a reference, cases drawn from a seed, criteria with points, and known mistakes.

One declaration is the single source for the hidden test, the diagnosis and the mutation test. Everything here is data;
`autograder.examiner` puts the questions and judges.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from autograder.results import Text

Answer = Callable[..., Any]


@dataclass(frozen=True)
class MixPositions:
    """A layer, as plain data: `layer(x)[b, i] = sum over j of weights[i, j] * x[b, j]`. Stands for any token mixer.

    `weights` is `(length, length)`. In the kernel it becomes a callable on `(batch, length, d_model)`.
    """

    weights: Tensor


@dataclass(frozen=True)
class Step:
    """One thing to do with a module that the call has constructed; see the functions below for what there is."""

    do: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    track: bool = False


def load(state: Mapping[str, Tensor], *, by_shape: bool = False) -> Step:
    """Copy these tensors into the parameters and buffers of the same name and shape; others stay as they are.

    With `by_shape`, a layer whose names the module lacks (or has with other shapes) goes into a layer of the same
    shapes that no name claims, the first in order, rather one with the same last name: then wrong names cost the points
    for names, and values are judged all the same.
    """
    return Step("load", (dict(state), by_shape))


def forward(*args: Any, track: bool = False, **kwargs: Any) -> Step:
    """Call the module. With `track`, floating-point arguments require gradient. Observed: what it returned."""
    return Step("forward", args, kwargs, track)


def backward(weights: Tensor) -> Step:
    """Backward from the sum of the last output times `weights`, which has the output's shape.

    Observed: a dict of gradients by parameter name, with `input 0`, `input 1` … for tracked arguments; None where no
    gradient arrived.
    """
    return Step("backward", (weights,))


def mode(*, train: bool) -> Step:
    """Switch to train or eval mode."""
    return Step("mode", (train,))


def seed(number: int) -> Step:
    """Seed torch's generators, so that two calls with dropout can be compared."""
    return Step("seed", (number,))


def to(target: torch.dtype | str) -> Step:
    """Move the module to a dtype or a device."""
    return Step("to", (target,))


def state() -> Step:
    """Observed: the state_dict, name → tensor."""
    return Step("state")


def parameters() -> Step:
    """Observed: the parameters, name → tensor."""
    return Step("parameters")


def buffers() -> Step:
    """Observed: the buffers, name → tensor, persistent or not."""
    return Step("buffers")


@dataclass(frozen=True)
class Case:
    """One question: call `function` with these arguments, on `device`.

    With `steps`, the call constructs a module, the steps are done with it in order, and what the last step observes is
    the answer. An error in any of them is the answer too. For a function that returns a tensor, the one step can be
    `backward`, with `track` for its arguments.

    Attributes:
        function: name of the student's function or class, or of the variable when `read` is True.
        tag: groups cases; a criterion looks at the cases of its tags.
        error_names: for a case that must raise ValueError, what the message must contain (argument name, its value).
        read: the question asks for the variable's value instead of a call (quizzes).
        track: floating-point arguments of the call require gradient.
    """

    function: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    tag: str = "values"
    device: str = "cpu"
    error_names: tuple[str, ...] = ()
    read: bool = False
    steps: tuple[Step, ...] = ()
    track: bool = False


@dataclass(frozen=True)
class Returned:
    """The call returned `value`.

    Attributes:
        args_after: the arguments as they were after the call (of the last `forward`, if there are steps).
        operators: those of torch's operators that the exercise's rules watch and that ran.
    """

    value: Any
    args_after: tuple[Any, ...] = ()
    operators: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Raised:
    """The call raised. `types` are the names of the exception's class and its bases, most derived first."""

    types: tuple[str, ...]
    message: str


@dataclass(frozen=True)
class Other:
    """A value that is not plain data (a function, a numpy array, a module …); only its type's name is known."""

    type_name: str


Observation = Returned | Raised
Comparison = Callable[[Case, Observation, Observation], Text | None]
"""(case, expected, observed) -> None when they agree, else what differs, in words that reveal no expected value."""


@dataclass(frozen=True)
class Criterion:
    """One part of a verdict: full points when `compare` finds no difference on any case with one of `tags`.

    Attributes:
        alike: compares an answer with a known mistake, to name it; `compare` when None. It may be looser, because a
            mistake is the same mistake in float32 and in float64 even where it makes rounding errors large.
    """

    name: str
    title: Text
    points: float
    compare: Comparison
    tags: tuple[str, ...] = ("values",)
    alike: Comparison | None = None


@dataclass(frozen=True)
class Mistake:
    """A wrong implementation that people really write, and what to tell them: what went wrong, where to look.

    `answers` replaces the functions it names; the others are taken from the reference.
    """

    slug: str
    message: Text
    answers: Mapping[str, Any]


@dataclass(frozen=True)
class Rule:
    """Something that an answer must do without, such as `torch.nn.LayerNorm`. Breaking it costs all points.

    Attributes:
        names: full dotted names in torch that the answer must not use.
        operators: names of torch's low-level operators (`aten::…`) that show such a use while the answer runs.
    """

    slug: str
    message: Text
    names: tuple[str, ...]
    operators: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exercise:
    """One exercise, whole.

    Attributes:
        functions: names in the student's notebook, in the order in which the test cell hands them to `grade`.
        reference: the right answer for each name.
        cases: draws the questions; the same `Draw` seed gives the same questions.
        alternatives: other right answers, each must get full marks (checked by the tests).
        rules: what an answer must do without.
    """

    id: str
    lesson: str
    functions: tuple[str, ...]
    reference: Mapping[str, Any]
    cases: Callable[[Draw], Sequence[Case]]
    criteria: tuple[Criterion, ...]
    mistakes: tuple[Mistake, ...]
    alternatives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()

    @property
    def points(self) -> float:
        return round(sum(criterion.points for criterion in self.criteria), 6)


class Draw:
    """A reproducible source of sizes and tensors for cases.

    Args:
        seed: any int; the same seed gives the same draws on every platform.
        accelerator: "cuda" when the examiner uses a GPU, else "cpu". Put one case on it.
    """

    def __init__(self, seed: int, accelerator: str = "cpu") -> None:
        self.accelerator = accelerator
        self._random = random.Random(seed)
        self._torch = torch.Generator().manual_seed(self._random.getrandbits(63))

    @property
    def other_device(self) -> str:
        """A device that is not the default one: the GPU, or torch's "meta" device, which has shapes and no values."""
        return "meta" if self.accelerator == "cpu" else self.accelerator

    def integer(self, low: int, high: int) -> int:
        """A whole number, low ≤ n ≤ high."""
        return self._random.randint(low, high)

    def sizes(self, count: int, low: int = 2, high: int = 9) -> list[int]:
        """`count` sizes, all different, so that no two axes can be confused unseen."""
        return self._random.sample(range(low, high + 1), count)

    def sample(self, values: Sequence[int], count: int) -> list[int]:
        """`count` of `values`, each at most once."""
        return self._random.sample(values, count)

    def even(self, low: int, high: int) -> int:
        """An even number, low ≤ n ≤ high."""
        return 2 * self._random.randint((low + 1) // 2, high // 2)

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Standard normal values, drawn in float32 and then cast."""
        return torch.randn(*shape, generator=self._torch).to(dtype)

    def permutation(self, length: int) -> Tensor:
        """A permutation `(length,)` int64 that differs from its inverse. Needs length ≥ 3."""
        while True:
            found = torch.randperm(length, generator=self._torch)
            if not torch.equal(found[found], torch.arange(length)):
                return found

    def mask(self, *shape: int) -> Tensor:
        """Random booleans `shape`; every row of the last axis has at least one True and, if wider than 1, one False."""
        keep = torch.rand(*shape, generator=self._torch) < 0.6
        keep[..., 0] = True
        if shape[-1] > 1:
            keep[..., -1] = False
        return keep
