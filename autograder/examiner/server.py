"""The examiner's own process: hands out cases, receives raw tensors, keeps the verdicts.

A kernel reaches it through a socket, and only for the exercise whose test cell the grader is running at that moment,
once. The grader's end is `autograder.examiner.process`.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import signal
import threading
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener, answer_challenge, deliver_challenge
from typing import Any, Protocol

from autograder.examiner import protocol
from autograder.examiner.client import load_meta_device
from autograder.examiner.process import Closing
from autograder.results import Verdict

log = logging.getLogger(__name__)


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


def serve(control: Connection[Any, Any], course_key: bytes, device: str) -> None:
    """The whole life of the examiner's process. Arguments as for `ExaminerProcess`."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends when the grader's end of `control` closes
    torch.set_num_threads(1)  # cases are small; the cores belong to the kernels
    _Server(control, course_key, device).run()
