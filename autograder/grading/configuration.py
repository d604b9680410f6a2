"""nbgrader's configuration of a course folder."""

from __future__ import annotations

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
