"""The warm process and the examiners that the tests of one worker share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autograder.grading.one import stop_examiners
from autograder.kernels import warm


@pytest.fixture(scope="session", autouse=True)
def _shared_processes() -> Iterator[None]:
    yield
    warm.stop_all()
    stop_examiners()
