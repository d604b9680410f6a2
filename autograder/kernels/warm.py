"""Kernels forked from a warm process, behind Jupyter's provisioner interface (entry point `order-matters-warm`)."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from functools import lru_cache
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

PROVISIONER = "order-matters-warm"
START_TIMEOUT_S = 120.0
AVAILABLE = sys.platform == "linux"
"""Forking a process that has loaded torch is safe on Linux; elsewhere kernels are started afresh."""


class ZygoteDied(Exception):
    """The warm process ended or did not answer; a new one is started for the next kernel."""


class ForkedKernel:
    """A kernel process that is not our child, with the part of subprocess.Popen's interface that Jupyter uses."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor: int | None = os.pidfd_open(pid)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """None while it runs, else 0: the exit status is known to its parent only."""
        if self.returncode is None and self._descriptor is not None and select.select([self._descriptor], [], [], 0)[0]:
            os.close(self._descriptor)
            self._descriptor, self.returncode = None, 0
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; TimeoutExpired after `timeout` seconds."""
        if self._descriptor is not None and not select.select([self._descriptor], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("kernel", timeout or 0.0)
        self.poll()
        return 0

    def send_signal(self, number: int) -> None:
        if self.poll() is None and self._descriptor is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, signal.Signals(number))

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the kernel and what it started, as far as it stayed in the kernel's session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.poll() is None:
                os.killpg(self.pid, signal.SIGKILL)


class Zygote:
    """The owner's handle on a warm process."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "autograder.kernels.zygote", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            cwd="/",
            stdin=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "module://matplotlib_inline.backend_inline"},
        )
        theirs.close()
        self._socket = ours
        self._socket.settimeout(START_TIMEOUT_S)
        self._replies = ours.makefile("r", encoding="utf-8")
        self._ready = False

    def fork(self, arguments: list[str], cwd: str, environment: dict[str, str]) -> ForkedKernel:
        """A kernel with these command-line arguments, in this folder, with exactly this environment."""
        if not self._ready:
            self._receive()
            self._ready = True
        request = {"arguments": arguments, "cwd": cwd, "environment": environment}
        try:
            self._socket.sendall((json.dumps(request) + "\n").encode())
        except OSError as error:
            raise ZygoteDied(str(error)) from error
        return ForkedKernel(self._receive()["pid"])

    def stop(self) -> None:
        self._replies.close()
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def _receive(self) -> dict[str, Any]:
        try:
            line = self._replies.readline()
        except OSError as error:
            raise ZygoteDied(str(error)) from error
        if not line:
            raise ZygoteDied(f"it ended with status {self._process.wait()}")
        reply: dict[str, Any] = json.loads(line)
        return reply


@lru_cache(maxsize=1)
def shared_zygote() -> Zygote:
    """This process's warm process, started at first use."""
    return Zygote()


class WarmProvisioner(LocalProvisioner):
    """Jupyter's local provisioner, with a fork in place of a new process."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        started = time.monotonic()
        arguments = cmd[cmd.index("ipykernel_launcher") + 1 :]
        environment = {**(kwargs.get("env") or os.environ)}
        try:
            kernel = shared_zygote().fork(arguments, kwargs.get("cwd") or os.getcwd(), environment)
        except ZygoteDied:
            shared_zygote().stop()
            shared_zygote.cache_clear()
            kernel = shared_zygote().fork(arguments, kwargs.get("cwd") or os.getcwd(), environment)
        self.process = kernel  # type: ignore[assignment]  # the part of Popen that LocalProvisioner uses
        self.pid, self.pgid = kernel.pid, None
        self.log.debug("forked kernel %d in %.3f s", kernel.pid, time.monotonic() - started)
        return self.connection_info
