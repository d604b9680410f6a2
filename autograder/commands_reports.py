"""What the commands do after grading: `report` on a class, `export` its scores to a learning platform."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from autograder.commands import course_root
from autograder.errors import OrderMattersError
from autograder.grading.assignments import load_assignment
from autograder.grading.marks import read_scores
from autograder.report.class_report import write_report
from autograder.report.exports import Export, export_scores, file_name
from autograder.report.stored import last_run, read_results, run_of
from autograder.results import printable


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=120)


def run_report(options: argparse.Namespace) -> int:
    """`autograder report`: writes the class report and says where it is."""
    root = course_root(options.course)
    assignment = load_assignment(root, options.assignment)
    sources: list[Path] = options.json or [last_run(root, assignment.name)]
    results = read_results(sources, assignment.name)
    runs = [run_of(source) for source in sources]
    page = write_report(
        assignment,
        results,
        options.language,
        path=options.output,
        made_at=runs[0].made if len(runs) == 1 else None,
        sandbox=all(run.sandbox for run in runs),
    )
    _console().print(f"class report: {page} ({len(results)} submissions)", soft_wrap=True, markup=False)
    return 0


def run_export(options: argparse.Namespace) -> int:
    """`autograder export`: writes the scores for a platform, and says what could not be matched."""
    root = course_root(options.course)
    assignment = load_assignment(root, options.assignment)
    place: Path = options.output or root / "exports" / file_name(assignment.name, options.to)
    if options.into is not None and place.resolve() == options.into.resolve():
        raise OrderMattersError(f"--output {place} is the file of --into; name another one, so that it is kept.")
    try:
        results = read_results([last_run(root, assignment.name)], assignment.name)
    except OrderMattersError:
        results = []  # the scores are in the gradebook; without results only the messages are missing
    wanted = Export(
        scores=read_scores(root, assignment.name),
        title=str(assignment.release.metadata.get("title", assignment.name)),
        results={result.student: result for result in results},
        into=options.into,
        column=options.column,
        scale=options.scale,
        language=options.language,
    )
    notes = export_scores(options.to, wanted, place)
    console = _console()
    for note in notes:
        console.print(printable(note), style="yellow", soft_wrap=True, markup=False, highlight=False)
    console.print(f"scores: {place}", soft_wrap=True, markup=False)
    return 0
