"""Prequential scores: how good the forecasts were, told by the labels that came later.

Governing rule: a forecast is scored once, as it was issued, when its label
arrives; the sums are all that is kept, and nothing infinite is added to a sum.
"""

# ruff: noqa: SLF001 - of the same class

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers._arrays import unmasked
from abers._backend import core
from abers._saved import count, number, numbers, require, wholes
from abers._tally import BINS
from abers.calibration import _checks
from abers.monitoring.corp import probabilities
from abers.monitoring.reliability import Reliability

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike

    from abers._arrays import Floats

__all__ = ["LARGEST_LOSS", "Bin", "PrequentialScores"]

LARGEST_LOSS = 745.2
"""Above the log loss, in nats, of the smallest probability there is."""
_ROUNDED = 1.0 + 1e-9  # sums of many numbers of at most 1 may be a little more


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

    Attributes
    ----------
    reliability
        `Reliability`: the CORP diagram of the forecasts.

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
        self.reliability: Reliability | None = Reliability()
        self._sums = np.zeros(2 + BINS)  # log losses, squares, and forecasts of each bin
        self._whole = np.zeros(1 + 2 * BINS, np.int64)
        self._forecasts = self._sums[2:]
        self._counts, self._positives = self._whole[1 : 1 + BINS], self._whole[1 + BINS :]

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
        issued = np.ascontiguousarray(unmasked(forecasts), np.float64)
        truth = _floats(labels, len(issued))
        if core.add_scores(issued, truth, self._sums, self._whole) < len(issued):
            probabilities(issued)  # which says what is wrong with them
            _checks.labels(truth, len(issued))
        if self.reliability is not None:
            self.reliability.add(issued, truth)

    def state(self) -> tuple[int, float, float, list[int], list[float], list[int], bytes]:
        """Give what is remembered: what `restore` takes."""
        bins = (self._counts.tolist(), self._forecasts.tolist(), self._positives.tolist())
        log_loss, squares = self._sums[:2].tolist()
        diagram = b"" if self.reliability is None else self.reliability.state()
        return (self.infinite, log_loss, squares, *bins, diagram)

    @classmethod
    def restore(cls, state: Sequence[Any]) -> PrequentialScores:
        """Make the scores that gave this `state`.

        One without the last part is of an abers that kept no diagram; it begins then.

        Raises
        ------
        ValueError
            If none did.
        """
        infinite, log_loss, squares, counts, forecasts, positives, *diagram = state
        scores = cls()
        scores._counts[:] = wholes(counts, "counts of bins", BINS)
        scores._positives[:] = wholes(positives, "labels of bins", BINS)
        scores._forecasts[:] = numbers(forecasts, "forecasts of bins", BINS)
        require((scores._positives <= scores._counts).all(), "labels of bins")
        most = scores._counts * _ROUNDED  # of one that is not there, nothing
        require(((scores._forecasts >= 0.0) & (scores._forecasts <= most)).all(), "forecasts")
        n = scores.count
        scores._whole[0] = count(infinite, "infinite losses", n)
        scores._sums[0] = number(log_loss, "log losses", 0.0, n * LARGEST_LOSS)
        scores._sums[1] = number(squares, "squares", 0.0, n * _ROUNDED)
        for one in diagram:
            scores.reliability = Reliability.restore(one)
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
        whole, parts = cls(), [*many]
        for scores in parts:
            whole._sums += scores._sums
            whole._whole += scores._whole
        kept = [one.reliability for one in parts if one.reliability is not None]
        whole.reliability = Reliability.total(kept) if len(kept) == len(parts) else None
        return whole

    @property
    def infinite(self) -> int:
        """Number of infinite log losses."""
        return int(self._whole[0])

    @property
    def count(self) -> int:
        """Number of forecasts scored."""
        return int(self._counts.sum())

    @property
    def log_loss(self) -> float:
        """Mean of the negative log probability of the label; NaN before the first."""
        return math.inf if self.infinite else self._mean(float(self._sums[0]))

    @property
    def brier(self) -> float:
        """Mean squared distance of forecast and label; NaN before the first."""
        return self._mean(float(self._sums[1]))

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


def _floats(labels: ArrayLike, length: int) -> Floats:
    if type(labels) is np.ndarray and labels.dtype == np.float64 and labels.shape == (length,):
        return np.ascontiguousarray(labels)
    return _checks.labels(labels, length).astype(np.float64)
