"""A few shapes on a white sheet, as SVG that stands alone: no fonts, styles or scripts from elsewhere."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

# Okabe and Ito (2008), "Color Universal Design", as in the lessons' figures; greys for what is not a series.
BLUE, SKY, ORANGE, GREEN, GREY = "#0072B2", "#56B4E9", "#E69F00", "#009E73", "#595959"
INK, SOFT, RULE, PALE = "#1c2430", "#55606e", "#d8dde4", "#e3e7ec"
FONT = "system-ui, 'Noto Sans', 'PingFang SC', 'Noto Sans CJK SC', 'Microsoft YaHei', sans-serif"
WIDTH = 760
"""Of every sheet, in SVG units; at a page's full width one unit is about one CSS pixel."""


@dataclass(frozen=True)
class Plot:
    """A drawing for an `img` element. `description` is its text alternative."""

    source: str
    width: int
    height: int
    description: str


def text_width(text: str, size: float = 13) -> float:
    """About how wide a text is; Chinese characters are square."""
    return size * sum(1.0 if ord(character) > 0x2E80 else 0.56 for character in text)


def shorten(text: str, width: float, size: float = 13) -> str:
    """The text, cut with an ellipsis where it would be wider."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text + "…"


class Sheet:
    """Collects shapes. Lengths are in SVG units, y grows downwards."""

    def __init__(self, height: float) -> None:
        self._height = round(height)
        self._shapes: list[str] = []

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        *,
        radius: float = 0,
        stroke: str | None = None,
    ) -> None:
        border = f' stroke="{stroke}" stroke-dasharray="3 2"' if stroke else ""
        corner = f' rx="{radius}"' if radius else ""
        self._shapes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"{corner} fill="{fill}"{border}/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str = RULE, width: float = 1) -> None:
        self._shapes.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'
        )

    def circle(self, x: float, y: float, radius: float, fill: str) -> None:
        self._shapes.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}" stroke="#fff" stroke-width="1.5"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        colour: str = INK,
        size: float = 13,
        bold: bool = False,
        upwards: bool = False,
        halo: bool = False,
    ) -> None:
        more = ' font-weight="600"' if bold else ""
        more += f' transform="rotate(-90 {x:.1f} {y:.1f})"' if upwards else ""
        more += ' stroke="#fff" stroke-width="4" stroke-linejoin="round" paint-order="stroke"' if halo else ""
        self._shapes.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}"{more}>'
            f"{escape(text)}</text>"
        )

    def finish(self, description: str) -> Plot:
        """The sheet as a data address, with its description inside it too, so that it keeps it where it is copied."""
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self._height}" width="{WIDTH}" '
            f'height="{self._height}" font-family={quoteattr(FONT)}><title>{escape(description)}</title>'
            f'<rect width="{WIDTH}" height="{self._height}" fill="#fff"/>{"".join(self._shapes)}</svg>'
        )
        data = base64.b64encode(svg.encode("utf-8", "replace")).decode("ascii")
        return Plot(f"data:image/svg+xml;base64,{data}", WIDTH, self._height, description)
