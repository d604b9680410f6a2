"""Report and feedback in headless Chromium: no error, tables that sort, images with text, contrast that can be read."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from autograder.grading.marks import HandMark, HandMarks
from autograder.report.class_report import class_page
from autograder.report.feedback import feedback_page
from autograder.report.lesson import Section
from autograder.results import ByHand, Language, Outcome, SubmissionResult
from tests.report.made_class import EVIL, made_class
from tests.report.results import NEW, RIGHT, WRONG
from tests.report.test_feedback import executed  # noqa: F401  (a fixture)

pytestmark = pytest.mark.slow

Open = Callable[[str], Any]

CONTRAST = """
const light = (text) => {
  const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
  const part = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  return [0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b), a];
};
const behind = (node) => {
  for (; node; node = node.parentElement) {
    const [value, alpha] = light(getComputedStyle(node).backgroundColor);
    if (alpha > 0) return value;
  }
  return 1;
};
const weak = [];
for (const node of document.querySelectorAll("main *")) {
  if (![...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim())) continue;
  const [a, b] = [light(getComputedStyle(node).color)[0], behind(node)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) weak.push([node.tagName, node.textContent.trim().slice(0, 30), ratio]);
}
return weak;
"""
"""Text whose contrast is below 4.5, WCAG 2.2's level AA: https://www.w3.org/TR/WCAG22/#contrast-minimum."""


def report(language: Language = "en", size: int = 16) -> str:
    return class_page("02-lesson", "Clocks", made_class(size), language)


def feedback(executed: Callable[..., str], language: Language = "en") -> str:  # noqa: F811
    given = SubmissionResult(EVIL, Outcome.GRADED, None, 1.0, (WRONG, RIGHT, NEW), (ByHand("reflection", 3.0),))
    link = "https://colab.research.google.com/github/someone/tiny/blob/main/a.ipynb#scrollTo=formula"
    return feedback_page(
        "01-tiny",
        "Clocks",
        given,
        executed(printed=EVIL),
        language,
        reading={"pair-frequencies": (Section(f"Formula {EVIL}", link),)},
        marks=HandMarks({"reflection": HandMark(2.5, 0.0, f"Well seen. {EVIL}")}, 1.0),
    )


@pytest.fixture(params=["report", "feedback"])
def html(request: pytest.FixtureRequest, executed: Callable[..., str]) -> Callable[[Language], str]:  # noqa: F811
    """Either page, in a language."""

    def make(language: Language) -> str:
        return report(language) if request.param == "report" else feedback(executed, language)

    return make


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_page_opens_without_a_word_in_the_console(
    open_page: Open, html: Callable[[Language], str], language: Language
) -> None:
    """No error, no warning, nothing that the policy had to stop; what a student chose has not run."""
    driver = open_page(html(language))
    assert driver.get_log("browser") == []
    assert driver.execute_script("return performance.getEntriesByType('resource').filter("
                                 "(entry) => !entry.name.startsWith('data:')).length") == 0  # fmt: skip
    assert EVIL in driver.execute_script("return document.body.textContent")


def test_the_policy_stops_a_script_that_got_in(open_page: Open, html: Callable[[Language], str]) -> None:
    """Even if something were not escaped, it would not run, nor be fetched."""
    page = html("en").replace("</main>", '<script>document.title = "taken"</script><img src="https://x.test/a"></main>')
    driver = open_page(page)
    assert driver.title != "taken"
    assert len([line for line in driver.get_log("browser") if "Content Security Policy" in line["message"]]) == 2


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_image_is_drawn_and_has_text(
    open_page: Open, html: Callable[[Language], str], language: Language
) -> None:
    """Loaded, visible, described."""
    driver = open_page(html(language))
    images = driver.execute_script(
        "return [...document.images].map((image) => [image.complete, image.naturalWidth, image.alt.trim()])"
    )
    assert images
    assert all(complete and width > 0 and alt for complete, width, alt in images), images


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(open_page: Open, html: Callable[[Language], str], scheme: str) -> None:
    """Contrast of at least 4.5 in both colour schemes."""
    driver = open_page(html("en"))
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        assert driver.execute_script(CONTRAST) == []
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_headings_are_in_order(open_page: Open, html: Callable[[Language], str]) -> None:
    """One first-level heading, and no level is left out on the way down."""
    driver = open_page(html("en"))
    levels = driver.execute_script(
        "return [...document.querySelectorAll('h1,h2,h3,h4')].map((heading) => Number(heading.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_it_prints_what_is_folded(open_page: Open, html: Callable[[Language], str]) -> None:
    """On paper nothing can be opened: what is in a closed `details` is shown, and nothing is wider than the page."""
    driver = open_page(html("en"))
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        hidden = driver.execute_script(
            "return [...document.querySelectorAll('details > :not(summary)')].filter("
            "(node) => !node.checkVisibility({ contentVisibilityAuto: true })).length"
        )
        assert hidden == 0
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def column(driver: Any, place: int) -> list[str]:
    """The class table's column as it stands."""
    found: list[str] = driver.execute_script(
        "const table = document.getElementById('class-table');"
        "return [...table.tBodies[0].rows].map((row) => row.cells[arguments[0]].textContent)",
        place,
    )
    return found


def click(driver: Any, place: int) -> str | None:
    """Click on a heading of the class table, as a person does; its aria-sort afterwards."""
    heading = driver.find_elements("css selector", "#class-table thead th")[place]
    driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", heading)
    heading.find_element("tag name", "button").click()
    found: str | None = heading.get_attribute("aria-sort")
    return found


def test_the_table_sorts_on_a_click(open_page: Open) -> None:
    """Numbers as numbers, the largest first, then the smallest; only the chosen column says so."""
    driver = open_page(report(size=120))
    scores = [float(score) for score in column(driver, 2)]
    assert scores != sorted(scores)
    assert click(driver, 2) == "descending"
    assert [float(score) for score in column(driver, 2)] == sorted(scores, reverse=True)
    assert click(driver, 2) == "ascending"
    assert [float(score) for score in column(driver, 2)] == sorted(scores)
    assert click(driver, 0) == "ascending"
    assert column(driver, 0)[1:4] == ["student-01", "student-02", "student-03"]
    assert column(driver, 0).index("student-99") < column(driver, 0).index("student-100")  # by number, not by letter
    assert len(driver.find_elements("css selector", "#class-table [aria-sort]")) == 1
    assert driver.get_log("browser") == []


def test_what_was_not_judged_comes_last_either_way(open_page: Open) -> None:
    """A dash is no number."""
    driver = open_page(report())
    click(driver, 0)
    assert click(driver, 0) == "descending"
    assert column(driver, 7)[:2] == ["–", "–"]
    for _ in range(2):
        click(driver, 7)
        assert column(driver, 7)[-2:] == ["–", "–"]


def test_the_keyboard_sorts_too(open_page: Open) -> None:
    """The headings are buttons: Tab reaches them, Enter presses them."""
    driver = open_page(report())
    button = driver.find_elements("css selector", "#class-table thead th button")[3]
    button.send_keys("\ue007")
    assert [float(part) for part in column(driver, 3)] == sorted(map(float, column(driver, 3)), reverse=True)


def test_a_narrow_screen_scrolls_tables_not_the_page(open_page: Open, browser: Any) -> None:
    """On a telephone the page is as wide as the screen."""
    metrics = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        driver = open_page(report())
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
