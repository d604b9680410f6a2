"""Names of each platform, in the form that its source or its readers document, to student, time and own name."""

from __future__ import annotations

from datetime import datetime

import pytest

from autograder.intake.platforms import Blackboard, Brightspace, Canvas, Moodle, Nbgrader, Parsed, brightspace_time

JAN_2 = datetime(2026, 1, 2, 15, 4)

CANVAS = {
    "lastfirst_12345_67890_name.ipynb": Parsed("12345", ("12345", "lastfirst"), order=67890, own="name.ipynb"),
    "lastfirst_LATE_12345_67890_name-2.ipynb": Parsed("12345", ("12345", "lastfirst"), order=67890, own="name-2.ipynb"),
    "李雷_12345_67890_作业 (1).ipynb": Parsed("12345", ("12345", "李雷"), order=67890, own="作业 (1).ipynb"),
    "a_name_12345_67890_1_2_x.ipynb": Parsed("12345", ("12345", "a_name"), order=67890, own="1_2_x.ipynb"),
    "anon_aB3d_67890_name.ipynb": Parsed("anon_aB3d", ("anon_aB3d",), order=67890, own="name.ipynb"),
    "LATE_anon_aB3d_67890_name.ipynb": Parsed("anon_aB3d", ("anon_aB3d",), order=67890, own="name.ipynb"),
    "lastfirst_12345_text.html": Parsed("12345", ("12345", "lastfirst"), own="text.html"),
    "lastfirst_LATE_12345_link.html": Parsed("12345", ("12345", "lastfirst"), own="link.html"),
}


@pytest.mark.parametrize("name", CANVAS)
def test_canvas(name: str) -> None:
    """User id, name, attachment id as the order; late, anonymous, typed in; underscores and digits in either name."""
    assert Canvas().parse(name) == CANVAS[name]


MOODLE = {
    "Name Surname_12345_assignsubmission_file": ("Name Surname", "12345", None),
    "Name Surname_12345_assignsubmission_file_": ("Name Surname", "12345", None),
    "Name Surname_12345_assignsubmission_file_my work (2).ipynb": ("Name Surname", "12345", "my work (2).ipynb"),
    "Name Surname_12345_assignsubmission_onlinetext": ("Name Surname", "12345", None),
    "李 雷_7_assignsubmission_file": ("李 雷", "7", None),
    "Participant_12345_assignsubmission_file_x_1.ipynb": ("Participant", "12345", "x_1.ipynb"),
}


@pytest.mark.parametrize("name", MOODLE)
def test_moodle(name: str) -> None:
    """In folders, with and without the underscore at the end, and flat; the number is one name among others."""
    who, number, own = MOODLE[name]
    assert Moodle().parse(name) == Parsed(who, (who, number, f"{who}_{number}"), own=own)


def test_a_moodle_team_without_a_group_has_no_number() -> None:
    assert Moodle().parse("Default group_assignsubmission_file") == Parsed("Default group", ("Default group",))


BLACKBOARD = {
    "Lesson 2_student01_attempt_2026-01-02-15-04-00_file.ipynb": ("student01", "file.ipynb"),
    "Lesson_2_student01_attempt_2026-01-02-15-04-00_my_file (1).ipynb": ("student01", "my_file (1).ipynb"),
    "Lesson 2_student01_attempt_2026-01-02-15-04-00.txt": ("student01", "note.txt"),
    "Opdracht_student01_poging_2026-01-02-15-04-00_x.ipynb": ("student01", "x.ipynb"),
    "作业_s01_尝试_2026-01-02-15-04-00_x.ipynb": ("s01", "x.ipynb"),
}


@pytest.mark.parametrize("name", BLACKBOARD)
def test_blackboard(name: str) -> None:
    """User name, time, own name; the word for attempt in any language; underscores in the assignment's name."""
    who, own = BLACKBOARD[name]
    assert Blackboard().parse(name) == Parsed(who, (who,), JAN_2, own=own)


def test_a_blackboard_user_name_with_an_underscore_is_known_from_the_text_file() -> None:
    user = Blackboard.user_in_note("Name: Student One (student_01)\nAssignment: Lesson (2)\n")
    assert user == "student_01"
    parsed = Blackboard([user]).parse("Lesson 2_student_01_attempt_2026-01-02-15-04-00_x.ipynb")
    assert parsed is not None
    assert parsed.who == "student_01"


def test_brightspace() -> None:
    """User id, name, time; dashes in the file's own name; the same without it for a folder."""
    known = ("12345", "Name Surname")
    for end, own in ((" - my - file.ipynb", "my - file.ipynb"), ("", None)):
        name = "12345-67890 - Name Surname - Jan 2, 2026 304 PM" + end
        assert Brightspace().parse(name) == Parsed("12345", known, JAN_2, own=own)
    with_id = Brightspace().parse("12345-67890 - N0123456 - Name Surname - Jan 2, 2026 304 PM - x.ipynb")
    assert with_id is not None
    assert {"N0123456", "Name Surname"} <= set(with_id.known_as)


TIMES = {
    "Jan 2, 2026 304 PM": JAN_2,
    "January 2, 2026 3:04 PM": JAN_2,
    "2 Jan, 2026 15:04": JAN_2,
    "Jan 2, 2026 3:04:59 p.m.": JAN_2,
    "Dec 12, 2025 1200 AM": datetime(2025, 12, 12, 0, 0),
    "Dec 12, 2025 1230 PM": datetime(2025, 12, 12, 12, 30),
    "2 januari 2026 1504": JAN_2,
    "2026年1月2日 1504": None,
    "Feb 30, 2026 304 PM": None,
    "Jan 2, 2026": None,
}


@pytest.mark.parametrize("text", TIMES)
def test_brightspace_times(text: str) -> None:
    """Both orders of day and month, both clocks; what is not understood is no time rather than a wrong one."""
    assert brightspace_time(text) == TIMES[text]


def test_nbgraders_exchange() -> None:
    """This assignment's folders are read; another's are none of ours."""
    platform = Nbgrader("02-Lesson")
    parsed = platform.parse("student-01+02-lesson+2026-01-02 15:04:00.123456 UTC+aB3d")
    assert parsed == Parsed("student-01", ("student-01",), JAN_2)
    other = "student-01+01-other+2026-01-02 15:04:00.123456 UTC+aB3d"
    assert platform.parse(other) is None
    assert platform.skips(other)


@pytest.mark.parametrize(
    "name",
    [
        "student-01.ipynb",
        "02-lesson.ipynb",
        "my_work_2.ipynb",
        "2026-01-02 work.ipynb",
        "submission_metadata.yml",
        "李雷.ipynb",
    ],
)
def test_ordinary_names_belong_to_no_platform(name: str) -> None:
    for platform in (Canvas(), Moodle(), Blackboard(), Brightspace(), Nbgrader("02-lesson")):
        assert platform.parse(name) is None
