"""A student's feedback page, read with an HTML parser: well-formed, self-contained, escaped, and without any secret."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_output

from autograder.grading.marks import HandMark, HandMarks
from autograder.notebooks.fitting import fit
from autograder.notebooks.reading import parse_notebook
from autograder.report.feedback import MAX_SHOWN_CHARACTERS, WORDS, feedback_page
from autograder.results import ByHand, CriterionResult, Language, Outcome, SubmissionResult, Text, Verdict
from tests.conftest import TINY, Answer
from tests.report.results import NEW, RIGHT, UNJUDGED, WRONG, result

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
EVIL = '<script>alert("x")</script>'
VOID = {"meta", "img", "br", "link", "input"}


class Page(HTMLParser):
    """What a browser makes of a page: elements, attributes, text; complains where tags do not nest."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.comments: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == [], f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.text += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def page(
    given: SubmissionResult, notebook: str | None = None, language: Language = "en", title: str = "Clocks"
) -> Page:
    return Page(feedback_page("02-lesson", title, given, notebook, language))


@pytest.fixture
def executed(tiny_source: NotebookNode, tiny_release: NotebookNode, answered: Answer) -> Callable[..., str]:
    """An executed notebook as grading leaves it: fitted, with a figure, check output and verdict."""

    def make(code: str | None = None, printed: str = "", png: object = PNG, alt: object = "three dots") -> str:
        submitted = answered(**({"pair_frequencies": code} if code is not None else {}))
        notebook = fit(parse_notebook(json.dumps(submitted).encode(), "a.ipynb"), tiny_source, tiny_release).notebook
        notebook = copy.deepcopy(notebook)
        for cell in notebook.cells:
            if cell["id"] == "draw-dots":
                # Not by new_output, which would refuse the odd ones.
                metadata = {"image/png": {"alt": alt}}
                cell.outputs = [{"output_type": "display_data", "data": {"image/png": png}, "metadata": metadata}]
            if cell["id"] == "test-pair-frequencies":
                cell.outputs = [
                    new_output("stream", name="stdout", text=text) for text in (printed, "2 / 2  All right.\n")
                ]
        return json.dumps(notebook)

    return make


def test_a_page_says_what_happened() -> None:
    """Score, each exercise with its message, criteria where points were lost, the mistake's name."""
    shown = page(result("ada", WRONG, RIGHT))
    text = " ".join(shown.text.split())
    said = ["Clocks", "ada · graded", "1.5 / 3 points", "pair-frequencies", "0.5 / 2", "wavelengths", "1 / 1"]
    said += ["The exponent uses the column number.", "column-index", "Too fast.", "shape and dtype", "met"]
    for part in said:
        assert part in text
    assert text.count("Criterion") == 1  # a right exercise needs no table
    assert shown.all("html") == [{"lang": "en"}]


def test_a_chinese_page_is_chinese() -> None:
    """Every word of ours, and the messages."""
    shown = page(result("李雷", WRONG, NEW), language="zh", title="时钟")
    assert shown.all("html") == [{"lang": "zh-CN"}]
    for part in ("时钟", "李雷 · 已评分", "指数里用的是列号。", "太快。", "形状与 dtype", "评分项", "通过"):
        assert part in shown.text
    for word in WORDS.values():
        if len(word.en) > 5:
            assert word.en not in shown.text


@pytest.mark.parametrize(
    ("outcome", "said"),
    [(Outcome.PARTLY_GRADED, "partly graded"), (Outcome.REJECTED, "not graded")],
)
def test_the_reason_stands_at_the_top(outcome: Outcome, said: str) -> None:
    """Marked as a status, in the page's language."""
    shown = page(result("ada", UNJUDGED, outcome=outcome, reason=Text("the kernel died", "内核崩溃")))
    assert said in shown.text
    assert shown.text.index("the kernel died") < shown.text.index("attention")
    assert {"class": "bad", "role": "status"} in shown.all("p")


def test_a_page_is_self_contained() -> None:
    """No script, no handler, nothing loaded from anywhere: it can be mailed, printed and opened offline."""
    shown = page(result("ada", WRONG))
    assert {tag for tag, _ in shown.elements}.isdisjoint(
        {"script", "iframe", "link", "object", "embed", "form", "base"}
    )
    for _, attributes in shown.elements:
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert "://" not in (value or "")
            if name in ("src", "href"):
                assert (value or "").startswith("data:image/png;base64,")


def evil_verdict() -> Verdict:
    text = Text(EVIL, EVIL)
    return Verdict(EVIL, 0.0, 1.0, EVIL, text, (CriterionResult("c", text, 0.0, 1.0, text),))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_everything_is_escaped(executed: Callable[..., str], language: Language) -> None:
    """Student's name, title, messages, criteria, code, output, a figure's description: shown as text, none as a tag."""
    notebook = executed(
        code=f"x = '{EVIL}'", printed=f"\x1b[31m{EVIL}\x1b[0m", alt=f'"><img src=x onerror=alert(1)>{EVIL}'
    )
    given = result(EVIL, evil_verdict(), WRONG, outcome=Outcome.REJECTED, reason=Text(EVIL, EVIL))
    shown = page(given, notebook, language, title=EVIL)
    assert shown.all("script") == []
    assert len(shown.all("img")) == 1
    assert not any(name.startswith("on") for _, attributes in shown.elements for name in attributes)
    assert shown.text.count(EVIL) >= 9
    assert "\x1b" not in shown.text


def test_figures_have_their_description(executed: Callable[..., str]) -> None:
    """As alternative text and as a caption; a figure without one has at least its cell's name."""
    (image,) = page(result("ada", WRONG), executed()).all("img")
    assert image["alt"] == "three dots"
    assert image["src"] == f"data:image/png;base64,{PNG}"
    (image,) = page(result("ada", WRONG), executed(alt=None)).all("img")
    assert image["alt"] == "Your figure in the cell draw-dots"
    (image,) = page(result("ada", WRONG), executed(alt=["a", "list"])).all("img")
    assert image["alt"] == "Your figure in the cell draw-dots"


@pytest.mark.parametrize("png", ['"><script>', "data:text/html,x", None, 5, {"a": 1}, ""], ids=repr)
def test_a_picture_that_is_none_is_left_out(executed: Callable[..., str], png: object) -> None:
    """Only base64 gets into an image's address."""
    assert page(result("ada", WRONG), executed(png=png)).all("img") == []


def test_the_students_code_and_output_are_shown(executed: Callable[..., str]) -> None:
    """Open where points were lost; the verdict's own line is not repeated as output."""
    shown = page(
        result("ada", WRONG), executed(code="def pair_frequencies(d):\n    return 7", printed="I print this\n")
    )
    assert "def pair_frequencies(d):\n    return 7" in shown.text
    assert "I print this" in shown.text
    assert "2 / 2  All right." not in shown.text
    assert {"open": None} in shown.all("details")


def test_no_hidden_test_and_no_solution_is_shown(executed: Callable[..., str]) -> None:
    """What the notebook of the grader holds beside the student's own code stays there."""
    html = feedback_page("02-lesson", "Clocks", result("ada", WRONG, RIGHT), executed(code="x = 1"), "en")
    for secret in ("HIDDEN", "SOLUTION", "autograder", "grade(", "expect_tensor", "torch.arange"):
        assert secret not in html


def test_long_code_and_output_are_cut(executed: Callable[..., str]) -> None:
    """A page stays a page."""
    shown = page(result("ada", WRONG), executed(code="# " + "c" * 50_000, printed="p" * 50_000))
    assert shown.text.count("c" * MAX_SHOWN_CHARACTERS) <= 1
    assert len(shown.text) < 3 * MAX_SHOWN_CHARACTERS
    assert "…" in shown.text


def test_a_submission_without_points_has_a_page() -> None:
    """Nothing to divide by."""
    assert "0 / 0" in page(result("ada")).text


def test_repairs_are_not_the_students_affair() -> None:
    """The page of a repaired notebook is the page of any other."""
    plain = result("ada", WRONG, RIGHT)
    repaired = replace(plain, repairs=(Text("changed and restored: tools", "被改动，已恢复原文：tools"),))
    for language in ("en", "zh"):
        assert page(repaired, language=language).text == page(plain, language=language).text  # type: ignore[arg-type]


def test_what_is_not_judged_is_shown_with_its_reason() -> None:
    """0 points, and why."""
    assert "Not judged: out of time." in page(result("ada", UNJUDGED, outcome=Outcome.PARTLY_GRADED)).text


def test_the_notebook_given_is_the_one_that_nbformat_reads(executed: Callable[..., str]) -> None:
    """The fixture is an honest one: valid, and with the hidden tests that must not be shown."""
    notebook = nbformat.reads(executed(), as_version=4)
    nbformat.validate(notebook)
    assert "HIDDEN TESTS" in nbformat.writes(notebook)
    assert TINY.startswith("01")


def test_what_people_gave_is_on_the_page() -> None:
    """Marks and comments by hand, in the total too; extra points; what lateness cost."""
    given = replace(result("ada", WRONG, RIGHT), by_hand=(ByHand("reflection", 3.0), ByHand("essay", 4.0)))
    marks = HandMarks(
        {
            "reflection": HandMark(2.5, 0.0, f"Well seen {EVIL}"),
            "pair-frequencies": HandMark(1.5),
            "wavelengths": HandMark(None, 0.25),
        },
        late_penalty=1.0,
    )
    shown = Page(feedback_page("02-lesson", "Clocks", given, None, "en", marks=marks))
    text = " ".join(shown.text.split())
    for part in (
        "4.25 / 6 points",  # 1.5 + 1.25 + 2.5 - 1 of 2 + 1 + 3
        "4 more points are given by your teacher",
        "−1 points taken off because it was handed in late",
        "Given by your teacher: 2.5 / 3",
        f"Your teacher writes: Well seen {EVIL}",
        "Given by your teacher: 1.5 / 2",
        "+0.25 extra points from your teacher",
        "… / 4",
    ):
        assert part in text, part
    assert shown.all("script") == []


def test_the_policy_lets_nothing_in() -> None:
    """No script at all, pictures only from inside the page."""
    (policy,) = [meta["content"] or "" for meta in page(result("ada", WRONG)).all("meta") if "http-equiv" in meta]
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "script-src" not in policy
