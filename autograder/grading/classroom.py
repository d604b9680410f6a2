"""A class: every submission through an executor, one writer for gradebook, notebooks and feedback."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from autograder.errors import OrderMattersError
from autograder.examiner.process import ExaminerHost
from autograder.grading.assignments import Assignment
from autograder.grading.keeping import Kept, executed_before, with_kept
from autograder.grading.one import Graded, Job, Terms, grade_submission, warm_up, write_verdicts
from autograder.grading.reasons import without_verdict
from autograder.grading.submissions import Submission
from autograder.notebooks.executed import text_of
from autograder.results import Outcome, SubmissionResult, Text, Verdict, sharing

log = logging.getLogger(__name__)

KEY_FILE = ".course-key"
KEY_TIMEOUT_S = 2.0
IN_FLIGHT = 4
"""Submissions handed out at a time, for each worker: none waits, and memory does not grow with the class."""


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
def local_workers(count: int, terms: Terms) -> Iterator[Executor]:
    """Worker processes on this machine, each with its warm process starting, beside one process of examiners."""
    host = ExaminerHost(terms.course_key, terms.device)
    context = get_context("forkserver")
    context.set_forkserver_preload(["autograder.grading.one"])
    arguments = (terms, host.address)
    try:
        with cancelling(
            ProcessPoolExecutor(count, mp_context=context, initializer=warm_up, initargs=arguments)
        ) as executor:
            for _ in range(count):  # a worker starts with the first thing it has to do; there may be something before
                executor.submit(os.getpid)
            yield executor
    finally:
        host.stop()


@contextmanager
def cancelling(executor: Executor) -> Iterator[Executor]:
    """As `with executor`; after an error or Ctrl-C, what has not begun is cancelled: nobody would keep the result."""
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        raise
    executor.shutdown()


Workers = Callable[[int], AbstractContextManager[Executor]]
"""Makes an executor with this many workers, for a `with` block."""


def grade_class(
    assignment: Assignment,
    submissions: Sequence[Submission],
    *,
    workers: Workers,
    count: int,
    terms: Terms,
    finished: Callable[[Submission, Graded], None],
    earlier: Callable[[Submission], Kept | None] = lambda submission: None,
    in_flight: int | None = None,
) -> list[SubmissionResult]:
    """Grade every submission with `count` workers; `finished` is called in this process for each as it ends.

    When a worker process is killed (by the system, for want of memory), every submission still waiting is graded after
    all, one at a time, so that only one that kills its worker again goes without.

    Args:
        earlier: looked up for a submission as it is handed out, where the terms name only some exercises.
        in_flight: how many submissions are handed out at a time; four for each worker by default.

    Returns:
        The results, sorted by student.
    """
    results: list[SubmissionResult] = []
    verdicts: dict[Verdict, Verdict] = {}

    def take(submission: Submission, graded: Graded) -> None:
        finished(submission, graded)
        results.append(sharing(graded.result, verdicts))

    def job(submission: Submission) -> Job:
        return Job(
            root=assignment.root,
            assignment=assignment.name,
            student=submission.student,
            notebook=submission.notebook,
            problem=submission.problem,
            terms=terms,
            earlier=earlier(submission),
        )

    def run(batch: Sequence[Submission], with_count: int) -> list[Submission]:
        """Grade the batch; returns those that a dying worker took along."""
        lost = []
        futures: dict[Future[Graded], Submission] = {}

        def settle() -> None:
            """Take what has ended, at least one."""
            ended = wait(futures, return_when=FIRST_COMPLETED).done
            while ended:
                future = ended.pop()
                submission = futures.pop(future)
                try:
                    graded = future.result()
                except BrokenProcessPool:
                    lost.append(submission)
                    continue
                except Exception as error:  # a fault of ours: shown as such, with the class going on
                    log.exception("grading %s failed", submission.student)
                    graded = _fault(assignment, submission, error, terms, earlier(submission))
                take(submission, graded)

        with workers(with_count) as executor:
            for submission in batch:
                try:
                    futures[executor.submit(grade_submission, job(submission))] = submission
                except BrokenProcessPool:
                    lost.append(submission)
                if len(futures) >= (in_flight or IN_FLIGHT * with_count):
                    settle()
            while futures:
                settle()
        return [submission for submission in batch if submission in lost]

    lost = run(submissions, count) if submissions else []
    if lost:
        log.warning("a worker process was killed; grading %d submissions one at a time", len(lost))
    for submission in lost:
        if run([submission], 1):
            killed = RuntimeError("the worker process was killed, twice; is there enough memory?")
            take(submission, _fault(assignment, submission, killed, terms, earlier(submission)))
    return sorted(results, key=lambda result: result.student)


def _fault(assignment: Assignment, submission: Submission, error: Exception, terms: Terms, kept: Kept | None) -> Graded:
    what = f"{type(error).__name__}: {error}"
    why = Text(
        en=f"The grader itself failed on this submission ({what}). Please report it; no points were given.",
        zh=f"评分程序处理此提交时出错（{what}）。请报告该问题；未给出分数。",
    )
    verdicts = {
        exercise: without_verdict(exercise, points, "grader-failed", why, judged=False)
        for exercise, points in assignment.exercises.items()
    }
    before = executed_before(kept)
    if kept is None or before is None:
        return Graded(SubmissionResult(submission.student, Outcome.REJECTED, why, 0.0, tuple(verdicts.values())), None)
    write_verdicts(before, {exercise: verdicts[exercise] for exercise in terms.only}, terms.language)
    exercises = tuple(with_kept(verdicts, kept.result, terms.only).values())
    result = replace(kept.result, outcome=Outcome.PARTLY_GRADED, reason=why, seconds=0.0, exercises=exercises)
    return Graded(result, text_of(before), whole=False)
