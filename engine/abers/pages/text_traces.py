"""Lines over time, in characters of eight heights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.pages.ink import Piece, pieces, width_of

if TYPE_CHECKING:
    from abers.pages.blocks import Trace, Traces
    from abers.pages.ink import Ink

__all__ = ["trace_lines"]

HEIGHTS = "▁▂▃▄▅▆▇█"
NAMES = 20  # columns that names have at least, so that several figures are alike
LEAST = 10  # columns in which a line over time says something


def trace_lines(traces: Traces, ink: Ink) -> list[str]:
    """Return the lines of traces on one scale; none without the characters or the room."""
    numbers = [y for trace in traces.traces for y in trace.values if y is not None]
    names = [ink.clean(trace.name) for trace in traces.traces]
    column = 2 + max([NAMES, *map(width_of, names)]) + 2
    if not numbers or not ink.unicode or ink.width - column < LEAST:
        return []
    scale = f"from {traces.low} ({HEIGHTS[0]}) to {traces.high} ({HEIGHTS[-1]})"
    lines = ink.hung([], [*pieces(traces.title, "soft"), Piece(f" {scale}", "soft")], column)
    for name, trace in zip(names, traces.traces, strict=True):
        gap = " " * (column - 2 - width_of(name))
        drawn = _drawn(trace, min(numbers), max(numbers), ink.width - column)
        lines.append(ink.painted([Piece("  "), Piece(name, "strong"), Piece(gap), drawn]))
    return lines


def _drawn(trace: Trace, low: float, high: float, room: int) -> Piece:
    """Return a trace as one piece; if it is longer than its room, neighbours become their mean."""
    size = -(-len(trace.values) // room)
    parts = [trace.values[start : start + size] for start in range(0, len(trace.values), size)]
    return Piece("".join(_height(part, low, high) for part in parts), trace.tone or "")


def _height(values: tuple[float | None, ...], low: float, high: float) -> str:
    known = [y for y in values if y is not None]
    if not known:
        return " "
    share = (sum(known) / len(known) - low) / (high - low) if high > low else 0.5
    return HEIGHTS[round(share * (len(HEIGHTS) - 1))]
