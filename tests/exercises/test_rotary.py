"""Lesson 05: what its cases cover, its own comparisons, and answers as students write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.examiner.judge import judge_here
from autograder.exercises import EXERCISES
from autograder.exercises.comparisons import Tolerance
from autograder.exercises.declaration import Case, Raised, Returned
from autograder.exercises.rotary import EXERCISES as LESSON
from autograder.exercises.rotary_comparisons import gradients_within, same_state
from autograder.reference import rotary
from autograder.reference.learned import LearnedPosition
from autograder.results import Verdict
from tests.exercises import examinations
from tests.exercises.examinations import SEEDS, cases_of, lost, message_of


def verdict_on(exercise: str, answer: Any, seed: int = SEEDS[0]) -> Verdict:
    return examinations.verdict_on(exercise, [answer], seed)


def calls_of(exercise: str, seed: int) -> Iterator[tuple[Case, tuple[Any, ...], dict[str, Any]]]:
    """The last call of the module in each case that has one: the case, arguments, keyword arguments."""
    for case in cases_of(exercise, seed):
        for step in reversed(case.steps):
            if step.do == "forward":
                yield case, step.args, dict(step.kwargs)
                break


def test_the_lesson_has_its_seven_exercises_in_order() -> None:
    assert [exercise.id for exercise in LESSON] == [
        "learned-position",
        "rotary-angles",
        "rotate-adjacent",
        "rotate-halves",
        "adjacent-to-halves",
        "rotary-attention",
        "quiz-rotary",
    ]
    assert all(len(exercise.alternatives) >= 4 for exercise in LESSON[:-1])
    assert all(len(exercise.mistakes) >= 15 for exercise in LESSON[:-1])


@pytest.mark.parametrize("seed", SEEDS)
def test_sizes_of_a_learned_table_all_differ_and_both_ends_are_tried(seed: int) -> None:
    ends = []
    for case, (x, *offset), kwargs in calls_of("learned-position", seed):
        max_len, d_model = case.args
        assert len({*x.shape, max_len}) == 4 or case.tag == "errors"
        assert x.shape[2] == d_model
        if case.tag == "errors":
            ends.append(x.shape[1] + sum(offset) + sum(kwargs.values()) - max_len)
    assert sorted(ends)[:2] == [0, 0]
    assert {1, 2} & set(ends)
    assert max(ends) > 2


@pytest.mark.parametrize("seed", SEEDS)
def test_angles_are_asked_at_positions_with_gaps_out_of_order_far_away_and_for_each_sequence(seed: int) -> None:
    positions = [case.args[0] for case in cases_of("rotary-angles", seed) if not case.error_names]
    assert any(len(p) > 2 and p.dim() == 1 and p.tolist() != sorted(p.tolist()) for p in positions)
    assert max(int(p.max()) for p in positions) > 4096
    assert {p.dim() for p in positions} == {1, 2, 3}
    assert min(len(p) for p in positions) == 1
    assert all(p.dtype == torch.int64 for p in positions)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise", ["rotate-adjacent", "rotate-halves"])
def test_axes_of_a_rotation_all_differ(exercise: str, seed: int) -> None:
    for case in cases_of(exercise, seed):
        x, angles = case.args
        sizes = [size for size in x.shape if size > 1]
        assert len(set(sizes)) == len(sizes)
        assert angles.shape[-1] == x.shape[-1] // 2
        assert angles.shape[-1] not in x.shape[:-1]


@pytest.mark.parametrize("seed", SEEDS)
def test_conversions_tell_there_from_back(seed: int) -> None:
    """With heads of width 4 the way there is the way back, so heads are wider; rows and columns differ."""
    for case in cases_of("adjacent-to-halves", seed):
        weight, n_heads = case.args
        assert weight.shape[0] // n_heads >= 6
        assert weight.shape[0] != weight.shape[1]


@pytest.mark.parametrize("seed", SEEDS)
def test_attention_is_asked_with_all_sizes_different_and_positions_of_every_kind(seed: int) -> None:
    shapes, largest, unsorted = set(), 0, 0
    for case, (x, *rest), kwargs in calls_of("rotary-attention", seed):
        d_model, n_heads = case.args[:2]
        sizes = [*x.shape, n_heads, d_model // n_heads]
        assert len(set(sizes)) == len(sizes)
        found = [value for value in (*rest, *kwargs.values()) if isinstance(value, Tensor)]
        for positions in (value for value in found if value.dtype == torch.int64):
            shapes.add(positions.dim())
            largest = max(largest, int(positions.max()))
            unsorted += not torch.equal(positions, positions.sort(-1).values)
        for mask in (value for value in found if value.dtype == torch.bool):
            assert bool(mask.any(-1).all())
    assert shapes == {1, 2}
    assert largest > 4096
    assert unsorted >= 5


@pytest.mark.parametrize("exercise", [exercise.id for exercise in LESSON[:-1]])
def test_one_case_is_on_the_accelerator(exercise: str) -> None:
    assert [case.device for case in cases_of(exercise, 0, "cuda")].count("cuda") == 2
    assert [case.device for case in cases_of(exercise, 0)].count("meta") == 1


@pytest.mark.parametrize("exercise", [e.id for e in LESSON if e.functions[0][0].islower() and "q1" not in e.functions])
def test_a_nearly_right_answer_is_not_given_the_name_of_a_mistake(exercise: str) -> None:
    (reference,) = EXERCISES[exercise].reference.values()
    for seed in SEEDS:
        verdict = verdict_on(exercise, lambda *args: reference(*args) * 1.01, seed)
        assert verdict.score < verdict.max_score
        assert verdict.mistake is None


def test_a_table_under_another_name_is_told_the_names() -> None:
    class Positions(nn.Module):
        def __init__(self, max_len: int, d_model: int) -> None:
            super().__init__()
            self.max_len = max_len
            self.rows = nn.Parameter(torch.zeros(max_len, d_model))

        def forward(self, x: Tensor, offset: int = 0) -> Tensor:
            if offset + x.shape[1] > self.max_len:
                raise ValueError(f"max_len is {self.max_len}")
            return x + self.rows[offset : offset + x.shape[1]]

    verdict = verdict_on("learned-position", Positions)
    assert verdict.mistake is None
    assert "missing: table.weight; not asked for: rows" in verdict.message.en
    assert "缺少 table.weight；多出 rows" in verdict.message.zh
    assert lost(verdict) == ["state"]


def test_a_bare_table_costs_its_name_alone() -> None:
    class Positions(nn.Module):
        def __init__(self, max_len: int, d_model: int) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.zeros(max_len, d_model))

        def forward(self, x: Tensor, offset: int = 0) -> Tensor:
            if offset + x.shape[1] > len(self.table):
                raise ValueError(f"max_len is {len(self.table)}")
            return x + self.table[offset : offset + x.shape[1]]

    for seed in SEEDS:
        verdict = verdict_on("learned-position", Positions, seed)
        assert (verdict.mistake, verdict.score) == ("bare-parameter", 2.75)


def test_a_swapped_table_that_is_looked_up_is_told_that_its_sizes_are_swapped() -> None:
    class Positions(nn.Module):
        def __init__(self, max_len: int, d_model: int) -> None:
            super().__init__()
            self.max_len = max_len
            self.table = nn.Embedding(d_model, max_len)

        def forward(self, x: Tensor, offset: int = 0) -> Tensor:
            if offset + x.shape[1] > self.max_len:
                raise ValueError(f"max_len is {self.max_len}")
            rows: Tensor = self.table(torch.arange(offset, offset + x.shape[1], device=x.device))
            return x + rows

    for seed in SEEDS:
        assert verdict_on("learned-position", Positions, seed).mistake == "sizes-swapped-and-looked-up"


def test_frequencies_as_the_hint_says_but_without_a_device_are_named() -> None:
    def rotary_angles(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
        if head_dim % 2:
            raise ValueError(f"head_dim = {head_dim}")
        frequency: Tensor = base ** (-2 * torch.arange(head_dim // 2) / head_dim)
        return positions[..., None] * frequency

    for seed in SEEDS:
        verdict = verdict_on("rotary-angles", rotary_angles, seed)
        assert (verdict.mistake, lost(verdict)) == ("frequencies-made-on-the-cpu", ["form"])


def test_a_frozen_table_is_the_same_mistake_as_a_detached_one() -> None:
    class Frozen(LearnedPosition):
        def __init__(self, max_len: int, d_model: int) -> None:
            super().__init__(max_len, d_model)
            self.table.weight.requires_grad_(False)

    verdict = verdict_on("learned-position", Frozen)
    assert (verdict.mistake, verdict.score) == ("table-not-trained", 2.5)


def test_two_mistakes_of_a_table_are_both_told() -> None:
    class Positions(LearnedPosition):
        def forward(self, x: Tensor, offset: int = 0) -> Tensor:
            return x + self.table.weight[: x.shape[1]]

    verdict = verdict_on("learned-position", Positions)
    told = set(verdict.message.en.split("\n"))
    assert {message_of("learned-position", slug) for slug in ("offset-ignored", "end-not-checked")} <= told


def test_a_clamped_table_is_told_that_it_should_refuse() -> None:
    class Clamped(LearnedPosition):
        def forward(self, x: Tensor, offset: int = 0) -> Tensor:
            numbers = torch.arange(offset, offset + x.shape[1], device=x.device)
            rows: Tensor = self.table(numbers.clamp(max=self.table.num_embeddings - 1))
            return x + rows

    verdict = verdict_on("learned-position", Clamped)
    assert (verdict.mistake, lost(verdict)) == ("end-not-checked", ["errors"])


def test_a_value_error_without_the_argument_earns_nothing_for_errors() -> None:
    class Vague(LearnedPosition):
        def forward(self, x: Tensor, offset: int = 0) -> Tensor:
            if offset + x.shape[1] > self.table.num_embeddings:
                raise ValueError("too long")
            return super().forward(x, offset)

    verdict = verdict_on("learned-position", Vague)
    assert (verdict.mistake, lost(verdict)) == (None, ["errors"])
    assert "'max_len'" in verdict.message.en


FLOAT32_FREQUENCIES: dict[str, Callable[[Tensor, int, float], Tensor]] = {
    "column-index-as-pair-index": lambda p, d, base: p / base ** (2 * torch.arange(0, d, 2).float() / d),
    "factor-two-missing": lambda p, d, base: p / base ** (torch.arange(d // 2).float() / d),
    "pairs-from-one": lambda p, d, base: p / base ** (torch.arange(2, d + 2, 2).float() / d),
    "multiplied-instead-of-divided": lambda p, d, base: p * base ** (torch.arange(0, d, 2).float() / d),
    "base-ignored": lambda p, d, base: p / 10000 ** (torch.arange(0, d, 2).float() / d),
    "positions-from-one": lambda p, d, base: (p + 1) / base ** (torch.arange(0, d, 2).float() / d),
}


@pytest.mark.parametrize("slug", FLOAT32_FREQUENCIES)
def test_a_mistake_in_the_angles_keeps_its_name_in_float32(slug: str) -> None:
    def rotary_angles(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
        if head_dim % 2:
            raise ValueError(f"head_dim = {head_dim}")
        if positions.is_meta:
            return torch.empty(*positions.shape, head_dim // 2, device="meta")
        return FLOAT32_FREQUENCIES[slug](positions[..., None].float(), head_dim, base)

    for seed in SEEDS:
        assert verdict_on("rotary-angles", rotary_angles, seed).mistake == slug


def test_the_first_tutorial_that_one_finds_loses_only_what_it_lacks() -> None:
    """Repeated angles in halves, no check, no batch: three different faults, each under its own criterion."""

    def rotary_angles(positions: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
        inverse = 1.0 / (base ** (torch.arange(0, head_dim, 2).float() / head_dim))
        return torch.outer(positions.float(), inverse)

    verdict = verdict_on("rotary-angles", rotary_angles)
    assert lost(verdict) == ["form", "batch", "errors"]
    assert message_of("rotary-angles", "width-not-checked") in verdict.message.en


@pytest.mark.parametrize("exercise", ["rotate-adjacent", "rotate-halves"])
def test_products_that_torch_widens_lose_the_dtype_alone(exercise: str) -> None:
    """bfloat16 times float32 is float32 in torch, so the naive line computes well and returns the wrong dtype."""

    def rotate(x: Tensor, angles: Tensor) -> Tensor:
        adjacent = exercise == "rotate-adjacent"
        a, b = (x[..., 0::2], x[..., 1::2]) if adjacent else x.chunk(2, -1)
        a, b = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
        return torch.stack([a, b], -1).flatten(-2) if adjacent else torch.cat([a, b], -1)

    for seed in SEEDS:
        verdict = verdict_on(exercise, rotate, seed)
        assert (verdict.mistake, lost(verdict)) == ("dtype-not-restored", ["form"])


@pytest.mark.parametrize("exercise", ["rotate-adjacent", "rotate-halves"])
def test_cosines_rounded_to_half_precision_are_noticed(exercise: str) -> None:
    """The way of `transformers`: cosine and sine in x's dtype. The task asks for float32 inside."""
    right = EXERCISES[exercise].reference[exercise.replace("-", "_")]

    def rotate(x: Tensor, angles: Tensor) -> Tensor:
        columns = (slice(0, None, 2), slice(1, None, 2))
        if exercise == "rotate-halves":
            columns = (slice(0, x.shape[-1] // 2), slice(x.shape[-1] // 2, None))
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        if x.is_meta or x.dtype not in (torch.bfloat16, torch.float16):
            rotated: Tensor = right(x, angles)
            return rotated
        result = torch.empty_like(x)
        a, b = (x[..., part] for part in columns)
        result[..., columns[0]], result[..., columns[1]] = a * cos - b * sin, a * sin + b * cos
        return result

    for seed in SEEDS:
        verdict = verdict_on(exercise, rotate, seed)
        assert (verdict.mistake, lost(verdict)) == ("half-precision-inside", ["half-precision"])


def test_a_rotation_that_cuts_the_gradient_loses_it_alone() -> None:
    def rotate_adjacent(x: Tensor, angles: Tensor) -> Tensor:
        return rotary.rotate_adjacent(x.data, angles)

    verdict = verdict_on("rotate-adjacent", rotate_adjacent)
    assert (verdict.mistake, lost(verdict)) == ("no-gradient", ["gradient"])


class Attention(nn.Module):
    """As a student writes it, with torch's own attention; `rotate` and `positions_of` can be replaced."""

    rotate = staticmethod(rotary.rotate_adjacent)

    def __init__(self, d_model: int, n_heads: int, base: float = 10000.0) -> None:
        super().__init__()
        self.n_heads, self.base = n_heads, base
        self.output, self.value = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.key, self.query = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def positions_of(self, x: Tensor, positions: Tensor | None) -> Tensor:
        return torch.arange(x.shape[1], device=x.device) if positions is None else positions

    def forward(self, x: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        batch, length, d_model = x.shape
        q, k, v = (
            layer(x).view(batch, length, self.n_heads, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        angles = rotary.rotary_angles(self.positions_of(x, positions), q.shape[-1], self.base)
        angles = angles if angles.dim() == 2 else angles[:, None]
        mixed = F.scaled_dot_product_attention(self.rotate(q, angles), self.rotate(k, angles), v, attn_mask=mask)
        output: Tensor = self.output(mixed.transpose(1, 2).reshape(batch, length, d_model))
        return output


def test_layers_made_in_another_order_are_right() -> None:
    for seed in SEEDS:
        verdict = verdict_on("rotary-attention", Attention, seed)
        assert verdict.score == verdict.max_score, verdict.message.en


def test_a_shift_of_all_positions_is_right_because_it_changes_nothing() -> None:
    class Shifted(Attention):
        def positions_of(self, x: Tensor, positions: Tensor | None) -> Tensor:
            return super().positions_of(x, positions) + 100

    for seed in SEEDS:
        assert verdict_on("rotary-attention", Shifted, seed).score == 4


def test_cosines_rounded_to_bfloat16_are_right_inside_attention() -> None:
    """What `transformers` does in a half-precision model moves a result by rounding alone."""

    class Rounded(Attention):
        @staticmethod
        def rotate(x: Tensor, angles: Tensor) -> Tensor:
            cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
            a, b = x[..., 0::2], x[..., 1::2]
            return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)

    for seed in SEEDS:
        verdict = verdict_on("rotary-attention", Rounded, seed)
        assert verdict.score == verdict.max_score, verdict.message.en


def test_float32_queries_beside_bfloat16_values_are_told_the_error() -> None:
    """A rotation that stays in float32 stops torch's attention in a half-precision model, and there only."""

    class Widened(Attention):
        @staticmethod
        def rotate(x: Tensor, angles: Tensor) -> Tensor:
            wide = rotary.rotate_adjacent(x.float(), angles)
            return wide if x.dtype == torch.bfloat16 else wide.to(x.dtype)

    verdict = verdict_on("rotary-attention", Widened)
    assert set(lost(verdict)) == {"form", "half-precision"}
    assert "dtype" in verdict.message.en


def test_two_mistakes_of_attention_are_both_told() -> None:
    class Halves(Attention):
        rotate = staticmethod(rotary.rotate_halves)

        def forward(self, x: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
            return super().forward(x, positions, None)

    verdict = verdict_on("rotary-attention", Halves)
    assert verdict.mistake == "halves-instead-of-neighbours"
    assert [criterion.name for criterion in verdict.criteria if criterion.name == "mask" and criterion.score == 0]


@pytest.mark.parametrize("exercise", ["learned-position", "rotary-attention"])
def test_a_regrade_finds_the_same_even_when_the_first_weights_show(exercise: str) -> None:
    """A module whose weights can't be loaded by name answers from its first, random weights."""
    (slug,) = {"another-name", "other-names"} & {mistake.slug for mistake in EXERCISES[exercise].mistakes}
    (wrong,) = next(m for m in EXERCISES[exercise].mistakes if m.slug == slug).answers.values()
    torch.manual_seed(1)
    first = verdict_on(exercise, wrong)
    torch.manual_seed(2)
    assert verdict_on(exercise, wrong) == first
    assert first.mistake == slug


CASE = Case("Module", (3, 4))


def test_states_are_compared_by_names_shapes_and_dtypes() -> None:
    right = Returned({"a": torch.zeros(2, 3), "b": torch.zeros(4)})
    assert same_state(CASE, right, Returned({"b": torch.ones(4), "a": torch.ones(2, 3)})) is None
    for wrong, said in (
        ({"a": torch.zeros(2, 3)}, "missing: b"),
        ({**right.value, "c": torch.zeros(1)}, "not asked for: c"),
        ({**right.value, "a": torch.zeros(3, 2)}, "a is float32 (3, 2)"),
        ({**right.value, "a": torch.zeros(2, 3).double()}, "a is float64 (2, 3)"),
        ({**right.value, "a": None}, "a is NoneType"),
        (None, "missing: a, b"),
    ):
        text = same_state(CASE, right, Returned(wrong))
        assert text is not None
        assert said in text.en
        assert text.zh != text.en
    assert same_state(CASE, right, Raised(("TypeError",), "no such argument")) is not None


def test_gradients_are_compared_by_name() -> None:
    compare = gradients_within(Tolerance(0.1, "for the test"))
    right = Returned({"a": torch.zeros(2), "b": None})
    assert compare(CASE, right, Returned({"a": torch.full((2,), 0.05), "b": None, "c": None})) is None
    for wrong, said in (
        ({"a": torch.ones(2), "b": None}, "the gradient of a is off"),
        ({"a": None, "b": None}, "no gradient arrives at a"),
        ({"b": None}, "has no a that a gradient could reach"),
        ({"a": torch.zeros(2), "b": torch.zeros(2)}, "a gradient arrives at b"),
        ("nonsense", "has no a that a gradient could reach"),
    ):
        text = compare(CASE, right, Returned(wrong))
        assert text is not None
        assert said in text.en
        assert text.zh != text.en
    assert compare(CASE, right, Raised(("RuntimeError",), "no graph")) is not None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("exercise", [exercise.id for exercise in LESSON[:-1]])
def test_reference_alternatives_and_mistakes_on_the_gpu(exercise: str) -> None:
    declared = EXERCISES[exercise]
    (name,) = declared.functions
    for answers in (declared.reference, *declared.alternatives.values()):
        verdict = judge_here(EXERCISES, exercise, [answers[name]], SEEDS[0], "cuda")
        assert verdict.score == verdict.max_score, verdict.message.en
    for mistake in declared.mistakes:
        verdict = judge_here(EXERCISES, exercise, [mistake.answers[name]], SEEDS[0], "cuda")
        assert verdict.mistake == mistake.slug
