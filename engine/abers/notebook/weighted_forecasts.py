"""Scores and reliability of forecasts that count by their weights.

Weights are multiples of 2**-30, as those of calibrators, so a weight of 2 counts exactly as the
same row twice.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.arrays import ONE
from abers.backends import core
from abers.monitoring.corp import Diagram, drawn_bands
from abers.monitoring.forecast_groups import BINS
from abers.monitoring.reliability import ForecastCells
from abers.monitoring.reliability_figure import reliability_figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers.arrays import Floats, Integers
    from abers.monitoring.base import Figure
    from abers.monitoring.corp import Bands
    from abers.notebook.forecast_rows import ForecastRows

__all__ = ["WeightedForecasts"]

_EDGES = np.arange(1, BINS) / BINS  # bins are closed on the left
_COARSE = 64  # parts of [0, 1] that a band has a point for
_UNIT = 1 << 64  # forecasts are summed in units of 2**-64
_RESAMPLES = 100  # of the labels, for a band


class WeightedForecasts:
    """Forecasts with labels, each with a weight above 0.

    Parameters
    ----------
    rows
        At least one.
    units
        Array of shape (n,): weights, in units of 2**-30.
    """

    def __init__(self, rows: ForecastRows, units: Integers) -> None:
        self._rows, self._units = rows, units
        self._weights = units / ONE

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return math.fsum(self._weights.tolist())

    @property
    def log_loss(self) -> float:
        """Weighted mean of the negative log probability of the label."""
        labels, forecasts = self._rows.labels, self._rows.forecasts
        of_label = np.where(labels > 0.0, forecasts, 1.0 - forecasts)
        if not of_label.all():
            return math.inf
        return self._mean(-np.log(of_label))

    @property
    def brier(self) -> float:
        """Weighted mean of the squared distance of forecast and label."""
        return self._mean((self._rows.labels - self._rows.forecasts) ** 2)

    @property
    def ece(self) -> float:
        """Expected calibration error over ten bins of equal width, by weight."""
        bins = np.searchsorted(_EDGES, self._rows.forecasts, side="right")
        terms = self._weights * (self._rows.forecasts - self._rows.labels)
        gaps = [abs(math.fsum(terms[bins == one].tolist())) for one in range(BINS)]
        return math.fsum(gaps) / self.weight

    def figure(self) -> Figure:
        """Return the figure of the reliability diagram, by weight."""
        views: dict[str, Any] = {"forecasts": self}
        words = ("Reliability", "the label 1")
        return reliability_figure(views, self._bands, *words, weighted=len(self._units))

    def diagram(self) -> Diagram:
        """Return the CORP diagram of the forecasts, in the cells of `Reliability`."""
        return Diagram(*self.cells())

    def cells(self) -> ForecastCells:
        """Return the mean forecast of each cell, and weights in units of 2**-30."""
        cells = np.empty(len(self._units), np.int64)
        core.Tally.cells_of(self._rows.forecasts, cells)
        known, at = np.unique(cells, return_inverse=True)
        counts, positives = np.zeros((2, len(known)), np.int64)
        np.add.at(counts, at, self._units)
        np.add.at(positives, at, np.where(self._rows.labels > 0.0, self._units, 0))
        sums = [0] * len(known)
        rows = (at.tolist(), self._rows.forecasts.tolist(), self._units.tolist())
        for cell, forecast, units in zip(*rows, strict=True):
            sums[cell] += round(forecast * _UNIT) * units
        means = [
            total / (count * _UNIT) for total, count in zip(sums, counts.tolist(), strict=True)
        ]
        return ForecastCells(np.array(means), counts, positives)

    def _bands(self, _view: str, _diagram: Diagram) -> Bands:
        """Return the band: the label of each row is drawn once, with any weight."""
        parts = np.minimum((self._rows.forecasts * _COARSE).astype(np.int64), _COARSE - 1)
        known, at = np.unique(parts, return_inverse=True)
        counts = np.zeros(len(known), np.int64)
        np.add.at(counts, at, self._units)
        forecasts = self._rows.forecasts
        means = np.bincount(at, self._weights * forecasts) / np.bincount(at, self._weights)

        def draws() -> Iterator[Integers]:
            rng = np.random.default_rng(0)
            for _ in range(_RESAMPLES):
                drawn = np.where(rng.random(len(forecasts)) < forecasts, self._units, 0)
                positives = np.zeros(len(known), np.int64)
                np.add.at(positives, at, drawn)
                yield positives

        return drawn_bands(np.clip(means, 0.0, 1.0), counts, draws())

    def _mean(self, terms: Floats) -> float:
        return math.fsum((self._weights * terms).tolist()) / self.weight
