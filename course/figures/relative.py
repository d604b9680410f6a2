"""The figures of lesson 06: shares of attention, buckets, slopes, the shift, all codes in one frame, trained tables."""

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course.figures.style import BLUE, GREY, MARKERS, ORANGE, SEQUENTIAL, SERIES, show

_LINE_KINDS = ("-", "--", "-.", ":")
_WHERE = "key position − query position (tokens)"


def draw_shares(shares: dict[str, torch.Tensor], title: str) -> None:
    """Draw how one query, at the end of a text, shares its attention among the keys up to itself; at most four.

    Args:
        shares: label to `(n,)`, the share of the key n − 1 places before the query, ... of the query's own place.
    """
    figure, axes = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    for number, (label, values) in enumerate(shares.items()):
        _line(axes, range(1 - len(values), 1), values, number, label, marker=MARKERS[number], markersize=3.5)
    axes.set(title=title, xlabel=_WHERE, ylabel="share of attention")
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
    parts = (
        f"{label}: {float(v[-1]):.3f} at distance 0, {float(v[0]):.3f} at {1 - len(v)}" for label, v in shares.items()
    )
    show(figure, f"{title}. Shares of attention over the place of the key. {'; '.join(parts)}.")


def draw_buckets(buckets: dict[str, torch.Tensor], distance: torch.Tensor) -> None:
    """Draw the number of the bucket over distance, one panel for each mode.

    Args:
        buckets: mode to int64 `(n,)`.
        distance: int64 `(n,)`, key − query, ascending.
    """
    figure, grid = plt.subplots(1, len(buckets), figsize=(8.6, 3.2), squeeze=False, sharey=True, layout="constrained")
    parts = []
    for axes, (mode, numbers) in zip(grid[0], buckets.items(), strict=True):
        axes.step(_numbers(distance), _numbers(numbers), where="mid", color=BLUE, linewidth=1.6)
        axes.axvline(0.0, color=GREY, linewidth=0.8, linestyle=":")
        axes.set(title=mode, xlabel=_WHERE)
        used = torch.unique(numbers)
        parts.append(f"{mode}: {len(used)} buckets in use, numbers {int(used.min())} to {int(used.max())}")
    grid[0][0].set_ylabel("bucket")
    show(
        figure,
        f"Bucket numbers over distance: single steps near zero, ever longer ones further out. {'; '.join(parts)}.",
    )


def draw_head_slopes(bias: torch.Tensor) -> None:
    """Draw what each head adds to scores, and by what factor that multiplies weights.

    Args:
        bias: `(heads, n)`, the bias at distance 0, 1, ... n − 1 before the query.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.4), layout="constrained")
    place = range(0, -bias.shape[1], -1)
    colours = plt.get_cmap(SEQUENTIAL)(np.linspace(0.0, 0.85, len(bias)))
    factors = bias.detach().exp()
    for head, (line, factor) in enumerate(zip(bias, factors, strict=True)):
        style = _LINE_KINDS[head % len(_LINE_KINDS)]
        left.plot(place, _numbers(line), color=colours[head], linestyle=style, label=f"head {head}")
        right.plot(place, _numbers(factor), color=colours[head], linestyle=style, label=f"head {head}")
    left.set(title="Added to the score", xlabel=_WHERE, ylabel="bias")
    right.set(title="So the weight is multiplied by", xlabel=_WHERE, ylabel="factor")
    right.set_ylim(0.0, 1.03)
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center", fontsize=8)
    last = bias.shape[1] - 1
    parts = (f"head {head}: {float(f[last]):.2g}" for head, f in enumerate(factors))
    show(
        figure,
        f"Straight lines down to the left, one slope for each head. Factor at distance {last}: {', '.join(parts)}.",
    )


def draw_relative_shift(before: torch.Tensor, after: torch.Tensor) -> None:
    """Draw two tables of distances `(q, k)`, before and after the shift; distances below 0, the future, are grey."""
    queries, keys = before.shape
    figure, grid = plt.subplots(1, 2, figsize=(0.75 * 2 * keys + 2.2, 0.55 * queries + 1.3), layout="constrained")
    titles = ("Before: column = distance", "After: column = key")
    labels = ("column c", "key position j")
    for axes, table, title, label in zip(grid, (before, after), titles, labels, strict=True):
        for row, column in np.ndindex(queries, keys):
            value = int(table[row, column])
            future = title.startswith("After") and column > row + keys - queries
            light = 0.85 if future else 0.35 + 0.6 * value / max(keys - 1, 1)
            axes.add_patch(
                Rectangle(
                    (column - 0.47, row - 0.45),
                    0.94,
                    0.9,
                    facecolor=str(light),
                    edgecolor="black",
                    hatch="///" if future else None,
                )
            )
            if not future:
                ink = "white" if light < 0.6 else "black"
                axes.text(column, row, str(value), ha="center", va="center", fontsize=10, color=ink)
        axes.set(xlim=(-0.6, keys - 0.4), ylim=(queries - 0.4, -0.6), title=title, xlabel=label, ylabel="query i")
        axes.set(xticks=range(keys), yticks=range(queries))
    rows = "; ".join(
        f"row {row}: {', '.join(str(int(v)) for v in after[row, : row + keys - queries + 1])}" for row in range(queries)
    )
    show(figure, f"Two tables of distances. Before, each row is the same: {before[0].int().tolist()}. After: {rows}.")


def draw_frame(added: dict[str, tuple[torch.Tensor, torch.Tensor]], distance: torch.Tensor) -> None:
    """Draw what each code adds to the score over distance, for two pairs of words: one panel for each code.

    Args:
        added: code to two tensors `(n,)`, for the first and the second pair of words; NaN where a code has no value.
        distance: int64 `(n,)`, key − query, ascending.
    """
    columns = 3
    rows = -(-len(added) // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(9.4, 2.5 * rows + 0.4), squeeze=False, sharex=True, sharey=True, layout="constrained"
    )
    parts = []
    for axes, (code, pairs) in zip(grid.flat, added.items(), strict=False):
        for values, colour, style, width, name in zip(
            pairs, (BLUE, ORANGE), ("-", "--"), (3.4, 1.6), ("words A", "words B"), strict=True
        ):
            axes.plot(_numbers(distance), _numbers(values), color=colour, linestyle=style, linewidth=width, label=name)
        axes.axvline(0.0, color=GREY, linewidth=0.8, linestyle=":")
        axes.axhline(0.0, color=GREY, linewidth=0.8)
        if bool(torch.isnan(pairs[0]).any()):
            beyond = distance[torch.isnan(pairs[0])]
            _hatch(axes, float(beyond.min()) - 0.5, float(beyond.max()) + 0.5)
        axes.set_title(code, fontsize=10)
        known = ~torch.isnan(pairs[0])
        same = bool(torch.allclose(pairs[0][known], pairs[1][known], atol=1e-5))
        parts.append(f"{code}: {'one curve for all words' if same else 'another curve for other words'}")
    for axes in grid[:, 0]:
        axes.set_ylabel("added to the score")
    for axes in grid.flat[max(len(added) - columns, 0) : len(added)]:  # the lowest panel of each column
        axes.set_xlabel(_WHERE, fontsize=9)
        axes.tick_params(labelbottom=True)
    handles = grid[0][0].get_legend_handles_labels()
    for axes in grid.flat[len(added) :]:
        axes.set_axis_off()
    if len(added) < grid.size:
        grid.flat[-1].legend(*handles, loc="center", fontsize=10)
    else:
        figure.legend(*handles, loc="outside right center", fontsize=9)
    show(figure, f"What each code adds to the score, over distance, for two pairs of words. {'; '.join(parts)}.")


def draw_trained_tables(tables: dict[str, torch.Tensor], trained_length: int) -> None:
    """Draw the numbers that models add at each distance before the query; distances never trained are hatched.

    Args:
        tables: code to `(heads, n)`, at distance 0, 1, ... n − 1.
        trained_length: number of distances that training texts contain.
    """
    figure, grid = plt.subplots(1, len(tables), figsize=(9.4, 3.1), squeeze=False, sharey=True, layout="constrained")
    parts = []
    for axes, (code, values) in zip(grid[0], tables.items(), strict=True):
        n = values.shape[1]
        _hatch(axes, -(n - 1), 0.5 - trained_length)
        for head, line in enumerate(values):
            _line(axes, range(0, -n, -1), line, head, f"head {head}", linewidth=1.5)
        axes.axhline(0.0, color=GREY, linewidth=0.8)
        axes.set(title=code, xlim=(-(n - 1), 1))
        best = values[:, :trained_length].argmax(dim=1).tolist()
        parts.append(f"{code}: largest within the trained distances at {', '.join(map(str, best))} places back")
    figure.supxlabel(_WHERE, fontsize=10)
    grid[0][0].set_ylabel("added to the score")
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside right center", fontsize=9)
    show(figure, f"Numbers added over distance, by head; hatched: never trained. {'; '.join(parts)}.")


def _hatch(axes: Axes, left: float, right: float) -> None:
    axes.axvspan(left, right, facecolor="0.92", edgecolor="0.65", hatch="///", linewidth=0)


def _line(axes: Axes, x: range, y: torch.Tensor, number: int, label: str, **look: object) -> None:
    axes.plot(list(x), _numbers(y), color=SERIES[number], linestyle=_LINE_KINDS[number], label=label, **look)  # type: ignore[arg-type]


def _numbers(values: torch.Tensor) -> np.ndarray:
    return np.asarray(values.detach().cpu().double().numpy())
