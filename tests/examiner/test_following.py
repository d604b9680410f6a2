"""Cases with steps: gradients of plain functions, sparse gradients, and the same first weights at every grading."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from autograder.examiner import protocol
from autograder.examiner.client import observe_all


def ask(answer: Any, args: tuple[Any, ...], *steps: tuple[str, tuple[Any, ...]], track: bool = False) -> dict[str, Any]:
    """What the client observes of one question."""
    question = {
        "answer": 0,
        "args": list(args),
        "kwargs": {},
        "device": "cpu",
        "read": False,
        "operators": (),
        "track": track,
        "steps": [{"do": do, "args": list(given), "kwargs": {}, "track": False} for do, given in steps],
    }
    (observation,) = protocol.decode(observe_all(protocol.encode([question]), [answer]))
    found: dict[str, Any] = observation
    return found


def test_a_functions_gradient_is_observed_by_the_number_of_the_argument() -> None:
    def product(x: Tensor, y: Tensor, times: int) -> Tensor:
        return times * x * y

    x, y, weights = (torch.arange(3.0) + k for k in (1, 2, 3))
    found = ask(product, (x, y, 5), ("backward", (weights,)), track=True)["returned"]
    assert found.keys() == {"input 0", "input 1"}
    assert torch.equal(found["input 0"], 5 * y * weights)
    assert torch.equal(found["input 1"], 5 * x * weights)


def test_a_function_without_gradient_is_observed_as_an_error() -> None:
    found = ask(lambda x: x.detach(), (torch.ones(3),), ("backward", (torch.ones(3),)), track=True)
    assert "RuntimeError" in found["raised"]


def test_whole_number_arguments_are_never_tracked() -> None:
    found = ask(lambda x, index: x[index], (torch.ones(3), torch.tensor([2])), track=True)
    assert torch.equal(found["returned"], torch.ones(1))


def test_a_sparse_gradient_is_observed_like_any_other() -> None:
    class Lookup(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(4, 2, sparse=True)

        def forward(self, numbers: Tensor) -> Tensor:
            rows: Tensor = self.table(numbers)
            return rows

    steps = (("forward", (torch.tensor([1, 3, 3]),)), ("backward", (torch.ones(3, 2),)))
    found = ask(Lookup, (), *steps)["returned"]["table.weight"]
    assert torch.equal(found, torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]))


def test_first_weights_are_the_same_each_time_and_the_notebooks_random_numbers_stay_as_they_were() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = ask(lambda: nn.Linear(2, 3), (), ("state", ()))["returned"]
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    second = ask(lambda: nn.Linear(2, 3), (), ("state", ()))["returned"]
    assert torch.equal(first["weight"], second["weight"])
    failing = ask(lambda: nn.Linear(2, 3), (), ("forward", (torch.ones(5),)))
    assert "raised" in failing
    assert torch.equal(torch.get_rng_state(), torch.Generator().manual_seed(2).get_state())
