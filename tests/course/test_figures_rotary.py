"""The figures of lesson 05 draw the numbers they are given, and say in words what they show."""

import math
from collections.abc import Iterator

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from course.figures import rotary

matplotlib.use("Agg")

Shown = list[tuple[Figure, str]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    """What a drawing function hands to `show`."""
    record: Shown = []
    monkeypatch.setattr(rotary, "show", lambda figure, description: record.append((figure, description)))
    yield record
    for figure, _ in record:
        figure.canvas.draw()  # a figure that cannot be rendered fails here
        figure_text = " ".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))
        assert max(map(ord, figure_text)) < 0x2E80  # no glyph that needs a CJK font
        plt.close(figure)


def only(shown: Shown) -> tuple[Figure, str]:
    assert len(shown) == 1
    return shown[0]


def by_label(axes: Axes) -> dict[str, Line2D]:
    return {str(line.get_label()): line for line in axes.get_lines()}


def heights(line: Line2D | None) -> np.ndarray:
    """The vertical coordinates of a line."""
    assert line is not None
    return np.asarray(line.get_ydata(), dtype=float)


def labels_of(axes: Axes) -> tuple[str, str, str]:
    return axes.get_title(), axes.get_xlabel(), axes.get_ylabel()


def test_scores_over_start_are_the_given_scores(shown: Shown) -> None:
    scores = {"added": torch.linspace(-1, 2, 9), "turned": torch.full((9,), 0.25)}
    rotary.draw_scores_over_start(scores, distance=4)
    figure, description = only(shown)
    axes = figure.axes[0]
    lines = by_label(axes)
    for label, values in scores.items():
        np.testing.assert_array_equal(lines[label].get_xdata(), range(9))
        np.testing.assert_allclose(heights(lines[label]), values.numpy())
    assert lines["added"].get_linestyle() != lines["turned"].get_linestyle()
    assert labels_of(axes) == ("The same two words, always 4 places apart", "position of the key (tokens)", "score")
    assert "added: from -1.00 to 2.00" in description
    assert "turned: from 0.25 to 0.25" in description


def test_table_changes_show_the_length_of_each_rows_move(shown: Shown) -> None:
    before = torch.zeros(5, 2)
    after = torch.tensor([[3.0, 4.0], [0.0, -2.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], requires_grad=True)
    rotary.draw_table_changes(before, after)
    figure, description = only(shown)
    np.testing.assert_allclose(heights(figure.axes[0].get_lines()[0]), [5.0, 2.0, 0.0, 0.0, 0.0])
    assert labels_of(figure.axes[0])[1:] == ("row of the table (position)", "length of the change")
    assert "2 rows moved, by 5.00 at most; 3 rows did not move" in description


def test_turned_pairs_are_points_on_circles_of_their_own_length(shown: Shown) -> None:
    before, after = torch.tensor([2.0, 0.0, 0.0, 1.0]), torch.tensor([0.0, 2.0, -1.0, 0.0])
    rotary.draw_turned_pairs(before, after, "A quarter turn")
    figure, description = only(shown)
    assert len(figure.axes) == 2
    for pair, axes in enumerate(figure.axes):
        lines = by_label(axes)
        for name, vector in (("before", before), ("after", after)):
            tip = [lines[name].get_xdata()[1], lines[name].get_ydata()[1]]  # type: ignore[index]
            np.testing.assert_allclose(np.asarray(tip, dtype=float), vector[2 * pair : 2 * pair + 2].numpy())
        assert axes.patches[0].get_radius() == pytest.approx((2.0, 1.0)[pair])  # type: ignore[attr-defined]
        assert labels_of(axes) == (f"pair {pair}", f"column {2 * pair}", f"column {2 * pair + 1}")
    assert description.endswith("Turned by 90, 90 degrees.")


def test_score_maps_say_whether_diagonals_are_constant(shown: Shown) -> None:
    n = 6
    distance = torch.arange(n)[:, None] - torch.arange(n)
    maps = {"even": distance.cos(), "uneven": distance.cos() + torch.arange(n)}
    rotary.draw_score_maps(maps)
    figure, description = only(shown)
    for axes, (name, scores) in zip(figure.axes, maps.items(), strict=False):  # colour bars come after
        np.testing.assert_allclose(np.asarray(axes.images[0].get_array()), scores.numpy())
        assert labels_of(axes) == (name, "key position (tokens)", "query position (tokens)")
    assert "even: constant along each diagonal" in description
    assert "uneven: up to 5.00 apart on one diagonal" in description


def test_pairings_name_the_pair_of_every_column(shown: Shown) -> None:
    rotary.draw_pairings(6)
    figure, description = only(shown)
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == [f"pair {i}" for i in (0, 0, 1, 1, 2, 2, 0, 1, 2, 0, 1, 2)]
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    shades = [box.get_facecolor() for box in boxes]
    assert shades[0] == shades[1] == shades[6] == shades[9]
    assert len(set(shades)) == 3
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["adjacent", "halves"]
    assert "column 3 in pair 1" in description.split(";")[0]
    assert "column 3 in pair 0" in description.split(";")[1]


def test_score_profiles_begin_at_distance_zero(shown: Shown) -> None:
    profiles = {"right": torch.linspace(2, 0, 8), "wrong": torch.linspace(2, -1, 8)}
    rotary.draw_score_profiles(profiles, "Two pairings")
    figure, description = only(shown)
    lines = by_label(figure.axes[0])
    for label, values in profiles.items():
        np.testing.assert_array_equal(lines[label].get_xdata(), range(8))
        np.testing.assert_allclose(heights(lines[label]), values.numpy())
    assert labels_of(figure.axes[0]) == ("Two pairings", "distance between query and key (tokens)", "score")
    assert "wrong: 2.00 at distance 0, -1.00 at last" in description


def test_turn_lengths_count_the_pairs_above_the_trained_length(shown: Shown) -> None:
    turns = {f"base {base}": 2 * math.pi * float(base) ** (torch.arange(5).double() / 5) for base in (100, 10000)}
    rotary.draw_turn_lengths(turns, trained_length=100)
    figure, description = only(shown)
    axes = figure.axes[0]
    lines = by_label(axes)
    for label, values in turns.items():
        np.testing.assert_allclose(heights(lines[label]), values.numpy())
    np.testing.assert_array_equal(heights(lines["100 tokens"]), [100, 100])
    assert axes.get_yscale() == "log"
    assert labels_of(axes)[1:] == ("pair i", "one full turn (tokens)")
    assert "base 100: 1 of 5 pairs above the line; base 10000: 3 of 5 pairs above the line" in description


def test_longer_texts_show_mean_and_spread_over_seeds(shown: Shown) -> None:
    results = {"a": torch.tensor([[0.9, 1.0, 0.8], [0.5, 0.2, 0.2]]), "b": torch.tensor([[0.4, 0.4, 0.4], [0.1] * 3])}
    rotary.draw_longer_texts([16, 64], results, ("Copying", "right (share)"), guessing=0.125)
    figure, description = only(shown)
    axes = figure.axes[0]
    bars = [container for container in axes.containers if isinstance(container, ErrorbarContainer)]
    for container, values in zip(bars, results.values(), strict=True):
        line, _, (spread,) = container.lines
        np.testing.assert_allclose(heights(line), values.mean(dim=1).numpy(), rtol=1e-6)
        ends = np.array([[float(y) for _, y in segment] for segment in spread.get_segments()])
        np.testing.assert_allclose(
            ends, torch.stack([values.amin(dim=1), values.amax(dim=1)], dim=1).numpy(), rtol=1e-6
        )
    np.testing.assert_array_equal(heights(by_label(axes)["guessing"]), [0.125, 0.125])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["16\n(trained)", "64"]
    assert labels_of(axes) == ("Copying", "length of the text (letters)", "right (share)")
    assert "a: 0.90 at 16, 0.30 at 64; b: 0.40 at 16, 0.10 at 64; guessing: 0.12" in description


def test_every_figure_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")
    rotary.draw_pairings(4)
    rotary.draw_score_maps({"one": torch.eye(3)})
    assert plt.get_fignums() == []
