"""Figures of lesson 04: feed-forward, layer norm, the two orders of a block, its gradients, its training, its cost."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch
from torch import nn

from course.figures.style import BLUE, DIVERGING, GREEN, GREY, ORANGE, SERIES, show

_MARKS = ("o", "s", "^", "D", "v")
_STROKES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def draw_flattening(similarities: Mapping[str, Sequence[float]]) -> None:
    """Draw how alike the words of a text are after each layer, one line for each kind of stack."""
    figure, ax = plt.subplots(figsize=(9.5, 4.0), layout="constrained")
    for number, (stack, values) in enumerate(similarities.items()):
        ax.plot(
            values,
            color=SERIES[number % 5],
            linestyle=_STROKES[number % 5],
            marker=_MARKS[number % 5],
            markersize=9 - 1.2 * (number % 5),
            markerfacecolor="none",
            label=stack,
        )
    ax.set_ylim(min(-0.15, *(min(values) - 0.05 for values in similarities.values())), 1.08)
    ax.set_title("How alike are the words of one text?")
    ax.set_xlabel("depth (layers passed)")
    ax.set_ylabel("mean cosine similarity\n(1 = all point the same way)")
    ax.grid(alpha=0.3)
    figure.legend(loc="outside right upper")
    ends = [f"{stack} {values[-1]:.3f} (after two layers {values[2]:.3f})" for stack, values in similarities.items()]
    show(figure, "Mean cosine similarity of two words after the last layer: " + "; ".join(ends) + ".")


def draw_kinks(feed_forward: nn.Module, inputs: torch.Tensor) -> None:
    """Draw a feed-forward network with one feature: its hidden numbers before and after the bend, and its output.

    Args:
        feed_forward: A module of d_model 1 with linear layers `expand` and `contract` and a ReLU between them.
        inputs: `(n,)` values of the one feature, from low to high.
    """
    with torch.no_grad():
        wide = feed_forward.expand(inputs[:, None])  # type: ignore[operator]
        bent = _hidden(feed_forward, inputs[:, None])
        output = feed_forward(inputs[:, None])[:, 0]
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
    for ax, values in zip(axes, (wide, bent), strict=False):
        for unit in range(values.shape[1]):
            ax.plot(
                inputs.numpy(),
                values[:, unit].numpy(),
                color=SERIES[unit % 5],
                linestyle=_STROKES[unit % 5],
                linewidth=2,
                label=f"unit {unit}",
            )
        ax.set_ylabel("hidden number (no unit)")
    axes[2].plot(inputs.numpy(), output.numpy(), color="black", linewidth=2)
    axes[2].set_ylabel("output (no unit)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)  # inside it would hide the ends of lines
    titles = ("1. widen: straight lines", "2. bend: each unit gets a kink", "3. narrow: their weighted sum")
    for ax, title in zip(axes, titles, strict=True):
        ax.axhline(0, color=GREY, linewidth=0.8)
        ax.set_title(title)
        ax.set_xlabel("input x (no unit)")
        ax.grid(alpha=0.3)
    steps = range(0, len(inputs), max(len(inputs) // 8, 1))
    points = ", ".join(f"{inputs[i].item():.2g} gives {output[i].item():.2g}" for i in steps)
    show(figure, f"{wide.shape[1]} straight lines; the same lines cut off at 0; their weighted sum: {points}.")


def _hidden(feed_forward: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """What enters the layer `contract`: the hidden numbers after the bend."""
    seen: list[torch.Tensor] = []
    hook = feed_forward.contract.register_forward_pre_hook(  # type: ignore[union-attr]
        lambda module, args: seen.append(args[0].detach())
    )
    try:
        feed_forward(x)
    finally:
        hook.remove()
    # A network may use the weights of `contract` without calling it; then the figure bends for itself.
    return seen[0] if seen else F.relu(feed_forward.expand(x))  # type: ignore[operator]


def draw_one_set_of_weights(feed_forward: nn.Module, x: torch.Tensor, words: Sequence[str]) -> None:
    """Draw a text `(length, d_model)` on its way through a feed-forward network: a row for each word, three stages."""
    with torch.no_grad():
        stages = (
            ("in: d_model features", x),
            ("bent: d_ff hidden numbers", _hidden(feed_forward, x)),
            ("out: d_model features", feed_forward(x)),
        )
    widths = [values.shape[1] for _, values in stages]
    figure, axes = plt.subplots(
        1, 3, figsize=(12, 0.42 * len(words) + 1.7), width_ratios=[max(w, 6) for w in widths], layout="constrained"
    )
    limit = max(values.abs().max().item() for _, values in stages)
    for ax, (title, values) in zip(axes, stages, strict=True):
        image = ax.imshow(values.numpy(), cmap=DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
        ax.set_title(title)
        ax.set_xlabel("number (column)")
        ax.set_yticks(range(len(words)), [f"{t}: {word}" for t, word in enumerate(words)])
    axes[0].set_ylabel("position and word")
    figure.colorbar(image, ax=list(axes), label="value (no unit)")
    output, first = stages[2][1], {word: t for t, word in reversed(list(enumerate(words)))}
    repeats = []
    for t, word in enumerate(words):
        if first[word] != t:
            gap = (output[t] - output[first[word]]).abs().max().item()
            repeats.append(f"row {t} ({word}) differs from row {first[word]} by {gap:.1g}")
    show(
        figure,
        f"Each row is widened from {widths[0]} to {widths[1]} numbers, bent, and narrowed to {widths[2]}, by itself. "
        "Equal words give equal rows: " + ("; ".join(repeats) if repeats else "no word repeats") + ".",
    )


def draw_activations() -> None:
    """Draw ReLU and both forms of GELU, and how far the two forms are apart."""
    x = torch.linspace(-5, 5, 1001, dtype=torch.float64)
    exact, rough = F.gelu(x), F.gelu(x, approximate="tanh")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.7), layout="constrained")
    left.plot(x.numpy(), F.relu(x).numpy(), color=BLUE, linewidth=2, label="ReLU")
    left.plot(x.numpy(), exact.numpy(), color=ORANGE, linewidth=3, label="GELU, exact (erf)")
    left.plot(x.numpy(), rough.numpy(), color="black", linestyle=":", linewidth=2, label="GELU, tanh form")
    left.set_title("Three bends")
    left.set_ylabel("activation (no unit)")
    left.set_ylim(-0.4, 3.2)
    left.set_xlim(-4, 3)
    left.legend()
    right.plot(x.numpy(), (rough - exact).mul(1e4).numpy(), color=GREEN, linewidth=2)
    right.axhline(0, color=GREY, linewidth=0.8)
    right.set_title("tanh form minus exact form")
    right.set_ylabel("difference (ten-thousandths)")
    for ax in (left, right):
        ax.set_xlabel("hidden number (no unit)")
        ax.grid(alpha=0.3)
    gap = (rough - exact).abs()
    show(
        figure,
        "ReLU is 0 left of 0 and the line x right of it. GELU follows it smoothly and dips to "
        f"{exact.min().item():.2f} at {x[exact.argmin()].item():.2f}. Its two forms lie on one another; they differ by "
        f"at most {gap.max().item():.1e}, near {x[gap.argmax()].abs().item():.1f} on both sides.",
    )


def draw_norms(panels: Mapping[str, torch.Tensor], tokens: Sequence[str]) -> None:
    """Draw tables `(tokens, features)` side by side, each number written into its cell."""
    figure, axes = plt.subplots(
        1, len(panels), figsize=(3.8 * len(panels), 0.5 * len(tokens) + 1.8), squeeze=False, layout="constrained"
    )
    for ax, (title, table) in zip(axes[0], panels.items(), strict=True):
        values = table.detach().cpu()
        _draw_signed(ax, values)
        ax.set_title(title)
        ax.set_xlabel("feature (column)")
        ax.set_yticks(range(len(tokens)), tokens)
    axes[0, 0].set_ylabel("token (row)")
    parts = []
    for title, table in panels.items():
        rows = [
            f"{token} " + ", ".join(f"{v:.2f}" for v in row) for token, row in zip(tokens, table.tolist(), strict=True)
        ]
        parts.append(f"{title}: " + "; ".join(rows))
    show(figure, ". ".join(part.replace("\n", " ") for part in parts) + ".")


def _draw_signed(ax: Axes, values: torch.Tensor) -> None:
    """Draw numbers of both signs as coloured cells with the numbers written in."""
    limit = max(values.abs().max().item(), 1e-6)
    ax.imshow(values.numpy(), cmap=DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            value = values[row, column].item()
            colour = "white" if abs(value) > 0.6 * limit else "black"
            ax.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)
    ax.set_xticks(range(values.shape[1]))


def draw_block_orders() -> None:
    """Draw the plan of a post-norm and of a pre-norm block, bottom to top, with the residual line beside the steps."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 5.4), layout="constrained")
    orders = {
        "Post-norm (2017)": ("attention", "add", "norm", "feed-forward", "add", "norm"),
        "Pre-norm": ("norm", "attention", "add", "norm", "feed-forward", "add"),
    }
    colours = {"attention": BLUE, "feed-forward": GREEN, "norm": ORANGE, "add": "white"}
    for ax, (title, steps) in zip(axes, orders.items(), strict=True):
        ax.annotate("", (0, 5.95), (0, -0.75), arrowprops={"arrowstyle": "->", "linewidth": 2}, zorder=0)
        branch = -0.45
        for level, step in enumerate(steps):
            ink = "white" if step in ("attention", "feed-forward") else "black"
            box = FancyBboxPatch((-0.8, level - 0.26), 1.6, 0.52, boxstyle="round,pad=0.05", facecolor=colours[step])
            ax.add_patch(box).set_zorder(2)
            ax.text(
                0, level, "+" if step == "add" else step, ha="center", va="center", color=ink, fontsize=12, zorder=3
            )
            if step == "add":
                ax.plot([0, 1.35, 1.35], [branch, branch, level], color="black", linewidth=2)
                ax.annotate("", (0.88, level), (1.38, level), arrowprops={"arrowstyle": "->", "linewidth": 2})
                ax.text(1.45, (branch + level) / 2, "residual", rotation=90, va="center")
                branch = level + (1.5 if title.startswith("Post") else 0.5)
        ax.set_title(title)
        ax.set_xlim(-1.5, 2)
        ax.set_ylim(-1.25, 6.4)
        ax.text(0, -0.95, "x", ha="center", va="center", fontsize=12)
        ax.text(0, 6.15, "to the next block", ha="center", va="center")
        ax.axis("off")
    texts = [f"{title}, bottom to top: {', '.join(steps)}" for title, steps in orders.items()]
    show(
        figure,
        ". ".join(texts) + ". Each addition adds the value from before the sublayer; in post-norm a norm lies on the "
        "way from one addition to the next, in pre-norm the residual line meets additions only.",
    )


def draw_gradients(gradients: Mapping[str, Mapping[int, torch.Tensor]]) -> None:
    """Draw the gradient norm of each block's parameters, a panel for each order, a line for each depth.

    Args:
        gradients: For each order and each depth a tensor `(seeds, depth)`. Lines show the geometric mean over seeds,
            shades the range.
    """
    figure, axes = plt.subplots(
        1, len(gradients), figsize=(5.4 * len(gradients), 3.9), sharey=True, squeeze=False, layout="constrained"
    )
    parts = []
    for ax, (order, depths) in zip(axes[0], gradients.items(), strict=True):
        for number, (depth, values) in enumerate(depths.items()):
            values = values.detach().cpu()
            place = torch.linspace(0, 1, depth)
            mean = values.log().mean(dim=0).exp()
            low, high = values.min(dim=0).values, values.max(dim=0).values
            colour = SERIES[number % 5]
            ax.fill_between(place.numpy(), low.numpy(), high.numpy(), color=colour, alpha=0.2, linewidth=0)
            ax.plot(
                place.numpy(),
                mean.numpy(),
                color=colour,
                linestyle=_STROKES[number % 5],
                marker=_MARKS[number % 5],
                markersize=5,
                label=f"{depth} blocks",
            )
            parts.append(f"{order}, {depth} blocks: first {mean[0].item():.2f}, last {mean[-1].item():.2f}")
        ax.set_yscale("log")
        ax.set_title(order)
        ax.set_xlabel("place in the stack (0 = first block, 1 = last)")
        ax.grid(alpha=0.3, which="both")
        ax.legend()
    axes[0, 0].set_ylabel("gradient norm of the block's\nparameters (logarithmic)")
    show(figure, "Gradient norm at initialisation. " + "; ".join(parts) + ".")


def draw_hunts(histories: Mapping[str, Sequence[tuple[int, float, float, float]]]) -> None:
    """Draw the share of right answers of each reader after 2, 3 and 4 steps of a hunt, against training steps.

    Args:
        histories: For each reader, rows `(step, right after 2, after 3, after 4)` from `train_hunter`.
    """
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.0), sharey=True, layout="constrained")
    for column, ax in enumerate(axes, start=1):
        for number, (reader, rows) in enumerate(histories.items()):
            ax.plot(
                [row[0] for row in rows],
                [row[column] for row in rows],
                color=SERIES[number % 5],
                linestyle=_STROKES[number % 5],
                marker=_MARKS[number % 5],
                markersize=9 - 1.5 * (number % 5),
                markerfacecolor="none",
                label=reader,
            )
        ax.axhline(1 / 8, color=GREY, linewidth=1)
        ax.set_ylim(0, 1.05)
        ax.set_title(f"{column + 1} steps: {column} look-up{'s' if column > 1 else ''}")
        ax.set_xlabel("training step (batches of 48 hunts)")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("right on unseen hunts (share of 1)\ngrey line: blind guess, 1/8")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    ends = [f"{name} {rows[-1][1]:.2f}, {rows[-1][2]:.2f}, {rows[-1][3]:.2f}" for name, rows in histories.items()]
    show(figure, "Share of right answers at the last step, for 2, 3 and 4 steps: " + "; ".join(ends) + ".")


def draw_cost(lengths: Sequence[int], parts: Mapping[str, Sequence[int]], crossing: float) -> None:
    """Draw the multiply-adds of the parts of a block against the length of the text.

    Args:
        parts: For each part its multiply-adds, one number for each length.
        crossing: The length at which the part that grows with length squared overtakes the rest.
    """
    figure, ax = plt.subplots(figsize=(8, 4.0), layout="constrained")
    for number, (part, values) in enumerate(parts.items()):
        ax.plot(
            lengths,
            values,
            color=SERIES[number % 5],
            linestyle=_STROKES[number % 5],
            marker=_MARKS[number % 5],
            label=part,
        )
    ax.axvline(crossing, color=GREY, linewidth=1)
    ax.annotate(
        f" {crossing:.0f} tokens",
        (crossing, 0.03),
        xycoords=("data", "axes fraction"),
        va="bottom",
    )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_title("What one block costs")
    ax.set_xlabel("length of the text (tokens, logarithmic)")
    ax.set_ylabel("multiply-adds (logarithmic)")
    ax.grid(alpha=0.3)
    ax.legend()
    ends = [
        f"{part} from {values[0]:.2g} at {lengths[0]} tokens to {values[-1]:.2g} at {lengths[-1]}"
        for part, values in parts.items()
    ]
    show(figure, f"Multiply-adds: {'; '.join(ends)}. The grey line stands at {crossing:.0f} tokens.")
