"""The feedback page of one student: score by exercise and criterion, the named mistake and where to read about it, what
a person gave and wrote, the student's own code and figures.

Self-contained and printable. It never holds a hidden test, an expected value, or a script.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autograder.grading.marks import HandMark, HandMarks
from autograder.notebooks.cells import grade_id, is_answer, is_test
from autograder.notebooks.executed import notebook_of
from autograder.report.lesson import Section
from autograder.report.page import render
from autograder.results import ByHand, Language, Outcome, SubmissionResult, Text, Verdict

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
    "read": Text(en="Read about it in the lesson:", zh="请重读这一课中的："),
    "file": Text(en="The notebook of the lesson:", zh="这一课的笔记本："),
    "given": Text(en="Given by your teacher", zh="老师评分"),
    "extra": Text(en="extra points from your teacher", zh="老师另加分"),
    "comment": Text(en="Your teacher writes:", zh="老师的评语："),
    "late": Text(en="points taken off because it was handed in late", zh="分（迟交扣分）"),
    "waiting": Text(en="more points are given by your teacher", zh="分由老师另行评定"),
    "of-output": Text(en="Your figure in the cell", zh="你在以下单元格中画的图："),
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
    score: float
    code: str
    output: str
    reading: tuple[Section, ...]
    mark: HandMark


@dataclass(frozen=True)
class ByHandFeedback:
    """An answer in words as the page shows it. `mark.score` is None while nobody has graded it."""

    item: ByHand
    text: str
    mark: HandMark


@dataclass(frozen=True)
class Total:
    """The points on top of the page. `waiting` are those that a person has yet to give."""

    score: float
    max_score: float
    waiting: float

    @property
    def share(self) -> float:
        """From 0 to 1; more than the maximum, by extra points, is 1."""
        return min(1.0, self.score / self.max_score) if self.max_score else 0.0


def feedback_page(
    assignment: str,
    title: str,
    result: SubmissionResult,
    notebook: str | None,
    language: Language,
    *,
    reading: Mapping[str, tuple[Section, ...]] | None = None,
    file: str | None = None,
    marks: HandMarks | None = None,
) -> str:
    """The page as HTML.

    Args:
        title: the lesson's title in `language`.
        notebook: the executed notebook as JSON, None when nothing was run.
        reading: where the lesson explains each exercise; none by default.
        file: the released notebook, named where the lesson is published nowhere.
        marks: what people gave; nothing by default.
    """
    cells = notebook_of(notebook).cells if notebook else []
    written = {grade_id(cell): cell.source for cell in cells if is_answer(cell)}
    output = {grade_id(cell): _visible_output(cell) for cell in cells if is_test(cell)}
    given = marks or HandMarks()
    nothing = HandMark()
    words = {name: text.in_language(language) for name, text in WORDS.items()}
    exercises = [
        ExerciseFeedback(
            verdict,
            _points(verdict.score, given.exercises.get(verdict.exercise, nothing)),
            _shorten(written.get(verdict.exercise, "")),
            _shorten(output.get(f"test-{verdict.exercise}", "")),
            (reading or {}).get(verdict.exercise, ()) if verdict.score < verdict.max_score else (),
            given.exercises.get(verdict.exercise, nothing),
        )
        for verdict in result.exercises
    ]
    by_hand = [
        ByHandFeedback(item, _shorten(written.get(item.exercise, "")), given.exercises.get(item.exercise, nothing))
        for item in result.by_hand
    ]
    linked = any(section.link for item in exercises for section in item.reading)
    return render(
        "feedback.html.j2",
        styles=("page.css", "feedback.css"),
        assignment=assignment,
        title=title,
        result=result,
        language=language,
        outcome=OUTCOMES[result.outcome].in_language(language),
        words=words,
        total=_total(exercises, by_hand, given.late_penalty),
        late=given.late_penalty,
        exercises=exercises,
        by_hand=by_hand,
        file=file if not linked and any(item.reading for item in exercises) else None,
        figures=[figure for cell in cells if cell.cell_type == "code" for figure in _figures(cell, words["of-output"])],
    )


def _points(automatic: float, mark: HandMark) -> float:
    return (automatic if mark.score is None else mark.score) + mark.extra


def _total(exercises: list[ExerciseFeedback], by_hand: list[ByHandFeedback], late_penalty: float) -> Total:
    """Automatic points and those given by hand; what nobody has graded yet is in neither number."""
    graded = [entry for entry in by_hand if entry.mark.score is not None]
    score = sum(entry.score for entry in exercises) + sum(_points(0.0, entry.mark) for entry in graded)
    best = sum(entry.verdict.max_score for entry in exercises) + sum(entry.item.max_score for entry in graded)
    waiting = sum(entry.item.max_score for entry in by_hand if entry.mark.score is None)
    return Total(round(max(0.0, score - late_penalty), 6), round(best, 6), waiting)


def _visible_output(test_cell: Any) -> str:
    """What the visible checks printed; the last stream is the verdict, which the page shows in its own form."""
    streams = [output.text for output in test_cell.outputs if output.output_type == "stream"]
    return _without_colours("".join(streams[:-1]).strip())


def _figures(cell: Any, of_output: str) -> list[Figure]:
    found = []
    for output in cell.outputs:
        png = output.get("data", {}).get("image/png") if output.output_type == "display_data" else None
        if isinstance(png, str) and re.fullmatch(r"[A-Za-z0-9+/=\s]+", png):
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            described = isinstance(alt, str) and alt.strip()
            found.append(Figure(re.sub(r"\s", "", png), alt if described else f"{of_output} {cell['id']}"))
    return found


def _without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "\n…"
