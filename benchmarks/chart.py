"""A chart of cost against n, as SVG that stands in the page itself.

No script and no style sheet; text and axes take the colour of the page's text, and
the curves have colours that are distinct on white and on black.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _RIGHT, _TOP = 720, 360, 60, 40, 150, 10
_COLOURS = ("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#a6761d")
_ROLE = 'role="img" aria-label="Microseconds an event against the number of observations"'
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"


def chart(curves: Mapping[str, Mapping[int, float]]) -> str:
    """Draw microseconds an event against n, both logarithmic, as SVG without any script."""
    xs = [math.log10(n) for curve in curves.values() for n in curve]
    ys = [math.log10(cost) for curve in curves.values() for cost in curve.values()]
    x0, x1 = math.floor(min(xs)), math.ceil(max(xs))
    y0, y1 = math.floor(min(ys)), math.ceil(max(ys))

    def x(value: float) -> float:
        return _LEFT + (value - x0) / (x1 - x0) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (value - y0) / (y1 - y0) * (_HEIGHT - _BOTTOM - _TOP)

    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" fill="currentColor" font-size="12" {_ROLE}>']
    for exponent in range(y0, y1 + 1):
        parts.append(_line(x(x0), y(exponent), x(x1), y(exponent)))
        parts.append(_text(_LEFT - 8, y(exponent) + 4, _microseconds(exponent), "end"))
    for exponent in range(x0, x1 + 1):
        parts.append(_line(x(exponent), y(y0), x(exponent), y(y1)))
        parts.append(
            _text(x(exponent), _HEIGHT - _BOTTOM + 18, f"n = 10{_SUPERSCRIPTS[exponent]}", "middle")
        )
    lowest = math.inf
    colours = dict(zip(curves, _COLOURS, strict=False))
    for name, curve in sorted(curves.items(), key=lambda item: list(item[1].values())[-1]):
        points = [(x(math.log10(n)), y(math.log10(cost))) for n, cost in curve.items()]
        parts.append(_curve(points, colours[name]))
        lowest = min(points[-1][1], lowest - 16)  # names do not overlap
        parts.append(_text(points[-1][0] + 8, lowest + 4, name, "start", colours[name]))
    return "<div>\n" + "\n".join([*parts, "</svg>"]) + "\n</div>\n\n"


def _microseconds(exponent: int) -> str:
    thousands, rest = divmod(exponent, 3)
    return f"{10**rest} {('ns', 'µs', 'ms', 's', 'ks')[thousands + 1]}"


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="currentColor" stroke-opacity="0.2"/>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = "currentColor") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'


def _curve(points: Sequence[tuple[float, float]], colour: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}'
