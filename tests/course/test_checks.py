"""The visible checks: one line that says how it went, an explanation for what is not there yet, and never a grade."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
import torch

from course.checks import CheckFailed, check, expect, expect_close, expect_raises, expect_tensor


@pytest.fixture(params=["student", "graded"])
def graded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run by a student, and while nbgrader or the grader grades."""
    if request.param == "graded":
        monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    else:
        monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    return request.param == "graded"


def outcome(capsys: pytest.CaptureFixture[str], graded: bool, body: Any) -> str:
    """What the check says: printed while graded, raised for the student."""
    if graded:
        with check("clocks"):
            body()
        return capsys.readouterr().out
    with pytest.raises(CheckFailed) as caught, check("clocks"):
        body()
    assert capsys.readouterr().out == ""
    return str(caught.value)


def test_passing_checks_say_so(graded: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, in both modes."""
    with check("clocks"):
        expect(True, "not said")
    assert capsys.readouterr().out == "clocks: the visible checks pass.\n"


def test_a_failed_check_names_the_exercise_and_the_mistake(graded: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Raised for the student; printed while graded, so that the hidden tests after it run."""
    assert "clocks: the hands turn backwards." in outcome(
        capsys, graded, lambda: expect(0, "the hands turn backwards.")
    )


def unanswered() -> None:
    raise NotImplementedError("No answer in this cell yet.")


def test_an_unanswered_exercise_is_no_failure_to_puzzle_over(graded: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """It says that there is no answer yet and what to do."""
    said = outcome(capsys, graded, unanswered)
    assert "clocks: no answer yet" in said
    assert "Write it in the cell above" in said


def test_an_error_of_the_answer(graded: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """The student sees the whole traceback; while graded it is one line."""
    if graded:
        assert "your code raised ZeroDivisionError: division by zero" in outcome(capsys, graded, lambda: 1 / 0)
    else:
        with pytest.raises(ZeroDivisionError), check("clocks"):
            1 / 0  # noqa: B018


def test_an_interrupt_is_never_swallowed(graded: bool) -> None:
    """The stop button, and the grader's time limit, work inside a check."""
    with pytest.raises(KeyboardInterrupt), check("clocks"):
        raise KeyboardInterrupt


def test_warnings_become_ordinary_output(capsys: pytest.CaptureFixture[str]) -> None:
    """nbgrader takes any line on stderr for a failed test."""
    with check("clocks"):
        print("careful", file=sys.stderr)
    captured = capsys.readouterr()
    assert (captured.out.splitlines()[0], captured.err) == ("careful", "")


def test_a_student_who_replaced_print_still_sees_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    """The check uses Python's own."""
    with check("clocks"):
        print = None  # noqa: F841
    assert "pass" in capsys.readouterr().out


def test_a_notebook_shows_the_message_alone() -> None:
    """IPython asks the exception for its traceback: one line, no frames of ours."""
    (line,) = CheckFailed("clocks: slow.")._render_traceback_()
    assert line.endswith("clocks: slow.")
    assert "Not yet." in line


PASSES: dict[str, Any] = {
    "a tensor": lambda: expect_tensor(torch.zeros(2, 3), (2, 3), ""),
    "a parameter": lambda: expect_tensor(torch.nn.Parameter(torch.zeros(2)), (2,), ""),
    "a torch.Size": lambda: expect_tensor(torch.zeros(2), torch.zeros(2).shape, ""),
    "close": lambda: expect_close(torch.tensor([1.0, 2.0]), [1.00005, 2.0], ""),
    "another dtype": lambda: expect_close(torch.tensor([1, 2]), [1.0, 2.0], ""),
    "a tensor with gradient": lambda: expect_close(torch.ones(1, requires_grad=True), [1.0], ""),
    "a number": lambda: expect_close(1.0, 1.0, ""),
    "an int": lambda: expect_close(1, 1.0, ""),
    "a looser bound": lambda: expect_close(1.0, 1.5, "", 0.6),
    "raises": lambda: expect_raises(ValueError, lambda: int("x"), ""),
    "raises a subclass": lambda: expect_raises(LookupError, lambda: {}[1], ""),
}


@pytest.mark.parametrize("body", PASSES.values(), ids=PASSES)
def test_right_answers_in_any_form_pass(body: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A visible check must accept every right answer."""
    with check("clocks"):
        body()
    assert "pass" in capsys.readouterr().out


FAILS: dict[str, tuple[Any, str]] = {
    "no tensor": (lambda: expect_tensor([1.0], (1,), "Why."), "found list. Why."),
    "None": (lambda: expect_tensor(None, (1,), "Why."), "found NoneType. Why."),
    "another shape": (
        lambda: expect_tensor(torch.zeros(3, 2), (2, 3), "Why."),
        "expected shape (2, 3) and found (3, 2). Why.",
    ),
    "far": (lambda: expect_close(torch.tensor([1.0]), [1.001], "Why."), "Why."),
    "NaN": (lambda: expect_close(math.nan, 1.0, "Why."), "Why."),
    "one NaN": (lambda: expect_close(torch.tensor([1.0, math.nan]), [1.0, 1.0], "Why."), "Why."),
    "infinite": (lambda: expect_close(math.inf, 1.0, "Why."), "Why."),
    "a text": (lambda: expect_close("1.0", 1.0, "Why."), "found str. Why."),
    "broadcastable, not equal, shape": (lambda: expect_close(torch.ones(1, 2), [1.0, 1.0], "Why."), "(1, 2). Why."),
    "nothing raised": (lambda: expect_raises(ValueError, lambda: None, "Why."), "Why."),
    "something else raised": (
        lambda: expect_raises(ValueError, lambda: {}[1], "Why."),
        "KeyError was raised instead. Why.",
    ),
}


@pytest.mark.parametrize(("body", "said"), FAILS.values(), ids=FAILS)
def test_wrong_answers_are_told_why(body: Any, said: str) -> None:
    """What was expected and found, then the lesson's own sentence."""
    with pytest.raises(CheckFailed) as caught:
        body()
    assert str(caught.value).endswith(said)


def test_no_message_gives_a_value_away() -> None:
    """Shapes may be told; numbers of the answer may not."""
    with pytest.raises(CheckFailed) as caught:
        expect_close(torch.tensor([1.0, 2.0]), [123.456, 789.012], "Look at the angle.")
    assert str(caught.value) == "Look at the angle."
