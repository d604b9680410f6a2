"""The figures of lesson 01 draw the numbers they are given, and say in words what they show."""

from collections.abc import Iterator

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from course.figures import order

matplotlib.use("Agg")

Shown = list[tuple[Figure, str]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    """What a drawing function hands to `show`."""
    record: Shown = []
    monkeypatch.setattr(order, "show", lambda figure, description: record.append((figure, description)))
    yield record
    assert len(record) == 1
    for figure, description in record:
        figure.set_layout_engine("constrained")  # as `show` does; a figure that cannot be laid out fails here
        figure.canvas.draw()
        words = " ".join(text.get_text() for text in figure.findobj(Text)) + description
        assert max(map(ord, words)) < 0x2E80  # no glyph that needs a CJK font
        for ax in panels(figure):
            assert ax.get_title()
            assert ax.get_xlabel()
        assert panels(figure)[0].get_ylabel()
        plt.close(figure)


def panels(figure: Figure) -> list[Axes]:
    """The axes of a figure without its colour bars."""
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


def cell_texts(ax: Axes, shape: tuple[int, int]) -> list[list[str]]:
    """What is written into the cells of a table."""
    found = [["" for _ in range(shape[1])] for _ in range(shape[0])]
    for text in ax.texts:
        column, row = text.get_position()
        found[int(row)][int(column)] = text.get_text()
    return found


def tick_labels(ax: Axes) -> tuple[list[str], list[str]]:
    return [t.get_text() for t in ax.get_xticklabels()], [t.get_text() for t in ax.get_yticklabels()]


def test_text_vectors_are_drawn_feature_by_feature(shown: Shown) -> None:
    left, right = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([0.5, -1.25, 2.0])
    order.draw_text_vectors({"blind": (left, left), "reader": (left, right)}, "one two", "two one")
    figure, description = shown[0]
    for ax, (first, second) in zip(panels(figure), ((left, left), (left, right)), strict=True):
        lines = {line.get_label(): line for line in ax.lines}
        np.testing.assert_array_equal(lines["one two"].get_ydata(), first.numpy())
        np.testing.assert_array_equal(lines["two one"].get_ydata(), second.numpy())
        assert lines["one two"].get_marker() != lines["two one"].get_marker()
    assert [ax.get_title() for ax in panels(figure)] == [
        "blind\nlargest difference 0",
        "reader\nlargest difference 0.2",
    ]
    assert "blind: largest difference 0; reader: largest difference 0.2" in description
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one two", "two one"]


def test_weights_are_written_in_their_cells_row_by_query(shown: Shown) -> None:
    weights = torch.tensor([[0.1, 0.9], [0.75, 0.25]])
    order.draw_weights([("first", ["wo", "ni"], weights), ("second", ["ni", "wo"], weights.flip(0, 1))])
    figure, description = shown[0]
    first, second = panels(figure)
    np.testing.assert_array_equal(first.images[0].get_array(), weights.numpy())
    np.testing.assert_array_equal(second.images[0].get_array(), weights.flip(0, 1).numpy())
    assert cell_texts(first, (2, 2)) == [["0.10", "0.90"], ["0.75", "0.25"]]
    assert tick_labels(first) == (["wo", "ni"], ["wo", "ni"])
    assert tick_labels(second) == (["ni", "wo"], ["ni", "wo"])
    assert "query" in first.get_ylabel()
    assert "key" in first.get_xlabel()
    assert "first: wo looks at wo 0.10, ni 0.90; ni looks at wo 0.75, ni 0.25." in description


def test_cell_numbers_stand_out_from_their_cells(shown: Shown) -> None:
    order.draw_weights([("table", ["a", "b"], torch.tensor([[0.0, 1.0], [0.4, 0.6]]))])
    ax = panels(shown[0][0])[0]
    image = ax.images[0]
    for text in ax.texts:
        column, row = text.get_position()
        cell = image.cmap(image.norm(np.asarray(image.get_array())[int(row), int(column)]))
        ink = to_rgba(text.get_color())
        assert abs(np.mean(cell[:3]) - np.mean(ink[:3])) > 0.35


def test_gaps_are_bars_that_end_at_their_value(shown: Shown) -> None:
    gaps = {"blind": 4e-7, "exact": 0.0, "reader": 0.5}
    order.draw_gaps(gaps)
    figure, description = shown[0]
    ax = panels(figure)[0]
    ends = [bar.get_x() + bar.get_width() for bar in ax.patches if isinstance(bar, Rectangle)]
    np.testing.assert_allclose(ends, [4e-7, 1e-8, 0.5])
    assert ax.get_xscale() == "log"
    assert tick_labels(ax)[1] == ["blind", "exact", "reader"]
    assert [text.get_text() for text in ax.texts] == ["4e-07", "0", "0.5"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first layer on top
    assert "blind 4e-07, exact 0, reader 0.5" in description


def test_swap_traces_mark_what_changed_and_outline_what_was_swapped(shown: Shown) -> None:
    trace = torch.tensor([[0.3, 0.2, 1e-7], [0.0, 0.1, 0.4]])
    order.draw_swap_traces({"one": trace, "two": torch.ones(2, 3)})
    figure, description = shown[0]
    one, two = panels(figure)
    np.testing.assert_array_equal(one.images[0].get_array(), [[1, 1, 0], [0, 1, 1]])
    np.testing.assert_array_equal(two.images[0].get_array(), np.ones((2, 3)))
    assert cell_texts(one, (2, 3)) == [["changed", "changed", "same"], ["same", "changed", "changed"]]
    outlines = [patch for patch in one.patches if isinstance(patch, Rectangle)]
    assert [(p.get_x(), p.get_y(), p.get_width(), p.get_height()) for p in outlines] == [
        (-0.5, -0.5, 2, 1),
        (0.5, 0.5, 2, 1),
    ]
    assert tick_labels(one) == (["0", "1", "2"], ["0 and 1", "1 and 2"])
    assert "one: swap 0 and 1 changes outputs 0, 1; swap 1 and 2 changes outputs 1, 2" in description
    assert "two: swap 0 and 1 changes outputs 0, 1, 2" in description


def test_start_share_draws_the_values_and_their_steps(shown: Shown) -> None:
    shares = torch.tensor([1.0, 0.5, 0.25, 0.2])
    order.draw_start_share(shares)
    figure, description = shown[0]
    left, right = panels(figure)
    np.testing.assert_array_equal(left.lines[0].get_xdata(), [0, 1, 2, 3])
    np.testing.assert_array_equal(left.lines[0].get_ydata(), shares.numpy())
    np.testing.assert_array_equal(right.lines[0].get_xdata(), [1, 2, 3])
    np.testing.assert_allclose(np.asarray(right.lines[0].get_ydata(), dtype=float), [0.5, 0.25, 0.05], atol=1e-7)
    assert right.get_yscale() == "log"
    assert "from 1 at position 0 to 0.2 at position 3" in description
    assert "from 0.5 to 0.05" in description


def test_learning_draws_both_questions_and_what_guessing_gets(shown: Shown) -> None:
    histories = {"blind": [(0, 0.5, 0.1), (20, 0.52, 0.12)], "reader": [(0, 0.49, 0.13), (20, 1.0, 0.9)]}
    order.draw_learning(histories)
    figure, description = shown[0]
    for column, (ax, chance) in enumerate(zip(panels(figure), (0.5, 0.125), strict=True), start=1):
        assert set(np.asarray(ax.lines[0].get_ydata(), dtype=float)) == {chance}
        lines = {line.get_label(): line for line in ax.lines}
        for reader, rows in histories.items():
            np.testing.assert_array_equal(lines[reader].get_xdata(), [0, 20])
            np.testing.assert_array_equal(lines[reader].get_ydata(), [row[column] for row in rows])
        looks = {(lines[r].get_color(), lines[r].get_linestyle(), lines[r].get_marker()) for r in histories}
        assert len({look[0] for look in looks}) == len({look[1] for look in looks}) == 2
        assert f"guessing: {chance}" in [text.get_text() for text in ax.texts]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["blind", "reader"]
    assert "blind 0.52 and 0.12; reader 1.00 and 0.90" in description


def test_drowned_words_draws_the_similarity_and_the_weights(shown: Shown) -> None:
    similarity, weights = torch.tensor([-0.4, 0.5, 0.9]), torch.tensor([[0.75, 0.25], [0.1, 0.9]])
    order.draw_drowned_words(similarity, weights)
    figure, description = shown[0]
    left, right = panels(figure)
    np.testing.assert_array_equal(left.lines[0].get_ydata(), similarity.numpy())
    assert left.get_ylim()[0] < -0.4
    np.testing.assert_array_equal(right.images[0].get_array(), weights.numpy())
    assert right.images[0].get_clim() == (0.0, 1.0)
    assert "from -0.40 at position 0 to 0.9000 at position 2" in description
    assert "queries 0 to 1 look most at positions 0, 1" in description


def test_fraction_steps_draws_one_line_a_length(shown: Shown) -> None:
    positions = {4: torch.linspace(0, 1, 4), 7: torch.linspace(0, 1, 7)}
    order.draw_fraction_steps(positions)
    figure, description = shown[0]
    ax = panels(figure)[0]
    lines = {line.get_label(): line for line in ax.lines}
    for length, values in positions.items():
        np.testing.assert_array_equal(lines[f"{length} words"].get_ydata(), values.numpy())
    assert "1.00 in a text of 4 words, 0.50 in a text of 7 words" in description


def test_results_that_still_carry_gradients_can_be_drawn(shown: Shown) -> None:
    order.draw_start_share(torch.tensor([1.0, 0.5, 0.25], requires_grad=True))
