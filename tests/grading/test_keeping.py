"""Judging one exercise anew, with real kernel and examiner: nothing else of an earlier result changes."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode
from nbgrader.utils import determine_grade

from autograder.grading import one, reasons
from autograder.grading.keeping import Kept, reason_of, take_over
from autograder.grading.one import Graded, Job, Terms, grade_submission
from autograder.kernels.execution import Execution, execute
from autograder.kernels.limits import Limits
from autograder.results import Outcome, SubmissionResult, Text, Verdict
from tests.conftest import TINY, Answer

LIMITS = Limits(
    cell_timeout_s=4.0, test_timeout_s=3.0, patience_after_timeout_s=1.0, answer_interrupt_s=1.0, memory_mib=200
)
TERMS = Terms(b"a course key for tests", "cpu", "en", LIMITS)
ONLY = replace(TERMS, only=("causal-mask",))
ENDLESS = "def pair_frequencies(d_model, base=1e4):\n    import time\n    while True: time.sleep(1)"
WRONG = "def pair_frequencies(d_model, base=1e4):\n    return torch.zeros(d_model // 2, dtype=torch.float64)"
STOPPED = Text("the kernel died in the cell test-b", "内核崩溃")


def verdict(exercise: str, mistake: str | None = None, *, judged: bool = True) -> Verdict:
    return Verdict(exercise, 0.0, 1.0, mistake, Text("said", "说"), (), judged)


def result(reason: Text | None, *verdicts: Verdict) -> SubmissionResult:
    return SubmissionResult("ada", Outcome.PARTLY_GRADED, reason, 1.0, verdicts)


A, B = verdict("a"), verdict("b")
B_NOT_REACHED, B_TIMED_OUT = (verdict("b", mistake, judged=False) for mistake in (reasons.NOT_REACHED, "timed-out"))
BEFORE = Text("before", "以前")
REASONS: dict[str, tuple[Text | None, tuple[Verdict, ...], SubmissionResult | None, Text | None]] = {
    "all is judged": (None, (A, B), result(BEFORE, A, B_TIMED_OUT), None),
    "this run stopped": (STOPPED, (A, B), result(None, A, B), STOPPED),
    "the earlier run stopped before what is kept": (None, (A, B_NOT_REACHED), result(BEFORE, A, B_NOT_REACHED), BEFORE),
    "what is kept was out of time": (
        None,
        (A, B_TIMED_OUT),
        result(Text("not judged: a (timed-out), b (timed-out)", ""), A, B_TIMED_OUT),
        Text("not judged: b (timed-out)", "未评分：b（timed-out）"),
    ),
    "what is judged anew is out of time": (
        None,
        (replace(B_TIMED_OUT, exercise="a"), B_NOT_REACHED),
        result(BEFORE, A, B_NOT_REACHED),
        Text("not judged: a (timed-out), b (not-reached)", "未评分：a（timed-out）、b（not-reached）"),
    ),
}


@pytest.mark.parametrize(("stopped", "verdicts", "kept", "reason"), REASONS.values(), ids=REASONS)
def test_the_reason_of_a_merged_result(
    stopped: Text | None, verdicts: tuple[Verdict, ...], kept: SubmissionResult | None, reason: Text | None
) -> None:
    """Why there are verdicts missing, in this run or in the earlier one; "a" is judged anew, "b" is kept."""
    assert reason_of(stopped, verdicts, kept, ("a",)) == reason


def test_a_test_without_its_earlier_outputs_is_a_fault(tiny_source: NotebookNode) -> None:
    """nbgrader would give full marks to a test cell that shows nothing."""
    before = nbformat.from_dict(json.loads(json.dumps(tiny_source)))
    before.cells = [cell for cell in before.cells if cell["id"] != "test-pair-frequencies"]
    with pytest.raises(KeyError, match="test-pair-frequencies"):
        take_over(nbformat.from_dict(json.loads(json.dumps(tiny_source))), before, {"test-causal-mask"})


class Course:
    """The tiny course, where one student's notebook is graded again and again."""

    def __init__(self, root: Path, tmp_path: Path) -> None:
        self.root, self.path, self.executed = root, tmp_path / "ada.ipynb", tmp_path / "executed.ipynb"

    def grade(self, terms: Terms = TERMS, earlier: Graded | None = None) -> Graded:
        kept = None
        if earlier is not None:
            self.executed.write_text(str(earlier.notebook), encoding="utf-8")
            kept = Kept(earlier.result, self.executed)
        job = Job(self.root, TINY, "ada", self.path, None, terms, kept)
        return grade_submission(pickle.loads(pickle.dumps(job)))  # as it travels to a worker

    def hand_in(self, submitted: NotebookNode) -> None:
        self.path.write_text(json.dumps(submitted), encoding="utf-8")

    def change_tests(self, old: str, new: str) -> None:
        """In the instructor's notebook."""
        path = self.root / "source" / TINY / f"{TINY}.ipynb"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def course(tiny_course: Path, tmp_path: Path) -> Course:
    return Course(tiny_course, tmp_path)


@pytest.fixture(scope="module", autouse=True)
def _no_examiner_is_left() -> Iterator[None]:
    yield
    one.stop_examiners()


def cells(graded: Graded) -> dict[str, Any]:
    return {cell["id"]: dict(cell) for cell in json.loads(str(graded.notebook))["cells"]}


def of(graded: Graded, exercise: str) -> Verdict:
    return {found.exercise: found for found in graded.result.exercises}[exercise]


def points(graded: Graded) -> dict[str, float]:
    """As nbgrader reads them from the executed notebook."""
    notebook = nbformat.reads(str(graded.notebook), as_version=4)
    return {cell["id"]: determine_grade(cell)[0] for cell in notebook.cells if cell["id"].startswith("test-")}


def with_cells_of_their_own(answered: Answer) -> NotebookNode:
    """A wrong first answer, and cells with output and a value before, between and behind the tests."""
    submitted = answered(pair_frequencies=WRONG)
    for place, text in ((12, "print('last')\n7 + 3"), (7, "print('between')\n7 + 2"), (4, "print('first')\n7 + 1")):
        submitted.cells.insert(place, nbformat.v4.new_code_cell(text))
    return submitted


MASK_TEST = 'grade(\\"causal-mask\\", causal_mask)'
INVERTED = 'grade(\\"causal-mask\\", lambda length, device=None: ~causal_mask(length, device=device))'


@pytest.mark.slow
class TestWithAKernel:
    """Everything below runs notebooks."""

    def test_a_changed_test_changes_its_own_verdict_and_no_other(self, course: Course, answered: Answer) -> None:
        """The hidden test of the second exercise is another one now: its score, its cell, and nothing else."""
        course.hand_in(with_cells_of_their_own(answered))
        first = course.grade()
        assert first.whole
        course.change_tests(MASK_TEST, INVERTED)
        anew = course.grade(ONLY, first)
        assert not anew.whole
        mask = of(anew, "causal-mask")
        assert mask.score < 1.0 == of(first, "causal-mask").score
        exercises = (first.result.exercises[0], mask)
        assert replace(anew.result, seconds=0.0) == replace(first.result, seconds=0.0, exercises=exercises)
        before, after = cells(first), cells(anew)
        assert [name for name in after if after[name] != before[name]] == ["test-causal-mask"]
        assert points(anew) == {"test-pair-frequencies": exercises[0].score, "test-causal-mask": mask.score}
        assert course.grade().result.exercises == anew.result.exercises

    def test_verdicts_are_kept_also_where_their_own_test_has_changed(self, course: Course, answered: Answer) -> None:
        """Only what is named is judged anew, and the kept verdict stays in its cell."""
        course.hand_in(answered())
        first = course.grade()
        course.change_tests('grade(\\"pair-frequencies\\", pair_frequencies)', 'grade(\\"pair-frequencies\\", abs)')
        anew = course.grade(ONLY, first)
        assert anew.result.exercises == first.result.exercises
        assert points(anew) == points(first) == {"test-pair-frequencies": 2.0, "test-causal-mask": 1.0}

    def test_the_others_tests_do_not_run(
        self, course: Course, answered: Answer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An answer that never ends costs its time once; the verdict, and why it has none, are kept."""
        course.hand_in(answered(pair_frequencies=ENDLESS))
        first = course.grade()
        assert first.result.outcome is Outcome.PARTLY_GRADED
        ran: list[str] = []

        def noted(notebook: NotebookNode, **how: Any) -> Execution:
            execution = execute(notebook, **how)
            ran.extend(cell["id"] for cell in notebook.cells if cell.get("execution_count"))
            return execution

        monkeypatch.setattr(one, "execute", noted)
        anew = course.grade(ONLY, first)
        assert replace(anew.result, seconds=0.0) == replace(first.result, seconds=0.0)
        assert cells(anew) == cells(first)
        assert "test-causal-mask" in ran
        assert "test-pair-frequencies" not in ran

    def test_more_time_turns_a_partly_graded_submission_into_a_graded_one(
        self, course: Course, answered: Answer
    ) -> None:
        """The exercise that was out of time is judged with another limit; the other keeps its verdict."""
        slow = (
            "import time\ncalls = []\n"
            "def causal_mask(length, device=None):\n"
            "    if not calls: time.sleep(2.5)\n"
            "    calls.append(length)\n"
            "    return torch.ones(length, length, dtype=torch.bool, device=device).tril()"
        )
        course.hand_in(answered(pair_frequencies=WRONG, causal_mask=slow))
        hasty = replace(TERMS, limits=replace(LIMITS, test_timeout_s=1.2))
        first = course.grade(hasty)
        assert first.result.outcome is Outcome.PARTLY_GRADED
        assert of(first, "causal-mask").mistake == "timed-out"
        anew = course.grade(replace(ONLY, limits=replace(LIMITS, test_timeout_s=30.0)), first)
        assert (anew.result.outcome, anew.result.reason) == (Outcome.GRADED, None)
        assert anew.result.exercises == (first.result.exercises[0], replace(of(anew, "causal-mask"), score=1.0))

    def test_a_run_that_stops_says_so_and_keeps_the_others(self, course: Course, answered: Answer) -> None:
        """The kernel dies before the exercise that is judged anew."""
        course.hand_in(answered())
        first = course.grade()
        course.change_tests(MASK_TEST, "import os; os._exit(3)")
        anew = course.grade(ONLY, first)
        assert anew.result.outcome is Outcome.PARTLY_GRADED
        assert anew.result.reason is not None
        assert "test-causal-mask" in anew.result.reason.en
        assert of(anew, "causal-mask").mistake == reasons.NOT_REACHED
        assert of(anew, "pair-frequencies") == of(first, "pair-frequencies")
        assert points(anew) == {"test-pair-frequencies": 2.0, "test-causal-mask": 0.0}

    def test_a_figure_stays_as_the_earlier_run_shows_it(self, course: Course, answered: Answer) -> None:
        """Drawn in the sandbox (`--all-cells`), it is not replaced by the one that was handed in."""
        course.hand_in(answered())
        first = course.grade(replace(TERMS, all_cells=True))
        figure = cells(first)["draw-dots"]
        assert figure["outputs"]
        assert cells(course.grade(ONLY, first))["draw-dots"] == figure

    @pytest.mark.parametrize("gone", [False, True], ids=["none", "gone"])
    def test_without_an_earlier_result_everything_is_judged(self, course: Course, answered: Answer, gone: bool) -> None:
        """A new submission, or one whose executed notebook is gone when its turn comes."""
        course.hand_in(answered(pair_frequencies=WRONG))
        whole = course.grade()
        kept = Kept(replace(whole.result, exercises=()), course.executed) if gone else None
        anew = grade_submission(Job(course.root, TINY, "ada", course.path, None, ONLY, kept))
        assert anew.whole
        assert replace(anew.result, seconds=0.0) == replace(whole.result, seconds=0.0)
        assert cells(anew) == cells(whole)

    def test_a_fresh_examination_of_each_exercise_alone_repeats_the_whole(
        self, course: Course, answered: Answer
    ) -> None:
        """With nothing changed, judging each alone gives what judging all gave."""
        course.hand_in(with_cells_of_their_own(answered))
        whole = course.grade()
        for exercise in ("pair-frequencies", "causal-mask"):
            alone = course.grade(replace(TERMS, only=(exercise,)), whole)
            assert alone.result.exercises == whole.result.exercises
            assert cells(alone) == cells(whole)
