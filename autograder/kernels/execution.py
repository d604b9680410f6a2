"""Executes a notebook cell by cell. Whatever the notebook does, this returns, and says where and why it stopped."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from nbformat import NotebookNode

from autograder.kernels import scratch, warm
from autograder.kernels.channel import BrokenChannel
from autograder.kernels.limits import Limits
from autograder.kernels.outputs import CellOutputs, output_of
from autograder.kernels.variables import BEFORE_LOADING

SECRETS_OF_THE_SHELL = ("PYTHONSTARTUP", "PYTHONPATH", "PYTHONINSPECT", "JUPYTER_CONFIG_DIR", "IPYTHONDIR")
OF_EVERY_KERNEL = {
    **BEFORE_LOADING,
    **{"TERM": "xterm-color", "PAGER": "cat", "GIT_PAGER": "cat", "PYTHONUNBUFFERED": "1"},
}


class Ending(StrEnum):
    """How an execution ended."""

    FINISHED = "finished"
    KERNEL_DIED = "kernel-died"
    STUCK = "stuck"
    OUT_OF_TIME = "out-of-time"
    OUT_OF_MEMORY = "out-of-memory"
    TOO_MUCH_OUTPUT = "too-much-output"
    NO_KERNEL = "no-kernel"


@dataclass
class Execution:
    """What happened. Outputs are in the notebook that was handed in.

    Attributes:
        stopped_at: index of the cell in which it ended early; None when finished.
        timed_out: indices of cells that ran out of time and were interrupted.
        detail: for NO_KERNEL, what the kernel's start-up said; for KERNEL_DIED, how its process ended.
    """

    ending: Ending = Ending.FINISHED
    stopped_at: int | None = None
    timed_out: list[int] = field(default_factory=list)
    seconds: float = 0.0
    detail: str = ""


@dataclass(frozen=True)
class Place:
    """Where kernels run.

    Attributes:
        contained: in the sandbox; otherwise as ordinary processes of this user.
        gpu: with NVIDIA's devices in sight.
    """

    contained: bool = True
    gpu: bool = False


def execute(
    notebook: NotebookNode,
    *,
    place: Place,
    limits: Limits,
    environment: Mapping[str, str],
    examiner: socket.socket | None = None,
    cells: Container[int] | None = None,
    is_test: Callable[[NotebookNode], bool],
    before_cell: Callable[[NotebookNode], None],
    after_cell: Callable[[NotebookNode], None],
) -> Execution:
    """Run every code cell of `notebook`, in a fresh kernel in an empty folder, and put the outputs into it.

    Args:
        environment: variables for the kernel, beside those that every kernel has.
        examiner: the kernel's end of a connection to an examiner.
        cells: places of the cells that are run; all of them by default.
        is_test: whether a cell has the shorter limit of a test cell.
        before_cell: called before each code cell.
        after_cell: called after each code cell, also one that was interrupted or in which the kernel died.
    """
    execution = Execution()
    started = time.monotonic()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    variables = {**kernel_environment(contained=place.contained), **environment}
    try:
        kernel = warm.start_kernel(
            variables,
            limits,
            contained=place.contained,
            gpu=place.gpu,
            examiner=examiner,
        )
    except warm.ZygoteDied as error:
        execution.ending, execution.stopped_at, execution.detail = Ending.NO_KERNEL, 0, str(error)
        return execution
    displays: dict[str, list[NotebookNode]] = {}
    count = 0
    try:
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code" or not cell.source.strip() or (cells is not None and index not in cells):
                continue
            if time.monotonic() - started > limits.total_timeout_s:
                execution.ending, execution.stopped_at = Ending.OUT_OF_TIME, index
                break
            timeout_s = limits.test_timeout_s if is_test(cell) else limits.cell_timeout_s
            if execution.timed_out:
                timeout_s = limits.patience_after_timeout_s
            before_cell(cell)
            count += 1
            cell.execution_count = count
            outputs = CellOutputs(cell, limits.cell_output_kib * 1024, displays)
            try:
                ending, interrupted = _run_cell(kernel, cell.source, outputs, timeout_s, limits)
            finally:
                outputs.finish()
                after_cell(cell)
            if interrupted:
                _show_timeout(cell)
                if ending is Ending.FINISHED:
                    execution.timed_out.append(index)
            if ending is not Ending.FINISHED:
                execution.ending, execution.stopped_at = ending, index
                break
    finally:
        end = kernel.end()
    if execution.ending is Ending.KERNEL_DIED:
        if end.why == "memory":
            execution.ending = Ending.OUT_OF_MEMORY
            execution.detail = f"{limits.memory_mib} MiB"
        else:
            execution.detail = _how(end)
    elif execution.ending is Ending.TOO_MUCH_OUTPUT:
        execution.detail = f"{limits.output_mib} MiB"
    execution.seconds = time.monotonic() - started
    return execution


def _run_cell(
    kernel: warm.Kernel, source: str, outputs: CellOutputs, timeout_s: float, limits: Limits
) -> tuple[Ending, bool]:
    """How the cell ended, and whether it had to be interrupted."""
    kernel.send({"code": source})
    deadline, interrupted = time.monotonic() + timeout_s, False
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            if interrupted:
                return Ending.STUCK, True
            kernel.interrupt()
            deadline, interrupted = time.monotonic() + limits.answer_interrupt_s, True
            continue
        try:
            frames = kernel.poll(left_s)
        except BrokenChannel:
            return Ending.KERNEL_DIED, interrupted  # it writes into its own channel past its shell
        if frames is None:
            return Ending.KERNEL_DIED, interrupted
        done = False
        for frame in frames:
            done = done or "done" in frame
            _take(outputs, frame)
        if kernel.received > limits.output_mib * 2**20:
            return Ending.TOO_MUCH_OUTPUT, interrupted
        if done:
            for frame in kernel.drain():
                _take(outputs, frame)
            return Ending.FINISHED, interrupted


def _take(outputs: CellOutputs, frame: dict[str, object]) -> None:
    kind, content = frame.get("type"), frame.get("content")
    if isinstance(kind, str) and isinstance(content, dict):
        outputs.take(kind, content)


def _how(end: warm.End) -> str:
    if end.why == "sandbox":
        return "its sandbox ended"
    if end.status < 0:
        try:
            return f"signal {signal.Signals(-end.status).name}"
        except ValueError:
            return f"signal {-end.status}"
    return f"exit status {end.status}"


def _show_timeout(cell: NotebookNode) -> None:
    """One output that says so, in place of the interrupt's traceback."""
    kept = [output for output in cell.outputs if output.output_type != "error"]
    text = "This cell ran out of time and was interrupted."
    error = output_of("error", ename="CellTimeoutError", evalue=text, traceback=[f"CellTimeoutError: {text}"])
    cell.outputs = [*kept, error]


def kernel_environment(*, contained: bool) -> dict[str, str]:
    """The variables that every kernel has."""
    if contained:
        folder = scratch.FOLDER
        own = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder, "USER": "student"}
    else:
        own = {name: value for name, value in os.environ.items() if name not in SECRETS_OF_THE_SHELL}
    return {**own, **OF_EVERY_KERNEL}
