"""The plots of a class report. Each has a text description with the same numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from autograder.report.drawing import BLUE, INK, ORANGE, PALE, RULE, SKY, SOFT, WIDTH, Plot, Sheet, shorten, text_width
from autograder.report.statistics import ExerciseStatistics, MistakeStatistics, share, summary
from autograder.results import SubmissionResult

Say = Callable[..., str]
"""`say("median")`, `say("alt-time", n=3, …)`: the report's words in its language, filled in."""

MOST_MISTAKES = 10
BOTTOM = 46
"""Room for an axis's numbers and its name."""


def _steps(most: float, wanted: int = 4) -> list[float]:
    """Round numbers from 0 to at least `most`."""
    raw = max(most, 1e-9) / wanted
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))
    return [step * number for number in range(math.ceil(most / step - 1e-9) + 1)]


def _histogram(counts: Sequence[int], edges: Sequence[str], mark: float, mark_label: str, axis: str, say: Say) -> Sheet:
    """Bars side by side. `mark` is a place on the axis, 0 to 1, at which a line stands."""
    left, top, height = 58, 34, 220
    sheet = Sheet(top + height + BOTTOM)
    ticks = [tick for tick in _steps(max([*counts, 1])) if tick == int(tick)]
    scale = height / ticks[-1]
    base, room = top + height, WIDTH - left - 16
    for tick in ticks:
        sheet.line(left, base - tick * scale, WIDTH - 16, base - tick * scale)
        sheet.text(left - 8, base - tick * scale + 4.5, f"{tick:g}", anchor="end", colour=SOFT, size=12)
    width = room / len(counts)
    for place, count in enumerate(counts):
        if count:
            x = left + place * width
            sheet.rectangle(x + 2, base - count * scale, width - 4, count * scale, BLUE, radius=2)
    for place, edge in enumerate(edges):
        sheet.text(left + place * width, base + 18, edge, anchor="middle", colour=SOFT, size=12)
    x = left + mark * room
    sheet.line(x, top - 12, x, base, ORANGE, 2.5)
    for place, count in enumerate(counts):
        if count:
            x_middle, y = left + (place + 0.5) * width, base - count * scale - 6
            sheet.text(x_middle, y, str(count), anchor="middle", size=12, bold=True, halo=True)
    near_right = mark > 0.8
    sheet.text(x + (-6 if near_right else 6), top - 16, mark_label, anchor="end" if near_right else "start", bold=True)
    sheet.text(left + room / 2, base + 38, axis, anchor="middle", colour=SOFT)
    sheet.text(16, top + height / 2, say("students-axis"), anchor="middle", colour=SOFT, upwards=True)
    return sheet


def distribution_plot(results: Sequence[SubmissionResult], say: Say) -> Plot:
    """How many reached which share of the points, in steps of 10 %; full marks are in the last step."""
    shares = [100 * share(result) for result in results]
    counts = [0] * 10
    for value in shares:
        counts[min(int(value / 10 + 1e-9), 9)] += 1
    found = summary(shares)
    median = found.median if found else 0.0
    edges = [f"{10 * edge}" for edge in range(11)]
    sheet = _histogram(counts, edges, median / 100, f"{say('median')} {median:.0f} %", say("share-axis"), say)
    bins = ", ".join(f"{10 * place}–{10 * place + 10} %: {count}" for place, count in enumerate(counts) if count)
    return sheet.finish(say("alt-distribution", n=len(results), bins=bins, median=f"{median:.0f}"))


def time_plot(results: Sequence[SubmissionResult], say: Say) -> Plot:
    """How many submissions took how long, in ten steps of equal seconds."""
    seconds = [result.seconds for result in results]
    ticks = _steps(max([*seconds, 0.1]), 10)
    most, step = ticks[-1], ticks[1]
    counts = [0] * (len(ticks) - 1)
    for value in seconds:
        counts[min(int(value / step), len(counts) - 1)] += 1
    found = summary(seconds)
    median = found.median if found else 0.0
    label = f"{say('median')} {median:.1f} s"
    sheet = _histogram(counts, [f"{tick:g}" for tick in ticks], median / most, label, say("time-axis"), say)
    bins = ", ".join(f"{ticks[place]:g}–{ticks[place + 1]:g} s: {count}" for place, count in enumerate(counts) if count)
    return sheet.finish(say("alt-time", n=len(results), bins=bins, median=f"{median:.1f}"))


def exercises_plot(exercises: Sequence[ExerciseStatistics], say: Say) -> Plot:
    """One bar an exercise: all points, some, none, not judged."""
    names = [f"{number} · {item.exercise}" for number, item in enumerate(exercises, start=1)]
    left = min(260.0, 24 + max((text_width(name) for name in names), default=0))
    top, row, bar = 46, 34, 22
    sheet = Sheet(top + row * len(exercises) + 30)
    kinds = (("all", BLUE, "#fff"), ("some", SKY, INK), ("no", PALE, INK), ("unjudged", "#fff", SOFT))
    x = left
    for word, fill, _ in kinds:
        sheet.rectangle(x, 14, 14, 14, fill, radius=2, stroke=SOFT if word == "unjudged" else None)
        sheet.text(x + 20, 26, say(word))
        x += 44 + text_width(say(word))
    room = WIDTH - left - 20
    for number, (name, item) in enumerate(zip(names, exercises, strict=True)):
        y = top + number * row
        sheet.text(left - 12, y + 16, shorten(name, left - 24), anchor="end")
        total = item.judged + item.unjudged
        x = left
        for (word, fill, ink), count in zip(kinds, (item.full, item.partial, item.none, item.unjudged), strict=True):
            width = room * count / total if total else 0.0
            if count:
                sheet.rectangle(
                    x, y, max(width - 1.5, 1), bar, fill, radius=2, stroke=SOFT if word == "unjudged" else None
                )
            if width > text_width(str(count)) + 8:
                sheet.text(x + width / 2 - 1, y + 16, str(count), anchor="middle", colour=ink, size=12, bold=True)
            x += width
    base = top + row * len(exercises) - 4
    for percent in (0, 25, 50, 75, 100):
        x = left + room * percent / 100
        sheet.text(x, base + 20, f"{percent} %", anchor="middle" if percent < 100 else "end", colour=SOFT, size=12)
    parts = "; ".join(
        say(
            "alt-exercise",
            exercise=item.exercise,
            full=item.full,
            partial=item.partial,
            none=item.none,
            unjudged=item.unjudged,
        )
        for item in exercises
    )
    return sheet.finish(say("alt-exercises", parts=parts))


def scatter_plot(exercises: Sequence[ExerciseStatistics], say: Say) -> Plot | None:
    """Difficulty against discrimination, the exercises by number; None when there is no discrimination to show."""
    points = [
        (number, item, item.difficulty, item.discrimination)
        for number, item in enumerate(exercises, start=1)
        if item.difficulty is not None and item.discrimination is not None
    ]
    if not points:
        return None
    left, top, width, height = 64, 20, WIDTH - 64 - 24, 260
    low = min(0.0, math.floor(min(point[3] for point in points) * 4) / 4)
    sheet = Sheet(top + height + BOTTOM)

    def place(difficulty: float, discrimination: float) -> tuple[float, float]:
        return left + difficulty * width, top + (1 - discrimination) / (1 - low) * height

    for percent in (0, 25, 50, 75, 100):
        x, _ = place(percent / 100, 0)
        sheet.line(x, top, x, top + height)
        sheet.text(x, top + height + 18, f"{percent} %", anchor="middle", colour=SOFT, size=12)
    value = low
    while value <= 1:
        _, y = place(0, value)
        sheet.line(left, y, left + width, y, SOFT if value == 0 else RULE, 1.5 if value == 0 else 1)
        sheet.text(left - 8, y + 4.5, f"{value:.2f}".replace("-", "−"), anchor="end", colour=SOFT, size=12)
        value += 0.25
    places = [place(difficulty, discrimination) for _, _, difficulty, discrimination in points]
    taken = list(places)
    for (number, _, _, discrimination), (x, y) in zip(points, places, strict=True):
        sheet.circle(x, y, 7, BLUE if discrimination > 0.2 else ORANGE)
        spots = [(x + 15, y), (x - 15, y), (x, y - 15), (x, y + 15), (x + 13, y - 13), (x - 13, y + 13)]
        spot = next((spot for spot in spots if all(math.dist(spot, other) > 13 for other in taken)), spots[0])
        taken.append(spot)
        sheet.text(spot[0], spot[1] + 4.5, str(number), anchor="middle", bold=True, halo=True)
    sheet.text(left + width / 2, top + height + 38, say("difficulty"), anchor="middle", colour=SOFT)
    sheet.text(16, top + height / 2, say("discrimination"), anchor="middle", colour=SOFT, upwards=True)
    parts = "; ".join(
        say(
            "alt-point",
            exercise=f"{number} · {item.exercise}",
            difficulty=f"{100 * difficulty:.0f}",
            discrimination=f"{discrimination:.2f}",
        )
        for number, item, difficulty, discrimination in points
    )
    return sheet.finish(say("alt-scatter", parts=parts))


def mistakes_plot(mistakes: Sequence[MistakeStatistics], say: Say) -> Plot | None:
    """The most frequent mistakes as bars; None when there is none."""
    if not mistakes:
        return None
    shown = mistakes[:MOST_MISTAKES]
    names = [f"{item.exercise}: {item.mistake}" for item in shown]
    left = min(400.0, 20 + max(text_width(name) for name in names))
    top, row, bar = 10, 30, 20
    sheet = Sheet(top + row * len(shown) + 4)
    most = len(shown[0].students)
    for number, (name, item) in enumerate(zip(names, shown, strict=True)):
        y = top + number * row
        width = (WIDTH - left - 60) * len(item.students) / most
        sheet.text(left - 12, y + 15, shorten(name, left - 18), anchor="end")
        sheet.rectangle(left, y, width, bar, BLUE, radius=2)
        sheet.text(left + width + 8, y + 15, str(len(item.students)), bold=True)
    parts = "; ".join(f"{name}: {len(item.students)}" for name, item in zip(names, shown, strict=True))
    return sheet.finish(say("alt-mistakes", n=len(shown), parts=parts))


def class_map(results: Sequence[SubmissionResult], exercises: Sequence[ExerciseStatistics], say: Say) -> Plot:
    """Students by exercises, in five shades; equal neighbours in a column are one rectangle."""
    ordered = sorted(results, key=lambda result: (-share(result), result.student))
    left, top = 58.0, 26.0
    height = min(max(150.0, 14.0 * len(ordered)), 420.0)
    row, column = height / max(len(ordered), 1), (WIDTH - left - 16) / max(len(exercises), 1)
    sheet = Sheet(top + height + 34)
    for number, item in enumerate(exercises):
        x = left + number * column
        sheet.text(x + column / 2, 18, str(number + 1), anchor="middle", bold=True)
        levels = [_level(result, item.exercise) for result in ordered]
        at = 0
        for level, run in itertools.groupby(levels):
            length = len(list(run))
            sheet.rectangle(x + 1, top + at * row, column - 2, max(length * row - 0.6 * (row > 4), 0.5), SHADES[level])
            at += length
    sheet.text(left - 10, top + 12, "1", anchor="end", colour=SOFT, size=12)
    sheet.text(left - 10, top + height - 2, str(len(ordered)), anchor="end", colour=SOFT, size=12)
    sheet.text(16, top + height / 2, say("students-axis"), anchor="middle", colour=SOFT, upwards=True)
    x = left
    for level, label in enumerate(("0 %", "–", "–", "–", "100 %")):
        sheet.rectangle(x, top + height + 12, 26, 12, SHADES[level + 1])
        if label != "–":
            ahead = level == 0
            sheet.text(
                x - 6 if ahead else x + 32, top + height + 22.5, label, anchor="end" if ahead else "start", size=12
            )
        x += 26
    sheet.rectangle(x + 70, top + height + 12, 26, 12, SHADES[0], stroke=SOFT)
    sheet.text(x + 102, top + height + 22.5, say("unjudged"), size=12)
    return sheet.finish(say("alt-map", n=len(results), m=len(exercises)))


SHADES = ("#ffffff", "#e9edf1", "#bcd6ea", "#7fb4da", "#3a8bc2", "#00507f")
"""Not judged; no points; up to a third; up to two thirds; more; all."""


def _level(result: SubmissionResult, exercise: str) -> int:
    verdict = next((verdict for verdict in result.exercises if verdict.exercise == exercise), None)
    if verdict is None or not verdict.judged:
        return 0
    part = verdict.score / verdict.max_score if verdict.max_score else 0.0
    return 1 if part <= 0 else 5 if part >= 1 else 2 + min(int(3 * part), 2)
