"""Lessons to notebooks: faults of a lesson are named, builds repeat to the byte, what is out of date is seen."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbformat import NotebookNode

import course.build
from course.__main__ import main
from course.build import Course, LessonError, build, differences
from tests.conftest import CHINESE_TEXTS, LESSON, ROOT, TINY, translation_of, write_course

FILE = Path(TINY) / f"{TINY}.ipynb"
NOTEBOOKS = [Path("release") / FILE, Path("source") / FILE, Path("release/zh") / FILE]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The tiny course, not built."""
    return write_course(tmp_path / "written")


def lesson_path(root: Path) -> Path:
    return root / "course" / "lessons" / f"{TINY}.md"


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def code_of(notebook: NotebookNode) -> dict[str, str]:
    return {cell["id"]: cell.source for cell in notebook.cells if cell.cell_type == "code"}


def read(root: Path, place: Path) -> NotebookNode:
    return nbformat.read(root / place, as_version=4)


class TestWhatIsBuilt:
    """The notebooks of an honest lesson."""

    def test_the_source_is_an_instructors_notebook(self, tiny_source: NotebookNode) -> None:
        """Valid, answers and hidden tests included, every id the cell's name, no outputs."""
        nbformat.validate(tiny_source)
        assert [cell["id"] for cell in tiny_source.cells] == [cell.metadata["name"] for cell in tiny_source.cells]
        code = code_of(tiny_source)
        assert "### BEGIN SOLUTION" in code["pair-frequencies"]
        assert 'grade("pair-frequencies", pair_frequencies)' in code["test-pair-frequencies"]
        assert all(cell.get("outputs", []) == [] for cell in tiny_source.cells)

    def test_the_release_holds_neither_answers_nor_hidden_tests(
        self, tiny_source: NotebookNode, tiny_release: NotebookNode
    ) -> None:
        """The same cells; signature and docstring stay, the stub explains itself."""
        nbformat.validate(tiny_release)
        assert [cell["id"] for cell in tiny_release.cells] == [cell["id"] for cell in tiny_source.cells]
        text = nbformat.writes(tiny_release)
        for secret in ("SOLUTION", "HIDDEN", "autograder", "arange", "tril"):
            assert secret not in text
        stub = code_of(tiny_release)["pair-frequencies"]
        assert stub.startswith("def pair_frequencies(d_model: int, base: float = 10000.0) -> torch.Tensor:\n")
        assert 'raise NotImplementedError("No answer in this cell yet.")' in stub
        compile(stub, "stub", "exec")

    def test_the_tools_cell_holds_what_the_lesson_uses(self, tiny_release: NotebookNode) -> None:
        """Collapsed and locked; the figure with its helper and constants, the checks, and no more."""
        (tools,) = [cell for cell in tiny_release.cells if cell["id"] == "tools"]
        assert tools.metadata["jupyter"] == {"source_hidden": True}
        assert tools.metadata["cellView"] == "form"
        assert tools.metadata["nbgrader"]["locked"]
        for wanted in ("def draw_dots", "def _heights", "DOT_SIZE", "def show", "def check", "def expect_tensor"):
            assert wanted in tools.source
        for other in ("draw_nothing", "UNUSED_SIZE", "expect_raises", "import course", "from course"):
            assert other not in tools.source

    def test_the_badges_come_from_the_one_setting(self, tiny_release: NotebookNode) -> None:
        """Colab opens the release, the solution is the source."""
        (badges,) = [cell.source for cell in tiny_release.cells if cell["id"] == "badges"]
        place = f"{TINY}/{TINY}.ipynb"
        assert f"https://colab.research.google.com/github/someone/tiny/blob/main/release/{place}" in badges
        assert f"https://github.com/someone/tiny/blob/main/source/{place}" in badges

    def test_the_chinese_edition_has_the_same_code_and_ids(self, tiny_course: Path, tiny_release: NotebookNode) -> None:
        """Prose, badges and title are Chinese; everything that runs is shared."""
        chinese = read(tiny_course, NOTEBOOKS[2])
        assert code_of(chinese) == code_of(tiny_release)
        assert [cell["id"] for cell in chinese.cells] == [cell["id"] for cell in tiny_release.cells]
        prose = {cell["id"]: cell.source for cell in chinese.cells if cell.cell_type == "markdown"}
        assert prose["title"] == CHINESE_TEXTS["title"]
        assert "在 Colab 中打开" in prose["badges"]
        assert f"release/zh/{TINY}" in prose["badges"]
        assert re.search("[\u4e00-\u9fff]", chinese.metadata["title"])

    def test_the_metadata_is_ours_alone(self, tiny_release: NotebookNode) -> None:
        """A kernel that exists everywhere, the licence, the title."""
        assert tiny_release.metadata["kernelspec"]["name"] == "python3"
        assert tiny_release.metadata["license"] == {"name": "CC BY 4.0"}
        assert "Tiny" in tiny_release.metadata["title"]


BAD_LESSONS = {
    "a cell without a name": (":name: imports\n", "", "has no name"),
    "prose without a name": ('+++ {"name": "title"}', "+++", "has no name"),
    "one name twice": (":name: imports", ":name: draw-dots", "'draw-dots' is taken"),
    "a name in capitals": (":name: imports", ":name: Imports", "lower-case"),
    "a name with a space": ('"name": "title"', '"name": "the title"', "lower-case"),
    "a grade_id that is not the name": ("grade_id: causal-mask,", "grade_id: mask,", "grade_id 'mask'"),
    "no badges": ('{"name": "badges"}', '{"name": "links"}', "no cell named 'badges'"),
    "no tools": (":name: tools", ":name: others", "no cell named 'tools'"),
}


class TestFaultsOfALesson:
    """Each stops the build with the file, the cell and what to do."""

    @pytest.mark.parametrize(("old", "new", "said"), BAD_LESSONS.values(), ids=BAD_LESSONS)
    def test_a_fault_is_named(self, written: Path, old: str, new: str, said: str) -> None:
        """Nothing is written."""
        change(lesson_path(written), old, new)
        (written / "course" / "lessons" / "zh" / f"{TINY}.md").unlink()
        with pytest.raises(LessonError, match=re.escape(said)) as caught:
            build(Course(written), written)
        assert f"{TINY}.md" in str(caught.value)
        assert not (written / "release").exists()

    def test_a_lesson_without_translation_has_no_chinese_edition(self, written: Path) -> None:
        """And that is no fault."""
        (written / "course" / "lessons" / "zh" / f"{TINY}.md").unlink()
        assert build(Course(written), written) == NOTEBOOKS[:2]


TOO_MANY = {
    "unknown": '+++ {"name": "elsewhere", "english": "0"}\n\n文字\n',
    "twice": '+++ {"name": "title", "english": "0"}\n\n文字\n',
    "code": "```{code-cell} ipython3\n:name: imports\n\nx = 1\n```\n",
}


class TestFaultsOfATranslation:
    """A lesson that has a translation has a whole and a current one."""

    def zh(self, root: Path) -> Path:
        return root / "course" / "lessons" / "zh" / f"{TINY}.md"

    def fails(self, root: Path, said: str) -> str:
        with pytest.raises(LessonError, match=said) as caught:
            build(Course(root), root)
        assert str(self.zh(root)) in str(caught.value)
        return str(caught.value)

    def test_a_changed_english_text_makes_its_translation_stale(self, written: Path) -> None:
        """The error holds the new hash: after revising the text it goes where the old one was."""
        change(lesson_path(written), "Write `causal_mask`.", "Write `causal_mask` now.")
        text = self.fails(written, "'exercise-causal-mask' translates an older English text")
        (new_hash,) = re.findall(r'"english": "([0-9a-f]{12})"', text)
        zh = self.zh(written)
        (old_hash,) = re.findall(r'"exercise-causal-mask", "english": "([0-9a-f]{12})"', zh.read_text("utf-8"))
        change(zh, old_hash, new_hash)
        assert build(Course(written), written) == NOTEBOOKS

    def test_a_missing_cell_is_named(self, written: Path) -> None:
        """A new paragraph in English is not silently English in the Chinese edition."""
        text = self.zh(written).read_text("utf-8")
        start = text.index('+++ {"name": "reflection"')
        self.zh(written).write_text(text[:start], encoding="utf-8")
        self.fails(written, "not translated yet: reflection")

    @pytest.mark.parametrize("extra", TOO_MANY.values(), ids=TOO_MANY)
    def test_a_cell_too_many_is_named(self, written: Path, extra: str) -> None:
        """One without an original, one that comes twice, and code, which is shared."""
        zh = self.zh(written)
        zh.write_text(zh.read_text("utf-8") + "\n" + extra, encoding="utf-8")
        self.fails(written, "no English prose cell|comes twice")

    def test_changed_code_leaves_the_translation_current(self, written: Path) -> None:
        """Only prose is bound."""
        change(lesson_path(written), "import torch\n```", "import torch\n\nx = 1\n```")
        assert build(Course(written), written) == NOTEBOOKS


class TestOutOfDate:
    """What `--check` finds."""

    def test_a_built_course_has_no_differences(self, tiny_course: Path) -> None:
        """Built twice, in two places, at two times: the same bytes."""
        assert list(differences(Course(tiny_course))) == []

    def test_a_build_is_the_same_everywhere(self, tiny_course: Path, tmp_path: Path) -> None:
        """Not even the folder matters."""
        elsewhere = tmp_path / "else" / "where"
        for place in build(Course(tiny_course), elsewhere):
            assert (elsewhere / place).read_bytes() == (tiny_course / place).read_bytes()

    @pytest.mark.parametrize("place", NOTEBOOKS, ids=str)
    @pytest.mark.parametrize("how", ["edited", "executed", "deleted"])
    def test_every_difference_is_found(self, tiny_course: Path, place: Path, how: str) -> None:
        """An edit by hand, an output that was saved, a file that is gone."""
        path = tiny_course / place
        if how == "deleted":
            path.unlink()
        else:
            notebook = json.loads(path.read_text(encoding="utf-8"))
            cell = next(cell for cell in notebook["cells"] if cell["id"] == "imports")
            if how == "edited":
                cell["source"] = [*cell["source"], "\n"]
            else:
                cell["execution_count"] = 1
            path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        assert list(differences(Course(tiny_course))) == [place]

    def test_strays_are_found_and_checkpoints_are_none(self, tiny_course: Path) -> None:
        """A notebook that no lesson builds, as after renaming one."""
        stray = Path("release") / "00-old" / "00-old.ipynb"
        checkpoint = Path("source") / ".ipynb_checkpoints" / "x.ipynb"
        for place in (stray, checkpoint):
            (tiny_course / place).parent.mkdir()
            (tiny_course / place).write_text("{}", encoding="utf-8")
        assert list(differences(Course(tiny_course))) == [stray]


class TestTheCommand:
    """`python -m course build`, in this process, on the tiny course."""

    @pytest.fixture(autouse=True)
    def _tiny(self, tiny_course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(course.build.Course, "__init__", lambda self: object.__setattr__(self, "root", tiny_course))

    def test_it_builds(self, tiny_course: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """One line a notebook, status 0."""
        (tiny_course / NOTEBOOKS[0]).unlink()
        assert main(["build"]) == 0
        assert (tiny_course / NOTEBOOKS[0]).exists()
        assert capsys.readouterr().out.splitlines() == [f"built {place}" for place in NOTEBOOKS]

    def test_check_says_what_is_out_of_date(self, tiny_course: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Status 1, the file and the command; nothing is written."""
        assert main(["build", "--check"]) == 0
        change(lesson_path(tiny_course), "import torch\n```", "import torch\n\nx = 1\n```")
        before = (tiny_course / NOTEBOOKS[1]).read_bytes()
        assert main(["build", "--check"]) == 1
        error = capsys.readouterr().err
        assert all(f"out of date: {place}. Run `python -m course build`" in error for place in NOTEBOOKS)
        assert (tiny_course / NOTEBOOKS[1]).read_bytes() == before

    def test_a_fault_of_a_lesson_is_one_line(self, tiny_course: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Status 1 and the message, no traceback."""
        change(lesson_path(tiny_course), ":name: imports", ":name: tools")
        assert main(["build"]) == 1
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert len(error.splitlines()) == 1


class TestPairing:
    """Jupytext: an instructor who edits `source/` in JupyterLab keeps the lesson's text in step."""

    def edit_and_sync(self, root: Path, edit: Callable[[NotebookNode], None]) -> None:
        """What saving in JupyterLab does: the notebook is written, then its pair."""
        from jupytext.cli import jupytext as command

        path = root / NOTEBOOKS[1]
        notebook = nbformat.read(path, as_version=4)
        edit(notebook)
        nbformat.write(notebook, path)
        later = lesson_path(root).stat().st_mtime + 10
        os.utime(path, (later, later))
        assert command(["--quiet", "--sync", str(path)]) in (0, None)

    def test_an_edit_of_the_notebook_reaches_the_lesson(self, tiny_course: Path) -> None:
        """Prose and code; the lesson then builds that very notebook."""

        def edit(notebook: NotebookNode) -> None:
            cells = {cell["id"]: cell for cell in notebook.cells}
            cells["title"].source += "\n\nOne more sentence."
            cells["imports"].source += "\nimport math"

        (tiny_course / "course" / "lessons" / "zh" / f"{TINY}.md").unlink()
        self.edit_and_sync(tiny_course, edit)
        text = lesson_path(tiny_course).read_text(encoding="utf-8")
        assert "One more sentence." in text
        assert "import torch\nimport math" in text
        target = tiny_course.parent / "rebuilt"
        build(Course(tiny_course), target)
        rebuilt, edited = read(target, NOTEBOOKS[1]), read(tiny_course, NOTEBOOKS[1])
        assert [cell["id"] for cell in rebuilt.cells] == [cell["id"] for cell in edited.cells]
        assert [cell.source for cell in rebuilt.cells] == [cell.source for cell in edited.cells]
        assert [cell.metadata.get("nbgrader") for cell in rebuilt.cells] == [
            cell.metadata.get("nbgrader") for cell in edited.cells
        ]

    def test_a_sync_without_an_edit_changes_no_notebook(self, tiny_course: Path) -> None:
        """The text that Jupytext writes builds the same bytes, translation included."""
        self.edit_and_sync(tiny_course, lambda notebook: None)
        target = tiny_course.parent / "rebuilt"
        build(Course(tiny_course), target)
        for place in NOTEBOOKS[:1]:
            assert (target / place).read_bytes() == (_original(tiny_course, place))

    def test_the_lesson_of_the_fixture_is_what_jupytext_reads(self, tmp_path: Path) -> None:
        """The tests above stand on a real lesson: every cell has a name."""
        path = tmp_path / "lesson.md"
        path.write_text(LESSON, encoding="utf-8")
        cells = jupytext.read(path, fmt="md:myst").cells
        assert len(cells) == 12
        assert all(cell.metadata.get("name") for cell in cells)
        assert "练习" in translation_of(path)


def _original(root: Path, place: Path) -> bytes:
    return (root / place).read_bytes()


LIST_ITEM = re.compile(r"\s*(\d+[.)]|[-+*]) ")
NO_PARAGRAPH = re.compile(r"\s*(\d+[.)] |[-+*] |>|\||```|#|---|\+\+\+|:?name:|<)")


@pytest.mark.parametrize("path", sorted((ROOT / "course" / "lessons").rglob("*.md")), ids=lambda path: path.stem)
def test_no_line_of_a_paragraph_looks_like_a_list(path: Path) -> None:
    """A sentence that goes on with "15. What …" or "- 3 …" on a new line is shown as a list by some editors."""
    lines = path.read_text(encoding="utf-8").split("\n")
    for before, line in itertools.pairwise(lines):
        number = re.match(r"\s*(\d+)[.)] ", line)
        counts_on = number and re.match(rf"\s*{int(number.group(1)) - 1}[.)] ", before)
        if LIST_ITEM.match(line) and before.strip() and not NO_PARAGRAPH.match(before) and not before.startswith(" "):
            pytest.fail(f"{path.name}: {before!r} / {line!r}")
        if number and LIST_ITEM.match(before) and line.startswith(" ") and not counts_on:
            pytest.fail(f"{path.name}: {before!r} / {line!r}")
