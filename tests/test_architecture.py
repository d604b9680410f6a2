"""Which room may import what. The table of the design, read from every import in the code, lazy ones included."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# The first entry whose room holds the module decides. Ours are dotted prefixes; a room may always import itself.
TABLE: dict[str, dict[str, set[str]]] = {
    "autograder.errors": {"ours": set(), "others": set()},
    "autograder.results": {"ours": set(), "others": set()},
    "autograder.syntax": {"ours": set(), "others": set()},
    "autograder.reference": {"ours": {"autograder.errors"}, "others": {"torch"}},
    # numpy, for right answers written with it.
    "autograder.exercises": {"ours": {"autograder.reference", "autograder.results"}, "others": {"torch", "numpy"}},
    "autograder.examiner.address": {"ours": set(), "others": set()},
    "autograder.examiner.protocol": {"ours": set(), "others": {"torch", "numpy"}},
    "autograder.examiner.client": {
        "ours": {"autograder.examiner.protocol", "autograder.examiner.address"},
        "others": {"torch", "numpy"},
    },
    "autograder.examiner": {
        "ours": {"autograder.exercises", "autograder.results", "autograder.errors", "autograder.syntax"},
        "others": {"torch", "numpy"},
    },
    # The warm process loads what notebooks and `grade` load, and no answers.
    "autograder.kernels.zygote": {
        "ours": {
            "autograder.examiner.client",
            "autograder.examiner.address",
            "autograder.kernels.scratch",
            "autograder.kernels.shell",
        },
        "others": {"torch", "numpy", "matplotlib", "IPython", "stack_data", "pygments"},
    },
    "autograder.kernels.shell": {
        "ours": {"autograder.kernels.channel"},
        "others": {"ipykernel", "IPython", "jupyter_client", "traitlets"},
    },
    "autograder.kernels": {
        "ours": {"autograder.results", "autograder.errors"},
        "others": {"jupyter_client", "nbformat", "traitlets", "zmq", "matplotlib"},
    },
    "autograder.notebooks": {
        "ours": {"autograder.results", "autograder.errors", "autograder.syntax"},
        "others": {"nbformat"},
    },
    "autograder.grading": {
        "ours": {
            "autograder.notebooks",
            "autograder.kernels",
            "autograder.examiner",
            "autograder.results",
            "autograder.errors",
            "autograder.syntax",
        },
        "others": {"nbformat", "nbgrader", "sqlalchemy", "traitlets", "distributed"},
    },
    "autograder.intake": {
        "ours": {"autograder.results", "autograder.errors", "autograder.notebooks", "autograder.grading.submissions"},
        "others": {"yaml"},
    },
    "autograder.report": {
        "ours": {"autograder.results", "autograder.errors", "autograder.notebooks", "autograder.grading"},
        "others": {"jinja2", "markupsafe", "nbformat", "rich"},
    },
    # nbgrader's extension points; the exports are the report's own.
    "autograder.plugins": {
        "ours": {
            "autograder.results",
            "autograder.errors",
            "autograder.notebooks",
            "autograder.grading",
            "autograder.kernels",
            "autograder.report",
            "autograder.intake",
        },
        "others": {"nbformat", "nbgrader", "traitlets"},
    },
    # The room of the command line: cli.py and what its commands do.
    "autograder.cli": {"ours": {"autograder"}, "others": set()},
    "autograder.commands": {"ours": {"autograder"}, "others": {"rich"}},
    "autograder.commands_reports": {"ours": {"autograder"}, "others": {"rich"}},
    "autograder.doctor": {"ours": {"autograder"}, "others": {"rich", "nbformat", "torch"}},
    "autograder": {"ours": set(), "others": set()},
    # What is written into notebooks, then the build.
    "course.figures": {"ours": set(), "others": {"torch", "numpy", "matplotlib"}},
    "course.toys": {"ours": set(), "others": {"torch", "numpy", "matplotlib"}},
    "course.checks": {"ours": set(), "others": {"torch", "numpy", "matplotlib"}},
    "course": {"ours": set(), "others": {"jupytext", "nbformat", "nbgrader", "traitlets"}},
}
NOTEBOOKS_MAY_IMPORT = {"torch", "numpy", "matplotlib"}
CLI_ROOM = ("autograder.cli", "autograder.commands", "autograder.commands_reports", "autograder.doctor")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(source: str, module: str = "") -> set[str]:
    """Every module that the code imports, at any depth; `from a import b` counts as `a.b`, which may be a module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively; write the whole name"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("__import__", "importlib.import_module"):
            found |= named(node, module)
    return found


def named(call: ast.Call, module: str) -> set[str]:
    """What `importlib.import_module(...)` imports: a literal name, or each of the module's tuple PRELOADED."""
    (name,) = call.args
    if isinstance(name, ast.Constant):
        return {str(name.value)}
    for node in ast.parse(MODULES[module].read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PRELOADED":
            return set(ast.literal_eval(node.value))
    raise AssertionError(f"{module} computes the name of an import")


def within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def room_of(module: str) -> str:
    """The room a module belongs to; `toys_<subject>` are in the room of `toys`."""
    name = "course.toys" if module.startswith("course.toys_") else module
    return next(room for room in TABLE if within(name, room))


MODULES = {
    module_name(path): path
    for package in ("autograder", "course")
    for path in sorted((ROOT / package).rglob("*.py"))
    if "lessons" not in path.parts
}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_its_room_may(module: str) -> None:
    """Every import, also inside a function, is the standard library, the room itself, or in the room's row."""
    room = room_of(module)
    assert room != "autograder" or module == "autograder", f"{module} belongs to no room of the table"
    allowed = TABLE[room]
    forbidden = []
    for name in imported_names(MODULES[module].read_text(encoding="utf-8"), module):
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or within(name, room):
            continue
        if top == "course" and room_of(name) == room:  # toys of one subject may use those of another
            continue
        if top in ("autograder", "course"):
            if not any(within(name, ours) for ours in allowed["ours"]):
                forbidden.append(name)
        elif top not in allowed["others"]:
            forbidden.append(name)
    assert not forbidden, f"{module} (room {room}) imports {forbidden}"


@pytest.mark.parametrize("module", MODULES)
def test_nobody_imports_the_command_line(module: str) -> None:
    """The cli room is a leaf: only it imports cli, commands and doctor, and nothing imports cli itself."""
    names = imported_names(MODULES[module].read_text(encoding="utf-8"), module)
    forbidden = CLI_ROOM if room_of(module) not in CLI_ROOM else ("autograder.cli",)
    assert not [name for name in names if any(within(name, leaf) for leaf in forbidden)]


@pytest.mark.parametrize("package", ["autograder", "course"])
def test_course_and_grader_do_not_know_each_other(package: str) -> None:
    """`course` never imports `autograder`, nor the other way round; nbgrader_config.py may name the plugins."""
    other = {"autograder": "course", "course": "autograder"}[package]
    for module, path in MODULES.items():
        if within(module, package):
            names = imported_names(path.read_text(encoding="utf-8"), module)
            assert not [name for name in names if within(name, other)], module


def test_the_command_line_imports_the_rooms_lazily() -> None:
    """`autograder --help` must not import torch: at the top of cli.py stand the standard library and the errors."""
    tree = ast.parse((ROOT / "autograder" / "cli.py").read_text(encoding="utf-8"))
    top = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    for name in imported_names("\n".join(map(ast.unparse, top))):
        assert name.partition(".")[0] in sys.stdlib_module_names or within(name, "autograder.errors")


def test_what_a_kernel_imports_is_light_at_the_top() -> None:
    """`autograder.examiner` reaches exercises only inside `grade`, and only through local.py."""
    tree = ast.parse((ROOT / "autograder" / "examiner" / "__init__.py").read_text(encoding="utf-8"))
    top = "\n".join(ast.unparse(node) for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)))
    assert not [name for name in imported_names(top) if within(name, "autograder")]


@pytest.mark.slow
def test_a_kernel_with_an_examiner_holds_no_answers() -> None:
    """After `grade` has looked for its examiner, neither exercises, reference nor judge are loaded in the process."""
    code = """
import os, sys
os.environ["ORDER_MATTERS_EXAMINER"] = "99"
from autograder.examiner import grade
try:
    grade("pair-frequencies", print)
except OSError:
    print(*sorted(name for name in sys.modules if name.startswith("autograder")))
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    loaded = done.stdout.split()
    assert loaded == [
        "autograder",
        "autograder.examiner",
        "autograder.examiner.address",
        "autograder.examiner.client",
        "autograder.examiner.protocol",
    ]


def _cells(notebook: Path) -> list[tuple[str, str]]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [(cell.get("id", "?"), "".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"]


RELEASED = sorted((ROOT / "release").rglob("*.ipynb"))


def test_there_are_released_notebooks() -> None:
    """The tests below look at something."""
    assert RELEASED


@pytest.mark.parametrize("notebook", RELEASED, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_released_notebook_needs_no_installation(notebook: Path) -> None:
    """Code in release/ imports torch, numpy, matplotlib and the standard library: no magics, no hidden tests."""
    for name, source in _cells(notebook):
        assert "HIDDEN TESTS" not in source, name
        assert not re.search(r"^\s*[%!]", source, flags=re.MULTILINE), f"{name} uses a magic or a shell command"
        for imported in imported_names(source, name):
            top = imported.partition(".")[0]
            assert top in sys.stdlib_module_names or top in NOTEBOOKS_MAY_IMPORT, f"{name} imports {imported}"


@pytest.mark.parametrize("notebook", sorted((ROOT / "source").rglob("*.ipynb")), ids=lambda path: path.stem)
def test_only_hidden_tests_of_a_source_notebook_import_the_grader(notebook: Path) -> None:
    """Outside the hidden tests, what instructors open imports no more than what students open."""
    for name, source in _cells(notebook):
        visible = re.sub(r"### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS", "", source, flags=re.DOTALL)
        for imported in imported_names(visible, name):
            top = imported.partition(".")[0]
            assert top in sys.stdlib_module_names or top in NOTEBOOKS_MAY_IMPORT, f"{name} imports {imported}"
