"""Where a feedback page sends its reader: the section of the lesson that explains the exercise, and its task."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell

from autograder.grading.assignments import load_assignment
from autograder.grading.marks import HandMarks
from autograder.notebooks.language import language_of
from autograder.report.feedback_pages import write_feedback
from autograder.report.lesson import find_lesson, reading_of
from autograder.results import Language
from tests.conftest import TINY, Answer
from tests.report.results import RIGHT, WRONG, result

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted(path.stem for path in (ROOT / "release").glob("*/*.ipynb") if path.stem == path.parent.name)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", LESSONS)
def test_every_exercise_has_something_to_read(name: str, language: Language) -> None:
    """Each has its own task, most an explanation before it; links open the released notebook at a cell that exists."""
    assignment = load_assignment(ROOT, name)
    lesson = find_lesson(assignment, language)
    cells = {cell["id"] for cell in nbformat.read(ROOT / lesson.file, as_version=4).cells}
    assert set(assignment.answers) <= set(lesson.reading)
    tasks = [lesson.reading[exercise][-1].link for exercise in assignment.exercises]
    assert len(set(tasks)) == len(tasks)
    for sections in lesson.reading.values():
        for section in sections:
            assert section.link is not None
            address, _, place = section.link.partition("#scrollTo=")
            assert address.endswith(lesson.file)
            assert place in cells
            assert section.heading
            assert section.link not in tasks[:-1] or section == sections[-1]  # a task explains no other exercise
    explained = [sections for exercise, sections in lesson.reading.items() if "quiz" not in exercise]
    assert all(len(sections) == 2 for sections in explained[:1])


def test_lesson_02_by_hand() -> None:
    """As somebody reads it, in both languages; points are left out of the heading."""
    assignment = load_assignment(ROOT, "02-sinusoidal-encoding")
    for language, expected in (
        ("en", ["Why pairs: a shift is a rotation", "Exercise 5: the matrix that shifts every position"]),
        ("zh", ["为什么成对：平移就是旋转", "练习 5：移动所有位置的矩阵"]),
    ):
        reading = find_lesson(assignment, "zh" if language == "zh" else "en").reading
        assert [section.heading for section in reading["shift-matrix"]] == expected
        assert len(reading["quiz-sinusoidal"]) == 1


def test_an_unpublished_lesson_names_its_headings(tiny_course: Path) -> None:
    """Without a Colab link there is none on the page, and the file is named."""
    cells = nbformat.read(tiny_course / "release" / TINY / f"{TINY}.ipynb", as_version=4).cells
    cells = [cell for cell in cells if cell["id"] != "badges"]
    reading = reading_of(cells)
    assert [section.link for section in reading["causal-mask"]] == [None]
    assert [section.heading for section in reading["causal-mask"]] == ["Exercise 2"]


def chinese(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook as a reader of a Chinese edition hands it in."""
    notebook.cells.insert(0, new_markdown_cell("# 小课\n\n" + "位置编码告诉模型每个词在哪里。" * 20))
    return notebook


@pytest.mark.parametrize(
    ("asked", "edition", "spoken"),
    [(None, "zh", "zh-CN"), (None, "en", "en"), ("en", "zh", "en"), ("zh", "en", "zh-CN")],
)
def test_a_page_is_in_the_language_of_its_notebook(
    asked: Language | None, edition: str, spoken: str, tiny_course: Path, tmp_path: Path, answered: Answer
) -> None:
    """Unless a language was asked for."""
    submitted = tmp_path / "handed-in.ipynb"
    notebook = chinese(answered()) if edition == "zh" else answered()
    submitted.write_text(nbformat.writes(notebook), encoding="utf-8")
    page = write_feedback(
        load_assignment(tiny_course, TINY),
        result("ada", WRONG, RIGHT),
        None,
        submitted=submitted,
        language=asked,
        marks=HandMarks(),
    )
    html = page.read_text(encoding="utf-8")
    assert f'<html lang="{spoken}">' in html
    assert ("练习 1" in html) is (spoken == "zh-CN")
    assert f'href="https://colab.research.google.com/github/someone/tiny/blob/main/release/{TINY}' in html.replace(
        "release/zh/", "release/"
    )
    assert html.count('class="read"') == 1  # only where points are missing


@pytest.mark.parametrize("path", sorted((ROOT / "release").rglob("*.ipynb")), ids=lambda path: str(path.parent.name))
def test_the_language_of_every_released_notebook_is_told(path: Path) -> None:
    """By its prose."""
    assert language_of(path) == ("zh" if "zh" in path.parts else "en")


def test_no_prose_tells_no_language(tmp_path: Path) -> None:
    """Nor does a file that is none."""
    path = tmp_path / "a.ipynb"
    assert language_of(path) is None
    path.write_text(nbformat.writes(nbformat.v4.new_notebook()), encoding="utf-8")
    assert language_of(path) is None


def test_notes_in_chinese_leave_an_english_notebook_english(tmp_path: Path) -> None:
    """A page of them."""
    notebook = nbformat.read(ROOT / "release" / LESSONS[0] / f"{LESSONS[0]}.ipynb", as_version=4)
    notebook.cells.append(new_markdown_cell("我的笔记：注意力不知道词的顺序。" * 60))
    path = tmp_path / "a.ipynb"
    path.write_text(nbformat.writes(notebook), encoding="utf-8")
    assert language_of(path) == "en"
