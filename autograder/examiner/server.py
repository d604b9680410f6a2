"""The examiner as a process of its own: hands out cases, receives raw tensors, keeps the verdicts.

The grader owns it through `ExaminerProcess`. A kernel reaches it through a socket, and only for the exercise whose test
cell the grader is running at that moment, once.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import secrets
import threading
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener, answer_challenge, deliver_challenge
from typing import Any, Protocol

from autograder.examiner import protocol
from autograder.examiner.client import load_meta_device
from autograder.results import Verdict

START_TIMEOUT_S = 120.0
"""Importing torch takes about 2 s; a cold disk or a loaded machine can take many times that."""
REPLY_TIMEOUT_S = 60.0

log = logging.getLogger(__name__)


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


@dataclass
class _Window:
    """The time in which one exercise of one student may be examined: between the start and the end of its test cell."""

    student: str
    exercise: str
    answer: str = ""
    others: tuple[str, ...] = ()
    taken: bool = False
    closing: Closing = field(default_factory=lambda: Closing(None))


class _Peer(Protocol):
    """The end of a connection to a kernel."""

    def recv_bytes(self, maxlength: int | None = None) -> bytes: ...
    def send_bytes(self, buf: bytes) -> None: ...


class _Server:
    """Runs in the examiner's process. One thread a connection; the grader's commands come over `control`."""

    def __init__(self, control: Connection[Any, Any], course_key: bytes, device: str) -> None:
        from autograder.examiner.judge import accelerator

        self._control = control
        self._course_key = course_key
        self._device = accelerator(device)
        self._key = secrets.token_bytes(32)
        self._listener = Listener()  # the key is asked for in the connection's own thread: see `_serve`
        self._window: _Window | None = None
        self._lock = threading.Lock()

    def run(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()
        self._control.send(None)
        load_meta_device()  # while the first kernel starts
        while True:
            try:
                command, *arguments = self._control.recv()
            except EOFError:
                return  # the grader is gone
            if command == "admit":
                self._key = secrets.token_bytes(32)
                self._control.send((self._listener.address, self._key.hex()))
            elif command == "open":
                with self._lock:
                    self._window = _Window(*arguments)
                self._control.send(None)
            elif command == "close":
                with self._lock:
                    window, self._window = self._window, None
                self._control.send(window.closing if window else Closing(None))

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except (OSError, EOFError):
                continue  # a kernel that went away
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection[Any, Any]) -> None:
        with connection, contextlib.suppress(OSError, EOFError, AuthenticationError, protocol.MalformedMessage):
            # As Listener(authkey=…) does, but whoever connects and stays silent keeps nobody else waiting.
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            request = protocol.decode(connection.recv_bytes(protocol.MAX_MESSAGE_BYTES))
            with self._lock:
                window = self._window
                if not isinstance(request, dict) or window is None or window.taken:
                    return
                if request.get("exercise") != window.exercise:
                    return
                window.taken = True
            try:
                closing = Closing(self._examine(window, request, connection))
            except protocol.MalformedMessage as error:
                closing = Closing(None, refusal=str(error))
            except (OSError, EOFError):
                return  # the kernel went away in the middle: no verdict
            except Exception as error:  # a fault of ours is shown as such, never as the student's
                log.exception("examining %s failed", window.exercise)
                closing = Closing(None, fault=f"{type(error).__name__}: {error}")
            with self._lock:
                window.closing = closing
            connection.send_bytes(protocol.encode("received"))

    def _examine(self, window: _Window, request: dict[str, Any], connection: _Peer) -> Verdict:
        from autograder.examiner.judge import Examination, Sources, seed_for
        from autograder.exercises import EXERCISES

        exercise = EXERCISES[window.exercise]
        if request.get("answers") != len(exercise.functions):
            raise protocol.MalformedMessage(f"{exercise.id} takes {len(exercise.functions)} answers")
        examination = Examination(exercise, seed_for(self._course_key, window.student, exercise.id), self._device)
        connection.send_bytes(examination.questions)
        observations = connection.recv_bytes(protocol.MAX_MESSAGE_BYTES)
        return examination.judge(observations, Sources(window.answer, window.others))


def _main(control: Connection[Any, Any], course_key: bytes, device: str) -> None:
    import torch

    torch.set_num_threads(1)  # cases are small; the cores belong to the kernels
    _Server(control, course_key, device).run()


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
