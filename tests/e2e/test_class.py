"""The sample class through the real command: scores, mistakes, gradebook, notebooks, feedback."""

from __future__ import annotations

import csv
import re
import shutil
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from tests.e2e.helpers import (
    Document,
    Done,
    assert_schema,
    by_exercise,
    by_student,
    course_folder,
    grade,
    grade_here,
    max_score,
    notebook_path,
    read,
    run,
    scores,
    thorough_but,
    without_messages,
)
from tests.sample_class import ASSIGNMENTS, sample_class, write_class
from tests.sample_class.student import Student

SECOND = ASSIGNMENTS[1]
"""What does not depend on the lesson is tried with this one: it has a Chinese edition."""
FEW = tuple(f"student-{number:02d}" for number in (1, 6, 8, 10))
"""Of the other classes these go the whole way; test_sample_answers judges all their students, without kernels."""
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class GradedClass:
    root: Path
    assignment: str
    students: dict[str, Student]
    done: Done
    results: Document

    @property
    def submissions(self) -> dict[str, Document]:
        return by_student(self.results)


@pytest.fixture(scope="module", params=thorough_but(SECOND))
def graded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GradedClass:
    """A lesson's sample class, graded once: the second's by the command, the others' in this process."""
    root = course_folder(tmp_path_factory.mktemp("course") / "course")
    students = sample_class(request.param)
    if request.param != SECOND:
        students = {name: students[name] for name in FEW}
    write_class(root, request.param, root / "submitted", students)
    graded_by = grade if request.param == SECOND else grade_here
    done, results = graded_by(root, request.param, root / "submitted")
    return GradedClass(root, request.param, students, done, results)


second = pytest.mark.parametrize("graded", [SECOND], indirect=True)


def test_json_follows_the_schema(graded: GradedClass) -> None:
    """Keys, types, sums and order are the documented ones, for every kind of ending."""
    assert_schema(graded.results, graded.assignment)
    assert list(graded.submissions) == list(graded.students)


def test_right_answers_get_everything(graded: GradedClass) -> None:
    """Whatever the style, the file's form or the noise on stderr, right is right."""
    for name, student in graded.students.items():
        submission = graded.submissions[name]
        if student.is_right:
            assert submission["score"] == submission["max_score"] > 0, (student.about, submission)
            assert submission["outcome"] == "graded"


def test_mistakes_are_named(graded: GradedClass) -> None:
    """Exactly the exercises that are wrong lose points, each with its mistake; the others have all theirs."""
    for name, student in graded.students.items():
        found = {
            exercise["id"]: exercise["mistake"]
            for exercise in graded.submissions[name]["exercises"]
            if exercise["score"] < exercise["max_score"]
        }
        assert found == dict(student.lost), (name, student.about)


def test_endings_are_told(graded: GradedClass) -> None:
    """A dead kernel and an endless loop are partly graded, with the reason; everything else is graded."""
    for name, student in graded.students.items():
        submission = graded.submissions[name]
        assert submission["outcome"] == student.outcome, name
        assert (submission["reason"] or "").startswith(student.reason), name
        assert bool(submission["reason"]) == bool(student.reason), name


def test_what_was_not_judged_has_no_points(graded: GradedClass) -> None:
    """After a dead kernel: no points, no criteria, and the reason in each exercise's message."""
    for submission in graded.submissions.values():
        for exercise in submission["exercises"]:
            if exercise["mistake"] in ("not-reached", "timed-out"):
                assert exercise["score"] == 0.0
                assert exercise["criteria"] == []
                assert exercise["message"].startswith("Not judged: ")


def test_table_shows_the_class(graded: GradedClass) -> None:
    """Standard output has one row a student with the score, then the mistakes, the most frequent first."""
    assert "Traceback" not in graded.done.stdout + graded.done.stderr
    for name, submission in graded.submissions.items():
        row = next(line for line in graded.done.stdout.splitlines() if line.strip().startswith(name))
        assert f"{submission['score']:g} / {submission['max_score']:g}" in row
    ranking = graded.done.stdout.split("mistakes, the most frequent first")[1]
    counts = [int(line.split()[0]) for line in ranking.splitlines() if re.match(r" *\d+ ", line)]
    assert counts == sorted(counts, reverse=True)
    assert len(counts) > 3


def test_gradebook_holds_the_scores(graded: GradedClass) -> None:
    """nbgrader's own database has each exercise's points; only what is graded by hand is left to do."""
    with Gradebook(f"sqlite:///{graded.root}/gradebook.db", "order-matters") as gradebook:
        for name, submission in graded.submissions.items():
            record = gradebook.find_submission(graded.assignment, name)
            assert record.score == pytest.approx(submission["score"]), name
            assert record.max_score == max_score(submission)
            written = {item["id"] for item in submission["by_hand"]} & set(graded.students[name].answers)
            assert record.needs_manual_grade == bool(written), name
            for exercise, score in scores(submission).items():
                found = gradebook.find_grade(f"test-{exercise}", graded.assignment, graded.assignment, name)
                assert found.score == pytest.approx(score), (name, exercise)


@second
def test_export_shows_the_scores(graded: GradedClass) -> None:
    """`nbgrader export` writes them into its CSV."""
    done = run("nbgrader", "export", "--to", "grades.csv", cwd=graded.root)
    assert done.status == 0, done.stderr
    with (graded.root / "grades.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file) if row["assignment"] == graded.assignment}
    assert sorted(rows) == sorted(graded.submissions)
    for name, submission in graded.submissions.items():
        assert float(rows[name]["score"]) == pytest.approx(submission["score"]), name
        assert float(rows[name]["max_score"]) == max_score(submission)


def test_executed_notebooks_are_kept(graded: GradedClass) -> None:
    """autograded/ has each notebook that ran, where formgrader looks, with the student's own code in it."""
    for name, student in graded.students.items():
        notebook = read(notebook_path(graded.root, f"autograded/{name}", graded.assignment))
        code = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell.source for cell in notebook.cells}
        for exercise, answer in student.answers.items():
            assert code[exercise] == answer.strip("\n"), (name, exercise)
        for own in student.own_cells.values():
            assert own in [cell.source for cell in notebook.cells], name


def _feedback(graded: GradedClass, student: str, root: Path | None = None) -> str:
    page = (root or graded.root) / "feedback" / student / graded.assignment / f"{graded.assignment}.html"
    return page.read_text(encoding="utf-8")


def _text(page: str) -> str:
    """What the page says, without its marks."""
    return unescape(re.sub(r"<[^>]*>", "", page))


def test_feedback_says_what_was_lost(graded: GradedClass) -> None:
    """Each student's page has the score, and the message and the slug of every exercise that lost points."""
    for name, submission in graded.submissions.items():
        page = _text(_feedback(graded, name))
        assert f"{submission['score']:g} / {submission['max_score']:g}" in page
        for exercise in submission["exercises"]:
            if exercise["score"] < exercise["max_score"]:
                assert exercise["message"].replace("`", "") in page, (name, exercise["id"])
                assert exercise["mistake"] is None or exercise["mistake"] in page, (name, exercise["id"])


def _solutions(graded: GradedClass) -> list[str]:
    """The reference solutions' longer lines, as the instructor's notebook has them."""
    found = []
    for cell in read(notebook_path(graded.root, "source", graded.assignment)).cells:
        for part in re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", cell.source, flags=re.DOTALL):
            found += [line.strip() for line in part.splitlines() if len(line.strip()) > 35]
    return found


def test_feedback_gives_nothing_away(graded: GradedClass) -> None:
    """No page holds a hidden test, the examiner's name, or a line of the reference that the student did not write."""
    solutions = _solutions(graded)
    assert len(solutions) > 4
    for name, student in graded.students.items():
        page = unescape(_feedback(graded, name))
        for secret in ("BEGIN HIDDEN", "autograder.examiner", "BEGIN SOLUTION", "from autograder", "<script"):
            assert secret not in page, (name, secret)
        own = "\n".join([*student.answers.values(), *student.own_cells.values()])
        for line in solutions:
            assert line in own or line not in page, (name, line)


@second
def test_chinese_differs_in_messages_only(graded: GradedClass, tmp_path: Path) -> None:
    """`--language zh`, another run with the same key: the same points and mistakes; messages and pages are Chinese."""
    root = course_folder(tmp_path / "course")
    shutil.copyfile(graded.root / ".course-key", root / ".course-key")
    names = ("student-06", "student-09", "student-14")
    for name in names:  # as one file a student, in another course folder with the same key
        (root / "files").mkdir(exist_ok=True)
        shutil.copyfile(
            notebook_path(graded.root, f"submitted/{name}", graded.assignment), root / f"files/{name}.ipynb"
        )
    _, results = grade_here(root, graded.assignment, root / "files", "--language", "zh")
    assert_schema(results, graded.assignment, "zh")
    found = by_student(results)
    assert tuple(found) == names
    for name, submission in found.items():
        assert without_messages(submission) == without_messages(graded.submissions[name])
        english = by_exercise(graded.submissions[name])
        for exercise in submission["exercises"]:
            texts = [exercise["message"], *(part["message"] for part in exercise["criteria"] if part["message"])]
            for text in texts:
                assert re.search(r"[\u4e00-\u9fff]", text), text
            assert exercise["message"] != english[exercise["id"]]["message"]
            assert exercise["message"].replace("`", "") in _text(_feedback(graded, name, root))
    assert re.search(r"[\u4e00-\u9fff]", found["student-14"]["reason"])
    assert 'lang="zh-CN"' in _feedback(graded, "student-06", root)


@second
def test_plain_nbgrader_gives_the_same_scores(graded: GradedClass, tmp_path: Path) -> None:
    """`nbgrader generate_assignment`, then `nbgrader autograde`, without our command: release and scores are ours.

    Of one lesson: the way is the same for all, and each lesson's judgement, in process and outside, has its tests.
    """
    root, assignment = course_folder(tmp_path / "course"), graded.assignment
    built = read(notebook_path(root, "release", assignment))
    shutil.rmtree(root / "release")
    names = ["student-08", "student-01", "student-04", "student-10"]  # mistakes, right, warnings, blank
    for name in names:
        place = notebook_path(root, f"submitted/{name}", assignment)
        place.parent.mkdir(parents=True)
        shutil.copyfile(notebook_path(graded.root, f"submitted/{name}", assignment), place)
    for command in (("generate_assignment", assignment, "--create"), ("autograde", assignment, "--create")):
        done = run("nbgrader", *command, cwd=root)
        assert done.status == 0, done.stderr
    generated = read(notebook_path(root, "release", assignment))
    assert [_content(cell) for cell in generated.cells] == [_content(cell) for cell in built.cells]
    with Gradebook(f"sqlite:///{root}/gradebook.db", "order-matters") as gradebook:
        for name in names:
            for exercise, score in scores(graded.submissions[name]).items():
                found = gradebook.find_grade(f"test-{exercise}", assignment, assignment, name)
                assert found.score == pytest.approx(score), (name, exercise)
                assert not found.needs_manual_grade, (name, exercise)


def _content(cell: Document) -> tuple[object, ...]:
    """What must agree between two releases: everything but outputs, which are empty in both."""
    return cell["id"], cell["cell_type"], cell["source"], cell["metadata"], cell.get("outputs", [])


@second
@pytest.mark.parametrize(
    ("edition", "verdict"),
    [pytest.param("release", "VALIDATION FAILED", marks=pytest.mark.thorough), ("source", "Success!")],
)
def test_nbgrader_validate(graded: GradedClass, edition: str, verdict: str) -> None:
    """`nbgrader validate` fails on the released notebook and succeeds on the instructor's."""
    done = run("nbgrader", "validate", notebook_path(graded.root, edition, graded.assignment), cwd=graded.root)
    assert verdict in done.stdout, done.stdout + done.stderr
