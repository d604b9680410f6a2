"""The figures of lesson 02: clocks, waves, wavelengths, shifts, similarity, and the experiment."""

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from course.figures.style import BLUE, GREY, MARKERS, ORANGE, SEQUENTIAL, SERIES, show

_STYLES = ("-", "--", "-.", ":")


def _dial(axes: Axes) -> None:
    axes.add_patch(Circle((0.0, 0.0), 1.0, fill=False, color=GREY, linewidth=1.0))
    axes.plot(0.0, 1.0, marker="|", color=GREY, markersize=6)
    axes.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(False)


def _degrees(encoding: torch.Tensor) -> str:
    angle = torch.atan2(encoding[:, 0::2], encoding[:, 1::2]).rad2deg().round().remainder(360.0)
    return "; ".join(", ".join(f"{value:.0f}" for value in row) for row in angle.tolist())


def draw_clocks(encoding: torch.Tensor, labels: list[str], title: str, heads: list[str] | None = None) -> None:
    """Draw row after row of an encoding as clock hands: column 2i is the tip's x, column 2i + 1 its y.

    Args:
        encoding: `(rows, d_model)`, values from -1 to 1.
        labels: what stands beside each row, `rows` texts.
        title: what stands above all dials.
        heads: what stands above each column of dials, `d_model // 2` texts; without it "pair 0", "pair 1", ...
    """
    rows, d_model = encoding.shape  # one row of dials per position
    pairs = d_model // 2
    heads = heads or [f"pair {pair}" for pair in range(pairs)]
    figure, grid = plt.subplots(
        rows, pairs, figsize=(1.3 * pairs + 1.2, 1.2 * rows + 0.7), squeeze=False, layout="constrained"
    )
    for row in range(rows):
        for pair in range(pairs):
            x, y = (float(value) for value in encoding[row, 2 * pair : 2 * pair + 2])
            axes = grid[row, pair]
            _dial(axes)
            axes.plot([0.0, x], [0.0, y], color=BLUE, linewidth=2.5, solid_capstyle="round")
            axes.plot(x, y, "o", color=BLUE, markersize=5)
            if row == 0:
                axes.set_title(heads[pair], fontsize=10)
            if pair == 0:
                axes.set_ylabel(labels[row], rotation=0, ha="right", va="center", fontsize=11)
    figure.suptitle(title, fontsize=11)
    figure.supxlabel("x of the tip (sin, column 2i)", fontsize=9)
    figure.supylabel("y of the tip (cos, column 2i + 1)", fontsize=9)
    show(
        figure,
        f"{title}. Clock dials in {rows} rows ({', '.join(labels)}) and {pairs} columns ({', '.join(heads)}); "
        f"hands start at 12 o'clock and turn clockwise. Hands in degrees: {_degrees(encoding)}.",
    )


def draw_encoding(encoding: torch.Tensor) -> None:
    """Draw an encoding `(n_positions, d_model)` as a heat map, one row per position."""
    n_positions, d_model = encoding.shape
    figure, axes = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
    image = axes.imshow(
        encoding.detach().cpu().double().numpy(),
        aspect="auto",
        cmap=SEQUENTIAL,
        vmin=-1.0,
        vmax=1.0,
        interpolation="nearest",
    )
    axes.set(title="Each row is the encoding of one position", xlabel="column", ylabel="position (tokens)")
    figure.colorbar(image, ax=axes, label="value")
    show(
        figure,
        f"Heat map of {n_positions} positions by {d_model} columns, dark for -1 and light for 1. "
        "Columns on the left change from row to row; columns on the right hardly change.",
    )


def draw_waves(encoding: torch.Tensor, columns: list[int]) -> None:
    """Draw the chosen columns (at most four) of an encoding `(n_positions, d_model)` over the positions."""
    figure, axes = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
    for number, column in enumerate(columns):
        name = "cos" if column % 2 else "sin"
        values = encoding[:, column].detach().cpu().double().numpy()
        axes.plot(
            range(len(values)),
            values,
            color=SERIES[number],
            linestyle=_STYLES[number],
            label=f"column {column} ({name}, pair {column // 2})",
        )
    axes.set(title="One column is one wave", xlabel="position (tokens)", ylabel="value", ylim=(-1.15, 1.15))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
    show(figure, f"Waves of the columns {', '.join(map(str, columns))} over {len(encoding)} positions.")


def draw_wavelengths(lengths: torch.Tensor, base: float = 10000.0) -> None:
    """Draw wavelengths `(pairs,)` on a logarithmic axis between 2 pi and 2 pi times `base`."""
    shortest, bound = 2 * torch.pi, 2 * torch.pi * base
    figure, axes = plt.subplots(figsize=(7.0, 3.4), layout="constrained")
    axes.axhline(shortest, color=GREY, linestyle="--", linewidth=1)
    axes.axhline(bound, color=GREY, linestyle="--", linewidth=1)
    axes.plot(range(len(lengths)), lengths.detach().cpu().numpy(), "o", color=BLUE, markersize=4)
    axes.set(
        title="Wavelengths form a geometric sequence",
        xlabel="pair i",
        ylabel="wavelength (tokens)",
        yscale="log",
        ylim=(shortest / 2, bound * 2),
    )
    axes.text(0, bound * 0.9, f"2 pi x {base:g}", va="top", ha="left", fontsize=9, color=GREY)
    axes.text(len(lengths) - 1, shortest * 1.1, "2 pi", va="bottom", ha="right", fontsize=9, color=GREY)
    show(
        figure,
        f"Wavelengths of {len(lengths)} pairs on a logarithmic axis: a straight line from {float(lengths[0]):.2f} "
        f"up to {float(lengths[-1]):.0f}, below the dashed line at {bound:.0f}.",
    )


def draw_shift(matrix: torch.Tensor, before: torch.Tensor, after: torch.Tensor) -> None:
    """Draw a shift matrix `(d_model, d_model)` and how each pair turns from `before` to `after`, both `(d_model,)`."""
    d_model = len(before)
    pairs = d_model // 2
    figure, grid = plt.subplots(
        1,
        pairs + 1,
        figsize=(4.2 + 1.9 * pairs, 3.7),
        gridspec_kw={"width_ratios": [2.2] + [1.0] * pairs},
        layout="constrained",
    )
    table = grid[0]
    values = matrix.detach().cpu().double()
    table.imshow(values.numpy(), cmap=SEQUENTIAL, vmin=-1.0, vmax=1.0)
    for row in range(d_model):
        for column in range(d_model):
            value = float(values[row, column])
            shade = "white" if value < 0.2 else "black"
            text = f"{value:.2f}" if value else "0"
            table.text(column, row, text, ha="center", va="center", fontsize=8, color=shade)
    table.set(title="The shift matrix", xlabel="column of the old position", ylabel="column of the new position")
    table.set(xticks=range(d_model), yticks=range(d_model))
    for pair in range(pairs):
        axes = grid[pair + 1]
        _dial(axes)
        for name, vector, colour, style in (("before", before, ORANGE, "--"), ("after", after, BLUE, "-")):
            x, y = (float(value) for value in vector[2 * pair : 2 * pair + 2])
            axes.plot([0.0, x], [0.0, y], color=colour, linestyle=style, linewidth=2.5, marker="o", markevery=[1])
            axes.lines[-1].set_label(name)
        axes.set(title=f"pair {pair}", xlabel="x (sin)", ylabel="y (cos)")
    grid[1].legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), fontsize=8, ncol=2)
    show(
        figure,
        f"Left: a {d_model} by {d_model} matrix with one 2 by 2 block per pair on its diagonal and zeros elsewhere. "
        f"Right: {pairs} dials, each with the hand before the shift (dashed) and after it (solid).",
    )


def draw_similarity(similarity: torch.Tensor) -> None:
    """Draw dot products `(n, n)` between positions as a heat map."""
    figure, axes = plt.subplots(figsize=(4.8, 3.9), layout="constrained")
    image = axes.imshow(similarity.detach().cpu().double().numpy(), cmap=SEQUENTIAL, interpolation="nearest")
    axes.set(title="Every diagonal has one colour", xlabel="position q (tokens)", ylabel="position p (tokens)")
    figure.colorbar(image, ax=axes, label="dot product")
    show(
        figure,
        f"Heat map of the dot products of {len(similarity)} positions: largest on the main diagonal, constant along "
        "each parallel to it, and the same on both sides.",
    )


def draw_profiles(profiles: dict[str, torch.Tensor], law: torch.Tensor) -> None:
    """Draw similarity over distance on a logarithmic axis.

    Args:
        profiles: label to `(n,)`, the similarity at distance 0, 1, ... n - 1; distance 0 is not drawn.
        law: `(n,)`, what the rule of thumb says at the same distances.
    """
    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    for number, (label, values) in enumerate(profiles.items()):
        axes.plot(
            range(1, len(values)),
            values[1:].detach().cpu().numpy(),
            color=SERIES[number],
            linestyle=_STYLES[number],
            linewidth=1.4,
            label=label,
        )
    axes.plot(
        range(1, len(law)), law[1:].cpu().numpy(), color="black", linewidth=1, linestyle=":", label="rule of thumb"
    )
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    axes.set(
        title="Similarity falls with the logarithm of distance, with ripples",
        xlabel="distance between two positions (tokens)",
        ylabel="dot product / largest",
        xscale="log",
    )
    axes.legend(fontsize=9)
    show(
        figure,
        f"Similarity over distance for {', '.join(profiles)}: each curve falls as the dotted line does, "
        "with ripples that grow where d_model is small.",
    )


def draw_accuracy(starts: list[int], accuracy: dict[str, list[float]], chance: float) -> None:
    """Draw, for each encoding, how often a trained head finds its key in windows that begin at `starts`.

    Args:
        starts: first position of each window; the first window is the trained one.
        accuracy: label to one value from 0 to 1 per window.
        chance: what guessing gets.
    """
    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    for number, (label, values) in enumerate(accuracy.items()):
        axes.plot(
            range(len(starts)),
            values,
            color=SERIES[number],
            linestyle=_STYLES[number % len(_STYLES)],
            marker=MARKERS[number % len(MARKERS)],
            label=label,
        )
    axes.axhline(chance, color="black", linewidth=1, linestyle=":", label="guessing")
    axes.set(
        title="Trained on the first window only",
        xlabel="first position of the window (tokens)",
        ylabel="right key found (share)",
        ylim=(-0.05, 1.05),
    )
    axes.set_xticks(range(len(starts)), [f"{starts[0]}\n(trained)", *map(str, starts[1:])])
    axes.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    show(
        figure,
        "Share of right keys by window: "
        + "; ".join(
            f"{label} {values[0]:.2f} at first, {values[-1]:.2f} in the last" for label, values in accuracy.items()
        )
        + ".",
    )
