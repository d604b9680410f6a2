"""What grading produces, as frozen data: texts, criteria, verdicts, submissions. JSON in and out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

SCHEMA_VERSION = 1
"""Version of the JSON that `autograder grade --json` writes; described in docs of `class_to_json`."""


@dataclass(frozen=True)
class Text:
    """One message in every language that the course speaks."""

    en: str
    zh: str

    def in_language(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en

    def to_json(self) -> dict[str, str]:
        return {"en": self.en, "zh": self.zh}

    @staticmethod
    def from_json(data: Mapping[str, str]) -> Text:
        return Text(en=data["en"], zh=data["zh"])


def printable(text: str) -> str:
    """The text for a terminal: without control characters, which can move the cursor, set titles or fill clipboards."""
    return re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\N{REPLACEMENT CHARACTER}", text)


class Outcome(StrEnum):
    """How a submission ended: judged in full, judged in part (something stopped it), or not run at all."""

    GRADED = "graded"
    PARTLY_GRADED = "partly-graded"
    REJECTED = "rejected"


@dataclass(frozen=True)
class CriterionResult:
    """One part of a verdict. `message` says what was wrong; it is None when the criterion is met."""

    name: str
    title: Text
    score: float
    max_score: float
    message: Text | None = None


@dataclass(frozen=True)
class Verdict:
    """The judgement of one exercise.

    Attributes:
        exercise: the exercise's id, as in the notebook.
        mistake: slug of the known mistake that explains the answer; None when right, or wrong in a new way.
        message: one paragraph for the student; never an expected value.
        judged: False when there is no verdict (an endless cell, a dead kernel): no points, with the reason.
    """

    exercise: str
    score: float
    max_score: float
    mistake: str | None
    message: Text
    criteria: tuple[CriterionResult, ...]
    judged: bool = True

    def to_json(self) -> dict[str, Any]:
        """Plain data with every language, for the wire and for storage."""
        return {
            "exercise": self.exercise,
            "score": self.score,
            "max_score": self.max_score,
            "mistake": self.mistake,
            "message": self.message.to_json(),
            "criteria": [
                {
                    "name": criterion.name,
                    "title": criterion.title.to_json(),
                    "score": criterion.score,
                    "max_score": criterion.max_score,
                    "message": criterion.message.to_json() if criterion.message else None,
                }
                for criterion in self.criteria
            ],
            "judged": self.judged,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Verdict:
        return Verdict(
            exercise=data["exercise"],
            score=data["score"],
            max_score=data["max_score"],
            mistake=data["mistake"],
            message=Text.from_json(data["message"]),
            criteria=tuple(
                CriterionResult(
                    name=item["name"],
                    title=Text.from_json(item["title"]),
                    score=item["score"],
                    max_score=item["max_score"],
                    message=Text.from_json(item["message"]) if item["message"] else None,
                )
                for item in data["criteria"]
            ),
            judged=data["judged"],
        )


@dataclass(frozen=True)
class ByHand:
    """An answer in words, which a person grades in formgrader; its points are not in the submission's score."""

    exercise: str
    max_score: float


@dataclass(frozen=True)
class SubmissionResult:
    """What became of one submission.

    Attributes:
        reason: None only for a submission that was graded in full.
        repairs: what was wrong with the notebook itself and was mended before it ran; for the instructor.
    """

    student: str
    outcome: Outcome
    reason: Text | None
    seconds: float
    exercises: tuple[Verdict, ...]
    by_hand: tuple[ByHand, ...] = ()
    repairs: tuple[Text, ...] = ()

    @property
    def score(self) -> float:
        """Points reached: the sum over exercises."""
        return round(sum(verdict.score for verdict in self.exercises), 6)

    @property
    def max_score(self) -> float:
        """Points that could be reached: the sum over exercises."""
        return round(sum(verdict.max_score for verdict in self.exercises), 6)

    def to_json(self) -> dict[str, Any]:
        """Plain data with every language, for storage; `class_to_json` is the public form."""
        return {
            "student": self.student,
            "outcome": str(self.outcome),
            "reason": self.reason.to_json() if self.reason else None,
            "seconds": self.seconds,
            "exercises": [verdict.to_json() for verdict in self.exercises],
            "by_hand": [[item.exercise, item.max_score] for item in self.by_hand],
            "repairs": [repair.to_json() for repair in self.repairs],
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> SubmissionResult:
        return SubmissionResult(
            student=data["student"],
            outcome=Outcome(data["outcome"]),
            reason=Text.from_json(data["reason"]) if data["reason"] else None,
            seconds=data["seconds"],
            exercises=tuple(Verdict.from_json(item) for item in data["exercises"]),
            by_hand=tuple(ByHand(exercise, points) for exercise, points in data["by_hand"]),
            repairs=tuple(Text.from_json(item) for item in data.get("repairs", ())),  # older entries have none
        )


def sharing(result: SubmissionResult, known: dict[Verdict, Verdict]) -> SubmissionResult:
    """The result with verdicts that `known` has already, and adds those that it has not.

    Students make the same mistakes: a class has far fewer different verdicts than verdicts, and these are most of what
    is kept of it in memory.
    """
    return replace(result, exercises=tuple(known.setdefault(verdict, verdict) for verdict in result.exercises))


def class_to_json(assignment: str, results: list[SubmissionResult], language: Language) -> dict[str, Any]:
    """The public JSON of a graded class, schema version 1.

    Top level: `schema_version` (int), `assignment` (str), `language`, `submissions` (list, sorted by student). A
    submission has `student`, `outcome` ("graded", "partly-graded" or "rejected"), `reason` (str or null), `score`,
    `max_score`, `seconds` (wall time), `by_hand` (list of `id` and `max_score`: what a person grades in formgrader, not
    in these scores), `repairs` (list of str: what was wrong with the notebook and was mended before it ran) and
    `exercises`. An exercise has `id`, `score`, `max_score`, `mistake` (stable slug or null),
    `message` and `criteria`; a criterion has `name` (stable slug), `score`, `max_score` and `message` (str or null).
    Fields may be added within a version; a field that changes meaning or goes raises the version.
    """

    def say(text: Text | None) -> str | None:
        return text.in_language(language) if text else None

    return {
        "schema_version": SCHEMA_VERSION,
        "assignment": assignment,
        "language": language,
        "submissions": [
            {
                "student": result.student,
                "outcome": str(result.outcome),
                "reason": say(result.reason),
                "score": result.score,
                "max_score": result.max_score,
                "seconds": round(result.seconds, 3),
                "by_hand": [{"id": item.exercise, "max_score": item.max_score} for item in result.by_hand],
                "repairs": [repair.in_language(language) for repair in result.repairs],
                "exercises": [
                    {
                        "id": verdict.exercise,
                        "score": verdict.score,
                        "max_score": verdict.max_score,
                        "mistake": verdict.mistake,
                        "message": say(verdict.message),
                        "criteria": [
                            {
                                "name": criterion.name,
                                "score": criterion.score,
                                "max_score": criterion.max_score,
                                "message": say(criterion.message),
                            }
                            for criterion in verdict.criteria
                        ],
                    }
                    for verdict in result.exercises
                ],
            }
            for result in sorted(results, key=lambda result: result.student)
        ],
    }
