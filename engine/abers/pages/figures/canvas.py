"""A canvas of SVG: elements with coordinates of one decimal, and texts that never overlap."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from abers.pages.html_text import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["LINE", "Anchor", "Box", "Canvas", "escaped", "place", "runs", "shortened", "text_width"]

LINE = 15.0  # pixels from one line of text to the next
_SIZE = 12.5  # of text, in pixels
_NARROW, _WIDE = set(" .,:;'|!ijlI()[]\N{NO-BREAK SPACE}"), set("mwMW@%—\N{MINUS SIGN}")
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]
T = TypeVar("T")


class Box(NamedTuple):
    """A rectangle that a text or a mark takes."""

    left: float
    top: float
    right: float
    bottom: float

    def contains(self, other: Box) -> bool:
        """Return whether another rectangle is inside."""
        across = self.left <= other.left and other.right <= self.right
        return across and self.top <= other.top and other.bottom <= self.bottom

    def meets(self, other: Box) -> bool:
        """Return whether two rectangles overlap."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def place(value: float) -> str:
    """Write a coordinate with one decimal at most."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def escaped(text: str) -> str:
    """Escape a text for XML, which has no place for control characters."""
    return escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def text_width(text: str) -> float:
    """Return the width of a text in pixels, or a little more: fonts of systems differ."""
    return sum(_character_width(one) for one in text) * _SIZE


def shortened(text: str, width: float) -> str:
    """Return a text that is no wider than some pixels, cut if it must be."""
    if text_width(text) <= width:
        return text
    while text and text_width(text) + text_width("…") > width:
        text = text[:-1]
    return f"{text}…"


def _character_width(character: str) -> float:
    if character in _NARROW:
        return 0.4
    if character in _WIDE:
        return 1.0
    return 0.67 if character < "\u0250" else 1.1


class Canvas:
    """A drawing of a fixed size, from which `svg` makes one element.

    Parameters
    ----------
    width, height
        Size in pixels; the element scales with the page.
    """

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []
        self._frame = Box(0, 0, width, height)
        self._taken: list[Box] = []
        self._note = ""

    def svg(self, label: str) -> str:
        """Return the element; `label` describes it to people who cannot see it."""
        described = f"{label}: {self._note}" if self._note else label
        return (
            f'<svg class="chart" viewBox="0 0 {place(self.width)} {place(self.height)}" '
            f'width="100%" role="img" aria-label="{escaped(described)}" '
            f'font-size="{_SIZE}" fill="var(--soft)">{"".join(self._parts)}</svg>'
        )

    def text(
        self, text: str, x: float, y: float, anchor: Anchor = "start", paint: str = ""
    ) -> bool:
        """Write a text with its baseline at y, unless it would overlap another or the edge."""
        width = text_width(text)
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        box = Box(left, y - 11, left + width, y + 3)
        if not self._frame.contains(box) or any(box.meets(one) for one in self._taken):
            return False
        self._taken.append(box)
        ends = "" if anchor == "start" else f' text-anchor="{anchor}"'
        # A span, as a page may have a colour of its own for the texts of drawings.
        inside = f"<tspan {paint}>{escaped(text)}</tspan>" if paint else escaped(text)
        self._add(f'<text x="{place(x)}" y="{place(y)}"{ends}>{inside}</text>')
        return True

    def keep_free(self, box: Box) -> None:
        """Keep texts away from a rectangle."""
        self._taken.append(box)

    def rectangle(self, box: Box, paint: str, title: str = "") -> None:
        """Fill a rectangle."""
        size = f'width="{place(box.right - box.left)}" height="{place(box.bottom - box.top)}"'
        self._titled(f'rect x="{place(box.left)}" y="{place(box.top)}" {size} {paint}', title)

    def line(self, start: Point, end: Point, paint: str) -> None:
        """Draw a straight line."""
        self._add(f'<path d="{_path([start, end])}" {paint}/>')

    def curve(self, points: Iterable[Point | None], paint: str) -> None:
        """Draw a line through points, broken where one is None."""
        path = "".join(_path(one) for one in runs(points))
        if path:
            self._add(f'<path d="{path}" {paint}/>')

    def area(
        self, edges: Iterable[tuple[float, float, float] | None], paint: str, title: str = ""
    ) -> None:
        """Fill what is between two heights along x, with gaps where an item is None."""
        path = "".join(_closed(one) for one in runs(edges))
        if path:
            self._titled(f'path d="{path}" {paint}', title)

    def dot(self, centre: Point, radius: float, paint: str, title: str = "") -> None:
        """Draw a dot, which shows its title under a mouse."""
        x, y = centre
        self._titled(f'circle cx="{place(x)}" cy="{place(y)}" r="{place(radius)}" {paint}', title)

    def shape(self, points: Sequence[Point], paint: str, title: str = "") -> None:
        """Fill a polygon."""
        self._titled(f'path d="{_path(points)}z" {paint}', title)

    def note(self, text: str) -> None:
        """Write one line in the middle instead of a figure, also for people who cannot see it."""
        self._note = text
        self.text(text, self.width / 2, self.height / 2 + 4, "middle")

    def _titled(self, element: str, title: str) -> None:
        inside = (
            f"><title>{escaped(title)}</title></{element.partition(' ')[0]}>" if title else "/>"
        )
        self._add(f"<{element}{inside}")

    def _add(self, element: str) -> None:
        self._parts.append(element)


def runs(items: Iterable[T | None]) -> list[list[T]]:
    """Split items at each None."""
    found: list[list[T]] = [[]]
    for one in items:
        if one is not None:
            found[-1].append(one)
        elif found[-1]:
            found.append([])
    return [one for one in found if one]


def _path(points: Sequence[Point]) -> str:
    """Write a line through points; a lone point becomes a line of no length, which is a dot."""
    pairs = [f"{place(x)} {place(y)}" for x, y in points]
    return f"M{pairs[0]}L{' '.join(pairs[1:] or pairs)}"


def _closed(edges: Sequence[tuple[float, float, float]]) -> str:
    """Write the outline of an area; a lone point becomes a bar."""
    if len(edges) == 1:
        ((x, top, bottom),) = edges
        edges = [(x - 1, top, bottom), (x + 1, top, bottom)]
    upper = [(x, top) for x, top, _ in edges]
    lower = [(x, bottom) for x, _, bottom in reversed(edges)]
    return f"{_path([*upper, *lower])}z"
