"""The figures of lesson 02 draw the numbers they are given, and say in words what they show."""

import math
from collections.abc import Iterator

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from course.figures import sinusoidal

matplotlib.use("Agg")

Shown = list[tuple[Figure, str]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    """What a drawing function hands to `show`."""
    record: Shown = []
    monkeypatch.setattr(sinusoidal, "show", lambda figure, description: record.append((figure, description)))
    yield record
    for figure, _ in record:
        figure.canvas.draw()  # a figure that cannot be rendered fails here
        figure_text = " ".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))
        assert max(map(ord, figure_text)) < 0x2E80  # no glyph that needs a CJK font
        plt.close(figure)


def encode(n_positions: int, d_model: int) -> torch.Tensor:
    angle = torch.outer(
        torch.arange(n_positions).double(), 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model)
    )
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


def points(line: Line2D) -> np.ndarray:
    """The points of a line: (n, 2)."""
    return np.stack([np.asarray(line.get_xdata(), dtype=float), np.asarray(line.get_ydata(), dtype=float)], axis=1)


def only(shown: Shown) -> tuple[Figure, str]:
    assert len(shown) == 1
    return shown[0]


def labels_of(axes: Axes) -> tuple[str, str, str]:
    return axes.get_title(), axes.get_xlabel(), axes.get_ylabel()


def test_clocks_put_each_pair_on_its_own_dial(shown: Shown) -> None:
    rows = encode(3, 8)
    sinusoidal.draw_clocks(rows, ["zero", "one", "two"], "Hands")
    figure, description = only(shown)
    dials = figure.axes
    assert len(dials) == 3 * 4
    for number, axes in enumerate(dials):
        row, pair = divmod(number, 4)
        _, hand, tip = axes.get_lines()  # the mark at 12, the hand, its tip
        x, y = float(rows[row, 2 * pair]), float(rows[row, 2 * pair + 1])
        np.testing.assert_allclose(points(hand), np.array([[0.0, 0.0], [x, y]]))
        np.testing.assert_allclose(points(tip), [[x, y]])
        assert axes.get_aspect() == 1.0
    assert [axes.get_title() for axes in dials[:4]] == ["pair 0", "pair 1", "pair 2", "pair 3"]
    assert [axes.get_ylabel() for axes in dials[::4]] == ["zero", "one", "two"]
    assert figure.get_suptitle() == "Hands"
    assert "sin" in figure.get_supxlabel()
    assert "cos" in figure.get_supylabel()
    assert description.startswith("Hands.")
    assert "zero, one, two" in description


def test_clocks_describe_the_hands_clockwise_from_twelve(shown: Shown) -> None:
    quarter = torch.tensor([[0.0, 1.0, 1.0, 0.0], [0.0, -1.0, -1.0, 0.0]])
    sinusoidal.draw_clocks(quarter, ["a", "b"], "Quarters", ["left", "right"])
    figure, description = only(shown)
    assert description.endswith("0, 90; 180, 270.")
    assert [axes.get_title() for axes in figure.axes[:2]] == ["left", "right"]


def test_heat_map_shows_the_encoding_unchanged(shown: Shown) -> None:
    rows = encode(7, 6)
    sinusoidal.draw_encoding(rows)
    figure, description = only(shown)
    image = figure.axes[0].images[0]
    np.testing.assert_array_equal(image.get_array(), rows.numpy())
    assert image.get_clim() == (-1.0, 1.0)
    assert labels_of(figure.axes[0]) == ("Each row is the encoding of one position", "column", "position (tokens)")
    assert figure.axes[1].get_ylabel() == "value"
    assert "7 positions by 6 columns" in description


def test_heat_map_accepts_half_precision_and_gradients(shown: Shown) -> None:
    rows = encode(5, 4).to(torch.bfloat16).requires_grad_()
    sinusoidal.draw_encoding(rows)
    np.testing.assert_array_equal(only(shown)[0].axes[0].images[0].get_array(), rows.detach().double().numpy())


def test_waves_are_the_chosen_columns(shown: Shown) -> None:
    rows = encode(30, 8)
    sinusoidal.draw_waves(rows, [0, 3, 6])
    figure, description = only(shown)
    lines = figure.axes[0].get_lines()
    assert [line.get_label() for line in lines] == [
        "column 0 (sin, pair 0)",
        "column 3 (cos, pair 1)",
        "column 6 (sin, pair 3)",
    ]
    for line, column in zip(lines, [0, 3, 6], strict=True):
        np.testing.assert_array_equal(line.get_xdata(), range(30))
        np.testing.assert_array_equal(line.get_ydata(), rows[:, column].numpy())
    assert len({line.get_linestyle() for line in lines}) == 3
    assert labels_of(figure.axes[0])[1:] == ("position (tokens)", "value")
    assert "0, 3, 6" in description
    assert "30 positions" in description


def test_wavelengths_stand_between_two_bounds(shown: Shown) -> None:
    lengths = 2 * math.pi * 100.0 ** (torch.arange(5).double() / 5)
    sinusoidal.draw_wavelengths(lengths, base=100.0)
    figure, description = only(shown)
    low, high, dots = figure.axes[0].get_lines()
    assert list(points(low)[:, 1]) == [2 * math.pi] * 2
    assert list(points(high)[:, 1]) == pytest.approx([200 * math.pi] * 2)
    np.testing.assert_array_equal(dots.get_xdata(), range(5))
    np.testing.assert_array_equal(dots.get_ydata(), lengths.numpy())
    assert figure.axes[0].get_yscale() == "log"
    assert labels_of(figure.axes[0])[1:] == ("pair i", "wavelength (tokens)")
    assert {text.get_text() for text in figure.axes[0].texts} == {"2 pi x 100", "2 pi"}
    assert "6.28" in description
    assert f"{float(lengths[-1]):.0f}" in description


def test_shift_shows_the_matrix_and_both_hands(shown: Shown) -> None:
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    matrix = torch.eye(4, dtype=torch.float64)
    matrix[:2, :2] = turn
    before = torch.tensor([0.6, 0.8, 0.0, 1.0], dtype=torch.float64)
    after = matrix @ before
    sinusoidal.draw_shift(matrix, before, after)
    figure, description = only(shown)
    table, *dials = figure.axes
    np.testing.assert_array_equal(table.images[0].get_array(), matrix.numpy())
    written = [text.get_text() for text in table.texts]
    assert written[:8] == ["0", "1.00", "0", "0", "-1.00", "0", "0", "0"]
    assert len(dials) == 2
    for pair, axes in enumerate(dials):
        _, old, new = axes.get_lines()
        assert (old.get_label(), new.get_label()) == ("before", "after")
        np.testing.assert_allclose(points(old)[1], before[2 * pair : 2 * pair + 2].numpy())
        np.testing.assert_allclose(points(new)[1], after[2 * pair : 2 * pair + 2].numpy())
        assert old.get_linestyle() != new.get_linestyle()
    assert "4 by 4" in description


def test_similarity_shows_the_dot_products(shown: Shown) -> None:
    rows = encode(9, 6)
    similarity = rows @ rows.T
    sinusoidal.draw_similarity(similarity)
    figure, description = only(shown)
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), similarity.numpy())
    assert labels_of(figure.axes[0])[1:] == ("position q (tokens)", "position p (tokens)")
    assert figure.axes[1].get_ylabel() == "dot product"
    assert "9 positions" in description


def test_profiles_begin_at_distance_one(shown: Shown) -> None:
    profiles = {"narrow": torch.linspace(1, 0, 11), "wide": torch.linspace(1, 0.5, 11)}
    law = torch.linspace(1, 0.2, 11)
    sinusoidal.draw_profiles(profiles, law)
    figure, description = only(shown)
    axes = figure.axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    for label, values in (*profiles.items(), ("rule of thumb", law)):
        np.testing.assert_array_equal(lines[label].get_xdata(), range(1, 11))
        np.testing.assert_array_equal(lines[label].get_ydata(), values[1:].numpy())
    assert axes.get_xscale() == "log"
    assert labels_of(axes)[1:] == ("distance between two positions (tokens)", "dot product / largest")
    assert "narrow, wide" in description


def test_accuracy_shows_each_encoding_in_each_window(shown: Shown) -> None:
    accuracy = {"pairs": [1.0, 0.5, 0.25], "random": [1.0, 0.1, 0.0]}
    sinusoidal.draw_accuracy([0, 64, 512], accuracy, chance=0.125)
    figure, description = only(shown)
    axes = figure.axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    for label, values in accuracy.items():
        np.testing.assert_array_equal(lines[label].get_ydata(), values)
    assert list(points(lines["guessing"])[:, 1]) == [0.125, 0.125]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0\n(trained)", "64", "512"]
    assert labels_of(axes)[1:] == ("first position of the window (tokens)", "right key found (share)")
    assert "pairs 1.00 at first, 0.25 in the last" in description


def test_show_closes_every_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")
    rows = encode(6, 4)
    sinusoidal.draw_clocks(rows[:2], ["0", "1"], "Hands")
    sinusoidal.draw_encoding(rows)
    sinusoidal.draw_similarity(rows @ rows.T)
    assert plt.get_fignums() == []
