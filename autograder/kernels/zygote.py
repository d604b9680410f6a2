"""A warm process: it has loaded what every notebook loads, and forks a kernel from itself on request.

Importing torch and matplotlib costs more than running a lesson's answers; here it is paid once. Runs as
`python -P -m autograder.kernels.zygote FD [UID]`, FD being one end of a socket pair that keeps message boundaries. In a
sandbox this process is number 1 of its own process namespace, so no submission can kill it, and it is not dumpable, so
none can trace or read it; there it runs one kernel at a time and clears everything away after each.

Messages are JSON. To it:
    {"start": {"environment": {…}, "limits": {…}}} with descriptors: channel, stdout, stderr and, if any, the examiner
    {"interrupt": true}
    {"end": true}
From it: {"ready": …} once, {"started": pid}, and as the answer to `end`
    {"ended": {"status": exit status, "why": null | "memory" | …, "clean": bool}}
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import random
import resource
import select
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

from autograder.examiner.address import EXAMINER_VARIABLE
from autograder.kernels import scratch

PRELOADED = (
    "torch",
    "numpy",
    "matplotlib.pyplot",
    # What a kernel loads besides, at a student's first error or figure.
    "IPython.core.completerlib",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "sqlite3",
    "encodings.idna",
    "multiprocessing.connection",
    "stack_data",
    "pygments.formatters.terminal256",
    "pygments.styles",
)
WATCH_EVERY_S = 0.1
MAX_MESSAGE_BYTES = 65536
EXAMINER_DESCRIPTOR = 4
CHANNEL_DESCRIPTOR = 3
PR_SET_DUMPABLE = 4


def load() -> None:
    """Import what kernels use, make the shell, draw a figure; leave nothing running and nothing behind."""
    for name in PRELOADED:
        importlib.import_module(name)
    import matplotlib.pyplot as plt

    from autograder.examiner.client import load_meta_device
    from autograder.kernels.shell import make_shell

    load_meta_device()
    shell = make_shell()
    # The first figure finds fonts, starts the text layout and hooks matplotlib to the shell: 0.8 s.
    figure, axes = plt.subplots(layout="constrained")
    axes.set(title="x", xlabel="$x^2$")
    axes.plot([0.0, 1.0], label="x")
    axes.imshow([[0.0, 1.0]])
    axes.legend()
    figure.colorbar(axes.images[0])
    figure.savefig(io.BytesIO(), format="png")
    plt.close("all")
    shell.run_cell("1 / 1;", store_history=False, silent=True)  # type: ignore[no-untyped-call]
    asyncio.new_event_loop().close()
    gc.collect()
    gc.freeze()  # a kernel's collections then look at its own objects only, and touch no page of ours


@dataclass
class _Kernel:
    pid: int
    descriptor: int
    limits: dict[str, Any]
    status: int | None = None
    why: str | None = None


class _Server:
    def __init__(self, control: socket.socket, contained: bool) -> None:
        self._control = control
        self._contained = contained
        self._kernel: _Kernel | None = None
        self._own_kib = _memory_kib(os.getpid())

    def serve(self) -> None:
        """Answer requests until the owner closes its end."""
        while True:
            watched: list[int] = [self._control.fileno()]
            running = self._kernel is not None and self._kernel.status is None
            if self._kernel is not None and running:
                watched.append(self._kernel.descriptor)
            ready, _, _ = select.select(watched, [], [], WATCH_EVERY_S if running else None)
            if self._kernel is not None and self._kernel.descriptor in ready:
                self._bury(self._kernel)
            elif self._kernel is not None and running:
                self._watch(self._kernel)
            if self._control.fileno() in ready and not self._handle():
                self._end()
                return

    def _handle(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._control, MAX_MESSAGE_BYTES, 4)
        if not data:
            return False
        request = json.loads(data)
        if "start" in request:
            self._start(request["start"], descriptors)
        elif "interrupt" in request:
            if self._kernel is not None and self._kernel.status is None:
                os.kill(self._kernel.pid, signal.SIGINT)
        elif "end" in request:
            self._answer({"ended": self._end()})
        return True

    def _answer(self, message: dict[str, Any]) -> None:
        self._control.sendall(json.dumps(message).encode())

    def _start(self, request: dict[str, Any], descriptors: list[int]) -> None:
        assert self._kernel is None, "one kernel at a time"
        pid = os.fork()
        if pid == 0:
            _become_kernel(request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self._kernel = _Kernel(pid, os.pidfd_open(pid), request["limits"])
        self._answer({"started": pid})

    def _end(self) -> dict[str, Any]:
        kernel, self._kernel = self._kernel, None
        if kernel is None:
            return {"status": 0, "why": None, "clean": True}
        self._bury(kernel)
        clean = scratch.clear() if self._contained else True
        return {"status": kernel.status, "why": kernel.why, "clean": clean}

    def _bury(self, kernel: _Kernel) -> None:
        """Kill whatever is left of the kernel and what it started, and collect all of it."""
        if kernel.status is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._contained:
                os.kill(-1, signal.SIGKILL)  # everything in this namespace but this process
            else:
                os.killpg(kernel.pid, signal.SIGKILL)
        while True:
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                break
            if pid == kernel.pid:
                kernel.status = os.waitstatus_to_exitcode(status)
        os.close(kernel.descriptor)

    def _watch(self, kernel: _Kernel) -> None:
        """What no limit of the system bounds: the memory of all processes of a submission together."""
        if not self._contained:
            return
        others = [int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid()]
        used_kib = sum(max(0, _memory_kib(pid) - self._own_kib) for pid in others) + scratch.used_kib()
        if used_kib > kernel.limits["memory_mib"] * 1024:
            kernel.why = "memory"
            self._bury(kernel)


def _memory_kib(pid: int) -> int:
    """Memory that is this process's own or shared with its like, not read from a file; page tables included."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            fields = dict(line.split(":", 1) for line in status if ":" in line)
    except OSError:
        return 0  # it has ended
    return sum(int(fields.get(name, "0 kB").split()[0]) for name in ("RssAnon", "RssShmem", "VmPTE"))


def _become_kernel(request: dict[str, Any], descriptors: list[int]) -> None:
    """In the fork: what a freshly started kernel would find, then the kernel itself. Never returns."""
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        channel = _arrange(descriptors)
        _limit(request["limits"])
        os.environ.clear()
        os.environ.update(request["environment"])
        if len(descriptors) > 3:
            os.environ[EXAMINER_VARIABLE] = str(EXAMINER_DESCRIPTOR)
        os.chdir(request.get("cwd") or scratch.FOLDER)
        _fresh_random_state()
        from autograder.kernels import shell

        shell.run(channel)
        status = 0
    finally:
        os._exit(status)


def _arrange(descriptors: list[int]) -> socket.socket:
    """Put the descriptors where a kernel has them, and close every other."""
    high = [os.dup2(descriptor, 100 + place) for place, descriptor in enumerate(descriptors)]
    null = os.dup2(os.open(os.devnull, os.O_RDONLY), 99)
    for place, descriptor in ((0, null), (1, high[1]), (2, high[2]), (CHANNEL_DESCRIPTOR, high[0])):
        os.dup2(descriptor, place)
    first_free = CHANNEL_DESCRIPTOR + 1
    if len(high) > 3:
        os.dup2(high[3], EXAMINER_DESCRIPTOR)
        first_free = EXAMINER_DESCRIPTOR + 1
    os.closerange(first_free, 65536)
    return socket.socket(fileno=CHANNEL_DESCRIPTOR)


def _limit(limits: dict[str, Any]) -> None:
    """The system's own limits, which hold for every process that the kernel starts."""
    mib = 2**20
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits["file_mib"] * mib,
        resource.RLIMIT_NOFILE: 128,
        resource.RLIMIT_CPU: limits["cpu_s"],
    }
    if limits.get("data_mib"):
        wanted[resource.RLIMIT_DATA] = limits["data_mib"] * mib
    if limits.get("processes"):
        wanted[resource.RLIMIT_NPROC] = limits["processes"]
    for what, value in wanted.items():
        hard = resource.getrlimit(what)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (value, value))
    _prctl(PR_SET_DUMPABLE, 1)  # it may look at itself; nothing of the owner's is in its memory
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")  # if the machine runs out of memory, this goes first


def _fresh_random_state() -> None:
    """A fork has its parent's random state; a new process draws its own. (torch always starts from a fixed seed.)"""
    import numpy

    random.seed()
    numpy.random.seed()


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")


def _drop_root(uid: int) -> None:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def main() -> None:
    """Load everything, say so, serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the owner, which then closes the socket
    if sys.argv[1] == "fresh":
        load()
        _become_kernel(json.loads(sys.argv[2]), [int(descriptor) for descriptor in sys.argv[3:]])
    control = socket.socket(fileno=int(sys.argv[1]))
    if len(sys.argv) > 2:
        _drop_root(int(sys.argv[2]))
    contained = os.getpid() == 1
    started = time.monotonic()
    load()
    assert threading.active_count() == 1, "a process with threads must not fork"
    if contained:
        _prctl(PR_SET_DUMPABLE, 0)
        if not scratch.clear():
            raise SystemExit("the sandbox's scratch folders can't be cleared")
    control.sendall(json.dumps({"ready": round(time.monotonic() - started, 3)}).encode())
    _Server(control, contained).serve()


if __name__ == "__main__":
    main()
