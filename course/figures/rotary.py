"""The figures of lesson 05: the learned table, rotated pairs, scores over distance, pairings, and tests of length."""

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Rectangle

from course.figures.style import BLUE, GREY, MARKERS, ORANGE, SEQUENTIAL, SERIES, show

_LINE_STYLES = ("-", "--", "-.", ":")


def draw_scores_over_start(scores: dict[str, torch.Tensor], distance: int) -> None:
    """Draw the score of one query and one key, `distance` apart, over the position of the key.

    Args:
        scores: label to `(n,)`, the score when the key stands at position 0, 1, ... n - 1. At most four.
    """
    figure, axes = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    for number, (label, values) in enumerate(scores.items()):
        style, colour = _LINE_STYLES[number], SERIES[number]
        axes.plot(range(len(values)), _array(values), color=colour, linestyle=style, linewidth=1.8, label=label)
    axes.set(
        title=f"The same two words, always {distance} places apart",
        xlabel="position of the key (tokens)",
        ylabel="score",
    )
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
    ranges = (f"{label}: from {float(v.min()):.2f} to {float(v.max()):.2f}" for label, v in scores.items())
    show(figure, f"Scores of one query and one key, {distance} places apart, over position. {'; '.join(ranges)}.")


def draw_table_changes(table_before: torch.Tensor, table_after: torch.Tensor) -> None:
    """Draw how far training moved each row of a position table; both `(rows, d_model)`."""
    moved = (table_after.detach() - table_before.detach()).norm(dim=1).cpu()
    used = int((moved > 0).sum())
    figure, axes = plt.subplots(figsize=(7.2, 2.9), layout="constrained")
    axes.vlines(range(len(moved)), 0.0, _array(moved), color=BLUE, linewidth=2)
    axes.plot(range(len(moved)), _array(moved), "o", color=BLUE, markersize=4)
    axes.set(
        title="Training moves the rows it uses, and no other",
        xlabel="row of the table (position)",
        ylabel="length of the change",
    )
    show(
        figure,
        f"Length of the change of each of {len(moved)} rows: {used} rows moved, by {float(moved.max()):.2f} at most; "
        f"{len(moved) - used} rows did not move at all.",
    )


def draw_turned_pairs(before: torch.Tensor, after: torch.Tensor, title: str) -> None:
    """Draw each adjacent pair of columns as a point on its own dial, before and after rotation; both `(head_dim,)`."""
    pairs = len(before) // 2
    figure, grid = plt.subplots(1, pairs, figsize=(2.1 * pairs + 1.2, 2.9), squeeze=False, layout="constrained")
    turned = []
    for pair, axes in enumerate(grid[0]):
        old, new = (_array(vector[2 * pair : 2 * pair + 2]) for vector in (before, after))
        radius = float((old**2).sum() ** 0.5)
        axes.add_patch(Circle((0.0, 0.0), radius, fill=False, color=GREY, linewidth=1.0))
        for name, (x, y), colour, style in (("before", old, ORANGE, "--"), ("after", new, BLUE, "-")):
            axes.plot([0.0, x], [0.0, y], color=colour, linestyle=style, linewidth=2.5, marker="o", markevery=[1])
            axes.lines[-1].set_label(name)
        limit = 1.25 * max(radius, 1e-6)
        axes.set(xlim=(-limit, limit), ylim=(-limit, limit), xticks=[], yticks=[], aspect="equal")
        axes.set(title=f"pair {pair}", xlabel=f"column {2 * pair}", ylabel=f"column {2 * pair + 1}")
        axes.spines[:].set_visible(False)
        angles = torch.atan2(*torch.tensor(new[::-1].copy())) - torch.atan2(*torch.tensor(old[::-1].copy()))
        turned.append(f"{float(angles.rad2deg().remainder(360.0)):.0f}")
    figure.legend(*grid[0][0].get_legend_handles_labels(), fontsize=8, loc="outside right center")
    figure.suptitle(title, fontsize=11)
    show(figure, f"{title}. Dials of {pairs} pairs, before and after. Turned by {', '.join(turned)} degrees.")


def draw_score_maps(maps: dict[str, torch.Tensor]) -> None:
    """Draw tables of scores `(length, length)`, query positions down and key positions across, one beside the other."""
    figure, grid = plt.subplots(1, len(maps), figsize=(3.6 * len(maps) + 0.6, 3.3), squeeze=False, layout="constrained")
    for axes, (name, scores) in zip(grid[0], maps.items(), strict=True):
        image = axes.imshow(_array(scores), cmap=SEQUENTIAL, interpolation="nearest")
        axes.set(title=name, xlabel="key position (tokens)", ylabel="query position (tokens)")
        figure.colorbar(image, ax=axes, label="score")
    parts = []
    for name, scores in maps.items():
        table = scores.detach().double()
        uneven = max(float(line.max() - line.min()) for line in map(table.diagonal, range(1 - len(table), len(table))))
        kind = "constant along each diagonal" if uneven < 1e-3 else f"up to {uneven:.2f} apart on one diagonal"
        parts.append(f"{name}: {kind}")
    show(figure, f"Heat maps of scores for every pair of positions. {'; '.join(parts)}.")


def draw_pairings(head_dim: int) -> None:
    """Draw which columns form a pair in the two pairings, adjacent and halves."""
    pairs = head_dim // 2
    layouts = {
        "adjacent": [column // 2 for column in range(head_dim)],
        "halves": [column % pairs for column in range(head_dim)],
    }
    figure, axes = plt.subplots(figsize=(0.85 * head_dim + 1.4, 2.3), layout="constrained")
    for row, pair_of in enumerate(layouts.values()):
        for column, pair in enumerate(pair_of):
            light = 0.35 + 0.6 * pair / max(pairs - 1, 1)
            box = Rectangle((column - 0.46, row - 0.36), 0.92, 0.72, facecolor=str(light), edgecolor="black")
            axes.add_patch(box)
            ink = "white" if light < 0.6 else "black"
            axes.text(column, row, f"pair {pair}", ha="center", va="center", fontsize=8, color=ink)
    axes.set(xlim=(-0.6, head_dim - 0.4), ylim=(1.6, -0.6), title="Which columns turn together")
    axes.set(xlabel="column of the head", ylabel="pairing", xticks=range(head_dim))
    axes.set_yticks([0, 1], list(layouts))
    parts = [
        f"{name}: " + ", ".join(f"column {column} in pair {pair}" for column, pair in enumerate(pair_of))
        for name, pair_of in layouts.items()
    ]
    show(figure, f"Two rows of {head_dim} boxes. {'; '.join(parts)}.")


def draw_score_profiles(profiles: dict[str, torch.Tensor], title: str) -> None:
    """Draw scores over distance; at most four.

    Args:
        profiles: label to `(n,)`, the score at distance 0, 1, ... n - 1.
    """
    figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    for number, (label, values) in enumerate(profiles.items()):
        style, width = _LINE_STYLES[number], 2.8 - 0.6 * number
        axes.plot(
            range(len(values)), _array(values), color=SERIES[number], linestyle=style, linewidth=width, label=label
        )
    axes.set(title=title, xlabel="distance between query and key (tokens)", ylabel="score")
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
    ends = (f"{label}: {float(v[0]):.2f} at distance 0, {float(v[-1]):.2f} at last" for label, v in profiles.items())
    show(figure, f"{title}. Scores over distance. {'; '.join(ends)}.")


def draw_turn_lengths(turns: dict[str, torch.Tensor], trained_length: int) -> None:
    """Draw how many tokens each pair needs for one full turn, against the length of the texts in training.

    Args:
        turns: label to `(pairs,)`, tokens a turn; at most four.
        trained_length: where the horizontal line stands.
    """
    figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    for number, (label, values) in enumerate(turns.items()):
        axes.plot(_array(values), color=SERIES[number], linestyle=_LINE_STYLES[number], linewidth=2, label=label)
    axes.axhline(trained_length, color="black", linestyle=(0, (1, 3)), linewidth=1.2, label=f"{trained_length} tokens")
    axes.set(title="A larger base slows every pair but the first", xlabel="pair i", ylabel="one full turn (tokens)")
    axes.set_yscale("log")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
    slow = (
        f"{label}: {int((v > trained_length).sum())} of {len(v)} pairs above the line" for label, v in turns.items()
    )
    show(figure, f"Tokens for one turn of each pair, on a logarithmic axis: straight lines. {'; '.join(slow)}.")


def draw_longer_texts(
    lengths: list[int], results: dict[str, torch.Tensor], labels: tuple[str, str], guessing: float
) -> None:
    """Draw results of models trained at the first length and tested at all: mean over seeds, and a bar for the spread.

    Args:
        lengths: the lengths, the trained one first.
        results: code to `(len(lengths), seeds)`; at most five.
        labels: title and label of the vertical axis.
        guessing: what a model gets that calls all letters equally likely.
    """
    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    for number, (code, values) in enumerate(results.items()):
        table = values.detach().double().cpu()
        shifted = [
            place + 0.05 * (number - (len(results) - 1) / 2) for place in range(len(lengths))
        ]  # bars side by side
        lowest, mean, highest = table.amin(dim=1), table.mean(dim=1), table.amax(dim=1)
        _error_line(axes, shifted, mean, torch.stack([mean - lowest, highest - mean]), number, code)
    axes.axhline(guessing, color="black", linewidth=1, linestyle=(0, (1, 3)), label="guessing")
    axes.set(title=labels[0], xlabel="length of the text (letters)", ylabel=labels[1])
    axes.set_ylim(bottom=0.0)
    axes.set_xticks(range(len(lengths)), [f"{lengths[0]}\n(trained)", *map(str, lengths[1:])])
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
    parts = (
        f"{code}: "
        + ", ".join(f"{value:.2f} at {length}" for value, length in zip(v.mean(dim=1).tolist(), lengths, strict=True))
        for code, v in results.items()
    )
    show(figure, f"{labels[0]}; {labels[1]}. Means over seeds. {'; '.join(parts)}; guessing: {guessing:.2f}.")


def _error_line(
    axes: Axes, places: list[float], mean: torch.Tensor, spread: torch.Tensor, number: int, label: str
) -> None:
    axes.errorbar(
        places,
        mean.tolist(),
        yerr=spread.clamp(min=0.0).numpy(),
        color=SERIES[number % len(SERIES)],
        linestyle=_LINE_STYLES[number % len(_LINE_STYLES)],
        marker=MARKERS[number % len(MARKERS)],
        capsize=4,
        label=label,
    )


def _array(values: torch.Tensor) -> np.ndarray:
    return np.asarray(values.detach().cpu().double().numpy())
