"""Figures of the evidence pages, as SVG files that bring their own paper.

As in docs/images: no script, and light or dark as the reader has it. Values beyond
the axes are left out, never moved.
"""

from __future__ import annotations

from html import escape
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Axis", "draw"]

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _RIGHT, _TOP = 640, 400, 64, 48, 150, 40
_COLOURS = "#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#a6761d"
_STYLE = """<style>
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#1f2933}
.paper{fill:#ffffff}.axis{stroke:#66727f}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#161b22}.axis{stroke:#8b98a7}}
</style>"""


class Axis(NamedTuple):
    """An axis: its words, and its ends."""

    label: str
    low: float
    high: float


class _Frame(NamedTuple):
    x: Axis
    y: Axis

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Place of a point on the paper."""
        right = (x - self.x.low) / (self.x.high - self.x.low)
        up = (y - self.y.low) / (self.y.high - self.y.low)
        return (
            _LEFT + right * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - up * (_HEIGHT - _BOTTOM - _TOP),
        )

    def shows(self, x: float, y: float) -> bool:
        """Return whether a point lies between the axes."""
        return self.x.low <= x <= self.x.high and self.y.low <= y <= self.y.high


def draw(  # noqa: PLR0913 - what a figure consists of
    title: str,
    x: Axis,
    y: Axis,
    curves: Mapping[str, Sequence[tuple[float, float]]],
    *,
    dots: bool = False,
    diagonal: bool = False,
) -> str:
    """Draw curves, or clouds of dots, with their names on the right."""
    frame = _Frame(x, y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        _STYLE,
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="8" class="paper"/>',
        _text((_LEFT, 24), title, "start", 14),
        *_axes(frame),
    ]
    if diagonal:
        first, last = max(x.low, y.low), min(x.high, y.high)
        ends = frame.at(first, first), frame.at(last, last)
        parts.append(_line(*ends, 'class="axis" stroke-dasharray="5 4"'))
    for colour, line, (name, points) in zip(_COLOURS, count(), curves.items(), strict=False):
        shown = [frame.at(*point) for point in points if frame.shows(*point)]
        parts.append(_dots(shown, colour) if dots else _path(shown, colour))
        place = _WIDTH - _RIGHT + 12, _TOP + 14 + 20 * line
        parts.append(f'<circle cx="{place[0]}" cy="{place[1] - 4}" r="4" fill="{colour}"/>')
        parts.append(_text((place[0] + 10, place[1]), name, "start", 12))
    return "\n".join([*parts, "</svg>", ""])


def _axes(frame: _Frame) -> list[str]:
    left, low = frame.at(frame.x.low, frame.y.low)
    right, high = frame.at(frame.x.high, frame.y.high)
    turned = _text((-(low + high) / 2, 16), frame.y.label, "middle", 12)
    parts = [
        _line((left, low), (right, low), 'class="axis"'),
        _line((left, low), (left, high), 'class="axis"'),
        _text(((left + right) / 2, _HEIGHT - 10), frame.x.label, "middle", 12),
        f'<g transform="rotate(-90)">{turned}</g>',
    ]
    for value in np.linspace(frame.x.low, frame.x.high, 6):
        place, _ = frame.at(float(value), frame.y.low)
        parts.append(_text((place, low + 16), f"{value:.3g}", "middle", 11))
    for value in np.linspace(frame.y.low, frame.y.high, 6):
        _, place = frame.at(frame.x.low, float(value))
        parts.append(_text((left - 6, place + 4), f"{value:.3g}", "end", 11))
    return parts


def _line(start: tuple[float, float], end: tuple[float, float], style: str) -> str:
    ends = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f"<line {ends} {style}/>"


def _text(at: tuple[float, float], words: str, anchor: str, size: int) -> str:
    place = f'x="{at[0]:.1f}" y="{at[1]:.1f}" font-size="{size}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(words)}</text>"


def _path(points: Sequence[tuple[float, float]], colour: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'


def _dots(points: Sequence[tuple[float, float]], colour: str) -> str:
    circles = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2"/>' for x, y in points)
    return f'<g fill="{colour}" fill-opacity="0.7">{circles}</g>'
