"""Prequential scores: how good forecasts were, by the labels that came later.

A forecast is scored once, as it was issued, when its label comes. Only sums are kept, and nothing
infinite is added to a sum.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from abers import validation
from abers.arrays import unmasked
from abers.backends import core
from abers.monitoring.corp import Reliability, probabilities
from abers.monitoring.forecast_groups import BINS
from abers.monitoring.measures import Measure, Number, means
from abers.serialization import CopiedWhole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import ArrayLike

    from abers._core import BinaryScores
    from abers.arrays import Floats, Integers

__all__ = [
    "BRIER",
    "ECE",
    "LARGEST_LOSS",
    "LOG_LOSS",
    "Bin",
    "PrequentialScores",
    "ViewScores",
    "label_doubts",
    "score_doubts",
]

LARGEST_LOSS = 745.2
"""Above the log loss, in nats, of the smallest probability there is."""
LOG_LOSS = Measure(
    "log_loss", "log loss", "nats", "Mean negative log probability of the label.", gauge=""
)
BRIER = Measure(
    "brier",
    "Brier score",
    "squared error",
    "Mean squared distance of forecast and label.",
    gauge="",
)
ECE = Measure(
    "ece",
    "ECE, 10 bins",
    "difference of probabilities",
    "Expected calibration error over ten bins.",
    chart="",  # over a tenth of a stream it is mostly chance
    gauge="",
)


class Bin(NamedTuple):
    """Forecasts in one of ten equal bins, and their labels.

    Attributes
    ----------
    forecast
        Their mean; NaN in an empty bin.
    share
        Share of label 1; NaN in an empty bin.
    labels
        Number of labels.
    """

    forecast: float
    share: float
    labels: int


class ViewScores(CopiedWhole, ABC):
    """Scores of the forecasts of one view, from sums that can be added up."""

    @property
    @abstractmethod
    def sums(self) -> Floats:
        """Log losses, squares, and those of the subclass; they are changed in place."""

    @property
    @abstractmethod
    def tallies(self) -> Integers:
        """Infinite losses, and those of the subclass; they are changed in place."""

    @property
    @abstractmethod
    def reliability(self) -> Reliability:
        """Reliability diagram of the forecasts."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of forecasts scored."""

    @property
    def infinite(self) -> int:
        """Number of infinite log losses."""
        return int(self.tallies[0])

    @property
    def log_loss(self) -> float:
        """Mean of the negative log probability of the label; NaN before the first."""
        return math.inf if self.infinite else self._mean(float(self.sums[0]))

    @property
    def brier(self) -> float:
        """Mean squared distance of forecast and label; NaN before the first."""
        return self._mean(float(self.sums[1]))

    @abstractmethod
    def update_many(self, forecasts: Any, labels: Any) -> None:  # noqa: ANN401 - of the task
        """Score labelled forecasts, in their order."""

    @abstractmethod
    def totals(self) -> tuple[Any, ...]:
        """Return the state without the reliability diagram."""

    def state(self) -> tuple[Any, ...]:
        """Return the state: what `restore` takes."""
        return (*self.totals(), self.reliability.state())

    @classmethod
    @abstractmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the scores with this state; a ValueError if it cannot be one.

        Without its last part the reliability diagram is empty.
        """

    @classmethod
    def total(cls, many: Iterable[Self]) -> Self:
        """Add up scores of different forecasts."""
        whole = cls()
        for scores in many:
            whole.sums[:] += scores.sums
            whole.tallies[:] += scores.tallies
            whole.reliability.include(scores.reliability)
        return whole

    def means(self) -> dict[str, float]:
        """Return all means by name, and the number of infinite losses."""
        return means(self.summary())

    def summary(self, view: str = "") -> list[Number]:
        """Return all means as numbers of a view; see `abers.monitoring.Monitor.summary`."""
        log_loss = Number(LOG_LOSS, self.log_loss, view, self.infinite)
        return [log_loss, Number(BRIER, self.brier, view)]

    def _mean(self, total: float) -> float:
        return total / self.count if self.count else math.nan


class PrequentialScores(ViewScores):
    """Log loss, Brier score and expected calibration error of forecasts of a binary label.

    Attributes
    ----------
    reliability
        `Reliability`: the CORP diagram of the forecasts.

    Notes
    -----
    The log loss is in nats. A forecast of 0 for a label 1, or of 1 for a label 0, has an infinite
    loss: it is counted in `infinite`, and makes `log_loss` infinite.

    The expected calibration error is the mean distance between forecast and label over ten
    bins of equal width, closed on the left (the last on both sides), each weighted by the
    number of its forecasts.

    Examples
    --------
    >>> scores = PrequentialScores()
    >>> scores.update_many([0.9, 0.2, 0.6, 0.3], [1, 0, 0, 0])
    >>> scores.count
    4
    >>> round(scores.log_loss, 4), round(scores.brier, 4), round(scores.ece, 4)
    (0.4004, 0.125, 0.3)
    """

    def __init__(self) -> None:
        self._core = core.BinaryScores()

    @property
    def core(self) -> BinaryScores:
        """The scores in the core."""
        scores: BinaryScores = self._core
        return scores

    @property
    def sums(self) -> Floats:
        """Log losses, squares, and the forecasts of each bin."""
        sums: Floats = self._core.sums
        return sums

    @property
    def tallies(self) -> Integers:
        """Infinite losses, labels of each bin, and labels of each bin that are 1."""
        counts: Integers = self._core.counts
        return counts

    @property
    def reliability(self) -> Reliability:
        """CORP diagram of the forecasts."""
        return Reliability(self._core.tally)

    @property
    def width_sum(self) -> float:
        """Sum of the widths of the intervals of the forecasts."""
        return float(self._core.widths)

    @width_sum.setter
    def width_sum(self, total: float) -> None:
        self._core.widths = total

    @property
    def _forecasts(self) -> Floats:
        return self.sums[2:]

    @property
    def _counts(self) -> Integers:
        return self.tallies[1 : 1 + BINS]

    @property
    def _positives(self) -> Integers:
        return self.tallies[1 + BINS :]

    def update(self, forecast: float, label: int) -> None:
        """Score one labelled forecast; see `update_many`."""
        self.update_many([forecast], [label])

    def update_many(self, forecasts: ArrayLike, labels: ArrayLike) -> None:
        """Score labelled forecasts, in their order.

        Parameters
        ----------
        forecasts
            Array of shape (n,): the probabilities of label 1 that were issued, in [0, 1].
        labels
            Array of shape (n,): 0 or 1 (False or True).

        Raises
        ------
        ScoreError
            If a forecast is not a probability; nothing is counted then.
        LabelError
            If a label is neither 0 nor 1; nothing is counted then.
        """
        issued = np.ascontiguousarray(unmasked(forecasts), np.float64)
        truth = _floats(labels, len(issued))
        if self._core.add(issued, truth) < len(issued):
            probabilities(issued)  # raises the error that names the value
            validation.labels(truth, len(issued))

    def totals(self) -> tuple[int, float, float, list[int], list[float], list[int]]:
        """Return the state without the reliability diagram."""
        log_loss, squares, *forecasts = self.sums.tolist()
        infinite, *counts = self.tallies.tolist()
        return (infinite, log_loss, squares, counts[:BINS], forecasts, counts[BINS:])

    @classmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the scores with this state; see `ViewScores.restore`."""
        scores = cls()
        try:
            scores.core.restore(*state)
        except TypeError:
            msg = "types of scores"
            raise ValueError(msg) from None
        return scores

    @property
    def count(self) -> int:
        """Number of forecasts scored."""
        return sum(self._counts.tolist())

    @property
    def ece(self) -> float:
        """Expected calibration error over ten bins; NaN before the first."""
        return self._mean(float(np.abs(self._forecasts - self._positives).sum()))

    def bins(self) -> list[Bin]:
        """Return the ten bins, in ascending order.

        Examples
        --------
        >>> scores = PrequentialScores()
        >>> scores.update_many([0.75, 0.75, 0.5], [1, 0, 0])
        >>> [one for one in scores.bins() if one.labels]
        [Bin(forecast=0.5, share=0.0, labels=1), Bin(forecast=0.75, share=0.5, labels=2)]
        """
        with np.errstate(invalid="ignore"):  # in an empty bin
            columns = (self._forecasts / self._counts, self._positives / self._counts)
        values = zip(*(one.tolist() for one in (*columns, self._counts)), strict=True)
        return [Bin(*row) for row in values]

    def summary(self, view: str = "") -> list[Number]:
        """Return all means as numbers of a view; see `abers.monitoring.Monitor.summary`."""
        return [*super().summary(view), Number(ECE, self.ece, view)]


def _floats(labels: ArrayLike, length: int) -> Floats:
    if type(labels) is np.ndarray and labels.dtype == np.float64 and labels.shape == (length,):
        return np.ascontiguousarray(labels)
    return validation.labels(labels, length).astype(np.float64)


_LEAST = 20  # labels: with fewer, one class may well be missing
_Z = 5.0  # standard errors of a correlation, which chance does not reach


def label_doubts(scores: PrequentialScores) -> Iterator[str]:
    """Yield a sentence if all labels are the same.

    Examples
    --------
    >>> from abers.monitoring import PrequentialScores
    >>> scores = PrequentialScores()
    >>> scores.update_many([0.25] * 30, [0] * 30)
    >>> [*label_doubts(scores)]
    ['None of the 30 labels is 1: see that the right column is read, and which value means 1.']
    """
    ones = sum(round(one.share * one.labels) for one in scores.bins() if one.labels)
    if scores.count < _LEAST or 0 < ones < scores.count:
        return
    what = "All" if ones else "None of the"
    is_one = "are 1" if ones else "is 1"
    remedy = "see that the right column is read, and which value means 1."
    yield f"{what} {scores.count:,} labels {is_one}: {remedy}"


def score_doubts(scores: PrequentialScores) -> Iterator[str]:
    """Yield a sentence if scores are only 0 and 1, or if they fall where they should rise.

    Examples
    --------
    >>> from abers.monitoring import PrequentialScores
    >>> scores = PrequentialScores()
    >>> scores.update_many([0.25, 0.75] * 50, [1, 0] * 50)
    >>> [*score_doubts(scores)]
    ['Label 1 is rarer where scores are higher. Are these of label 0? Then give 1 - p.']
    """
    if scores.count < _LEAST:
        return
    there = [one for one in scores.bins() if one.labels]
    if all(one.forecast in {0.0, 1.0} for one in there):
        yield "All scores are 0 or 1. Are these decisions? Then give the probabilities instead."
    if _z(np.array(there)) < -_Z:
        yield "Label 1 is rarer where scores are higher. Are these of label 0? Then give 1 - p."


def _z(bins: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """Return the correlation of forecasts and labels, in standard errors; by mean in each bin."""
    forecasts, shares, counts = bins.T
    n = counts.sum()
    mean, share = counts @ forecasts / n, counts @ shares / n
    covariance = counts @ ((forecasts - mean) * (shares - share)) / n
    spread = counts @ (forecasts - mean) ** 2 / n * share * (1.0 - share)
    return float(covariance / math.sqrt(spread / n)) if spread > 0.0 else 0.0
