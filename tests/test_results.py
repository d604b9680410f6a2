"""Results as data: scores add up, and JSON gives back what went in."""

from __future__ import annotations

import dataclasses
import json

import pytest

from autograder.results import (
    LANGUAGES,
    SCHEMA_VERSION,
    CriterionResult,
    Outcome,
    SubmissionResult,
    Text,
    Verdict,
    class_to_json,
    sharing,
)

FORM = CriterionResult("form", Text("shape", "形状"), 0.5, 0.5)
VALUES = CriterionResult("values", Text("values", "数值"), 0.0, 1.5, Text("wrong", "错误"))
VERDICT = Verdict("wavelengths", 0.5, 2.0, "a-slug", Text("It is wrong.", "不对。"), (FORM, VALUES))
UNJUDGED = Verdict("shift-matrix", 0.0, 3.0, None, Text("Not judged.", "未评分。"), (), judged=False)


def submission(student: str, *verdicts: Verdict, reason: Text | None = None) -> SubmissionResult:
    outcome = Outcome.PARTLY_GRADED if reason else Outcome.GRADED
    return SubmissionResult(student, outcome, reason, 1.23456, verdicts)


@pytest.mark.parametrize("verdict", [VERDICT, UNJUDGED], ids=["judged", "unjudged"])
def test_a_verdict_survives_json(verdict: Verdict) -> None:
    """Through JSON text and back, every field is the same, both languages included."""
    assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


def test_results_are_frozen() -> None:
    """Results cross rooms and processes; nobody changes one on the way."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        VERDICT.score = 2.0  # type: ignore[misc]


def test_scores_add_up_without_rounding_dust() -> None:
    """Ten tenths are one, not 0.9999999999999999."""
    tenth = Verdict("x", 0.1, 0.3, None, Text("", ""), ())
    result = submission("ada", *[tenth] * 10)
    assert (result.score, result.max_score) == (1.0, 3.0)


def test_a_submission_without_exercises_has_no_points() -> None:
    """Neither reached nor reachable."""
    assert (submission("ada").score, submission("ada").max_score) == (0.0, 0.0)


@pytest.mark.parametrize(("language", "said"), [("en", "It is wrong."), ("zh", "不对。")])
def test_the_class_as_json_speaks_one_language(language: str, said: str) -> None:
    """The documented fields, sorted by student, texts in the language asked for."""
    why = Text("the kernel died", "内核崩溃")
    results = [submission("zoe", VERDICT, UNJUDGED, reason=why), submission("ada", VERDICT)]
    data = class_to_json("02-lesson", results, language)  # type: ignore[arg-type]
    data = json.loads(json.dumps(data))
    assert data["schema_version"] == SCHEMA_VERSION == 1
    assert (data["assignment"], data["language"]) == ("02-lesson", language)
    ada, zoe = data["submissions"]
    assert [ada["student"], zoe["student"]] == ["ada", "zoe"]
    assert ada["reason"] is None
    assert zoe["reason"] == why.in_language(language)  # type: ignore[arg-type]
    assert (zoe["outcome"], zoe["score"], zoe["max_score"], zoe["seconds"]) == ("partly-graded", 0.5, 5.0, 1.235)
    exercise = ada["exercises"][0]
    assert exercise == {
        "id": "wavelengths",
        "score": 0.5,
        "max_score": 2.0,
        "mistake": "a-slug",
        "message": said,
        "criteria": [
            {"name": "form", "score": 0.5, "max_score": 0.5, "message": None},
            {"name": "values", "score": 0.0, "max_score": 1.5, "message": {"en": "wrong", "zh": "错误"}[language]},
        ],
    }


def test_repairs_survive_json_and_older_entries_have_none() -> None:
    """What a run kept before there were repairs is still read."""
    repairs = (Text("changed and restored: tools", "被改动，已恢复原文：tools"),)
    whole = dataclasses.replace(submission("ada", VERDICT), repairs=repairs)
    stored = json.loads(json.dumps(whole.to_json()))
    assert SubmissionResult.from_json(stored) == whole
    del stored["repairs"]
    assert SubmissionResult.from_json(stored) == dataclasses.replace(whole, repairs=())
    for language, said in (("en", repairs[0].en), ("zh", repairs[0].zh)):
        (public,) = class_to_json("02-lesson", [whole], language)["submissions"]  # type: ignore[arg-type]
        assert public["repairs"] == [said]


def test_every_language_of_the_course_is_spoken() -> None:
    """A text answers in each language, and differently."""
    assert [Text("yes", "是").in_language(language) for language in LANGUAGES] == ["yes", "是"]


def test_equal_verdicts_are_kept_once() -> None:
    """The same object, whoever was judged; another verdict stays another."""

    def verdict(score: float) -> Verdict:
        text = Text(en="said", zh="说了")
        return Verdict("x", score, 2.0, None, text, (CriterionResult("values", text, score, 2.0),))

    known: dict[Verdict, Verdict] = {}
    shared = [
        sharing(SubmissionResult(name, Outcome.GRADED, None, 1.0, (verdict(2.0), verdict(score))), known)
        for name, score in (("student-01", 1.0), ("student-02", 2.0), ("student-03", 1.0))
    ]
    assert [result.score for result in shared] == [3.0, 4.0, 3.0]
    assert shared[0].exercises[0] is shared[1].exercises[0] is shared[1].exercises[1] is shared[2].exercises[0]
    assert shared[0].exercises[1] is shared[2].exercises[1]
    assert len(known) == 2
