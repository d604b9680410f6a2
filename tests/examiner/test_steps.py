"""Cases with steps: what each step does with the module that the call constructs, and what goes wrong with others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from autograder.examiner.client import observe_all
from autograder.examiner.judge import decode_observations, encode_questions
from autograder.exercises.declaration import (
    Case,
    Exercise,
    Observation,
    Other,
    Raised,
    Returned,
    Step,
    backward,
    buffers,
    forward,
    load,
    mode,
    parameters,
    seed,
    state,
    to,
)


class Affine(nn.Module):
    """Everything that a module can hold: parameters, a frozen one, both kinds of buffer, an attribute."""

    fixed: Tensor
    saved: Tensor

    def __init__(self, width: int, share: float = 0.0) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))
        self.frozen = nn.Parameter(torch.ones(()), requires_grad=False)
        self.unused = nn.Parameter(torch.ones(7))
        self.register_buffer("fixed", torch.ones(width), persistent=False)
        self.register_buffer("saved", torch.ones(1))
        self.attribute = torch.ones(width)
        self.dropout = nn.Dropout(share)

    def forward(self, x: Tensor, times: float = 1.0) -> Tensor:
        found: Tensor = self.dropout(self.inner(x) * times + self.bias * self.fixed * self.frozen)
        return found


WEIGHT = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
BIAS = torch.tensor([10.0, 20.0])
LOADED = load({"inner.weight": WEIGHT, "bias": BIAS})
X = torch.tensor([[1.0, 1.0], [0.0, 2.0], [4.0, 0.0]])
Y = X @ WEIGHT.T + BIAS


def asked(answer: Callable[..., Any], *steps: Step, args: tuple[Any, ...] = (2,), **case: Any) -> Observation:
    """What the examiner receives when the answer is put through these steps."""
    exercise = Exercise("made-up", "01-tiny", ("answer",), {"answer": answer}, lambda draw: [], (), ())
    questions = encode_questions(exercise, [Case("answer", args, steps=steps, **case)])
    (observation,) = decode_observations(observe_all(questions, [answer]), 1)
    return observation


def value_of(observation: Observation) -> Any:
    assert isinstance(observation, Returned), observation
    return observation.value


def kinds_of(observation: Observation) -> tuple[str, ...]:
    assert isinstance(observation, Raised), observation
    return observation.types


def test_load_copies_tensors_to_where_they_belong() -> None:
    found = value_of(asked(Affine, LOADED, forward(X)))
    assert torch.equal(found, Y)


def test_load_fills_buffers_of_both_kinds() -> None:
    filled = load({"fixed": torch.tensor([2.0, 3.0]), "saved": torch.tensor([4.0])})
    found = value_of(asked(Affine, filled, buffers()))
    assert {name: value.tolist() for name, value in found.items()} == {"fixed": [2.0, 3.0], "saved": [4.0]}


def test_load_leaves_other_names_and_other_shapes_alone() -> None:
    """A name that is not there, a shape that does not fit and a plain attribute change nothing and are no error."""
    before = value_of(asked(Affine, state()))
    strange = load({"inner.bias": BIAS, "inner.weight": torch.zeros(3, 2), "attribute": BIAS, "unused": torch.zeros(1)})
    after = value_of(asked(Affine, strange, state()))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_load_by_shape_finds_a_layer_of_another_name() -> None:
    renamed = load({"table.weight": WEIGHT, "bias": BIAS}, by_shape=True)
    assert torch.equal(value_of(asked(Affine, renamed, forward(X))), Y)
    assert not torch.equal(value_of(asked(Affine, load(dict(renamed.args[0])), forward(X))), Y)


class Layers(nn.Module):
    """Two layers of the same shapes, one of others, one with two parameters of one shape."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(2, 3), nn.Linear(2, 3)
        self.table = nn.Embedding(5, 2)
        self.norm = nn.LayerNorm(4)


def filled_by(*tensors: tuple[str, tuple[int, ...]]) -> dict[str, float]:
    """What a load of these shapes by shape changes: the nth tensor is n throughout."""
    before = value_of(asked(Layers, state(), args=()))
    given = {name: torch.full(shape, float(number)) for number, (name, shape) in enumerate(tensors, start=2)}
    after = value_of(asked(Layers, load(given, by_shape=True), state(), args=()))
    return {name: value.mean().item() for name, value in after.items() if not torch.equal(value, before[name])}


def test_load_by_shape_goes_by_names_first_then_by_last_names_then_by_order() -> None:
    """A parameter that a name claims is never filled by another tensor."""
    weight, bias = (3, 2), (3,)
    assert filled_by(("second.weight", weight)) == {"second.weight": 2.0}
    assert filled_by(("a.weight", weight), ("a.bias", bias)) == {"first.weight": 2.0, "first.bias": 3.0}
    assert filled_by(("deep.second.weight", weight), ("deep.second.bias", bias)) == {
        "second.weight": 2.0,
        "second.bias": 3.0,
    }
    both = (("a.weight", weight), ("a.bias", bias), ("first.weight", weight), ("first.bias", bias))
    assert filled_by(*both) == {"second.weight": 2.0, "second.bias": 3.0, "first.weight": 4.0, "first.bias": 5.0}


def test_load_by_shape_tells_parameters_of_one_shape_by_their_last_name() -> None:
    assert filled_by(("scale.bias", (4,)), ("scale.weight", (4,))) == {"norm.bias": 2.0, "norm.weight": 3.0}


def test_load_by_shape_leaves_out_what_fits_nowhere() -> None:
    """A layer with other shapes, too few or too many parameters; and a third layer where there are two."""
    assert filled_by(("a.weight", (9, 9))) == {}
    assert filled_by(("a.weight", (3, 2))) == {}
    assert filled_by(("a.weight", (5, 2)), ("a.bias", (5,))) == {}
    pairs = [(f"{layer}.{part}", shape) for layer in "abc" for part, shape in (("weight", (3, 2)), ("bias", (3,)))]
    assert set(filled_by(*pairs)) == {"first.weight", "first.bias", "second.weight", "second.bias"}


def test_load_needs_no_gradient_and_leaves_none() -> None:
    found = value_of(asked(Affine, LOADED, forward(X), backward(torch.ones(3, 2))))
    assert torch.equal(found["bias"], torch.tensor([3.0, 3.0]))


def test_forward_hands_over_positions_and_names() -> None:
    assert torch.equal(value_of(asked(Affine, LOADED, forward(X, 3.0))), 3 * X @ WEIGHT.T + BIAS)
    assert torch.equal(value_of(asked(Affine, LOADED, forward(X, times=3.0))), 3 * X @ WEIGHT.T + BIAS)


def test_a_constructor_gets_positions_and_names() -> None:
    found = value_of(asked(Affine, mode(train=True), forward(X), args=(), kwargs={"share": 1.0, "width": 2}))
    assert not found.any()


def test_the_arguments_after_the_last_call_are_observed() -> None:
    """An input that was written into is seen, also with several calls before."""

    class Greedy(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.add_(1)

    observation = asked(Greedy, forward(torch.zeros(5)), forward(X), args=())
    assert isinstance(observation, Returned)
    (after,) = observation.args_after
    assert torch.equal(after, X + 1)


def test_every_answer_gets_its_own_copy_of_the_tensors_in_steps() -> None:
    """What one answer writes into is fresh for the next step and the next answer."""

    class Greedy(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.mul_(0) + 1

    call = forward(X)
    assert torch.equal(value_of(asked(Greedy, call, call, args=())), torch.ones(3, 2))
    assert torch.equal(value_of(asked(Affine, LOADED, call)), Y)


def test_backward_observes_gradients_by_name() -> None:
    """Of the sum weighted as told; None where none arrived, and nothing for arguments that were not tracked."""
    along = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    found = value_of(asked(Affine, LOADED, forward(X), backward(along)))
    assert found.keys() == {"inner.weight", "bias", "frozen", "unused"}
    assert torch.equal(found["inner.weight"], along.T @ X)
    assert torch.equal(found["bias"], along.sum(0))
    assert found["frozen"] is None
    assert found["unused"] is None


def test_a_tracked_input_has_a_gradient_of_its_own() -> None:
    along = torch.arange(6.0).view(3, 2)
    found = value_of(asked(Affine, LOADED, forward(X, 2.0, track=True), backward(along)))
    assert torch.equal(found["input 0"], 2 * along @ WEIGHT)
    assert "input 1" not in found


def test_a_tracked_input_that_gets_no_gradient_is_observed_as_none() -> None:
    class Deaf(Affine):
        def forward(self, x: Tensor, times: float = 1.0) -> Tensor:
            return super().forward(x.detach(), times)

    assert value_of(asked(Deaf, forward(X, track=True), backward(torch.ones(3, 2))))["input 0"] is None


def test_whole_numbers_are_not_tracked() -> None:
    """Token ids stay as they are, and the gradients of the table arrive."""
    ids = torch.tensor([[1, 0], [1, 1]])
    found = value_of(asked(nn.Embedding, forward(ids, track=True), backward(torch.ones(2, 2, 3)), args=(2, 3)))
    assert found.keys() == {"weight"}
    assert torch.equal(found["weight"], torch.tensor([[1.0] * 3, [3.0] * 3]))


@pytest.mark.parametrize("steps", [(backward(X),), (forward(X), backward(torch.ones(4, 4)))], ids=["early", "shape"])
def test_a_backward_that_cannot_be_is_the_answers_error(steps: tuple[Step, ...]) -> None:
    assert "Exception" in kinds_of(asked(Affine, *steps))


def test_mode_switches_dropout() -> None:
    """A new module is in train mode, as torch makes it."""
    share = {"share": 1.0}
    assert not value_of(asked(Affine, LOADED, forward(X), kwargs=share)).any()
    assert torch.equal(value_of(asked(Affine, LOADED, mode(train=False), forward(X), kwargs=share)), Y)
    switched = (mode(train=False), mode(train=True))
    assert not value_of(asked(Affine, LOADED, *switched, forward(X), kwargs=share)).any()


def test_seed_makes_chance_repeatable() -> None:
    x = torch.ones(20, 2)

    def dropped(*numbers: int) -> Tensor:
        steps = [step for number in numbers for step in (seed(number), forward(x))]
        found: Tensor = value_of(asked(Affine, LOADED, *steps, kwargs={"share": 0.5}))
        return found

    assert torch.equal(dropped(1), dropped(1))
    assert torch.equal(dropped(2, 1), dropped(1))
    assert not torch.equal(dropped(1), dropped(2))


def test_seeds_do_not_reach_the_students_own_random_numbers() -> None:
    """What a notebook draws after its test cell is what it draws without one."""
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    asked(Affine, seed(1), forward(X), kwargs={"share": 0.5})
    asked(Affine, seed(1), forward(torch.ones(1, 9)))
    assert torch.equal(torch.rand(3), wanted)


def test_to_moves_parameters_and_buffers() -> None:
    found = value_of(asked(Affine, to(torch.bfloat16), forward(X.bfloat16())))
    assert found.dtype == torch.bfloat16
    moved = value_of(asked(Affine, to("meta"), buffers()))
    assert all(value.is_meta for value in moved.values())


def test_a_case_on_another_device_moves_module_and_arguments() -> None:
    """There are shapes and no values on "meta"; loading and calling work as elsewhere."""
    found = value_of(asked(Affine, LOADED, mode(train=False), forward(X), device="meta"))
    assert found.is_meta
    assert found.shape == (3, 2)


def test_a_plain_attribute_stays_behind_on_another_device() -> None:
    class Attribute(Affine):
        def forward(self, x: Tensor, times: float = 1.0) -> Tensor:
            return super().forward(x, times) + self.attribute

    assert torch.equal(value_of(asked(Attribute, LOADED, forward(X))), Y + 1)
    assert "RuntimeError" in kinds_of(asked(Attribute, LOADED, forward(X), device="meta"))


def test_state_parameters_and_buffers_tell_four_places_apart() -> None:
    saved, learned, held = (value_of(asked(Affine, step)) for step in (state(), parameters(), buffers()))
    weights = {"inner.weight", "bias", "frozen", "unused"}
    assert saved.keys() == weights | {"saved"}
    assert learned.keys() == weights
    assert held.keys() == {"saved", "fixed"}
    assert saved["inner.weight"].shape == (2, 2)


def test_a_state_after_a_call_shows_what_the_call_changed() -> None:
    class Counting(nn.Module):
        count: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.count += 1
            return x

    found = value_of(asked(Counting, forward(X), forward(X), state(), args=()))
    assert found["count"].item() == 2


def test_only_the_last_step_is_observed() -> None:
    assert value_of(asked(Affine, forward(X), mode(train=False), state())).keys() >= {"bias"}
    assert torch.equal(value_of(asked(Affine, LOADED, state(), forward(X))), Y)


def test_an_error_in_any_step_is_the_answer() -> None:
    assert "RuntimeError" in kinds_of(asked(Affine, forward(torch.ones(1, 9)), state()))
    assert "TypeError" in kinds_of(asked(Affine, state(), args=("wide",)))

    class Refusing(Affine):
        def __init__(self, width: int) -> None:
            raise ValueError(f"width = {width} is too small")

    found = asked(Refusing, state())
    assert kinds_of(found)[0] == "ValueError"
    assert isinstance(found, Raised)
    assert found.message == "width = 2 is too small"


def test_a_module_that_quits_the_process_is_an_error_like_others() -> None:
    class Quitting(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise SystemExit("bye")

    assert kinds_of(asked(Quitting, forward(X), args=()))[0] == "SystemExit"


def test_an_unknown_step_is_an_error() -> None:
    found = asked(Affine, Step("dance"))
    assert isinstance(found, Raised)
    assert "dance" in found.message


NOT_MODULES: dict[str, Any] = {
    "None": lambda width: None,
    "a number": lambda width: 3,
    "a text": lambda width: "module",
    "a function": lambda width: len,
    "a dict": lambda width: {"table.weight": WEIGHT},
    "an ordinary object": lambda width: object(),
}
EVERY_STEP = {
    "load": LOADED,
    "load by shape": load({"x": BIAS}, by_shape=True),
    "forward": forward(X),
    "backward": backward(X),
    "mode": mode(train=True),
    "to": to(torch.float64),
    "state": state(),
    "parameters": parameters(),
    "buffers": buffers(),
}


@pytest.mark.parametrize("step", EVERY_STEP.values(), ids=EVERY_STEP)
@pytest.mark.parametrize("answer", NOT_MODULES.values(), ids=NOT_MODULES)
def test_what_is_no_module_ends_in_an_error(answer: Callable[..., Any], step: Step) -> None:
    """On the CPU and elsewhere; `len` of a tensor is the one call here that works."""
    if answer is NOT_MODULES["a function"] and step is EVERY_STEP["forward"]:
        assert value_of(asked(answer, step)) == 3
    else:
        assert "Exception" in kinds_of(asked(answer, step))
    assert "Exception" in kinds_of(asked(answer, step, device="meta"))


def test_a_class_of_ones_own_with_the_right_methods_is_good_enough() -> None:
    """What can be called is called; only steps that need a module's methods fail."""

    class Doubling:
        def __call__(self, x: Tensor) -> Tensor:
            return 2 * x

    assert torch.equal(value_of(asked(Doubling, forward(X), args=())), 2 * X)
    assert kinds_of(asked(Doubling, state(), args=()))[0] == "AttributeError"


@pytest.mark.parametrize("found", [None, 3, "text", ["a"], {"weight": 5}], ids=repr)
def test_a_module_whose_state_is_something_else_is_observed(found: Any) -> None:
    """An overridden method may return anything; it reaches the examiner as plain data or as an error."""

    class Odd(nn.Module):
        def state_dict(self, *args: Any, **kwargs: Any) -> Any:
            return found

    observation = asked(Odd, state(), args=())
    if found == {"weight": 5}:
        assert value_of(observation) == found
    else:
        assert "Exception" in kinds_of(observation)


def test_a_result_that_is_no_tensor_reaches_the_examiner_as_its_type() -> None:
    class Odd(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return self

    found = value_of(asked(Odd, forward(X), args=()))
    assert isinstance(found, Other)
    assert found.type_name.endswith("Odd")
