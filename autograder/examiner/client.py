"""The student's side of an examination: fetch the questions, run the student's functions, send the raw results back.

Runs in the student's kernel. Holds no answer, no expected value and no verdict; imports only the protocol.
"""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from collections.abc import Sequence
from multiprocessing.connection import Client
from typing import Any

import torch

from autograder.examiner import protocol

ADDRESS_VARIABLE = "ORDER_MATTERS_EXAMINER"
"""Environment variable with the examiner's socket; absent when `grade` judges in the same process."""
KEY_VARIABLE = "ORDER_MATTERS_EXAMINER_KEY"
"""Environment variable with the key (hex) that opens the socket for this kernel."""


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
    return value


def observe(question: dict[str, Any], answers: Sequence[Any]) -> dict[str, Any]:
    """Put one question to the student's answers: the value and the arguments after the call, or the error."""
    answer = answers[question["answer"]]
    if question["read"]:
        return {"returned": answer, "args_after": ()}
    device = question["device"]
    args = [_prepared(value, device) for value in question["args"]]
    kwargs = {name: _prepared(value, device) for name, value in question["kwargs"].items()}
    try:
        value = answer(*args, **kwargs)
    except (Exception, SystemExit) as error:
        names = tuple(kind.__name__ for kind in type(error).__mro__ if issubclass(kind, BaseException))
        return {"raised": names, "message": _message(error)}
    after = tuple(value if isinstance(value, torch.Tensor) else None for value in args)
    return {"returned": value, "args_after": after}


def _message(error: BaseException) -> str:
    try:
        return str(error)[:500]
    except Exception:
        return "(an error whose text can't be read)"


def observe_all(questions: bytes, answers: Sequence[Any]) -> bytes:
    """Answer an encoded list of questions with an encoded list of observations, one each, in order."""
    observations = []
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")  # a warning is no mistake, and nbgrader would take its text for one
        for question in protocol.decode(questions):
            observations.append(observe(question, answers))
    return protocol.encode(observations)


def ask_examiner(exercise: str, answers: Sequence[Any]) -> None:
    """Take the exercise's examination over the examiner's socket. The verdict stays with the examiner."""
    with Client(os.environ[ADDRESS_VARIABLE], authkey=bytes.fromhex(os.environ[KEY_VARIABLE])) as connection:
        connection.send_bytes(protocol.encode({"exercise": exercise, "answers": len(answers)}))
        try:
            questions = connection.recv_bytes(protocol.MAX_MESSAGE_BYTES)
        except EOFError:
            raise RuntimeError(f"the examiner takes one examination of {exercise!r}, in its test cell") from None
        connection.send_bytes(observe_all(questions, answers))
        connection.recv_bytes(protocol.MAX_MESSAGE_BYTES)  # the receipt: the examiner has judged
