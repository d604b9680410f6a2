"""The figures of lesson 04 draw the numbers they are given, and say in words what they show."""

from collections.abc import Iterator

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text
from torch import nn

from course.figures import block

matplotlib.use("Agg")

Shown = list[tuple[Figure, str]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    """What a drawing function hands to `show`."""
    record: Shown = []
    monkeypatch.setattr(block, "show", lambda figure, description: record.append((figure, description)))
    yield record
    assert len(record) == 1
    for figure, description in record:
        figure.canvas.draw()
        words = " ".join(text.get_text() for text in figure.findobj(Text)) + description
        assert max(map(ord, words)) < 0x2E80  # no glyph that needs a CJK font
        for ax in panels(figure):
            assert ax.get_title()
            assert ax.get_xlabel() or not ax.axison
        assert panels(figure)[0].get_ylabel() or not panels(figure)[0].axison
        plt.close(figure)


def panels(figure: Figure) -> list[Axes]:
    """The axes of a figure without its colour bars."""
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


def y_of(ax: Axes, label: str) -> np.ndarray:
    return np.asarray(next(line for line in ax.lines if line.get_label() == label).get_ydata(), dtype=float)


class Network(nn.Module):
    """A feed-forward network; `calls` says whether it calls its second layer or only uses its weights."""

    def __init__(self, d_model: int, d_ff: int, calls: bool = True) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.expand, self.contract, self.calls = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), calls

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = F.relu(self.expand(x))
        if not self.calls:
            return F.linear(hidden, self.contract.weight, self.contract.bias)
        output: torch.Tensor = self.contract(hidden)
        return output


def test_flattening_draws_one_line_a_stack(shown: Shown) -> None:
    curves = {"bare": [-0.2, 0.9, 1.0], "whole": [-0.02, 0.0, 0.1]}
    block.draw_flattening(curves)
    figure, description = shown[0]
    ax = panels(figure)[0]
    for stack, values in curves.items():
        np.testing.assert_array_equal(y_of(ax, stack), values)
    assert ax.get_ylim()[0] < -0.2
    looks = {(line.get_color(), str(line.get_linestyle()), line.get_marker()) for line in ax.lines}
    assert len(looks) == 2
    assert "bare 1.000 (after two layers 1.000); whole 0.100 (after two layers 0.100)" in description


@pytest.mark.parametrize("calls", [True, False])
def test_kinks_draws_lines_bent_lines_and_the_networks_own_output(shown: Shown, calls: bool) -> None:
    network, x = Network(1, 3, calls), torch.linspace(-2, 2, 17)
    block.draw_kinks(network, x)
    figure, description = shown[0]
    wide, bent, output = panels(figure)
    with torch.no_grad():
        hidden = network.expand(x[:, None])
        for unit in range(3):
            np.testing.assert_allclose(y_of(wide, f"unit {unit}"), hidden[:, unit].numpy(), atol=1e-6)
            np.testing.assert_allclose(y_of(bent, f"unit {unit}"), hidden[:, unit].relu().numpy(), atol=1e-6)
        drawn = np.asarray(output.lines[0].get_ydata(), dtype=float)
        np.testing.assert_allclose(drawn, network(x[:, None])[:, 0].numpy(), atol=1e-6)
    assert "3 straight lines" in description


@pytest.mark.parametrize("calls", [True, False])
def test_one_set_of_weights_draws_three_stages_a_row_for_each_word(shown: Shown, calls: bool) -> None:
    network, x = Network(4, 9, calls), torch.randn(3, 4)
    x[2] = x[0]
    block.draw_one_set_of_weights(network, x, ["wo", "ai", "wo"])
    figure, description = shown[0]
    before, hidden, after = (np.asarray(ax.images[0].get_array()) for ax in panels(figure))
    np.testing.assert_array_equal(before, x.numpy())
    np.testing.assert_allclose(hidden, network.expand(x).relu().detach().numpy(), atol=1e-6)
    np.testing.assert_allclose(after, network(x).detach().numpy(), atol=1e-6)
    assert [text.get_text() for text in panels(figure)[0].get_yticklabels()] == ["0: wo", "1: ai", "2: wo"]
    assert "from 4 to 9 numbers" in description
    assert "row 2 (wo) differs from row 0 by" in description


def test_hooks_are_removed_after_drawing(shown: Shown) -> None:
    network = Network(4, 9)
    block.draw_one_set_of_weights(network, torch.randn(2, 4), ["wo", "ai"])
    assert not network.contract._forward_pre_hooks
    assert "no word repeats" in shown[0][1]


def test_activations_draws_relu_and_both_forms_of_gelu(shown: Shown) -> None:
    block.draw_activations()
    figure, description = shown[0]
    left, right = panels(figure)
    x = np.linspace(-5, 5, 1001)
    np.testing.assert_allclose(y_of(left, "ReLU"), np.maximum(x, 0), atol=1e-9)
    gelu = 0.5 * x * (1 + torch.erf(torch.from_numpy(x) / 2**0.5).numpy())
    np.testing.assert_allclose(y_of(left, "GELU, exact (erf)"), gelu, atol=1e-9)
    gap = np.asarray(right.lines[0].get_ydata(), dtype=float)
    assert np.abs(gap).max() == pytest.approx(4.73, abs=0.01)
    assert "ten-thousandths" in right.get_ylabel()
    assert "at most 4.7e-04, near 2.7" in description
    assert "dips to -0.17 at -0.75" in description


def test_norms_writes_every_number_into_its_cell(shown: Shown) -> None:
    first, second = torch.tensor([[2.0, -4.0], [0.5, 1.0]]), torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    block.draw_norms({"before": first, "after": second}, ["x", "other"])
    figure, description = shown[0]
    for ax, table in zip(panels(figure), (first, second), strict=True):
        np.testing.assert_array_equal(np.asarray(ax.images[0].get_array()), table.numpy())
        low, high = ax.images[0].get_clim()
        assert low == -high  # zero lies in the middle of the colours
        for text in ax.texts:
            column, row = text.get_position()
            assert text.get_text() == f"{table[int(row), int(column)].item():.2f}"
    assert "before: x 2.00, -4.00; other 0.50, 1.00. after: x 1.00, -1.00; other -1.00, 1.00." in description


def test_block_orders_stack_the_steps_of_both_orders_bottom_to_top(shown: Shown) -> None:
    block.draw_block_orders()
    figure, description = shown[0]
    wanted = {
        "Post-norm (2017)": ["attention", "+", "norm", "feed-forward", "+", "norm"],
        "Pre-norm": ["norm", "attention", "+", "norm", "feed-forward", "+"],
    }
    for ax, (title, steps) in zip(panels(figure), wanted.items(), strict=True):
        assert ax.get_title() == title
        names = {text.get_text() for text in ax.texts} & {*steps}
        placed = sorted((text.get_position()[1], text.get_text()) for text in ax.texts if text.get_text() in names)
        assert [name for _, name in placed] == steps
        assert sum(isinstance(patch, FancyBboxPatch) for patch in ax.patches) == 6
        # The residual leaves above a norm in post-norm, and ends at an addition.
        for line in ax.lines:
            levels = np.asarray(line.get_ydata(), dtype=float)
            assert steps[int(levels[-1])] == "+"
            below = int(np.floor(levels[0]))
            assert below < 0 or steps[below] == ("norm" if title.startswith("Post") else "+")
    assert "Pre-norm, bottom to top: norm, attention, add, norm, feed-forward, add" in description


def test_gradients_draws_means_and_ranges_over_seeds(shown: Shown) -> None:
    values = {"post-norm": {2: torch.tensor([[1.0, 4.0], [4.0, 1.0]])}, "pre-norm": {3: torch.full((2, 3), 0.5)}}
    block.draw_gradients(values)
    figure, description = shown[0]
    post, pre = panels(figure)
    np.testing.assert_allclose(y_of(post, "2 blocks"), [2.0, 2.0], rtol=1e-6)
    np.testing.assert_allclose(y_of(pre, "3 blocks"), [0.5, 0.5, 0.5], rtol=1e-6)
    shade = post.collections[0].get_datalim(post.transData)
    assert (shade.y0, shade.y1) == (1.0, 4.0)
    assert post.get_yscale() == "log"
    assert "post-norm, 2 blocks: first 2.00, last 2.00" in description


def test_hunts_draws_a_panel_for_each_question(shown: Shown) -> None:
    histories = {"one": [(0, 0.1, 0.2, 0.3), (20, 0.4, 0.5, 0.6)], "two": [(0, 0.1, 0.1, 0.1), (20, 1.0, 0.9, 0.8)]}
    block.draw_hunts(histories)
    figure, description = shown[0]
    for column, ax in enumerate(panels(figure), start=1):
        for reader, rows in histories.items():
            np.testing.assert_array_equal(y_of(ax, reader), [row[column] for row in rows])
    assert [ax.get_title() for ax in panels(figure)] == [
        "2 steps: 1 look-up",
        "3 steps: 2 look-ups",
        "4 steps: 3 look-ups",
    ]
    assert "one 0.40, 0.50, 0.60; two 1.00, 0.90, 0.80" in description


def test_cost_draws_each_part_and_the_crossing(shown: Shown) -> None:
    block.draw_cost([10, 1000], {"linear": [50, 5000], "square": [1, 10000]}, crossing=500)
    figure, description = shown[0]
    ax = panels(figure)[0]
    np.testing.assert_array_equal(y_of(ax, "linear"), [50, 5000])
    np.testing.assert_array_equal(y_of(ax, "square"), [1, 10000])
    assert {float(x) for x in np.asarray(ax.lines[-1].get_xdata())} == {500.0}
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert "square from 1 at 10 tokens to 1e+04 at 1000" in description
