"""nbgrader's own gradebook, on real SQLite: scores arrive and can be read, marks given by hand stay, lateness costs."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode
from nbgrader.api import Gradebook

from autograder.errors import OrderMattersError
from autograder.grading import one, reasons
from autograder.grading.assignments import load_assignment
from autograder.grading.gradebook import ClassBook
from autograder.grading.marks import HandMark, HandMarks, final_scores, read_scores
from autograder.notebooks.fitting import fit
from autograder.notebooks.reading import parse_notebook
from autograder.results import Outcome, SubmissionResult, Text, Verdict
from tests.conftest import TINY, Answer

pytestmark = pytest.mark.slow  # nbgrader starts alembic for a new gradebook


@contextmanager
def opened(root: Path) -> Iterator[Any]:
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}", "order-matters") as gradebook:
        yield gradebook


def scores(root: Path, student: str) -> dict[str, tuple[float | None, float | None, bool]]:
    """(automatic score, score by hand, needs a mark by hand) of every graded cell."""
    with opened(root) as gradebook:
        notebook = gradebook.find_submission_notebook(TINY, TINY, student)
        return {
            grade.name: (grade.auto_score, grade.manual_score, grade.needs_manual_grade) for grade in notebook.grades
        }


@pytest.fixture(scope="module")
def new_gradebook(built_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gradebook as the first run of grading makes it; once, for that takes seconds."""
    root = tmp_path_factory.mktemp("gradebook") / "course"
    shutil.copytree(built_once, root)
    ClassBook(load_assignment(root, TINY))
    return root / "gradebook.db"


@pytest.fixture
def tiny_course(tiny_course: Path, new_gradebook: Path) -> Path:
    """The tiny course with a gradebook of its own."""
    shutil.copy(new_gradebook, tiny_course)
    return tiny_course


@pytest.fixture
def book(tiny_course: Path) -> ClassBook:
    return ClassBook(load_assignment(tiny_course, TINY))


@pytest.fixture
def save(
    tiny_course: Path, book: ClassBook, tiny_source: NotebookNode, tiny_release: NotebookNode, answered: Answer
) -> Callable[..., HandMarks]:
    """Saves a result with these points, with the notebook as grading leaves it; returns what people gave."""

    def run(student: str, pair: float, mask: float, submitted: Path | None = None, seen: str = "seen by") -> HandMarks:
        text = nbformat.writes(answered(reflection=f"{seen} {student}"))
        notebook = fit(parse_notebook(text.encode(), "a.ipynb"), tiny_source, tiny_release).notebook
        verdicts = {
            "pair-frequencies": Verdict("pair-frequencies", pair, 2.0, None, Text("said", "说"), ()),
            "causal-mask": Verdict("causal-mask", mask, 1.0, None, Text("said", "说"), ()),
        }
        one.write_verdicts(notebook, verdicts, "en")
        result = SubmissionResult(student, Outcome.GRADED, None, 1.0, tuple(verdicts.values()))
        return book.save(result, nbformat.writes(notebook), submitted)

    return run


def reject(book: ClassBook, student: str) -> None:
    why = Text("no notebook", "没有笔记本")
    verdicts = tuple(
        reasons.without_verdict(exercise, points, "rejected", why, judged=False)
        for exercise, points in (("pair-frequencies", 2.0), ("causal-mask", 1.0))
    )
    book.save(SubmissionResult(student, Outcome.REJECTED, why, 0.0, verdicts), None, None)


def test_the_assignment_is_known_with_its_points(tiny_course: Path, book: ClassBook) -> None:
    """As after `nbgrader generate_assignment`: 3 points by test, 3 by hand."""
    with opened(tiny_course) as gradebook:
        notebook = gradebook.find_notebook(TINY, TINY)
        assert {cell.name: cell.max_score for cell in notebook.grade_cells} == {
            "test-pair-frequencies": 2.0,
            "test-causal-mask": 1.0,
            "reflection": 3.0,
        }
        assert {cell.name for cell in notebook.solution_cells} == {"pair-frequencies", "causal-mask", "reflection"}
    assert book.db_url == f"sqlite:///{tiny_course / 'gradebook.db'}"


def test_scores_are_written(tiny_course: Path, save: Callable[..., None]) -> None:
    """Partial credit to the half point; free text waits for a mark by hand."""
    save("ada", 1.5, 1.0)
    assert scores(tiny_course, "ada") == {
        "test-pair-frequencies": (1.5, None, False),
        "test-causal-mask": (1.0, None, False),
        "reflection": (None, None, True),
    }
    with opened(tiny_course) as gradebook:
        submission = gradebook.find_submission(TINY, "ada")
        assert (submission.score, submission.max_score, submission.needs_manual_grade) == (2.5, 6.0, True)


def test_the_executed_notebook_lies_where_formgrader_looks(tiny_course: Path, save: Callable[..., None]) -> None:
    """autograded/<student>/<assignment>/<assignment>.ipynb, valid, with the student's text."""
    save("ada", 2.0, 1.0)
    path = tiny_course / "autograded" / "ada" / TINY / f"{TINY}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert "seen by ada" in [cell.source for cell in notebook.cells]


def test_a_regrade_replaces_scores_and_keeps_marks_given_by_hand(tiny_course: Path, save: Callable[..., None]) -> None:
    """Also a comment, a mark on the free text, and one that overrules a test."""
    save("ada", 1.0, 0.0)
    with opened(tiny_course) as gradebook:
        gradebook.find_grade("reflection", TINY, TINY, "ada").manual_score = 2.5
        gradebook.find_grade("test-causal-mask", TINY, TINY, "ada").manual_score = 0.5
        gradebook.find_comment("reflection", TINY, TINY, "ada").manual_comment = "well seen"
        gradebook.db.commit()
    save("ada", 2.0, 0.0)
    found = scores(tiny_course, "ada")
    assert found["test-pair-frequencies"] == (2.0, None, False)
    assert found["test-causal-mask"][:2] == (0.0, 0.5)
    assert found["reflection"][1] == 2.5
    with opened(tiny_course) as gradebook:
        assert gradebook.find_comment("reflection", TINY, TINY, "ada").manual_comment == "well seen"
        assert gradebook.find_submission(TINY, "ada").score == 5.0


@pytest.mark.parametrize(("seen", "needed"), [("seen by", False), ("seen anew by", True)])
def test_only_a_text_that_changed_waits_for_another_mark(
    tiny_course: Path, save: Callable[..., None], seen: str, needed: bool
) -> None:
    """A regrade of what was marked already does not fill the queue of the person who marks."""
    save("ada", 1.0, 0.0)
    assert scores(tiny_course, "ada")["reflection"] == (None, None, True)
    with opened(tiny_course) as gradebook:
        grade = gradebook.find_grade("reflection", TINY, TINY, "ada")
        grade.manual_score, grade.needs_manual_grade = 2.5, False
        gradebook.db.commit()
    save("ada", 2.0, 0.0, seen=seen)
    assert scores(tiny_course, "ada")["reflection"] == (None, 2.5, needed)


def test_students_do_not_touch_each_other(tiny_course: Path, save: Callable[..., None]) -> None:
    """Any name a student may have, each with a row of its own."""
    names = ["ada", "O'Brien, Pat", "李雷", "a b; DROP TABLE student"]
    for number, name in enumerate(names):
        save(name, 0.5 * number, 1.0)
    assert [scores(tiny_course, name)["test-pair-frequencies"][0] for name in names] == [0.0, 0.5, 1.0, 1.5]


def test_a_rejected_submission_has_0_and_needs_no_mark(tiny_course: Path, book: ClassBook) -> None:
    """It counts, with no points, and does not wait in formgrader's queue."""
    reject(book, "ada")
    assert scores(tiny_course, "ada") == dict.fromkeys(
        ("test-pair-frequencies", "test-causal-mask", "reflection"), (0.0, None, False)
    )
    assert not book.autograded("ada").exists()


def test_a_rejected_resubmission_takes_back_points(
    tiny_course: Path, book: ClassBook, save: Callable[..., None]
) -> None:
    """Graded before, unreadable now: 0, and the old executed notebook is gone; then right again."""
    save("ada", 2.0, 1.0)
    reject(book, "ada")
    assert scores(tiny_course, "ada")["test-pair-frequencies"][0] == 0.0
    assert not book.autograded("ada").exists()
    save("ada", 2.0, 1.0)
    assert scores(tiny_course, "ada")["test-pair-frequencies"][0] == 2.0
    assert scores(tiny_course, "ada")["reflection"] == (None, None, True)


TIMESTAMPS = {
    "2026-03-01 12:00:00 UTC": "2026-03-01 12:00:00",
    "2026-03-01 20:00:00 +0800": "2026-03-01 12:00:00",
    "2026-03-01 12:00:00.000000 UTC\n": "2026-03-01 12:00:00",
    "sometime": None,
    "": None,
}


@pytest.mark.parametrize(("written", "stored"), TIMESTAMPS.items(), ids=TIMESTAMPS)
def test_timestamp_txt_says_when(
    tiny_course: Path, tmp_path: Path, save: Callable[..., None], written: str, stored: str | None
) -> None:
    """nbgrader's convention: a file beside the notebook, stored in UTC; nonsense in it is no date and no error."""
    notebook = tmp_path / "submitted" / "ada" / TINY / "x.ipynb"
    notebook.parent.mkdir(parents=True)
    (notebook.parent / "timestamp.txt").write_text(written, encoding="utf-8")
    save("ada", 2.0, 1.0, notebook)
    with opened(tiny_course) as gradebook:
        timestamp = gradebook.find_submission(TINY, "ada").timestamp
        assert (str(timestamp) if timestamp else None) == stored


LATE = """
from nbgrader.plugins import BasePlugin


class HalfPointAnHour(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return 0.5 * total_seconds_late / 3600


c.AssignLatePenalties.plugin_class = HalfPointAnHour
"""


def test_lateness_costs_what_nbgraders_plugin_says(
    tiny_course: Path, tmp_path: Path, answered: Answer, monkeypatch: pytest.MonkeyPatch, request: Any
) -> None:
    """A plugin in nbgrader_config.py is asked with the seconds past the due date."""
    config = tiny_course / "nbgrader_config.py"
    config.write_text(config.read_text(encoding="utf-8") + LATE, encoding="utf-8")
    request.getfixturevalue("book")
    with opened(tiny_course) as gradebook:
        gradebook.update_or_create_assignment(TINY, duedate="2026-03-01 12:00:00 UTC")
    save = request.getfixturevalue("save")
    notebook = tmp_path / "submitted" / "ada" / TINY / "x.ipynb"
    notebook.parent.mkdir(parents=True)
    (notebook.parent / "timestamp.txt").write_text("2026-03-01 15:00:00 UTC", encoding="utf-8")
    assert save("ada", 2.0, 1.0, notebook) == HandMarks({}, 1.5)
    with opened(tiny_course) as gradebook:
        submission = gradebook.find_submission(TINY, "ada")
        assert submission.total_seconds_late == 3 * 3600
        (late,) = submission.notebooks
        assert late.late_submission_penalty == 1.5
        (final,) = final_scores(gradebook, TINY).students
        assert (final.raw_score, final.late_penalty, final.score) == (3.0, 1.5, 1.5)
        assert scores(tiny_course, "ada")["test-pair-frequencies"][0] == 2.0


def test_a_due_date_set_by_the_instructor_stays(tiny_course: Path, book: ClassBook) -> None:
    """Registering the assignment for another run of grading changes nothing that was set by hand."""
    with opened(tiny_course) as gradebook:
        gradebook.update_or_create_assignment(TINY, duedate="2026-03-01 12:00:00 UTC")
    ClassBook(load_assignment(tiny_course, TINY))
    with opened(tiny_course) as gradebook:
        assert str(gradebook.find_assignment(TINY).duedate) == "2026-03-01 12:00:00"


def test_another_release_with_the_same_exercises_goes_on(tiny_course: Path, save: Callable[..., None]) -> None:
    """Prose and tests may be mended in the middle of a term; scores stay."""
    save("ada", 2.0, 1.0)
    assignment = load_assignment(tiny_course, TINY)
    for cell in assignment.source.cells:
        cell.source += "\n# mended"
    ClassBook(assignment)
    assert scores(tiny_course, "ada")["test-pair-frequencies"][0] == 2.0


def test_a_release_with_other_exercises_is_a_clear_error(tiny_course: Path, save: Callable[..., None]) -> None:
    """The gradebook is not half changed: the error says what to do, and the scores are still there."""
    save("ada", 2.0, 1.0)
    assignment = load_assignment(tiny_course, TINY)
    changed = copy.deepcopy(assignment.source)
    changed.cells = [cell for cell in changed.cells if "causal-mask" not in cell["id"]]
    object.__setattr__(assignment, "source", changed)
    with pytest.raises(OrderMattersError, match="nbgrader db assignment remove"):
        ClassBook(assignment)
    assert scores(tiny_course, "ada")["test-causal-mask"][0] == 1.0


def test_a_course_without_config_uses_nbgraders_defaults(tiny_course: Path) -> None:
    """nbgrader_config.py may be missing."""
    (tiny_course / "nbgrader_config.py").unlink()
    assert ClassBook(load_assignment(tiny_course, TINY)).db_url.endswith("gradebook.db")


def mark_by_hand(root: Path) -> None:
    """What a teacher does in formgrader: a mark and a comment for the text, another mark for a test, an extra point."""
    with opened(root) as gradebook:
        grade = gradebook.find_grade("reflection", TINY, TINY, "ada")
        grade.manual_score, grade.needs_manual_grade = 2.5, False
        gradebook.find_comment("reflection", TINY, TINY, "ada").manual_comment = "well seen"
        gradebook.find_grade("test-causal-mask", TINY, TINY, "ada").manual_score = 0.5
        gradebook.find_grade("test-pair-frequencies", TINY, TINY, "ada").extra_credit = 1.0
        gradebook.db.commit()


def test_saving_tells_what_people_gave(tiny_course: Path, save: Callable[..., HandMarks]) -> None:
    """Nothing at first; after somebody has marked, each mark and comment by exercise."""
    assert save("ada", 1.0, 0.0) == HandMarks({}, 0.0)
    mark_by_hand(tiny_course)
    assert save("ada", 1.0, 0.0) == HandMarks(
        {
            "reflection": HandMark(2.5, 0.0, "well seen"),
            "causal-mask": HandMark(0.5),
            "pair-frequencies": HandMark(None, 1.0),
        }
    )


def test_final_scores_are_nbgraders(tiny_course: Path, save: Callable[..., HandMarks]) -> None:
    """Of every student it knows, with marks by hand; the sum is nbgrader's own."""
    save("ada", 1.0, 0.0)
    save("emmy", 2.0, 1.0)
    mark_by_hand(tiny_course)
    with opened(tiny_course) as gradebook:
        gradebook.update_or_create_student("kurt", first_name="K", last_name="G", email="k@x.test", lms_user_id="7")
        expected = gradebook.find_submission(TINY, "ada").score
    found = read_scores(tiny_course, TINY)
    assert found.maxima == {"pair-frequencies": 2.0, "causal-mask": 1.0, "reflection": 3.0}
    ada, emmy, kurt = found.students
    assert (ada.raw_score, ada.score, ada.max_score, ada.waiting) == (expected, 5.0, 6.0, 0)
    assert ada.exercises == {"pair-frequencies": 2.0, "causal-mask": 0.5, "reflection": 2.5}
    assert ada.comments == {"reflection": "well seen"}
    assert (emmy.score, emmy.waiting, emmy.submitted) == (3.0, 1, True)
    assert (kurt.student, kurt.first_name, kurt.last_name, kurt.email, kurt.lms_user_id) == (
        "kurt",
        "K",
        "G",
        "k@x.test",
        "7",
    )
    assert (kurt.submitted, kurt.score, kurt.timestamp) == (False, 0.0, None)


def test_scores_of_an_unknown_assignment(tiny_course: Path, book: ClassBook) -> None:
    """The known ones are listed."""
    with pytest.raises(OrderMattersError, match=f"no assignment '09-none' \\(it has: {TINY}\\)"):
        read_scores(tiny_course, "09-none")
