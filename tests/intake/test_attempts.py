"""Which attempt counts: the latest that can be read; what is unclear is never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.intake.desk import OLDER
from autograder.intake.taking import take_in
from tests.intake.exports import marks, pack_folder, pack_zip
from tests.intake.makers import LESSON, Files, notebook


def blackboard(*attempts: tuple[int, str, bytes | str]) -> Files:
    return {f"L_student01_attempt_2026-01-0{day}-03-04-05_{name}": content for day, name, content in attempts}


def test_the_latest_attempt_counts(tmp_path: Path) -> None:
    """By time, not by the order in the archive nor by name; the others are listed."""
    files = blackboard(
        (2, "a.ipynb", notebook("second")), (3, "b.ipynb", notebook("third")), (1, f"{LESSON}.ipynb", notebook("first"))
    )
    intake = take_in(pack_zip(tmp_path, files), LESSON)
    assert marks(intake) == {"student01": "third"}
    assert intake.notes[OLDER] == [
        "student01: 2026-01-02 03:04 (a.ipynb): older",
        f"student01: 2026-01-01 03:04 ({LESSON}.ipynb): older",
    ]


UNREADABLE = {
    "no notebook": ("report.pdf", b"%PDF", "There is no notebook (.ipynb), only report.pdf."),
    "an empty file": ("b.ipynb", b"", "is empty"),
    "half a notebook": ("b.ipynb", notebook()[:-9], "is not JSON"),
    "a bomb": ("b.ipynb", bytes(30 * 2**20), "unpacks to more than 200 times"),
    "a broken archive": ("b.zip", b"PK", "can't be opened"),
}


@pytest.mark.parametrize(("name", "content", "said"), UNREADABLE.values(), ids=UNREADABLE)
def test_the_latest_attempt_that_can_be_read_counts(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    """The instructor is told why the later one does not."""
    files = blackboard((1, "a.ipynb", notebook("first")), (2, name, content))
    intake = take_in(pack_zip(tmp_path, files), LESSON)
    assert marks(intake) == {"student01": "first"}
    assert said in intake.notes[OLDER][0]


def test_where_no_attempt_can_be_read_the_latest_is_what_is_told(tmp_path: Path) -> None:
    """Its file goes on to the grader, which says what is wrong with it."""
    files = blackboard((1, "a.ipynb", b"{"), (2, "b.ipynb", b""))
    (submission,) = take_in(pack_folder(tmp_path, files), LESSON).submissions
    assert submission.notebook is not None
    assert submission.notebook.name.endswith("_b.ipynb")


def test_canvas_versions_go_by_the_attachment(tmp_path: Path) -> None:
    """Handed in again under one name, Canvas adds -1; a download that was kept has the older one too."""
    files = {
        f"s_12345_67890_{LESSON}-1.ipynb": notebook("later"),
        f"s_12345_99_{LESSON}.ipynb": notebook("earlier"),
        "s_12345_67900_scratch.ipynb": notebook("beside"),
    }
    intake = take_in(pack_zip(tmp_path, files), LESSON)
    assert marks(intake) == {"12345": "later"}
    assert intake.notes[OLDER] == [f"12345: {LESSON}.ipynb: older"]


@pytest.mark.parametrize(
    "files",
    [
        {"s_1_2_a.ipynb": notebook(), "s_1_3_b.ipynb": notebook()},
        {"N_1_assignsubmission_file/a.ipynb": notebook(), "N_1_assignsubmission_file/b.ipynb": notebook()},
        {f"1-2 - N - {date} 2026 - x.ipynb": notebook() for date in ("someday", "otherday")},
    ],
    ids=["Canvas, two names", "Moodle, two names", "Brightspace, times that nobody understands"],
)
def test_two_notebooks_are_never_guessed_between(tmp_path: Path, files: Files) -> None:
    (submission,) = take_in(pack_zip(tmp_path, files), LESSON).submissions
    assert submission.problem is not None
    assert "Keep one" in submission.problem.en


def test_an_assignment_may_end_in_a_number(tmp_path: Path) -> None:
    """lesson-2 is no second version of lesson."""
    files = {"s_1_2_lesson-2.ipynb": notebook("mine"), "s_1_3_lesson.ipynb": notebook("other")}
    assert marks(take_in(pack_zip(tmp_path, files), "lesson-2")) == {"1": "mine"}
