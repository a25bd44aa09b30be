"""Prequential scores: how good the forecasts were, told by the labels that came later.

Governing rule: a forecast is scored once, as it was issued, when its label
arrives; the sums are all that is kept, and nothing infinite is added to a sum.
"""

# ruff: noqa: SLF001 - of the same class

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.calibration import _checks
from abers.exceptions import ScoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike

__all__ = ["Bin", "PrequentialScores", "added"]

_BINS = 10
# Bins are closed on the left: a forecast on an edge belongs to the bin above it. Compared, not
# computed as int(10 p), which rounds some forecasts just below an edge across it.
_EDGES = np.array([edge / _BINS for edge in range(1, _BINS)])


class Bin(NamedTuple):
    """Forecasts that are nearly the same, and what came.

    Attributes
    ----------
    forecast
        Their mean; NaN if there are none.
    share
        The share of them whose label was 1; NaN likewise.
    labels
        How many labels came.
    """

    forecast: float
    share: float
    labels: int


class PrequentialScores:
    """Log loss, Brier score and expected calibration error of forecasts of a binary label.

    Notes
    -----
    The log loss is in nats. A forecast of 0 for a label 1, or of 1 for a label 0, costs an
    infinite loss: it is counted in `infinite`, and makes `log_loss` infinite.

    The expected calibration error is the mean distance between forecast and label over ten
    bins of equal width, closed on the left (the last on both sides), each weighted by the
    number of its forecasts.

    Examples
    --------
    >>> scores = PrequentialScores()
    >>> for forecast, label in [(0.9, 1), (0.2, 0), (0.6, 0), (0.3, 0)]:
    ...     scores.update(forecast, label)
    >>> scores.count
    4
    >>> round(scores.log_loss, 4), round(scores.brier, 4), round(scores.ece, 4)
    (0.4004, 0.125, 0.3)
    """

    def __init__(self) -> None:
        self.infinite = 0
        self._log_loss = 0.0
        self._squares = 0.0
        self._counts = np.zeros(_BINS, np.int64)
        self._forecasts = np.zeros(_BINS)
        self._positives = np.zeros(_BINS, np.int64)

    def update(self, forecast: float, label: int) -> None:
        """Score one forecast whose label has arrived.

        Parameters
        ----------
        forecast
            The probability of label 1 that was issued, in [0, 1].
        label
            0 or 1 (False or True).

        Raises
        ------
        ScoreError
            If the forecast is no probability; nothing is counted then.
        LabelError
            If the label is neither 0 nor 1; nothing is counted then.
        """
        self.update_many([forecast], [label])

    def update_many(self, forecasts: ArrayLike, labels: ArrayLike) -> None:
        """Score forecasts whose labels have arrived; as `update` for each, in their order.

        Parameters
        ----------
        forecasts, labels
            Arrays of shape (n,), as in `update`.

        Raises
        ------
        ScoreError, LabelError
            If a row cannot be used; nothing is counted then.

        Examples
        --------
        >>> scores = PrequentialScores()
        >>> scores.update_many([0.9, 0.2, 0.6, 0.3], [1, 0, 0, 0])
        >>> round(scores.brier, 4)
        0.125
        """
        issued = np.asarray(forecasts, np.float64)
        bad = np.flatnonzero(~((issued >= 0.0) & (issued <= 1.0)))
        if bad.size:
            forecast = float(issued[bad[0]])
            msg = f"forecast {forecast!r} is no probability; it must lie between 0 and 1"
            raise ScoreError(msg)
        truth = _checks.labels(labels, len(issued))
        of_label = np.where(truth == 1, issued, 1.0 - issued)
        finite = of_label[of_label > 0.0].tolist()
        self.infinite += len(issued) - len(finite)
        self._log_loss = added(self._log_loss, [-math.log(p) for p in finite])
        self._squares = added(self._squares, (truth - issued) ** 2)
        bins = np.searchsorted(_EDGES, issued, side="right")
        np.add.at(self._counts, bins, 1)
        np.add.at(self._forecasts, bins, issued)
        np.add.at(self._positives, bins, truth)

    def state(self) -> tuple[int, float, float, list[int], list[float], list[int]]:
        """Give what is remembered: what `restore` takes."""
        bins = (self._counts.tolist(), self._forecasts.tolist(), self._positives.tolist())
        return (self.infinite, self._log_loss, self._squares, *bins)

    @classmethod
    def restore(cls, state: Sequence[Any]) -> PrequentialScores:
        """Make the scores that gave this `state`."""
        scores = cls()
        scores.infinite, scores._log_loss, scores._squares = state[:3]
        for mine, theirs in zip(
            (scores._counts, scores._forecasts, scores._positives), state[3:], strict=True
        ):
            mine[:] = theirs
        return scores

    @classmethod
    def total(cls, many: Iterable[PrequentialScores]) -> PrequentialScores:
        """Add up scores of different forecasts.

        Parameters
        ----------
        many
            The scores.

        Returns
        -------
        PrequentialScores
            Those of all forecasts together.
        """
        whole = cls()
        for scores in many:
            whole.infinite += scores.infinite
            whole._log_loss += scores._log_loss
            whole._squares += scores._squares
            whole._counts += scores._counts
            whole._forecasts += scores._forecasts
            whole._positives += scores._positives
        return whole

    @property
    def count(self) -> int:
        """Number of forecasts scored."""
        return int(self._counts.sum())

    @property
    def log_loss(self) -> float:
        """Mean of the negative log probability of the label; NaN before the first."""
        return math.inf if self.infinite else self._mean(self._log_loss)

    @property
    def brier(self) -> float:
        """Mean squared distance of forecast and label; NaN before the first."""
        return self._mean(self._squares)

    @property
    def ece(self) -> float:
        """Expected calibration error over ten bins; NaN before the first."""
        return self._mean(float(np.abs(self._forecasts - self._positives).sum()))

    def bins(self) -> list[Bin]:
        """Give what became of the forecasts of each of the ten bins.

        Returns
        -------
        list of Bin
            In ascending order.

        Examples
        --------
        >>> scores = PrequentialScores()
        >>> scores.update_many([0.75, 0.75, 0.5], [1, 0, 0])
        >>> [one for one in scores.bins() if one.labels]
        [Bin(forecast=0.5, share=0.0, labels=1), Bin(forecast=0.75, share=0.5, labels=2)]
        """
        with np.errstate(invalid="ignore"):  # of a bin without a forecast
            columns = (self._forecasts / self._counts, self._positives / self._counts)
        values = zip(*(one.tolist() for one in (*columns, self._counts)), strict=True)
        return [Bin(*row) for row in values]

    def means(self) -> dict[str, float]:
        """Give all of them by name, and how many infinite losses there were."""
        return {
            "log_loss": self.log_loss,
            "log_loss_infinite": self.infinite,
            "brier": self.brier,
            "ece": self.ece,
        }

    def _mean(self, total: float) -> float:
        return total / self.count if self.count else math.nan


def added(total: float, terms: ArrayLike) -> float:
    """Add terms one after the other, so that it does not matter how they were batched."""
    return float(np.cumsum(np.concatenate(([total], terms)))[-1])
