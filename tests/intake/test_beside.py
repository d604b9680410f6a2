"""Lists of students, groups, and what else lies in an export."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.intake.desk import ABSENT, GROUPS, IGNORED, UNKNOWN
from autograder.intake.taking import take_in
from tests.intake.exports import CANVAS, GRADESCOPE, MOODLE, marks, pack_folder, pack_zip
from tests.intake.makers import LESSON, notebook, write_folder, write_zip


def listed(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "students.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_list_gives_ids_and_loses_nobody(tmp_path: Path) -> None:
    """Names as Canvas squeezes them, ids; who is unknown keeps the platform's id and is named, who is absent too."""
    students = listed(
        tmp_path, 'student,name,canvas\nstudent-01,"Surname, Name",12345\nstudent-03,李雷,\nstudent-09,X,9\n'
    )
    intake = take_in(pack_zip(tmp_path, CANVAS), LESSON, students=students)
    found = marks(intake)
    assert found["student-01"] == "one"
    assert found["student-03"] == "three"
    assert found["anon_aB3d"] == "four"
    assert found["12346"] == "two"  # of the same name as student-01, who is listed with another id
    assert len(found) == 6
    assert "12346 = surnamename" in intake.notes[UNKNOWN]
    assert "12348 = noname" in intake.notes[UNKNOWN]
    assert intake.notes[ABSENT] == ["student-09"]


def test_a_name_that_two_have_on_the_platform_maps_neither(tmp_path: Path) -> None:
    """The list has it once: whose it is cannot be told, and nobody gets another's work."""
    students = listed(tmp_path, 'student,name\nstudent-01,"Surname, Name"\n')
    found = marks(take_in(pack_zip(tmp_path, CANVAS), LESSON, students=students))
    assert (found["12345"], found["12346"]) == ("one", "two")
    assert "student-01" not in found


def test_the_list_works_for_plain_layouts(tmp_path: Path) -> None:
    """Two files that it maps to one student are never guessed between."""
    students = listed(tmp_path, "student,file\nstudent-01,a\nstudent-01,b\nstudent-02,c\n")
    files = {"a.ipynb": notebook("a"), "b/x.ipynb": notebook("b"), "c.ipynb": notebook("c"), "d.ipynb": notebook("d")}
    intake = take_in(pack_folder(tmp_path, files), LESSON, students=students)
    assert marks(intake) == {"student-01": None, "student-02": "c", "d": "d"}
    assert intake.notes == {UNKNOWN: ["d"]}
    assert intake.submissions[1].problem is not None
    assert "a, b" in intake.submissions[1].problem.en


def test_moodle_names_and_numbers_may_be_listed(tmp_path: Path) -> None:
    students = listed(tmp_path, "student,moodle\nstudent-01,Name Surname_12345\nstudent-02,12346\nstudent-03,李雷\n")
    found = marks(take_in(pack_zip(tmp_path, MOODLE), LESSON, students=students))
    assert {name: found[name] for name in ("student-01", "student-02", "student-03")} == {
        "student-01": "one",
        "student-02": "two",
        "student-03": "three",
    }


def test_a_group_is_told(tmp_path: Path) -> None:
    """Each of them gets what was handed in."""
    intake = take_in(pack_zip(tmp_path, GRADESCOPE), LESSON)
    assert intake.notes[GROUPS] == ["submission_12346: student-02@example.edu, s3"]


@pytest.mark.parametrize("content", ["a: [", "- x"])
def test_gradescope_without_a_list_that_can_be_read(tmp_path: Path, content: str) -> None:
    """The folders' names are the students' then."""
    intake = take_in(pack_zip(tmp_path, {**GRADESCOPE, "submission_metadata.yml": content}), LESSON)
    assert marks(intake) == {"submission_12345": "one", "submission_12346": "two", "submission_12399": "three"}


def test_ids_that_platforms_let_people_choose_lead_nowhere(tmp_path: Path) -> None:
    """Gradescope's SID is free text; two that look alike when made safe stay two students."""
    metadata = "".join(
        f"submission_{number}:\n  :submitters:\n  - :name: N\n    :sid: {sid}\n"
        for number, sid in enumerate(("../../x", ".._.._x", "'..'"))
    )
    files = {"submission_metadata.yml": metadata} | {f"submission_{n}/x.ipynb": notebook(str(n)) for n in range(3)}
    found = marks(take_in(pack_zip(tmp_path, files), LESSON))
    assert sorted(map(str, found.values())) == ["0", "1", "2"]
    assert not any("/" in name or name.startswith(".") for name in found)


def test_a_notebook_that_came_by_mail_may_lie_beside(tmp_path: Path) -> None:
    """What is not named in the platform's way is read as in the plain layouts; other files are listed."""
    files = {**CANVAS, "student-07.ipynb": notebook("seven"), "student-08/x.ipynb": notebook("eight"), "notes.md": "x"}
    intake = take_in(pack_folder(tmp_path, files), LESSON)
    assert intake.platform == "Canvas"
    assert marks(intake)["student-07"] == "seven"
    assert marks(intake)["student-08"] == "eight"
    assert intake.notes[IGNORED] == ["notes.md"]


def test_a_file_that_only_looks_like_a_platforms_does_not_rename_the_class(tmp_path: Path) -> None:
    """One student of the plain layout hands in what Canvas once gave back."""
    files = {
        f"student-01/{LESSON}/student_12_34_work.ipynb": notebook("one"),
        f"student-02/{LESSON}/{LESSON}.ipynb": notebook("two"),
        f"student-03/{LESSON}/{LESSON}.ipynb": notebook("three"),
    }
    intake = take_in(pack_folder(tmp_path, files), LESSON)
    assert intake.platform is None
    assert marks(intake) == {"student-01": "one", "student-02": "two", "student-03": "three"}


def test_numbers_in_names_do_not_make_a_canvas(tmp_path: Path) -> None:
    """Three students in the instructor's own naming; as Canvas' they would be one."""
    files = {f"class_01_02_{name}.ipynb": notebook(name) for name in "abc"}
    found = marks(take_in(pack_folder(tmp_path, files), LESSON))
    assert found == {f"class_01_02_{name}": name for name in "abc"}


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    """An archive that is a link, a folder that is one: neither is opened."""
    secret = write_zip(tmp_path / "secret.zip", {"x.ipynb": notebook("secret")})
    folder = write_folder(tmp_path / "download", {"other_12346_67891_x.ipynb": notebook("two")})
    (folder / "surname_12345_67890_work.zip").symlink_to(secret)
    (folder / "elsewhere").symlink_to(tmp_path)
    intake = take_in(folder, LESSON)
    assert marks(intake) == {"12345": None, "12346": "two"}
    assert intake.submissions[0].problem is not None
    assert "link" in intake.submissions[0].problem.en
