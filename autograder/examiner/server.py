"""The examiner's own process: hands out cases, receives raw tensors, keeps the verdicts.

A kernel reaches it through a socket that was put into its hands, and only for the exercise whose test cell the grader
is running at that moment, once. The grader's end is `autograder.examiner.process`.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import os
import secrets
import signal
import socket
import sys
import threading
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge, wait
from multiprocessing.reduction import recv_handle
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


class _Interrupted(Exception):
    """In place of the answer comes the next request: the test cell was interrupted in between."""

    def __init__(self, message: bytes) -> None:
        self.message = message


def _is_request(message: bytes) -> bool:
    try:
        request = protocol.decode(message)
    except protocol.MalformedMessage:
        return False
    return isinstance(request, dict) and "exercise" in request


def _token(request: Any) -> bytes:
    """What the kernel put into its request to know the answers by; nothing if it did not."""
    token = request.get("token") if isinstance(request, dict) else None
    try:
        return bytes.fromhex(token)[: protocol.NONCE_BYTES] if isinstance(token, str) else b""
    except ValueError:
        return b""


class _Peer(Protocol):
    """The end of a connection to a kernel."""

    def recv_bytes(self, maxlength: int | None = None) -> bytes: ...
    def send_bytes(self, buf: bytes) -> None: ...


class _Server:
    """One worker's examiner. A kernel has a thread of its own; the grader's commands come over `control`."""

    def __init__(self, control: Connection[Any, Any], course_key: bytes, device: str) -> None:
        from autograder.examiner.judge import accelerator

        self._control = control
        self._course_key = course_key
        self._device = accelerator(device)
        self._kernel: socket.socket | None = None
        self._window: _Window | None = None
        self._lock = threading.Lock()

    def run(self) -> None:
        """Obey the grader until it is gone."""
        while True:
            try:
                command, *arguments = self._control.recv()
            except (EOFError, OSError):
                return
            if command == "admit":
                self._admit(socket.socket(fileno=recv_handle(self._control)))
                self._control.send(None)
            elif command == "open":
                with self._lock:
                    self._window = _Window(*arguments)
                self._control.send(None)
            elif command == "close":
                with self._lock:
                    window, self._window = self._window, None
                self._control.send(window.closing if window else Closing(None))

    def _admit(self, kernel: socket.socket) -> None:
        if self._kernel is not None:
            with contextlib.suppress(OSError):
                self._kernel.shutdown(socket.SHUT_RDWR)  # its thread wakes up and ends
            self._kernel.close()
        self._kernel = kernel
        threading.Thread(target=self._serve, args=(kernel.dup(),), daemon=True).start()

    def _serve(self, kernel: socket.socket) -> None:
        """Examinations, one after another, as long as the kernel keeps to the protocol."""
        with kernel, contextlib.suppress(OSError):
            with Connection(os.dup(kernel.fileno())) as connection:
                self._converse(connection)
            kernel.shutdown(socket.SHUT_RDWR)  # whoever still waits for an answer learns that there will be none

    def _converse(self, connection: Connection[Any, Any]) -> None:
        with contextlib.suppress(OSError, EOFError, protocol.MalformedMessage):
            message = connection.recv_bytes(protocol.MAX_MESSAGE_BYTES)
            while True:
                request = protocol.decode(message)
                token = _token(request)
                window = self._take_window(request)
                if window is None:
                    connection.send_bytes(token + protocol.REFUSED)
                else:
                    try:
                        closing = Closing(self._examine(window, request, token, connection))
                    except _Interrupted as interruption:
                        message = interruption.message
                        continue
                    except protocol.MalformedMessage as error:
                        closing = Closing(None, refusal=str(error))
                    except (OSError, EOFError):
                        return  # the kernel went away in the middle: no verdict
                    except Exception as error:  # a fault of ours is shown as such, never as the student's
                        log.exception("examining %s failed", window.exercise)
                        closing = Closing(None, fault=f"{type(error).__name__}: {error}")
                    with self._lock:
                        window.closing = closing
                    connection.send_bytes(token + protocol.RECEIPT)
                message = connection.recv_bytes(protocol.MAX_MESSAGE_BYTES)

    def _take_window(self, request: Any) -> _Window | None:
        """The open window, if the request is for its exercise and nobody has used it."""
        with self._lock:
            window = self._window
            if not isinstance(request, dict) or window is None or window.taken:
                return None
            if request.get("exercise") != window.exercise:
                return None
            window.taken = True
            return window

    def _examine(self, window: _Window, request: dict[str, Any], token: bytes, connection: _Peer) -> Verdict:
        from autograder.examiner.judge import Examination, Sources, seed_for
        from autograder.exercises import EXERCISES

        exercise = EXERCISES[window.exercise]
        if request.get("answers") != len(exercise.functions):
            raise protocol.MalformedMessage(f"{exercise.id} takes {len(exercise.functions)} answers")
        examination = Examination(exercise, seed_for(self._course_key, window.student, exercise.id), self._device)
        nonce = secrets.token_bytes(protocol.NONCE_BYTES)
        connection.send_bytes(token + protocol.QUESTIONS + nonce + examination.questions)
        reply = connection.recv_bytes(protocol.MAX_MESSAGE_BYTES)
        if not hmac.compare_digest(reply[: protocol.NONCE_BYTES], nonce):
            if _is_request(reply):
                raise _Interrupted(reply)
            raise protocol.MalformedMessage("it belongs to another examination")
        return examination.judge(reply[protocol.NONCE_BYTES :], Sources(window.answer, window.others))


def serve(listener: socket.socket, owner: Connection[Any, Any]) -> None:
    """The whole life of the examiners' process, which ends when `owner` closes.

    Nothing a kernel sends is read here: that is the forks' affair.
    """
    import torch

    key, course_key, device = owner.recv()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no fork's status is of interest
    torch.set_num_threads(1)  # cases are small; the cores belong to the kernels. And threads do not survive a fork.
    load_meta_device()
    while owner not in wait([listener, owner]):
        accepted, _ = listener.accept()
        if os.fork():
            accepted.close()
            continue
        try:
            listener.close()
            owner.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _serve_worker(Connection(accepted.detach()), key, course_key, device)
        finally:
            os._exit(0)


def _serve_worker(control: Connection[Any, Any], key: bytes, course_key: bytes, device: str) -> None:
    with control, contextlib.suppress(OSError, EOFError, AuthenticationError):
        deliver_challenge(control, key)
        answer_challenge(control, key)
        _Server(control, course_key, device).run()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the owner
    serve(socket.socket(fileno=int(sys.argv[1])), Connection(int(sys.argv[2])))
