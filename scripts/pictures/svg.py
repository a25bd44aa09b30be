"""Paper, ink and axes for the pictures of these pages.

A picture brings its own paper, in a light and a dark colour that follow the
reader's, so that it can be read on any page.
"""  # noqa: INP001 - next to a script

from __future__ import annotations

from fractions import Fraction
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

__all__ = ["P", "Picture", "Plot", "slope"]

IMAGES = Path(__file__).parents[2] / "docs" / "images"

LIGHT = {
    "paper": "#ffffff",
    "band": "#eef2f7",
    "ink": "#1f2933",
    "soft": "#66727f",
    "hull": "#0b5cad",
    "zero": "#b45309",
    "one": "#7c3aed",
}
DARK = {
    "paper": "#161b22",
    "band": "#242d39",
    "ink": "#e6edf3",
    "soft": "#8b98a7",
    "hull": "#6cb6ff",
    "zero": "#f0a35e",
    "one": "#c4a5ff",
}
DASHES = {"dashed": "5 4", "dotted": "1.5 3.5", "solid": "none"}


class P(NamedTuple):
    """A point: of a diagram, or of the paper."""

    x: float
    y: float


def rules(colours: dict[str, str]) -> str:
    """Style rules for filling and stroking with each colour."""
    return "".join(f".f-{n}{{fill:{c}}}.s-{n}{{stroke:{c}}}" for n, c in colours.items())


STYLE = f"""<style>
text{{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}}
{rules(LIGHT)}
@media (prefers-color-scheme:dark){{{rules(DARK)}}}
</style>"""


def slope(a: P, b: P) -> Fraction:
    """Slope of the line through two points."""
    return Fraction(int(b.y - a.y), int(b.x - a.x))


class Picture:
    """An SVG picture, filled from back to front."""

    def __init__(self, width: int, height: int, title: str) -> None:
        """Begin with the paper."""
        size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{escape(title)}</title>",
            STYLE,
        ]
        self.box(P(0, 0), P(width, height), "paper", radius=8)

    def line(self, points: list[P], colour: str, width: float = 1.5, dash: str = "solid") -> None:
        """Draw a line through points."""
        path = " ".join(f"{p.x:.1f},{p.y:.1f}" for p in points)
        self.parts.append(
            f'<polyline points="{path}" fill="none" class="s-{colour}" stroke-width="{width}" '
            f'stroke-dasharray="{DASHES[dash]}" stroke-linejoin="round" stroke-linecap="round"/>'
        )

    def area(self, points: list[P], colour: str) -> None:
        """Fill what lies between points, so that what is behind shows through."""
        corners = " ".join(f"{p.x:.1f},{p.y:.1f}" for p in points)
        self.parts.append(f'<polygon points="{corners}" class="f-{colour}" fill-opacity="0.2"/>')

    def arrow(self, start: P, end: P, colour: str, width: float = 1.5) -> None:
        """Draw a line with a head at its end."""
        length = ((end.x - start.x) ** 2 + (end.y - start.y) ** 2) ** 0.5
        ux, uy = (end.x - start.x) / length, (end.y - start.y) / length
        back = P(end.x - 7 * ux, end.y - 7 * uy)
        wings = [P(back.x - s * 3.5 * uy, back.y + s * 3.5 * ux) for s in (-1, 1)]
        self.line([start, back], colour, width)
        head = " ".join(f"{p.x:.1f},{p.y:.1f}" for p in (end, *wings))
        self.parts.append(f'<polygon points="{head}" class="f-{colour}"/>')

    def box(self, corner: P, size: P, fill: str, edge: str = "", radius: int = 0) -> None:
        """Draw a rectangle."""
        stroke = f" s-{edge}" if edge else ""
        self.parts.append(
            f'<rect x="{corner.x:.1f}" y="{corner.y:.1f}" width="{size.x:.1f}" '
            f'height="{size.y:.1f}" rx="{radius}" class="f-{fill}{stroke}" stroke-width="1.2"/>'
        )

    def dot(self, at: P, colour: str, radius: float = 4, *, hollow: bool = False) -> None:
        """Mark a point."""
        fill = "paper" if hollow else colour
        self.parts.append(
            f'<circle cx="{at.x:.1f}" cy="{at.y:.1f}" r="{radius}" class="f-{fill} s-{colour}" '
            'stroke-width="1.5"/>'
        )

    def text(  # noqa: PLR0913 - the attributes of a text
        self,
        at: P,
        words: str,
        colour: str = "ink",
        size: float = 13,
        anchor: str = "middle",
        *,
        bold: bool = False,
    ) -> None:
        """Write a line of text."""
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{at.x:.1f}" y="{at.y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'class="f-{colour}"{weight}>{escape(words)}</text>'
        )

    def save(self, name: str) -> None:
        """Write the file."""
        IMAGES.mkdir(exist_ok=True)
        (IMAGES / name).write_text("\n".join([*self.parts, "</svg>", ""]), encoding="utf-8")


class Plot:
    """A diagram on a picture: turns points of the diagram into points of the paper."""

    LINE = 20  # pixels that a line of text takes

    def __init__(self, picture: Picture, origin: P, unit: P, size: P) -> None:
        """Draw the axes; `unit` is the number of pixels of one observation, and of one label."""
        self.picture, self.origin, self.unit, self.size = picture, origin, unit, size
        corner, right, top = self.at(P(0, 0)), self.at(P(size.x, 0)), self.at(P(0, size.y))
        picture.arrow(corner, P(right.x + 22, right.y), "soft", 1)
        picture.arrow(corner, P(top.x, top.y - 18), "soft", 1)
        picture.text(P(top.x + 8, top.y - 10), "labels 1", "soft", 12, "start")
        picture.text(P(right.x + 22, right.y - 8), "observations", "soft", 12, "end")

    def at(self, p: P) -> P:
        """Place of a point on the paper."""
        return P(self.origin.x + p.x * self.unit.x, self.origin.y - p.y * self.unit.y)

    def near(self, p: P, dx: float, dy: float) -> P:
        """Place on the paper at some pixels from a point."""
        at = self.at(p)
        return P(at.x + dx, at.y + dy)

    def line(self, points: list[P], colour: str, width: float = 1.5, dash: str = "solid") -> None:
        """Draw a line through points of the diagram."""
        self.picture.line([self.at(p) for p in points], colour, width, dash)

    def dots(
        self, points: list[P], colour: str, radius: float = 4, *, hollow: bool = False
    ) -> None:
        """Mark points of the diagram."""
        for p in points:
            self.picture.dot(self.at(p), colour, radius, hollow=hollow)

    def band(self, left: float, right: float, colour: str = "band") -> None:
        """Shade the diagram between two places on the axis."""
        start, end = self.at(P(left, self.size.y)), self.at(P(right, 0))
        self.picture.box(start, P(end.x - start.x, end.y - start.y), colour)

    def text(self, p: P, dx: float, dy: float, words: str, colour: str = "ink") -> None:
        """Write next to a point of the diagram; to the left of it for a negative dx."""
        anchor = "middle" if dx == 0 else "start" if dx > 0 else "end"
        self.picture.text(self.near(p, dx, dy), words, colour, 13, anchor)

    def values(self, hull: list[P], colour: str = "hull") -> None:
        """Write the fitted value of each block below its edge."""
        for a, b in pairwise(hull):
            middle = P((a.x + b.x) / 2, (a.y + b.y) / 2)
            height = middle.y * self.unit.y
            down = 18 if height > self.LINE else height + 16  # not across the axis
            self.text(middle, 8, down, str(slope(a, b)), colour)
