"""`autograder grade --only`: after a change of one exercise, the class is judged in it alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from tests.conftest import TINY, Answer
from tests.e2e.helpers import (
    COMMANDS,
    Document,
    by_exercise,
    by_student,
    grade_here,
    notebook_path,
    read,
    without_seconds,
)

pytestmark = pytest.mark.slow

WRONG = "def pair_frequencies(d_model, base=1e4):\n    return torch.zeros(d_model // 2, dtype=torch.float64)"
ENDLESS = "def pair_frequencies(d_model, base=1e4):\n    import time\n    while True: time.sleep(1)"
REFLECTION = "I saw that order is lost."


def hand_in(root: Path, student: str, answered: Answer, **code: str) -> None:
    submitted = answered(reflection=REFLECTION, **code)
    (root / "handed-in").mkdir(exist_ok=True)
    (root / "handed-in" / f"{student}.ipynb").write_text(json.dumps(submitted), encoding="utf-8")


def change_test(root: Path) -> None:
    """The hidden test of the second exercise finds every right answer wrong from now on."""
    path = notebook_path(root, "source", TINY)
    text = path.read_text(encoding="utf-8")
    changed = text.replace(
        'grade(\\"causal-mask\\", causal_mask)',
        'grade(\\"causal-mask\\", lambda length, device=None: ~causal_mask(length, device=device))',
    )
    assert changed != text
    path.write_text(changed, encoding="utf-8")


def entries(root: Path) -> list[Document]:
    text = (root / "journal" / f"{TINY}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.startswith('{"key"') and line.endswith("}")]


def cells(root: Path, student: str) -> dict[str, Any]:
    return {cell["id"]: dict(cell) for cell in read(notebook_path(root, f"autograded/{student}", TINY)).cells}


def only(root: Path, name: str, *options: str) -> tuple[str, dict[str, Document]]:
    """`grade --only causal-mask`: what the terminal says, and the results by student."""
    done, results = grade_here(root, TINY, root / "handed-in", "--only", "causal-mask", *options, name=name)
    return done.stdout, by_student(results)


def test_a_changed_exercise_is_judged_anew_and_the_rest_stays(tiny_course: Path, answered: Answer) -> None:
    """Verdicts, outputs and marks by hand stay; a new and a changed submission are graded whole; nothing runs twice."""
    root = tiny_course
    hand_in(root, "student-01", answered)
    hand_in(root, "student-02", answered, pair_frequencies=ENDLESS)
    hand_in(root, "student-03", answered)
    _, results = grade_here(root, TINY, root / "handed-in", name="first")
    first = by_student(results)
    executed = {student: cells(root, student) for student in ("student-01", "student-02")}
    with Gradebook(f"sqlite:///{root}/gradebook.db", "order-matters") as gradebook:
        mark = gradebook.find_grade("reflection", TINY, TINY, "student-01")
        mark.manual_score, mark.needs_manual_grade = 2.5, False
        gradebook.find_comment("reflection", TINY, TINY, "student-01").manual_comment = "Well seen."
        gradebook.db.commit()

    change_test(root)
    hand_in(root, "student-03", answered, pair_frequencies=WRONG)
    hand_in(root, "student-04", answered)
    said, second = only(root, "second")
    assert "--only causal-mask: submissions judged anew in that alone: 2; graded whole" in said
    assert "no earlier result to build on: 2." in said
    for student in ("student-01", "student-02"):
        before, after = by_exercise(first[student]), by_exercise(second[student])
        assert after["pair-frequencies"] == before["pair-frequencies"]
        assert after["causal-mask"]["score"] < before["causal-mask"]["score"] == 1.0
        apart = {"exercises", "score", "seconds"}
        assert [(key, second[student][key]) for key in second[student] if key not in apart] == [
            (key, first[student][key]) for key in first[student] if key not in apart
        ]
        now = cells(root, student)
        assert [cell for cell in now if now[cell] != executed[student][cell]] == ["test-causal-mask"]
    assert by_exercise(second["student-03"])["pair-frequencies"]["score"] < 2.0
    assert by_exercise(second["student-04"])["pair-frequencies"]["score"] == 2.0
    with Gradebook(f"sqlite:///{root}/gradebook.db", "order-matters") as gradebook:
        record = gradebook.find_submission(TINY, "student-01")
        assert record.score == pytest.approx(second["student-01"]["score"] + 2.5)
        assert not record.needs_manual_grade
        assert gradebook.find_comment("reflection", TINY, TINY, "student-01").comment == "Well seen."
    assert "2.5 / 3" in (root / "feedback" / "student-01" / TINY / f"{TINY}.html").read_text(encoding="utf-8")

    said, again = only(root, "again")
    assert "4 unchanged since they were last graded" in said
    assert "judged anew in that alone: 0; graded whole, for there was no earlier result to build on: 0." in said
    assert again == second

    done, results = grade_here(root, TINY, root / "handed-in", name="plain")
    assert "2 unchanged since they were last graded" in done.stdout
    assert "--only" not in done.stdout
    assert {entry["result"]["student"] for entry in entries(root)[-2:]} == {"student-01", "student-02"}
    plain = by_student(results)
    assert without_seconds(plain["student-01"]) == without_seconds(second["student-01"])

    said, known = only(root, "known")
    assert "4 unchanged since they were last graded" in said
    assert known == plain
    with Gradebook(f"sqlite:///{root}/gradebook.db", "order-matters") as gradebook:
        assert gradebook.find_grade("reflection", TINY, TINY, "student-01").manual_score == 2.5


SUBMISSIONS = 8


@pytest.mark.thorough
def test_a_killed_run_is_taken_up(tiny_course: Path, answered: Answer) -> None:
    """What it had judged anew is not run again, and in the end everything is as one run leaves it."""
    root = tiny_course
    for number in range(SUBMISSIONS):
        hand_in(root, f"student-{number:02d}", answered, **({"pair_frequencies": WRONG} if number % 2 else {}))
    _, results = grade_here(root, TINY, root / "handed-in", name="first")
    change_test(root)
    command = [COMMANDS / "autograder", "grade", TINY, "--submissions", "handed-in", "--only", "causal-mask"]
    process = subprocess.Popen(
        [*command, "--workers", "1"],
        cwd=root,
        env={**os.environ, "PATH": f"{COMMANDS}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while len(entries(root)) < SUBMISSIONS + 2 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    killed_at = len(entries(root))
    assert SUBMISSIONS + 2 <= killed_at < 2 * SUBMISSIONS

    said, resumed = only(root, "resumed")
    assert f"{killed_at - SUBMISSIONS} unchanged since they were last graded" in said
    kept = [(entry["key"], entry["result"]["student"]) for entry in entries(root)]
    assert len(kept) == len(set(kept)) == 2 * SUBMISSIONS
    first = by_student(results)
    for student, submission in resumed.items():
        before, after = by_exercise(first[student]), by_exercise(submission)
        assert after["pair-frequencies"] == before["pair-frequencies"]
        assert after["causal-mask"]["score"] < 1.0
    _, undisturbed = only(root, "undisturbed", "--rerun")
    assert [without_seconds(found) for found in resumed.values()] == [
        without_seconds(found) for found in undisturbed.values()
    ]
