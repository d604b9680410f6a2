"""Rules such as "without `torch.nn.LayerNorm`", checked on the answer's syntax tree, outside the student's process.

Names are followed through imports and assignments (`import torch.nn as n`, `make = n.LayerNorm`), also those of the
student's other cells; functions and classes of those cells that the answer uses count as part of the answer. A look-up
whose name is not written out (`getattr(nn, name)`, `vars(nn)`, `eval`) in an answer with a rule counts as breaking it,
because what it finds can't be read from the text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from autograder.syntax import syntax_tree

if TYPE_CHECKING:
    from autograder.exercises.declaration import Rule  # the grader reads texts with this module, and loads no torch

WELL_KNOWN = {"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional"}
"""What these names mean in every lesson before any cell of the student's own."""
REFLECTION = frozenset(
    {"eval", "exec", "compile", "__import__", "globals", "locals", "vars", "getattr", "setattr", "delattr"}
)
REFLECTIVE_ATTRIBUTES = frozenset(
    {"__dict__", "__getattribute__", "__getattr__", "__globals__", "__builtins__", "__subclasses__"}
)
REFLECTIVE_MODULES = frozenset({"importlib", "builtins", "inspect", "gc", "operator", "ctypes"})


@dataclass
class _Names:
    """What the names of a notebook stand for, as far as torch is concerned: name → dotted path."""

    paths: dict[str, str] = field(default_factory=lambda: dict(WELL_KNOWN))
    own: set[str] = field(default_factory=set)
    stars: list[str] = field(default_factory=list)  # modules of torch from which everything was imported
    harmless: set[ast.expr] = field(default_factory=set)

    def path(self, node: ast.expr) -> str | None:
        """The dotted torch path that an expression names, or None."""
        if isinstance(node, ast.Name):
            if node.id in self.paths or node.id in self.own or not self.stars:
                return self.paths.get(node.id)
            return f"{self.stars[-1]}.{node.id}"
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):  # not by recursion: a chain may have thousands of links
            attributes.append(node.attr)
            node = node.value
        base = self.path(node) if attributes and isinstance(node, ast.Name) else None
        return ".".join([base, *reversed(attributes)]) if base else None

    def learn(self, tree: ast.AST) -> None:
        """Read imports and assignments in the order of the text."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] == "torch":
                        self.paths[alias.asname or "torch"] = alias.name if alias.asname else "torch"
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
                for alias in node.names:
                    if alias.name == "*":
                        self.stars.append(str(node.module))
                    else:
                        self.paths[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
                path = self.path(node.value)
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if path and isinstance(target, ast.Name):
                        self.paths[target.id] = path


def broken_rule(rules: Sequence[Rule], answer: str, others: Iterable[str] = ()) -> Rule | None:
    """The first rule that the answer breaks, or None.

    Args:
        answer: source of the answer's cell.
        others: sources of the notebook's other cells, which may give torch's things other names.
    """
    tree = syntax_tree(answer) if rules else None
    if tree is None:
        return None  # a cell that does not parse defines nothing, so there is nothing to judge
    names = _Names()
    elsewhere = [cell for cell in map(syntax_tree, others) if cell is not None]
    for cell in elsewhere:
        names.learn(cell)
    tree.body += _used_definitions(tree, elsewhere)
    definitions = [node for node in ast.walk(tree) if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    inherited = [names.path(base) for node in definitions if isinstance(node, ast.ClassDef) for base in node.bases]
    names.own = {node.name for node in definitions}
    for name in names.own:
        names.paths.pop(name, None)  # the answer's own definition hides an import of that name
    names.learn(tree)
    names.harmless = _harmless(tree)
    for rule in rules:
        if any(path and _forbidden(path, rule) for path in inherited):
            return rule
        if any(_breaks(node, rule, names) for node in ast.walk(tree)):
            return rule
    return None


def _used_definitions(tree: ast.Module, elsewhere: Iterable[ast.Module]) -> list[ast.stmt]:
    """The functions and classes of other cells that the answer uses, directly or through one another.

    Of two with one name the last counts, and one of the answer's own hides them all.
    """
    defined = {
        node.name: node
        for cell in elsewhere
        for node in cell.body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    }
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            defined.pop(node.name, None)
    found: list[ast.stmt] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        for name in {node.id for node in ast.walk(waiting.pop()) if isinstance(node, ast.Name)}:
            definition = defined.pop(name, None)
            if definition is not None:
                found.append(definition)
                waiting.append(definition)
    return found


def _breaks(node: ast.AST, rule: Rule, names: _Names) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        module = node.module if isinstance(node, ast.ImportFrom) else ""
        if isinstance(node, ast.ImportFrom):
            imported = [f"{module}.{alias.name}" for alias in node.names]
            if any(path in rule.names or path == "sys.modules" for path in imported):
                return True
        roots = [module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        return any(root.split(".")[0] in REFLECTIVE_MODULES for root in roots)
    if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
        path = names.path(node)
        if path and _forbidden(path, rule):
            return True
        if isinstance(node, ast.Attribute):
            loaded = isinstance(node.value, ast.Name) and node.value.id == "sys" and node.attr == "modules"
            return loaded or node.attr in REFLECTIVE_ATTRIBUTES
        if node.id in REFLECTION | REFLECTIVE_MODULES:
            return node not in names.harmless and node.id not in names.paths
    return False


def _forbidden(path: str, rule: Rule) -> bool:
    """Whether a torch path ends in one of the rule's names: `torch.nn.modules.LayerNorm` is meant too."""
    leaf = path.rsplit(".", 1)[-1]
    return path in rule.names or any(leaf == name.rsplit(".", 1)[-1] for name in rule.names)


def _harmless(tree: ast.AST) -> set[ast.expr]:
    """Names of reflection that are ordinary code: `getattr(self, …)`, and a variable such as `vars` for variances."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    variables = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {call.func for call in calls}
    return {
        *(node for node in names if node.id in variables and node not in called),
        *(call.func for call in calls if _is_attribute_of_self(call)),
    }


def _is_attribute_of_self(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Name) or call.func.id not in ("getattr", "setattr") or not call.args:
        return False
    return isinstance(call.args[0], ast.Name) and call.args[0].id == "self"
