"""Figure of the reliability of probabilities, over a histogram of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.arrays import ONE
from abers.monitoring.base import BAND_LEVEL, Figure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers.arrays import Floats, Integers
    from abers.monitoring.base import BandMaker
    from abers.monitoring.reliability import Reliability

__all__ = ["reliability_figure"]

_BINS = 20  # of the histogram
_EDGES = np.arange(1, _BINS) / _BINS
_LEAST = 20  # labels, from which a diagram says anything


def reliability_figure(
    views: Mapping[str, Reliability],
    bands: BandMaker,
    title: str,
    right: str,
    *,
    weighted: int | None = None,
) -> Figure:
    """Return the figure of the reliability diagrams of all views.

    Parameters
    ----------
    views
        Reliability by view; at least one.
    bands
        Makes the band of a view.
    title
        Heading.
    right
        What the probabilities are of, in words.
    weighted
        Number of labels, if counts are weights in units of 2**-30.
    """
    unit = 1 if weighted is None else ONE
    lines: dict[str, Any] = {}
    drawn: dict[str, Any] = {}
    counts: dict[str, list[int] | list[float]] = {}
    rows: list[list[str | float | None]] = []
    for view, reliability in views.items():
        diagram = reliability.diagram()
        columns = (diagram.lower, diagram.upper, diagram.probability, _in(diagram.count, unit))
        ends = np.column_stack((diagram.lower, diagram.upper)).ravel()
        lines[view] = (ends.tolist(), diagram.probability.repeat(2).tolist())
        drawn[view] = tuple(column.tolist() for column in bands(view, diagram))
        counts[view] = _in(_histogram(reliability), unit).tolist()
        rows += [[view, *row] for row in zip(*(one.tolist() for one in columns), strict=True)]
    labels = weighted or int(max(sum(column) for column in counts.values()))
    return Figure(
        "reliability",
        title,
        "corp",
        {"views": lines, "bands": drawn, "counts": counts},
        f"Of the predictions with a probability of 0.8, eight in ten should have {right}: the "
        "dotted line. Where a line is above it, the probabilities are too low; below, too high. "
        f"A calibrated forecast stays in its band in {10 * BAND_LEVEL:.0f} of 10 cases. The steps "
        "below show which share of the predictions had each probability.",
        ["view", "forecast from", "to", "share of label 1", "weight" if weighted else "labels"],
        rows,
        max(_LEAST - labels, 0),
    )


def _histogram(reliability: Reliability) -> Integers:
    """Return the number of forecasts in equal bins, closed on the left, the last on both sides.

    No cell is in two bins.
    """
    forecasts, counts, _ = reliability.cells()
    bins = np.searchsorted(_EDGES, forecasts, side="right")
    return np.bincount(bins, counts, _BINS).astype(np.int64)


def _in(counts: Integers, unit: int) -> Integers | Floats:
    """Return counts in a unit; whole counts stay whole."""
    return counts if unit == 1 else counts / unit
