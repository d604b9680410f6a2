"""Comparisons: what counts as a difference, and what the difference says."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from autograder.exercises.comparisons import (
    EXACT,
    Tolerance,
    both,
    describe,
    describe_call,
    inputs_untouched,
    raises_value_error,
    same_form,
    same_shape,
    values_within,
)
from autograder.exercises.declaration import Case, Other, Raised, Returned
from autograder.results import Text

CASE = Case("f", (3, 4))
BAD = Case("f", (7,), tag="errors", error_names=("d_model", "7"))
CLOSE = values_within(Tolerance(0.01, "for these tests"))
VALUE_ERROR = ("ValueError", "Exception", "BaseException", "object")
RUNTIME_ERROR = ("RuntimeError", "Exception", "BaseException", "object")


def said(text: Text | None) -> str:
    assert text is not None
    assert text.zh
    assert text.zh != text.en
    return text.en


def test_equal_form_is_no_difference_whatever_the_values() -> None:
    assert same_form(CASE, Returned(torch.zeros(2, 3)), Returned(torch.ones(2, 3))) is None


def test_another_dtype_is_told_without_naming_devices() -> None:
    text = same_form(CASE, Returned(torch.zeros(3).double()), Returned(torch.zeros(3)))
    assert said(text) == (
        "f(3, 4) returned a float32 tensor of shape (3,), but the task asks for a float64 tensor of shape (3,)."
    )
    assert text is not None
    assert text.zh == "f(3, 4) 返回形状为 (3,) 的 float32 张量，而题目要求形状为 (3,) 的 float64 张量。"


def test_another_device_is_named_on_both_sides() -> None:
    text = same_form(CASE, Returned(torch.zeros(3, device="meta")), Returned(torch.zeros(3)))
    assert "on cpu" in said(text)
    assert "on meta" in said(text)


def test_shape_alone_ignores_dtype_and_device() -> None:
    assert same_shape(CASE, Returned(torch.zeros(3)), Returned(torch.zeros(3, device="meta").double())) is None
    assert "shape (4,)" in said(same_shape(CASE, Returned(torch.zeros(3)), Returned(torch.zeros(4))))


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "None"),
        ("x", "a str"),
        ([1.0], "a list of 1"),
        ((1, 2), "a tuple of 2"),
        (Other("numpy.ndarray"), "a numpy.ndarray"),
        (1, "an int"),
    ],
)
def test_what_is_no_tensor_is_called_by_its_kind(value: Any, name: str) -> None:
    assert f"returned {name}, but" in said(same_form(CASE, Returned(torch.zeros(3)), Returned(value)))
    assert f"returned {name}: its values" in said(CLOSE(CASE, Returned(torch.zeros(3)), Returned(value)))


@pytest.mark.parametrize(
    ("expected", "observed", "same"),
    [
        (True, True, True),
        (True, 1, False),
        (1.0, 1, False),
        (1, 1, True),
        (1.0, 1.0, True),
        ((1.0, 2.0), (1.0,), False),
    ],
)
def test_plain_types_are_told_apart(expected: Any, observed: Any, same: bool) -> None:
    assert (same_form(CASE, Returned(expected), Returned(observed)) is None) == same


def test_values_at_the_bound_are_close_and_beyond_it_are_not() -> None:
    right = Returned(torch.zeros(3, dtype=torch.float64))
    assert CLOSE(CASE, right, Returned(torch.tensor([0.0, 0.01, -0.01], dtype=torch.float64))) is None
    text = CLOSE(CASE, right, Returned(torch.tensor([0.0, 0.02, 0.03])))
    assert said(text) == "f(3, 4): 2 of 3 values are off; yours at index (1,) is 0.02."


def test_a_difference_in_one_of_several_results_says_which() -> None:
    expected, observed = (torch.zeros(2), torch.zeros(2)), (torch.zeros(2), torch.tensor([0.0, 0.5]))
    text = CLOSE(CASE, Returned(expected), Returned(observed))
    assert said(text) == "f(3, 4): 1 of 2 values are off; yours in result 1 at index (1,) is 0.5."
    assert text is not None
    assert text.zh == "f(3, 4)：2 个值中有 1 个不对；你的第 1 个返回值在下标 (1,) 处为 0.5。"


def test_the_expected_value_is_never_said() -> None:
    text = CLOSE(CASE, Returned(torch.tensor([0.123456])), Returned(torch.tensor([0.654321])))
    assert "0.654321" in said(text)
    assert "0.123" not in said(text)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_never_close_to_what_is(value: float) -> None:
    assert "3 of 3" in said(CLOSE(CASE, Returned(torch.zeros(3)), Returned(torch.full((3,), value))))
    assert CLOSE(CASE, Returned(0.0), Returned(value)) is not None


def test_infinities_and_nan_are_equal_to_themselves_only() -> None:
    special = torch.tensor([math.inf, -math.inf, math.nan])
    assert CLOSE(CASE, Returned(special), Returned(special.clone())) is None
    assert "2 of 3" in said(CLOSE(CASE, Returned(special), Returned(torch.tensor([-math.inf, math.inf, math.nan]))))


def test_complex_values_are_not_compared_by_their_real_part() -> None:
    observed = Returned(torch.zeros(3, dtype=torch.complex64))
    assert "can't be compared" in said(CLOSE(CASE, Returned(torch.zeros(3)), observed))


def test_a_broadcastable_shape_is_no_equal_shape() -> None:
    assert CLOSE(CASE, Returned(torch.zeros(3)), Returned(torch.zeros(1, 3))) is not None
    assert CLOSE(CASE, Returned(torch.zeros(3)), Returned(torch.zeros(()))) is not None


def test_exact_admits_no_difference() -> None:
    exact = values_within(EXACT)
    assert exact(CASE, Returned(torch.tensor([1, 2])), Returned(torch.tensor([1, 2]))) is None
    assert exact(CASE, Returned(torch.tensor([True])), Returned(torch.tensor([False]))) is not None


def test_a_tolerance_may_depend_on_case_and_value() -> None:
    def bound(case: Case, expected: Tensor) -> Tensor:
        return expected.abs() * float(case.args[0]) / 100

    relative = values_within(Tolerance(bound, "three percent"))
    right = Returned(torch.tensor([1.0, 100.0]))
    assert relative(CASE, right, Returned(torch.tensor([1.02, 102.0]))) is None
    assert "1 of 2" in said(relative(CASE, right, Returned(torch.tensor([1.04, 102.0]))))


def test_an_unexpected_error_is_repeated() -> None:
    observed = Raised(RUNTIME_ERROR, "sizes differ")
    for compare in (same_form, same_shape, CLOSE, raises_value_error, inputs_untouched):
        assert "f(3, 4) raised RuntimeError: sizes differ" in said(compare(CASE, Returned(1.0), observed))


def test_errors_are_equal_when_type_and_text_agree_but_for_numbers() -> None:
    expected = Raised(RUNTIME_ERROR, "size (3) must match (6). Target sizes: [1, 3].")
    assert same_form(CASE, expected, Raised(RUNTIME_ERROR, "size (4) must match (8). Target sizes: [4].")) is None
    assert same_form(CASE, expected, Raised(RUNTIME_ERROR, "something else")) is not None
    assert same_form(CASE, expected, Raised(VALUE_ERROR, expected.message)) is not None


def test_an_error_may_be_left_to_another_criterion() -> None:
    compare = values_within(EXACT, errors_elsewhere=("values",))
    assert compare(CASE, Returned(1.0), Raised(RUNTIME_ERROR, "")) is None
    assert compare(CASE, Returned(1.0), Returned(2.0)) is not None


def test_reading_values_of_the_meta_device_is_no_mistake_there_only() -> None:
    observed = Raised(RUNTIME_ERROR, "Tensor.item() cannot be called on meta tensors")
    expected = Returned(torch.zeros(3))
    assert same_form(Case("f", (), {"device": "meta"}), expected, observed) is None
    assert same_form(Case("f", (torch.zeros(3),), device="meta"), expected, observed) is None
    assert same_form(CASE, expected, observed) is not None


def test_the_meta_devices_error_is_still_the_one_torch_raises() -> None:
    with pytest.raises(RuntimeError, match=r"^Tensor\.item\(\) cannot be called on meta tensors$"):
        torch.ones(1, device="meta").item()


def test_both_reports_the_first_difference() -> None:
    compare = both(same_form, CLOSE)
    assert compare(CASE, Returned(torch.zeros(3)), Returned(torch.zeros(3))) is None
    assert "float64" in said(compare(CASE, Returned(torch.zeros(3)), Returned(torch.ones(3).double())))
    assert "off" in said(compare(CASE, Returned(torch.zeros(3)), Returned(torch.ones(3))))


REFUSED = Raised(VALUE_ERROR, "d_model must be even, got 7")


def test_a_refusal_that_names_argument_and_value_is_right() -> None:
    assert raises_value_error(BAD, REFUSED, Raised(VALUE_ERROR, "d_model is 7")) is None
    derived = Raised(("WidthError", *VALUE_ERROR), "d_model: 7 is odd")
    assert raises_value_error(BAD, REFUSED, derived) is None


def test_a_refusal_that_leaves_something_out_is_told_what() -> None:
    assert "'7'" in said(raises_value_error(BAD, REFUSED, Raised(VALUE_ERROR, "d_model must be even")))
    assert "'d_model'" in said(raises_value_error(BAD, REFUSED, Raised(VALUE_ERROR, "7 is odd")))


def test_returning_or_raising_something_else_is_no_refusal() -> None:
    assert "should raise ValueError" in said(raises_value_error(BAD, REFUSED, Returned(torch.zeros(3))))
    assert "AssertionError" in said(raises_value_error(BAD, REFUSED, Raised(("AssertionError", "Exception"), "")))


def test_ways_not_to_refuse_are_alike_but_not_to_refusing() -> None:
    returned, crashed = Returned(torch.zeros(3)), Raised(RUNTIME_ERROR, "sizes")
    assert raises_value_error(BAD, returned, crashed) is None
    assert raises_value_error(BAD, crashed, returned) is None
    assert raises_value_error(BAD, returned, REFUSED) is not None


def test_good_arguments_are_not_to_be_refused() -> None:
    good = Case("f", (2,), tag="errors")
    assert raises_value_error(good, Returned(1.0), Returned(2.0)) is None
    assert "f(2) raised ValueError" in said(raises_value_error(good, Returned(1.0), REFUSED))


def test_a_changed_argument_is_named_by_its_number() -> None:
    x = torch.arange(3.0)
    case = Case("f", (1, x))
    assert inputs_untouched(case, Returned(0.0, (None, x)), Returned(0.0, (None, x.clone()))) is None
    assert "argument number 2" in said(inputs_untouched(case, Returned(0.0, (None, x)), Returned(0.0, (None, x + 1))))


def test_arguments_on_the_meta_device_count_as_untouched() -> None:
    x = torch.arange(3.0)
    case = Case("f", (x,), device="meta")
    assert inputs_untouched(case, Returned(0.0, (x.to("meta"),)), Returned(0.0, (x.to("meta"),))) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.zeros(2, 3), "float32 tensor (2, 3)"),
        (0.5, "0.5"),
        (57351.0, "57351"),
        (torch.bfloat16, "torch.bfloat16"),
        (Other("numpy.ndarray"), "numpy.ndarray"),
        ([torch.zeros(2), None], "[float32 tensor (2,), None]"),
        (tuple(range(9)), "(0, 1, 2, 3, …)"),
        ("x" * 500, "'" + "x" * 79 + "…"),
    ],
)
def test_values_are_described_in_short(value: Any, text: str) -> None:
    assert describe(value) == text


def test_a_call_is_described_as_code() -> None:
    case = Case("encode", (3, torch.zeros(2)), {"base": 57.3, "dtype": torch.float16})
    assert describe_call(case) == "encode(3, float32 tensor (2,), base=57.3, dtype=torch.float16)"
    assert describe_call(Case("q1", read=True)) == "q1"
