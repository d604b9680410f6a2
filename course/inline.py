"""Writes functions of this package into a notebook: those a lesson uses, with their helpers, constants and imports.

A released notebook needs no installation, and there is still one tested copy of every function: this reads the modules
as text, so what students run is what the tests ran.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = "course"


@dataclass(frozen=True)
class Definition:
    """A function, class or constant at the top of a module."""

    name: str
    source: str
    uses: frozenset[str]
    order: tuple[int, int]


@dataclass
class Toolbox:
    """Everything that a lesson may use by its bare name.

    Attributes:
        definitions: by name; names are unique over all modules that are not private to one module.
        imports: module → (name it binds → import statement).
    """

    definitions: dict[str, list[tuple[str, Definition]]] = field(default_factory=dict)
    imports: dict[str, dict[str, str]] = field(default_factory=dict)


def tool_modules(package: Path) -> list[Path]:
    """The modules lessons draw, train and check with, in an order in which each may use the ones before it."""
    figures = sorted(
        path for path in (package / "figures").glob("*.py") if path.name not in ("__init__.py", "style.py")
    )
    first = [package / "checks.py", package / "figures" / "style.py"]
    return [path for path in (*first, *sorted(package.glob("toys*.py")), *figures) if path.exists()]


def read_toolbox(modules: Iterable[Path]) -> Toolbox:
    """Parse the modules. Raises ValueError for a top-level statement that could not be written into a notebook."""
    toolbox = Toolbox()
    for number, path in enumerate(modules):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        imports = toolbox.imports.setdefault(str(path), {})
        for node in ast.parse(text).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                imports.update(_bound_imports(node))
            elif names := _defined_names(node):
                source = _source_with_comment(lines, node)
                uses = frozenset(
                    n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
                )
                for name in names:
                    definition = Definition(name, source, uses, (number, node.lineno))
                    toolbox.definitions.setdefault(name, []).append((str(path), definition))
            elif not _is_docstring(node):
                raise ValueError(
                    f"{path}:{node.lineno}: only imports, functions, classes and constants go into notebooks"
                )
    return toolbox


def inline(toolbox: Toolbox, cells: Iterable[str]) -> str:
    """The source of what the cells use: imports first, then definitions in module order.

    Raises:
        ValueError: a cell uses a name that two modules define, or two modules' own helpers of one name are needed.
    """
    wanted = sorted({name for cell in cells for name in _loaded_names(cell)} & set(toolbox.definitions))
    chosen: dict[tuple[int, int], Definition] = {}
    imports: set[str] = set()
    pending: list[tuple[str, str | None]] = [(name, None) for name in wanted]
    while pending:
        name, user = pending.pop()
        module, definition = _find(toolbox, name, user)
        if definition.order in chosen:
            continue
        chosen[definition.order] = definition
        for used in definition.uses:
            if used in toolbox.imports[module]:
                imports.add(toolbox.imports[module][used])
            elif used in toolbox.definitions:
                pending.append((used, module))
    for name, found in toolbox.definitions.items():
        modules = [module for module, definition in found if definition.order in chosen]
        if len(modules) > 1:
            raise ValueError(f"{name!r} of {' and of '.join(modules)} would meet in one notebook: rename one")
    statements = sorted(imports, key=lambda line: (line.startswith("from"), line))
    bodies = [chosen[order].source for order in sorted(chosen)]
    return "\n".join(statements) + "\n\n\n" + "\n\n\n".join(bodies)


def _find(toolbox: Toolbox, name: str, user: str | None) -> tuple[str, Definition]:
    found = toolbox.definitions[name]
    own = [pair for pair in found if pair[0] == user]
    if own:
        return own[0]
    if len(found) > 1:
        raise ValueError(f"{name!r} is defined in {' and '.join(module for module, _ in found)}: rename one")
    return found[0]


def _bound_imports(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """What each imported name needs. Imports from this package are left out: their definitions are written instead."""
    if isinstance(node, ast.ImportFrom):
        if node.module is None or node.module.split(".")[0] in (PACKAGE, "__future__"):
            return {}
        return {
            alias.asname
            or alias.name: f"from {node.module} import {ast.unparse(alias)}"  # one name a line: easy to merge
            for alias in node.names
        }
    return {(alias.asname or alias.name).split(".")[0]: f"import {ast.unparse(alias)}" for alias in node.names}


def _defined_names(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)]


def _source_with_comment(lines: list[str], node: ast.stmt) -> str:
    decorators = getattr(node, "decorator_list", [])
    start = min([node.lineno, *(decorator.lineno for decorator in decorators)]) - 1
    while start > 0 and lines[start - 1].startswith("#"):
        start -= 1
    return "\n".join(lines[start : node.end_lineno])


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _loaded_names(cell: str) -> set[str]:
    return {
        node.id for node in ast.walk(ast.parse(cell)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
