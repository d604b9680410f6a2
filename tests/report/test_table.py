"""The class in the terminal: a row a student, and which mistakes were made how often."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from autograder.report.table import mistake_counts, print_class
from autograder.results import Language, Outcome, SubmissionResult, Text, Verdict
from tests.report.results import NEW, RIGHT, UNJUDGED, WRONG, result

DIED = Text("the kernel died in the cell attention", "内核在单元格 attention 中崩溃")


def printed(results: list[SubmissionResult], language: Language = "en", width: int = 120) -> str:
    stream = io.StringIO()
    print_class(Console(file=stream, width=width), "02-lesson", results, language)
    return stream.getvalue()


def row(text: str, student: str) -> str:
    (line,) = [line for line in text.splitlines() if line.split()[:1] == [student]]
    return " ".join(line.split())


def test_a_row_a_student() -> None:
    """Outcome, score, share, seconds, and where points were lost."""
    text = printed([result("ada", WRONG, RIGHT), result("emmy", RIGHT), result("zoe", NEW)])
    assert row(text, "ada") == "ada graded 1.5 / 3 50 2.3 pair-frequencies (column-index)"
    assert row(text, "emmy") == "emmy graded 1 / 1 100 2.3"
    assert row(text, "zoe") == "zoe graded 0 / 3 0 2.3 shift-matrix"


def test_the_reason_comes_first() -> None:
    """Of a submission that was judged in part, before what was lost; of a rejected one, alone."""
    text = printed(
        [
            result("ada", WRONG, UNJUDGED, outcome=Outcome.PARTLY_GRADED, reason=DIED),
            result("emmy", UNJUDGED, outcome=Outcome.REJECTED, reason=Text("not JSON", "不是 JSON")),
        ],
        width=160,
    )
    assert row(text, "ada").endswith(f"{DIED.en}; pair-frequencies (column-index)")
    assert row(text, "emmy") == "emmy rejected 0 / 4 0 2.3 not JSON"
    assert DIED.zh in printed([result("ada", outcome=Outcome.PARTLY_GRADED, reason=DIED)], "zh", 160)


def test_no_markup_is_taken_from_students() -> None:
    """A name or a reason in square brackets is text."""
    why = Text("[bold]no[/bold] [/]", "无")
    text = printed([result("[red]ada[/red]", WRONG, outcome=Outcome.REJECTED, reason=why)])
    assert "[red]ada[/red]" in text
    assert "[bold]no[/bold] [/]" in text


def test_mistakes_are_counted_the_most_frequent_first() -> None:
    """By exercise and mistake; equals in alphabetical order."""
    other = Verdict("attention", 0.0, 1.0, "no-scale", Text("", ""), ())
    results = [result("a", WRONG, other), result("b", WRONG), result("c", other), result("d", WRONG, RIGHT)]
    assert mistake_counts(results) == [(("pair-frequencies", "column-index"), 3), (("attention", "no-scale"), 2)]
    assert mistake_counts([result("a", WRONG), result("b", other)]) == [
        (("attention", "no-scale"), 1),
        (("pair-frequencies", "column-index"), 1),
    ]


def test_what_was_not_judged_is_no_mistake() -> None:
    """Neither counted nor listed among the points lost; a class without mistakes has no second table."""
    results = [result("ada", UNJUDGED, outcome=Outcome.PARTLY_GRADED, reason=DIED), result("emmy", RIGHT, NEW)]
    assert mistake_counts(results) == []
    text = printed(results)
    assert "timed-out" not in text
    assert "mistakes, the most frequent first" not in text


BLANK = (("attention", "unanswered"), ("wavelengths", "answer-missing"))


def test_what_was_not_answered_is_no_mistake() -> None:
    """It is counted on a line of its own, by exercise."""
    blank = [Verdict(name, 0.0, 1.0, slug, Text("", ""), ()) for name, slug in BLANK]
    results = [result("a", WRONG, *blank), result("b", blank[0])]
    assert mistake_counts(results) == [(("pair-frequencies", "column-index"), 1)]
    assert "students without an answer: attention (2), wavelengths (1)" in printed(results, width=160)


@pytest.mark.parametrize(("count", "said"), [(0, None), (1, "1 notebook "), (3, "3 notebooks ")])
def test_repaired_notebooks_are_counted(count: int, said: str | None) -> None:
    """In one line, however much was repaired in each; none when nothing was."""
    repairs = (Text("changed and restored: tools", "被改动"), Text("missing and put back: imports", "缺失"))
    text = printed([replace(result(f"s{number}", RIGHT), repairs=repairs * (number < count)) for number in range(4)])
    lines = [line.strip() for line in text.splitlines() if "repaired" in line]
    assert lines == ([f"repaired: {said}(listed in the class report)"] if said else [])
    assert "tools" not in text


def test_the_ranking_is_printed() -> None:
    """With its counts."""
    text = printed([result("ada", WRONG), result("emmy", WRONG)])
    _, ranking = text.split("mistakes, the most frequent first")
    assert "2 pair-frequencies column-index" in " ".join(ranking.split())


def test_a_narrow_terminal_loses_nothing() -> None:
    """The last column folds."""
    text = printed([result("ada", WRONG, NEW)], width=70)
    assert "column-index" in "".join(text.split())


def test_an_empty_class_prints() -> None:
    """No rows and no division by zero."""
    assert "02-lesson" in printed([])
    assert row(printed([result("ada")]), "ada") == "ada graded 0 / 0 0 2.3"
