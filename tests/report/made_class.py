"""A class of results for tests of the report: made by rule, with everything that a report has to show."""

from __future__ import annotations

from dataclasses import replace

from autograder.results import ByHand, CriterionResult, Outcome, SubmissionResult, Text, Verdict

EVIL = '<script>alert("x")</script><img src=x onerror=alert(1)>'
TITLES = {"form": Text("shape and dtype", "形状与 dtype"), "values": Text("values", "数值")}
MOVED = Text(
    "cells were in another order; back in their place: wavelengths", "单元格顺序被打乱，已放回原位：wavelengths"
)
RESTORED = Text(f"changed and restored: tools {EVIL}", f"被改动，已恢复原文：tools {EVIL}")
EXERCISES = {"pair-frequencies": 2.0, "wavelengths": 1.0, "shift-matrix": 3.0}


def verdict(exercise: str, form: bool, values: bool, mistake: str | None = None) -> Verdict:
    """Half of the points for the form, half for the values."""
    points = EXERCISES[exercise]
    said = (
        Text("All right.", "全部正确。") if form and values else Text("`arange` counts columns.", "`arange` 数的是列。")
    )
    criteria = tuple(
        CriterionResult(name, TITLES[name], points / 2 if met else 0.0, points / 2, None if met else said)
        for name, met in (("form", form), ("values", values))
    )
    score = sum(criterion.score for criterion in criteria)
    return Verdict(exercise, score, points, mistake, said, criteria)


def submission(number: int) -> SubmissionResult:
    """Student `number`: the higher, the better; every fifth has the first exercise's mistake."""
    return SubmissionResult(
        f"student-{number:02d}",
        Outcome.GRADED,
        None,
        0.5 + number / 10,
        (
            verdict("pair-frequencies", True, number % 5 != 0, None if number % 5 else "column-index"),
            verdict("wavelengths", True, number > 8),
            verdict("shift-matrix", number > 4, False, None if number > 4 else "transposed"),
        ),
        (ByHand("reflection", 3.0),),
    )


def made_class(size: int = 16) -> list[SubmissionResult]:
    """`size` submissions graded in full, one in part, one rejected, and one whose name is an attack."""
    results = [submission(number) for number in range(1, size + 1)]
    stopped = Text("the kernel died", "内核崩溃")
    unjudged = Verdict("shift-matrix", 0.0, 3.0, "not-reached", Text("Not judged.", "未评分。"), (), judged=False)
    results.append(
        replace(
            submission(3),
            student="student-91",
            outcome=Outcome.PARTLY_GRADED,
            reason=stopped,
            exercises=(*submission(3).exercises[:2], unjudged),
            repairs=(MOVED, RESTORED),
        )
    )
    nothing = Text(f"no notebook {EVIL}", f"没有笔记本 {EVIL}")
    rejected = tuple(
        Verdict(exercise, 0.0, points, "rejected", nothing, (), judged=False) for exercise, points in EXERCISES.items()
    )
    results.append(SubmissionResult("student-92", Outcome.REJECTED, nothing, 0.01, rejected))
    results.append(replace(submission(10), student=EVIL, repairs=(RESTORED,)))
    return sorted(results, key=lambda result: result.student)
