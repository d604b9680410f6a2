"""The exports as plug-ins of `nbgrader export`, one class a platform. For instance

    nbgrader export --exporter=autograder.plugins.exporters.CanvasExport --assignment "['02-sinusoidal-encoding']" \\
        --CanvasExport.into=canvas.csv --to scores.csv

or, in nbgrader_config.py, `c.ExportApp.plugin_class = "autograder.plugins.exporters.MoodleExport"`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from nbgrader.api import Gradebook
from nbgrader.plugins import ExportPlugin
from traitlets import Bool, Unicode

from autograder.errors import OrderMattersError
from autograder.grading.assignments import load_assignment
from autograder.grading.marks import final_scores
from autograder.report.exports import Export, export_scores, file_name
from autograder.report.stored import last_run, read_results
from autograder.results import SubmissionResult


class PlatformExport(ExportPlugin):  # type: ignore[misc]
    """What the platforms' plug-ins share: `--to` names the file, `--assignment` one assignment, `--student` some."""

    platform: ClassVar[str]

    into = Unicode("", help="the platform's own file, to be filled in (Canvas, Moodle)").tag(config=True)
    column = Unicode("", help="the assignment's name on the platform, if it is another one").tag(config=True)
    scale = Bool(False, help="convert points where the platform has another maximum").tag(config=True)

    def export(self, gradebook: Gradebook) -> None:
        """Write the scores; on an error say why and end with status 1, as nbgrader's commands do."""
        try:
            notes = self._write(gradebook)
        except OrderMattersError as error:
            self.log.error("%s", error)
            sys.exit(1)
        for note in notes:
            self.log.info("%s", note)

    def _write(self, gradebook: Gradebook) -> list[str]:
        names = [str(name) for name in self.assignment] or [item.name for item in gradebook.assignments]
        if len(names) != 1:
            raise OrderMattersError(
                f"name one assignment with --assignment; the gradebook has {', '.join(sorted(names)) or 'none'}"
            )
        scores = final_scores(gradebook, names[0])
        if self.student:
            chosen = {str(student) for student in self.student}
            scores = replace(scores, students=tuple(one for one in scores.students if one.student in chosen))
        root = Path(self.parent.coursedir.root).resolve()
        wanted = Export(
            scores=scores,
            title=_title(root, names[0]),
            results=_results(root, names[0]),
            into=Path(self.into) if self.into else None,
            column=self.column or None,
            scale=self.scale,
        )
        place = Path(self.to or file_name(names[0], self.platform))
        notes = export_scores(self.platform, wanted, place)
        return [*notes, f"scores: {place}"]


def _title(root: Path, assignment: str) -> str:
    try:
        return str(load_assignment(root, assignment).release.metadata.get("title", assignment))
    except OrderMattersError:  # an assignment that is none of this course's
        return assignment


def _results(root: Path, assignment: str) -> dict[str, SubmissionResult]:
    try:
        return {result.student: result for result in read_results([last_run(root, assignment)], assignment)}
    except OrderMattersError:  # graded by `nbgrader autograde`: there are scores and no messages
        return {}


class CanvasExport(PlatformExport):
    """Scores into Canvas's exported gradebook (`CanvasExport.into`)."""

    platform = "canvas"


class MoodleExport(PlatformExport):
    """Scores for Moodle's grade import, or into its grading worksheet (`MoodleExport.into`)."""

    platform = "moodle"


class GradescopeExport(PlatformExport):
    """A `results.json` for each student, as Gradescope's autograder takes it."""

    platform = "gradescope"


class CsvExport(PlatformExport):
    """nbgrader's columns, and the points of every exercise."""

    platform = "csv"


class JsonExport(PlatformExport):
    """Everything that the gradebook says about an assignment's scores."""

    platform = "json"
