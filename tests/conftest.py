"""A tiny course of one lesson, for tests of the build and of grading; the real lessons are tested elsewhere."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode

os.environ.setdefault("OMP_NUM_THREADS", "1")  # pytest's workers share the cores; torch's own threads halve the speed

ROOT = Path(__file__).resolve().parent.parent
TINY = "01-tiny"

BY_HAND = {
    "grade": True,
    "grade_id": "reflection",
    "locked": False,
    "points": 3,
    "schema_version": 3,
    "solution": True,
    "task": False,
}
LESSON = """\
---
kernelspec: {name: python3, display_name: Python 3, language: python}
title: "Tiny: two exercises"
---

+++ {"name": "title"}

# 01 · Tiny

Two exercises and a question.

+++ {"name": "badges"}

(filled in by the build)

```{code-cell} ipython3
:name: tools

# filled in by the build
```

```{code-cell} ipython3
:name: imports

import torch
```

+++ {"name": "exercise-pair-frequencies"}

## Exercise 1

Write `pair_frequencies`.

```{code-cell} ipython3
---
name: pair-frequencies
nbgrader: {grade: false, grade_id: pair-frequencies, locked: false, schema_version: 3, solution: true, task: false}
---
def pair_frequencies(d_model: int, base: float = 10000.0) -> torch.Tensor:
    \"\"\"Radians per position of each pair: float64 (d_model // 2,).\"\"\"
    ### BEGIN SOLUTION
    if d_model < 2 or d_model % 2:
        raise ValueError(f"d_model must be even and at least 2, got d_model = {d_model}")
    return base ** (-2 * torch.arange(d_model // 2, dtype=torch.float64) / d_model)
    ### END SOLUTION
```

```{code-cell} ipython3
---
name: test-pair-frequencies
nbgrader:
  {grade: true, grade_id: test-pair-frequencies, locked: true, points: 2, schema_version: 3,
   solution: false, task: false}
---
with check("pair-frequencies"):
    expect_tensor(pair_frequencies(6), (3,), "Two columns share one frequency.")
### BEGIN HIDDEN TESTS
from autograder.examiner import grade
grade("pair-frequencies", pair_frequencies)
### END HIDDEN TESTS
```

```{code-cell} ipython3
:name: draw-dots

draw_dots(pair_frequencies(6).tolist())
```

+++ {"name": "exercise-causal-mask"}

## Exercise 2

Write `causal_mask`.

```{code-cell} ipython3
---
name: causal-mask
nbgrader: {grade: false, grade_id: causal-mask, locked: false, schema_version: 3, solution: true, task: false}
---
def causal_mask(length: int, device: str | None = None) -> torch.Tensor:
    \"\"\"Who may look at whom: bool (length, length).\"\"\"
    ### BEGIN SOLUTION
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
    ### END SOLUTION
```

```{code-cell} ipython3
---
name: test-causal-mask
nbgrader:
  {grade: true, grade_id: test-causal-mask, locked: true, points: 1, schema_version: 3,
   solution: false, task: false}
---
with check("causal-mask"):
    expect_tensor(causal_mask(4), (4, 4), "One row for each query.")
### BEGIN HIDDEN TESTS
from autograder.examiner import grade
grade("causal-mask", causal_mask)
### END HIDDEN TESTS
```

+++ REFLECTION

What did you see?
""".replace("REFLECTION", json.dumps({"name": "reflection", "nbgrader": BY_HAND}))

CHINESE_TEXTS = {
    "title": "# 01 · 小课\n\n两道练习和一个问题。",
    "exercise-pair-frequencies": "## 练习 1\n\n编写 `pair_frequencies`。",
    "exercise-causal-mask": "## 练习 2\n\n编写 `causal_mask`。",
    "reflection": "你看到了什么？",
}

DOTS = '''\
"""The figure of the tiny lesson."""

import math

import matplotlib.pyplot as plt

from course.figures.style import BLUE, show

# Dots are this large.
DOT_SIZE = 4.0
UNUSED_SIZE = 5.0


def _heights(values: list[float]) -> list[float]:
    """The values on a logarithmic scale."""
    return [math.log10(value) for value in values]


def draw_dots(values: list[float]) -> None:
    """One dot a value."""
    figure, axes = plt.subplots()
    axes.plot(_heights(values), "o", color=BLUE, markersize=DOT_SIZE)
    axes.set(title="dots", xlabel="pair", ylabel="log10 of the frequency")
    show(figure, f"{len(values)} dots, each lower than the one before.")


def draw_nothing() -> None:
    """Not used by the lesson."""
    plt.close(UNUSED_SIZE)
'''


def translation_of(lesson: Path) -> str:
    """The Chinese edition of the tiny lesson as it stands now: every prose cell, bound to its English text."""
    import jupytext

    from course.build import english_hash

    parts = ['---\ntitle: "小课：两道练习"\n---\n']
    for cell in jupytext.read(lesson).cells:
        name = cell.metadata["name"]
        if cell.cell_type == "markdown" and name != "badges":
            marks = json.dumps({"name": name, "english": english_hash(cell.source)})
            parts.append(f"+++ {marks}\n\n{CHINESE_TEXTS[name]}\n")
    return "\n".join(parts)


def write_course(root: Path) -> Path:
    """The tiny course as it is written by hand: settings, tools, one lesson and its translation."""
    lessons = root / "course" / "lessons"
    figures = root / "course" / "figures"
    (lessons / "zh").mkdir(parents=True)
    figures.mkdir()
    shutil.copy(ROOT / "nbgrader_config.py", root)
    shutil.copy(ROOT / "course" / "checks.py", root / "course")
    shutil.copy(ROOT / "course" / "figures" / "style.py", figures)
    (figures / "dots.py").write_text(DOTS, encoding="utf-8")
    (root / "pyproject.toml").write_text(
        '[tool.order-matters]\nrepository = "https://github.com/someone/tiny"\n', encoding="utf-8"
    )
    lesson = lessons / f"{TINY}.md"
    lesson.write_text(LESSON, encoding="utf-8")
    (lessons / "zh" / f"{TINY}.md").write_text(translation_of(lesson), encoding="utf-8")
    return root


@pytest.fixture(scope="session", autouse=True)
def _no_warm_process_is_left() -> Iterator[None]:
    """Stops the processes that kernels are forked from, if a test has started some."""
    yield
    warm = sys.modules.get("autograder.kernels.warm")
    if warm:
        warm.stop_all()


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from course.build import Course, build

    root = write_course(tmp_path_factory.mktemp("tiny") / "course")
    build(Course(root), root)
    return root


@pytest.fixture
def tiny_course(built_once: Path, tmp_path: Path) -> Path:
    """A built copy of the tiny course that the test may change."""
    root = tmp_path / "tiny-course"
    shutil.copytree(built_once, root)
    return root


@pytest.fixture(scope="session")
def tiny_source(built_once: Path) -> NotebookNode:
    """The instructor's notebook of the tiny course; not to be changed."""
    return nbformat.read(built_once / "source" / TINY / f"{TINY}.ipynb", as_version=4)


@pytest.fixture(scope="session")
def tiny_release(built_once: Path) -> NotebookNode:
    """The student's notebook of the tiny course; not to be changed."""
    return nbformat.read(built_once / "release" / TINY / f"{TINY}.ipynb", as_version=4)


Answer = Callable[..., NotebookNode]


@pytest.fixture
def answered(tiny_source: NotebookNode, tiny_release: NotebookNode) -> Answer:
    """Makes a submission: the released notebook with the solutions, or with the code given for a cell.

    `answered(pair_frequencies="x = 1")` replaces that cell; None leaves the stub.
    """

    def make(**code: str | None) -> NotebookNode:
        notebook = copy.deepcopy(tiny_release)
        solutions = {cell["id"]: cell.source for cell in tiny_source.cells}
        for cell in notebook.cells:
            name = cell["id"]
            if not cell.metadata.get("nbgrader", {}).get("solution"):
                continue
            wanted = code.get(name.replace("-", "_"), solutions[name])
            cell.source = cell.source if wanted is None else wanted
        return notebook

    return make


@pytest.fixture
def submit(tmp_path: Path) -> Callable[[NotebookNode, str], Path]:
    """Writes a notebook where `find_submissions` looks: `<student>/01-tiny/01-tiny.ipynb`; returns its path."""

    def write(notebook: NotebookNode, student: str) -> Path:
        path = tmp_path / "submitted" / student / TINY / f"{TINY}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(nbformat.writes(notebook), encoding="utf-8")
        return path

    return write


NOT_THOROUGH = pytest.mark.skip(reason="takes minutes and repeats another check; `make test THOROUGH=1` runs it")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole classes first, then what starts processes: no worker is left with minutes of work at the end."""
    if not os.environ.get("CI") and not os.environ.get("THOROUGH"):
        for item in items:
            if item.get_closest_marker("thorough"):
                item.add_marker(NOT_THOROUGH)
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, "e2e" not in item.path.parts))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadgroup`: the tests of one file and one lesson share a worker, hence a fixture graded once.

    So do the tests of one exercise's declaration. (pytest-xdist 3.8 marks groups in the test's id, which pytest 9.2 no
    longer lets it change: `xdist_group` is silently without effect there.)
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByFileAndLesson(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            lesson = re.search(r"[\[-](\d\d)-", test) or re.search(r"\[([a-z-]+):", test)
            return f"{file}@{lesson.group(1)}" if lesson else file

    config.option.loadscopereorder = False  # in the order of the collection, not by the number of tests
    return ByFileAndLesson(config, log)
