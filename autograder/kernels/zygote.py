"""A warm process: it has loaded what every notebook loads, and forks a kernel from itself on request.

Importing torch and matplotlib costs more than running a lesson's answers; here it is paid once. Runs as
`python -P -m autograder.kernels.zygote FD`, FD being one end of a socket pair. A request is a JSON line with
`arguments`, `cwd` and `environment`; the reply is a JSON line with the kernel's `pid`. The process starts no thread, so
that a fork of it is whole, and ends when the other end of the socket closes.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import random
import signal
import socket
import sys
from typing import Any

PRELOADED = (
    "torch",
    "numpy",
    "matplotlib.pyplot",
    "ipykernel.kernelapp",
    # What a kernel loads besides while it starts (the debugger most of all: 0.15 s) and at a student's first error.
    "ipykernel.debugger",
    "IPython.core.completerlib",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "sqlite3",
    "tornado.platform.asyncio",
    "tornado.queues",
    "encodings.idna",
    "stack_data",
    "pygments.formatters.terminal256",
    "pygments.styles",
)


def load() -> None:
    """Import what kernels use. No backend of matplotlib is loaded yet: it must find the kernel's IPython."""
    for name in PRELOADED:
        importlib.import_module(name)
    from matplotlib.figure import Figure

    import autograder.examiner.client

    autograder.examiner.client.load_meta_device()
    figure = Figure(layout="constrained")  # the first figure finds fonts and starts the text layout: 0.3 s
    figure.add_subplot(title="x", xlabel="$x^2$")
    figure.savefig(io.BytesIO(), format="png")


def serve(control: socket.socket) -> None:
    """Fork a kernel for each request, until the owner closes the socket."""
    with control, control.makefile("r", encoding="utf-8") as requests:
        for line in requests:
            _reap()
            pid = os.fork()
            if pid == 0:
                control.close()
                _become_kernel(json.loads(line))
            control.sendall((json.dumps({"pid": pid}) + "\n").encode())


def _reap() -> None:
    """Collect the kernels that have ended. Not earlier: until then their process ids cannot be taken by others."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _become_kernel(request: dict[str, Any]) -> None:
    """In the fork: what a freshly started kernel would find, then the kernel itself. Never returns."""
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.close(null)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["environment"])
        _fresh_random_state()
        from ipykernel.kernelapp import IPKernelApp

        sys.argv = ["ipykernel_launcher.py", *request["arguments"]]
        IPKernelApp.launch_instance(argv=request["arguments"])
        status = 0
    finally:
        os._exit(status)


def _fresh_random_state() -> None:
    """A fork has its parent's random state; a new process draws its own. (torch always starts from a fixed seed.)"""
    import numpy

    random.seed()
    numpy.random.seed()


def main() -> None:
    """Load everything, say so, serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the owner, which then closes the socket
    control = socket.socket(fileno=int(sys.argv[1]))
    load()
    control.sendall(b'{"ready": true}\n')
    serve(control)


if __name__ == "__main__":
    main()
