"""Drawing of any kind of figure as SVG.

The colours are variables of the page, so that a figure follows its light and its dark set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers.pages.figures.gap_bar import gap_bar
from abers.pages.figures.intervals import intervals
from abers.pages.figures.over_time import over_time
from abers.pages.figures.reliability import reliability
from abers.pages.figures.shares import shares
from abers.pages.figures.spark import spark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from abers.pages.figures.canvas import Canvas

__all__ = ["draw"]

_KINDS: dict[str, tuple[Callable[[Any, float], Canvas], float]] = {
    "over_time": (over_time, 520),
    "reliability": (reliability, 520),
    "gap": (gap_bar, 230),
    "spark": (spark, 300),
    "intervals": (intervals, 520),
    "shares": (shares, 520),
}


def draw(kind: str, data: Mapping[str, Any], *, label: str, width: float | None = None) -> str:
    """Draw a figure as one element of HTML.

    Parameters
    ----------
    kind
        ``"over_time"``, ``"reliability"``, ``"gap"``, ``"spark"``, ``"intervals"`` or ``"shares"``.
    data
        The dictionary of this kind in `abers.pages.figures.data`.
    label
        What people hear who cannot see the figure.
    width
        Pixels of the place of the figure, where its texts have 12.5 pixels. None is the width on a
        screen: 520, 300 for a line, 230 for a gap. On a telephone charts have 330.

    Returns
    -------
    str
        An ``<svg>`` element. Without points it states how many labels are needed.
    """
    if kind not in _KINDS:
        msg = f"unknown figure {kind!r}; use {', '.join(_KINDS)}"
        raise ValueError(msg)
    drawing, usual = _KINDS[kind]
    return drawing(data, usual if width is None else width).svg(label)
