"""The kernel inside a sandbox: IPython's shell, as in any Jupyter kernel, whose outputs leave as frames.

There are no ZMQ sockets and no threads, so the shell is made before the fork, and after it a kernel is ready at once.

A request is `{"code": str, "silent": bool}`. The frames that answer it are `{"type": …, "content": {…}}` with Jupyter's
output messages (`stream`, `display_data`, `execute_result`, `error`, `clear_output`, …), then one `{"done": {…}}` with
the content of an `execute_reply`.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import getpass
import io
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
import zlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.compilerop import CachingCompiler
from IPython.core.inputtransformer2 import TransformerManager
from jupyter_client.session import Session
from traitlets.config import Config

from autograder.kernels.channel import BrokenChannel, Frames, pack

FLUSH_AFTER_S = 0.2
FLUSH_AFTER_CHARACTERS = 8192
MAX_TEXT = 10_000


class Wire:
    """This process's end of the channel. Another process (a fork of this one) sends nothing through it."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = threading.RLock()
        self.pid = os.getpid()

    def send(self, value: object) -> None:
        """Send one frame; blocks while the owner is slow to read."""
        if os.getpid() == self.pid:
            with self._lock:
                self._channel.sendall(pack(value))

    def requests(self) -> Iterator[dict[str, Any]]:
        """What the owner asks for, until it closes its end."""
        frames = Frames()
        while data := self._channel.recv(65536):
            yield from frames.feed(data)


class _Session(Session):
    """Jupyter's session, with the wire in place of a ZMQ socket."""

    wire: Wire | None = None

    def send(self, stream: Any, msg_or_type: Any, content: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(msg_or_type, str):
            kind = msg_or_type
        else:
            kind, content = msg_or_type["header"]["msg_type"], msg_or_type["content"]
        if self.wire is not None:
            try:
                self.wire.send({"type": kind, "content": content})
            except BrokenChannel:
                clipped = {name: str(content.get(name))[:MAX_TEXT] for name in ("ename", "evalue")}
                if kind == "error":
                    self.wire.send({"type": kind, "content": {**clipped, "traceback": []}})
                else:
                    text = "[An output was too large.]\n"
                    self.wire.send({"type": "stream", "content": {"name": "stdout", "text": text}})


class _Stream(io.TextIOBase):
    """Standard output or error of the cells: text is gathered for a moment, then sent."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, name: str, descriptor: int, wire: Wire) -> None:
        self.name = name
        self._descriptor = descriptor
        self._wire = wire
        self._lock = threading.RLock()
        self._pieces: list[str] = []
        self._length, self._since = 0, 0.0

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if os.getpid() != self._wire.pid:  # a process that the student's code forked
            os.write(self._descriptor, text.encode(errors="replace"))
            return len(text)
        with self._lock:
            now = time.monotonic()
            if not self._pieces:
                self._since = now
            self._pieces.append(text)
            self._length += len(text)
            if self._length > FLUSH_AFTER_CHARACTERS or now - self._since > FLUSH_AFTER_S:
                self.flush()
        return len(text)

    def flush(self) -> None:
        with self._lock:
            text, self._pieces, self._length = "".join(self._pieces), [], 0
            for start in range(0, len(text), 2**20):
                part = text[start : start + 2**20]
                self._wire.send({"type": "stream", "content": {"name": self.name, "text": part}})


class _Transformers(TransformerManager):
    """Leaves Python alone, where IPython would look for its own syntax, token by token: longer than most cells run."""

    _own = tuple(TransformerManager().token_transformers)

    def do_token_transforms(self, lines: list[str]) -> list[str]:
        if tuple(self.token_transformers) == self._own and _is_python("".join(lines)):
            return lines
        transformed: list[str] = super().do_token_transforms(lines)  # type: ignore[no-untyped-call]
        return transformed


def _is_python(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the compiler gives the same ones
            compile(code, "", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


class _Compiler(CachingCompiler):
    """Names cells as a Jupyter kernel does, by a hash that is not worked out in Python."""

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        fingerprint = zlib.crc32(raw_code.encode(errors="surrogatepass"))
        return f"{tempfile.gettempdir()}/ipykernel_{os.getpid()}/{fingerprint}.py"


class _Shell(ZMQInteractiveShell):
    """`exit()` in a cell ends nothing: the cells after it are graded too. No magic opens a window: there is none."""

    displayhook: Any
    display_pub: Any

    def ask_exit(self) -> None:
        pass

    def enable_gui(self, gui: str | None = None) -> None:
        pass  # an event loop belongs to a kernel with sockets

    def enable_matplotlib(self, gui: str | None = None) -> Any:
        """`%matplotlib`, whatever stands behind it: figures are shown inline, as they are without it."""
        return super().enable_matplotlib("inline")  # type: ignore[no-untyped-call]


def make_shell() -> ZMQInteractiveShell:
    """The shell, before the fork: no thread, no file and no history is opened."""
    config = Config()
    config.HistoryManager.enabled = False  # it would start a thread; `In` and `Out` work all the same
    shell = _Shell.instance(config=config, compiler_class=_Compiler, kernel=SimpleNamespace(eventloop=None))
    shell.input_transformer_manager = _Transformers()  # type: ignore[no-untyped-call]
    session = _Session(key=b"")
    shell.displayhook.session = shell.display_pub.session = session
    shell.displayhook.topic = b"execute_result"
    return shell


def run(channel: socket.socket) -> None:
    """Serve requests until the owner closes the channel. In the fork, in the main thread."""
    shell = _Shell.instance()
    wire = Wire(channel)
    shell.displayhook.session.wire = wire
    sys.stdout, sys.stderr = _Stream("stdout", 1, wire), _Stream("stderr", 2, wire)
    builtins.input = getpass.getpass = _no_input
    asyncio.set_event_loop(asyncio.new_event_loop())
    for request in wire.requests():
        done = _execute(shell, str(request["code"]), bool(request.get("silent")))
        wire.send({"done": done})


def _execute(shell: ZMQInteractiveShell, code: str, silent: bool) -> dict[str, Any]:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = shell.run_cell(code, store_history=not silent, silent=silent)  # type: ignore[no-untyped-call]
        failure = result.error_before_exec or result.error_in_exec
        if getattr(shell, "_last_traceback_during_displayhook", False):
            failure = failure or RuntimeError("the value of the cell can't be shown")
    except BaseException as error:  # an interrupt that comes while IPython itself is at work, or a broken IPython
        failure = error
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(Exception):  # student code may have put anything in their place
        sys.stdout.flush()
        sys.stderr.flush()
    reply: dict[str, Any] = {"status": "ok", "execution_count": shell.execution_count - 1}
    if failure is not None:
        reply |= {"status": "error", "ename": type(failure).__name__[:MAX_TEXT], "evalue": _text(failure)}
    return reply


def _text(error: BaseException) -> str:
    try:
        return str(error)[:MAX_TEXT]
    except Exception:  # an error class of the student's own
        return ""


def _no_input(prompt: object = "", *args: object, **kwargs: object) -> str:
    raise EOFError("input() was called, but nobody is there to type anything while this is graded.")
