"""The grader's handle on an examiner that runs as a process of its own. Loads no torch: the grader needs none.

One process loads torch and the exercises; each worker's examiner is a fork of it, for an examiner judges one kernel at
a time. The forks end with their workers, the process with whoever started it.
"""

from __future__ import annotations

import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Pipe, answer_challenge, deliver_challenge
from multiprocessing.reduction import send_handle
from pathlib import Path
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


@dataclass(frozen=True)
class ExaminerAddress:
    """Where a worker reaches the examiners' process; plain data, so that it can travel to the worker."""

    path: str
    key: bytes = field(repr=False)


class ExaminerHost:
    """Starts the examiners' process at once. Its `address` works from then on: who connects waits until it is ready.

    Args:
        course_key: secret from which each student's cases are drawn.
        device: "auto", "cpu" or "cuda".
    """

    def __init__(self, course_key: bytes, device: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="om-examiner-"))  # nobody but this user enters it
        self.address = ExaminerAddress(str(self._folder / "socket"), secrets.token_bytes(32))
        self._owner, theirs = Pipe()
        with socket.socket(socket.AF_UNIX) as listener, theirs:
            listener.bind(self.address.path)
            listener.listen(64)
            descriptors = (listener.fileno(), theirs.fileno())
            line = [sys.executable, "-P", "-m", "autograder.examiner.server", *map(str, descriptors)]
            self._process = subprocess.Popen(line, pass_fds=descriptors, cwd="/", stdin=subprocess.DEVNULL)
        self._owner.send((self.address.key, course_key, device))

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End it. Examiners that workers still use live on until those end."""
        self._owner.close()
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


class Examiner:
    """A worker's examiner. `admit` before each kernel.

    Args:
        address: of a running `ExaminerHost`. Raises ExaminerDied when there is none.
    """

    def __init__(self, address: ExaminerAddress) -> None:
        connecting = socket.socket(socket.AF_UNIX)
        connecting.settimeout(START_TIMEOUT_S)
        try:
            connecting.connect(address.path)
        except OSError as error:
            connecting.close()
            raise ExaminerDied(f"its process can't be reached: {error}") from error
        connecting.settimeout(None)
        self._control: Connection[Any, Any] = Connection(connecting.detach())
        self._key = address.key
        self._ready = False

    def admit(self) -> socket.socket:
        """Let one more kernel in: the kernel's end of its connection. Kernels admitted earlier are cut off.

        Waits until the process is ready.
        """
        if not self._ready:
            self._greet()
        ours, theirs = socket.socketpair()
        try:
            self._send(("admit",))
            send_handle(self._control, theirs.fileno(), None)  # the process id matters on Windows only
            self._receive(REPLY_TIMEOUT_S)
        except OSError as error:
            ours.close()
            raise ExaminerDied(str(error)) from error
        except ExaminerDied:
            ours.close()
            raise
        finally:
            theirs.close()
        return ours

    def _greet(self) -> None:
        """Each side shows the other that it knows the key."""
        try:
            if not self._control.poll(START_TIMEOUT_S):
                raise ExaminerDied(f"not ready within {START_TIMEOUT_S:g} s")
            answer_challenge(self._control, self._key)
            deliver_challenge(self._control, self._key)
        except (OSError, EOFError, AuthenticationError) as error:
            raise ExaminerDied("its process ended while it started") from error
        self._ready = True

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
        """Let it go; its process ends."""
        self._control.close()

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
