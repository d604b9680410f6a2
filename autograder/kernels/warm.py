"""The owner's side of warm processes: start one, have it fork a kernel, talk to the kernel, end it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from autograder.kernels import sandbox
from autograder.kernels.channel import BrokenChannel, Frames, pack
from autograder.kernels.limits import Limits
from autograder.kernels.variables import BEFORE_LOADING

START_TIMEOUT_S = 120.0
REPLY_TIMEOUT_S = 10.0
FORKING_IS_SAFE = sys.platform == "linux"
"""Of a process that has loaded torch; elsewhere every kernel is a fresh process."""


class ZygoteDied(Exception):
    """The warm process ended or did not answer; a new one is started for the next kernel."""


@dataclass(frozen=True)
class End:
    """How a kernel's process ended: its exit status, minus the signal's number if a signal did it.

    Attributes:
        why: "memory" when its owner ended it for that; None otherwise.
    """

    status: int
    why: str | None = None


class Zygote:
    """A warm process. Starts to load at once; `start_kernel` waits until it has.

    Args:
        limits: sizes that hold for the sandbox as a whole.
        contained: in a sandbox. Without, a kernel is an ordinary process of this user.
        gpu: let the sandbox see NVIDIA's devices.
    """

    def __init__(self, limits: Limits, *, contained: bool, gpu: bool = False) -> None:
        self.contained, self.gpu, self.limits = contained, gpu, limits
        if contained:
            sandbox.require()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the process)
        descriptors = [theirs.fileno()]
        arguments = ["-m", "autograder.kernels.zygote", str(theirs.fileno())]
        environment: Mapping[str, str] = {"PATH": os.environ.get("PATH", os.defpath)}
        if contained:
            descriptors.append(sandbox.filter_file())
            line = sandbox.command(arguments, gpu=gpu, scratch_mib=limits.scratch_mib, seccomp_fd=descriptors[1])
        else:
            line = [sys.executable, "-P", *arguments]
            environment = {**os.environ, **BEFORE_LOADING}
        self._process = subprocess.Popen(
            line,
            pass_fds=descriptors,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            env=environment,
        )
        theirs.close()
        for descriptor in descriptors[1:]:
            os.close(descriptor)
        self._socket = ours
        self.ready = False
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    def start_kernel(self, environment: Mapping[str, str], examiner: socket.socket | None = None) -> Kernel:
        """A fresh kernel with exactly this environment. Raises ZygoteDied.

        Args:
            examiner: the kernel's end of a connection to an examiner; the caller closes its copy.
        """
        if not self.ready:
            self._receive(START_TIMEOUT_S, "ready")
            self.ready = True
        request: dict[str, Any] = {"environment": dict(environment), "limits": self.limits.of_process(gpu=self.gpu)}
        if not self.contained:
            self._scratch = tempfile.TemporaryDirectory(prefix="om-", ignore_cleanup_errors=True)
            request["cwd"] = self._scratch.name
        with _ends(examiner) as (kernel_ends, ours):
            try:
                socket.send_fds(self._socket, [json.dumps({"start": request}).encode()], kernel_ends)
                self._receive(REPLY_TIMEOUT_S, "started")
            except OSError as error:
                raise ZygoteDied(f"{error}{self._last_words()}") from error
            return Kernel(self, *ours)

    def interrupt(self) -> None:
        """Send SIGINT to the running kernel, if there is one."""
        with contextlib.suppress(OSError):
            self._socket.sendall(b'{"interrupt": true}')

    def end_kernel(self) -> tuple[End, bool]:
        """End the kernel and all it started; also whether this warm process can serve another one."""
        try:
            self._socket.sendall(b'{"end": true}')
            ended = self._receive(REPLY_TIMEOUT_S, "ended")
        except (OSError, ZygoteDied):
            return End(status=1, why="sandbox"), False
        finally:
            if self._scratch is not None:
                self._scratch.cleanup()
                self._scratch = None
        return End(ended["status"], ended["why"]), bool(ended["clean"])

    def stop(self) -> None:
        """End it, and with it whatever runs in its sandbox."""
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._said.close()

    def _receive(self, timeout_s: float, expected: str) -> Any:
        self._socket.settimeout(timeout_s)
        try:
            data = self._socket.recv(65536)
        except OSError as error:
            raise ZygoteDied(f"no answer within {timeout_s:g} s{self._last_words()}") from error
        if not data:
            raise ZygoteDied(f"it ended with status {self._process.wait()}{self._last_words()}")
        message = json.loads(data)
        if expected not in message:
            raise ZygoteDied(f"it answered {message} in place of {expected}")
        return message[expected]

    def _last_words(self) -> str:
        self._said.seek(0)
        text = self._said.read()[-2000:].decode(errors="replace").strip()
        return f": {text}" if text else ""


class FreshProcess:
    """In a warm process's place where forking one is not safe (macOS): every kernel loads everything anew."""

    contained = gpu = False
    ready = True

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    def start_kernel(self, environment: Mapping[str, str], examiner: socket.socket | None = None) -> Kernel:
        """As `Zygote.start_kernel`."""
        self._scratch = tempfile.TemporaryDirectory(prefix="om-", ignore_cleanup_errors=True)
        request = {
            "environment": dict(environment),
            "limits": self.limits.of_process(gpu=True),
            "cwd": self._scratch.name,
        }
        with _ends(examiner) as (kernel_ends, ours):
            line = [sys.executable, "-P", "-m", "autograder.kernels.zygote", "fresh", json.dumps(request)]
            try:
                self._process = subprocess.Popen(
                    [*line, *map(str, kernel_ends)],
                    pass_fds=kernel_ends,
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            except OSError as error:
                raise ZygoteDied(str(error)) from error
            return Kernel(self, *ours)

    def interrupt(self) -> None:
        """Send SIGINT to the running kernel."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)

    def end_kernel(self) -> tuple[End, bool]:
        """As `Zygote.end_kernel`."""
        assert self._process is not None
        status = self._process.poll()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # the kernel leads a session of its own
        self._process.kill()
        killed = self._process.wait()
        if self._scratch is not None:
            self._scratch.cleanup()
        return End(killed if status is None else status), False

    def stop(self) -> None:
        """Nothing is kept between kernels."""


@contextlib.contextmanager
def _ends(examiner: socket.socket | None) -> Iterator[tuple[list[int], tuple[socket.socket, int, int]]]:
    """Both ends of what connects a kernel with its owner: the kernel's, closed at the end of the block, and ours."""
    channel, theirs = socket.socketpair()
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    try:
        passed = [theirs.fileno(), out_write, err_write, *([examiner.fileno()] if examiner else [])]
        yield passed, (channel, out_read, err_read)
    except BaseException:
        channel.close()
        os.close(out_read)
        os.close(err_read)
        raise
    finally:
        theirs.close()
        os.close(out_write)
        os.close(err_write)


class Kernel:
    """One kernel. Its frames and raw output come as they arrive; the sizes of both are counted.

    Attributes:
        received: bytes that have come from it.
    """

    def __init__(self, zygote: Zygote | FreshProcess, channel: socket.socket, out: int, err: int) -> None:
        self._zygote = zygote
        self._channel = channel
        self._raw = {out: "stdout", err: "stderr"}
        self._frames = Frames()
        self._selector = selectors.DefaultSelector()
        channel.setblocking(False)
        self._selector.register(channel, selectors.EVENT_READ)
        for descriptor in self._raw:
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ)
        self.received = 0
        self._ended: End | None = None

    def fileno(self) -> int:
        """Readable when there is something to `poll`."""
        return self._selector.fileno()

    def send(self, request: dict[str, Any]) -> None:
        """Ask for something; what comes back is `poll`'s. A kernel that has died says so there."""
        self._channel.settimeout(REPLY_TIMEOUT_S)
        with contextlib.suppress(OSError):
            self._channel.sendall(pack(request))
        self._channel.setblocking(False)

    def poll(self, timeout_s: float) -> list[dict[str, Any]] | None:
        """The frames that arrive within this time, as soon as there are some; None once the kernel has died.

        What is written past Python to the standard streams comes as `stream` frames. Raises BrokenChannel when what
        comes is no frame.
        """
        found: list[dict[str, Any]] = []
        for key, _ in self._selector.select(max(0.0, timeout_s)):
            if key.fileobj is self._channel:
                try:
                    data = self._channel.recv(2**20)
                except OSError:
                    data = b""
                if not data:
                    return found or None
                self.received += len(data)
                for frame in self._frames.feed(data):
                    if not isinstance(frame, dict):
                        raise BrokenChannel("a frame that is no object")
                    found.append(frame)
            else:
                found += self._raw_output(int(key.fd))
        return found

    def drain(self) -> list[dict[str, Any]]:
        """Raw output that has arrived already."""
        return [frame for descriptor in list(self._raw) for frame in self._raw_output(descriptor)]

    def _raw_output(self, descriptor: int) -> list[dict[str, Any]]:
        try:
            data = os.read(descriptor, 65536)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(descriptor)
            os.close(descriptor)
            del self._raw[descriptor]
            return []
        self.received += len(data)
        content = {"name": "stdout", "text": data.decode(errors="replace")}
        return [{"type": "stream", "content": content}]

    def interrupt(self) -> None:
        self._zygote.interrupt()

    def end(self) -> End:
        """End it and everything it started; waits until that is done. Its warm process is free for another one then."""
        if self._ended is None:
            self._ended, reusable = self._zygote.end_kernel()
            self._selector.close()
            self._channel.close()
            for descriptor in self._raw:
                os.close(descriptor)
            give_back(self._zygote, reusable=reusable)
        return self._ended


_idle: list[Zygote | FreshProcess] = []
"""Warm processes of this process that run no kernel at the moment."""


def prepare(limits: Limits, *, contained: bool, gpu: bool = False) -> None:
    """Start what the first kernel will wait for, without waiting; for callers that have something else to start too."""
    if not any(_fits(zygote, limits, contained, gpu) for zygote in _idle):
        if contained or FORKING_IS_SAFE:
            _idle.append(Zygote(limits, contained=contained, gpu=gpu))
        else:
            _idle.append(FreshProcess(limits))


def start_kernel(
    environment: Mapping[str, str],
    limits: Limits,
    *,
    contained: bool,
    gpu: bool = False,
    examiner: socket.socket | None = None,
) -> Kernel:
    """A fresh kernel, of an idle warm process if there is one. One that has died is replaced. Raises ZygoteDied."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        prepare(limits, contained=contained, gpu=gpu)
        zygote = next(zygote for zygote in _idle if _fits(zygote, limits, contained, gpu))
        _idle.remove(zygote)
        again = zygote.ready  # one that never was ready will not be at the second attempt either
        try:
            return zygote.start_kernel(environment, examiner)
        except ZygoteDied:
            zygote.stop()
            if not again or time.monotonic() > deadline:
                raise


def give_back(zygote: Zygote | FreshProcess, *, reusable: bool) -> None:
    """Keep a warm process for the next kernel, or end it."""
    if reusable:
        _idle.append(zygote)
    else:
        zygote.stop()


def stop_all() -> None:
    """End the warm processes that run no kernel."""
    while _idle:
        _idle.pop().stop()


def _fits(zygote: Zygote | FreshProcess, limits: Limits, contained: bool, gpu: bool) -> bool:
    if isinstance(zygote, FreshProcess):
        return not contained and not FORKING_IS_SAFE and zygote.limits == limits
    return zygote.contained == contained and zygote.gpu == gpu and zygote.limits == limits
