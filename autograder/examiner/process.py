"""The grader's handle on an examiner that runs as a process of its own. Loads no torch: the grader needs none."""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from autograder.results import Verdict

START_TIMEOUT_S = 120.0
"""Importing torch takes about 2 s; a cold disk or a loaded machine can take many times that."""
REPLY_TIMEOUT_S = 60.0


class ExaminerDied(Exception):
    """The examiner's process ended or stopped answering; what it had not yet handed over is lost."""


@dataclass(frozen=True)
class Closing:
    """What an examination came to.

    Attributes:
        verdict: None when there was no complete examination.
        refusal: why a message from the kernel was refused, if one was.
        fault: what went wrong in the examiner itself, if something did.
    """

    verdict: Verdict | None
    refusal: str | None = None
    fault: str | None = None


def _main(control: Connection[Any, Any], course_key: bytes, device: str) -> None:
    from autograder.examiner.server import serve

    serve(control, course_key, device)


class ExaminerProcess:
    """The grader's handle on an examiner. Starts the process at once; `admit` before each kernel.

    Args:
        course_key: secret from which each student's cases are drawn.
        device: "auto", "cpu" or "cuda".
    """

    def __init__(self, course_key: bytes, device: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._control, theirs = context.Pipe()
        self._process = context.Process(target=_main, args=(theirs, course_key, device), daemon=True)
        self._process.start()
        theirs.close()
        self._ready = False

    def admit(self) -> tuple[str, str]:
        """Let one more kernel in: the address and a fresh key (hex) for its environment. Earlier keys open no more.

        Waits until the process is ready.
        """
        if not self._ready:
            self._receive(START_TIMEOUT_S)
            self._ready = True
        self._send(("admit",))
        address, key = self._receive(REPLY_TIMEOUT_S)
        return address, key

    def open(self, student: str, exercise: str, answer: str = "", others: tuple[str, ...] = ()) -> None:
        """Allow one examination of this exercise, until `close`.

        Args:
            answer: text of the answer's cell, for exercises with rules.
            others: texts of the notebook's other cells that are not the course's own.
        """
        self._send(("open", student, exercise, answer, others))
        self._receive(REPLY_TIMEOUT_S)

    def close(self) -> Closing:
        """End the examination and hand over what it came to."""
        self._send(("close",))
        closing: Closing = self._receive(REPLY_TIMEOUT_S)
        return closing

    def stop(self) -> None:
        self._control.close()
        self._process.kill()
        self._process.join()

    def _send(self, message: tuple[Any, ...]) -> None:
        try:
            self._control.send(message)
        except OSError as error:
            raise ExaminerDied(str(error)) from error

    def _receive(self, timeout_s: float) -> Any:
        try:
            if not self._control.poll(timeout_s):
                raise ExaminerDied(f"no reply within {timeout_s:g} s")
            return self._control.recv()
        except (OSError, EOFError) as error:
            raise ExaminerDied("its process ended") from error
