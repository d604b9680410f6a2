"""A quiz as an exercise: each question is a criterion, each wrong letter a known mistake with its own explanation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autograder.exercises.comparisons import raised_text
from autograder.exercises.declaration import Case, Criterion, Draw, Exercise, Mistake, Observation, Raised
from autograder.results import Text


@dataclass(frozen=True)
class Question:
    """The right letter, and for each wrong letter what choosing it shows (without naming the right one)."""

    answer: str
    wrong: Mapping[str, Text]


def same_letter(case: Case, expected: Observation, observed: Observation) -> Text | None:
    """Both are the same letter; capitals and surrounding blanks do not matter."""
    if isinstance(observed, Raised):
        return raised_text(case, observed)
    if isinstance(expected, Raised):
        return raised_text(case, expected)

    def letter(value: object) -> str | None:
        return value.strip().lower() if isinstance(value, str) else None

    if letter(observed.value) is not None and letter(expected.value) == letter(observed.value):
        return None
    if letter(observed.value) in {"", "?"}:
        return Text(en=f"{case.function} has no answer yet.", zh=f"{case.function} 还没有作答。")
    if isinstance(observed.value, str):
        return Text(
            en=f"{case.function} = {observed.value[:20]!r} is not the right letter.",
            zh=f"{case.function} = {observed.value[:20]!r} 不是正确选项。",
        )
    return Text(
        en=f'{case.function} should be a letter in quotes, such as "a".',
        zh=f'{case.function} 应当是带引号的字母，例如 "a"。',
    )


def quiz(exercise: str, lesson: str, points: float, questions: Sequence[Question]) -> Exercise:
    """Declare a quiz with variables q1, q2, …; the points are shared equally."""
    names = tuple(f"q{number}" for number in range(1, len(questions) + 1))
    reference = {name: question.answer for name, question in zip(names, questions, strict=True)}

    def cases(draw: Draw) -> list[Case]:
        return [Case(name, tag=name, read=True) for name in names]

    return Exercise(
        id=exercise,
        lesson=lesson,
        functions=names,
        reference=reference,
        cases=cases,
        criteria=tuple(
            Criterion(
                name=name,
                title=Text(en=f"question {name[1:]}", zh=f"第 {name[1:]} 题"),
                points=points / len(names),
                compare=same_letter,
                tags=(name,),
            )
            for name in names
        ),
        mistakes=tuple(
            Mistake(slug=f"{name}-{letter}", message=message, answers={name: letter})
            for name, question in zip(names, questions, strict=True)
            for letter, message in question.wrong.items()
        ),
    )
