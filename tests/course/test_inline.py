"""Tools written into notebooks: what a lesson uses and its closure, nothing else, and code that runs as it stands."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from course.build import ROOT
from course.inline import Toolbox, inline, read_toolbox, tool_modules

STYLE = '''\
"""Colours."""

import builtins

BLUE, RED = "#00f", "#f00"


def show(text):
    builtins.print(text)
'''
FIGURES = '''\
"""Figures."""

import math
import os.path
from collections.abc import Callable as Function
from fractions import Fraction

from course.figures.style import BLUE, show

# Twice pi,
# to six digits.
TURN = 6.283185
COUNT: int = 3


class Board:
    """Uses a constant in a method."""

    def turns(self):
        return TURN * COUNT


def _label(value):
    return f"{BLUE} {Fraction(value)} {math.floor(value)}"


@staticmethod
def decorated():
    return Board()


def draw(value):
    """Draws."""
    show(_label(value))


def unused():
    return os.path.join("a", "b")
'''


TOYS = """\
def _label():
    return "toy"


def play():
    return _label()
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "course"
    (folder / "figures").mkdir(parents=True)
    (folder / "figures" / "__init__.py").write_text('"""Nothing."""\n', encoding="utf-8")
    (folder / "figures" / "style.py").write_text(STYLE, encoding="utf-8")
    (folder / "figures" / "shapes.py").write_text(FIGURES, encoding="utf-8")
    return folder


def toolbox(package: Path) -> Toolbox:
    return read_toolbox(tool_modules(package))


def defined(source: str) -> list[str]:
    names = []
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            names.append(ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target))
    return names


def test_what_is_used_and_its_closure_is_written(package: Path) -> None:
    """draw → _label → BLUE, show; with their imports, in module order; nothing that is not needed."""
    source = inline(toolbox(package), ["draw(2)"])
    assert defined(source) == ["(BLUE, RED)", "show", "_label", "draw"]
    imports = source.split("\n\n\n")[0].splitlines()
    assert imports == ["import builtins", "import math", "from fractions import Fraction"]


def test_what_is_written_runs_alone(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the package: the closure is complete."""
    scope: dict[str, object] = {}
    exec(inline(toolbox(package), ["draw(2)"]), scope)
    scope["draw"](2.5)  # type: ignore[operator]
    assert capsys.readouterr().out == "#00f 5/2 2\n"


def test_classes_decorators_and_comments_come_along(package: Path) -> None:
    """A class with the constants of its methods; comments above a constant; the decorator of a function."""
    source = inline(toolbox(package), ["decorated()"])
    assert defined(source) == ["TURN", "COUNT", "Board", "decorated"]
    assert "# Twice pi,\n# to six digits.\nTURN = 6.283185" in source
    assert "@staticmethod\ndef decorated" in source


def test_the_source_is_the_modules_own_text(package: Path) -> None:
    """Docstrings and layout included: what students run is what the tests ran."""
    assert 'def draw(value):\n    """Draws."""\n    show(_label(value))' in inline(toolbox(package), ["draw(1)"])


def test_a_renamed_import_keeps_its_name(package: Path) -> None:
    """`import … as`, and a dotted import, bind what the code uses."""
    text = FIGURES.replace("def unused():\n", "def unused(f: Function = print):\n")
    (package / "figures" / "shapes.py").write_text(text, encoding="utf-8")
    source = inline(toolbox(package), ["unused()"])
    assert "from collections.abc import Callable as Function" in source
    assert "import os.path" in source


def test_only_loaded_names_count(package: Path) -> None:
    """A cell that defines or assigns a name does not use the tool of that name."""
    source = inline(toolbox(package), ["def draw(x):\n    return x", "BLUE = 1", "show"])
    assert defined(source) == ["show"]


def test_the_order_of_cells_does_not_matter(package: Path) -> None:
    """The same tools, the same text: the build is deterministic."""
    cells = ["draw(1)", "decorated()", "print(RED)"]
    assert inline(toolbox(package), cells) == inline(toolbox(package), cells[::-1])


def test_two_modules_with_one_public_name_are_an_error_when_used(package: Path) -> None:
    """Which one a lesson means cannot be guessed; unused, it does no harm."""
    (package / "toys.py").write_text("def draw():\n    return 1\n", encoding="utf-8")
    assert defined(inline(toolbox(package), ["show"])) == ["show"]
    with pytest.raises(ValueError, match=r"'draw' is defined in .*toys.py and .*shapes.py"):
        inline(toolbox(package), ["draw(1)"])


def test_a_module_uses_its_own_helper(package: Path) -> None:
    """A private name in another module is another function."""
    (package / "toys.py").write_text(TOYS, encoding="utf-8")
    assert 'return "toy"' in inline(toolbox(package), ["play()"])
    assert "Fraction" in inline(toolbox(package), ["draw(1)"])


def test_two_private_helpers_of_one_name_cannot_meet_in_a_notebook(package: Path) -> None:
    """Written one after the other, the second would silently replace the first."""
    (package / "toys.py").write_text(TOYS, encoding="utf-8")
    with pytest.raises(ValueError, match=r"'_label'.*rename one"):
        inline(toolbox(package), ["play()", "draw(1)"])


@pytest.mark.parametrize("statement", ["print('loaded')", "if True:\n    x = 1", "for i in range(3):\n    pass"])
def test_a_statement_that_does_something_is_an_error(package: Path, statement: str) -> None:
    """It could not be written into a notebook; file and line are named."""
    (package / "toys.py").write_text(f'"""Toys."""\n\n{statement}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"toys.py:3: only imports"):
        toolbox(package)


FIGURE_MODULES = [path.name for path in tool_modules(ROOT / "course") if path.parent.name == "figures"]


@pytest.mark.parametrize("figures", FIGURE_MODULES)
def test_the_real_tools_can_be_written_into_notebooks(figures: str) -> None:
    """Every tool that a lesson with these figures may use, all at once: it compiles and needs nothing of ours."""
    modules = tool_modules(ROOT / "course")
    everything = read_toolbox(
        path for path in modules if path.parent.name != "figures" or path.name in ("style.py", figures)
    )
    source = inline(everything, [name for name in everything.definitions if not name.startswith("_")])
    compile(source, "tools", "exec")
    imported = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in imported if name and name.partition(".")[0] in ("course", "autograder")]
