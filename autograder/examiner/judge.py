"""Judging: questions from a declaration, observations against the reference, a verdict that names the mistake."""

from __future__ import annotations

import functools
import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from autograder.errors import NoSuchDevice
from autograder.examiner import protocol
from autograder.examiner.client import observe_all, observe_quietly
from autograder.examiner.rules import broken_rule
from autograder.exercises.declaration import (
    Case,
    Comparison,
    Criterion,
    Draw,
    Exercise,
    Mistake,
    MixPositions,
    Observation,
    Other,
    Raised,
    Returned,
    Rule,
)
from autograder.results import CriterionResult, Text, Verdict

ALL_RIGHT = Text(en="All right.", zh="全部正确。")
UNANSWERED = Text(
    en="There is no answer here yet: the cell is as it was given out.",
    zh="这道题还没有作答：单元格仍是下发时的样子。",
)
EARLIER_UNANSWERED = Text(
    en="Your answer runs into a NotImplementedError that is not its own: it uses a function or class that is not "
    "written yet, in an earlier exercise or in a cell of yours. Write that one first.",
    zh="你的作答运行时遇到了别处的 NotImplementedError：它用到的某个函数或类还没有写好，可能在前面的练习里，"
    "也可能在你自己的单元格里。请先完成那一处。",
)


def accelerator(device: str) -> str:
    """The device of GPU cases: "cuda" or "cpu". `device` is "auto", "cpu" or "cuda"; NoSuchDevice if absent."""
    if device == "cuda" and not torch.cuda.is_available():
        raise NoSuchDevice(device)
    return "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"


def seed_for(course_key: bytes, student: str, exercise: str) -> int:
    """The seed of a student's cases: the same at every regrade, not guessable without the course's key."""
    digest = hmac.digest(course_key, f"{student}\0{exercise}".encode(), hashlib.sha256)
    return int.from_bytes(digest[:8], "big")


def encode_questions(exercise: Exercise, cases: Sequence[Case]) -> bytes:
    """The cases as the client receives them: no tags, no expectations."""
    operators = tuple(name for rule in exercise.rules for name in rule.operators)
    return protocol.encode(
        [
            {
                "answer": exercise.functions.index(case.function),
                "args": [_plain(value) for value in case.args],
                "kwargs": {name: _plain(value) for name, value in case.kwargs.items()},
                "device": case.device,
                "read": case.read,
                "operators": operators,
                "track": case.track,
                "steps": [
                    {
                        "do": step.do,
                        "args": [_plain(value) for value in step.args],
                        "kwargs": {name: _plain(value) for name, value in step.kwargs.items()},
                        "track": step.track,
                    }
                    for step in case.steps
                ],
            }
            for case in cases
        ]
    )


def _plain(value: Any) -> Any:
    return protocol.Layer(value.weights) if isinstance(value, MixPositions) else value


def decode_observations(message: bytes, count: int) -> list[Observation]:
    """The client's observations as typed data. Raises protocol.MalformedMessage on a message of another form."""
    data = protocol.decode(message)
    if not isinstance(data, list) or len(data) != count:
        raise protocol.MalformedMessage(f"expected {count} observations")
    return [_observation(item) for item in data]


def _observation(item: Any) -> Observation:
    if isinstance(item, dict) and set(item) == {"returned", "args_after", "operators"}:
        after, operators = item["args_after"], item["operators"]
        if isinstance(after, tuple) and isinstance(operators, tuple):
            names = frozenset(name for name in operators if isinstance(name, str))
            return Returned(_typed(item["returned"]), tuple(_typed(value) for value in after), names)
    if isinstance(item, dict) and set(item) == {"raised", "message"}:
        names, text = item["raised"], item["message"]
        if (
            isinstance(names, tuple)
            and names
            and all(isinstance(name, str) for name in names)
            and isinstance(text, str)
        ):
            return Raised(names, text)
    raise protocol.MalformedMessage("an observation is either what was returned or what was raised")


def _typed(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_typed(part) for part in value)
    if isinstance(value, dict):
        return {name: _typed(part) for name, part in value.items()}
    if isinstance(value, protocol.Unencodable):
        return Other(value.type_name)
    return value


@dataclass(frozen=True)
class Sources:
    """The text of an answer's cell, and of the notebook's other cells in order."""

    answer: str
    others: tuple[str, ...] = ()


class _Run:
    """What some answers do on the cases, observed as a student's are. A case is run when it is asked for.

    Of most known mistakes one or two cases are enough to see that a student made another one.
    """

    def __init__(self, questions: Sequence[dict[str, Any]], answers: Sequence[Any]) -> None:
        self._questions = questions
        self._answers = answers
        self._found: dict[int, Observation] = {}

    def __len__(self) -> int:
        return len(self._questions)

    def __getitem__(self, index: int) -> Observation:
        if index not in self._found:
            (observed,) = observe_quietly([self._questions[index]], self._answers)
            self._found[index] = _observation(protocol.passed_on(observed))
        return self._found[index]

    def __iter__(self) -> Iterator[Observation]:
        return (self[index] for index in range(len(self)))


Observations = Sequence[Observation] | _Run


class _Known:
    """A known mistake on the cases of one examination: what it answers, and the criteria in which that loses points."""

    def __init__(self, mistake: Mistake, wrong: _Run, loses: Callable[[_Run], tuple[Criterion, ...]]) -> None:
        self.mistake = mistake
        self.wrong = wrong
        self._loses = loses

    @functools.cached_property
    def touched(self) -> tuple[Criterion, ...]:
        return self._loses(self.wrong)


class Examination:
    """One student's examination in one exercise: the questions, then the judgement of the observations.

    Args:
        exercise: the declaration.
        seed: from `seed_for`.
        device: "cpu" or "cuda", from `accelerator`.
    """

    def __init__(self, exercise: Exercise, seed: int, device: str) -> None:
        self.exercise = exercise
        self.cases = tuple(exercise.cases(Draw(seed, device)))
        self.questions = encode_questions(exercise, self.cases)

    def judge(self, message: bytes, sources: Sources | None = None) -> Verdict:
        """The verdict on an encoded list of observations. Raises protocol.MalformedMessage on anything else.

        Args:
            sources: the text of the answer, for exercises with rules; without it only what ran is looked at.
        """
        observed = decode_observations(message, len(self.cases))
        rule = self._broken_rule(observed, sources)
        if rule is not None:
            return self._against_the_rule(rule)
        criteria = self.exercise.criteria
        failures = {
            criterion.name: next(self._differences(criterion, criterion.compare, self._expected, observed), None)
            for criterion in criteria
        }
        unanswered = _is_unanswered(observed)
        failed = [] if unanswered else [criterion for criterion in criteria if failures[criterion.name]]
        explained = self._explained(failed, observed) if failed else {}
        results = tuple(
            self._result(criterion, failures[criterion.name], explained.get(criterion.name)) for criterion in criteria
        )
        slug: str | None = None
        text = _summary(results)
        if _always_the_same_error(observed):
            text = next(filter(None, failures.values()), text)
        if unanswered:
            slug, text = "unanswered", UNANSWERED
            if _runs_into_another_stub(observed, sources):
                slug, text = "earlier-unanswered", EARLIER_UNANSWERED
        elif explained:
            primary = self._primary(explained)
            slug, text = primary.mistake.slug, _joined(primary, explained, results)
        return Verdict(
            exercise=self.exercise.id,
            score=round(sum(result.score for result in results), 6),
            max_score=self.exercise.points,
            mistake=slug,
            message=text,
            criteria=results,
        )

    def _broken_rule(self, observed: Sequence[Observation], sources: Sources | None) -> Rule | None:
        used = {name for item in observed if isinstance(item, Returned) for name in item.operators}
        for rule in self.exercise.rules:
            if used & set(rule.operators):
                return rule
        return broken_rule(self.exercise.rules, sources.answer, sources.others) if sources else None

    def _against_the_rule(self, rule: Rule) -> Verdict:
        return Verdict(
            exercise=self.exercise.id,
            score=0.0,
            max_score=self.exercise.points,
            mistake=rule.slug,
            message=rule.message,
            criteria=tuple(
                CriterionResult(criterion.name, criterion.title, 0.0, criterion.points, rule.message)
                for criterion in self.exercise.criteria
            ),
        )

    @functools.cached_property
    def _expected(self) -> _Run:
        return self._run({})

    @functools.cached_property
    def _known(self) -> tuple[_Known, ...]:
        return tuple(_Known(mistake, self._run(mistake.answers), self._touched) for mistake in self.exercise.mistakes)

    def _touched(self, wrong: _Run) -> tuple[Criterion, ...]:
        """The criteria in which these answers lose points."""
        return tuple(
            criterion
            for criterion in self.exercise.criteria
            if self._differ(criterion, criterion.compare, self._expected, wrong)
        )

    @functools.cached_property
    def _single_questions(self) -> tuple[dict[str, Any], ...]:
        return tuple(protocol.decode(self.questions))

    def _run(self, replaced: Mapping[str, Any]) -> _Run:
        """What the reference, with some functions replaced, does on the cases."""
        answers = [replaced.get(name, self.exercise.reference[name]) for name in self.exercise.functions]
        return _Run(self._single_questions, answers)

    def _differences(
        self, criterion: Criterion, compare: Comparison, expected: Observations, observed: Observations
    ) -> Iterator[Text]:
        """What `compare` finds different, case by case of the criterion; nothing when they agree."""
        for index, case in enumerate(self.cases):
            if case.tag in criterion.tags and (difference := compare(case, expected[index], observed[index])):
                yield difference

    def _differ(
        self, criterion: Criterion, compare: Comparison, expected: Observations, observed: Observations
    ) -> bool:
        return any(True for _ in self._differences(criterion, compare, expected, observed))

    def _explained(self, failed: Sequence[Criterion], observed: Sequence[Observation]) -> dict[str, _Known]:
        """The failed criteria that a known mistake explains, by the criterion's name.

        A mistake explains a criterion when it loses points there and the answer agrees with it on every case. It is
        considered when it explains every criterion in which it loses points, or those that carry most of these points
        (so that a second mistake elsewhere, or rounding far from zero, does not hide the first). Mistakes that explain
        everything come before others, then those that explain more points.
        """
        matches: list[tuple[bool, float, _Known, list[Criterion]]] = []
        for known in self._known:
            alike = [
                criterion
                for criterion in failed
                if not self._differ(criterion, criterion.alike or criterion.compare, known.wrong, observed)
            ]
            agreed = [criterion for criterion in known.touched if criterion in alike] if alike else []
            if not agreed:
                continue
            points = sum(criterion.points for criterion in agreed)
            whole = len(agreed) == len(known.touched)
            if whole or 2 * points > sum(criterion.points for criterion in known.touched):
                matches.append((not whole, -points, known, agreed))
        explained: dict[str, _Known] = {}
        for _, _, known, agreed in sorted(matches, key=lambda match: match[:2]):
            for criterion in agreed:
                explained.setdefault(criterion.name, known)
        return explained

    def _primary(self, explained: Mapping[str, _Known]) -> _Known:
        """The mistake that explains the most points; of equals the first in the order of the criteria."""
        points: dict[str, float] = {}
        for criterion in self.exercise.criteria:
            if criterion.name in explained:
                slug = explained[criterion.name].mistake.slug
                points[slug] = points.get(slug, 0.0) + criterion.points
        first = max(points, key=lambda slug: points[slug])
        return next(known for known in explained.values() if known.mistake.slug == first)

    def _result(self, criterion: Criterion, difference: Text | None, known: _Known | None) -> CriterionResult:
        message = known.mistake.message if difference and known else difference
        score = 0.0 if difference else criterion.points
        return CriterionResult(criterion.name, criterion.title, score, criterion.points, message)


def _is_unanswered(observed: Sequence[Observation]) -> bool:
    """Every function still raises the stub's error; in a quiz, every variable is still "?"."""

    def untouched(item: Observation) -> bool:
        if isinstance(item, Raised):
            return item.types[0] == "NotImplementedError"
        return isinstance(item.value, str) and item.value.strip() == "?"

    return all(untouched(item) for item in observed)


def _runs_into_another_stub(observed: Sequence[Observation], sources: Sources | None) -> bool:
    """The answer raises NotImplementedError, and its text does not: the error is another cell's."""
    text = sources.answer.strip() if sources else ""
    return bool(text) and "NotImplementedError" not in text and any(isinstance(item, Raised) for item in observed)


def _always_the_same_error(observed: Sequence[Observation]) -> bool:
    errors = {(item.types[0], item.message) if isinstance(item, Raised) else None for item in observed}
    return len(errors) == 1 and None not in errors


def _joined(primary: _Known, explained: Mapping[str, _Known], results: Sequence[CriterionResult]) -> Text:
    """Every known mistake, and what failed and has nothing to do with any of them; what costs most comes first."""
    touched = {criterion.name for known in explained.values() for criterion in known.touched}
    cost = {primary.mistake.message: 0.0}
    for result in results:
        if result.name in explained:
            message = explained[result.name].mistake.message
            cost[message] = cost.get(message, 0.0) + result.max_score
    rest = [result for result in results if result.message and result.name not in touched]
    if rest:
        cost[_summary(rest)] = sum(result.max_score for result in rest)
    texts = sorted(cost, key=lambda text: -cost[text])
    return Text(en="\n".join(text.en for text in texts), zh="\n".join(text.zh for text in texts))


def _summary(results: Sequence[CriterionResult]) -> Text:
    """The message of a verdict that no known mistake explains: what failed, each with its first difference."""
    lost = [result for result in results if result.message]
    if not lost:
        return ALL_RIGHT

    def lines(say: Callable[[Text], str], separator: str) -> str:
        seen: list[str] = []
        for result in lost:
            assert result.message is not None
            line = f"{say(result.title)}{separator}{say(result.message)}"
            if not any(line.endswith(say(result.message)) and old.endswith(say(result.message)) for old in seen):
                seen.append(line)
        return "\n".join(seen)

    return Text(en=lines(lambda text: text.en, ": "), zh=lines(lambda text: text.zh, "："))


def judge_here(
    exercises: Mapping[str, Exercise],
    exercise: str,
    answers: Sequence[Any],
    seed: int,
    device: str,
    sources: Sources | None = None,
) -> Verdict:
    """Examine answers in this very process: the same questions, bytes and judgement as over the socket."""
    examination = Examination(exercises[exercise], seed, accelerator(device))
    if len(answers) != len(examination.exercise.functions):
        raise TypeError(f"{exercise} takes {', '.join(examination.exercise.functions)}; got {len(answers)} answers")
    return examination.judge(observe_all(examination.questions, answers), sources)
