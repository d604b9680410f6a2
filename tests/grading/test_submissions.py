"""Finding submissions: three layouts, mixed as people mix them; a student without a notebook is told, not lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from autograder.errors import NoSubmissions
from autograder.grading.submissions import find_submissions, ignored_files

LESSON = "02-lesson"


def make(root: Path, *names: str) -> Path:
    """Files below `root`; a name that ends with a slash is an empty folder."""
    for name in names:
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}", encoding="utf-8")
    return root


LAYOUTS = {
    "nbgrader's": f"ada/{LESSON}/{LESSON}.ipynb",
    "nbgrader's, notebook renamed": f"ada/{LESSON}/my homework (2).ipynb",
    "a folder a student": "ada/anything.ipynb",
    "a file a student": "ada.ipynb",
}


@pytest.mark.parametrize("name", LAYOUTS.values(), ids=LAYOUTS)
def test_each_layout_is_found(tmp_path: Path, name: str) -> None:
    """One student, one notebook, no problem."""
    (found,) = find_submissions(make(tmp_path, name), LESSON)
    assert (found.student, found.notebook, found.problem) == ("ada", tmp_path / name, None)


def test_layouts_may_be_mixed_and_come_sorted(tmp_path: Path) -> None:
    """Each student in another layout, names in any script."""
    make(tmp_path, "zoe.ipynb", f"ada/{LESSON}/{LESSON}.ipynb", "emmy/x.ipynb", "李雷/作业.ipynb")
    found = find_submissions(tmp_path, LESSON)
    assert [one.student for one in found] == ["ada", "emmy", "zoe", "李雷"]
    assert all(one.notebook and not one.problem for one in found)


def test_a_single_notebook_is_a_class_of_one(tmp_path: Path) -> None:
    """`--submissions` may name a file."""
    make(tmp_path, "ada.ipynb")
    (found,) = find_submissions(tmp_path / "ada.ipynb", LESSON)
    assert (found.student, found.notebook) == ("ada", tmp_path / "ada.ipynb")


def test_what_editors_and_archives_leave_is_no_student(tmp_path: Path) -> None:
    """Hidden folders, __MACOSX, checkpoints, loose files."""
    make(tmp_path, "ada.ipynb", ".ipynb_checkpoints/ada.ipynb", "__MACOSX/ada.ipynb", ".DS_Store", "notes.txt")
    assert [one.student for one in find_submissions(tmp_path, LESSON)] == ["ada"]
    make(tmp_path, f"emmy/{LESSON}/{LESSON}.ipynb", f"emmy/{LESSON}/.hidden.ipynb", f"emmy/{LESSON}/timestamp.txt")
    emmy = find_submissions(tmp_path, LESSON)[1]
    assert (emmy.student, emmy.problem) == ("emmy", None)


def test_a_student_of_another_lesson_is_left_out(tmp_path: Path) -> None:
    """A folder that holds only other assignments is no submission to this one."""
    make(tmp_path, "ada/01-other/01-other.ipynb", f"emmy/{LESSON}/{LESSON}.ipynb")
    assert [one.student for one in find_submissions(tmp_path, LESSON)] == ["emmy"]


NO_NOTEBOOK = {
    "an empty folder": (("ada/",), "it is empty"),
    "another kind of file": (("ada/homework.pdf", "ada/data.csv"), "data.csv, homework.pdf"),
    "an empty assignment": ((f"ada/{LESSON}/",), "it is empty"),
}


@pytest.mark.parametrize(("names", "said"), NO_NOTEBOOK.values(), ids=NO_NOTEBOOK)
def test_a_folder_without_a_notebook_is_told(tmp_path: Path, names: tuple[str, ...], said: str) -> None:
    """The student stays in the list, with what was found instead, in both languages."""
    (found,) = find_submissions(make(tmp_path, *names), LESSON)
    assert (found.student, found.notebook) == ("ada", None)
    assert found.problem is not None
    assert said in found.problem.en
    assert "笔记本" in found.problem.zh


AMBIGUOUS = {
    "two notebooks": ("ada/a.ipynb", "ada/b.ipynb"),
    "two notebooks in the assignment": (f"ada/{LESSON}/a.ipynb", f"ada/{LESSON}/b.ipynb"),
    "a file and a folder": ("ada.ipynb", "ada/b.ipynb"),
}


@pytest.mark.parametrize("names", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_two_notebooks_are_never_guessed_between(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Both are named; neither is graded."""
    (found,) = find_submissions(make(tmp_path, *names), LESSON)
    assert found.notebook is None
    assert found.problem is not None
    assert "Keep one" in found.problem.en


def test_the_right_name_settles_it(tmp_path: Path) -> None:
    """Among several notebooks the one with the assignment's name counts."""
    make(tmp_path, f"ada/{LESSON}/{LESSON}.ipynb", f"ada/{LESSON}/scratch.ipynb")
    (found,) = find_submissions(tmp_path, LESSON)
    assert found.notebook == tmp_path / "ada" / LESSON / f"{LESSON}.ipynb"


@pytest.mark.parametrize("what", ["missing", "empty folder", "a text file", "only hidden"])
def test_no_submissions_at_all_is_an_error(tmp_path: Path, what: str) -> None:
    """It names the path and the layouts that would have been found."""
    path = tmp_path / "submitted"
    if what != "missing":
        path.mkdir()
    if what == "a text file":
        path = make(path, "ada.txt") / "ada.txt"
    if what == "only hidden":
        make(path, ".ipynb_checkpoints/ada.ipynb")
    with pytest.raises(NoSubmissions) as caught:
        find_submissions(path, LESSON)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "name", [f"ada/{LESSON.upper()}/{LESSON}.ipynb", "ada/Work.IPYNB", "ada.IPYNB"], ids=["folder", "suffix", "file"]
)
def test_case_does_not_matter(tmp_path: Path, name: str) -> None:
    """Some systems write capitals."""
    (found,) = find_submissions(make(tmp_path, name), LESSON, [LESSON])
    assert (found.student, found.notebook, found.problem) == ("ada", tmp_path / name, None)


def test_a_folder_of_unknown_folders_is_told_not_left_out(tmp_path: Path) -> None:
    """Only names of other assignments mean that a student did not submit this one."""
    make(tmp_path, "ada/submission/x.ipynb", "emmy/01-other/x.ipynb", "zoe.ipynb")
    ada, zoe = find_submissions(tmp_path, LESSON, ["01-other", LESSON])
    assert (ada.student, ada.notebook) == ("ada", None)
    assert ada.problem is not None
    assert "only submission" in ada.problem.en
    assert zoe.student == "zoe"


def test_a_notebook_beside_an_empty_folder_of_the_assignment_counts(tmp_path: Path) -> None:
    make(tmp_path, f"ada/{LESSON}/", "ada/work.ipynb")
    (found,) = find_submissions(tmp_path, LESSON)
    assert found.notebook == tmp_path / "ada" / "work.ipynb"


def test_a_name_that_is_no_utf8_is_written_out(tmp_path: Path) -> None:
    """As archives from another code page leave it: the student is graded, under a name that can be printed."""
    folder = os.fsencode(tmp_path) + b"/bad\xff"
    os.mkdir(folder)
    (Path(os.fsdecode(folder)) / "x.ipynb").write_text("{}", encoding="utf-8")
    (found,) = find_submissions(tmp_path, LESSON)
    assert found.student == "bad\\xff"
    assert found.notebook is not None
    assert found.notebook.exists()


def test_ignored_files_are_known(tmp_path: Path) -> None:
    """An archive that nobody unpacked is not passed over in silence."""
    make(tmp_path, "ada.ipynb", "class.zip", ".DS_Store", "emmy/x.ipynb")
    assert ignored_files(tmp_path) == ["class.zip"]
    assert ignored_files(tmp_path / "ada.ipynb") == []
