"""The syntax of students' code. It may hold magics and shell commands, which IPython takes out before it is run."""

from __future__ import annotations

import ast
import re
import warnings

MAGIC = re.compile(r"^([ \t]*)[%!].*$", flags=re.MULTILINE)
"""A line of IPython's, which Python does not parse."""


def without_magics(source: str) -> str:
    """The code with `pass` in the stead of IPython's lines."""
    return MAGIC.sub(r"\1pass", source)


def syntax_tree(source: str) -> ast.Module | None:
    """The syntax tree; of code that does not parse, that of the code without IPython's lines, else None."""
    for text in (source, without_magics(source)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "\\d" in somebody's string
                return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None
