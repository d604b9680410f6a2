"""What one notebook may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
        memory_mib: all processes of the notebook together, beyond what the kernel starts with.
        processes: processes and threads together; a kernel that does nothing has one.
        file_mib: one file.
        scratch_mib: each of the folders in which it may write.
        cell_output_kib: text and figures of one cell; what is beyond is cut off, and the cell says so.
        output_mib: everything that comes from a notebook; beyond it the notebook is stopped.
    """

    cell_timeout_s: float = 60.0
    test_timeout_s: float = 10.0
    patience_after_timeout_s: float = 10.0
    total_timeout_s: float = 300.0
    answer_interrupt_s: float = 3.0
    memory_mib: int = 3072
    processes: int = 64
    file_mib: int = 64
    scratch_mib: int = 64
    cell_output_kib: int = 2048
    output_mib: int = 256

    def of_process(self, *, gpu: bool) -> dict[str, Any]:
        """The limits that the kernel's own process sets at its start; CUDA reserves far more than it uses."""
        return {
            "memory_mib": self.memory_mib,
            "data_mib": None if gpu else self.memory_mib + 2048,
            "processes": self.processes,
            "file_mib": self.file_mib,
            "cpu_s": int(self.total_timeout_s + self.cell_timeout_s + 60.0),
        }
