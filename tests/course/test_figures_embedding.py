"""The figures of lesson 03 draw the numbers they are given, and say in words what they show."""

from collections.abc import Iterator

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from course.figures import embedding

matplotlib.use("Agg")

Shown = list[tuple[Figure, str]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    """What a drawing function hands to `show`."""
    record: Shown = []
    monkeypatch.setattr(embedding, "show", lambda figure, description: record.append((figure, description)))
    yield record
    for figure, _ in record:
        figure.canvas.draw()  # a figure that cannot be rendered fails here
        figure_text = " ".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))
        assert max(map(ord, figure_text)) < 0x2E80  # no glyph that needs a CJK font
        for axes in figure.axes:
            if not hasattr(axes, "_colorbar"):
                assert axes.get_title()
                assert axes.get_xlabel()
        assert figure.axes[0].get_ylabel()
        plt.close(figure)


def only(shown: Shown) -> tuple[Figure, str]:
    assert len(shown) == 1
    return shown[0]


def curves(figure: Figure) -> dict[str, tuple[list[float], list[float]]]:
    """Label → x and y of every named line of the first axes."""
    return {
        str(line.get_label()): (np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist())
        for line in figure.axes[0].get_lines()
        if not str(line.get_label()).startswith("_")
    }


def legend_texts(figure: Figure) -> list[str]:
    legend = figure.axes[0].get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def test_recovery_draws_one_line_per_search(shown: Shown) -> None:
    embedding.draw_recovery([2, 8, 32], {"word": [0.1, 0.5, 1.0], "place": [0.0, 0.2, 0.25]})
    figure, description = only(shown)
    assert curves(figure) == {"word": ([2, 8, 32], [0.1, 0.5, 1.0]), "place": ([2, 8, 32], [0.0, 0.2, 0.25])}
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["2", "8", "32"]
    assert "word: 0.100 with 2 columns, 1.000 with 32" in description
    assert "place: 0.000 with 2 columns, 0.250 with 32" in description


def test_the_sum_is_drawn_beside_its_parts_on_one_scale(shown: Shown) -> None:
    who = torch.tensor([[1.0, -2.0], [0.5, 0.0], [1.0, -2.0]])
    where = torch.tensor([[0.0, 1.0], [0.8, 0.5], [0.9, -0.4]])
    embedding.draw_sum(["wo", "ai", "wo"], who, where)
    figure, description = only(shown)
    images = [axes.get_images()[0] for axes in figure.axes[:3]]
    for image, wanted in zip(images, (who, where, who + where), strict=True):
        np.testing.assert_allclose(np.asarray(image.get_array()), wanted.numpy())
        assert image.get_clim() == pytest.approx((-2.4, 2.4))
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["0: wo", "1: ai", "2: wo"]
    assert "the scaled word: rows 0 and 2 are equal" in description
    assert "the sum: no two rows are equal" in description


def test_the_sum_may_carry_gradients(shown: Shown) -> None:
    embedding.draw_sum(["a"], torch.ones(1, 4, requires_grad=True), torch.zeros(1, 4))
    assert "no two rows are equal" in only(shown)[1]


def test_lengths_of_words_stand_beside_the_length_of_a_position(shown: Shown) -> None:
    embedding.draw_lengths([4, 16], {"short": [1.0, 1.0], "long": [4.0, 16.0]}, [1.414, 2.828])
    figure, description = only(shown)
    assert curves(figure) == {
        "short": ([4, 16], [1.0, 1.0]),
        "long": ([4, 16], [4.0, 16.0]),
        "encoding of a position": ([4, 16], [1.414, 2.828]),
    }
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"
    assert "with 16 columns: encoding 2.83, short 1, long 16" in description


def test_angles_are_drawn_as_densities(shown: Shown) -> None:
    generator = torch.Generator().manual_seed(1)
    cosines = {4: torch.rand(50, 40, generator=generator) * 2 - 1, 64: torch.randn(50, 40, generator=generator) / 8}
    embedding.draw_angles(cosines)
    figure, description = only(shown)
    drawn = curves(figure)
    assert list(drawn) == ["d_model = 4", "d_model = 64"]
    for x, density in drawn.values():
        assert sum(density) * (x[1] - x[0]) == pytest.approx(1.0, abs=1e-4)
    assert max(drawn["d_model = 64"][1]) > 2 * max(drawn["d_model = 4"][1])
    assert f"d_model = 64: {cosines[64].std().item():.3f}" in description


def test_seed_curves_show_mean_worst_and_best(shown: Shown) -> None:
    histories = {"with": [(0, [0.1, 0.2]), (20, [0.5, 0.9])], "without": [(0, [0.1, 0.1]), (20, [0.3, 0.4])]}
    embedding.draw_seed_curves(histories, without_order=0.35, chance=0.125)
    figure, description = only(shown)
    steps, means = curves(figure)["with"]
    assert steps == [0, 20]
    assert means == pytest.approx([0.15, 0.7])
    bands = [part for part in figure.axes[0].collections if isinstance(part, PolyCollection)]
    assert len(bands) == 2
    corners = np.asarray(bands[0].get_paths()[0].vertices, dtype=float)
    assert {(20.0, 0.5), (20.0, 0.9)} <= {(x, round(y, 6)) for x, y in corners.tolist()}
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["best guess without order: 0.350", "blind guess: 0.125"]
    assert legend_texts(figure) == ["with", "without"]
    assert "at step 20" in description
    assert "with 0.70 (0.50 to 0.90)" in description


def test_padding_shows_mean_worst_and_best_per_width(shown: Shown) -> None:
    embedding.draw_padding([12, 24], {"mask": [[0.9, 1.0], [0.9, 1.0]], "none": [[0.8, 1.0], [0.2, 0.6]]})
    figure, description = only(shown)
    _, caps, bars = figure.axes[0].containers[1]  # the line, the caps and the bars of "none"
    assert len(caps) == 2
    ends = [[round(float(y), 6) for _, y in segment] for segment in bars[0].get_segments()]
    assert ends == [[0.8, 1.0], [0.2, 0.6]]
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["12\n(trained)", "24"]
    assert legend_texts(figure) == ["mask", "none"]
    assert "none 0.90 at width 12 and 0.40 at width 24" in description
