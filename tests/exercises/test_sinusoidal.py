"""Lesson 02: what its cases cover, and mistakes as students write them, alone and two at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from autograder.examiner.judge import judge_here
from autograder.exercises import EXERCISES
from autograder.exercises.sinusoidal import EXERCISES as LESSON
from autograder.reference import sinusoidal
from autograder.results import Verdict
from tests.exercises import examinations
from tests.exercises.examinations import SEEDS, cases_of, message_of


def verdict_on(exercise: str, answer: Callable[..., Any], seed: int = SEEDS[0]) -> Verdict:
    return examinations.verdict_on(exercise, [answer], seed)


def test_the_lesson_has_its_seven_exercises_in_order() -> None:
    assert [exercise.id for exercise in LESSON] == [
        "pair-frequencies",
        "encode-position",
        "sinusoidal-encoding",
        "wavelengths",
        "shift-matrix",
        "position-similarity",
        "quiz-sinusoidal",
    ]
    assert all(len(exercise.alternatives) >= 3 for exercise in LESSON[:-1])


@pytest.mark.parametrize("seed", SEEDS)
def test_table_cases_have_unequal_sizes_and_go_past_4096(seed: int) -> None:
    cases = cases_of("sinusoidal-encoding", seed)
    assert all(case.args[0] != case.args[1] for case in cases if not case.error_names)
    assert max(case.args[0] for case in cases) > 4096
    assert any(case.args[0] < case.args[1] for case in cases)
    assert {case.kwargs.get("dtype") for case in cases} == {None, torch.float64, torch.bfloat16, torch.float16}


@pytest.mark.parametrize("seed", SEEDS)
def test_positions_have_gaps_and_go_past_4096(seed: int) -> None:
    positions = sorted(case.args[0] for case in cases_of("encode-position", seed) if case.tag in {"values", "far"})
    assert positions[:2] == [0, 1]
    assert positions[-2] > 4096
    assert all(later - earlier > 1 for earlier, later in itertools.pairwise(positions[1:]))


@pytest.mark.parametrize("seed", SEEDS)
def test_similarity_cases_are_never_square(seed: int) -> None:
    assert all(case.args[0].shape[0] != case.args[0].shape[1] for case in cases_of("position-similarity", seed))


def test_one_case_is_on_the_accelerator() -> None:
    devices = [case.kwargs.get("device") for case in cases_of("sinusoidal-encoding", 0, "cuda")]
    assert devices.count("cuda") == 2
    assert [case.device for case in cases_of("position-similarity", 0, "cuda")].count("cuda") == 2
    assert "meta" in [case.kwargs.get("device") for case in cases_of("sinusoidal-encoding", 0)]


def frequencies_float32(d_model: int, base: float = 10000.0) -> Tensor:
    return 1.0 / base ** (torch.arange(0, d_model, 2).float() / d_model)


def float32_table(angles: Callable[[Tensor, int, float], Tensor]) -> Callable[..., Tensor]:
    """A table as tutorials write it: float32 throughout, filled through slices."""

    def sinusoidal_encoding(
        n_positions: int,
        d_model: int,
        base: float = 10000.0,
        device: Any = None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        sinusoidal.pair_frequencies(d_model)
        angle = angles(torch.arange(n_positions).float().unsqueeze(1), d_model, base)
        table = torch.zeros(n_positions, d_model)
        table[:, 0::2] = torch.sin(angle)
        table[:, 1::2] = torch.cos(angle)
        return table.to(device=device, dtype=dtype)

    return sinusoidal_encoding


FLOAT32_MISTAKES: dict[str, Callable[[Tensor, int, float], Tensor]] = {
    "column-index-as-pair-index": lambda p, d, base: (
        p * torch.exp(torch.arange(0, d, 2).float() * 2 * (-math.log(base) / d))
    ),
    "multiplied-instead-of-divided": lambda p, d, base: p * base ** (torch.arange(0, d, 2).float() / d),
    "one-pair-too-few-in-the-spacing": lambda p, d, base: p * base ** -torch.linspace(0, 1, d // 2),
    "pairs-from-one": lambda p, d, base: p / base ** (torch.arange(2, d + 2, 2) / d),
    "factor-two-missing": lambda p, d, base: p / torch.pow(base, torch.arange(d // 2) / d),
    "frequencies-all-equal": lambda p, d, base: p / torch.pow(base, torch.arange(0, d, 2) // d),
    "base-ignored": lambda p, d, base: p * torch.exp(-torch.arange(0, d, 2).float() * math.log(10000.0) / d),
    "mixed-logarithms": lambda p, d, base: p * torch.exp(torch.arange(0, d, 2).float() * (-math.log10(base) / d)),
    "positions-from-one": lambda p, d, base: (p + 1) * frequencies_float32(d, base),
    "degrees-instead-of-radians": lambda p, d, base: torch.deg2rad(p * frequencies_float32(d, base)),
    "slowest-pair-first": lambda p, d, base: p * frequencies_float32(d, base).flip(0),
    "power-before-product": lambda p, d, base: p * (1 / base**2 * torch.arange(d // 2) / d),
    "all-columns-into-half": lambda p, d, base: p / base ** (torch.arange(d) / d),
}


@pytest.mark.parametrize("slug", FLOAT32_MISTAKES)
def test_a_mistake_keeps_its_name_in_float32(slug: str) -> None:
    for seed in SEEDS:
        verdict = verdict_on("sinusoidal-encoding", float32_table(FLOAT32_MISTAKES[slug]), seed)
        assert verdict.mistake == slug
        assert verdict.message.en.startswith(message_of("sinusoidal-encoding", slug))


def own_exponents(
    n_positions: int, d_model: int, base: float = 10000.0, device: Any = None, dtype: Any = None
) -> Tensor:
    """The best-known faulty loop: 2 * i in the exponent although i already steps over columns, and no check."""
    table = torch.zeros(n_positions, d_model)
    for i in range(0, d_model, 2):
        for p in range(n_positions) if n_positions < 100 else ():
            table[p, i] = math.sin(p / base ** (2 * i / d_model))
            table[p, i + 1] = math.cos(p / base ** (2 * (i + 1) / d_model))
    return table


def test_two_mistakes_are_both_told() -> None:
    for seed in SEEDS:
        verdict = verdict_on("sinusoidal-encoding", own_exponents, seed)
        messages = {criterion.name: criterion.message for criterion in verdict.criteria}
        assert verdict.mistake == "every-column-its-own-pair"
        for name, slug in (
            ("values", "every-column-its-own-pair"),
            ("dtype", "dtype-ignored"),
            ("device", "device-ignored"),
            ("errors", "width-not-checked"),
        ):
            assert messages[name].en == message_of("sinusoidal-encoding", slug)  # type: ignore[union-attr]
            assert message_of("sinusoidal-encoding", slug) in verdict.message.en


def test_a_mistake_in_values_and_a_forgotten_check_are_both_told() -> None:
    def encode_position(position: int, d_model: int, base: float = 10000.0) -> Tensor:
        angle = position / base ** (torch.arange(0, d_model, 2) / d_model)
        return torch.cat([angle.sin(), angle.cos()])

    verdict = verdict_on("encode-position", encode_position)
    assert verdict.mistake == "halves-instead-of-neighbours"
    assert verdict.message.en.split("\n") == [
        message_of("encode-position", "halves-instead-of-neighbours"),
        message_of("encode-position", "width-not-checked"),
    ]
    assert verdict.score == 0.25


def test_wrong_values_and_a_wrong_dtype_are_both_told() -> None:
    verdict = verdict_on("pair-frequencies", lambda d, base=1e4: 1 / base ** (torch.arange(0, d, 2) * 2 / d))
    assert verdict.mistake == "column-index-as-pair-index"
    assert message_of("pair-frequencies", "float32-frequencies") in verdict.message.en
    assert message_of("pair-frequencies", "width-not-checked") in verdict.message.en
    assert verdict.score == 0


def test_an_unknown_mistake_beside_a_known_one_is_told_too() -> None:
    def shift_matrix(offset: int, d_model: int, base: float = 10000.0) -> Tensor:
        if offset > 1000:
            raise IndexError("the table has 1000 rows")
        return sinusoidal.shift_matrix(-offset, d_model, base)

    verdict = verdict_on("shift-matrix", shift_matrix)
    assert verdict.mistake == "turns-the-wrong-way"
    assert verdict.message.en.startswith(message_of("shift-matrix", "turns-the-wrong-way"))
    assert {criterion.name: criterion.score for criterion in verdict.criteria}["form"] == 0
    assert "the table has 1000 rows" in verdict.message.en


def test_frequencies_inherited_from_another_exercise_are_named_there_too() -> None:
    def wrong(d_model: int, base: float = 10000.0) -> Tensor:
        sinusoidal.pair_frequencies(d_model)
        return base ** (-torch.arange(0, d_model, 2).double() * 2 / d_model)

    def encode_position(position: int, d_model: int, base: float = 10000.0) -> Tensor:
        angle = position * wrong(d_model, base)
        return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten().float()

    for exercise, answer in (
        ("pair-frequencies", wrong),
        ("encode-position", encode_position),
        ("wavelengths", lambda d_model, base=1e4: 2 * math.pi / wrong(d_model, base)),
    ):
        assert verdict_on(exercise, answer).mistake == "column-index-as-pair-index"


def test_what_costs_most_is_told_first() -> None:
    def zeros(n_positions: int, d_model: int, base: float = 1e4, device: Any = None, dtype: Any = None) -> Tensor:
        return torch.zeros(n_positions, d_model)

    verdict = verdict_on("sinusoidal-encoding", zeros)
    assert verdict.mistake == "width-not-checked"
    assert verdict.message.en.startswith("values: sinusoidal_encoding(")
    assert message_of("sinusoidal-encoding", "width-not-checked") in verdict.message.en


def test_an_error_that_never_changes_is_told_once() -> None:
    def broken(*args: Any, **kwargs: Any) -> Tensor:
        raise KeyError("rows")

    verdict = verdict_on("sinusoidal-encoding", broken)
    assert verdict.message.en.count("KeyError") == 1
    assert all(criterion.message for criterion in verdict.criteria)


@pytest.mark.parametrize("exercise", [e.id for e in LESSON[:-1]])
def test_a_nearly_right_answer_is_not_given_the_name_of_a_mistake(exercise: str) -> None:
    (reference,) = EXERCISES[exercise].reference.values()

    def nearly(*args: Any, **kwargs: Any) -> Tensor:
        right = reference(*args, **kwargs)
        return right if right.is_meta else right * 1.01

    for seed in SEEDS:
        verdict = verdict_on(exercise, nearly, seed)
        assert verdict.score < verdict.max_score
        assert verdict.mistake is None


@pytest.mark.parametrize("right_way_on_the_device", ["item", "tolist"])
def test_reading_values_on_the_device_without_values(right_way_on_the_device: str) -> None:
    """Does a right answer lose the device's points because the meta device has no values to read?"""

    def sinusoidal_encoding(
        n_positions: int, d_model: int, base: float = 1e4, device: Any = None, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        frequency = sinusoidal.pair_frequencies(d_model, base).to(device)
        numbers = [f.item() for f in frequency] if right_way_on_the_device == "item" else frequency.cpu().tolist()
        position = torch.arange(n_positions, device=device)
        return torch.stack([wave(position * f) for f in numbers for wave in (torch.sin, torch.cos)], dim=-1).to(dtype)

    verdict = verdict_on("sinusoidal-encoding", sinusoidal_encoding)
    lost = [criterion.name for criterion in verdict.criteria if criterion.message]
    assert lost == ([] if right_way_on_the_device == "item" else ["device"])


def test_a_function_without_the_device_argument_loses_only_the_devices_points() -> None:
    def sinusoidal_encoding(n_positions: int, d_model: int, base: float = 1e4, dtype: Any = torch.float32) -> Tensor:
        return sinusoidal.sinusoidal_encoding(n_positions, d_model, base, dtype=dtype)

    verdict = verdict_on("sinusoidal-encoding", sinusoidal_encoding)
    assert [criterion.name for criterion in verdict.criteria if criterion.message] == ["device"]
    assert "device" in verdict.message.en
    assert verdict.score == 3.75


@pytest.mark.parametrize("error", [AssertionError, TypeError, KeyError])
def test_another_error_than_value_error_is_no_refusal(error: type[Exception]) -> None:
    def pair_frequencies(d_model: int, base: float = 10000.0) -> Tensor:
        if d_model % 2 or d_model < 2:
            raise error(f"d_model = {d_model}")
        return sinusoidal.pair_frequencies(d_model, base)

    verdict = verdict_on("pair-frequencies", pair_frequencies)
    assert (verdict.score, verdict.mistake) == (1.5, "width-not-checked")


def test_a_value_error_that_names_nothing_is_told_what_to_name() -> None:
    def pair_frequencies(d_model: int, base: float = 10000.0) -> Tensor:
        if d_model % 2 or d_model < 2:
            raise ValueError("bad argument")
        return sinusoidal.pair_frequencies(d_model, base)

    verdict = verdict_on("pair-frequencies", pair_frequencies)
    assert (verdict.score, verdict.mistake) == (1.5, None)
    assert "'d_model'" in verdict.message.en


def test_refusing_the_smallest_width_that_works_is_noticed() -> None:
    def pair_frequencies(d_model: int, base: float = 10000.0) -> Tensor:
        if d_model <= 2:
            raise ValueError(f"d_model = {d_model} is too small")
        return sinusoidal.pair_frequencies(d_model, base)

    verdict = verdict_on("pair-frequencies", pair_frequencies)
    assert verdict.score == 1.5
    assert "pair_frequencies(2)" in verdict.message.en


def test_always_raising_a_fine_value_error_earns_nothing() -> None:
    def pair_frequencies(d_model: int, base: float = 10000.0) -> Tensor:
        raise ValueError(f"d_model = {d_model}")

    assert verdict_on("pair-frequencies", pair_frequencies).score == 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("exercise", [e.id for e in LESSON[:-1]])
def test_reference_alternatives_and_mistakes_on_the_gpu(exercise: str) -> None:
    declared = EXERCISES[exercise]
    (name,) = declared.functions
    for answers in (declared.reference, *declared.alternatives.values()):
        verdict = judge_here(EXERCISES, exercise, [answers[name]], SEEDS[0], "cuda")
        assert verdict.score == verdict.max_score, verdict.message.en
    for mistake in declared.mistakes:
        verdict = judge_here(EXERCISES, exercise, [mistake.answers[name]], SEEDS[0], "cuda")
        assert verdict.mistake == mistake.slug
