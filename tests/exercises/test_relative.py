"""Lesson 06: what its cases cover, its own comparisons, and answers as students write them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from autograder.examiner.judge import judge_here
from autograder.exercises import EXERCISES
from autograder.exercises.comparisons import Tolerance, values_within
from autograder.exercises.declaration import Case, Raised, Returned
from autograder.exercises.relative import EXERCISES as LESSON
from autograder.exercises.relative_bias import clear_of_edges
from autograder.exercises.relative_comparisons import form_if_values_can_be_read, same_mask, without_future
from autograder.reference import relative
from autograder.results import Verdict
from tests.exercises import examinations
from tests.exercises.examinations import SEEDS, cases_of, lost, message_of


def verdict_on(exercise: str, answer: Any, seed: int = SEEDS[0]) -> Verdict:
    return examinations.verdict_on(exercise, [answer], seed)


def test_the_lesson_has_its_nine_exercises_in_order() -> None:
    assert [exercise.id for exercise in LESSON] == [
        "relative-distance",
        "t5-bucket",
        "t5-bias",
        "alibi-slopes",
        "alibi-bias",
        "relative-shift",
        "transformer-xl-scores",
        "deberta-scores",
        "quiz-relative",
    ]
    assert all(len(exercise.alternatives) >= 4 for exercise in LESSON[:-1])
    assert all(len(exercise.mistakes) >= 12 for exercise in LESSON[:-1])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise", ["relative-distance", "alibi-bias"])
def test_fewer_queries_than_keys_are_asked_and_one_query_alone(exercise: str, seed: int) -> None:
    lengths = [tuple((*case.args, *case.kwargs.values())[-2:]) for case in cases_of(exercise, seed)]
    assert any(q == k > 2 for q, k in lengths)
    assert sum(1 < q < k for q, k in lengths) >= 2
    assert any(q == 1 < k for q, k in lengths)


def _settings(case: Case) -> tuple[bool, int, int]:
    names = ("bidirectional", "n_buckets", "max_distance")
    given = dict(zip(names, case.args[1:], strict=False)) | dict(case.kwargs)
    return given.get("bidirectional", True), given.get("n_buckets", 32), given.get("max_distance", 128)


@pytest.mark.parametrize("seed", SEEDS)
def test_buckets_are_asked_everywhere_but_where_rounding_decides(seed: int) -> None:
    asked: dict[tuple[bool, int, int], set[int]] = {}
    dims = set()
    for case in cases_of("t5-bucket", seed):
        distance = case.args[0]
        dims.add(distance.dim())
        asked.setdefault(_settings(case), set()).update(distance.flatten().tolist())
        assert all(clear_of_edges(abs(d), *_settings(case)) for d in distance.flatten().tolist())
    assert dims >= {0, 1, 2, 3}
    assert {*range(-15, 16), *range(-31, -16), *range(17, 32)} <= asked[True, 32, 128]
    assert not {16, -16, 32, -32, 64, -64} & asked[True, 32, 128]
    assert max(map(max, asked.values())) > 999
    odd = [n // 2 if both else n for both, n, _ in asked if (n // 2 if both else n) % 2]
    assert len(odd) >= 2
    assert {4} <= {n for both, n, _ in asked if both}
    assert {2} <= {n for both, n, _ in asked if not both}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bias_is_asked_with_sizes_that_differ_and_past_its_largest_distance(seed: int) -> None:
    past = 0
    for case in cases_of("t5-bias", seed):
        forward = [step for step in case.steps if step.do == "forward"]
        if forward:
            q, k = forward[0].args
            assert case.args[0] not in (q, k)
            assert all(clear_of_edges(steps, *_settings(case)) for steps in range(k))
            past += k > _settings(case)[2]
    assert past >= 3


@pytest.mark.parametrize("seed", SEEDS)
def test_sizes_of_scores_all_differ(seed: int) -> None:
    for case in cases_of("transformer-xl-scores", seed):
        (batch, heads, q, d), k = case.args[0].shape, case.args[1].shape[-2]
        assert len({batch, heads, k, d}) == 4
        assert q in (1, k) or len({batch, heads, q, k, d}) == 5
        assert case.tag == "values" or q < k
    for case in cases_of("deberta-scores", seed):
        batch, heads, n, d = case.args[0].shape
        assert len({batch, heads, n, d}) == 4
        assert len({n, 2 * case.args[-1], d}) == 3
    spans = [case.args[0].shape[-2] - case.args[-1] for case in cases_of("deberta-scores", seed) if case.tag == "far"]
    assert min(spans) > 0
    for case in cases_of("relative-shift", seed):
        sizes = case.args[0].shape
        assert case.tag in ("values", "dtype") or len(set(sizes)) == len(sizes)


@pytest.mark.parametrize("exercise", ["t5-bucket", "relative-shift", "transformer-xl-scores", "deberta-scores"])
def test_one_case_is_on_the_accelerator(exercise: str) -> None:
    assert [case.device for case in cases_of(exercise, 0, "cuda")].count("cuda") == 2
    assert [case.device for case in cases_of(exercise, 0)].count("meta") == 1


@pytest.mark.parametrize("exercise", ["alibi-slopes", "alibi-bias", "transformer-xl-scores", "deberta-scores"])
def test_a_nearly_right_answer_is_not_given_the_name_of_a_mistake(exercise: str) -> None:
    (reference,) = EXERCISES[exercise].reference.values()
    for seed in SEEDS:
        verdict = verdict_on(exercise, lambda *args: reference(*args) * 1.01, seed)
        assert verdict.score < verdict.max_score
        assert verdict.mistake is None


# --- Comparisons ------------------------------------------------------------------------------------------------------

CASE = Case("scores", (3, 4))


def test_what_stands_in_the_future_does_not_count() -> None:
    compare = without_future(values_within(Tolerance(1e-6, "for the test")))
    right = torch.arange(12.0).reshape(3, 4)  # the last 3 of 4 positions: three places are the future
    for value in (math.nan, math.inf, -math.inf, 0.0, 7.0):
        other = right.clone()
        other[0, 2], other[0, 3], other[1, 3] = value, value, value
        assert compare(CASE, Returned(right), Returned(other)) is None
    for place in ((0, 1), (1, 2), (2, 3)):
        other = right.clone()
        other[place] += 1
        found = compare(CASE, Returned(right), Returned(other))
        assert found is not None
        assert str(place) in found.en
    assert compare(CASE, Returned(right), Returned(right[:2])) is not None
    assert compare(CASE, Returned(right), Returned([1.0])) is not None
    assert compare(CASE, Returned(right), Raised(("ValueError",), "no")) is not None


def test_masks_are_told_apart_by_what_stands_there() -> None:
    scores = torch.arange(1.0, 13.0).reshape(3, 4)
    future = torch.ones(3, 4, dtype=torch.bool).triu(2)
    ways = {value: scores.masked_fill(future, value) for value in (-math.inf, -1e9, 0.0, math.nan, 5.0)}
    for expected, a in ways.items():
        for observed, b in ways.items():
            found = same_mask(CASE, Returned(a), Returned(b))
            assert (found is None) == (expected is observed)
            assert found is None or ("(0, 2)" in found.en and "(0, 2)" in found.zh)
    assert same_mask(CASE, Returned(ways[-math.inf]), Returned(2 * ways[-math.inf])) is None
    for nonsense in (scores[:2], "text", scores.to(torch.complex64), None):
        assert same_mask(CASE, Returned(scores), Returned(nonsense)) is not None
    assert same_mask(CASE, Returned(scores), Raised(("ValueError",), "no")) is not None
    meta = Returned(torch.empty(3, 4, device="meta"))
    assert same_mask(CASE, meta, meta) is None


def test_reading_numbers_is_forgiven_where_there_are_none() -> None:
    right = Returned(torch.empty(3, dtype=torch.int64, device="meta"))
    reads = Raised(("NotImplementedError",), "Cannot copy out of meta tensor; no data!")
    there = Case("t5_bucket", (torch.zeros(3),), device="meta")
    assert form_if_values_can_be_read(there, right, reads) is None
    assert form_if_values_can_be_read(Case("t5_bucket", (torch.zeros(3),)), right, reads) is not None
    assert form_if_values_can_be_read(there, right, Raised(("TypeError",), "no")) is not None
    assert form_if_values_can_be_read(there, right, Returned(torch.zeros(3, dtype=torch.int64))) is not None


# --- Answers as students write them -----------------------------------------------------------------------------------


def test_deberta_in_the_order_of_the_code_is_told_where_it_comes_from() -> None:
    """By square brackets, as one writes it; the message names the library and the paper."""

    def deberta_scores(q: Tensor, k: Tensor, rq: Tensor, rk: Tensor, max_distance: int) -> Tensor:
        n, d = q.shape[-2:]
        places = torch.arange(n, device=q.device)
        delta = (places[:, None] - places[None, :] + max_distance).clamp(0, 2 * max_distance - 1)
        to = torch.einsum("bhid,hijd->bhij", q, rk[:, delta])
        back = torch.einsum("bhjd,hijd->bhij", k, rq[:, delta])
        return (q @ k.mT + to + back) / math.sqrt(3 * d)

    for seed in SEEDS:
        verdict = verdict_on("deberta-scores", deberta_scores, seed)
        assert (verdict.mistake, verdict.score) == ("index-order-of-the-code", 1.75)
        assert lost(verdict) == ["from-position", "values", "far", "gradient"]
        assert "`transformers`" in verdict.message.en
        assert "`transformers`" in verdict.message.zh


def _xl(value: float, **where: Any) -> Callable[..., Tensor]:
    """With another number in the future, or a mask made elsewhere."""

    def transformer_xl_scores(q: Tensor, k: Tensor, r: Tensor, u: Tensor, v: Tensor) -> Tensor:
        content = torch.einsum("bhid,bhjd->bhij", q + u[None, :, None], k)
        position = relative.relative_shift(torch.einsum("bhid,hjd->bhij", q + v[None, :, None], r))
        scores = (content + position) / q.shape[-1] ** 0.5
        n, m = scores.shape[-2:]
        future = torch.ones(n, m, **({"device": q.device} | where)).triu(m - n + 1).bool()
        masked: Tensor = scores.masked_fill(future, value)
        return masked

    return transformer_xl_scores


def test_a_finite_mask_costs_the_future_alone() -> None:
    for seed in SEEDS:
        for value in (-1e9, -1e30, torch.finfo(torch.float32).min):
            verdict = verdict_on("transformer-xl-scores", _xl(value), seed)
            assert (verdict.mistake, lost(verdict)) == ("masked-with-a-finite-number", ["future"])
        assert verdict_on("transformer-xl-scores", _xl(-math.inf), seed).score == 3


def test_a_mask_made_on_the_cpu_is_named() -> None:
    verdict = verdict_on("transformer-xl-scores", _xl(-math.inf, device="cpu"))
    assert (verdict.mistake, lost(verdict)) == ("mask-made-on-the-cpu", ["form"])


def test_two_mistakes_of_transformer_xl_are_both_told() -> None:
    def transformer_xl_scores(q: Tensor, k: Tensor, r: Tensor, u: Tensor, v: Tensor) -> Tensor:
        content, position = (q + u[:, None]) @ k.mT, (q + v[:, None]) @ r.mT
        return (content + position) / math.sqrt(q.shape[-1])

    verdict = verdict_on("transformer-xl-scores", transformer_xl_scores)
    told = set(verdict.message.en.split("\n"))
    assert {message_of("transformer-xl-scores", slug) for slug in ("not-shifted", "future-not-masked")} <= told


def test_a_shift_for_as_many_queries_as_keys_loses_the_memory_alone() -> None:
    """The row for distance 0 is taken to be the first query's own."""

    def relative_shift(scores: Tensor) -> Tensor:
        q, k = scores.shape[-2:]
        rows = [scores[..., i, :].roll(i + 1 - k, dims=-1) for i in range(q)]
        return torch.stack(rows, dim=-2)

    for seed in SEEDS:
        verdict = verdict_on("relative-shift", relative_shift, seed)
        assert verdict.mistake == "memory-forgotten"
        assert set(lost(verdict)) == {"cache", "gradient"}


def test_blooms_bias_is_told_that_it_needs_a_mask() -> None:
    def alibi_bias(n_heads: int, query_len: int, key_len: int) -> Tensor:
        return (relative.alibi_slopes(n_heads)[:, None] * torch.arange(key_len))[:, None].repeat(1, query_len, 1)

    for seed in SEEDS:
        verdict = verdict_on("alibi-bias", alibi_bias, seed)
        assert verdict.mistake == "number-of-the-key"
        assert "BLOOM" in verdict.message.en
        assert "softmax" in verdict.message.zh


def test_wrong_slopes_keep_their_name_in_the_bias() -> None:
    def alibi_bias(n_heads: int, query_len: int, key_len: int) -> Tensor:
        slopes = torch.tensor([2 ** (-8 * (h + 1) / n_heads) for h in range(n_heads)])
        return -slopes[:, None, None] * relative.relative_distance(query_len, key_len).abs()

    verdict = verdict_on("alibi-bias", alibi_bias)
    assert (verdict.mistake, lost(verdict)) == ("plain-formula-for-every-number", ["others"])


def test_a_bucket_without_an_end_is_named_and_loses_only_what_is_far() -> None:
    def t5_bucket(d: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128) -> Tensor:
        start = torch.zeros_like(d)
        if bidirectional:
            n_buckets //= 2
            start = (d > 0) * n_buckets
            d = d.abs()
        else:
            d = torch.where(d < 0, -d, torch.zeros_like(d))
        exact = n_buckets // 2
        far = exact + torch.log(d / exact) / math.log(max_distance / exact) * (n_buckets - exact)
        return start + torch.where(d < exact, d, far.long())

    for seed in SEEDS:
        verdict = verdict_on("t5-bucket", t5_bucket, seed)
        assert (verdict.mistake, lost(verdict)) == ("last-bucket-not-kept", ["end", "one-way", "settings"])


class Bias(nn.Module):
    """As a student writes it; `distance` and `passed_on` can be replaced."""

    def __init__(self, n_heads: int, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128) -> None:
        super().__init__()
        self.table = nn.Embedding(n_buckets, n_heads)
        self.settings = self.passed_on(bidirectional, n_buckets, max_distance)

    def passed_on(self, *settings: Any) -> tuple[Any, ...]:
        return settings

    def distance(self, query_len: int, key_len: int) -> Tensor:
        return relative.relative_distance(query_len, key_len)

    def forward(self, query_len: int, key_len: int) -> Tensor:
        rows: Tensor = self.table(relative.t5_bucket(self.distance(query_len, key_len), *self.settings))
        return rows.permute(2, 0, 1)


def test_the_plain_bias_is_right() -> None:
    for seed in SEEDS:
        assert verdict_on("t5-bias", Bias, seed).score == 2


def test_query_minus_key_is_not_taken_for_a_wrong_bucket() -> None:
    class Turned(Bias):
        def distance(self, query_len: int, key_len: int) -> Tensor:
            return -super().distance(query_len, key_len)

    for seed in SEEDS:
        verdict = verdict_on("t5-bias", Turned, seed)
        assert verdict.mistake == "distances-backwards"


def test_a_regrade_finds_the_same_even_when_the_first_weights_show() -> None:
    """A module whose weights can't be loaded by name answers from its first, random weights."""
    wrong = next(m for m in EXERCISES["t5-bias"].mistakes if m.slug == "another-name").answers["T5Bias"]
    torch.manual_seed(1)
    first = verdict_on("t5-bias", wrong)
    torch.manual_seed(2)
    assert verdict_on("t5-bias", wrong) == first
    assert (first.mistake, lost(first)) == ("another-name", ["state"])


def test_scores_that_read_a_single_number_stay_right_without_a_gpu() -> None:
    def t5_bucket(d: Tensor, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128) -> Tensor:
        farthest = max((abs(x) for x in d.flatten().tolist()), default=0)
        assert farthest >= 0
        return relative.t5_bucket(d, bidirectional, n_buckets, max_distance)

    assert verdict_on("t5-bucket", t5_bucket).score == 3


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
