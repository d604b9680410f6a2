"""What is special to the declarations of lesson 04: fair draws, fair partial credit, dropout judged by what it does."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.examiner.client import observe_all
from autograder.examiner.judge import Examination
from autograder.exercises import block, block_alternatives
from autograder.exercises.block_comparisons import dropped_before_addition, dropped_hidden
from autograder.exercises.block_quiz import QUIZ
from autograder.exercises.declaration import Case, Draw, Exercise
from autograder.reference.block import EncoderBlock, FeedForward, LayerNorm, MultiHeadAttention
from autograder.results import Verdict

SEEDS = range(20)
LESSON = Path(__file__).parents[2] / "course" / "lessons" / "04-feed-forward-and-add-norm.md"
MODULES = (block.FEED_FORWARD, block.LAYER_NORM, block.ADD_NORM, block.ENCODER_BLOCK)
modules = pytest.mark.parametrize("exercise", MODULES, ids=lambda exercise: exercise.id)


def _judge(exercise: Exercise, answer: Any, seed: int = 0) -> Verdict:
    examination = Examination(exercise, seed, "cpu")
    return examination.judge(observe_all(examination.questions, [answer]))


def _lost(verdict: Verdict) -> dict[str, float]:
    return {c.name: c.max_score - c.score for c in verdict.criteria if c.score < c.max_score}


def _input(case: Case) -> Tensor:
    found = [step.args[0] for step in case.steps if step.do == "forward"][-1]
    assert isinstance(found, Tensor)
    return found


# Draws


@pytest.mark.parametrize("seed", SEEDS)
def test_all_sizes_of_a_case_differ(seed: int) -> None:
    for exercise in MODULES:
        for case in exercise.cases(Draw(seed)):
            if not any(step.do == "forward" for step in case.steps) or case.tag in ("errors", "leading"):
                continue
            x = _input(case)
            sizes = [*x.shape, *(size for size in case.args[1:3] if isinstance(size, int))]
            if exercise is block.ENCODER_BLOCK:
                sizes.append(case.args[0] // case.args[1])
            assert len(set(sizes)) == len(sizes), case


@modules
def test_one_case_is_on_the_accelerator(exercise: Exercise) -> None:
    assert any(case.device == "cuda" for case in exercise.cases(Draw(0, "cuda")))


@pytest.mark.parametrize("seed", SEEDS)
def test_inputs_of_gelu_cases_keep_its_two_forms_far_apart(seed: int) -> None:
    """Ten times the tolerance, though the forms never differ by more than 4.8e-4."""
    for exercise, tolerance in ((block.FEED_FORWARD, 3e-5), (block.ENCODER_BLOCK, 2e-4)):
        for case in exercise.cases(Draw(seed)):
            if case.tag not in ("gelu", "activation"):
                continue
            values, x = case.steps[0].args[0], _input(case)
            if exercise is block.ENCODER_BLOCK:
                right = EncoderBlock(*case.args, **case.kwargs)
                right.load_state_dict(values)
                near = right(x)
                right.feed_forward.activation = lambda x: F.gelu(x, approximate="tanh")
                far = right(x)
            else:
                hidden = F.linear(x, values["expand.weight"], values["expand.bias"])
                assert bool(((hidden.abs() - 2.7).abs() < 0.9).all())
                near, far = (
                    F.linear(F.gelu(hidden, approximate=form), values["contract.weight"]) for form in ("none", "tanh")
                )
            assert (near - far).abs().max() > 5 * tolerance


@pytest.mark.parametrize("seed", SEEDS)
def test_every_query_of_a_mask_may_attend_to_something_and_not_to_everything(seed: int) -> None:
    masks = [
        mask
        for case in block.ENCODER_BLOCK.cases(Draw(seed))
        for step in case.steps
        for mask in (*step.args[1:], *step.kwargs.values())
        if isinstance(mask, Tensor) and mask.dtype == torch.bool
    ]
    assert {mask.dim() for mask in masks} == {2, 4}
    for mask in masks:
        assert bool(mask.any(-1).all())
        assert not bool(mask.all(-1).any())


@pytest.mark.parametrize("seed", SEEDS)
def test_no_two_wrong_counts_agree_in_every_case(seed: int) -> None:
    exercise = block.BLOCK_COST
    examination = Examination(exercise, seed, "cpu")
    told = []
    for mistake in exercise.mistakes:
        answer = mistake.answers["block_cost"]
        told.append(str([answer(*case.args, **case.kwargs) for case in examination.cases]))
    assert len(set(told)) == len(told)


# Names


class _OwnNames(nn.Module):
    """A right block whose parts are called otherwise, in another order."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        right = EncoderBlock(*args, **kwargs)
        self.ln = nn.ModuleList([right.attention_norm, right.feed_forward_norm])
        self.mixing = right.attention
        self.mlp = nn.Sequential(right.feed_forward.expand, right.feed_forward.contract)
        self.bend, self.drop, self.norm_first = right.feed_forward.activation, right.dropout, right.norm_first

    def _feed(self, x: Tensor) -> Any:
        return self.mlp[1](self.bend(self.mlp[0](x)))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Any:
        if self.norm_first:
            x = x + self.drop(self.mixing(self.ln[0](x), mask))
            return x + self.drop(self._feed(self.ln[1](x)))
        x = self.ln[0](x + self.drop(self.mixing(x, mask)))
        return self.ln[1](x + self.drop(self._feed(x)))


@pytest.mark.parametrize("seed", range(5))
def test_wrong_names_cost_their_own_points_and_no_others(seed: int) -> None:
    """Values are judged all the same: weights go into the parameters by shape and order."""
    verdict = _judge(block.ENCODER_BLOCK, _OwnNames, seed)
    assert _lost(verdict) == {"names": 0.5}
    assert "missing: attention.key.bias" in verdict.message.en
    assert "not asked for: ln.0.bias" in verdict.message.en


def test_a_wrong_shape_is_told_with_the_name() -> None:
    class Answer(FeedForward):
        def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
            super().__init__(d_model, 4 * d_model, activation, dropout)

    verdict = _judge(block.FEED_FORWARD, Answer)
    assert verdict.mistake is None
    assert "of another shape than asked for: contract.weight (" in verdict.message.en


# Dropout


def _hidden(drop: Callable[[Tensor], Tensor], activation: Callable[[Tensor], Tensor] = F.gelu) -> Tensor:
    width = 7
    hidden = drop(activation(torch.ones(3, 40, width)))
    return torch.cat([hidden, hidden.sum(-1, keepdim=True), torch.zeros(3, 40, 4)], dim=-1)


DROPS: dict[str, tuple[Callable[[Tensor], Tensor], bool | None]] = {
    "torch": (lambda x: F.dropout(x, 0.3), True),
    "by hand": (lambda x: x * (torch.rand_like(x) > 0.3) / 0.7, True),
    "bernoulli": (lambda x: x * torch.bernoulli(torch.full_like(x, 0.7)) / 0.7, True),
    "none": (lambda x: x, None),
    "another share": (lambda x: F.dropout(x, 0.1), False),
    "share inverted": (lambda x: F.dropout(x, 0.7), False),
    "not scaled up": (lambda x: x * (torch.rand_like(x) > 0.3), False),
    "scaled the wrong way": (lambda x: F.dropout(x, 0.3) * 0.49, False),
    "whole positions": (lambda x: x * (torch.rand_like(x[..., :1]) > 0.3) / 0.7, False),
    "whole columns": (lambda x: x * (torch.rand_like(x[:1, :1]) > 0.3) / 0.7, False),
    "everything": (lambda x: x * 0, False),
}
drops = pytest.mark.parametrize(("drop", "expected"), DROPS.values(), ids=DROPS.keys())


@drops
@pytest.mark.parametrize("activation", [F.relu, F.gelu, lambda x: x], ids=["relu", "gelu", "none"])
def test_dropped_widened_features_are_recognised(
    drop: Callable[[Tensor], Tensor], expected: bool | None, activation: Callable[[Tensor], Tensor]
) -> None:
    for seed in range(50):
        torch.manual_seed(seed)
        found = dropped_hidden(_hidden(drop, activation), 7, 0.3)
        assert found is expected or (not found and expected is False)  # whole columns: by chance none


def test_dropout_elsewhere_in_the_feed_forward_network_is_not_taken_for_it() -> None:
    torch.manual_seed(0)
    assert dropped_hidden(F.dropout(_hidden(lambda x: x), 0.3), 7, 0.3) is False
    assert dropped_hidden(_hidden(F.gelu, lambda x: F.dropout(x, 0.3)), 7, 0.3) is False


def _two_parts() -> tuple[Tensor, list[Tensor]]:
    x = torch.randn(3, 40, 24)
    parts = [torch.zeros(24), torch.zeros(24)]
    for number, part in enumerate(parts):
        part[8 * number : 8 * number + 8] = torch.tensor([0.6, -0.7, 0.9, -1.1, 1.3, -1.5, 0.8, 1.9])
    return x, parts


def _norm(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:])


def _unbiased(x: Tensor) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)


FRAMES: dict[str, Callable[[Tensor, Tensor, Tensor, Callable[[Tensor], Tensor]], Tensor]] = {
    "post": lambda x, a, b, drop: _norm(_norm(x + drop(a)) + drop(b)),
    "post with another norm": lambda x, a, b, drop: _unbiased(_unbiased(x + drop(a)) + drop(b)),
    "pre": lambda x, a, b, drop: x + drop(a) + drop(b),
    "pre, then a norm": lambda x, a, b, drop: _norm(x + drop(a) + drop(b)),
    "other order": lambda x, a, b, drop: _norm(_norm(x + drop(b)) + drop(a)),
}


@drops
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
def test_dropout_before_the_addition_is_recognised_in_whatever_order_the_norms_stand(
    frame: Callable[..., Tensor], drop: Callable[[Tensor], Tensor], expected: bool | None
) -> None:
    for seed in range(20):
        torch.manual_seed(seed)
        x, parts = _two_parts()
        y = frame(x, *(part.expand_as(x) for part in parts), drop)
        found = dropped_before_addition(y, x, parts, 0.3)
        assert found is expected or (not found and expected is False)


def test_dropout_at_another_place_of_the_frame_is_not_taken_for_it() -> None:
    torch.manual_seed(0)
    x, parts = _two_parts()
    a, b = (part.expand_as(x) for part in parts)

    def drop(values: Tensor) -> Tensor:
        return F.dropout(values, 0.3)

    wrong = {
        "on the sum": _norm(drop(_norm(drop(x + a)) + b)),
        "on the sum, pre": drop(drop(x + a) + b),
        "after the norm": drop(_norm(drop(_norm(x + a)) + b)),
        "on one part": _norm(_norm(x + drop(a)) + b),
        "on the other part": _norm(_norm(x + a) + drop(b)),
        "on x": _norm(_norm(drop(x) + a) + b),
        "nan": _norm(x + a) * math.nan,
    }
    assert {name: dropped_before_addition(y, x, parts, 0.3) for name, y in wrong.items()} == dict.fromkeys(wrong, False)


class _DroppingInside(FeedForward):
    """Dropout everywhere inside a sublayer."""

    def forward(self, x: Tensor) -> Tensor:
        x = F.dropout(x, self.dropout.p, self.training)
        return super().forward(x)


def _with_inner_dropout(right: type[EncoderBlock]) -> type[EncoderBlock]:
    class Answer(right):  # type: ignore[valid-type,misc]
        def __init__(
            self,
            d_model: int,
            n_heads: int,
            d_ff: int,
            dropout: float = 0.0,
            activation: str = "relu",
            norm_first: bool = False,
        ) -> None:
            super().__init__(d_model, n_heads, d_ff, dropout, activation, norm_first)
            self.feed_forward = _DroppingInside(d_model, d_ff, activation, dropout)

    return Answer


@pytest.mark.parametrize("seed", range(5))
def test_dropout_inside_the_sublayers_is_free(seed: int) -> None:
    verdict = _judge(block.ENCODER_BLOCK, _with_inner_dropout(EncoderBlock), seed)
    assert verdict.score == verdict.max_score, verdict.message.en


@pytest.mark.parametrize("slug", ["orders-swapped", "mask-not-passed", "unbiased-variance-inside"])
def test_a_mistake_is_named_also_when_dropout_inside_draws_other_numbers(slug: str) -> None:
    (mistake,) = [m for m in block.ENCODER_BLOCK.mistakes if m.slug == slug]
    verdict = _judge(block.ENCODER_BLOCK, _with_inner_dropout(mistake.answers["EncoderBlock"]))
    assert verdict.mistake == slug


# Partial credit


def test_two_mistakes_in_one_layer_norm_are_both_told() -> None:
    class Answer(LayerNorm):
        def forward(self, x: Tensor) -> Tensor:
            centred = x - x.mean(-1, keepdim=True)
            variance = x.var(-1, keepdim=True, unbiased=False)
            return ((centred / (variance + 1e-5).sqrt()) * self.weight + self.bias).float()

    verdict = _judge(block.LAYER_NORM, Answer)
    assert _lost(verdict) == {"eps": 0.25, "dtype": 0.25}
    assert "fixed number" in verdict.message.en
    assert "float32" in verdict.message.en


class _PlainTensors(nn.Module):
    """A right computation whose weight and bias the module does not know."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = torch.ones(d_model), torch.zeros(d_model), eps

    def forward(self, x: Tensor) -> Tensor:
        variance, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
        return self.weight * ((x - mean) / (variance + self.eps).sqrt()) + self.bias


class _PlainTensorsMoved(_PlainTensors):
    def forward(self, x: Tensor) -> Tensor:
        self.weight, self.bias = self.weight.to(x), self.bias.to(x)
        return super().forward(x)


@pytest.mark.parametrize("seed", range(5))
def test_weight_and_bias_that_are_no_parameters_are_not_told_to_be_absent(seed: int) -> None:
    """Moved by hand they cannot be told from none at all: then the message names both."""
    assert _judge(block.LAYER_NORM, _PlainTensors, seed).mistake == "plain-tensors"
    verdict = _judge(block.LAYER_NORM, _PlainTensorsMoved, seed)
    assert verdict.mistake == "affine-missing"
    assert "missing among the module's parameters" in verdict.message.en


class _NormByNormalize(LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(dim=-1, keepdim=True)
        return F.normalize(centred, dim=-1) * math.sqrt(x.shape[-1]) * self.weight + self.bias


@pytest.mark.parametrize("seed", range(5))
def test_an_eps_without_effect_is_not_also_told_to_have_another_default(seed: int) -> None:
    verdict = _judge(block.LAYER_NORM, _NormByNormalize, seed)
    assert verdict.mistake == "eps-ignored-and-tiny"
    assert "eps has no effect" in verdict.message.en
    assert "BERT" not in verdict.message.en
    assert len(verdict.message.en.splitlines()) == 1


def test_a_forgotten_activation_costs_values_and_leaves_the_rest() -> None:
    (mistake,) = [m for m in block.FEED_FORWARD.mistakes if m.slug == "no-activation"]
    assert set(_lost(_judge(block.FEED_FORWARD, mistake.answers["FeedForward"]))) == {
        "relu",
        "gelu",
        "eval",
        "gradient",
    }


def test_right_counts_as_floats_lose_the_type_alone() -> None:
    right = block.BLOCK_COST.reference["block_cost"]
    verdict = _judge(block.BLOCK_COST, lambda *a, **k: {name: float(value) for name, value in right(*a, **k).items()})
    assert _lost(verdict) == {"form": 0.25}


def test_each_count_is_judged_alone() -> None:
    right = block.BLOCK_COST.reference["block_cost"]
    verdict = _judge(block.BLOCK_COST, lambda *a, **k: right(*a, **k) | {"attention_scores": 7})
    assert _lost(verdict) == {"attention-scores": 0.5}
    assert verdict.mistake is None


@pytest.mark.parametrize(
    ("answer", "slug"),
    [((1, 2, 3), "tuple-returned"), ([7], None), (5, None), (None, None), ("parameters", None), ({}, None)],
    ids=repr,
)
def test_counts_that_are_no_dict_are_told_as_such(answer: object, slug: str | None) -> None:
    """And not as a dict with other keys."""
    verdict = _judge(block.BLOCK_COST, lambda *a, **k: answer)
    assert (verdict.score, verdict.mistake) == (0.0, slug)


# The lesson


def _cells() -> dict[str, str]:
    cells = re.findall(r"```\{code-cell\} ipython3\n---\n(.*?)\n```", LESSON.read_text(encoding="utf-8"), re.DOTALL)
    return {re.search(r"^name: (\S+)$", cell, re.MULTILINE)[1]: cell.split("\n---\n")[1] for cell in cells}  # type: ignore[index]


def test_the_lessons_attention_is_the_references() -> None:
    names: dict[str, Any] = {"torch": torch, "nn": nn, "math": math}
    exec(_cells()["multi-head-attention"], names)
    ours, given = MultiHeadAttention(12, 3), names["MultiHeadAttention"](12, 3)
    given.load_state_dict(ours.state_dict())
    x = torch.randn(2, 5, 12)
    for mask in (None, torch.ones(5, 5, dtype=torch.bool).tril(), torch.tensor([True, True, False, True, False])):
        torch.testing.assert_close(given(x, mask), ours(x, mask), rtol=0, atol=1e-6)


def test_a_block_of_the_students_own_parts_is_judged_with_them() -> None:
    """The student's block finds attention, feed-forward and norm by name in their own notebook."""
    cells = _cells()
    names: dict[str, Any] = {"torch": torch, "nn": nn, "math": math, "F": F}
    for name in ("multi-head-attention", "feed-forward", "layer-norm", "encoder-block"):
        exec(cells[name], names)
    assert _judge(block.ENCODER_BLOCK, names["EncoderBlock"]).score == 4
    (mistake,) = [m for m in block.LAYER_NORM.mistakes if m.slug == "unbiased-variance"]
    names["LayerNorm"] = mistake.answers["LayerNorm"]
    verdict = _judge(block.ENCODER_BLOCK, names["EncoderBlock"])
    assert verdict.mistake == "unbiased-variance-inside"
    assert 1 < verdict.score < 2


def test_the_quiz_declares_every_letter_that_the_lesson_offers_and_agrees_with_its_solution() -> None:
    lesson = LESSON.read_text(encoding="utf-8")
    questions = re.split(r'\+\+\+ \{"name": "question-\d"\}', lesson.split("\nname: quiz-block\n")[0])[1:]
    offered = [re.findall(r"^- \*\*([a-d])\*\*", question, flags=re.MULTILINE) for question in questions]
    declared = [
        sorted([QUIZ.reference[name], *(m.answers[name] for m in QUIZ.mistakes if name in m.answers)])
        for name in QUIZ.functions
    ]
    assert offered == declared
    letters: dict[str, Any] = {}
    exec(_cells()["quiz-block"].split("### BEGIN SOLUTION\n")[1].split("### END SOLUTION")[0], {}, letters)
    assert letters == QUIZ.reference


def test_alternatives_cover_every_exercise_with_a_formula() -> None:
    for exercise in (*MODULES, block.BLOCK_COST):
        assert len(exercise.alternatives) >= 2
    assert block_alternatives.LAYER_NORM.keys() >= {"moments", "float64-inside"}
