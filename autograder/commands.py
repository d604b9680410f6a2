"""What the commands do: `grade` a class, `check` one notebook."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from autograder.errors import NoSubmissions, OrderMattersError, UnreadableNotebook
from autograder.grading import cluster
from autograder.grading.assignments import Assignment, assignment_names, load_assignment, owner_of_answers
from autograder.grading.classroom import Workers, course_key, grade_class, local_workers
from autograder.grading.gradebook import ClassBook, autograded_place
from autograder.grading.journal import Journal
from autograder.grading.keeping import Kept
from autograder.grading.one import Graded, Job, Terms, grade_submission
from autograder.grading.submissions import Submission
from autograder.intake.taking import take_in
from autograder.kernels.limits import Limits
from autograder.kernels.sandbox import require
from autograder.notebooks.reading import read_notebook
from autograder.report.class_report import write_report
from autograder.report.feedback_pages import write_feedback
from autograder.report.stored import store_results
from autograder.report.table import print_class
from autograder.results import Language, Outcome, SubmissionResult, Verdict, class_to_json, printable, sharing


def _console(quiet: bool = False) -> Console:
    """Standard output; into a file or a pipe the lines are wide enough for the table."""
    console = Console(quiet=quiet)
    return console if console.is_terminal else Console(width=120, quiet=quiet)


def course_root(path: Path) -> Path:
    """The course folder as an absolute path. Raises OrderMattersError when it is none."""
    root = path.resolve()
    if not (root / "source").is_dir():
        raise OrderMattersError(
            f"{root} is no course folder: it has no source/. Start in the course folder or pass --course FOLDER."
        )
    return root


def limits_from(options: argparse.Namespace) -> Limits:
    """Limits with what was asked for on the command line."""
    asked = {
        "cell_timeout_s": options.cell_timeout,
        "test_timeout_s": options.test_timeout,
        "total_timeout_s": options.total_timeout,
    }
    for name, value in asked.items():
        if value is not None and not value > 0:
            raise OrderMattersError(f"{name} is {value:g}; it must be above 0.")
    return replace(Limits(), **{name: value for name, value in asked.items() if value is not None})


def exercises_from(options: argparse.Namespace, assignment: Assignment) -> tuple[str, ...]:
    """The exercises that `--only` names, sorted; () when it was not given."""
    for exercise in options.only:
        if exercise in assignment.exercises:
            continue
        known = f"Exercises judged automatically: {', '.join(assignment.exercises)}."
        if exercise in assignment.manual:
            raise OrderMattersError(f"--only {exercise}: it is graded by hand, in formgrader. {known}")
        raise OrderMattersError(f"--only {exercise!r}: {assignment.name} has no such exercise. {known}")
    if options.only and options.all_cells:
        raise OrderMattersError(
            "--only runs no more than its exercises need, and --all-cells runs everything. Leave one of them out."
        )
    return tuple(sorted(set(options.only)))


def run_grade(options: argparse.Namespace) -> int:
    """`autograder grade`: results into gradebook, autograded/, feedback/ and, if asked, JSON; prints the table."""
    root = course_root(options.course)
    language: Language = options.language or "en"
    limits = limits_from(options)
    if not options.no_sandbox:
        require(root)
    if options.workers is not None and options.workers < 1:
        raise OrderMattersError(f"--workers is {options.workers}; it must be at least 1.")
    assignment = load_assignment(root, options.assignment)
    only = exercises_from(options, assignment)
    folder = options.submissions or root / "submitted"
    intake = take_in(folder, assignment.name, assignment_names(root), options.students)
    submissions = intake.submissions
    if options.json:
        _require_writable("--json", options.json)
    if options.log:
        _require_writable("--log", options.log)
    console = _console(options.quiet)
    key = course_key(root)
    if options.device == "cuda":
        _require_cuda()
    sandbox = not options.no_sandbox
    terms = Terms(key, options.device, language, limits, sandbox=sandbox, all_cells=options.all_cells, only=only)
    journal = Journal(assignment, terms)

    def earlier(submission: Submission) -> Kept | None:
        return journal.earlier(submission, autograded_place(assignment, submission.student)) if only else None

    known = {} if options.rerun else _known(journal, assignment, submissions)
    new = [submission for submission in submissions if submission.student not in known]
    for line in intake.lines(root / "journal" / f"{assignment.name}-intake.txt"):
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
    if known:
        console.print(f"{len(known)} unchanged since they were last graded: not run again (--rerun runs them).")

    count = min(options.workers or os.cpu_count() or 1, len(new))
    with ExitStack() as stack:
        # Workers load torch while this process opens the gradebook.
        workers = _workers(options.scheduler, terms)
        ready = [stack.enter_context(workers(count))] if new else []
        book = ClassBook(assignment, options.db)
        progress = stack.enter_context(_progress(quiet=options.quiet))
        desk = _Desk(assignment, book, journal, options, progress, progress.add_task("", total=len(submissions)))
        for submission in submissions:
            kept = known.get(submission.student)
            if kept is not None:
                desk.take(submission, Graded(kept.result, kept.executed()), new=False)
        results = [kept.result for kept in known.values()]
        results += grade_class(
            assignment,
            new,
            workers=lambda count: nullcontext(ready.pop()) if ready else workers(count),
            count=count,
            terms=terms,
            finished=lambda submission, graded: desk.take(submission, graded, new=True),
            earlier=earlier,
            in_flight=cluster.IN_FLIGHT if options.scheduler else None,
        )
    results.sort(key=lambda result: result.student)
    if options.json:
        text = json.dumps(class_to_json(assignment.name, results, language), ensure_ascii=False, indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    store_results(root, assignment.name, results, sandbox=terms.sandbox)
    report = write_report(assignment, results, language, made_at=datetime.now(UTC), sandbox=terms.sandbox)
    print_class(console, assignment.name, results, language)
    if only:
        console.print(
            f"--only {', '.join(only)}: submissions judged anew in that alone: {desk.anew}; "
            f"graded whole, for there was no earlier result to build on: {desk.whole}.",
            soft_wrap=True,
        )
    if options.no_sandbox:
        console.print("graded WITHOUT a sandbox (--no-sandbox): submissions ran as your own programs", style="yellow")
    pages = root / "feedback"
    console.print(f"feedback: {pages}/<student>/{assignment.name}/{assignment.name}.html", soft_wrap=True)
    console.print(f"class report: {report}", soft_wrap=True)
    console.print(f"gradebook: {book.shown_url}", soft_wrap=True)
    if options.json:
        console.print(f"results: {options.json}", soft_wrap=True)
    return 0


def _known(journal: Journal, assignment: Assignment, submissions: Sequence[Submission]) -> dict[str, Kept]:
    """The results of submissions that have not changed since they were graded, by student."""
    known: dict[str, Kept] = {}
    verdicts: dict[Verdict, Verdict] = {}
    for submission in submissions:
        found = journal.find(submission, autograded_place(assignment, submission.student))
        if found is not None:
            known[submission.student] = replace(found, result=sharing(found.result, verdicts))
    return known


class _Desk:
    """Where each result goes as it ends: the gradebook, the journal, the student's page, the log, the bar.

    Attributes:
        whole: submissions of which this run judged every exercise.
        anew: those of which it judged some, and kept the other verdicts.
    """

    def __init__(
        self,
        assignment: Assignment,
        book: ClassBook,
        journal: Journal,
        options: argparse.Namespace,
        progress: Progress,
        bar: TaskID,
    ) -> None:
        self._assignment, self._book, self._journal, self._options = assignment, book, journal, options
        self._progress, self._bar = progress, bar
        self._troubled = self.whole = self.anew = 0

    def take(self, submission: Submission, graded: Graded, *, new: bool) -> None:
        """Write what came of a submission. `new` is False for a result of an earlier run."""
        result = graded.result
        marks = self._book.save(result, graded.notebook, submission.notebook)
        if new:
            self._journal.add(submission, graded)
            self.whole += graded.whole and graded.notebook is not None
            self.anew += not graded.whole
        language, log = self._options.language, self._options.log
        write_feedback(
            self._assignment,
            result,
            graded.notebook,
            submitted=submission.notebook,
            language=language,
            marks=marks,
        )
        if log:
            _log(log, result, self._assignment.name, new=new)
        self._troubled += result.outcome is not Outcome.GRADED
        description = f"{self._troubled} not graded in full" if self._troubled else ""
        self._progress.update(self._bar, advance=1, description=description)


def _workers(scheduler: str | None, terms: Terms) -> Workers:
    """Processes of this machine, or a cluster's."""
    if scheduler is None:
        return lambda count: local_workers(count, terms)
    return lambda count: cluster.cluster_workers(scheduler)


def _log(path: Path, result: SubmissionResult, assignment: str, *, new: bool) -> None:
    """One line: when, what, who, how it ended, points, seconds, and the reason if there is one."""
    fields = [
        datetime.now(UTC).isoformat(timespec="seconds"),
        assignment,
        result.student,
        str(result.outcome) if new else f"{result.outcome} before",
        f"{result.score:g}/{result.max_score:g}",
        f"{result.seconds:.1f}s",
        result.reason.en if result.reason else "",
    ]
    with path.open("a", encoding="utf-8") as file:
        file.write("\t".join(printable(field).replace("\t", " ").replace("\n", " ") for field in fields) + "\n")


def _progress(*, quiet: bool) -> Progress:
    """A bar with what is left, on standard error."""
    return Progress(
        TextColumn("grading"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("elapsed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        disable=quiet,
    )


def run_check(options: argparse.Namespace) -> int:
    """`autograder check`: judge one notebook and print what is right and wrong. Nothing is written."""
    root = course_root(options.course)
    notebook: Path = options.notebook
    if not notebook.is_file():
        raise NoSubmissions(str(notebook), "a notebook file (.ipynb)")
    name = options.assignment or _assignment_of(root, notebook)
    assignment = load_assignment(root, name)
    if options.device == "cuda":
        _require_cuda()
    if not options.no_sandbox:
        require(root)
    say: Language = options.language or "en"
    with tempfile.TemporaryDirectory() as scratch:
        job = Job(
            root=root,
            assignment=name,
            student="self-check",
            notebook=notebook.resolve(),
            problem=None,
            terms=Terms(Path(scratch).name.encode(), options.device, say, sandbox=not options.no_sandbox),
        )
        result = grade_submission(job).result
    console = _console()
    for verdict in result.exercises:
        full = verdict.score == verdict.max_score
        mark = "[green]ok[/]" if full else "[red]no[/]"
        console.print(f"{mark}  {verdict.exercise}  {verdict.score:g} / {verdict.max_score:g}", highlight=False)
        if not full:
            console.print(printable(verdict.message.in_language(say)), markup=False, highlight=False, style="default")
    for exercise in assignment.manual:
        console.print(f"--  {exercise}: graded by hand", highlight=False)
    console.print(f"{name}: {result.score:g} / {result.max_score:g}, {result.outcome}", highlight=False)
    if result.reason:
        console.print(printable(result.reason.in_language(say)), markup=False, highlight=False)
    return 0 if result.outcome is Outcome.GRADED and result.score == result.max_score else 1


def _assignment_of(root: Path, notebook: Path) -> str:
    try:
        cells = read_notebook(notebook).cells
    except UnreadableNotebook as error:
        raise OrderMattersError(f"{error}.") from error
    owner = owner_of_answers(root, {cell.grade_id for cell in cells if cell.grade_id})
    if owner is None:
        raise OrderMattersError(f"{notebook} has no answer cell of any lesson. Say which lesson with --assignment.")
    return owner


def _require_writable(option: str, path: Path) -> None:
    """Find out before grading, not after it, whether the results can be written there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise OrderMattersError(f"{option} {path} can't be written: {error.strerror}.") from error


def _require_cuda() -> None:
    from autograder.examiner.judge import accelerator

    accelerator("cuda")
