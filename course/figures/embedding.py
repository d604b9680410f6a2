"""The figures of lesson 03: what a sum keeps, how long its two parts are, and what readers learn from it."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch

from course.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SEQUENTIAL, show

# Colour, line and marker of one series: each tells it apart, with or without colour.
_LOOKS = ((BLUE, "-", "o"), (ORANGE, "--", "s"), (GREEN, "-.", "^"), (PURPLE, ":", "D"))


def draw_recovery(sizes: Sequence[int], shares: Mapping[str, Sequence[float]]) -> None:
    """Draw how often each way of searching finds what went into a sum, against the columns of the vectors.

    Args:
        sizes: d_model, powers of two.
        shares: what is searched for and how to one share from 0 to 1 per size; at most four.
    """
    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    for (label, values), (colour, line, marker) in zip(shares.items(), _LOOKS, strict=False):
        axes.plot(sizes, values, color=colour, linestyle=line, marker=marker, markerfacecolor="none", label=label)
    axes.set(
        title="What can be found again in the sum",
        xlabel="d_model (columns, logarithmic)",
        ylabel="found (share of 1000 sums)",
        ylim=(-0.05, 1.08),
        xscale="log",
    )
    axes.set_xticks(sizes, [str(size) for size in sizes], minor=False)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9)
    ends = [f"{label}: {values[0]:.3f} with {sizes[0]} columns, {values[-1]:.3f} with {sizes[-1]}"
            for label, values in shares.items()]  # fmt: skip
    show(figure, "Share found again, rising with the number of columns. " + "; ".join(ends) + ".")


def draw_sum(words: Sequence[str], word_part: torch.Tensor, position_part: torch.Tensor) -> None:
    """Draw the two parts of an input, both `(length, d_model)`, and their sum: three heat maps, one colour scale."""
    parts = word_part.detach().cpu(), position_part.detach().cpu()
    panels = {"who: the scaled word": parts[0], "where: the encoding": parts[1], "the sum": parts[0] + parts[1]}
    bound = max(float(panel.abs().max()) for panel in panels.values())
    figure, grid = plt.subplots(1, 3, figsize=(11, 0.42 * len(words) + 1.3), sharey=True, layout="constrained")
    for axes, (title, panel) in zip(grid, panels.items(), strict=True):
        image = axes.imshow(
            panel.numpy(), aspect="auto", cmap=SEQUENTIAL, vmin=-bound, vmax=bound, interpolation="nearest"
        )
        axes.set(title=title, xlabel="column")
    grid[0].set_yticks(range(len(words)), [f"{p}: {word}" for p, word in enumerate(words)])
    grid[0].set_ylabel("position: word")
    figure.colorbar(image, ax=list(grid), label="value (no unit)")
    texts = []
    for title, panel in panels.items():
        same = [
            f"{p} and {q}"
            for p in range(len(words))
            for q in range(p + 1, len(words))
            if bool((panel[p] - panel[q]).abs().max() < 1e-6)
        ]
        texts.append(f"{title}: " + (f"rows {', '.join(same)} are equal" if same else "no two rows are equal"))
    show(figure, f"Three heat maps of {len(words)} positions ({' '.join(words)}). " + "; ".join(texts) + ".")


def draw_lengths(sizes: Sequence[int], words: Mapping[str, Sequence[float]], position: Sequence[float]) -> None:
    """Draw the length of word vectors, for each way to make them, and of the encoding, against d_model.

    Args:
        sizes: d_model.
        words: label to one mean length per size; at most four.
        position: the length of an encoding per size.
    """
    figure, axes = plt.subplots(figsize=(7.6, 3.8), layout="constrained")
    for (label, values), (colour, line, marker) in zip(words.items(), _LOOKS, strict=False):
        axes.plot(sizes, values, color=colour, linestyle=line, marker=marker, markerfacecolor="none", label=label)
    axes.plot(sizes, position, color="black", linewidth=3, label="encoding of a position")
    axes.set(
        title="How long is the word, how long the position?",
        xlabel="d_model (columns, logarithmic)",
        ylabel="length of the vector (logarithmic)",
        xscale="log",
        yscale="log",
    )
    axes.set_xticks(sizes, [str(size) for size in sizes], minor=False)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    ends = [f"{label} {values[-1]:.3g}" for label, values in words.items()]
    show(
        figure,
        f"Lengths on logarithmic axes; with {sizes[-1]} columns: encoding {position[-1]:.3g}, " + ", ".join(ends) + ".",
    )


def draw_angles(cosines: Mapping[int, torch.Tensor]) -> None:
    """Draw how the cosines between words and encodings are spread, one outline for each d_model; at most four."""
    figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    edges = torch.linspace(-1.0, 1.0, 81)
    spreads = []
    for (size, values), (colour, line, _) in zip(cosines.items(), _LOOKS, strict=False):
        flat = values.detach().cpu().flatten()
        counts = torch.histogram(flat, edges).hist
        density = counts / counts.sum() / (edges[1] - edges[0])
        middles = (edges[1:] + edges[:-1]) / 2
        axes.plot(middles.numpy(), density.numpy(), color=colour, linestyle=line, label=f"d_model = {size}")
        spreads.append(f"d_model = {size}: {flat.std().item():.3f}")
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    axes.set(
        title="The more columns, the nearer to a right angle",
        xlabel="cosine between a word and an encoding (0 = right angle)",
        ylabel="density (per unit of cosine)",
    )
    axes.legend(fontsize=9)
    show(
        figure, "Outlines centred at 0, narrower with more columns. Standard deviation for " + "; ".join(spreads) + "."
    )


def draw_seed_curves(
    histories: Mapping[str, Sequence[tuple[int, Sequence[float]]]], without_order: float, chance: float
) -> None:
    """Draw learning curves of several seeds each: the mean, and a band from the worst to the best seed.

    Args:
        histories: label to rows `(step, one share of right answers per seed)`; at most four.
        without_order: the share that the best guess without order gets.
        chance: the share that blind guessing gets.
    """
    figure, axes = plt.subplots(figsize=(8.6, 4.2), layout="constrained")
    for (label, rows), (colour, line, marker) in zip(histories.items(), _LOOKS, strict=False):
        steps = [step for step, _ in rows]
        axes.fill_between(
            steps,
            [min(shares) for _, shares in rows],
            [max(shares) for _, shares in rows],
            color=colour,
            alpha=0.25,
            linewidth=0,
        )
        means = [sum(shares) / len(shares) for _, shares in rows]
        axes.plot(steps, means, color=colour, linestyle=line, marker=marker, markerfacecolor="none", label=label)
    for level, text in ((without_order, "best guess without order"), (chance, "blind guess")):
        axes.axhline(level, color="black", linewidth=1, linestyle=(0, (1, 1)))
        axes.text(
            0.995, level + 0.01, f"{text}: {level:.3f}", transform=axes.get_yaxis_transform(), ha="right", va="bottom"
        )
    axes.set(
        title="Which event comes right after the login?",
        xlabel="training step (batches of 64 logs)",
        ylabel="right on unseen logs (share of 1)",
        ylim=(0, 1.05),
    )
    axes.grid(alpha=0.3)
    axes.legend(title="mean; band: worst to best seed", loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
    ends = []
    for label, rows in histories.items():
        last = rows[-1][1]
        ends.append(f"{label} {sum(last) / len(last):.2f} ({min(last):.2f} to {max(last):.2f})")
    show(
        figure,
        f"Share of right answers at step {rows[-1][0]}, mean (worst to best seed): {'; '.join(ends)}. "
        f"The best guess without order gets {without_order:.2f}, a blind guess {chance:.2f}.",
    )


def draw_padding(widths: Sequence[int], shares: Mapping[str, Sequence[Sequence[float]]]) -> None:
    """Draw right answers against the width that the same logs are padded to: mean, and worst to best seed as a bar.

    Args:
        widths: length of the batch after padding; the first is the width in training.
        shares: label to one list of shares (one per seed) per width; at most four.
    """
    figure, axes = plt.subplots(figsize=(8.2, 3.8), layout="constrained")
    places = range(len(widths))
    for number, ((label, rows), (colour, line, marker)) in enumerate(zip(shares.items(), _LOOKS, strict=False)):
        means = [sum(row) / len(row) for row in rows]
        below = [mean - min(row) for mean, row in zip(means, rows, strict=True)]
        above = [max(row) - mean for mean, row in zip(means, rows, strict=True)]
        axes.errorbar(
            [place + 0.08 * (number - 1) for place in places],  # side by side, so that no bar hides another
            means,
            yerr=[below, above],
            color=colour,
            linestyle=line,
            marker=marker,
            markerfacecolor="white",
            capsize=4,
            label=label,
        )
    axes.set_xticks(places, [f"{widths[0]}\n(trained)", *map(str, widths[1:])])
    axes.set(
        title="The same logs, with more and more padding",
        xlabel="width of the batch (entries)",
        ylabel="right (share of 1)",
        ylim=(0, 1.05),
    )
    axes.grid(alpha=0.3)
    axes.legend(title="mean; bar: worst to best seed", loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
    ends = []
    for label, rows in shares.items():
        first, last = (sum(row) / len(row) for row in (rows[0], rows[-1]))
        ends.append(f"{label} {first:.2f} at width {widths[0]} and {last:.2f} at width {widths[-1]}")
    show(figure, "Mean share of right answers: " + "; ".join(ends) + ".")
