"""Preprocessors for plain nbgrader commands; `nbgrader_config.py` puts them in place.

Releasing: a quiz needs no stub that raises, and a student's notebook no pair. Autograding: no submitted tag skips a
test, and no output is no points.
"""

from __future__ import annotations

import math
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import ClearSolutions, NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution

Resources = dict[str, Any]


class ClearAnswers(ClearSolutions):  # type: ignore[misc]
    """nbgrader's ClearSolutions, with a gentler stub for quizzes: `q1 = "?"` stands there already and runs."""

    quiz_stub = "# YOUR ANSWERS: put a letter in place of each question mark above."

    def preprocess_cell(
        self, cell: NotebookNode, resources: Resources, cell_index: int
    ) -> tuple[NotebookNode, Resources]:
        stub: dict[str, str] = self.code_stub  # type: ignore[has-type]
        if cell.metadata.get("nbgrader", {}).get("grade_id", "").startswith("quiz-"):
            self.code_stub = {**stub, "python": self.quiz_stub}
        try:
            result: tuple[NotebookNode, Resources] = super().preprocess_cell(cell, resources, cell_index)
        finally:
            self.code_stub = stub
        return result


class Unpair(NbGraderPreprocessor):  # type: ignore[misc]
    """Takes Jupytext's pairing out of a student's notebook.

    It names the lesson's text, which students do not have: JupyterLab with Jupytext would refuse to open the notebook.
    """

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        nb.metadata.pop("jupytext", None)
        return nb, resources


class DropTags(NbGraderPreprocessor):  # type: ignore[misc]
    """Removes cell tags before execution: a submitted `skip-execution` would earn a test cell full marks."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: Resources, cell_index: int
    ) -> tuple[NotebookNode, Resources]:
        cell.metadata.pop("tags", None)
        return cell, resources


class OnlyPointsCount(NbGraderPreprocessor):  # type: ignore[misc]
    """Leaves a test cell's points to the value that `grade` returned.

    nbgrader would give 0 for a line on stderr (a warning), full marks for no output, a text or a negative number, and
    would stop at a number above the maximum. Here stderr becomes ordinary output, and anything but one number between 0
    and the maximum earns nothing. Runs after Execute, before SaveAutoGrades.
    """

    def preprocess_cell(
        self, cell: NotebookNode, resources: Resources, cell_index: int
    ) -> tuple[NotebookNode, Resources]:
        if cell.cell_type != "code" or not is_grade(cell) or is_solution(cell):
            return cell, resources
        for output in cell.outputs:
            if output.output_type == "stream":
                output.name = "stdout"
        if any(output.output_type == "error" for output in cell.outputs):
            # nbgrader reads the first of both; a number that the answer displayed before it failed earns nothing.
            cell.outputs = [output for output in cell.outputs if output.output_type != "execute_result"]
            return cell, resources
        results = [output for output in cell.outputs if output.output_type == "execute_result"]
        if len(results) != 1 or not _is_points(results[0], float(cell.metadata["nbgrader"]["points"])):
            cell.outputs = [output for output in cell.outputs if output.output_type != "execute_result"]
            cell.outputs.append(new_output("stream", name="stdout", text="No points: the test gave no result.\n"))
            cell.outputs.append(new_output("execute_result", data={"text/plain": "0.0"}, execution_count=1))
        return cell, resources


def _is_points(result: NotebookNode, maximum: float) -> bool:
    try:
        points = float(result.get("data", {}).get("text/plain", ""))
    except (TypeError, ValueError):
        return False
    return math.isfinite(points) and 0.0 <= points <= maximum
