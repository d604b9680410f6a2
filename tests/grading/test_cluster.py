"""A real Dask cluster: the same results as with local workers, also when a worker is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.errors import OrderMattersError
from autograder.grading.assignments import load_assignment
from autograder.grading.classroom import Workers, grade_class, local_workers
from autograder.grading.cluster import cluster_workers
from autograder.grading.one import Graded, Terms
from autograder.grading.submissions import Submission
from autograder.results import SubmissionResult
from tests.conftest import TINY, Answer

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Dask's own warnings are not ours to mend

TERMS = Terms(b"a course key for tests", "cpu")
WRONG = "def causal_mask(length, device=None):\n    return torch.ones(length, length, dtype=torch.bool).triu()"


@pytest.fixture
def submissions(tiny_course: Path, answered: Answer) -> list[Submission]:
    """Right, wrong, broken; more than the workers can take at once."""
    found = []
    for number in range(8):
        path = tiny_course / "submitted" / f"student-{number:02d}.ipynb"
        path.parent.mkdir(exist_ok=True)
        changes = [{}, {"causal_mask": WRONG}, {"causal_mask": "def causal_mask(:"}][number % 3]
        path.write_text(json.dumps(answered(**changes)), encoding="utf-8")
        found.append(Submission(path.stem, path))
    return found


def graded(
    root: Path, submissions: list[Submission], workers: Workers, after_one: Callable[[], object]
) -> list[SubmissionResult]:
    done: list[str] = []

    def finished(submission: Submission, one: Graded) -> None:
        done.append(submission.student)
        if len(done) == 1:
            after_one()

    results = grade_class(
        load_assignment(root, TINY), submissions, workers=workers, count=2, terms=TERMS, finished=finished
    )
    assert sorted(done) == [submission.student for submission in submissions]
    return [replace(result, seconds=0.0) for result in results]


@pytest.mark.thorough
def test_a_killed_worker_changes_nothing(tiny_course: Path, submissions: list[Submission]) -> None:
    """Two workers; one is killed as soon as there is a result. Every submission is graded once, as by local workers."""
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster, set_as_default=False) as client:
            pids = list(client.run(os.getpid).values())
        cluster_results = graded(
            tiny_course,
            submissions,
            lambda count: cluster_workers(cluster.scheduler_address),
            lambda: os.kill(pids[0], signal.SIGKILL),
        )
    local = graded(tiny_course, submissions, lambda count: local_workers(count, TERMS), lambda: None)
    assert cluster_results == local
    scores = [result.score for result in local[:3]]
    assert scores[0] == 3.0 > scores[1] > scores[2] == 2.0


def test_no_scheduler_is_a_clear_error() -> None:
    """With the address and the command that starts one."""
    said = r"no Dask scheduler answers at tcp://127\.0\.0\.1:9.*dask scheduler"
    with pytest.raises(OrderMattersError, match=said), cluster_workers("tcp://127.0.0.1:9"):
        pass
