"""From exports to submissions: every platform and the plain layouts, as archive and as folder; what is refused."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from autograder.errors import BadArchive, NoSubmissions
from autograder.intake.bounds import Bounds
from autograder.intake.desk import IGNORED, OLDER, REFUSED, SHOWN, Intake
from autograder.intake.taking import take_in
from tests.intake.exports import CANVAS, EXPORTS, PACKS, Pack, marks, pack_folder, pack_tar, pack_zip, pack_zip_around
from tests.intake.makers import LESSON, Files, notebook, tar_bytes, zip_bytes


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


@pytest.mark.parametrize("pack", [pack_zip, pack_zip_around, pack_tar, pack_folder])
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
        assert marks(take_in(pack_zip(tmp_path / str(number), files), LESSON)) == {"student-01": "one"}


def test_students_who_hand_in_archives(tmp_path: Path) -> None:
    """On a platform, in a folder of their own, as a file beside others: the notebook in it counts."""
    work = {"my work/x.ipynb": notebook("in a zip"), "__MACOSX/my work/._x.ipynb": b"?"}
    canvas = {"surname_12345_67890_work.zip": zip_bytes(work), "other_12346_67891_x.ipynb": notebook("two")}
    assert marks(take_in(pack_zip(tmp_path, canvas), LESSON)) == {"12345": "in a zip", "12346": "two"}
    plain = {
        "student-01/work.tar.gz": tar_bytes(work),
        "student-02.zip": zip_bytes(work),
        "student-03.ipynb": notebook("3"),
    }
    intake = take_in(pack_folder(tmp_path, plain), LESSON)
    assert marks(intake) == {"student-01": "in a zip", "student-02": "in a zip", "student-03": "3"}
    assert not intake.notes


@pytest.mark.parametrize("pack", [pack_zip, pack_folder])
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
        intake = take_in(pack_zip(tmp_path, files), LESSON)
        assert marks(intake) == {first: None, second: "two"}
        problem = intake.submissions[0].problem
        assert problem is not None
        assert "x.ipynb can't be used: it unpacks to more than 200 times its size" in problem.en
        assert "x.ipynb" in problem.zh


@pytest.mark.parametrize("files", [{}, {"notes.md": "x"}], ids=["empty", "no notebook"])
def test_an_archive_without_submissions_is_an_error(tmp_path: Path, files: Files) -> None:
    """The message names the archive, not where it was unpacked."""
    with pytest.raises(NoSubmissions, match=r"download\.zip.*<student>\.ipynb, or a platform's export"):
        take_in(pack_zip(tmp_path, files), LESSON)


def test_an_archive_of_another_kind_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "class.7z"
    path.write_bytes(b"7z\xbc\xaf\x27\x1c")
    with pytest.raises(BadArchive, match=r"class\.7z.*Unpack it yourself"):
        take_in(path, LESSON)


def test_a_bad_archive_in_a_folder_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    files = {"broken.zip": b"PK", "good.zip": zip_bytes(CANVAS), "student-01.ipynb": notebook("one")}
    intake = take_in(pack_folder(tmp_path, files), LESSON)
    assert marks(intake)["12345"] == "one"
    assert marks(intake)["student-01"] == "one"
    assert any(line.startswith("broken.zip: ") for line in intake.notes[REFUSED])


def test_all_archives_together_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each student's archive is allowed; many of them do not fill the disk."""
    monkeypatch.setattr("autograder.intake.desk.CLASS", Bounds(total_bytes=3 * 2**20))
    work = zip_bytes({"x.ipynb": os.urandom(2**20)})
    files = {f"student-{number}.zip": work for number in range(5)}
    intake = take_in(pack_folder(tmp_path, files), LESSON)
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
            take_in(pack_zip(tmp_path, {"notes.md": "x"}), LESSON)
    else:
        intake = take_in(pack_zip(tmp_path, CANVAS), LESSON)
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
