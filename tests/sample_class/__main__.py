"""`python -m tests.sample_class ASSIGNMENT FOLDER`, in the course folder: write what the sample class hands in."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.sample_class import ASSIGNMENTS, write_class

parser = argparse.ArgumentParser(prog="python -m tests.sample_class")
parser.add_argument("assignment", choices=ASSIGNMENTS)
parser.add_argument("folder", type=Path, help="gets <student>/<assignment>/<assignment>.ipynb")
parser.add_argument("--course", type=Path, default=Path(), help="the course folder (default: the current one)")
options = parser.parse_args()
written = write_class(options.course, options.assignment, options.folder)
print(f"{len(written)} submissions to {options.assignment} in {options.folder}")
