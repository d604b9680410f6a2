"""The feedback page of one student: score by exercise and criterion, the named mistake, their own code and figures.

Self-contained and printable. It never holds a hidden test, an expected value, or a script.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from nbformat.v4 import reads

from autograder.notebooks.fitting import grade_id, is_answer, is_test
from autograder.results import Language, Outcome, SubmissionResult, Text, Verdict

WORDS: Mapping[str, Text] = {
    "feedback": Text(en="Feedback", zh="批改反馈"),
    "score": Text(en="Score", zh="得分"),
    "points": Text(en="points", zh="分"),
    "criterion": Text(en="Criterion", zh="评分项"),
    "what": Text(en="What was found", zh="评判结果"),
    "met": Text(en="met", zh="通过"),
    "missed": Text(en="not met, see above", zh="未通过，见上"),
    "code": Text(en="Your code", zh="你的代码"),
    "output": Text(en="What your code showed", zh="你的代码的输出"),
    "figures": Text(en="Your figures", zh="你画出的图"),
    "by-hand": Text(en="Read and graded by your teacher", zh="由老师阅读并评分"),
    "mistake": Text(en="mistake", zh="错误"),
    "hint": Text(
        en="Exercises are judged on numbers drawn for you; a regrade repeats the same ones.",
        zh="每道题都用为你抽取的数据评判；重新评分时使用同一组数据。",
    ),
}
OUTCOMES: Mapping[Outcome, Text] = {
    Outcome.GRADED: Text(en="graded", zh="已评分"),
    Outcome.PARTLY_GRADED: Text(en="partly graded", zh="部分评分"),
    Outcome.REJECTED: Text(en="not graded", zh="未评分"),
}
MAX_SHOWN_CHARACTERS = 4000


@dataclass(frozen=True)
class Figure:
    """A picture that the student's notebook drew: base64 PNG and its text description."""

    png: str
    description: str


@dataclass(frozen=True)
class ExerciseFeedback:
    """One exercise as the page shows it."""

    verdict: Verdict
    code: str
    output: str


def feedback_page(
    assignment: str, title: str, result: SubmissionResult, notebook: str | None, language: Language
) -> str:
    """The page as HTML.

    Args:
        title: the lesson's title in `language`.
        notebook: the executed notebook as JSON, None when nothing was run.
    """
    cells = reads(notebook).cells if notebook else []
    written = {grade_id(cell): cell.source for cell in cells if is_answer(cell)}
    output = {grade_id(cell): _visible_output(cell) for cell in cells if is_test(cell)}
    return _template().render(
        assignment=assignment,
        title=title,
        result=result,
        language=language,
        outcome=OUTCOMES[result.outcome].in_language(language),
        words={name: text.in_language(language) for name, text in WORDS.items()},
        exercises=[
            ExerciseFeedback(
                verdict,
                _shorten(written.get(verdict.exercise, "")),
                _shorten(output.get(f"test-{verdict.exercise}", "")),
            )
            for verdict in result.exercises
        ],
        by_hand=[(item, _shorten(written.get(item.exercise, ""))) for item in result.by_hand],
        figures=[figure for cell in cells if cell.cell_type == "code" for figure in _figures(cell)],
    )


@lru_cache(maxsize=1)
def _template() -> Template:
    """Compiled once: that takes longer than filling in many pages."""
    environment = Environment(
        loader=PackageLoader("autograder.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["parts"] = _parts
    return environment.get_template("feedback.html.j2")


def _parts(text: str) -> list[tuple[bool, str]]:
    """A message in pieces: (whether it stood between backticks, the piece)."""
    return [(number % 2 == 1, piece) for number, piece in enumerate(re.split(r"`([^`\n]+)`", text)) if piece]


def _visible_output(test_cell: Any) -> str:
    """What the visible checks printed; the last stream is the verdict, which the page shows in its own form."""
    streams = [output.text for output in test_cell.outputs if output.output_type == "stream"]
    return _without_colours("".join(streams[:-1]).strip())


def _figures(cell: Any) -> list[Figure]:
    found = []
    for output in cell.outputs:
        png = output.get("data", {}).get("image/png") if output.output_type == "display_data" else None
        if isinstance(png, str) and re.fullmatch(r"[A-Za-z0-9+/=\s]+", png):
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            found.append(Figure(re.sub(r"\s", "", png), alt if isinstance(alt, str) else cell["id"]))
    return found


def _without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "\n…"
