"""Which cells have to run: what a test or a student's cell takes from another cell is there, and nothing else runs."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from autograder.notebooks.cells import is_test
from autograder.notebooks.slicing import Names, names_of, needed_cells

ROOT = Path(__file__).resolve().parent.parent.parent
TEST = {"grade": True, "solution": False, "locked": True, "points": 1}
ANSWER = {"grade": False, "solution": True, "locked": False}


def notebook(*cells: tuple[str, str]) -> NotebookNode:
    """Cells as (kind, source): "given" is the course's, "answer" and "own" the student's, "test" the course's."""
    made = []
    for number, (kind, source) in enumerate(cells):
        cell = new_code_cell(source, id=f"{kind}-{number}")
        if kind in ("test", "answer"):
            cell.metadata["nbgrader"] = {**(TEST if kind == "test" else ANSWER), "grade_id": cell["id"]}
        made.append(cell)
    return new_notebook(cells=made)


def ran(submitted: NotebookNode, *only: str) -> list[int]:
    """The cells that run, where those of the kind "own" are not the course's; if `only` these tests are judged."""
    source = new_notebook(cells=[cell for cell in submitted.cells if not cell["id"].startswith("own")])
    return sorted(needed_cells(submitted, source, only or None))


def test_figures_are_left_out_and_imports_stay() -> None:
    """The answer takes `torch` from the import cell; nobody takes anything from the figure."""
    submitted = notebook(
        ("given", "import torch\nimport math"),
        ("given", "figure = draw()\nshow(figure)"),
        ("answer", "def f(x):\n    return torch.sin(x)"),
        ("test", "assert f(1) == 2"),
        ("given", "curves = [train(f) for _ in range(3)]"),
    )
    assert ran(submitted) == [0, 2, 3]


CHAINS = {
    "a function's global": (("given", "base = 10"), ("answer", "def f(x):\n    return base * x"), [0, 1]),
    "a later cell's name, when called": (("answer", "def f():\n    return late"), ("given", "late = 3"), [0, 1]),
    "a default value": (("given", "base = 10"), ("answer", "def f(x, base=base):\n    return x"), [0, 1]),
    "an annotation": (("given", "Tensor = int"), ("answer", "def f(x: Tensor): return x"), [0, 1]),
    "a decorator": (("given", "def slow(f): return f"), ("answer", "@slow\ndef f(x): return x"), [0, 1]),
    "a base class": (("given", "class Base: pass"), ("answer", "class F(Base): pass"), [0, 1]),
    "a name in a method": (("given", "k = 1"), ("answer", "class F:\n    def g(self): return k"), [0, 1]),
    "a name in a class body": (("given", "k = 1"), ("answer", "class F:\n    size = k"), [0, 1]),
    "a name in a comprehension": (("given", "rows = [1]"), ("answer", "found = [r for r in rows]"), [0, 1]),
    "a name counted up": (("given", "n = 1"), ("answer", "n += 1"), [0, 1]),
    "a name in a branch": (("given", "n = 1"), ("answer", "if True:\n    m = n"), [0, 1]),
    "a name set in one branch only": (("given", "n = 1"), ("answer", "if x:\n    n = 2\nprint(n)"), [0, 1]),
    "a name in a handler": (("given", "n = 1"), ("answer", "try:\n    f()\nexcept E:\n    n"), [0, 1]),
    "a changed item": (("given", "table = {}"), ("given", "table['a'] = 1"), ("answer", "table['a']"), [0, 1, 2]),
    "a changed attribute": (("given", "m = M()"), ("given", "m.w.x = 1"), ("answer", "print(m)"), [0, 1, 2]),
    "through another given cell": (("given", "a = 1"), ("given", "b = a"), ("answer", "print(b)"), [0, 1, 2]),
    "code that does not parse": (("given", "n = 1"), ("own", "%time print(n)"), [0, 1]),
    "a global set in a function": (("given", "def set_n():\n    global n\n    n = 1"), ("answer", "print(n)"), [0, 1]),
    "an import with dots": (("given", "import torch.nn"), ("answer", "torch.nn"), [0, 1]),
    "only the last of two": (("given", "n = 1"), ("given", "n = 2"), ("answer", "print(n)"), [1, 2]),
    "set again before it is read": (("given", "n = 1"), ("answer", "n = 2\nprint(n)"), [1]),
    "a loop's own name": (("given", "for name in 'ab': pass"), ("answer", "for name in 'xy':\n    print(name)"), [1]),
    "a parameter of the same name": (("given", "x = 1"), ("answer", "def f(x):\n    return x"), [1]),
    "a local of the same name": (("given", "x = 1"), ("answer", "def f():\n    x = 2\n    return x"), [1]),
    "a comprehension's own name": (("given", "i = 1"), ("answer", "a = [i for i in range(3)]"), [1]),
    "a with block's own name": (("given", "g = 1"), ("answer", "with open('x') as g:\n    print(g)"), [1]),
    "an attribute of the same name": (("given", "shape = 1"), ("answer", "def f(x):\n    return x.shape"), [1]),
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_what_is_taken_from_a_cell_makes_it_run(chain: tuple[object, ...]) -> None:
    """And a name that only looks alike does not."""
    *cells, expected = chain
    assert ran(notebook(*cells)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "own",
    ["eval('n')", "globals()['n']", "import gc", "get_ipython().user_ns", "import __main__", "vars()['n']"],
)
def test_code_that_may_reach_any_name_makes_everything_run(own: str) -> None:
    """What cannot be read from the text is not guessed."""
    assert ran(notebook(("given", "n = 1"), ("given", "m = 2"), ("own", own))) == [0, 1, 2]


def test_a_given_cell_that_was_changed_is_the_students_own() -> None:
    """It runs, whether anybody takes something from it or not."""
    submitted = notebook(("given", "n = 1"), ("given", "show(2)"))
    source = notebook(("given", "n = 1"), ("given", "show(1)"))
    assert needed_cells(submitted, source) == {1}


def test_no_code_at_all() -> None:
    """An empty cell, a comment."""
    assert names_of("") == names_of("# only words") == Names()


def test_only_the_tests_asked_for_run() -> None:
    """With all that the student wrote, and what it needs; a figure that only another test needs stays out."""
    submitted = notebook(
        ("given", "import torch"),
        ("given", "table = [1]"),
        ("answer", "def f(x):\n    return torch.sin(x)"),
        ("test", "assert f(1) == table"),
        ("answer", "def g(x):\n    return x"),
        ("test", "assert g(1) == 1"),
        ("own", "print(g(2))"),
    )
    assert ran(submitted, "test-5") == [0, 2, 4, 5, 6]
    assert ran(submitted, "test-3", "test-5") == ran(submitted) == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("taking", "expected"),
    [
        (("test", "assert f(helper)"), [0, 1, 2]),
        (("own", "print(helper)"), [0, 1, 2, 3]),
        (("test", "try:\n    helper = f()\nexcept E:\n    fail()\nassert helper"), [0, 2]),
        (("test", "helper = 2\nassert f(helper)"), [0, 2]),
    ],
    ids=["a test", "the student's own", "a test that sets it in its own way", "a test that sets it"],
)
def test_another_test_runs_where_something_is_taken_from_it(taking: tuple[str, str], expected: list[int]) -> None:
    """A helper that it defines is there; a name that two tests each set for themselves binds neither to the other."""
    cells = [("answer", "def f(x): return x"), ("test", "helper = 1\nassert f(helper)"), taking]
    if taking[0] == "own":
        cells.append(("test", "assert f(2)"))
    assert ran(notebook(*cells), f"test-{len(cells) - 1}") == expected


def test_code_that_may_reach_any_name_makes_all_tests_run() -> None:
    """Also where one of them is asked for."""
    assert ran(notebook(("test", "n = 1"), ("own", "eval('n')"), ("test", "assert n")), "test-2") == [0, 1, 2]


SOURCES = sorted((ROOT / "source").rglob("*.ipynb"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_of_each_lesson_less_than_half_of_the_given_cells_run(path: Path) -> None:
    """Answers and tests need imports, tools and given modules; no figure and no training."""
    lesson = nbformat.reads(json.dumps(json.loads(path.read_text(encoding="utf-8"))), as_version=4)
    given = [
        index
        for index, cell in enumerate(lesson.cells)
        if cell.cell_type == "code" and not cell.metadata.get("nbgrader", {}).get("grade_id")
    ]
    needed = needed_cells(lesson, lesson)
    assert len(needed & set(given)) < len(given) / 2


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_lessons_exercises_can_be_judged_one_at_a_time(path: Path) -> None:
    """No test of a lesson makes more than one other run, and none runs a cell that the whole lesson does not."""
    lesson = nbformat.reads(json.dumps(json.loads(path.read_text(encoding="utf-8"))), as_version=4)
    tests = {index for index, cell in enumerate(lesson.cells) if is_test(cell)}
    whole = needed_cells(lesson, lesson)
    for index in tests:
        needed = needed_cells(lesson, lesson, [lesson.cells[index].metadata["nbgrader"]["grade_id"]])
        assert index in needed <= whole
        assert len(needed & tests) <= 2, lesson.cells[index]["id"]
