"""All-time scores of multi-class predictions, raw and calibrated."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abers.backends import core
from abers.monitoring.measures import Measure, Number
from abers.monitoring.probability import ProbabilityMonitor
from abers.monitoring.reliability import Reliability
from abers.monitoring.scored_rows import ClassForecasts
from abers.monitoring.scores import BRIER, LARGEST_LOSS, LOG_LOSS, ViewScores
from abers.serialization import count, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abers.arrays import Floats, Integers

__all__ = ["MultiClassMonitor", "MultiClassScores"]

_ACCURACY = Measure(
    "accuracy",
    "accuracy",
    "share of labels",
    "Share of labels that are the class with the largest probability.",
    gauge="",
)


class MultiClassScores(ViewScores):
    """Log loss, Brier score and accuracy of forecasts of one of several labels.

    Attributes
    ----------
    reliability
        `Reliability` of the class with the largest probability, the first of several (Gupta &
        Ramdas 2022, top-label calibration).

    Notes
    -----
    The log loss is in nats; a forecast of 0 for the label has an infinite loss, which is counted in
    `infinite` and makes `log_loss` infinite. The Brier score is the sum of
    squares over the classes, from 0 to 2. A forecast is right if the label is the first of the
    classes with the largest probability.

    Examples
    --------
    >>> scores = MultiClassScores()
    >>> scores.update_many(np.array([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1]]), np.array([0, 1]))
    >>> round(scores.log_loss, 4), round(scores.brier, 4), scores.accuracy
    (0.6365, 0.38, 0.5)
    """

    def __init__(self) -> None:
        self._sums, self._tallies = np.zeros(2), np.zeros(3, np.int64)
        self._reliability = Reliability()

    @property
    def sums(self) -> Floats:
        """Log losses and squares."""
        return self._sums

    @property
    def tallies(self) -> Integers:
        """Infinite log losses, forecasts, and right forecasts."""
        return self._tallies

    @property
    def reliability(self) -> Reliability:
        """Diagram of the class with the largest probability."""
        return self._reliability

    @property
    def count(self) -> int:
        """Number of forecasts scored."""
        return int(self.tallies[1])

    @property
    def accuracy(self) -> float:
        """Share of the forecasts that were right; NaN before the first."""
        return self._mean(int(self.tallies[2]))

    def update_many(self, forecasts: Floats, labels: Integers) -> None:
        """Score labelled forecasts, in their order.

        Parameters
        ----------
        forecasts
            Array of shape (n, number of classes): probabilities.
        labels
            Array of shape (n,): numbers of the classes.
        """
        issued = ClassForecasts(forecasts, labels)
        of_label = forecasts[np.arange(len(labels)), labels]
        losses = np.array([-math.log(p) for p in of_label[of_label > 0.0].tolist()])
        log_loss, squares = self.sums.tolist()
        self.sums[:] = core.added(log_loss, losses), core.added(squares, issued.squares)
        right = issued.true
        self.tallies[:] += [len(labels) - len(losses), len(labels), int(right.sum())]
        # Probabilities that were written with few digits may sum to a little more than 1.
        self.reliability.add(np.minimum(issued.probabilities, 1.0), right)

    def totals(self) -> tuple[int, int, float, float, int]:
        """Return the state without the reliability diagram."""
        infinite, n, right = self.tallies.tolist()
        log_loss, squares = self.sums.tolist()
        return (n, infinite, log_loss, squares, right)

    @classmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the scores with this state; see `ViewScores.restore`."""
        n, infinite, log_loss, squares, right, *diagram = state
        scores = cls()
        n = count(n, "counts")
        scores.tallies[:] = count(infinite, "infinite losses", n), n, count(right, "counts", n)
        scores.sums[0] = number(log_loss, "log losses", -n, n * LARGEST_LOSS)
        scores.sums[1] = number(squares, "squares", 0.0, 3.0 * n)
        for one in diagram:
            scores.reliability.include(Reliability.restore(one))
        return scores

    @classmethod
    def total(cls, many: Iterable[Self]) -> Self:
        """Add up scores of different forecasts."""
        parts = [*many]
        whole = super().total(parts)
        columns = zip(*(one.sums.tolist() for one in parts), strict=True)
        whole.sums[:] = [math.fsum(column) for column in columns]
        return whole

    def summary(self, view: str = "") -> list[Number]:
        """Return all means as numbers of a view; see `abers.monitoring.Monitor.summary`."""
        return [*super().summary(view), Number(_ACCURACY, self.accuracy, view)]


class MultiClassMonitor(ProbabilityMonitor[MultiClassScores]):
    """Scores of the raw and of the calibrated forecasts, and the width of the intervals.

    Parameters and attributes are as of `BinaryMonitor`, with `MultiClassScores` of each view. The
    width is that of the interval of the label that came.

    Examples
    --------
    >>> from abers.monitoring import ClassForecasts, ScoredRows
    >>> score, p = np.array([[0.9, 0.1]]), np.array([[0.75, 0.25]])
    >>> forecasts = {
    ...     "raw": ClassForecasts(score, np.array([0])),
    ...     "calibrated": ClassForecasts(p, np.array([0])),
    ... }
    >>> monitor = MultiClassMonitor(raw=True)
    >>> monitor.update(ScoredRows(np.array([0.0]), forecasts, widths=np.array([0.5])))
    >>> monitor.mean_width, round(monitor.raw.brier, 4), monitor.calibrated.brier
    (0.5, 0.02, 0.125)
    """

    name = "multiclass"
    measures = (*ProbabilityMonitor.measures, LOG_LOSS, BRIER, _ACCURACY)
    kind = MultiClassScores
    title = "Reliability of the most probable class"
    right = "that class"
