"""nbgrader's configuration of a course folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader


def load_config(root: Path) -> Config:
    """`nbgrader_config.py` of the course folder, if there is one; paths in it are relative to the folder."""
    config: Any = Config()
    if (root / "nbgrader_config.py").exists():
        config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
    config.CourseDirectory.root = str(root)
    loaded: Config = config
    return loaded


@contextmanager
def programs_found() -> Iterator[None]:
    """This environment's programs come first on the search path, for a while.

    nbgrader runs `alembic` to stamp a new database: it must be found when the environment is not activated. (nbgrader's
    own `setenv` leaves no PATH behind at all.)
    """
    before = os.environ.get("PATH")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before or os.defpath])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PATH"]
        else:
            os.environ["PATH"] = before
