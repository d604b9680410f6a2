"""Lesson 03: what its cases cover, chance in train mode, and mistakes as students write them, alone and together."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.examiner.judge import judge_here
from autograder.exercises import EXERCISES
from autograder.exercises.declaration import Case, Returned, Step, forward, mode
from autograder.exercises.embedding import ALIKE, CHANCE
from autograder.exercises.embedding import EXERCISES as LESSON
from autograder.exercises.embedding_comparisons import names_alike, names_and_shapes, same_chances
from autograder.reference.embedding import SinusoidalPosition, TokenEmbedding, TransformerInput
from autograder.reference.sinusoidal import sinusoidal_encoding
from autograder.results import Verdict
from tests.exercises import examinations
from tests.exercises.examinations import SEEDS, cases_of, lost, message_of

MODULES = ["token-embedding", "sinusoidal-position", "transformer-input"]


def verdict_on(exercise: str, answer: Any, seed: int = SEEDS[0]) -> Verdict:
    return examinations.verdict_on(exercise, [answer], seed)


def calls(case: Case) -> list[Step]:
    return [step for step in case.steps if step.do == "forward"]


def test_the_lesson_has_its_exercises_in_order() -> None:
    assert [exercise.id for exercise in LESSON] == [*MODULES, "padding-mask", "quiz-embedding"]
    assert all(len(exercise.alternatives) >= 3 for exercise in LESSON[:-1])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise", MODULES)
def test_all_sizes_of_a_case_differ(exercise: str, seed: int) -> None:
    """Batch, length, width and vocabulary; where chance plays a part one sequence is repeated instead."""
    for case in cases_of(exercise, seed):
        for call in calls(case):
            sizes = [*call.args[0].shape, *case.args[:2]] if exercise != "sinusoidal-position" else call.args[0].shape
            assert len(set(sizes)) == len(sizes)


@pytest.mark.parametrize("seed", SEEDS)
def test_padding_ids_are_none_zero_and_others(seed: int) -> None:
    """Each of them where values, zero rows and gradients are looked at, with padding among the tokens."""
    for tags in ({"values"}, {"padding"}, {"gradient"}):
        ids = [case.kwargs.get("padding_id") for case in cases_of("token-embedding", seed) if case.tag in tags]
        assert None in ids
        assert 0 in ids
        assert any(padding_id for padding_id in ids)
    for exercise in ("token-embedding", "transformer-input"):
        for case in cases_of(exercise, seed):
            for call in calls(case):
                padding_id, tokens = case.kwargs.get("padding_id"), call.args[0]
                assert int(tokens.max()) == case.args[0] - 1
                if padding_id is not None:
                    assert int((tokens == padding_id).sum()) >= 2


@pytest.mark.parametrize("seed", SEEDS)
def test_offsets_have_gaps_and_go_past_4096(seed: int) -> None:
    for exercise in ("sinusoidal-position", "transformer-input"):
        offsets = []
        for case in cases_of(exercise, seed):
            if case.tag == "offset":
                call = calls(case)[-1]
                offsets.append(call.args[1] if len(call.args) > 1 else call.kwargs.get("offset", 0))
        assert max(offsets) > 4096
        assert len(set(offsets)) >= 3
        named = [bool(calls(case)[-1].kwargs) for case in cases_of(exercise, seed) if case.tag == "offset"]
        assert set(named) == {True, False}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_last_position_and_the_one_after_it_are_asked_for(seed: int) -> None:
    ends = set()
    for case in cases_of("sinusoidal-position", seed):
        if case.tag == "errors":
            call = calls(case)[-1]
            offset = call.args[1] if len(call.args) > 1 else call.kwargs.get("offset", 0)
            max_len = case.args[1] if len(case.args) > 1 else 5000
            past = offset + call.args[0].shape[1] - max_len
            assert bool(case.error_names) == (past > 0)
            ends.add((offset > 0, min(past, 1)))
    assert ends == {(False, 0), (True, 0), (False, 1), (True, 1)}


def test_one_case_is_on_the_accelerator() -> None:
    for exercise in (*MODULES, "padding-mask"):
        assert [case.device for case in cases_of(exercise, 0, "cuda")].count("cuda") == 2
        assert [case.device for case in cases_of(exercise, 0)].count("meta") == 1


Forward = Callable[[Any, Tensor], Tensor]


class Named(nn.Module):
    """A token embedding whose table has another name."""

    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__()
        self.emb = nn.ModuleList([nn.Embedding(vocab_size, d_model, padding_idx=padding_id)])
        self.d_model = d_model

    def forward(self, tokens: Tensor) -> Tensor:
        found: Tensor = self.emb[0](tokens) * math.sqrt(self.d_model)
        return found


class Inherited(nn.Embedding):
    """A token embedding that is a table itself."""

    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__(vocab_size, d_model, padding_idx=padding_id)

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens) * self.embedding_dim**0.5


@pytest.mark.parametrize("answer", [Named, Inherited])
def test_a_wrong_name_costs_the_points_for_names_only(answer: type[nn.Module]) -> None:
    """Whatever the name is, it is the same mistake, and values and gradients are judged all the same."""
    for seed in SEEDS:
        verdict = verdict_on("token-embedding", answer, seed)
        assert (verdict.mistake, verdict.score, lost(verdict)) == ("other-parameter-name", 2.5, ["names"])


def test_a_wrong_name_and_a_wrong_scale_are_both_told() -> None:
    class Answer(Named):
        def forward(self, tokens: Tensor) -> Tensor:
            found: Tensor = self.emb[0](tokens)
            return found

    verdict = verdict_on("token-embedding", Answer)
    assert verdict.mistake == "unscaled"
    assert verdict.message.en.split("\n") == [
        message_of("token-embedding", "unscaled"),
        message_of("token-embedding", "other-parameter-name"),
    ]
    assert verdict.score == 1.5


def test_a_bare_table_is_told_all_that_it_lacks() -> None:
    """nn.Embedding with the right name: no scale, no padding."""

    class Answer(nn.Module):
        def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
            super().__init__()
            self.table = nn.Embedding(vocab_size, d_model)

        def forward(self, tokens: Tensor) -> Tensor:
            found: Tensor = self.table(tokens)
            return found

    for seed in SEEDS:
        verdict = verdict_on("token-embedding", Answer, seed)
        assert verdict.mistake == "unscaled"
        assert message_of("token-embedding", "padding-id-unused") in verdict.message.en
        assert lost(verdict) == ["values", "padding", "gradient"]


def test_a_frozen_parameter_is_a_parameter() -> None:
    class Answer(SinusoidalPosition):
        def __init__(self, d_model: int, max_len: int = 5000, base: float = 10000.0) -> None:
            super().__init__(d_model, max_len, base)
            del self.encoding
            self.encoding = nn.Parameter(sinusoidal_encoding(max_len, d_model, base), requires_grad=False)

    verdict = verdict_on("sinusoidal-position", Answer)
    assert (verdict.mistake, lost(verdict)) == ("encoding-is-a-parameter", ["names"])


class Tutorial(nn.Module):
    """The class of many tutorials: saved buffer `pe` with the length first, no offset, no check."""

    pe: Tensor

    def __init__(self, d_model: int, max_len: int = 5000, base: float = 10000.0) -> None:
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(base) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        return x + self.pe[: x.size(0)]


def test_the_class_of_many_tutorials_is_told_its_axis_first() -> None:
    for seed in SEEDS:
        verdict = verdict_on("sinusoidal-position", Tutorial, seed)
        assert verdict.mistake == "wrong-axis"
        for slug in ("wrong-axis", "end-unchecked"):
            assert message_of("sinusoidal-position", slug) in verdict.message.en
        assert "pe (" in verdict.message.en
        assert verdict.score <= 1.25


def test_a_forward_without_offset_loses_only_where_there_is_one() -> None:
    class Answer(SinusoidalPosition):
        def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(x)

    verdict = verdict_on("sinusoidal-position", Answer)
    assert lost(verdict) == ["form", "offset", "errors", "input"]
    assert "offset" in verdict.message.en


def test_positions_counted_in_half_precision_are_noticed() -> None:
    """bfloat16 has no 257: a table made in the dtype of x is off by a radian past 256."""

    class Answer(SinusoidalPosition):
        def forward(self, x: Tensor, offset: int = 0) -> Tensor:
            if x.dtype != torch.bfloat16:
                return super().forward(x, offset)
            position = torch.arange(offset, offset + x.shape[1]).to(x.dtype)
            frequency = 10000.0 ** (-torch.arange(0, x.shape[2], 2) / x.shape[2])
            angle = position[:, None] * frequency.to(x.dtype)
            return x + torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)

    assert lost(verdict_on("sinusoidal-position", Answer)) == ["half-precision"]


@pytest.mark.parametrize("error", [IndexError, RuntimeError, AssertionError])
def test_another_error_than_value_error_is_no_refusal(error: type[Exception]) -> None:
    class Answer(SinusoidalPosition):
        def forward(self, x: Tensor, offset: int = 0) -> Tensor:
            try:
                return super().forward(x, offset)
            except ValueError as refusal:
                raise error(str(refusal)) from None

    verdict = verdict_on("sinusoidal-position", Answer)
    assert (verdict.mistake, lost(verdict)) == ("end-unchecked", ["errors"])


def test_a_refusal_has_to_name_max_len_and_its_value() -> None:
    class Answer(SinusoidalPosition):
        def forward(self, x: Tensor, offset: int = 0) -> Tensor:
            if offset + x.shape[1] > self.max_len:
                raise ValueError("the input is too long")
            return super().forward(x, offset)

    verdict = verdict_on("sinusoidal-position", Answer)
    assert (verdict.mistake, lost(verdict)) == (None, ["errors"])
    assert "'max_len'" in verdict.message.en


def built(token: type[nn.Module] = TokenEmbedding, position: type[nn.Module] = SinusoidalPosition) -> type[nn.Module]:
    """An input layer as the lesson asks for it, from the student's earlier modules."""

    class Answer(nn.Module):
        def __init__(
            self, vocab_size: int, d_model: int, max_len: int = 5000, dropout: float = 0.1, padding_id: Any = None
        ) -> None:
            super().__init__()
            self.tokens = token(vocab_size, d_model, padding_id)
            self.position = position(d_model, max_len)
            self.dropout = nn.Dropout(dropout)

        def forward(self, tokens: Tensor, offset: int = 0) -> Tensor:
            found: Tensor = self.dropout(self.position(self.tokens(tokens), offset))
            return found

    return Answer


INHERITED = {
    ("token-embedding", "unscaled"): "embedding-not-scaled",
    ("token-embedding", "scale-divided"): "embedding-scale-divided",
    ("token-embedding", "padding-id-unused"): "padding-not-passed-on",
    ("token-embedding", "float32-forced"): "float32-forced",
    ("sinusoidal-position", "wrong-axis"): "wrong-axis",
    ("sinusoidal-position", "offset-ignored"): "offset-not-passed-on",
    ("sinusoidal-position", "buffer-is-saved"): "position-saved",
    ("sinusoidal-position", "encoding-is-a-parameter"): "position-learns",
    ("sinusoidal-position", "max-len-ignored"): "max-len-not-passed-on",
}


@pytest.mark.parametrize(("exercise", "slug"), INHERITED)
def test_a_mistake_in_an_earlier_module_is_named_in_the_whole_too(exercise: str, slug: str) -> None:
    (wrong,) = (mistake.answers for mistake in EXERCISES[exercise].mistakes if mistake.slug == slug)
    answer = built(token=wrong.get("TokenEmbedding", TokenEmbedding),
                   position=wrong.get("SinusoidalPosition", SinusoidalPosition))  # fmt: skip
    for seed in SEEDS:
        assert verdict_on("transformer-input", answer, seed).mistake == INHERITED[exercise, slug]


def test_the_right_module_under_another_name_is_not_called_a_bare_table() -> None:
    class Answer(nn.Module):
        def __init__(
            self,
            vocab_size: int,
            d_model: int,
            max_len: int = 5000,
            dropout: float = 0.1,
            padding_id: int | None = None,
        ) -> None:
            super().__init__()
            self.embedding = TokenEmbedding(vocab_size, d_model, padding_id)
            self.position = SinusoidalPosition(d_model, max_len)
            self.dropout = nn.Dropout(dropout)

        def forward(self, tokens: Tensor, offset: int = 0) -> Tensor:
            found: Tensor = self.dropout(self.position(self.embedding(tokens), offset))
            return found

    verdict = verdict_on("transformer-input", Answer)
    assert lost(verdict) == ["names"]
    assert "has to be called tokens" in verdict.message.en
    assert "is a bare table" not in verdict.message.en


def test_a_mask_filled_on_the_cpu_is_named() -> None:
    def padding_mask(tokens: Tensor, padding_id: int) -> Tensor:
        mask = torch.ones(tokens.shape, dtype=torch.bool)
        mask[tokens == padding_id] = False
        return mask[:, None, None]

    verdict = verdict_on("padding-mask", padding_mask)
    assert (verdict.mistake, lost(verdict)) == ("mask-made-on-the-cpu", ["form"])


def test_the_modules_of_the_lesson_put_together_are_right() -> None:
    for seed in SEEDS:
        verdict = verdict_on("transformer-input", built(), seed)
        assert verdict.score == verdict.max_score, verdict.message.en


CHANCE_CASE = Case("TransformerInput", (11, 6), steps=(mode(train=True), forward(torch.zeros(512, 3).long())))
SUM = torch.randn(3, 6, generator=torch.Generator().manual_seed(5)).expand(512, -1, -1)


def found_after(change: Callable[[Tensor], Tensor], seed: int) -> Returned:
    torch.manual_seed(seed)
    return Returned(change(SUM))


@pytest.mark.parametrize("share", [0.1, 0.3, 0.4])
def test_right_dropout_is_recognised_whatever_the_random_numbers(share: float) -> None:
    compare = same_chances(CHANCE)
    once: Callable[[Tensor], Tensor] = lambda x: F.dropout(x, share)  # noqa: E731
    by_hand: Callable[[Tensor], Tensor] = lambda x: x * (torch.rand_like(x) > share) / (1 - share)  # noqa: E731
    with torch.random.fork_rng(devices=[]):
        for seed in range(100):
            assert compare(CHANCE_CASE, found_after(once, seed), found_after(by_hand, seed + 1000)) is None


WRONG_CHANCES: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda x: x,
    "another share": lambda x: F.dropout(x, 0.4),
    "twice": lambda x: F.dropout(F.dropout(x, 0.3), 0.3),
    "unscaled": lambda x: F.dropout(x, 0.3) * 0.7,
    "the kept and the dropped swapped": lambda x: F.dropout(x, 0.7),
    "on a part of the sum": lambda x: F.dropout(x - 1, 0.3) + 1,
    "whole vectors": lambda x: x * (torch.rand_like(x[..., :1]) > 0.3) / 0.7,
    "whole columns": lambda x: x * (torch.rand_like(x[:, :1]) > 0.3) / 0.7,
    "whole sequences": lambda x: x * (torch.rand_like(x[:, :1, :1]) > 0.3) / 0.7,
    "the same for all rows": lambda x: x * (torch.rand_like(x[:1]) > 0.3) / 0.7,
    "noise": lambda x: x + 0.01 * torch.randn_like(x),
    "NaN among zeros": lambda x: F.dropout(x, 0.3).masked_fill(torch.rand_like(x) < 0.01, math.nan),
}


@pytest.mark.parametrize("name", WRONG_CHANCES)
def test_wrong_dropout_is_never_taken_for_the_right_one(name: str) -> None:
    """With both bounds: the one for points and the looser one that names a mistake."""
    with torch.random.fork_rng(devices=[]):
        for seed in range(20):
            wrong = found_after(WRONG_CHANCES[name], seed)
            right = found_after(lambda x: F.dropout(x, 0.3), seed)
            text = same_chances(CHANCE)(CHANCE_CASE, right, wrong)
            assert text is not None
            assert "train mode" in text.en
            if name != "another share":
                assert same_chances(ALIKE)(CHANCE_CASE, right, wrong) is not None


def test_a_share_that_is_off_by_a_third_is_noticed() -> None:
    class Answer(TransformerInput):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.dropout = nn.Dropout(self.dropout.p * 4 / 3)

    for seed in SEEDS:
        verdict = verdict_on("transformer-input", Answer, seed)
        assert (verdict.mistake, lost(verdict)) == (None, ["train"])


def test_two_mistakes_with_dropout_are_both_told() -> None:
    class Answer(TransformerInput):
        def forward(self, tokens: Tensor, offset: int = 0) -> Tensor:
            return F.dropout(self.position(self.tokens(tokens)), self.dropout.p)

    verdict = verdict_on("transformer-input", Answer)
    assert set(verdict.message.en.split("\n")) == {
        message_of("transformer-input", slug) for slug in ("offset-not-passed-on", "dropout-in-eval")
    }


def test_names_are_compared_exactly_for_points_and_loosely_for_their_mistake() -> None:
    case = Case("TokenEmbedding", (5, 3), steps=(Step("state"),))
    right, one, other, bigger = (
        Returned({name: torch.zeros(shape)})
        for name, shape in (("table.weight", (5, 3)), ("e.weight", (5, 3)), ("x", (5, 3)), ("x", (6, 3)))
    )
    assert names_and_shapes(case, right, right) is None
    text = names_and_shapes(case, right, one)
    assert text is not None
    assert "e.weight (5, 3)" in text.en
    assert names_alike(case, one, other) is None
    assert names_alike(case, one, bigger) is not None
    assert names_alike(case, right, other) is not None


def test_more_buffers_than_asked_for_do_no_harm() -> None:
    case = Case("SinusoidalPosition", (4,), steps=(Step("buffers"),))
    right = Returned({"encoding": torch.zeros(9, 4)})
    more = Returned({"encoding": torch.zeros(9, 4), "scale": torch.zeros(())})
    assert names_and_shapes(case, right, more) is None
    assert names_and_shapes(case, more, right) is not None


@pytest.mark.parametrize("exercise", MODULES)
def test_a_nearly_right_answer_is_not_given_the_name_of_a_mistake(exercise: str) -> None:
    (reference,) = EXERCISES[exercise].reference.values()

    class Answer(reference):  # type: ignore[misc, valid-type]
        def forward(self, *args: Any, **kwargs: Any) -> Tensor:
            found: Tensor = super().forward(*args, **kwargs) * 1.02
            return found

    for seed in SEEDS:
        verdict = verdict_on(exercise, Answer, seed)
        assert verdict.score < verdict.max_score
        assert verdict.mistake is None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("exercise", [*MODULES, "padding-mask"])
def test_reference_alternatives_and_mistakes_on_the_gpu(exercise: str) -> None:
    declared = EXERCISES[exercise]
    (name,) = declared.functions
    for answers in (declared.reference, *declared.alternatives.values()):
        verdict = judge_here(EXERCISES, exercise, [answers[name]], SEEDS[0], "cuda")
        assert verdict.score == verdict.max_score, verdict.message.en
    for mistake in declared.mistakes:
        verdict = judge_here(EXERCISES, exercise, [mistake.answers[name]], SEEDS[0], "cuda")
        assert verdict.mistake == mistake.slug
