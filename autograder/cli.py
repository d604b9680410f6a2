"""The command `autograder`: arguments only; the work is done in the rooms."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from autograder.errors import OrderMattersError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="autograder", description="Grade the notebooks of Order Matters.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    grade = commands.add_parser("grade", help="grade a class: scores, feedback pages, nbgrader's gradebook")
    grade.add_argument("assignment", help="such as 02-sinusoidal-encoding")
    grade.add_argument(
        "--submissions",
        type=Path,
        help="folder or archive (.zip, .tar.gz) as Canvas, Moodle, Blackboard, Brightspace, Gradescope or nbgrader "
        "export it, or a folder with <student>/<assignment>/<notebook>.ipynb, <student>/<any>.ipynb or <student>.ipynb "
        "(default: submitted/ in the course folder)",
    )
    grade.add_argument(
        "--students",
        type=Path,
        metavar="FILE",
        help="CSV that maps what the platform calls students to their ids: a column “student”, others for their names",
    )
    grade.add_argument("--json", type=Path, metavar="FILE", help="also write the results as JSON")
    grade.add_argument(
        "--db",
        metavar="URL",
        help="the gradebook's database, SQLite or PostgreSQL (default: as nbgrader_config.py says)",
    )
    grade.add_argument("--course", type=Path, default=Path(), help="the course folder (default: the current one)")
    grade.add_argument("--rerun", action="store_true", help="run also what is unchanged since it was last graded")
    grade.add_argument(
        "--all-cells",
        action="store_true",
        help="run also figures and experiments that nothing judged needs; they are shown as handed in otherwise",
    )
    grade.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="EXERCISE",
        help="judge only this exercise anew (after a change of its test) and keep the other verdicts; may be repeated",
    )
    grade.add_argument("--quiet", action="store_true", help="print nothing but errors")
    grade.add_argument("--log", type=Path, metavar="FILE", help="append a line for every submission as it ends")
    grade.add_argument("--scheduler", metavar="ADDRESS", help="grade on a Dask cluster, such as tcp://host:8786")
    grade.add_argument("--workers", type=int, help="notebooks graded at a time (default: one a core)")
    grade.add_argument("--cell-timeout", type=float, metavar="S", help="seconds for one cell (default: 60)")
    grade.add_argument("--test-timeout", type=float, metavar="S", help="seconds for one test cell (default: 10)")
    grade.add_argument("--total-timeout", type=float, metavar="S", help="seconds for one notebook (default: 300)")

    check = commands.add_parser("check", help="judge one notebook here; exit status 1 when something is wrong")
    check.add_argument("notebook", type=Path)
    check.add_argument("--assignment", help="default: found from the notebook's cells")
    check.add_argument("--course", type=Path, default=Path(), help="the course folder (default: the current one)")

    for command in (grade, check):
        command.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where GPU cases run")
        command.add_argument(
            "--no-sandbox",
            action="store_true",
            help="run submissions as ordinary programs of yours, with your files and your network: only ones you trust",
        )
        command.add_argument(
            "--language",
            choices=("en", "zh"),
            help="language of the messages and pages (default: English, and for a feedback page that of its notebook)",
        )

    report = commands.add_parser("report", help="the class report: one page on the results of the last run")
    report.add_argument("assignment", help="such as 02-sinusoidal-encoding")
    report.add_argument(
        "--json", type=Path, nargs="+", metavar="FILE", help="results that `grade --json` wrote, instead"
    )
    report.add_argument("--output", type=Path, metavar="FILE", help="the page (default: reports/<assignment>.html)")
    report.add_argument("--language", choices=("en", "zh"), default="en", help="language of the page")
    report.add_argument("--course", type=Path, default=Path(), help="the course folder (default: the current one)")

    export = commands.add_parser(
        "export", help="scores for a learning platform, manual marks and late penalties included"
    )
    export.add_argument("assignment", help="such as 02-sinusoidal-encoding")
    export.add_argument("--to", required=True, choices=("canvas", "moodle", "gradescope", "csv", "json"))
    export.add_argument(
        "--into",
        type=Path,
        metavar="FILE",
        help="the platform's own file, to be filled in: Canvas's exported gradebook, Moodle's grading worksheet",
    )
    export.add_argument("--output", type=Path, metavar="FILE", help="where to write (default: exports/ in the course)")
    export.add_argument("--column", metavar="NAME", help="the assignment's name on the platform, if it is another one")
    export.add_argument("--language", choices=("en", "zh"), default="en", help="language of the messages")
    export.add_argument("--scale", action="store_true", help="convert points where the platform has another maximum")
    export.add_argument("--course", type=Path, default=Path(), help="the course folder (default: the current one)")

    doctor = commands.add_parser("doctor", help="what this machine has, what is missing, and the command that mends it")
    doctor.add_argument("--course", type=Path, default=Path(), help="the course folder (default: the current one)")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Returns 0, 1 when something is wrong with the work judged, 2 when the command could not run."""
    from autograder.results import printable

    options = _parser().parse_args(arguments)
    try:
        if options.command == "grade":
            from autograder.commands import run_grade

            return run_grade(options)
        if options.command == "check":
            from autograder.commands import run_check

            return run_check(options)
        if options.command in ("report", "export"):
            from autograder.commands_reports import run_export, run_report

            return run_report(options) if options.command == "report" else run_export(options)
        from autograder.doctor import run_doctor

        return run_doctor(options.course)
    except OrderMattersError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 2
    except OSError as error:  # a disk that is full, a file where a folder should be
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
