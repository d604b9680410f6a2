"""One class with every bad input that people hand in: each is a typed outcome, and its neighbours are untouched."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from tests.e2e.damaged_cells import DAMAGED_CELLS
from tests.e2e.damaged_files import DAMAGED_FILES
from tests.e2e.helpers import (
    Document,
    Done,
    assert_schema,
    by_exercise,
    by_student,
    course_folder,
    grade,
    grade_here,
    notebook_path,
    read,
    short_lesson,
    without_seconds,
    write,
)
from tests.e2e.kinds import EXERCISES, JUDGED, LESSON, OTHER, REJECTED, answered
from tests.sample_class.student import plain, with_mark

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("bad-submissions")]

MENDED = {**DAMAGED_FILES, **DAMAGED_CELLS}
RUN = {**JUDGED, **MENDED}
KINDS_PROMISED = 40


@dataclass(frozen=True)
class BadClass:
    root: Path
    done: Done
    results: Document
    report: str

    @property
    def submissions(self) -> dict[str, Document]:
        return by_student(self.results)


def _hand_in(root: Path, folder: Path) -> None:
    release = read(notebook_path(root, "release", LESSON))
    for student, (data, _) in REJECTED.items():
        folder.joinpath(student).mkdir()
        folder.joinpath(student, "work.ipynb").write_bytes(data)
    for number, (student, kind) in enumerate(RUN.items()):
        name = (f"{LESSON}/{LESSON}", "Untitled (3)", "作业 final.v2")[number % 3]
        path = folder / student / f"{name}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(kind.file(release))
    right = answered(release)
    folder.joinpath("cut-off.ipynb").write_bytes(plain(right)[:2000])
    folder.joinpath("wrong-lesson.ipynb").write_bytes(notebook_path(root, "release", OTHER).read_bytes())
    folder.joinpath("empty-folder", LESSON).mkdir(parents=True)
    folder.joinpath("nothing").mkdir()
    folder.joinpath("a-folder", "work.ipynb").mkdir(parents=True)
    for name in ("final.ipynb", "final (1).ipynb"):
        write(right, folder / "two-notebooks" / name)
    folder.joinpath("broken-link").mkdir()
    folder.joinpath("broken-link", "work.ipynb").symlink_to(folder / "nowhere.ipynb")
    # The neighbours: right answers, in each of the three layouts, first, last and in the middle of the alphabet.
    write(right, folder / "aaron" / LESSON / f"{LESSON}.ipynb")
    write(right, folder / "李 雷" / "我的作业 (1).ipynb")
    folder.joinpath("marked.ipynb").write_bytes(with_mark(right))
    # Somebody who handed in another lesson only, and files that no student handed in.
    write(right, folder / "elsewhere" / OTHER / f"{OTHER}.ipynb")
    folder.joinpath("grades.csv").write_text("student,score\n", encoding="utf-8")
    folder.joinpath(".ipynb_checkpoints").mkdir()


MORE_REJECTED = {
    "cut-off": "is not JSON",
    "wrong-lesson": f"This is the notebook of {OTHER}, not of {LESSON}.",
    "empty-folder": "There is no notebook (.ipynb)",
    "nothing": "There is no notebook (.ipynb)",
    "a-folder": "work.ipynb is not a file",
    "two-notebooks": "It is not clear which notebook counts: final (1).ipynb, final.ipynb.",
    "broken-link": "work.ipynb",
}
NEIGHBOURS = ("aaron", "marked", "李 雷")
ALL_REJECTED = {**{name: why for name, (_, why) in REJECTED.items()}, **MORE_REJECTED}


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> BadClass:
    """A short lesson, graded once for a class in which almost everything goes wrong."""
    root = course_folder(tmp_path_factory.mktemp("course") / "course")
    short_lesson(root, LESSON, EXERCISES)
    folder = root / "handed in"
    folder.mkdir()
    _hand_in(root, folder)
    done, results = grade(root, LESSON, folder)
    report = (root / "reports" / f"{LESSON}.html").read_text(encoding="utf-8")
    return BadClass(root, done, results, unescape(report))


def test_everybody_has_a_result(bad: BadClass) -> None:
    """One result a student, of the documented form; files that are no submissions are not taken for any."""
    assert_schema(bad.results, LESSON)
    assert set(bad.submissions) == {*ALL_REJECTED, *RUN, *NEIGHBOURS}


@pytest.mark.parametrize("student", NEIGHBOURS)
def test_neighbours_are_untouched(bad: BadClass, student: str) -> None:
    """Right answers beside all this get full marks, in every layout of the folder, with a byte order mark too."""
    submission = bad.submissions[student]
    assert submission["outcome"] == "graded"
    assert submission["score"] == submission["max_score"] == 6.0


@pytest.mark.parametrize("student", ALL_REJECTED)
def test_what_cannot_be_graded_is_rejected(bad: BadClass, student: str) -> None:
    """Rejected, with the reason in the result, the feedback page and each exercise; no points, no executed notebook."""
    submission = bad.submissions[student]
    assert submission["outcome"] == "rejected"
    assert ALL_REJECTED[student] in submission["reason"]
    assert submission["score"] == 0.0
    assert {exercise["mistake"] for exercise in submission["exercises"]} == {"rejected"}
    page = bad.root / "feedback" / student / LESSON / f"{LESSON}.html"
    assert submission["reason"] in unescape(page.read_text(encoding="utf-8"))
    assert not notebook_path(bad.root, f"autograded/{student}", LESSON).exists()


@pytest.mark.parametrize("student", RUN)
def test_what_runs_is_judged(bad: BadClass, student: str) -> None:
    """Outcome, reason and every exercise's mistake are the expected ones; nothing earns points by a trick."""
    kind, submission = RUN[student], bad.submissions[student]
    assert submission["outcome"] == kind.outcome, submission["reason"]
    assert (submission["reason"] or "").startswith(kind.reason)
    found = {
        name: "full" if exercise["score"] == exercise["max_score"] else exercise["mistake"]
        for name, exercise in by_exercise(submission).items()
    }
    assert found == kind.exercises
    assert notebook_path(bad.root, f"autograded/{student}", LESSON).exists()


@pytest.mark.parametrize("student", [*RUN, *ALL_REJECTED, *NEIGHBOURS])
def test_repairs_are_told(bad: BadClass, student: str) -> None:
    """Those of the kind and no others, in the results and the class report; never on the student's page."""
    repairs = bad.submissions[student]["repairs"]
    assert repairs == list(RUN[student].repairs if student in RUN else ())
    page = unescape((bad.root / "feedback" / student / LESSON / f"{LESSON}.html").read_text(encoding="utf-8"))
    for repair in repairs:
        assert repair in bad.report
        assert repair not in page


def test_the_terminal_counts_the_repaired(bad: BadClass) -> None:
    """One line for all of them."""
    repaired = sum(bool(kind.repairs) for kind in RUN.values())
    assert f"repaired: {repaired} notebooks (listed in the class report)" in bad.done.stdout


def test_there_are_as_many_kinds_as_promised() -> None:
    """At least forty kinds in one class, most of which keep every point of a right answer."""
    assert len({*RUN, *ALL_REJECTED}) == len(RUN) + len(ALL_REJECTED) >= KINDS_PROMISED
    assert sum(kind.exercises == dict.fromkeys(EXERCISES, "full") for kind in MENDED.values()) >= KINDS_PROMISED


def test_gradebook_has_everybody(bad: BadClass) -> None:
    """nbgrader's database has the same scores, 0 for the rejected ones, and nothing left to grade by hand."""
    with Gradebook(f"sqlite:///{bad.root}/gradebook.db", "order-matters") as gradebook:
        for student, submission in bad.submissions.items():
            record = gradebook.find_submission(LESSON, student)
            assert record.score == pytest.approx(submission["score"]), student
            assert not record.needs_manual_grade, student


def test_regrading(bad: BadClass) -> None:
    """Handed in again, now empty: the old points and notebook are gone. The same again: the same but for `seconds`."""
    again = bad.root / "again"
    again.mkdir()
    (again / "aaron.ipynb").write_bytes(b"")
    release = read(notebook_path(bad.root, "release", LESSON))
    write(answered(release), again / "marked.ipynb")
    (again / "nonsense.ipynb").write_bytes(RUN["nonsense"].file(release))
    _, results = grade_here(bad.root, LESSON, again, name="again")
    found = by_student(results)
    assert (found["aaron"]["outcome"], found["aaron"]["score"]) == ("rejected", 0.0)
    for student in ("marked", "nonsense"):
        assert without_seconds(found[student]) == without_seconds(bad.submissions[student])
    assert not notebook_path(bad.root, "autograded/aaron", LESSON).exists()
    with Gradebook(f"sqlite:///{bad.root}/gradebook.db", "order-matters") as gradebook:
        assert gradebook.find_submission(LESSON, "aaron").score == 0.0
        assert gradebook.find_submission(LESSON, "marked").score == 6.0


def test_results_are_plain_json(bad: BadClass) -> None:
    """The file holds no NaN, and every reason is one line."""
    text = (bad.root / "results.json").read_text(encoding="utf-8")
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    for submission in bad.submissions.values():
        assert not re.search(r"[\r\n]", submission["reason"] or "")
