"""Scores as Gradescope's autograder takes them: a `results.json` for each student.

An autograder on Gradescope writes `/autograder/results/results.json`; here that file is made ahead for every student.
`score` stands for the whole submission and overrides the sum of the tests, so that late penalties count; each test has
`score`, `max_score`, `status` ("passed" or "failed"), `name`, `number`, `output`, and `output_format`.

Source: https://gradescope-autograders.readthedocs.io/en/latest/specs/, "Output format".
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autograder.errors import OrderMattersError
from autograder.grading.marks import FinalScore, FinalScores

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the archive, the earliest that ZIP knows: the same scores make the same archive."""


def gradescope_results(
    student: FinalScore, maxima: Mapping[str, float], said: Mapping[str, str], seconds: float | None
) -> dict[str, Any]:
    """The results of one student.

    Args:
        maxima: points of each exercise.
        said: what the grader said, by exercise.
        seconds: how long grading took; None when unknown.
    """
    tests = []
    for place, (exercise, maximum) in enumerate(maxima.items(), start=1):
        points = student.exercises[exercise]
        output = "\n".join(part for part in (said.get(exercise, ""), student.comments.get(exercise, "")) if part)
        tests.append(
            {
                "name": exercise,
                "name_format": "text",
                "number": str(place),
                "score": points,
                "max_score": maximum,
                "status": "passed" if points >= maximum else "failed",
                "output": output,
                "output_format": "text",
            }
        )
    results: dict[str, Any] = {"score": student.score, "tests": tests}
    if student.late_penalty:
        results["output"] = f"{student.raw_score:g} points, less {student.late_penalty:g} for lateness"
    if seconds is not None:
        results["execution_time"] = round(seconds)
    return results


def write_gradescope(scores: FinalScores, results: Mapping[str, dict[str, Any]], place: Path) -> list[str]:
    """Write `<student>/results.json` for everybody who handed in, into a folder, or an archive if it ends in .zip.

    Raises:
        OrderMattersError: two students' names make the same folder.
    """
    files: dict[str, str] = {}
    for student in scores.students:
        if not student.submitted:
            continue
        name = f"{_folder(student.student)}/results.json"
        if name in files:
            raise OrderMattersError(f"two students share the folder {name}; rename one: {student.student!r}")
        files[name] = json.dumps(results[student.student], ensure_ascii=False, indent=2) + "\n"
    if place.suffix == ".zip":
        place.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in files.items():
                archive.writestr(zipfile.ZipInfo(name, EPOCH), text.encode("utf-8", "replace"), zipfile.ZIP_DEFLATED)
    else:
        for name, text in files.items():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="replace")
    return [f"{len(files)} files of results"]


def _folder(student: str) -> str:
    """A student's id as a folder's name on any system."""
    return re.sub(r'[\\/:*?"<>|\x00-\x1f]|^\.+', "_", student)
