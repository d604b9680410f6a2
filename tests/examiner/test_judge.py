"""Judging: partial credit by criterion, a known mistake named only when it explains the answer, NaN never passes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from autograder.errors import NoSuchDevice, UnknownExercise
from autograder.examiner import client, local, protocol
from autograder.examiner.address import EXAMINER_VARIABLE
from autograder.examiner.judge import (
    ALL_RIGHT,
    EARLIER_UNANSWERED,
    UNANSWERED,
    Examination,
    Sources,
    accelerator,
    judge_here,
    seed_for,
)
from autograder.results import LANGUAGES, Verdict
from tests.examiner.made_up import (
    MADE_UP,
    RIGHT,
    double,
    shift,
    shift_backwards,
    shift_backwards_unchecked,
    shift_unchecked,
)

SEED = 11


def judge(double: Any = double, shift: Any = shift, seed: int = SEED) -> Verdict:
    return judge_here({"made-up": MADE_UP}, "made-up", (double, shift), seed, "cpu")


def scores(verdict: Verdict) -> dict[str, float]:
    return {criterion.name: criterion.score for criterion in verdict.criteria}


FULL = {"form": 0.5, "values": 1.5, "shift": 2.0, "errors": 1.0, "inputs": 0.5}


def test_a_right_answer_gets_full_marks() -> None:
    """Every criterion is met, and there is nothing to say."""
    verdict = judge()
    assert scores(verdict) == FULL
    assert (verdict.score, verdict.max_score, verdict.mistake, verdict.judged) == (5.5, 5.5, None, True)
    assert verdict.message == ALL_RIGHT
    assert [criterion.message for criterion in verdict.criteria] == [None] * 5


def not_answered(*args: object, **kwargs: object) -> None:
    raise NotImplementedError("No answer in this cell yet.")


def test_an_unanswered_exercise_is_told_as_such() -> None:
    """The stub's NotImplementedError in every case is no mistake."""
    verdict = judge(not_answered, not_answered)
    assert (verdict.score, verdict.mistake, verdict.message) == (0.0, "unanswered", UNANSWERED)


@pytest.mark.parametrize(
    ("source", "slug"),
    [
        ("def double(x):\n    return earlier(x)", "earlier-unanswered"),
        ("def double(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()", "unanswered"),
        ("", "unanswered"),
    ],
    ids=["uses an earlier stub", "the stub itself", "text unknown"],
)
def test_an_answer_that_uses_an_unanswered_one_is_not_called_unanswered(source: str, slug: str) -> None:
    """Whose NotImplementedError it is can be read from the answer's text."""
    answers = (not_answered, not_answered)
    verdict = judge_here({"made-up": MADE_UP}, "made-up", answers, SEED, "cpu", Sources(source))
    assert (verdict.score, verdict.mistake) == (0.0, slug)
    assert verdict.message == (UNANSWERED if slug == "unanswered" else EARLIER_UNANSWERED)


def test_half_an_answer_is_judged_in_half() -> None:
    """With one function answered and the other not, the answered one counts."""
    verdict = judge(double, not_answered)
    assert scores(verdict) == {**FULL, "shift": 0.0, "errors": 0.0, "inputs": 0.0}
    assert verdict.mistake != "unanswered"
    assert "NotImplementedError" in verdict.message.en


KNOWN = {
    "tripled": ((lambda x: 3 * x, shift), {"values"}),
    "backwards": ((double, shift_backwards), {"shift"}),
    "unchecked": ((double, shift_unchecked), {"errors"}),
    "in-place": ((lambda x: x.mul_(2), shift), {"inputs"}),
}


@pytest.mark.parametrize(("slug", "answers", "lost"), [(slug, *row) for slug, row in KNOWN.items()], ids=KNOWN)
def test_a_known_mistake_is_named_and_costs_its_criteria(
    slug: str, answers: tuple[Callable[..., Any], ...], lost: set[str]
) -> None:
    """The message is the mistake's own; other criteria keep their points."""
    verdict = judge(*answers)
    mistake = next(mistake for mistake in MADE_UP.mistakes if mistake.slug == slug)
    assert (verdict.mistake, verdict.message) == (slug, mistake.message)
    assert {name for name, score in scores(verdict).items() if score < FULL[name]} == lost
    assert verdict.score == 5.5 - sum(FULL[name] for name in lost)


@pytest.mark.parametrize("seed", range(8))
def test_every_seed_tells_the_same_story(seed: int) -> None:
    """Cases differ, judgements do not."""
    assert judge(seed=seed).score == 5.5
    assert judge(double=lambda x: 3 * x, seed=seed).mistake == "tripled"


def test_a_mistake_is_named_only_if_it_agrees_on_every_case() -> None:
    """Tripled in the first case and something else in the second is a new mistake, with the criterion's own words."""
    verdict = judge(double=lambda x: 3 * x if x.dim() == 2 else 4 * x)
    assert verdict.mistake is None
    assert scores(verdict)["values"] == 0.0
    assert verdict.message.en.startswith("the values: ")
    assert "tripled" not in verdict.message.en


def test_two_mistakes_in_different_criteria_are_both_told() -> None:
    """The one that costs more names the verdict; each criterion has the message of its own mistake."""
    verdict = judge(double=lambda x: 3 * x, shift=shift_backwards)
    assert verdict.mistake == "backwards"
    assert verdict.message.en == "You shifted backwards.\nYou tripled."
    assert verdict.message.zh == "You shifted backwards.（中文）\nYou tripled.（中文）"
    messages = {criterion.name: criterion.message.en for criterion in verdict.criteria if criterion.message}
    assert messages == {"values": "You tripled.", "shift": "You shifted backwards."}


def test_two_mistakes_in_one_function_are_both_told() -> None:
    """No declared mistake is this function, yet each explains its own criterion."""
    verdict = judge(shift=shift_backwards_unchecked)
    assert verdict.mistake == "backwards"
    assert verdict.message.en == "You shifted backwards.\nYou did not check by."


def test_a_known_mistake_and_a_new_one_are_both_told() -> None:
    """What no mistake explains follows with the criterion's title and difference."""
    verdict = judge(double=lambda x: (2 * x).double(), shift=shift_backwards)
    assert verdict.mistake == "backwards"
    first, second = verdict.message.en.split("\n")
    assert first == "You shifted backwards."
    assert second.startswith("the form: ")
    assert "float64" in second


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_never_pass(value: float) -> None:
    """Comparison with NaN is false both ways; no criterion of values may be fooled."""
    verdict = judge(double=lambda x: torch.full_like(x, value), shift=lambda x, by: x * value)
    assert scores(verdict) == {**FULL, "values": 0.0, "shift": 0.0, "errors": 0.0}


def one_nan(x: Tensor) -> Tensor:
    found = 2 * x
    found.view(-1)[-1] = math.nan
    return found


def test_one_nan_among_right_values_fails() -> None:
    """A single NaN is found wherever it stands."""
    assert scores(judge(double=one_nan))["values"] == 0.0


def write_nan(x: Tensor) -> Tensor:
    found = 2 * x
    x.fill_(math.nan)
    return found


@pytest.mark.parametrize(
    "writes", [write_nan, lambda x: x.mul_(2), lambda x: x.resize_(1).mul(2)], ids=["nan", "doubled", "resized"]
)
def test_writing_into_the_input_is_seen(writes: Callable[[Tensor], Tensor]) -> None:
    """Also with NaN, and also when the input's shape is changed."""
    assert scores(judge(double=writes))["inputs"] == 0.0


def test_a_changed_input_does_not_reach_the_next_question() -> None:
    """Each question has its own copy: shift is still right after double overwrote its input."""
    assert scores(judge(double=write_nan))["shift"] == 2.0


def always_equal(x: Tensor) -> object:
    class Equal:
        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 0

    return Equal()


WRONG_KINDS: dict[str, Callable[[Tensor], object]] = {
    "an object that equals everything": always_equal,
    "None": lambda x: None,
    "a list": lambda x: (2 * x).tolist(),
    "a numpy array": lambda x: (2 * x).numpy(),
    "a tuple": lambda x: (2 * x,),
    "another dtype": lambda x: (2 * x).double(),
    "another shape": lambda x: (2 * x)[None],
    "complex": lambda x: (2 * x).to(torch.complex64),
    "meta": lambda x: (2 * x).to("meta"),
    "a function": lambda x: double,
    "another tensor class": lambda x: torch.nn.Parameter(2 * x),
}


@pytest.mark.parametrize("answer", WRONG_KINDS.values(), ids=WRONG_KINDS)
def test_a_value_of_another_kind_is_judged(answer: Callable[[Tensor], object]) -> None:
    """Whatever comes back, there is a verdict; a Parameter is a tensor like any other, the rest has another form."""
    verdict = judge(double=answer)
    right = answer is WRONG_KINDS["another tensor class"]
    assert scores(verdict)["form"] == (0.5 if right else 0.0)
    assert verdict.max_score == 5.5


class Quits(BaseException):
    """Not an Exception."""


def raiser(error: BaseException) -> Callable[..., None]:
    def answer(*args: object, **kwargs: object) -> None:
        raise error

    return answer


@pytest.mark.parametrize(
    "error", [RuntimeError("gone"), SystemExit(0), RecursionError(), ValueError("by -3")], ids=repr
)
def test_an_answer_that_raises_is_judged(error: BaseException) -> None:
    """Errors, and sys.exit, are what the answer did in that case."""
    verdict = judge(double=raiser(error))
    assert scores(verdict) == {"form": 0.0, "values": 0.0, "shift": 2.0, "errors": 1.0, "inputs": 0.0}
    assert type(error).__name__ in verdict.message.en


def test_an_always_raising_answer_does_not_pass_the_error_criterion_alone() -> None:
    """Raising ValueError for everything earns the points for bad arguments at most."""
    verdict = judge(shift=raiser(ValueError("by -3")))
    assert scores(verdict) == {**FULL, "shift": 0.0, "inputs": 0.0}


def test_warnings_and_stderr_of_an_answer_stay_silent(capsys: pytest.CaptureFixture[str]) -> None:
    """A warning is no mistake and no output."""

    def noisy(x: Tensor) -> Tensor:
        warnings.warn("deprecated", stacklevel=1)
        return 2 * x

    assert judge(double=noisy).score == 5.5
    assert capsys.readouterr().err == ""


def test_messages_hold_no_expected_value() -> None:
    """Student and message may be shown to each other: no number of the reference's answer stands in them."""
    examination = Examination(MADE_UP, SEED, "cpu")
    expected = [double(case.args[0]) for case in examination.cases if case.function == "double"]
    verdict = judge(double=lambda x: x + 1)
    said = " ".join(criterion.message.in_language(language) for criterion in verdict.criteria if criterion.message
                    for language in LANGUAGES)  # fmt: skip
    assert "off" in said
    for tensor in expected:
        for value in tensor.flatten().tolist():
            assert f"{value:.4g}" not in said


def test_the_questions_hold_no_expected_value() -> None:
    """What goes to the kernel are arguments only: no tag, no name of an error, no value of the answer."""
    examination = Examination(MADE_UP, SEED, "cpu")
    assert b"errors" not in examination.questions
    for question, case in zip(protocol.decode(examination.questions), examination.cases, strict=True):
        assert set(question) == {"answer", "args", "kwargs", "device", "read", "operators", "steps", "track"}
        if case.function == "double":
            assert double(case.args[0]).numpy().tobytes() not in examination.questions


def test_the_same_seed_asks_the_same_questions() -> None:
    """A regrade repeats the cases; another student, exercise or course key has others."""
    seeds = {
        seed_for(key, student, exercise)
        for key in (b"key", b"other")
        for student in ("ada", "emmy")
        for exercise in ("x", "y")
    }
    assert len(seeds) == 8
    assert seed_for(b"key", "ada", "x") == seed_for(b"key", "ada", "x")
    asked = [Examination(MADE_UP, seed, "cpu").questions for seed in (SEED, SEED, SEED + 1)]
    assert asked[0] == asked[1]
    assert asked[0] != asked[2]


def test_the_seed_cannot_be_shifted_between_student_and_exercise() -> None:
    """ "ada" in "b-x" and "ada-b" in "x" are different, whatever the ids look like."""
    assert seed_for(b"k", "ada", "b-x") != seed_for(b"k", "ada-b", "x")


def test_a_message_of_another_form_is_malformed() -> None:
    """Too few observations, or something that is neither returned nor raised."""
    examination = Examination(MADE_UP, SEED, "cpu")
    good = protocol.decode(client.observe_all(examination.questions, RIGHT))
    assert examination.judge(protocol.encode(good)).score == 5.5
    forged: list[object] = [
        good[:-1],
        [*good, good[0]],
        {"verdict": 5.5},
        [{"returned": 1}] * len(good),
        [{"raised": (), "message": ""}] * len(good),
        [{"raised": ("ValueError",), "message": 5}] * len(good),
        [{"raised": "ValueError", "message": ""}] * len(good),
        [None] * len(good),
    ]
    for data in forged:
        with pytest.raises(protocol.MalformedMessage):
            examination.judge(protocol.encode(data))


def test_an_unknown_exercise_and_a_wrong_number_of_answers_are_errors() -> None:
    """Faults of the notebook, not of the student, say what is wrong."""
    with pytest.raises(UnknownExercise, match="no-such-exercise"):
        local.grade_here("no-such-exercise", (double,))
    with pytest.raises(TypeError, match="double, shift"):
        judge_here({"made-up": MADE_UP}, "made-up", (double,), SEED, "cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="here the device exists")
def test_a_missing_gpu_is_an_error_only_when_asked_for() -> None:
    """auto goes to the CPU; cuda says that there is none."""
    assert (accelerator("auto"), accelerator("cpu")) == ("cpu", "cpu")
    with pytest.raises(NoSuchDevice):
        accelerator("cuda")


@pytest.mark.parametrize(("language", "said"), [("en", "All right."), ("zh", "全部正确。")])
def test_grading_in_the_same_process_prints_and_returns_points(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], language: str, said: str
) -> None:
    """Plain nbgrader takes the returned number as partial credit."""
    monkeypatch.setattr(local, "EXERCISES", {"made-up": MADE_UP})
    monkeypatch.setenv(local.LANGUAGE_VARIABLE, language)
    monkeypatch.delenv(EXAMINER_VARIABLE, raising=False)
    from autograder.examiner import grade

    assert grade("made-up", double, shift) == 5.5
    assert capsys.readouterr().out == f"5.5 / 5.5  {said}\n"
    assert grade("made-up", double, shift_unchecked) == 4.5
