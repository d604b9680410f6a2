"""Executes a notebook cell by cell. Whatever the notebook does, this returns, and says where and why it stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import ensure_async
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output

from autograder.kernels import warm

SECRETS_OF_THE_SHELL = ("PYTHONSTARTUP", "PYTHONPATH", "PYTHONINSPECT", "JUPYTER_CONFIG_DIR", "IPYTHONDIR")


@dataclass(frozen=True)
class Limits:
    """What one notebook may take.

    Attributes:
        cell_timeout_s: for one cell; the slowest cell of the course takes a few seconds.
        test_timeout_s: for one test cell; an honest one takes well under a second.
        patience_after_timeout_s: for each further cell once one has run out of time, since later cells often call the
            same endless function.
        total_timeout_s: for the whole notebook.
        answer_interrupt_s: how long a kernel may take to come back from an interrupt before it is killed.
        startup_timeout_s: for the kernel to start.
    """

    cell_timeout_s: float = 60.0
    test_timeout_s: float = 10.0
    patience_after_timeout_s: float = 10.0
    total_timeout_s: float = 300.0
    answer_interrupt_s: float = 3.0
    startup_timeout_s: float = 120.0


class Ending(StrEnum):
    """How an execution ended."""

    FINISHED = "finished"
    KERNEL_DIED = "kernel-died"
    STUCK = "stuck"
    OUT_OF_TIME = "out-of-time"
    NO_KERNEL = "no-kernel"


@dataclass
class Execution:
    """What happened. Outputs are in the notebook that was handed in.

    Attributes:
        stopped_at: index of the cell in which it ended early; None when finished.
        timed_out: indices of cells that ran out of time and were interrupted.
        detail: for NO_KERNEL, what the kernel's start-up said.
    """

    ending: Ending = Ending.FINISHED
    stopped_at: int | None = None
    timed_out: list[int] = field(default_factory=list)
    seconds: float = 0.0
    detail: str = ""


class _Client(NotebookClient):
    """nbclient with our limits; a cell's error never stops the notebook."""

    def __init__(self, notebook: NotebookNode, **options: Any) -> None:
        super().__init__(notebook, **options)
        self.log = logging.getLogger(__name__)


def prepare() -> None:
    """Start what the first kernel will wait for, without waiting; for callers that have something else to start too."""
    if warm.AVAILABLE:
        warm.shared_zygote()


def execute(
    notebook: NotebookNode,
    *,
    environment: Mapping[str, str],
    limits: Limits,
    is_test: Callable[[NotebookNode], bool],
    before_cell: Callable[[NotebookNode], None],
    after_cell: Callable[[NotebookNode], None],
    progress: Callable[[int], None] | None = None,
) -> Execution:
    """Run every code cell of `notebook`, in a fresh kernel in an empty folder, and put the outputs into it.

    Args:
        environment: variables for the kernel, beside the ones it inherits.
        is_test: whether a cell has the shorter limit of a test cell.
        before_cell: called before each code cell.
        after_cell: called after each code cell, also one that was interrupted or in which the kernel died.
    """
    return asyncio.run(_execute(notebook, environment, limits, is_test, before_cell, after_cell, progress))


async def _execute(
    notebook: NotebookNode,
    environment: Mapping[str, str],
    limits: Limits,
    is_test: Callable[[NotebookNode], bool],
    before_cell: Callable[[NotebookNode], None],
    after_cell: Callable[[NotebookNode], None],
    progress: Callable[[int], None] | None,
) -> Execution:
    execution = Execution()
    started = time.monotonic()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None

    def timeout_s(cell: NotebookNode) -> float:
        if execution.timed_out:
            return limits.patience_after_timeout_s
        return limits.test_timeout_s if is_test(cell) else limits.cell_timeout_s

    def note_timeout(cell: NotebookNode, cell_index: int, execute_reply: dict[str, Any]) -> None:
        if execute_reply["content"].get("ename") == "CellTimeoutError" and "parent_header" in execute_reply:
            execution.timed_out.append(cell_index)

    with tempfile.TemporaryDirectory(prefix="om-", ignore_cleanup_errors=True) as scratch:
        manager = _kernel_manager(Path(scratch))
        client = _Client(
            notebook,
            km=manager,
            allow_errors=True,
            timeout_func=timeout_s,
            interrupt_on_timeout=True,
            error_on_timeout={"ename": "CellTimeoutError", "evalue": "", "traceback": []},
            iopub_timeout=limits.answer_interrupt_s,
            raise_on_iopub_timeout=True,
            startup_timeout=limits.startup_timeout_s,
            shutdown_kernel="immediate",
            store_widget_state=False,
            skip_cells_with_tag="",
            extra_arguments=["--HistoryManager.hist_file=:memory:"],
            on_cell_error=note_timeout,
        )
        folder = Path(scratch) / "work"
        folder.mkdir()
        try:
            await client.async_start_new_kernel(cwd=str(folder), env=_environment(Path(scratch), environment))
            await client.async_start_new_kernel_client()
        except Exception as error:  # whatever a broken installation does, the class goes on, and the text is shown
            execution.ending, execution.stopped_at = Ending.NO_KERNEL, 0
            execution.detail = f"{type(error).__name__}: {error}"
            await _shut_down(client, manager)
            return execution
        try:
            for index, cell in enumerate(notebook.cells):
                if cell.cell_type != "code" or not cell.source.strip():
                    continue
                if time.monotonic() - started > limits.total_timeout_s:
                    execution.ending, execution.stopped_at = Ending.OUT_OF_TIME, index
                    break
                before_cell(cell)
                try:
                    await client.async_execute_cell(cell, index)
                except DeadKernelError:
                    execution.ending, execution.stopped_at = Ending.KERNEL_DIED, index
                except CellTimeoutError:
                    execution.ending, execution.stopped_at = Ending.STUCK, index
                finally:
                    after_cell(cell)
                if index in execution.timed_out:
                    _show_timeout(cell)
                if execution.ending != Ending.FINISHED:
                    break
                if progress:
                    progress(index)
        finally:
            await _shut_down(client, manager)
    execution.seconds = time.monotonic() - started
    return execution


def _show_timeout(cell: NotebookNode) -> None:
    """One output that says so, in place of the interrupt's traceback."""
    kept = [output for output in cell.outputs if output.output_type != "error"]
    text = "This cell ran out of time and was interrupted."
    error = new_output("error", ename="CellTimeoutError", evalue=text, traceback=[f"CellTimeoutError: {text}"])
    cell.outputs = [*kept, error]


def _kernel_manager(scratch: Path) -> AsyncKernelManager:
    # No kernel directories: the kernel is this very interpreter's, whatever is installed for the user.
    manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    if warm.AVAILABLE and manager.kernel_spec is not None:
        manager.kernel_spec.metadata["kernel_provisioner"] = {"provisioner_name": warm.PROVISIONER}
    manager.connection_file = str(scratch / "kernel.json")
    if sys.platform != "win32":
        manager.transport = "ipc"  # no ports, so that kernels started side by side cannot take each other's
        manager.ip = str(scratch / "k")
    return manager


def _environment(scratch: Path, extra: Mapping[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in SECRETS_OF_THE_SHELL}
    return {**inherited, "IPYTHONDIR": str(scratch / "ipython"), "PYTHONUNBUFFERED": "1", **extra}


async def _shut_down(client: NotebookClient, manager: AsyncKernelManager) -> None:
    if client.kc is not None:
        client.kc.stop_channels()
    if manager.has_kernel:
        await manager.shutdown_kernel(now=True)
    await ensure_async(manager.cleanup_resources())
