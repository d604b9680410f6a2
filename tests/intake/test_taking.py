"""From exports to submissions: every platform, as archive and as folder, attempts, groups, lists, what is mixed in."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.errors import BadArchive, NoSubmissions
from autograder.intake.bounds import Bounds
from autograder.intake.desk import ABSENT, GROUPS, IGNORED, OLDER, REFUSED, SHOWN, UNKNOWN, Intake
from autograder.intake.taking import take_in
from tests.intake.makers import LESSON, Files, mark_of, notebook, tar_bytes, write_folder, write_zip, zip_bytes
from tests.intake.test_gradescope import METADATA

Pack = Callable[[Path, Files], Path]


def _zip(root: Path, files: Files) -> Path:
    return write_zip(root / "download.zip", files)


def _zip_around(root: Path, files: Files) -> Path:
    return write_zip(root / "download.zip", {f"some export/{name}": content for name, content in files.items()})


def _tar(root: Path, files: Files) -> Path:
    (root / "download.tar.gz").write_bytes(tar_bytes(files))
    return root / "download.tar.gz"


def _folder(root: Path, files: Files) -> Path:
    return write_folder(root / "download", files)


def _archives_in_a_folder(root: Path, files: Files) -> Path:
    """A class in two sections, downloaded one after the other, nothing unpacked."""
    (root / "downloads").mkdir()
    names = list(files)
    shared = {name: files[name] for name in names if name.endswith(".yml")}
    for number, part in enumerate((names[::2], names[1::2])):
        own = {name: files[name] for name in part} | shared
        write_zip(root / "downloads" / f"section {number}.zip", own)
    return root / "downloads"


PACKS = {
    "zip": _zip,
    "zip with a folder around": _zip_around,
    "tar.gz": _tar,
    "folder": _folder,
    "folder of zips": _archives_in_a_folder,
}

CANVAS: Files = {
    f"surnamename_12345_67890_{LESSON}.ipynb": notebook("one"),
    f"surnamename_LATE_12346_67891_{LESSON}-2.ipynb": notebook("two"),
    "李雷_12347_67892_作业 (1).ipynb": notebook("three"),
    "anon_aB3d_67893_x.ipynb": notebook("four"),
    "noname_12348_text.html": "<p>typed in</p>",
    "other_12349_67894_report.pdf": "%PDF",
}
MOODLE: Files = {
    "Name Surname_12345_assignsubmission_file/work.ipynb": notebook("one"),
    "Name Surname_12346_assignsubmission_file/work.ipynb": notebook("two"),
    "李 雷_12347_assignsubmission_file/作业.ipynb": notebook("three"),
    "Other Name_12348_assignsubmission_file_/sub/work (2).ipynb": notebook("four"),
    "No Name_12349_assignsubmission_onlinetext/onlinetext.html": "<p>typed in</p>",
}
MOODLE_FLAT: Files = {
    "Name Surname_12345_assignsubmission_file_work.ipynb": notebook("one"),
    "Name Surname_12346_assignsubmission_file_work.ipynb": notebook("two"),
    "李 雷_12347_assignsubmission_file_作业.ipynb": notebook("three"),
    "Other Name_12348_assignsubmission_file_work (2).ipynb": notebook("four"),
    "No Name_12349_assignsubmission_onlinetext_onlinetext.html": "<p>typed in</p>",
}
BLACKBOARD: Files = {
    "Lesson 2_student01_attempt_2026-01-02-03-04-05_work.ipynb": notebook("one"),
    "Lesson 2_student01_attempt_2026-01-02-03-04-05.txt": "Name: Student One (student01)\nAssignment: Lesson 2\n",
    "Lesson 2_s_02_attempt_2026-01-02-03-04-06_work.ipynb": notebook("two"),
    "Lesson 2_s_02_attempt_2026-01-02-03-04-06.txt": "Name: Student Two (s_02)\nAssignment: Lesson 2\n",
    "Lesson 2_student03_attempt_2026-01-02-03-04-07.txt": "Name: Student Three (student03)\n",
}
BRIGHTSPACE: Files = {
    "12345-67890 - Name Surname - Jan 2, 2026 304 PM - work.ipynb": notebook("one"),
    "12346-67890 - 李雷 - Jan 2, 2026 1204 AM - a - b (1).ipynb": notebook("two"),
    "12347-67890 - Other Name - Jan 3, 2026 904 AM/work.ipynb": notebook("three"),
    "index.html": "<html>",
}
GRADESCOPE: Files = {
    "submission_metadata.yml": METADATA,
    "submission_12345/work.ipynb": notebook("one"),
    "submission_12346/src/work.ipynb": notebook("two"),
    "submission_12399/work.ipynb": notebook("three"),
}
NBGRADER: Files = {
    f"student-01+{LESSON}+2026-01-02 03:04:05.123456 UTC+aB3d/{LESSON}.ipynb": notebook("one"),
    f"student-02+{LESSON}+2026-01-02 03:04:06.123456 UTC/{LESSON}.ipynb": notebook("two"),
    "student-02+01-other+2026-01-02 03:04:06.123456 UTC/01-other.ipynb": notebook("other"),
}
EXPORTS: dict[str, tuple[str, Files, dict[str, str | None]]] = {
    "Canvas": (
        "Canvas",
        CANVAS,
        {"12345": "one", "12346": "two", "12347": "three", "anon_aB3d": "four", "12348": None, "12349": None},
    ),
    "Moodle": (
        "Moodle",
        MOODLE,
        {
            "Name Surname_12345": "one",
            "Name Surname_12346": "two",
            "李 雷": "three",
            "Other Name": "four",
            "No Name": None,
        },
    ),
    "Moodle, flat": (
        "Moodle",
        MOODLE_FLAT,
        {
            "Name Surname_12345": "one",
            "Name Surname_12346": "two",
            "李 雷": "three",
            "Other Name": "four",
            "No Name": None,
        },
    ),
    "Blackboard": ("Blackboard", BLACKBOARD, {"student01": "one", "s_02": "two", "student03": None}),
    "Brightspace": ("Brightspace", BRIGHTSPACE, {"12345": "one", "12346": "two", "12347": "three"}),
    "Gradescope": (
        "Gradescope",
        GRADESCOPE,
        {"0123": "one", "student-02@example.edu": "two", "s3": "two", "submission_12399": "three"},
    ),
    "nbgrader": ("nbgrader", NBGRADER, {"student-01": "one", "student-02": "two"}),
}


def marks(intake: Intake) -> dict[str, str | None]:
    return {one.student: mark_of(one.notebook) if one.notebook else None for one in intake.submissions}


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
@pytest.mark.parametrize(("platform", "files", "expected"), EXPORTS.values(), ids=EXPORTS)
def test_each_platforms_export(
    tmp_path: Path, platform: str, files: Files, expected: dict[str, str | None], pack: Pack
) -> None:
    """Every student once, with the right notebook or with what was found instead."""
    intake = take_in(pack(tmp_path, files), LESSON, [LESSON, "01-other"])
    assert intake.platform == platform
    assert marks(intake) == expected
    assert [one.student for one in intake.submissions] == sorted(expected)
    for submission in intake.submissions:
        assert (submission.notebook is None) == (submission.problem is not None)
    assert REFUSED not in intake.notes
    assert IGNORED not in intake.notes


PLAIN: dict[str, tuple[Files, dict[str, str | None]]] = {
    "nbgrader's submitted": (
        {
            f"student-01/{LESSON}/{LESSON}.ipynb": notebook("one"),
            f"student-01/{LESSON}/timestamp.txt": "2026-01-02 03:04:05 UTC",
            "student-02/01-other/01-other.ipynb": notebook("other"),
            f"student-03/{LESSON}/renamed.ipynb": notebook("three"),
        },
        {"student-01": "one", "student-03": "three"},
    ),
    "a folder a student": (
        {"student-01/x.ipynb": notebook("one"), "李雷/y.ipynb": notebook("two"), "student-03/report.pdf": "%PDF"},
        {"student-01": "one", "李雷": "two", "student-03": None},
    ),
    "a file a student": (
        {"student-01.ipynb": notebook("one"), "李雷.ipynb": notebook("two"), "notes.md": "x"},
        {"student-01": "one", "李雷": "two"},
    ),
}


@pytest.mark.parametrize("pack", [_zip, _zip_around, _tar, _folder])
@pytest.mark.parametrize(("files", "expected"), PLAIN.values(), ids=PLAIN)
def test_plain_layouts(tmp_path: Path, files: Files, expected: dict[str, str | None], pack: Pack) -> None:
    """The layouts that a folder may have may be packed too."""
    intake = take_in(pack(tmp_path, files), LESSON, [LESSON, "01-other"])
    assert intake.platform is None
    assert marks(intake) == expected


def test_one_students_folder_in_an_archive_is_one_student(tmp_path: Path) -> None:
    """Only a folder around several students is taken away."""
    for number, files in enumerate(
        ({"student-01/x.ipynb": notebook("one")}, {f"student-01/{LESSON}/x.ipynb": notebook("one")})
    ):
        (tmp_path / str(number)).mkdir()
        assert marks(take_in(_zip(tmp_path / str(number), files), LESSON)) == {"student-01": "one"}


def test_students_who_hand_in_archives(tmp_path: Path) -> None:
    """On a platform, in a folder of their own, as a file beside others: the notebook in it counts."""
    work = {"my work/x.ipynb": notebook("in a zip"), "__MACOSX/my work/._x.ipynb": b"?"}
    canvas = {"surname_12345_67890_work.zip": zip_bytes(work), "other_12346_67891_x.ipynb": notebook("two")}
    assert marks(take_in(_zip(tmp_path, canvas), LESSON)) == {"12345": "in a zip", "12346": "two"}
    plain = {
        "student-01/work.tar.gz": tar_bytes(work),
        "student-02.zip": zip_bytes(work),
        "student-03.ipynb": notebook("3"),
    }
    intake = take_in(_folder(tmp_path, plain), LESSON)
    assert marks(intake) == {"student-01": "in a zip", "student-02": "in a zip", "student-03": "3"}
    assert not intake.notes


@pytest.mark.parametrize("pack", [_zip, _folder])
def test_archives_that_cannot_be_opened_are_the_students_reason(tmp_path: Path, pack: Pack) -> None:
    """A 7z, a broken zip: the student is listed with the reason, the others are graded."""
    files = {
        "surname_12345_67890_work.7z": b"7z\xbc\xaf\x27\x1c",
        "second_12346_67891_work.zip": b"broken",
        "third_12347_67892_x.ipynb": notebook("three"),
    }
    intake = take_in(pack(tmp_path, files), LESSON)
    assert marks(intake) == {"12345": None, "12346": None, "12347": "three"}
    problems = [one.problem.en for one in intake.submissions if one.problem]
    assert "7z" in problems[0]
    assert "can't be opened" in problems[1]
    assert len(intake.notes[REFUSED]) == 2


def test_what_is_refused_in_an_archive_is_the_students_reason(tmp_path: Path) -> None:
    """On a platform and in the plain layout: no student vanishes because of what they packed."""
    bomb = bytes(30 * 2**20)
    canvas = {"surname_12345_67890_x.ipynb": bomb, "other_12346_67891_x.ipynb": notebook("two")}
    plain = {"student-01/x.ipynb": bomb, "student-02.ipynb": notebook("two")}
    for files, first, second in ((canvas, "12345", "12346"), (plain, "student-01", "student-02")):
        intake = take_in(_zip(tmp_path, files), LESSON)
        assert marks(intake) == {first: None, second: "two"}
        problem = intake.submissions[0].problem
        assert problem is not None
        assert "x.ipynb can't be used: it unpacks to more than 200 times its size" in problem.en
        assert "x.ipynb" in problem.zh


# -- attempts


def blackboard(*attempts: tuple[int, str, bytes | str]) -> Files:
    return {f"L_student01_attempt_2026-01-0{day}-03-04-05_{name}": content for day, name, content in attempts}


def test_the_latest_attempt_counts(tmp_path: Path) -> None:
    """By time, not by the order in the archive nor by name; the others are listed."""
    files = blackboard(
        (2, "a.ipynb", notebook("second")), (3, "b.ipynb", notebook("third")), (1, f"{LESSON}.ipynb", notebook("first"))
    )
    intake = take_in(_zip(tmp_path, files), LESSON)
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
    intake = take_in(_zip(tmp_path, files), LESSON)
    assert marks(intake) == {"student01": "first"}
    assert said in intake.notes[OLDER][0]


def test_where_no_attempt_can_be_read_the_latest_is_what_is_told(tmp_path: Path) -> None:
    """Its file goes on to the grader, which says what is wrong with it."""
    files = blackboard((1, "a.ipynb", b"{"), (2, "b.ipynb", b""))
    (submission,) = take_in(_folder(tmp_path, files), LESSON).submissions
    assert submission.notebook is not None
    assert submission.notebook.name.endswith("_b.ipynb")


def test_canvas_versions_go_by_the_attachment(tmp_path: Path) -> None:
    """Handed in again under one name, Canvas adds -1; a download that was kept has the older one too."""
    files = {
        f"s_12345_67890_{LESSON}-1.ipynb": notebook("later"),
        f"s_12345_99_{LESSON}.ipynb": notebook("earlier"),
        "s_12345_67900_scratch.ipynb": notebook("beside"),
    }
    intake = take_in(_zip(tmp_path, files), LESSON)
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
    (submission,) = take_in(_zip(tmp_path, files), LESSON).submissions
    assert submission.problem is not None
    assert "Keep one" in submission.problem.en


def test_an_assignment_may_end_in_a_number(tmp_path: Path) -> None:
    """lesson-2 is no second version of lesson."""
    files = {"s_1_2_lesson-2.ipynb": notebook("mine"), "s_1_3_lesson.ipynb": notebook("other")}
    assert marks(take_in(_zip(tmp_path, files), "lesson-2")) == {"1": "mine"}


# -- lists, groups, what else lies there


def listed(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "students.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_list_gives_ids_and_loses_nobody(tmp_path: Path) -> None:
    """Names as Canvas squeezes them, ids; who is unknown keeps the platform's id and is named, who is absent too."""
    students = listed(
        tmp_path, 'student,name,canvas\nstudent-01,"Surname, Name",12345\nstudent-03,李雷,\nstudent-09,X,9\n'
    )
    intake = take_in(_zip(tmp_path, CANVAS), LESSON, students=students)
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
    found = marks(take_in(_zip(tmp_path, CANVAS), LESSON, students=students))
    assert (found["12345"], found["12346"]) == ("one", "two")
    assert "student-01" not in found


def test_the_list_works_for_plain_layouts(tmp_path: Path) -> None:
    """Two files that it maps to one student are never guessed between."""
    students = listed(tmp_path, "student,file\nstudent-01,a\nstudent-01,b\nstudent-02,c\n")
    files = {"a.ipynb": notebook("a"), "b/x.ipynb": notebook("b"), "c.ipynb": notebook("c"), "d.ipynb": notebook("d")}
    intake = take_in(_folder(tmp_path, files), LESSON, students=students)
    assert marks(intake) == {"student-01": None, "student-02": "c", "d": "d"}
    assert intake.notes == {UNKNOWN: ["d"]}
    assert intake.submissions[1].problem is not None
    assert "a, b" in intake.submissions[1].problem.en


def test_moodle_names_and_numbers_may_be_listed(tmp_path: Path) -> None:
    students = listed(tmp_path, "student,moodle\nstudent-01,Name Surname_12345\nstudent-02,12346\nstudent-03,李雷\n")
    found = marks(take_in(_zip(tmp_path, MOODLE), LESSON, students=students))
    assert {name: found[name] for name in ("student-01", "student-02", "student-03")} == {
        "student-01": "one",
        "student-02": "two",
        "student-03": "three",
    }


def test_a_group_is_told(tmp_path: Path) -> None:
    """Each of them gets what was handed in."""
    intake = take_in(_zip(tmp_path, GRADESCOPE), LESSON)
    assert intake.notes[GROUPS] == ["submission_12346: student-02@example.edu, s3"]


@pytest.mark.parametrize("content", ["a: [", "- x"])
def test_gradescope_without_a_list_that_can_be_read(tmp_path: Path, content: str) -> None:
    """The folders' names are the students' then."""
    intake = take_in(_zip(tmp_path, {**GRADESCOPE, "submission_metadata.yml": content}), LESSON)
    assert marks(intake) == {"submission_12345": "one", "submission_12346": "two", "submission_12399": "three"}


def test_ids_that_platforms_let_people_choose_lead_nowhere(tmp_path: Path) -> None:
    """Gradescope's SID is free text; two that look alike when made safe stay two students."""
    metadata = "".join(
        f"submission_{number}:\n  :submitters:\n  - :name: N\n    :sid: {sid}\n"
        for number, sid in enumerate(("../../x", ".._.._x", "'..'"))
    )
    files = {"submission_metadata.yml": metadata} | {f"submission_{n}/x.ipynb": notebook(str(n)) for n in range(3)}
    found = marks(take_in(_zip(tmp_path, files), LESSON))
    assert sorted(map(str, found.values())) == ["0", "1", "2"]
    assert not any("/" in name or name.startswith(".") for name in found)


def test_a_notebook_that_came_by_mail_may_lie_beside(tmp_path: Path) -> None:
    """What is not named in the platform's way is read as in the plain layouts; other files are listed."""
    files = {**CANVAS, "student-07.ipynb": notebook("seven"), "student-08/x.ipynb": notebook("eight"), "notes.md": "x"}
    intake = take_in(_folder(tmp_path, files), LESSON)
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
    intake = take_in(_folder(tmp_path, files), LESSON)
    assert intake.platform is None
    assert marks(intake) == {"student-01": "one", "student-02": "two", "student-03": "three"}


def test_numbers_in_names_do_not_make_a_canvas(tmp_path: Path) -> None:
    """Three students in the instructor's own naming; as Canvas' they would be one."""
    files = {f"class_01_02_{name}.ipynb": notebook(name) for name in "abc"}
    found = marks(take_in(_folder(tmp_path, files), LESSON))
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


# -- the whole


@pytest.mark.parametrize("files", [{}, {"notes.md": "x"}], ids=["empty", "no notebook"])
def test_an_archive_without_submissions_is_an_error(tmp_path: Path, files: Files) -> None:
    """The message names the archive, not where it was unpacked."""
    with pytest.raises(NoSubmissions, match=r"download\.zip.*<student>\.ipynb, or a platform's export"):
        take_in(_zip(tmp_path, files), LESSON)


def test_an_archive_of_another_kind_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "class.7z"
    path.write_bytes(b"7z\xbc\xaf\x27\x1c")
    with pytest.raises(BadArchive, match=r"class\.7z.*Unpack it yourself"):
        take_in(path, LESSON)


def test_a_bad_archive_in_a_folder_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    files = {"broken.zip": b"PK", "good.zip": zip_bytes(CANVAS), "student-01.ipynb": notebook("one")}
    intake = take_in(_folder(tmp_path, files), LESSON)
    assert marks(intake)["12345"] == "one"
    assert marks(intake)["student-01"] == "one"
    assert any(line.startswith("broken.zip: ") for line in intake.notes[REFUSED])


def test_all_archives_together_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each student's archive is allowed; many of them do not fill the disk."""
    monkeypatch.setattr("autograder.intake.desk.CLASS", Bounds(total_bytes=3 * 2**20))
    work = zip_bytes({"x.ipynb": os.urandom(2**20)})
    files = {f"student-{number}.zip": work for number in range(5)}
    intake = take_in(_folder(tmp_path, files), LESSON)
    assert [one.notebook is not None for one in intake.submissions] == [True, True, True, False, False]
    assert len(intake.notes[REFUSED]) == 2
    assert "use up the space" in intake.notes[REFUSED][0]


@pytest.mark.parametrize("ending", ["done", "error"])
def test_what_was_unpacked_goes_with_the_intake(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Students' work does not stay in the temporary folder, whatever happens; the download is as it was."""
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(own))
    if ending == "error":
        with pytest.raises(NoSubmissions):
            take_in(_zip(tmp_path, {"notes.md": "x"}), LESSON)
    else:
        intake = take_in(_zip(tmp_path, CANVAS), LESSON)
        (folder,) = own.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        assert all(one.notebook is None or folder in one.notebook.parents for one in intake.submissions)
        del intake
        gc.collect()
    assert list(own.iterdir()) == []


def test_long_lists_are_cut_on_the_terminal_and_whole_in_a_file(tmp_path: Path) -> None:
    intake = Intake()
    intake.note(OLDER, *(f"student-{number}: older" for number in range(SHOWN + 8)))
    lines = intake.lines(tmp_path / "journal" / "all.txt")
    assert len(lines) == SHOWN + 2
    assert "8 more" in lines[-1]
    assert "all.txt" in lines[-1]
    assert (tmp_path / "journal" / "all.txt").read_text(encoding="utf-8").count("older\n") == SHOWN + 8
