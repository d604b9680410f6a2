"""nbgrader's own steps with ours between them: no tag skips a test, and only the points that `grade` returned count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader.utils import determine_grade
from traitlets.config.loader import PyFileConfigLoader

from autograder.plugins.preprocessors import ClearAnswers, DropTags, OnlyPointsCount

ROOT = Path(__file__).resolve().parent.parent.parent


def marks(name: str, **changes: object) -> dict[str, object]:
    plain = {"grade": False, "solution": False, "locked": False, "schema_version": 3, "task": False}
    return {"nbgrader": {**plain, "grade_id": name, **changes}}


def graded_cell(outputs: list[NotebookNode]) -> NotebookNode:
    """A test cell of 2 points that was executed."""
    return new_code_cell("grade(…)", metadata=marks("test-x", grade=True, locked=True, points=2.0), outputs=outputs)


def value(text: object) -> NotebookNode:
    return new_output("execute_result", data={"text/plain": text}, execution_count=1)


def stream(text: str, name: str = "stdout") -> NotebookNode:
    return new_output("stream", name=name, text=text)


ERROR = new_output("error", ename="NameError", evalue="x", traceback=[])


def graded(cell: NotebookNode) -> float:
    """The points that nbgrader gives after our step."""
    after, _ = OnlyPointsCount().preprocess_cell(cell, {}, 0)
    points, maximum = determine_grade(after)
    assert maximum == 2.0
    return float(points)


CASES: dict[str, tuple[list[NotebookNode], float]] = {
    "the points": ([value("1.5")], 1.5),
    "full marks": ([value("2.0")], 2.0),
    "none": ([value("0.0")], 0.0),
    "points after prints": ([stream("2 / 2  All right.\n"), value("2.0")], 2.0),
    "a warning on stderr": ([stream("UserWarning\n", "stderr"), value("2.0")], 2.0),
    "no output": ([], 0.0),
    "only a print": ([stream("2.0\n")], 0.0),
    "a text": ([value("'full marks'")], 0.0),
    "None": ([value("None")], 0.0),
    "True": ([value("True")], 0.0),
    "a negative number": ([value("-1")], 0.0),
    "a number above the maximum": ([value("3")], 0.0),
    "not a number": ([value("nan")], 0.0),
    "infinity": ([value("inf")], 0.0),
    "two values": ([value("2.0"), value("2.0")], 0.0),
    "a value without text": ([new_output("execute_result", data={"image/png": "x"}, execution_count=1)], 0.0),
    "a value that is a list": ([value(["2", ".0"])], 0.0),
    "displayed, not returned": ([new_output("display_data", data={"text/plain": "2.0"})], 0.0),
    "an error": ([ERROR], 0.0),
    "an error after the points": ([value("2.0"), ERROR], 0.0),
}


@pytest.mark.parametrize(("outputs", "points"), CASES.values(), ids=CASES)
def test_only_a_number_in_range_earns_points(outputs: list[NotebookNode], points: float) -> None:
    """nbgrader itself would give full marks for silence, text and negative numbers, and stop above the maximum."""
    assert graded(graded_cell(outputs)) == points


def test_a_test_without_result_says_so() -> None:
    """The student sees why there are no points."""
    after, _ = OnlyPointsCount().preprocess_cell(graded_cell([]), {}, 0)
    assert any("No points" in output.get("text", "") for output in after.outputs)


MANUAL = marks("y", grade=True, solution=True, points=3)


@pytest.mark.parametrize(
    "cell",
    [
        new_code_cell("x", outputs=[stream("x", "stderr")]),
        new_code_cell("x", metadata=MANUAL, outputs=[stream("x", "stderr")]),
        new_markdown_cell("x", metadata=MANUAL),
    ],
    ids=["plain", "code graded by hand", "text graded by hand"],
)
def test_other_cells_are_left_alone(cell: NotebookNode) -> None:
    """Only automatic tests are touched."""
    before = nbformat.from_dict(cell)
    after, _ = OnlyPointsCount().preprocess_cell(cell, {}, 0)
    assert after == before


def test_tags_are_dropped() -> None:
    """skip-execution would earn full marks; the rest of the metadata stays."""
    cell = new_code_cell("x", metadata={"tags": ["skip-execution"], "name": "x"})
    after, _ = DropTags().preprocess_cell(cell, {}, 0)
    assert after.metadata == {"name": "x"}


@pytest.fixture
def config() -> Any:
    return PyFileConfigLoader("nbgrader_config.py", path=str(ROOT)).load_config()


def names(steps: Any) -> list[str]:
    return [step.__name__ for step in steps]


def test_nbgraders_own_steps_stay_in_their_order(config: Any) -> None:
    """Ours stand between them: tags go first; points are checked after execution and before they are saved."""
    from nbgrader.converters import Autograde, GenerateAssignment

    sanitize = names(config.Autograde.sanitize_preprocessors)
    assert sanitize == ["DropTags", *names(Autograde.sanitize_preprocessors.default())]
    steps = names(config.Autograde.autograde_preprocessors)
    own = names(Autograde.autograde_preprocessors.default())
    assert [step for step in steps if step != "OnlyPointsCount"] == ["ExecuteSafely", *own[1:]]
    assert own[0] == "Execute"
    assert steps.index("ExecuteSafely") < steps.index("OnlyPointsCount") < steps.index("SaveAutoGrades")
    released = names(config.GenerateAssignment.preprocessors)
    theirs = names(GenerateAssignment.preprocessors.default())
    assert [step.replace("ClearAnswers", "ClearSolutions") for step in released] == [*theirs, "Unpair"]


SOLUTION = "### BEGIN SOLUTION\nq1 = 'a'\n### END SOLUTION"


@pytest.mark.parametrize(("name", "raises"), [("quiz-order", False), ("causal-mask", True)])
def test_a_quiz_gets_no_stub_that_raises(config: Any, name: str, raises: bool) -> None:
    """Its answers stand there already as question marks; another exercise explains that it has no answer yet."""
    cell = new_code_cell(f'q1 = "?"\n{SOLUTION}', metadata=marks(name, solution=True))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel})
    released, _ = ClearAnswers(config=config).preprocess(notebook, {"language": "python"})
    source = released.cells[0].source
    assert source.startswith('q1 = "?"\n# ')
    assert ("raise NotImplementedError" in source) is raises
    assert "q1 = 'a'" not in source
