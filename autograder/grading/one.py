"""One submission to one result: read, fit, run, judge. Runs in a worker process; whatever is submitted, it returns."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from nbformat import NotebookNode

from autograder.errors import UnreadableNotebook
from autograder.examiner.process import Examiner, ExaminerAddress, ExaminerDied, ExaminerHost
from autograder.grading import reasons
from autograder.grading.assignments import Assignment, load_assignment, owner_of_answers, owner_of_texts
from autograder.grading.keeping import Kept, executed_before, reason_of, take_over, with_kept
from autograder.kernels import warm
from autograder.kernels.execution import Execution, Place, execute
from autograder.kernels.limits import Limits
from autograder.kernels.outputs import keep_handed_in, output_of
from autograder.notebooks.cells import defined_names, grade_id, is_answer, is_locked, is_test
from autograder.notebooks.executed import text_of
from autograder.notebooks.fitting import Fitted, fit
from autograder.notebooks.reading import SubmittedCell, read_notebook
from autograder.notebooks.slicing import needed_cells
from autograder.results import ByHand, Language, Outcome, SubmissionResult, Text, Verdict
from autograder.syntax import syntax_tree


@dataclass(frozen=True)
class Terms:
    """What holds for every submission of a class; plain data, so that it can travel.

    Attributes:
        course_key: secret from which each student's cases are drawn.
        device: "auto", "cpu" or "cuda".
        sandbox: whether kernels run in one.
        all_cells: run also the figures and experiments that nothing judged needs.
        only: ids of the exercises that are judged anew where an earlier result is known, sorted; () for all.
    """

    course_key: bytes = field(repr=False)
    device: str = "auto"
    language: Language = "en"
    limits: Limits = field(default_factory=Limits)
    sandbox: bool = True
    all_cells: bool = False
    only: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        """Where kernels run."""
        return Place(contained=self.sandbox, gpu=self.device != "cpu" and GPU.exists())


@dataclass(frozen=True)
class Job:
    """One submission for a worker; plain data, so that it can travel.

    Attributes:
        earlier: the result whose verdicts are kept where the terms name only some exercises; None: all are judged.
    """

    root: Path
    assignment: str
    student: str
    notebook: Path | None
    problem: Text | None
    terms: Terms
    earlier: Kept | None = None


GPU = Path("/dev/nvidiactl")
"""Is there exactly where NVIDIA's driver is."""


@dataclass(frozen=True)
class Graded:
    """The result, and the executed notebook as JSON text (None when nothing was run).

    Attributes:
        whole: whether every exercise was judged in this run; otherwise some verdicts are kept from an earlier one.
    """

    result: SubmissionResult
    notebook: str | None
    whole: bool = True


_hosts: list[ExaminerHost] = []
_addresses: list[ExaminerAddress] = []
"""Of the examiners' process that whoever started this worker has started for all of them."""


@lru_cache(maxsize=1)
def _own_host(course_key: bytes, device: str) -> ExaminerHost:
    """An examiners' process of this worker's own, where there is no common one."""
    host = ExaminerHost(course_key, device)
    _hosts.append(host)
    return host


@lru_cache(maxsize=1)
def _examiner(course_key: bytes, device: str) -> Examiner:
    """This worker's examiner: found for its first submission, replaced when it died."""
    if _addresses:
        try:
            return Examiner(_addresses[0])
        except ExaminerDied:
            _addresses.clear()
    if not _own_host(course_key, device).alive:
        stop_examiners()
    return Examiner(_own_host(course_key, device).address)


def stop_examiners() -> None:
    """End this worker's examiner, and the examiners' process if it is this worker's own."""
    while _hosts:
        _hosts.pop().stop()
    _own_host.cache_clear()
    _examiner.cache_clear()


def warm_up(terms: Terms, examiners: ExaminerAddress) -> None:
    """Start this worker's warm process before the first submission arrives."""
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is the main process's affair
    _addresses[:] = [examiners]
    _prepare(terms)


def _prepare(terms: Terms) -> None:
    warm.prepare(terms.limits, contained=terms.place.contained, gpu=terms.place.gpu)


def grade_submission(job: Job) -> Graded:
    """Grade one submission. A bad one is a result with a reason, never an exception.

    One at a time in a process: a cluster's worker may have several threads.
    """
    with _one_at_a_time:
        return _grade_submission(job)


_one_at_a_time = threading.Lock()


def _grade_submission(job: Job) -> Graded:
    started = time.monotonic()
    assignment = load_assignment(job.root, job.assignment)
    if job.notebook is None:
        assert job.problem is not None
        return _rejected(job, assignment, job.problem, started)
    try:
        submitted = read_notebook(job.notebook)
        fitted = fit(submitted, assignment.source, assignment.release)
    except UnreadableNotebook as error:
        text = reasons.UNREADABLE
        why = Text(en=text.en.format(why=error), zh=text.zh.format(why=error))
        return _rejected(job, assignment, why, started)
    if not fitted.found or _other_lesson(assignment, submitted.cells):
        return _rejected(job, assignment, _wrong_notebook(assignment, submitted.cells), started)
    before = executed_before(job.earlier)
    kept = job.earlier.result if job.earlier and before is not None else None
    anew = job.terms.only if kept else tuple(assignment.exercises)
    tests = {f"test-{exercise}" for exercise in anew}
    needed = None if job.terms.all_cells else needed_cells(fitted.notebook, assignment.source, tests)
    verdicts, execution = run_and_judge(
        job.terms, job.student, assignment, fitted.notebook, frozenset(fitted.missing), needed
    )
    if needed is not None:
        _keep_handed_in(fitted, needed, job.terms.limits)
    if before is not None:
        take_over(fitted.notebook, before, tests)
    write_verdicts(fitted.notebook, {exercise: verdicts[exercise] for exercise in anew}, job.terms.language)
    verdicts = with_kept(verdicts, kept, anew)
    exercises = tuple(verdicts[exercise] for exercise in assignment.exercises)
    reason = reason_of(reasons.stopped_reason(execution, fitted.notebook), exercises, kept, anew)
    result = SubmissionResult(
        student=job.student,
        outcome=Outcome.PARTLY_GRADED if reason else Outcome.GRADED,
        reason=reason,
        seconds=time.monotonic() - started,
        exercises=exercises,
        by_hand=_by_hand(assignment),
        repairs=fitted.repairs,
    )
    return Graded(result, text_of(fitted.notebook), whole=kept is None)


def _admitted(terms: Terms) -> tuple[Examiner, socket.socket]:
    """This worker's examiner and a kernel's connection to it; a new one when the old one has died."""
    examiner = _examiner(terms.course_key, terms.device)
    try:
        return examiner, examiner.admit()
    except ExaminerDied:
        _discard(examiner)
        examiner = _examiner(terms.course_key, terms.device)
        return examiner, examiner.admit()


def _discard(examiner: Examiner) -> None:
    _examiner.cache_clear()
    examiner.stop()


def _keep_handed_in(fitted: Fitted, ran: Container[int], limits: Limits) -> None:
    for index, cell in enumerate(fitted.notebook.cells):
        if cell.cell_type == "code" and index not in ran:
            keep_handed_in(cell, fitted.handed_in.get(cell["id"], ()), limits.cell_output_kib * 1024)


def run_and_judge(
    terms: Terms,
    student: str,
    assignment: Assignment,
    notebook: NotebookNode,
    missing: frozenset[str] = frozenset(),
    cells: Container[int] | None = None,
) -> tuple[dict[str, Verdict], Execution]:
    """Execute a fitted notebook with the examiner beside it.

    Args:
        missing: grade ids of answers that the submission does not have.
        cells: places of the cells that are run; all of them by default.

    Returns:
        A verdict, or the reason for none, for every exercise; and what happened. Outputs are in the notebook.
    """
    verdicts: dict[str, Verdict] = {}
    _prepare(terms)
    examiner, connection = _admitted(terms)
    lost: list[str] = []
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code" and not is_locked(cell)]
    wanted = {grade_id(cell): defined_names(cell.source) for cell in assignment.source.cells if is_answer(cell)}

    def before_cell(cell: NotebookNode) -> None:
        if is_test(cell) and not lost:
            try:
                exercise = _exercise(cell)
                answer = _text_of_answer(sources, wanted.get(exercise, frozenset()))
                examiner.open(student, exercise, answer, tuple(sources))
            except ExaminerDied:
                lost.append(_exercise(cell))

    def after_cell(cell: NotebookNode) -> None:
        if not is_test(cell):
            return
        exercise = _exercise(cell)
        points = assignment.exercises[exercise]
        if lost:
            verdicts[exercise] = reasons.examiner_died(exercise, points)
            return
        try:
            closing = examiner.close()
        except ExaminerDied:
            lost.append(exercise)
            verdicts[exercise] = reasons.examiner_died(exercise, points)
            return
        if closing.verdict is not None and closing.verdict.mistake == "unanswered" and exercise in missing:
            verdicts[exercise] = reasons.answer_missing(exercise, points)
        elif closing.verdict is not None:
            verdicts[exercise] = closing.verdict
        elif closing.refusal is not None:
            verdicts[exercise] = reasons.refused(exercise, points, closing.refusal)
        elif closing.fault is not None:
            verdicts[exercise] = reasons.examiner_failed(exercise, points, closing.fault)

    with connection:
        execution = execute(
            notebook,
            place=terms.place,
            limits=terms.limits,
            environment={"NBGRADER_EXECUTION": "autograde"},
            examiner=connection,
            cells=cells,
            is_test=is_test,
            before_cell=before_cell,
            after_cell=after_cell,
        )
    if lost:
        _discard(examiner)
    stopped = reasons.stopped_reason(execution, notebook)
    for index, cell in enumerate(notebook.cells):
        if not is_test(cell) or _exercise(cell) in verdicts:
            continue
        exercise = _exercise(cell)
        points = assignment.exercises[exercise]
        if index in execution.timed_out:
            verdicts[exercise] = reasons.timed_out(exercise, points)
        elif stopped is not None and execution.stopped_at is not None and index >= execution.stopped_at:
            verdicts[exercise] = reasons.not_reached(exercise, points, stopped)
        else:
            verdicts[exercise] = reasons.no_record(exercise, points, cell, missing=exercise in missing)
    return verdicts, execution


def run_without_judging(terms: Terms, notebook: NotebookNode) -> Execution:
    """Execute a notebook that is none of the course's."""
    return execute(
        notebook,
        place=terms.place,
        limits=terms.limits,
        environment={"NBGRADER_EXECUTION": "autograde"},
        is_test=is_test,
        before_cell=lambda cell: None,
        after_cell=lambda cell: None,
    )


def _text_of_answer(sources: Sequence[str], names: frozenset[str]) -> str:
    """Every cell that defines one of an answer's names, wherever it stands: the rules hold for them all.

    A cell that does not parse defines nothing when it runs, and would keep the others from being read.
    """
    defining = (source for source in sources if names & defined_names(source))
    return "\n\n".join(source for source in defining if _parses(source))


@lru_cache(maxsize=1024)
def _parses(source: str) -> bool:
    return syntax_tree(source) is not None


def _exercise(test_cell: NotebookNode) -> str:
    return (grade_id(test_cell) or "").removeprefix("test-")


def write_verdicts(notebook: NotebookNode, verdicts: dict[str, Verdict], language: Language) -> None:
    """Put message and points into the test cells, in the form that nbgrader reads.

    What the answer printed stays; lines on stderr are kept as ordinary output, for nbgrader takes any line on stderr
    for a failed test.

    Args:
        verdicts: by exercise; the test cells of other exercises are left as they are.
    """
    for cell in notebook.cells:
        if not is_test(cell) or _exercise(cell) not in verdicts:
            continue
        verdict = verdicts[_exercise(cell)]
        kept = []
        for output in cell.outputs:
            if output.output_type == "stream":
                output.name = "stdout"
            if output.output_type == "stream" or output.output_type == "display_data":
                kept.append(output)
        lines = f"{verdict.score:g} / {verdict.max_score:g}  {verdict.message.in_language(language)}\n"
        kept.append(output_of("stream", name="stdout", text=lines))
        kept.append(output_of("execute_result", data={"text/plain": repr(verdict.score)}, execution_count=1))
        cell.outputs = kept


def _other_lesson(assignment: Assignment, cells: Sequence[SubmittedCell]) -> str | None:
    """The lesson whose cells are in this notebook, when it has none of this assignment's answer cells by their ids.

    Such a notebook may still seem to fit: a quiz looks alike in every lesson. Where no ids are left, the texts decide.
    """
    named = {cell.grade_id for cell in cells if cell.grade_id}
    if named & set(assignment.answers):
        return None
    owner = owner_of_answers(assignment.root, named)
    owner = owner or owner_of_texts(assignment.root, {cell.source.strip() for cell in cells})
    return None if owner == assignment.name else owner


def _wrong_notebook(assignment: Assignment, cells: Sequence[SubmittedCell]) -> Text:
    other = _other_lesson(assignment, cells)
    if other:
        return Text(
            en=f"This is the notebook of {other}, not of {assignment.name}.",
            zh=f"这是 {other} 的笔记本，而不是 {assignment.name} 的。",
        )
    return Text(
        en=f"None of the answer cells of {assignment.name} is in this notebook ({len(cells)} cells).",
        zh=f"笔记本（{len(cells)} 个单元格）中没有 {assignment.name} 的任何作答单元格。",
    )


def _by_hand(assignment: Assignment) -> tuple[ByHand, ...]:
    return tuple(ByHand(exercise, points) for exercise, points in assignment.manual.items())


def _rejected(job: Job, assignment: Assignment, why: Text, started: float) -> Graded:
    message = Text(en=f"Not graded. {why.en}", zh=f"未评分。{why.zh}")
    verdicts = tuple(
        reasons.without_verdict(exercise, points, "rejected", message, judged=False)
        for exercise, points in assignment.exercises.items()
    )
    seconds = time.monotonic() - started
    result = SubmissionResult(job.student, Outcome.REJECTED, why, seconds, verdicts)
    return Graded(result, None)
