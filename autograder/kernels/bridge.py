"""Speaks Jupyter's protocol for a kernel that has no sockets: one thread between ZMQ outside and frames inside.

What comes from the kernel passes the same checks as when a notebook is executed without Jupyter, see
`autograder.kernels.outputs`; headers, signatures and message order are made here, never by the kernel.
"""

from __future__ import annotations

import contextlib
import platform
import socket
import threading
from importlib.metadata import version
from typing import Any

import zmq
from jupyter_client.session import Session
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from autograder.kernels import warm
from autograder.kernels.channel import BrokenChannel
from autograder.kernels.limits import Limits
from autograder.kernels.outputs import CellOutputs, display_id_of

KERNEL_INFO = {
    "status": "ok",
    "protocol_version": "5.3",
    "implementation": "ipython",
    "implementation_version": version("ipython"),
    "language_info": {
        "name": "python",
        "version": platform.python_version(),
        "mimetype": "text/x-python",
        "codemirror_mode": {"name": "ipython", "version": 3},
        "pygments_lexer": "ipython3",
        "nbconvert_exporter": "python",
        "file_extension": ".py",
    },
    "banner": "A kernel in a sandbox.",
    "help_links": [],
}
ANSWERED_HERE: dict[str, dict[str, Any]] = {
    "kernel_info_request": KERNEL_INFO,
    "comm_info_request": {"status": "ok", "comms": {}},
    "history_request": {"status": "ok", "history": []},
    "is_complete_request": {"status": "unknown"},
    "complete_request": {"status": "ok", "matches": [], "cursor_start": 0, "cursor_end": 0, "metadata": {}},
    "inspect_request": {"status": "ok", "found": False, "data": {}, "metadata": {}},
}
"""Requests that run nothing; the kernel is not asked."""


class Bridge(threading.Thread):
    """The sockets of one kernel.

    Args:
        connection: Jupyter's connection info: transport, ip, ports and key.
    """

    def __init__(self, kernel: warm.Kernel, connection: Any, limits: Limits) -> None:
        super().__init__(name="kernel-bridge", daemon=True)
        self._kernel = kernel
        self._limits = limits
        key = connection["key"]
        self._session = Session(key=key if isinstance(key, bytes) else key.encode())
        self._context = zmq.Context()
        self._iopub = self._bound(zmq.PUB, connection, "iopub_port")
        self._shell = self._bound(zmq.ROUTER, connection, "shell_port")
        self._control = self._bound(zmq.ROUTER, connection, "control_port")
        self._stdin = self._bound(zmq.ROUTER, connection, "stdin_port")
        self._heartbeat = self._bound(zmq.REP, connection, "hb_port")
        self._wake, self._waker = socket.socketpair()
        self._stopping = False
        self._parent: dict[str, Any] = {}
        self._identities: list[bytes] = []
        self._cell: NotebookNode | None = None
        self._outputs: CellOutputs | None = None
        self._waiting: list[tuple[list[bytes], dict[str, Any]]] = []
        self._count = 0

    @property
    def alive(self) -> bool:
        return self.is_alive()

    def interrupt(self) -> None:
        self._kernel.interrupt()

    def stop(self) -> None:
        """End the kernel and close the sockets; returns when it is done."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._waker.send(b"x")
        if self is not threading.current_thread():
            self.join()

    def run(self) -> None:
        """Until `stop`, a shutdown request, or the kernel's death."""
        poller = zmq.Poller()
        for place in (self._shell, self._control, self._heartbeat, self._kernel.fileno(), self._wake.fileno()):
            poller.register(place, zmq.POLLIN)
        self._publish("status", {"execution_state": "starting"}, {})
        try:
            while not self._stopping:
                ready = dict(poller.poll())
                if self._heartbeat in ready:
                    self._heartbeat.send(self._heartbeat.recv())
                if self._control in ready:
                    self._request(self._control)
                if self._shell in ready:
                    self._request(self._shell)
                if self._kernel.fileno() in ready and not self._from_kernel():
                    break
        finally:
            self._kernel.end()
            self._context.destroy(linger=1000)
            self._wake.close()
            self._waker.close()

    def _bound(self, kind: int, connection: Any, port: str) -> zmq.Socket[bytes]:
        found: zmq.Socket[bytes] = self._context.socket(kind)
        found.linger = 1000
        between = ":" if connection["transport"] == "tcp" else "-"
        found.bind(f"{connection['transport']}://{connection['ip']}{between}{connection[port]}")
        return found

    def _request(self, place: zmq.Socket[bytes]) -> None:
        try:
            identities, message = self._session.recv(place, copy=True)
        except Exception:  # an unsigned or malformed message: whoever sent it is no client of ours
            return
        if message is None or identities is None:
            return
        kind = message["header"]["msg_type"]
        if kind == "execute_request":
            self._waiting.append((identities, message))
            self._next_execution()
        elif kind == "interrupt_request":
            self._kernel.interrupt()
            self._answer(place, identities, message, "interrupt_reply", {"status": "ok"})
        elif kind == "shutdown_request":
            content = {"status": "ok", "restart": bool(message["content"].get("restart"))}
            self._answer(place, identities, message, "shutdown_reply", content)
            self._stopping = True
        elif kind in ANSWERED_HERE:
            self._answer(place, identities, message, kind.replace("_request", "_reply"), ANSWERED_HERE[kind])

    def _answer(
        self, place: zmq.Socket[bytes], identities: list[bytes], parent: dict[str, Any], kind: str, content: Any
    ) -> None:
        self._publish("status", {"execution_state": "busy"}, parent)
        self._session.send(place, kind, content, parent=parent, ident=identities)
        self._publish("status", {"execution_state": "idle"}, parent)

    def _publish(self, kind: str, content: dict[str, Any], parent: dict[str, Any]) -> None:
        self._session.send(self._iopub, kind, content, parent=parent, ident=kind.encode())

    def _next_execution(self) -> None:
        if self._cell is not None or not self._waiting:
            return
        self._identities, self._parent = self._waiting.pop(0)
        content = self._parent["content"]
        silent = bool(content.get("silent"))
        self._count += not silent
        self._cell = new_code_cell(str(content.get("code", "")))
        self._cell.execution_count = self._count
        self._outputs = CellOutputs(self._cell, self._limits.cell_output_kib * 1024, {})
        self._publish("status", {"execution_state": "busy"}, self._parent)
        if not silent:
            self._publish("execute_input", {"code": self._cell.source, "execution_count": self._count}, self._parent)
        self._kernel.send({"code": self._cell.source, "silent": silent})

    def _from_kernel(self) -> bool:
        """Pass on what has arrived. False when there will be no more."""
        try:
            frames = self._kernel.poll(0)
        except BrokenChannel:
            return False
        if frames is None or self._kernel.received > self._limits.output_mib * 2**20:
            return False
        for frame in frames:
            if "done" in frame:
                for late in self._kernel.drain():
                    self._output(late)
                self._finish(frame["done"] if isinstance(frame["done"], dict) else {})
            else:
                self._output(frame)
        return True

    def _output(self, frame: dict[str, Any]) -> None:
        """Let the frame fill a cell, and send what became of it there."""
        kind, content = frame.get("type"), frame.get("content")
        if self._cell is None or self._outputs is None or not isinstance(kind, str) or not isinstance(content, dict):
            return
        if kind == "clear_output":
            self._publish(kind, {"wait": content.get("wait") is True}, self._parent)
            return
        self._cell.outputs = []
        self._outputs.take("display_data" if kind == "update_display_data" else kind, content)
        for output in self._cell.outputs:
            fields = {name: value for name, value in output.items() if name != "output_type"}
            if kind in ("display_data", "update_display_data"):
                fields["transient"] = {"display_id": display_id} if (display_id := display_id_of(content)) else {}
                self._publish(kind, fields, self._parent)
            else:
                self._publish(output.output_type, fields, self._parent)

    def _finish(self, done: dict[str, Any]) -> None:
        assert self._outputs is not None
        assert self._cell is not None
        self._cell.outputs = []
        self._outputs.finish()
        for output in self._cell.outputs:
            self._publish("stream", {"name": output.name, "text": output.text}, self._parent)
        reply: dict[str, Any] = {"status": "ok", "execution_count": self._count, "user_expressions": {}, "payload": []}
        if done.get("status") == "error":
            reply |= {"status": "error", "traceback": []}
            reply |= {name: str(done.get(name, ""))[:10_000] for name in ("ename", "evalue")}
        self._session.send(self._shell, "execute_reply", reply, parent=self._parent, ident=self._identities)
        self._publish("status", {"execution_state": "idle"}, self._parent)
        self._cell = self._outputs = None
        self._next_execution()
