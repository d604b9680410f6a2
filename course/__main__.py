"""`python -m course build [--check]`: make the notebooks of the lessons, or say which ones are out of date."""

from __future__ import annotations

import argparse
import logging
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m course", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("build", help="lessons -> source/ -> release/")
    command.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a notebook is out of date")
    options = parser.parse_args(arguments)
    logging.getLogger("traitlets").setLevel(logging.WARNING)

    from course.build import Course, LessonError, build, differences

    course = Course()
    try:
        if options.check:
            stale = list(differences(course))
            for place in stale:
                print(f"out of date: {place}. Run `python -m course build` and commit the result.", file=sys.stderr)
            return 1 if stale else 0
        for place in build(course, course.root):
            print(f"built {place}")
    except LessonError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
