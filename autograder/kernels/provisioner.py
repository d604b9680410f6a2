"""Jupyter's way to sandboxed, warm kernels: nbclient, nbconvert and Jupyter's own servers use them unchanged.

Choose it for a kernel spec with the metadata `{"kernel_provisioner": {"provisioner_name": "order-matters-warm"}}`, or
for every kernel with the environment variable `JUPYTER_DEFAULT_PROVISIONER_NAME=order-matters-warm`.
"""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.localinterfaces import is_local_ip
from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase

from autograder.kernels import warm
from autograder.kernels.bridge import Bridge
from autograder.kernels.execution import kernel_environment
from autograder.kernels.limits import Limits

ALIVE_EVERY_S = 0.02


class WarmProvisioner(KernelProvisionerBase):
    """Kernels forked from a warm process in a sandbox. What a kernel sees of its starter's environment is nothing."""

    _bridge: Bridge | None = None

    @property
    def has_process(self) -> bool:
        return self._bridge is not None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Choose the ports, as Jupyter's local provisioner does, and write the connection file."""
        manager: Any = self.parent
        if manager.transport == "tcp" and not is_local_ip(manager.ip):
            raise RuntimeError(f"these kernels are reached on this machine only, not on {manager.ip}")
        if not self.connection_info:
            manager.write_connection_file()
            self.connection_info = manager.get_connection_info()
        return await super().pre_launch(cmd=[], **kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        loop = asyncio.get_running_loop()
        limits = Limits()
        kernel = await loop.run_in_executor(
            None, lambda: warm.start_kernel(kernel_environment(contained=True), limits, contained=True)
        )
        self._bridge = Bridge(kernel, self.connection_info, limits)
        self._bridge.start()
        return self.connection_info

    async def poll(self) -> int | None:
        return 0 if self._bridge is None or not self._bridge.alive else None

    async def wait(self) -> int | None:
        while self._bridge is not None and self._bridge.alive:
            await asyncio.sleep(ALIVE_EVERY_S)
        self._bridge = None
        return 0

    async def send_signal(self, signum: int) -> None:
        if self._bridge is None or signum == 0:
            return
        if signum == signal.SIGINT:
            self._bridge.interrupt()
        else:
            self._bridge.stop()

    async def kill(self, restart: bool = False) -> None:
        if self._bridge is not None:
            self._bridge.stop()

    async def terminate(self, restart: bool = False) -> None:
        await self.kill(restart)

    async def cleanup(self, restart: bool = False) -> None:
        """The bridge frees everything when it stops."""
