"""A class: every submission through an executor, one writer for gradebook, notebooks and feedback."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from autograder.errors import OrderMattersError
from autograder.grading.assignments import Assignment
from autograder.grading.one import Graded, Job, grade_submission, warm_up
from autograder.grading.reasons import without_verdict
from autograder.grading.submissions import Submission
from autograder.kernels.execution import Limits
from autograder.results import Language, Outcome, SubmissionResult, Text

KEY_FILE = ".course-key"
KEY_TIMEOUT_S = 2.0


def course_key(root: Path) -> bytes:
    """The secret from which each student's cases are drawn; made at first use and kept in the course folder."""
    path = root / KEY_FILE
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _written_key(path)
    with os.fdopen(descriptor, "wb") as file:
        key = secrets.token_bytes(32)
        file.write(key)
    return key


def _written_key(path: Path) -> bytes:
    """The key in the file, which another grader may have made a moment ago and is about to fill."""
    deadline = time.monotonic() + KEY_TIMEOUT_S
    while not (key := path.read_bytes()):
        if time.monotonic() > deadline:
            raise OrderMattersError(f"{path} is empty. Delete it: the next run makes a new key.")
        time.sleep(0.01)
    return key


@contextmanager
def local_workers(count: int, key: bytes, device: str) -> Iterator[Executor]:
    """Worker processes on this machine, each with an examiner of its own already starting."""
    context = get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context, initializer=warm_up, initargs=(key, device)) as executor:
        yield executor


def grade_class(
    assignment: Assignment,
    submissions: Sequence[Submission],
    *,
    executor: Executor,
    key: bytes,
    device: str,
    language: Language,
    limits: Limits,
    finished: Callable[[Submission, Graded], None],
) -> list[SubmissionResult]:
    """Grade every submission; `finished` is called in this process for each, in the order in which they end.

    Returns:
        The results, sorted by student.
    """
    futures: dict[Future[Graded], Submission] = {}
    for submission in submissions:
        job = Job(
            root=assignment.root,
            assignment=assignment.name,
            student=submission.student,
            notebook=submission.notebook,
            problem=submission.problem,
            course_key=key,
            device=device,
            language=language,
            limits=limits,
        )
        futures[executor.submit(grade_submission, job)] = submission
    results = []
    for future in as_completed(futures):
        submission = futures[future]
        try:
            graded = future.result()
        except BrokenProcessPool:
            raise
        except Exception as error:  # a fault of ours: shown as such, with the class going on
            logging.getLogger(__name__).exception("grading %s failed", submission.student)
            graded = _fault(assignment, submission, error)
        finished(submission, graded)
        results.append(graded.result)
    return sorted(results, key=lambda result: result.student)


def _fault(assignment: Assignment, submission: Submission, error: Exception) -> Graded:
    what = f"{type(error).__name__}: {error}"
    why = Text(
        en=f"The grader itself failed on this submission ({what}). Please report it; no points were given.",
        zh=f"评分程序处理此提交时出错（{what}）。请报告该问题；未给出分数。",
    )
    verdicts = tuple(
        without_verdict(exercise, points, "rejected", why, judged=False)
        for exercise, points in assignment.exercises.items()
    )
    return Graded(SubmissionResult(submission.student, Outcome.REJECTED, why, 0.0, verdicts), None)
