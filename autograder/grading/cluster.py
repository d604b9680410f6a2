"""Workers on a cluster: the same function through Dask's executor. An extra: `pip install 'order-matters[cluster]'`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from autograder.errors import OrderMattersError

CONNECT_TIMEOUT_S = 10.0
RETRIES = 3
"""How often a submission is tried again when the worker that graded it is gone."""
IN_FLIGHT = 1000
"""Submissions handed to the scheduler at a time: more than the workers that a cluster has for a class."""


@contextmanager
def cluster_workers(address: str) -> Iterator[Executor]:
    """The workers of the Dask scheduler at `address`, such as tcp://host:8786.

    They need this package, bubblewrap, and the course folder under the same path. A worker grades one submission at a
    time; start as many workers as cores: `dask worker tcp://host:8786 --nworkers auto --nthreads 1`.

    Raises:
        OrderMattersError: Dask is not installed here, or nobody answers at the address.
    """
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise OrderMattersError("--scheduler needs Dask: pip install 'order-matters[cluster]'.") from error
    try:
        client = Client(address, timeout=CONNECT_TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise OrderMattersError(
            f"no Dask scheduler answers at {address} ({error}). Start one with `dask scheduler`, "
            "and workers with `dask worker ADDRESS --nworkers auto --nthreads 1`."
        ) from error
    with client:  # leaving it cancels what has not been fetched
        yield client.get_executor(pure=False, retries=RETRIES)
