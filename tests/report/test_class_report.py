"""The class report as HTML: self-contained, escaped, in one language, with a description for every plot."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.errors import OrderMattersError
from autograder.grading.assignments import load_assignment
from autograder.report.class_report import class_page, report_place, write_report
from autograder.report.class_words import WORDS
from autograder.report.stored import last_run, read_results, run_of, store_results
from autograder.results import Language, class_to_json
from tests.conftest import TINY
from tests.report.made_class import EVIL, made_class
from tests.report.results import RIGHT, result
from tests.report.test_feedback import Page


class ReportPage(Page):
    """A page that may have a script of ours."""

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["script"]:
            super().handle_data(data)


def page(language: Language = "en", size: int = 16) -> str:
    return class_page("02-lesson", "Clocks", made_class(size), language, made="2026-01-02 03:04 UTC")


def test_it_says_what_happened() -> None:
    """Counts, ranking with names, criteria, reasons, source of the discrimination."""
    text = " ".join(ReportPage(page()).text.split())
    for part in (
        "Class report · 02-lesson",
        "results of 2026-01-02 03:04 UTC",
        "submissions19",
        "graded in full17",
        "student-05, student-10, student-15",
        "shift-matrix: values (0 / 17)",
        "pair-frequencies: shape and dtype (18 / 18)",
        "the kernel died",
        "Henrysson (1963)",
        "corrected item-total correlation",
        "With 17 submissions a correlation is a hint at best.",
        "Answers graded by hand (reflection) are not in them",
        "student-16 (2.1 s)",
        "What was repaired",
        "1cells were in another order; back in their place: wavelengthsstudent-91",
        f"2changed and restored: tools {EVIL}{EVIL}, student-91",
        "mended before they ran: 2 of 19.",
    ):
        assert part in text, part


@pytest.mark.parametrize("language", ["en", "zh"])
def test_without_repairs_nothing_is_said_of_them(language: Language) -> None:
    """No section and no link to it."""
    results = [replace(one, repairs=()) for one in made_class()]
    html = class_page("02-lesson", "Clocks", results, language)
    assert WORDS["repairs"].in_language(language) not in html
    assert 'id="repairs"' not in html
    assert '#repairs"' not in html
    assert 'href="#repairs"' in page(language)


def test_what_students_chose_is_text() -> None:
    """Names and reasons are shown, never read as HTML: one script, no image but the plots, no event handler."""
    html = page()
    shown = ReportPage(html)
    assert EVIL in shown.text
    assert len(shown.all("script")) == 1
    assert all((image["src"] or "").startswith("data:image/svg+xml;base64,") for image in shown.all("img"))
    assert not [name for _, attributes in shown.elements for name in attributes if name.startswith("on")]
    assert not [1 for _, attributes in shown.elements if "style" in attributes]  # the policy would stop it


def test_the_policy_names_exactly_what_is_there() -> None:
    """Hashes of the style and the script in the page; nothing from anywhere else."""
    html = page()
    (policy,) = [attributes["content"] for attributes in ReportPage(html).all("meta") if "http-equiv" in attributes]
    hashes = [
        "sha256-" + base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        for part in re.findall(r"<(?:style|script)>(.*?)</(?:style|script)>", html, flags=re.DOTALL)
    ]
    assert policy == (
        f"default-src 'none'; img-src data:; style-src '{hashes[0]}'; script-src '{hashes[1]}'; base-uri 'none'; "
        "form-action 'none'"
    )


def test_it_needs_nothing_from_elsewhere() -> None:
    """No address but links to pages beside it and to places in it."""
    shown = ReportPage(page())
    links = [attributes.get("href") or "" for attributes in shown.all("a")]
    assert links
    assert all(link.startswith("#") for link in links)
    assert not shown.all("link")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_plot_is_drawn_and_described(language: Language) -> None:
    """Six plots: well-formed SVG with a title, and the same text as alternative."""
    images = ReportPage(page(language)).all("img")
    assert len(images) == 6
    for image in images:
        svg = ElementTree.fromstring(base64.b64decode((image["src"] or "").partition(",")[2]))
        assert svg.tag == "{http://www.w3.org/2000/svg}svg"
        assert svg[0].text == image["alt"]
        assert len(image["alt"] or "") > 20
        for shape in svg.iter("{http://www.w3.org/2000/svg}rect"):
            assert float(shape.get("width", "0")) >= 0
            assert float(shape.get("height", "0")) >= 0


def test_a_chinese_report_is_chinese() -> None:
    """No word of ours in English is left."""
    shown = ReportPage(page("zh"))
    assert shown.all("html") == [{"lang": "zh-CN"}]
    alternatives = " ".join(image["alt"] or "" for image in shown.all("img"))
    for name, word in WORDS.items():
        if len(word.en) > 8 and "{" not in word.en:
            assert word.en not in shown.text + alternatives, name


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("size", [0, 1, 2])
def test_a_small_class_has_a_report(size: int, language: Language) -> None:
    """Nobody, one, two: no division by nothing."""
    results = [result(f"s{number}", replace(RIGHT, score=float(number))) for number in range(size)]
    shown = ReportPage(class_page("02-lesson", "Clocks", results, language))
    assert (WORDS["empty"].in_language(language) in shown.text) == (size == 0)


def test_six_hundred_students_make_a_page_that_opens() -> None:
    """Less than a megabyte: equal neighbours of the map are one shape."""
    assert len(page(size=600)) < 1_000_000


def test_results_are_kept_and_read_again(tmp_path: Path) -> None:
    """In full, both languages; the second run replaces the first."""
    store_results(tmp_path, "02-lesson", made_class(2))
    path = store_results(tmp_path, "02-lesson", made_class())
    assert last_run(tmp_path, "02-lesson") == path
    assert read_results([path], "02-lesson") == made_class()
    assert run_of(path).made is not None
    assert [entry.name for entry in path.parent.iterdir()] == ["02-lesson.json"]


@pytest.mark.parametrize("sandbox", [True, False])
def test_a_class_graded_without_a_sandbox_says_so(tiny_course: Path, sandbox: bool) -> None:
    """On the page and in what a run keeps, so that a page made later says it too; otherwise nothing is said."""
    kept = store_results(tiny_course, TINY, made_class(), sandbox=sandbox)
    assert run_of(kept).sandbox is sandbox
    for language, words in (("en", "Graded without a sandbox"), ("zh", "没有使用沙箱")):
        written = write_report(load_assignment(tiny_course, TINY), made_class(), language, sandbox=sandbox)
        assert (words in written.read_text(encoding="utf-8")) is not sandbox


def test_the_public_json_makes_a_report_too(tmp_path: Path) -> None:
    """Several files are one class; of one student the last file's result counts."""
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, size in zip(paths, (4, 16), strict=True):
        document = class_to_json("02-lesson", made_class(size), "en")
        path.write_text(json.dumps(document), encoding="utf-8")
    found = read_results(paths, "02-lesson")
    assert [(one.student, one.score, one.outcome) for one in found] == [
        (one.student, one.score, one.outcome) for one in made_class()
    ]
    assert [[repair.en for repair in one.repairs] for one in found] == [
        [repair.en for repair in one.repairs] for one in made_class()
    ]
    assert [[v.judged for v in one.exercises] for one in found] == [
        [v.judged for v in one.exercises] for one in made_class()
    ]


BAD_FILES = {
    "not json": ("{", "holds no results"),
    "another json": ('{"assignment": "02-lesson"}', "holds no results"),
    "a list": ("[1]", "holds no results"),
    "another lesson": ('{"assignment": "03-x", "submissions": []}', "has the results of 03-x, not of 02-lesson"),
}


@pytest.mark.parametrize(("text", "said"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_without_results_is_named(text: str, said: str, tmp_path: Path) -> None:
    """With what is wrong."""
    path = tmp_path / "results.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(OrderMattersError, match=said) as caught:
        read_results([path], "02-lesson")
    assert str(path) in str(caught.value)


def test_without_a_run_there_is_a_remedy(tmp_path: Path) -> None:
    """What to do comes with the error."""
    with pytest.raises(OrderMattersError, match=r"autograder grade 02-lesson .* --json FILE"):
        last_run(tmp_path, "02-lesson")


def test_the_report_links_to_the_feedback_beside_it(tiny_course: Path) -> None:
    """Only to pages that exist, and only from its own place."""
    assignment = load_assignment(tiny_course, TINY)
    feedback = tiny_course / "feedback" / "student-01" / TINY / f"{TINY}.html"
    feedback.parent.mkdir(parents=True)
    feedback.write_text("", encoding="utf-8")
    path = write_report(assignment, made_class(), "zh")
    assert path == report_place(tiny_course, TINY)
    html = path.read_text(encoding="utf-8")
    links = set(re.findall(r'href="([^"#]+)"', html))
    assert links == {f"../feedback/student-01/{TINY}/{TINY}.html"}
    assert (path.parent / links.pop()).resolve() == feedback.resolve()
    assert "小课" in html
    elsewhere = write_report(assignment, made_class(), "en", path=tiny_course / "x" / "r.html")
    assert "feedback/" not in elsewhere.read_text(encoding="utf-8")
