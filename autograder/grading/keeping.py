"""Judging some exercises of a submission anew: what an earlier run found about the others is kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import reads

from autograder.grading import reasons
from autograder.notebooks.cells import grade_id, is_test
from autograder.results import SubmissionResult, Text, Verdict


@dataclass(frozen=True)
class Kept:
    """A result of an earlier run; plain data, so that it can travel.

    Attributes:
        notebook: where the executed notebook lies; None when nothing was run.
    """

    result: SubmissionResult
    notebook: Path | None

    def executed(self) -> str | None:
        """The executed notebook as JSON text. Raises OSError when it is gone."""
        return None if self.notebook is None else self.notebook.read_text(encoding="utf-8")


def executed_before(kept: Kept | None) -> NotebookNode | None:
    """The notebook that the earlier run executed; None when there is none here to build on."""
    try:
        text = kept.executed() if kept else None
    except OSError:
        return None
    return None if text is None else reads(text)


def with_kept(
    verdicts: Mapping[str, Verdict], kept: SubmissionResult | None, anew: Collection[str]
) -> dict[str, Verdict]:
    """The verdicts of all exercises, with the earlier ones for those that were not judged anew."""
    earlier = {verdict.exercise: verdict for verdict in kept.exercises} if kept else {}
    return {name: verdict if name in anew else earlier[name] for name, verdict in verdicts.items()}


def take_over(notebook: NotebookNode, before: NotebookNode, anew: Collection[str]) -> None:
    """Show cells that did not run, and tests that were not judged anew, as the earlier run left them.

    Args:
        notebook: just executed; a cell that did not run has no execution count.
        before: the notebook that the earlier run executed, of the same submission.
        anew: grade ids of the test cells that were judged anew.
    """
    cells = {cell["id"]: cell for cell in before.cells if cell.cell_type == "code"}
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if is_test(cell) and grade_id(cell) not in anew:
            # Points and message are in its outputs: it keeps them whatever has become of its text.
            cell.outputs, cell.execution_count = cells[cell["id"]].outputs, cells[cell["id"]].execution_count
            continue
        was = cells.get(cell["id"])
        if was is None or was.source != cell.source:
            continue
        if cell.execution_count is None and not is_test(cell):
            cell.outputs = was.outputs
        cell.execution_count = was.execution_count or cell.execution_count
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = cell.execution_count


def reason_of(
    stopped: Text | None, verdicts: Sequence[Verdict], kept: SubmissionResult | None, anew: Collection[str]
) -> Text | None:
    """Why a submission is graded in part only; None when it is graded in full.

    Args:
        stopped: why this run ended early, if it did.
        verdicts: of all exercises.
        kept: the earlier result that some of the verdicts come from, if they do.
        anew: the exercises that were judged in this run.
    """
    unjudged = [verdict for verdict in verdicts if not verdict.judged]
    if stopped is not None or not unjudged:
        return stopped
    earlier = kept is not None and not any(verdict.exercise in anew for verdict in unjudged)
    if kept is not None and earlier and any(verdict.mistake == reasons.NOT_REACHED for verdict in unjudged):
        return kept.reason  # why the earlier run stopped
    return reasons.not_judged(unjudged)
