"""Results for tests of the reports."""

from __future__ import annotations

from autograder.results import CriterionResult, Outcome, SubmissionResult, Text, Verdict

RIGHT = Verdict("wavelengths", 1.0, 1.0, None, Text("All right.", "全部正确。"), (
    CriterionResult("values", Text("values", "数值"), 1.0, 1.0),
))  # fmt: skip
WRONG = Verdict(
    "pair-frequencies",
    0.5,
    2.0,
    "column-index",
    Text("The exponent uses the column number.", "指数里用的是列号。"),
    (
        CriterionResult("form", Text("shape and dtype", "形状与 dtype"), 0.5, 0.5),
        CriterionResult("values", Text("values", "数值"), 0.0, 1.5, Text("Too fast.", "太快。")),
    ),
)
NEW = Verdict("shift-matrix", 0.0, 3.0, None, Text("values: 4 of 16 are off.", "数值：16 个中有 4 个不对。"), ())
UNJUDGED = Verdict(
    "attention", 0.0, 4.0, "timed-out", Text("Not judged: out of time.", "未评分：超时。"), (), judged=False
)


def result(
    student: str, *verdicts: Verdict, outcome: Outcome = Outcome.GRADED, reason: Text | None = None
) -> SubmissionResult:
    return SubmissionResult(student, outcome, reason, 2.345, verdicts)
