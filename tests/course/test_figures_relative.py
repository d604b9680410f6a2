"""The figures of lesson 06 draw the numbers they are given, and say in words what they show."""

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
from matplotlib.patches import Rectangle

from autograder.reference.relative import alibi_bias, relative_shift, t5_bucket
from course.figures import relative

matplotlib.use("Agg")

Shown = list[tuple[Figure, str]]
WHERE = "key position − query position (tokens)"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    """What a drawing function hands to `show`."""
    record: Shown = []
    monkeypatch.setattr(relative, "show", lambda figure, description: record.append((figure, description)))
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


def points(line: Line2D) -> np.ndarray:
    """The points of a line, (n, 2)."""
    return np.stack([np.asarray(line.get_xdata(), dtype=float), np.asarray(line.get_ydata(), dtype=float)], axis=1)


def test_shares_end_at_the_query_itself(shown: Shown) -> None:
    shares = {"even": torch.full((5,), 0.2), "near": torch.tensor([0.0, 0.1, 0.1, 0.2, 0.6])}
    relative.draw_shares(shares, "Five keys")
    figure, description = only(shown)
    axes = figure.axes[0]
    lines = by_label(axes)
    for label, values in shares.items():
        np.testing.assert_allclose(points(lines[label])[:, 0], [-4, -3, -2, -1, 0])
        np.testing.assert_allclose(points(lines[label])[:, 1], values.numpy())
    assert lines["even"].get_linestyle() != lines["near"].get_linestyle()
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == ("Five keys", WHERE, "share of attention")
    assert "near: 0.600 at distance 0, 0.000 at -4" in description


def test_buckets_have_one_panel_for_each_mode(shown: Shown) -> None:
    distance = torch.arange(-30, 31)
    buckets = {"both": t5_bucket(distance, True, 8, 16), "one": t5_bucket(distance, False, 8, 16)}
    relative.draw_buckets(buckets, distance)
    figure, description = only(shown)
    for axes, (mode, numbers) in zip(figure.axes, buckets.items(), strict=True):
        drawn = points(axes.get_lines()[0])
        np.testing.assert_array_equal(drawn, torch.stack([distance, numbers], dim=1).numpy())
        assert (axes.get_title(), axes.get_xlabel()) == (mode, WHERE)
    assert figure.axes[0].get_ylabel() == "bucket"
    assert "both: 7 buckets in use, numbers 0 to 7; one: 8 buckets in use, numbers 0 to 7" in description


def test_head_slopes_show_the_bias_and_the_factor_on_the_weight(shown: Shown) -> None:
    bias = alibi_bias(4, 1, 9)[:, 0].flip(-1)
    relative.draw_head_slopes(bias)
    figure, description = only(shown)
    left, right = figure.axes
    for head in range(4):
        for axes, wanted in ((left, bias[head]), (right, bias[head].exp())):
            drawn = points(by_label(axes)[f"head {head}"])
            np.testing.assert_allclose(drawn[:, 0], -np.arange(9))
            np.testing.assert_allclose(drawn[:, 1], wanted.numpy(), rtol=1e-6)
    assert (left.get_ylabel(), right.get_ylabel()) == ("bias", "factor")
    assert len({tuple(line.get_color()) for line in left.get_lines()}) == 4
    assert f"head 0: {math.exp(-8 / 4):.2g}" in description


def test_the_shift_writes_distances_and_hides_the_future(shown: Shown) -> None:
    before = torch.arange(4, -1, -1.0).repeat(3, 1)
    relative.draw_relative_shift(before, relative_shift(before))
    figure, description = only(shown)
    left, right = figure.axes
    assert [text.get_text() for text in left.texts] == 3 * ["4", "3", "2", "1", "0"]
    written = {tuple(map(float, text.get_position())): text.get_text() for text in right.texts}
    assert written == {(float(j), float(i)): str(i + 2 - j) for i in range(3) for j in range(i + 3)}
    hatched = [patch for patch in right.patches if isinstance(patch, Rectangle) and patch.get_hatch()]
    assert len(hatched) == 15 - len(written) == 3
    assert (left.get_xlabel(), right.get_xlabel(), right.get_ylabel()) == ("column c", "key position j", "query i")
    assert "[4, 3, 2, 1, 0]" in description
    assert description.endswith("row 0: 2, 1, 0; row 1: 3, 2, 1, 0; row 2: 4, 3, 2, 1, 0.")


def test_the_frame_tells_codes_that_depend_on_words_from_codes_that_do_not(shown: Shown) -> None:
    where = torch.arange(-3, 4)
    same, other = torch.linspace(-1, 1, 7), torch.linspace(2, -1, 7)
    gap = torch.tensor([0.0, 0.5, 1.0, 1.5, math.nan, math.nan, math.nan])
    added = {"number": (same, same), "vector": (same, other), "past only": (gap, 2 * gap), "more": (other, other)}
    relative.draw_frame(added, where)
    figure, description = only(shown)
    for axes, (code, pairs) in zip(figure.axes, added.items(), strict=False):
        lines = by_label(axes)
        for name, values in zip(("words A", "words B"), pairs, strict=True):
            np.testing.assert_allclose(points(lines[name])[:, 0], where.numpy())
            np.testing.assert_allclose(points(lines[name])[:, 1], values.numpy())
        assert axes.get_title() == code
        assert any(patch.get_hatch() for patch in axes.patches) == (code == "past only")
    lowest = [axes.get_xlabel() for axes in figure.axes[:4]]
    assert lowest == ["", WHERE, WHERE, WHERE]  # the panels with nothing below them
    assert "number: one curve for all words; vector: another curve for other words" in description
    assert "past only: another curve for other words" in description


def test_a_full_frame_has_its_legend_beside_the_panels(shown: Shown) -> None:
    values = torch.zeros(3)
    relative.draw_frame(dict.fromkeys("abc", (values, values)), torch.arange(-1, 2))
    figure, _ = only(shown)
    assert len(figure.legends) == 1
    assert all(axes.get_legend() is None for axes in figure.axes)


def test_trained_tables_mark_the_distances_that_training_never_showed(shown: Shown) -> None:
    generator = torch.Generator().manual_seed(3)
    tables = {"a": torch.randn(2, 12, generator=generator, requires_grad=True), "b": torch.zeros(2, 12)}
    with torch.no_grad():
        tables["b"][0, 3] = tables["b"][1, 1] = 1.0
    relative.draw_trained_tables(tables, trained_length=5)
    figure, description = only(shown)
    for axes, values in zip(figure.axes, tables.values(), strict=True):
        for head in range(2):
            drawn = points(by_label(axes)[f"head {head}"])
            np.testing.assert_allclose(drawn[:, 0], -np.arange(12))
            np.testing.assert_allclose(drawn[:, 1], values[head].detach().numpy(), rtol=1e-6)
        (hatch,) = (patch for patch in axes.patches if isinstance(patch, Rectangle))
        assert (hatch.get_x(), hatch.get_x() + hatch.get_width()) == (-11, -4.5)  # distance 4 is trained, 5 is not
    assert figure.axes[0].get_ylabel() == "added to the score"
    assert "b: largest within the trained distances at 3, 1 places back" in description


def test_every_figure_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")
    relative.draw_shares({"one": torch.ones(3) / 3}, "One")
    relative.draw_head_slopes(alibi_bias(2, 1, 4)[:, 0].flip(-1))
    assert plt.get_fignums() == []
