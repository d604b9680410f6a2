"""nbgrader's execution step in the sandbox, with the verdict outside: for plain `nbgrader autograde` and formgrader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Enum, Float

from autograder.grading.assignments import assignment_names, load_assignment
from autograder.grading.classroom import course_key
from autograder.grading.one import Terms, run_and_judge, run_without_judging, write_verdicts
from autograder.kernels.limits import Limits
from autograder.kernels.sandbox import require
from autograder.results import Language

Resources = dict[str, Any]


class ExecuteSafely(NbGraderPreprocessor):  # type: ignore[misc]
    """In place of nbgrader's Execute: same notebook in, same outputs out.

    A notebook of the course is judged as `autograder grade` judges it, and points and message are written into its test
    cells. The notebook of another assignment is only run, in the sandbox.
    """

    sandbox = Bool(True, help="Whether submissions run in the sandbox. Without it, nothing is graded.").tag(config=True)
    device = Enum(("auto", "cpu", "cuda"), "auto", help="Where GPU cases run.").tag(config=True)
    language: Any = Enum(("en", "zh"), "en", help="Language of the messages.").tag(config=True)
    timeout = Float(60.0, help="Seconds for one cell.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Run the notebook. nbgrader calls this in the course folder."""
        if self.sandbox:
            require()
        root = Path.cwd()
        language: Language = self.language
        limits = Limits(cell_timeout_s=self.timeout)
        terms = Terms(course_key(root), self.device, language, limits, sandbox=self.sandbox)
        name, student = resources["nbgrader"]["assignment"], resources["nbgrader"]["student"]
        if name in assignment_names(root) and any("autograder.examiner" in cell.source for cell in nb.cells):
            verdicts, _ = run_and_judge(terms, student, load_assignment(root, name), nb)
            write_verdicts(nb, verdicts, terms.language)
        else:
            run_without_judging(terms, nb)
        return nb, resources
