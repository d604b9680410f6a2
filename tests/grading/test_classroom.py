"""A class: one fault does not stop the others, one writer sees every result, and the course key is made once."""

from __future__ import annotations

import copy
import gc
import logging
import os
import stat
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode
from nbgrader.utils import determine_grade

from autograder.errors import OrderMattersError
from autograder.grading import classroom
from autograder.grading.assignments import Assignment, load_assignment
from autograder.grading.classroom import KEY_FILE, course_key, grade_class
from autograder.grading.keeping import Kept
from autograder.grading.one import Graded, Job, Terms, write_verdicts
from autograder.grading.submissions import Submission
from autograder.kernels.limits import Limits
from autograder.results import Outcome, SubmissionResult, Text, Verdict
from tests.conftest import TINY


@pytest.fixture
def assignment(tiny_course: Path) -> Assignment:
    return load_assignment(tiny_course, TINY)


def graded(job: Job) -> Graded:
    verdict = Verdict("pair-frequencies", 2.0, 2.0, None, Text("said", "说"), ())
    return Graded(SubmissionResult(job.student, Outcome.GRADED, None, 0.1, (verdict,)), "{}")


class Class:
    """`grade_class` over threads, with `work` in place of grading one submission."""

    def __init__(self, assignment: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
        self.assignment, self.monkeypatch = assignment, monkeypatch
        self.jobs: list[Job] = []
        self.finished: list[tuple[str, Graded, threading.Thread]] = []

    def run(
        self, students: list[str], work: Callable[[Job], Graded], *executors: Any, **options: Any
    ) -> list[SubmissionResult]:
        """With the first executor to begin with, and one of the others each time a new one is asked for.

        Args:
            options: what `grade_class` is given besides, or in place of what this passes it.
        """
        waiting = list(executors)

        def noted(job: Job) -> Graded:
            self.jobs.append(job)
            return work(job)

        self.monkeypatch.setattr(classroom, "grade_submission", noted)
        return grade_class(
            self.assignment,
            [Submission(student, Path(f"{student}.ipynb")) for student in students],
            **{
                "workers": lambda count: waiting.pop(0),
                "count": 2,
                "terms": Terms(b"key", "cpu", "zh", Limits(cell_timeout_s=7.0)),
                "finished": lambda submission, one: self.finished.append(
                    (submission.student, one, threading.current_thread())
                ),
                **options,
            },
        )


@pytest.fixture
def class_(assignment: Assignment, monkeypatch: pytest.MonkeyPatch) -> Class:
    return Class(assignment, monkeypatch)


def test_every_submission_is_graded_and_the_results_are_sorted(class_: Class) -> None:
    """Whatever the order in which they end; `finished` is called for each, in the caller's thread."""
    students = ["zoe", "ada", "emmy", "kurt"]
    results = class_.run(students, graded, ThreadPoolExecutor(3))
    assert [result.student for result in results] == sorted(students)
    assert sorted(student for student, _, _ in class_.finished) == sorted(students)
    assert {thread for _, _, thread in class_.finished} == {threading.current_thread()}


def test_a_job_holds_what_the_command_said(class_: Class) -> None:
    """Key, device, language, limits and course travel to the worker."""
    class_.run(["ada"], graded, ThreadPoolExecutor(1))
    (job,) = class_.jobs
    assert job.terms == Terms(b"key", "cpu", "zh", Limits(cell_timeout_s=7.0))
    assert (job.root, job.assignment, job.notebook) == (class_.assignment.root, TINY, Path("ada.ipynb"))


def test_a_fault_in_one_submission_does_not_stop_the_others(class_: Class, caplog: pytest.LogCaptureFixture) -> None:
    """It is shown as the grader's fault, with the error, in both languages, and logged with its traceback."""

    def work(job: Job) -> Graded:
        if job.student == "emmy":
            raise RuntimeError("a fault of ours")
        return graded(job)

    with caplog.at_level(logging.ERROR):
        results = class_.run(["ada", "emmy", "zoe"], work, ThreadPoolExecutor(2))
    assert [result.outcome for result in results] == [Outcome.GRADED, Outcome.REJECTED, Outcome.GRADED]
    emmy = results[1]
    assert emmy.reason is not None
    assert "RuntimeError: a fault of ours" in emmy.reason.en
    assert "RuntimeError: a fault of ours" in emmy.reason.zh
    assert [(verdict.exercise, verdict.score, verdict.judged) for verdict in emmy.exercises] == [
        ("pair-frequencies", 0.0, False),
        ("causal-mask", 0.0, False),
    ]
    assert "emmy" in {student for student, _, _ in class_.finished}
    assert [record.exc_info is not None for record in caplog.records] == [True]


class BrokenPool(Executor):
    """Every job ends as it does when a worker process was killed."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(BrokenProcessPool("a worker was killed"))
        return future


def test_submissions_that_a_killed_worker_took_along_are_graded_after_all(class_: Class) -> None:
    """Nobody gets 0 points because the machine killed a worker: each is graded again, alone."""
    results = class_.run(["ada", "emmy"], graded, BrokenPool(), ThreadPoolExecutor(1), ThreadPoolExecutor(1))
    assert [(result.student, result.outcome) for result in results] == [
        ("ada", Outcome.GRADED),
        ("emmy", Outcome.GRADED),
    ]
    assert [student for student, _, _ in class_.finished] == ["ada", "emmy"]


def test_a_submission_that_kills_its_worker_twice_is_a_result_with_the_reason(class_: Class) -> None:
    """The next one is graded."""
    results = class_.run(["ada", "emmy"], graded, BrokenPool(), BrokenPool(), ThreadPoolExecutor(1))
    assert [result.outcome for result in results] == [Outcome.REJECTED, Outcome.GRADED]
    assert results[0].reason is not None
    assert "killed" in results[0].reason.en


def test_the_course_key_is_made_once_and_stays(tmp_path: Path) -> None:
    """32 random bytes; the second call, and the second course, do not change the first."""
    first = course_key(tmp_path)
    assert len(first) == 32
    assert course_key(tmp_path) == first
    other = tmp_path / "other"
    other.mkdir()
    assert course_key(other) != first


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_the_course_key_is_private(tmp_path: Path) -> None:
    """Whoever reads it can compute every student's cases: its owner alone may."""
    course_key(tmp_path)
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600


def test_an_empty_key_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would make every student's cases guessable; the error says what to do."""
    monkeypatch.setattr(classroom, "KEY_TIMEOUT_S", 0.0)
    (tmp_path / KEY_FILE).touch()
    with pytest.raises(OrderMattersError, match="Delete it"):
        course_key(tmp_path)


def test_two_graders_at_once_agree_on_one_key(tmp_path: Path) -> None:
    """Started at the same moment, none overwrites the other's, and none reads half a key."""
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        with ThreadPoolExecutor(8) as pool:
            keys = set(pool.map(lambda _, folder=folder: course_key(folder), range(8)))
        assert len(keys) == 1
        assert len(keys.pop()) == 32


def test_an_error_while_saving_does_not_grade_the_rest(class_: Class) -> None:
    """What has not begun is cancelled: nothing is graded to be thrown away."""

    def full_disk(submission: Submission, one: Graded) -> None:
        raise OSError("disk full")

    started: list[str] = []
    gate = threading.Event()

    def work(job: Job) -> Graded:
        started.append(job.student)
        if len(started) > 1:
            gate.wait(5)
        return graded(job)

    students = [f"student-{number}" for number in range(9)]
    with pytest.raises(OSError, match="disk full"), classroom.cancelling(ThreadPoolExecutor(1)) as executor:
        class_.run(students, work, nullcontext(executor), count=1, finished=full_disk)
    gate.set()
    assert len(started) <= 2


class Executed(str):
    """An executed notebook whose end can be seen."""


def test_what_is_in_memory_does_not_grow_with_the_class(class_: Class) -> None:
    """Four submissions for each worker are on their way at a time; earlier results are looked up for these alone."""
    seen: list[weakref.ref[Executed]] = []
    looked_up: list[str] = []
    most_alive, ahead, done = 0, 0, 0

    def work(job: Job) -> Graded:
        notebook = Executed("{}")
        seen.append(weakref.ref(notebook))
        return replace(graded(job), notebook=notebook)

    def earlier(submission: Submission) -> None:
        looked_up.append(submission.student)

    def finished(submission: Submission, one: Graded) -> None:
        nonlocal most_alive, ahead, done
        if done % 10 == 0:
            gc.collect()
            most_alive = max(most_alive, sum(one() is not None for one in seen))
        ahead = max(ahead, len(looked_up) - done)
        done += 1

    students = [f"student-{number:03d}" for number in range(100)]
    class_.run(students, work, ThreadPoolExecutor(2), finished=finished, earlier=earlier)
    assert done == len(looked_up) == 100
    assert ahead == 8
    assert 0 < most_alive <= 8


def test_a_cluster_gets_more_at_a_time(class_: Class) -> None:
    """As many as the caller says, whatever the number of cores here."""
    gate = threading.Event()
    started: list[str] = []

    def work(job: Job) -> Graded:
        started.append(job.student)
        if len(started) == 30:
            gate.set()
        assert gate.wait(30)
        return graded(job)

    students = [f"student-{number:03d}" for number in range(40)]
    results = class_.run(students, work, ThreadPoolExecutor(30), count=1, in_flight=30)
    assert len(results) == 40


def test_a_fault_of_ours_in_one_exercise_keeps_the_others(
    class_: Class, tiny_source: NotebookNode, tmp_path: Path
) -> None:
    """The earlier verdicts and their points in the notebook stay; the exercise that was to be judged says why not."""
    first = tuple(
        Verdict(exercise, points, points, None, Text("said", "说"), ())
        for exercise, points in class_.assignment.exercises.items()
    )
    executed = copy.deepcopy(tiny_source)
    write_verdicts(executed, {verdict.exercise: verdict for verdict in first}, "en")
    place = tmp_path / "executed.ipynb"
    place.write_text(nbformat.writes(executed), encoding="utf-8")
    saved: list[Graded] = []

    def work(job: Job) -> Graded:
        raise RuntimeError("a fault of ours")

    class_.monkeypatch.setattr(classroom, "grade_submission", work)
    (result,) = grade_class(
        class_.assignment,
        [Submission("ada", Path("ada.ipynb"))],
        workers=lambda count: ThreadPoolExecutor(count),
        count=1,
        terms=Terms(b"key", only=("causal-mask",)),
        finished=lambda submission, one: saved.append(one),
        earlier=lambda submission: Kept(SubmissionResult("ada", Outcome.GRADED, None, 1.0, first), place),
    )
    assert (result.outcome, result.score) == (Outcome.PARTLY_GRADED, 2.0)
    assert (result.exercises[0], result.exercises[1].mistake) == (first[0], "grader-failed")
    (one,) = saved
    shown = nbformat.reads(str(one.notebook), as_version=4)
    points = {cell["id"]: determine_grade(cell)[0] for cell in shown.cells if cell["id"].startswith("test-")}
    assert points == {"test-pair-frequencies": 2.0, "test-causal-mask": 0.0}
    assert not one.whole
