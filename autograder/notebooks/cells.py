"""What a cell of a notebook is to the course, and what its code defines."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from nbformat import NotebookNode

from autograder.syntax import syntax_tree


def grade_id(cell: NotebookNode) -> str | None:
    """nbgrader's id of a cell of ours, or None."""
    found: str | None = cell.metadata.get("nbgrader", {}).get("grade_id")
    return found


def is_answer(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def is_test(cell: NotebookNode) -> bool:
    """Whether the cell is graded automatically."""
    marks = cell.metadata.get("nbgrader", {})
    return bool(marks.get("grade") and not marks.get("solution"))


def is_locked(cell: NotebookNode) -> bool:
    """Whether the cell's text is the course's own: tests, tools, given code."""
    marks = cell.metadata.get("nbgrader", {})
    return bool(marks) and not marks.get("solution") and bool(marks.get("locked") or marks.get("grade"))


@lru_cache(maxsize=1024)
def defined_names(source: str) -> frozenset[str]:
    """Functions, classes and variables that the code defines at its top level."""
    tree = syntax_tree(source)
    if tree is None:
        # A cell that does not parse is often an answer with a slip in it: its `def` lines still tell which.
        return frozenset(re.findall(r"^(?:def|class) +(\w+)", source, flags=re.MULTILINE))
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name))
    return frozenset(names)
