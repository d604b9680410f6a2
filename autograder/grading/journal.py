"""What was graded before: an append-only file, keyed by content, so that an unchanged submission is not run again.

The key covers everything that a result depends on: the submitted file, the student, the course's key, both notebooks of
the assignment, the grader's own code, torch's version, the device and the limits. Change any of them and it runs again.
Beside it stands a key of the submission alone: what was found about the same file under other terms can be built on.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from dataclasses import asdict, replace
from pathlib import Path

from autograder.grading.assignments import Assignment
from autograder.grading.keeping import Kept
from autograder.grading.one import Graded, Terms
from autograder.grading.submissions import Submission
from autograder.results import Outcome, SubmissionResult

PASSING_FAULTS = frozenset({"examiner-died", "examiner-failed", "grader-failed"})
"""Mistake slugs that say something about this run, not about the submission: such results are not kept."""


class Journal:
    """The journal of one assignment, `journal/<assignment>.jsonl` in the course folder; one writer at a time.

    What it holds in memory is where each result begins in the file, not the result.
    """

    def __init__(self, assignment: Assignment, terms: Terms) -> None:
        self._assignment = assignment
        self._terms = terms
        self._path = assignment.root / "journal" / f"{assignment.name}.jsonl"
        self._grader = hashlib.sha256()
        notebook = f"{assignment.name}/{assignment.name}.ipynb"
        for path in (assignment.root / "source" / notebook, assignment.root / "release" / notebook):
            self._grader.update(hashlib.sha256(path.read_bytes()).digest())
        for path in sorted(Path(__file__).parents[1].rglob("*.py")):
            self._grader.update(hashlib.sha256(path.read_bytes()).digest())
        self._grader.update(importlib.metadata.version("torch").encode())
        self._places: dict[str, int] = {}  # by key: the byte at which the newest entry begins
        self._newest: dict[str, int] = {}  # the same by the key of the submission alone
        self._torn = False  # the last line has no end: a killed run left it so
        if self._path.exists():
            self._read()

    def _read(self) -> None:
        with self._path.open("rb") as file:
            place, line = 0, b"\n"
            for line in file:
                try:
                    entry = json.loads(line)
                    if entry["key"] is not None:
                        self._places[entry["key"]] = place
                    if "submission" in entry:  # older journals do not have it
                        self._newest[entry["submission"]] = place
                except (ValueError, KeyError, TypeError):
                    pass  # a line that a killed run left half written: that submission is graded again
                place += len(line)
            self._torn = not line.endswith(b"\n")

    def _key(self, of_submission: str, *, whole: bool) -> str:
        """The key of a submission's result.

        Args:
            whole: whether every exercise is judged in one run, also where the terms name some of them.
        """
        digest = self._grader.copy()
        terms = replace(self._terms, only=()) if whole else self._terms
        digest.update(repr((terms.course_key, asdict(terms), of_submission)).encode())
        return digest.hexdigest()

    def find(self, submission: Submission, autograded: Path) -> Kept | None:
        """The earlier result, if nothing it depends on has changed and the executed notebook still is what it was.

        Where the terms name some exercises, a result of all under otherwise the same terms is as good. One of these
        alone has kept verdicts of still earlier results: it must be the newest.

        Args:
            autograded: where the student's executed notebook lies.
        """
        same = _of_submission(submission)
        found = self._result(self._places.get(self._key(same, whole=True)), autograded)
        if found is None and self._terms.only:
            place = self._places.get(self._key(same, whole=False))
            found = self._result(place, autograded) if place == self._newest.get(same) else None
        return found

    def earlier(self, submission: Submission, autograded: Path) -> Kept | None:
        """The newest result of the same file, whatever the terms and the grader, to keep verdicts from.

        There is none if it was rejected, if its executed notebook is no longer what it was, or if one of the exercises
        that the terms do not name is new or has other points now.

        Args:
            autograded: where the student's executed notebook lies.
        """
        found = self._result(self._newest.get(_of_submission(submission)), autograded)
        if found is None or found.result.outcome is Outcome.REJECTED:
            return None
        points = {verdict.exercise: verdict.max_score for verdict in found.result.exercises}
        others = {name: most for name, most in self._assignment.exercises.items() if name not in self._terms.only}
        return found if others.items() <= points.items() else None

    def _result(self, place: int | None, autograded: Path) -> Kept | None:
        """The result that begins there, if the executed notebook still is what it was."""
        if place is None:
            return None
        with self._path.open("rb") as file:
            file.seek(place)
            entry = json.loads(file.readline())
        try:
            result, fingerprint = SubmissionResult.from_json(entry["result"]), entry["notebook"]
        except (ValueError, KeyError, TypeError):
            return None  # of another version of the grader
        if fingerprint is None:
            return Kept(result, None)
        try:
            notebook = autograded.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        return Kept(result, autograded) if _fingerprint(notebook) == fingerprint else None

    def add(self, submission: Submission, graded: Graded) -> None:
        """Remember a result. One that only this run is to blame for is found by `earlier` alone, if at all."""
        verdicts = graded.result.exercises
        passing = any(verdict.mistake in PASSING_FAULTS for verdict in verdicts)
        nothing_judged = not any(verdict.judged for verdict in verdicts)
        if nothing_judged and (passing or graded.notebook is not None):
            return
        self._path.parent.mkdir(exist_ok=True)
        same = _of_submission(submission)
        entry = {
            "key": None if passing else self._key(same, whole=graded.whole),
            "submission": same,
            "notebook": None if graded.notebook is None else _fingerprint(graded.notebook),
            "result": graded.result.to_json(),
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write("\n" * self._torn + json.dumps(entry) + "\n")
        self._torn = False


def _of_submission(submission: Submission) -> str:
    """The key of what was handed in: the student, the bytes of the file, the problem if there is one."""
    digest = hashlib.sha256(submission.student.encode("utf-8", "surrogatepass") + b"\0")
    if submission.notebook is not None:
        try:
            digest.update(hashlib.sha256(submission.notebook.read_bytes()).digest())
        except OSError as error:
            digest.update(str(error).encode())
    digest.update(repr(submission.problem).encode())
    return digest.hexdigest()


def _fingerprint(notebook: str) -> str:
    return hashlib.sha256(notebook.encode()).hexdigest()
