"""One look for every figure: colours that survive greyscale and colour blindness, and a text description for each."""

import builtins

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

# Okabe and Ito (2008), "Color Universal Design": told apart by all common forms of colour vision, ordered so that
# neighbours also differ in lightness.
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#595959"
SERIES = (BLUE, ORANGE, GREEN, PURPLE, GREY)
# For the series in order, so that colour is not the only difference between them.
MARKERS = ("o", "s", "^", "D", "v")
# Values from -1 to 1 with a meaningful zero; lightness is symmetric, so the sign is also written where it matters.
DIVERGING = "PuOr"
# Values from 0 upwards; lightness rises steadily.
SEQUENTIAL = "cividis"


def show(figure: Figure, description: str) -> None:
    """Display a figure once, with `description` as its text alternative, and free its memory.

    Make the figure with `layout="constrained"`, so that nothing is cut off: set later, it cannot follow a colour bar.
    """
    display = getattr(builtins, "display", None)  # IPython provides it in every notebook
    if display is None:
        plt.show()
    else:
        display(figure, metadata={"image/png": {"alt": description}})
    plt.close(figure)
