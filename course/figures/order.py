"""Figures of lesson 01: what attention knows about order, what a causal mask adds, and two naive position codes."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from course.figures.style import BLUE, GREY, MARKERS, ORANGE, SEQUENTIAL, SERIES, show

_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def draw_text_vectors(vectors: Mapping[str, tuple[torch.Tensor, torch.Tensor]], first: str, second: str) -> None:
    """Draw one panel a model: the vector `(d_model,)` it gives to each of two texts, feature by feature."""
    figure, axes = plt.subplots(1, len(vectors), figsize=(5 * len(vectors), 3.7), squeeze=False, layout="constrained")
    gaps = []
    for ax, (model, (left, right)) in zip(axes[0], vectors.items(), strict=True):
        left, right = left.detach().cpu(), right.detach().cpu()
        gap = (left - right).abs().max().item()
        gaps.append(f"{model}: largest difference {gap:.1g}")
        ax.axhline(0, color=GREY, linewidth=0.8)
        ax.plot(left.numpy(), "o", markersize=11, markerfacecolor="none", markeredgewidth=2, color=BLUE, label=first)
        ax.plot(right.numpy(), "x", markersize=7, markeredgewidth=2, color=ORANGE, label=second)
        ax.set_title(f"{model}\nlargest difference {gap:.1g}")
        ax.set_xlabel("feature (column of the vector)")
    axes[0, 0].set_ylabel("value (no unit)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    show(figure, f"Text vectors of '{first}' (circles) and '{second}' (crosses). " + "; ".join(gaps) + ".")


def draw_weights(panels: Sequence[tuple[str, Sequence[str], torch.Tensor]]) -> None:
    """Draw attention weights `(length, length)` as tables: one panel for each `(title, words, weights)`."""
    figure, axes = plt.subplots(1, len(panels), figsize=(4.6 * len(panels), 3.9), squeeze=False, layout="constrained")
    for ax, (title, words, weights) in zip(axes[0], panels, strict=True):
        image = _draw_table(ax, weights.detach().cpu(), words, words, "{:.2f}")
        ax.set_title(title)
        ax.set_xlabel("word looked at (key)")
        ax.set_ylabel("word that looks (query)")
    figure.colorbar(image, ax=list(axes[0]), label="attention weight (share of 1)")
    parts = [f"{title}: " + _rows_in_words(words, weights) for title, words, weights in panels]
    show(figure, "Attention weights. " + " ".join(parts))


def _draw_table(ax: Axes, values: torch.Tensor, rows: Sequence[str], columns: Sequence[str], form: str) -> AxesImage:
    """Draw a table of numbers from 0 to 1 as coloured cells with the numbers written in."""
    image = ax.imshow(values.numpy(), cmap=SEQUENTIAL, vmin=0.0, vmax=1.0)
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            value = values[row, column].item()
            colour = "black" if value > 0.5 else "white"
            ax.text(column, row, form.format(value), ha="center", va="center", color=colour)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    return image


def _rows_in_words(words: Sequence[str], weights: torch.Tensor) -> str:
    """Say each row of a weight table in words."""
    rows = []
    for word, row in zip(words, weights.tolist(), strict=True):
        rows.append(f"{word} looks at " + ", ".join(f"{key} {w:.2f}" for key, w in zip(words, row, strict=True)))
    return "; ".join(rows) + "."


def draw_gaps(gaps: Mapping[str, float]) -> None:
    """Draw the permutation gap of each layer as a bar on a logarithmic axis; a gap of 0 sits at the left edge."""
    edge = 1e-8
    names, values = list(gaps), list(gaps.values())
    figure, ax = plt.subplots(figsize=(8, 0.55 * len(names) + 1.4), layout="constrained")
    colours = [BLUE if value < 1e-4 else ORANGE for value in values]
    hatches = ["" if value < 1e-4 else "//" for value in values]
    bars = ax.barh(names, [max(value, edge) - edge for value in values], left=edge, color=colours, edgecolor="black")
    for bar, value, hatch in zip(bars, values, hatches, strict=True):
        bar.set_hatch(hatch)
        ax.text(max(value, edge) * 1.3, bar.get_y() + bar.get_height() / 2, f"{value:.1g}", va="center")
    ax.set_xscale("log")
    ax.set_xlim(edge, 30)
    ax.invert_yaxis()
    ax.set_xlabel("permutation gap (units of the output, logarithmic)")
    ax.set_ylabel("layer")
    ax.set_title("Shuffle the input: does the output only move?")
    show(figure, "Permutation gap by layer: " + ", ".join(f"{k} {v:.1g}" for k, v in gaps.items()) + ".")


def draw_swap_traces(traces: Mapping[str, torch.Tensor]) -> None:
    """Draw, a panel for each network, which outputs change when two neighbours are swapped.

    Args:
        traces: `(length - 1, length)` each; row s holds the change of each output after swapping positions s, s + 1.
    """
    figure, axes = plt.subplots(1, len(traces), figsize=(4.1 * len(traces), 3.5), squeeze=False, layout="constrained")
    parts = []
    for ax, (network, trace) in zip(axes[0], traces.items(), strict=True):
        changed = trace.detach().cpu() > 1e-5
        ax.imshow(changed.float().numpy(), cmap=SEQUENTIAL, vmin=0.0, vmax=1.0)
        for swap in range(changed.shape[0]):
            for position in range(changed.shape[1]):
                word, colour = ("changed", "black") if changed[swap, position] else ("same", "white")
                ax.text(position, swap, word, ha="center", va="center", color=colour, fontsize=6.5)
            ax.add_patch(
                Rectangle((swap - 0.5, swap - 0.5), 2, 1, fill=False, edgecolor="black", linewidth=3, clip_on=False)
            )
        ax.set_xticks(range(changed.shape[1]))
        ax.set_yticks(range(changed.shape[0]), [f"{s} and {s + 1}" for s in range(changed.shape[0])])
        ax.set_title(network)
        ax.set_xlabel("position of the output")
        ax.set_ylabel("positions swapped")
        rows = [", ".join(str(p) for p in row.nonzero().flatten().tolist()) for row in changed]
        parts.append(
            f"{network}: " + "; ".join(f"swap {s} and {s + 1} changes outputs {r}" for s, r in enumerate(rows))
        )
    show(figure, "Outputs changed by swapping two neighbours (outlined). " + ". ".join(parts) + ".")


def draw_start_share(shares: torch.Tensor) -> None:
    """Draw a head's output `(length,)` at each position, and how much it changes from one position to the next."""
    values = shares.detach().cpu()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    left.plot(values.numpy(), "o-", color=BLUE, markersize=4)
    left.set_title("What the head puts out")
    left.set_ylabel("weight on the start token (share of 1)")
    steps = (values[:-1] - values[1:]).abs()
    right.plot(range(1, len(values)), steps.numpy(), "s-", color=ORANGE, markersize=4)
    right.set_yscale("log")
    right.set_title("How far it moves from one position to the next")
    right.set_ylabel("difference from position\nt - 1 (share of 1, logarithmic)")
    for ax in (left, right):
        ax.set_xlabel("position t (words)")
        ax.grid(alpha=0.3)
    show(
        figure,
        f"The share falls from {values[0].item():.3g} at position 0 to {values[-1].item():.3g} at position "
        f"{len(values) - 1}; the step between neighbours falls from {steps[0].item():.2g} to {steps[-1].item():.2g}.",
    )


def draw_learning(histories: Mapping[str, Sequence[tuple[int, float, float]]]) -> None:
    """Draw how often each reader is right on two questions against training steps, with the share that guessing gets.

    Args:
        histories: For each reader, rows `(step, right on question 1, right on question 2)` from `train_reader`.
    """
    questions = (("Did letter 0 come before letter 1?", 1 / 2), ("Which letter stands three back?", 1 / 8))
    colours = (*SERIES[:4], "black")
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.0), sharey=True, layout="constrained")
    for column, (ax, (question, chance)) in enumerate(zip(axes, questions, strict=True), start=1):
        ax.axhline(chance, color=GREY, linewidth=1)
        ax.annotate(
            f"guessing: {chance:.3g}",
            (0.98, chance),
            xycoords=("axes fraction", "data"),
            xytext=(0, -8),
            textcoords="offset points",
            ha="right",
            va="top",
        )
        for number, (reader, rows) in enumerate(histories.items()):
            ax.plot(
                [row[0] for row in rows],
                [row[column] for row in rows],
                color=colours[number % 5],
                linestyle=_LINES[number % 5],
                marker=MARKERS[number % len(MARKERS)],
                markersize=9 - 1.5 * (number % 5),
                markerfacecolor="none",
                label=reader,
            )
        ax.set_ylim(0, 1.05)
        ax.set_title(question)
        ax.set_xlabel("training step (batches of 64 texts)")
    axes[0].set_ylabel("right on unseen texts (share of 1)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    ends = [f"{name} {rows[-1][1]:.2f} and {rows[-1][2]:.2f}" for name, rows in histories.items()]
    show(figure, "Share of right answers at the last step, first and second question: " + "; ".join(ends) + ".")


def draw_drowned_words(similarity: torch.Tensor, weights: torch.Tensor) -> None:
    """Draw what integer positions do: two words grow alike `(length,)`, and attention `(n, n)` looks at the end."""
    values, table = similarity.detach().cpu(), weights.detach().cpu()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.8), layout="constrained")
    left.plot(values.numpy(), "o-", color=BLUE, markersize=4)
    left.set_ylim(min(-0.2, values.min().item() - 0.1), 1.05)
    left.set_title("Two different words at the same position")
    left.set_xlabel("position t (words)")
    left.set_ylabel("cosine similarity (1 = same direction)")
    left.grid(alpha=0.3)
    image = right.imshow(table.numpy(), cmap=SEQUENTIAL, vmin=0.0, vmax=1.0)
    right.set_title("Attention weights with integer positions")
    right.set_xlabel("position looked at (key)")
    right.set_ylabel("position that looks (query)")
    figure.colorbar(image, ax=right, label="attention weight (share of 1)")
    favourites = ", ".join(str(p) for p in table.argmax(dim=-1).tolist())
    show(
        figure,
        f"Left: the similarity rises from {values[0].item():.2f} at position 0 to {values[-1].item():.4f} at position "
        f"{len(values) - 1}. Right: queries 0 to {len(table) - 1} look most at positions {favourites}.",
    )


def draw_fraction_steps(positions: Mapping[int, torch.Tensor]) -> None:
    """Draw the number that each position receives, one line for each text length."""
    figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for number, (length, values) in enumerate(positions.items()):
        ax.plot(
            values.detach().cpu().numpy(),
            color=SERIES[number % 5],
            linestyle=_LINES[number % 5],
            marker=MARKERS[number % len(MARKERS)],
            label=f"{length} words",
        )
    ax.axvline(3, color=GREY, linewidth=1)
    ax.set_title("Fraction positions: position 3 receives a different number in each text")
    ax.set_xlabel("position t (words)")
    ax.set_ylabel("number added (no unit)")
    ax.legend(title="length of the text")
    threes = [f"{values[3].item():.2f} in a text of {length} words" for length, values in positions.items()]
    show(figure, "Every line runs from 0 to 1. Position 3 receives " + ", ".join(threes) + ".")
