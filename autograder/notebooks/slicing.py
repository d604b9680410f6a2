"""Which cells have to run for the tests to be judged: the student's own, the tests, and what these need of the rest.

Most of a lesson's time goes into figures and experiments that no test looks at. A cell that still is as the course gave
it out is left out when no cell that runs takes a name from it. As soon as a student's code may use names in ways that
its text does not show, everything runs.
"""

from __future__ import annotations

import ast
import re
import symtable
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from nbformat import NotebookNode

from autograder.notebooks.cells import grade_id, is_answer, is_test

UNSEEN_USES = re.compile(
    r"\b(eval|exec|globals|locals|get_ipython|__main__|__import__|gc|inspect|_getframe)\b|\bsys\.modules\b|\bvars\(\s*\)"
)
"""What can reach a name that the text of a cell does not show. (Code with magics does not parse: every word counts.)"""


@dataclass(frozen=True)
class Names:
    """What a cell has to do with names outside it.

    Attributes:
        binds: names that it sets at its top level, whatever happens in it.
        changes: names that it may set, or whose contents it changes.
        reads: names that it takes over while it runs.
        reads_later: names that its functions look up whenever they are called.
    """

    binds: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    reads_later: frozenset[str] = frozenset()


def needed_cells(notebook: NotebookNode, source: NotebookNode, only: Collection[str] = ()) -> frozenset[int]:
    """The places of the code cells that have to run.

    Args:
        notebook: a submission, fitted.
        source: the instructor's notebook.
        only: grade ids of the test cells that are to be judged, where it is not all of them. Another test cell then
            runs only when a cell that runs takes a name from it.
    """
    given = {cell["id"]: cell.source for cell in source.cells if not is_test(cell) and not is_answer(cell)}
    code = [index for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    tests = frozenset(index for index in code if is_test(notebook.cells[index]))
    optional = {index for index in code if given.get(notebook.cells[index]["id"]) == notebook.cells[index].source}
    if only:
        optional |= {index for index in tests if grade_id(notebook.cells[index]) not in only}
    running = set(code) - optional
    if any(UNSEEN_USES.search(notebook.cells[index].source) for index in running - tests):
        return frozenset(code)
    names = {index: names_of(notebook.cells[index].source) for index in code}
    fresh = set(running)
    while fresh:
        found = {provider for index in fresh for provider in _providers(index, names, tests)}
        fresh = found - running
        running |= fresh
    return frozenset(running)


def _providers(cell: int, names: dict[int, Names], tests: frozenset[int]) -> Iterator[int]:
    """The cells from which this one takes names. A test takes from another test what it never sets itself."""
    for name in names[cell].reads:
        own = name in names[cell].changes
        for earlier in sorted((index for index in names if index < cell), reverse=True):
            if name in names[earlier].binds | names[earlier].changes and not (own and {cell, earlier} <= tests):
                yield earlier
            if name in names[earlier].binds:
                break
    for other, theirs in names.items():
        if other != cell and names[cell].reads_later & (theirs.binds | theirs.changes):
            yield other


@lru_cache(maxsize=1024)
def names_of(source: str) -> Names:
    """What the code of one cell has to do with names outside it. Code that does not parse may read every word in it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\\d" in somebody's string
            return _names_of(ast.parse(source), symtable.symtable(source, "cell", "exec"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        words = frozenset(re.findall(r"[^\W\d]\w*", source))
        return Names(changes=words, reads_later=words)


def _names_of(tree: ast.Module, table: symtable.SymbolTable) -> Names:
    reads, binds = _in_order(tree.body, frozenset())
    assigned = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    functions = [inner for child in table.get_children() for inner in _tables(child)]
    in_functions = [symbol for inner in functions for symbol in inner.get_symbols() if symbol.is_global()]
    later = {symbol.get_name() for symbol in in_functions if symbol.is_referenced()}
    assigned |= {symbol.get_name() for symbol in in_functions if symbol.is_assigned()}
    return Names(binds, frozenset(assigned | _contents_changed(tree)), reads, frozenset(later) - binds)


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _in_order(statements: Sequence[ast.stmt], bound: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The names that statements read without having set them before, and those that are set after them for certain."""
    reads: frozenset[str] = frozenset()
    for statement in statements:
        match statement:
            case ast.With() | ast.AsyncWith():
                items = [part for item in statement.items for part in (item.context_expr, item.optional_vars) if part]
                reads |= _loaded(items) - bound
                inner, bound = _in_order(statement.body, bound | _stored(items))
                reads |= inner
            case ast.For() | ast.AsyncFor():
                reads |= _loaded([statement.iter, statement.target]) - bound
                bound |= _stored([statement.target])  # a loop that never runs is read as one that does
                reads |= _in_order(statement.body, bound)[0] | _in_order(statement.orelse, bound)[0]
            case ast.If() | ast.While():
                reads |= _loaded([statement.test]) - bound
                first, after_first = _in_order(statement.body, bound)
                second, after_second = _in_order(statement.orelse, bound)
                reads |= first | second
                bound = after_first & after_second
            case ast.Try():
                inner, bound_inside = _in_order(statement.body, bound)
                reads |= inner
                for handler in statement.handlers:
                    reads |= _loaded([handler.type] if handler.type else []) - bound
                    reads |= _in_order(handler.body, bound | ({handler.name} if handler.name else set()))[0]
                reads |= _in_order(statement.orelse, bound_inside)[0] | _in_order(statement.finalbody, bound)[0]
            case _:
                reads |= _loaded([statement]) - bound
                if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom)):
                    bound |= _stored([statement])
                elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    bound |= {statement.name}
    return reads, bound


def _loaded(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """Names that are read while these run; what stands in a function's body is read when it is called."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name():
                if not isinstance(node.ctx, ast.Store):
                    found.add(node.id)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                outer: list[ast.AST | None] = [*node.args.defaults, *node.args.kw_defaults]
                if not isinstance(node, ast.Lambda):
                    outer += [*node.decorator_list, node.returns, *(arg.annotation for arg in node.args.args)]
                found |= _loaded([part for part in outer if part is not None])
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                targets = _stored([generator.target for generator in node.generators])
                found |= _loaded(list(ast.iter_child_nodes(node))) - targets
            case ast.AugAssign(target=ast.Name(id=name)):
                found |= {name} | _loaded([node.value])
            case ast.ClassDef():
                inner, _ = _in_order(node.body, frozenset())
                found |= inner | _loaded([*node.bases, *node.decorator_list])
            case _:
                found |= _loaded(list(ast.iter_child_nodes(node)))
    return frozenset(found)


def _stored(nodes: Sequence[ast.AST]) -> frozenset[str]:
    found: set[str] = set()
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return frozenset(found)


def _contents_changed(tree: ast.AST) -> frozenset[str]:
    """Names of the objects to whose attributes or items the code assigns."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            base: ast.expr = node
            while isinstance(base, (ast.Attribute, ast.Subscript)):
                base = base.value
            if isinstance(base, ast.Name):
                names.add(base.id)
    return frozenset(names)
