"""The student's side of an examination: fetch the questions, run the student's functions, send the raw results back.

Runs in the student's kernel. Holds no answer, no expected value and no verdict; imports only the protocol.
"""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from autograder.examiner import protocol
from autograder.examiner.address import EXAMINER_VARIABLE


def load_meta_device() -> None:
    """Make torch load what its "meta" device needs, 1.5 s at first use; for processes that prepare before the work."""
    torch.empty(1, 1, device="meta").tril()


def _prepared(value: Any, device: str) -> Any:
    """A fresh copy of one argument on `device`; a layer becomes a callable."""
    if isinstance(value, protocol.Layer):
        weights = value.weights.to(device)
        return lambda x: torch.einsum("ij,bjd->bid", weights.to(x.dtype), x)
    if isinstance(value, torch.Tensor):
        return value.clone().to(device)
    if isinstance(value, dict):
        return {name: _prepared(part, device) for name, part in value.items()}
    return value


def observe(question: dict[str, Any], answers: Sequence[Any]) -> dict[str, Any]:
    """Put one question to the student's answers: the value and the arguments after the call, or the error."""
    answer = answers[question["answer"]]
    if question["read"]:
        return {"returned": answer, "args_after": (), "operators": ()}
    device = question["device"]
    args = [_prepared(value, device) for value in question["args"]]
    kwargs = {name: _prepared(value, device) for name, value in question["kwargs"].items()}
    seen = Operators(question["operators"])
    try:
        with seen, _same_random_numbers(bool(question["steps"])):
            if question["track"]:
                args = [_tracked(value) for value in args]
            value = answer(*args, **kwargs)
            if question["steps"]:
                value, args = _follow(value, question["steps"], device, args)
    except (Exception, SystemExit) as error:
        names = tuple(kind.__name__ for kind in type(error).__mro__ if issubclass(kind, BaseException))
        return {"raised": names, "message": _message(error)}
    after = tuple(value if isinstance(value, torch.Tensor) else None for value in args)
    return {"returned": value, "args_after": after, "operators": tuple(sorted(seen.found))}


@contextlib.contextmanager
def _same_random_numbers(wanted: bool) -> Iterator[None]:
    """Inside, torch's generator starts from one fixed seed, so that a regrade finds the same first weights."""
    if not wanted:
        yield
        return
    before = torch.get_rng_state()
    torch.default_generator.manual_seed(0)
    try:
        yield
    finally:
        torch.set_rng_state(before)


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves this class untyped
    """Notes which of the `watched` low-level operators run in its `with` block, under whatever name."""

    def __init__(self, watched: Sequence[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.watched = frozenset(watched)
        self.found: set[str] = set()

    def __enter__(self) -> Any:
        return super().__enter__() if self.watched else self  # type: ignore[no-untyped-call]

    def __exit__(self, *error: Any) -> None:
        if self.watched:
            super().__exit__(*error)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name().split(".")[0]
        if name in self.watched:
            self.found.add(name)
        return func(*args, **(kwargs or {}))


def _follow(module: Any, steps: Sequence[dict[str, Any]], device: str, inputs: list[Any]) -> tuple[Any, list[Any]]:
    """Do the steps with a constructed module: what the last one observes, the arguments of the last forward call.

    A function's result can stand in the module's place, with `inputs` its arguments: then only `backward` makes sense.
    """
    observed: Any = None
    output: Any = module if isinstance(module, torch.Tensor) else None
    if output is None and device != "cpu":
        module = module.to(device)
    for step in steps:
        args = [_prepared(value, device) for value in step["args"]]
        kwargs = {name: _prepared(value, device) for name, value in step["kwargs"].items()}
        match step["do"]:
            case "load":
                _load(module, *args)
            case "forward":
                if step["track"]:
                    args = [_tracked(value) for value in args]
                inputs = args
                observed = output = module(*args, **kwargs)
            case "backward":
                (output * args[0]).sum().backward()
                observed = {name: _dense(parameter.grad) for name, parameter in _parameters(module)}
                observed |= {
                    f"input {number}": value.grad
                    for number, value in enumerate(inputs)
                    if isinstance(value, torch.Tensor) and value.requires_grad
                }
            case "mode":
                module.train(args[0])
            case "seed":
                torch.manual_seed(args[0])
            case "to":
                module = module.to(args[0])
            case "state":
                observed = dict(module.state_dict())
            case "parameters":
                observed = dict(module.named_parameters())
            case "buffers":
                observed = dict(module.named_buffers())
            case unknown:
                raise ValueError(f"unknown step {unknown!r}")
    return observed, inputs


def _parameters(module: Any) -> list[tuple[str, torch.nn.Parameter]]:
    return [] if isinstance(module, torch.Tensor) else list(module.named_parameters())


def _dense(gradient: torch.Tensor | None) -> torch.Tensor | None:
    """A gradient as an ordinary tensor; tables may have been made with `sparse=True`."""
    return gradient.to_dense() if gradient is not None and gradient.is_sparse else gradient


def _load(module: Any, tensors: dict[str, torch.Tensor], by_shape: bool = False) -> None:
    own = {**dict(module.named_buffers()), **dict(module.named_parameters())}
    places = {name: own[name] for name, value in tensors.items() if name in own and own[name].shape == value.shape}
    if by_shape:
        wanted = {name: value for name, value in tensors.items() if name not in places}
        left = {name: value for name, value in module.named_parameters() if name not in places}
        places |= {name: left[other] for name, other in _alike(wanted, left).items()}
    with torch.no_grad():
        for name, place in places.items():
            place.copy_(tensors[name])


def _alike(wanted: dict[str, torch.Tensor], left: dict[str, torch.Tensor]) -> dict[str, str]:
    """For tensors, the names of parameters that seem to be meant: layer by layer, by shapes, last name and order."""
    layers = _by_layer(left)
    found: dict[str, str] = {}
    for layer, names in _by_layer(wanted).items():
        shapes = sorted(wanted[name].shape for name in names)
        meant = [other for other, parts in layers.items() if sorted(left[part].shape for part in parts) == shapes]
        if not meant:
            continue
        parts = layers.pop(next((other for other in meant if _leaf(other) == _leaf(layer)), meant[0]))
        for name in names:
            fitting = [part for part in parts if left[part].shape == wanted[name].shape]
            part = next((part for part in fitting if _leaf(part) == _leaf(name)), fitting[0])
            parts.remove(part)
            found[name] = part
    return found


def _by_layer(names: Iterable[str]) -> dict[str, list[str]]:
    layers: dict[str, list[str]] = {}
    for name in names:
        layers.setdefault(name.rpartition(".")[0], []).append(name)
    return layers


def _leaf(name: str) -> str:
    return name.rpartition(".")[2]


def _tracked(value: Any) -> Any:
    return value.requires_grad_() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _message(error: BaseException) -> str:
    try:
        return str(error)[:500]
    except Exception:  # an error class of the student's own, whose __str__ may do anything
        return "(an error whose text can't be read)"


def observe_quietly(questions: Sequence[dict[str, Any]], answers: Sequence[Any]) -> list[dict[str, Any]]:
    """One observation for each question, in order. Warnings are no mistake, and nbgrader would take them for one."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        return [observe(question, answers) for question in questions]


def observe_all(questions: bytes, answers: Sequence[Any]) -> bytes:
    """Answer an encoded list of questions with an encoded list of observations."""
    return protocol.encode(observe_quietly(protocol.decode(questions), answers))


def ask_examiner(exercise: str, answers: Sequence[Any]) -> None:
    """Take the exercise's examination over the connection to the examiner. The verdict stays with the examiner."""
    with Connection(os.dup(int(os.environ[EXAMINER_VARIABLE]))) as examiner:
        token = os.urandom(protocol.NONCE_BYTES)

        def next_message() -> bytes:
            while True:
                message = examiner.recv_bytes(protocol.MAX_MESSAGE_BYTES)
                if message.startswith(token):  # others answer a request of a cell that was interrupted
                    return message[len(token) :]

        examiner.send_bytes(protocol.encode({"exercise": exercise, "answers": len(answers), "token": token.hex()}))
        message = next_message()
        if message == protocol.REFUSED:
            raise RuntimeError(f"the examiner takes one examination of {exercise!r}, in its test cell")
        start = len(protocol.QUESTIONS) + protocol.NONCE_BYTES
        nonce, questions = message[len(protocol.QUESTIONS) : start], message[start:]
        examiner.send_bytes(nonce + observe_all(questions, answers))
        next_message()  # the receipt: the examiner has judged
