"""What was graded before: an append-only file, keyed by content, so that an unchanged submission is not run again.

The key covers everything that a result depends on: the submitted file, the student, the course's key, both notebooks of
the assignment, the grader's own code, torch's version, the device and the limits. Change any of them and it runs again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from dataclasses import asdict
from pathlib import Path

from autograder.grading.assignments import Assignment
from autograder.grading.one import Graded, Terms
from autograder.grading.submissions import Submission
from autograder.results import SubmissionResult

PASSING_FAULTS = frozenset({"examiner-died", "examiner-failed", "grader-failed"})
"""Mistake slugs that say something about this run, not about the submission: such results are not kept."""


class Journal:
    """The journal of one assignment, `journal/<assignment>.jsonl` in the course folder; one writer at a time."""

    def __init__(self, assignment: Assignment, terms: Terms) -> None:
        self._assignment = assignment
        self._path = assignment.root / "journal" / f"{assignment.name}.jsonl"
        self._common = hashlib.sha256()
        notebook = f"{assignment.name}/{assignment.name}.ipynb"
        for path in (assignment.root / "source" / notebook, assignment.root / "release" / notebook):
            self._common.update(hashlib.sha256(path.read_bytes()).digest())
        for path in sorted(Path(__file__).parents[1].rglob("*.py")):
            self._common.update(hashlib.sha256(path.read_bytes()).digest())
        torch_version = importlib.metadata.version("torch")
        self._common.update(repr((terms.course_key, asdict(terms), torch_version)).encode())
        self._known: dict[str, tuple[SubmissionResult, str | None]] = {}
        self._torn = False  # the last line has no end: a killed run left it so
        if self._path.exists():
            text = self._path.read_text(encoding="utf-8")
            self._torn = not text.endswith("\n")
            for line in text.splitlines():
                try:
                    entry = json.loads(line)
                    result = SubmissionResult.from_json(entry["result"])
                    self._known[entry["key"]] = (result, entry["notebook"])
                except (ValueError, KeyError, TypeError):
                    continue  # a line that a killed run left half written: that submission is graded again

    def key(self, submission: Submission) -> str:
        """The key of a submission's result."""
        digest = self._common.copy()
        digest.update(submission.student.encode("utf-8", "surrogatepass") + b"\0")
        if submission.notebook is not None:
            try:
                digest.update(hashlib.sha256(submission.notebook.read_bytes()).digest())
            except OSError as error:
                digest.update(str(error).encode())
        digest.update(repr(submission.problem).encode())
        return digest.hexdigest()

    def find(self, submission: Submission, autograded: Path) -> Graded | None:
        """The earlier result, if nothing it depends on has changed and the executed notebook still is what it was.

        Args:
            autograded: where the student's executed notebook lies.
        """
        found = self._known.get(self.key(submission))
        if found is None:
            return None
        result, fingerprint = found
        if fingerprint is None:
            return Graded(result, None)
        try:
            notebook = autograded.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        return Graded(result, notebook) if _fingerprint(notebook) == fingerprint else None

    def add(self, submission: Submission, graded: Graded) -> None:
        """Remember a result. One that only this run is to blame for is not kept."""
        verdicts = graded.result.exercises
        nothing_judged = graded.notebook is not None and not any(verdict.judged for verdict in verdicts)
        if nothing_judged or any(verdict.mistake in PASSING_FAULTS for verdict in verdicts):
            return
        self._path.parent.mkdir(exist_ok=True)
        entry = {
            "key": self.key(submission),
            "notebook": None if graded.notebook is None else _fingerprint(graded.notebook),
            "result": graded.result.to_json(),
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write("\n" * self._torn + json.dumps(entry) + "\n")
        self._torn = False


def _fingerprint(notebook: str) -> str:
    return hashlib.sha256(notebook.encode()).hexdigest()
