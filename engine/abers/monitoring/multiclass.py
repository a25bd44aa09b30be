"""The all-time scores of one multi-class calibrator's predictions, raw beside calibrated.

Governing rule: a prediction is judged once, as it was issued, when its label
comes; raw scores are judged only where they are declared probabilities.
"""

# ruff: noqa: SLF001 - of the same class

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from abers._backend import core
from abers._saved import count, number
from abers.monitoring.reliability import Reliability
from abers.monitoring.scores import LARGEST_LOSS
from abers.monitoring.views import Views

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["MultiClassMonitor", "MultiClassScores"]


class MultiClassScores:
    """Log loss, Brier score and accuracy of forecasts of one of several labels.

    Attributes
    ----------
    count
        Forecasts scored.
    infinite
        Infinite log losses.
    reliability
        `Reliability` of the class with the largest probability, the first of several: how probable
        it was called, against how often it came (Gupta & Ramdas 2022, top-label calibration).

    Notes
    -----
    The log loss is in nats; a forecast of 0 for the label that came costs an infinite loss,
    which is counted in `infinite` and makes `log_loss` infinite. The Brier score is the sum of
    squares over the classes, from 0 to 2. A forecast is right if no class has more probability
    than the label, and of those that have as much the label stands first.

    Examples
    --------
    >>> scores = MultiClassScores()
    >>> scores.update_many(np.array([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1]]), np.array([0, 1]))
    >>> round(scores.log_loss, 4), round(scores.brier, 4), scores.accuracy
    (0.6365, 0.38, 0.5)
    """

    def __init__(self) -> None:
        self.reliability = Reliability()
        self.count = 0
        self.infinite = 0
        self._log_loss = 0.0
        self._squares = 0.0
        self._right = 0

    def update_many(self, forecasts: Floats, labels: NDArray[np.int64]) -> None:
        """Score forecasts whose labels have arrived, in their order.

        Parameters
        ----------
        forecasts
            Array of shape (n, number of classes): probabilities.
        labels
            Array of shape (n,): numbers of the classes.
        """
        of_label = forecasts[np.arange(len(labels)), labels]
        finite = of_label[of_label > 0.0].tolist()
        hot = np.eye(forecasts.shape[1])[labels]
        self.count += len(labels)
        self.infinite += len(labels) - len(finite)
        self._log_loss = core.added(self._log_loss, np.array([-math.log(p) for p in finite]))
        self._squares = core.added(self._squares, ((forecasts - hot) ** 2).sum(axis=1))
        first = forecasts.argmax(axis=1)
        right = (first == labels).astype(np.float64)
        self._right += int(right.sum())
        # Probabilities that were written with few digits may sum to a little more than 1.
        self.reliability.add(np.minimum(forecasts[np.arange(len(labels)), first], 1.0), right)

    def state(self) -> tuple[int, int, float, float, int, bytes]:
        """Give what is remembered: what `restore` takes."""
        return (*self._sums(), self.reliability.state())

    def _sums(self) -> tuple[int, int, float, float, int]:
        return (self.count, self.infinite, self._log_loss, self._squares, self._right)

    @classmethod
    def restore(cls, state: Sequence[Any]) -> MultiClassScores:
        """Make the scores that gave this `state`.

        One without the last part is of an abers that kept no diagram; it begins then.

        Raises
        ------
        ValueError
            If none did.
        """
        n, infinite, log_loss, squares, right, *diagram = state
        scores = cls._of(
            count(n, "counts"),
            count(infinite, "infinite losses", n),
            number(log_loss, "log losses", -n, n * LARGEST_LOSS),
            number(squares, "squares", 0.0, 3.0 * n),
            count(right, "counts", n),
        )
        for one in diagram:
            scores.reliability = Reliability.restore(one)
        return scores

    @classmethod
    def _of(cls, *sums: Any) -> MultiClassScores:  # noqa: ANN401 - counts and sums
        scores = cls()
        scores.count, scores.infinite, scores._log_loss, scores._squares, scores._right = sums
        return scores

    @classmethod
    def total(cls, many: Iterable[MultiClassScores]) -> MultiClassScores:
        """Add up scores of different forecasts."""
        parts = [*many]
        columns = zip(*(one._sums() for one in parts), strict=True)
        whole = cls._of(*(sum(column) for column in columns))
        whole.reliability = Reliability.total(one.reliability for one in parts)
        return whole

    @property
    def log_loss(self) -> float:
        """Mean of the negative log probability of the label; NaN before the first."""
        return math.inf if self.infinite else self._mean(self._log_loss)

    @property
    def brier(self) -> float:
        """Mean squared distance of forecast and label; NaN before the first."""
        return self._mean(self._squares)

    @property
    def accuracy(self) -> float:
        """Share of the forecasts that were right; NaN before the first."""
        return self._mean(self._right)

    def means(self) -> dict[str, float]:
        """Give all of them by name, and how many infinite losses there were."""
        return {
            "log_loss": self.log_loss,
            "log_loss_infinite": self.infinite,
            "brier": self.brier,
            "accuracy": self.accuracy,
        }

    def _mean(self, total: float) -> float:
        return total / self.count if self.count else math.nan


class MultiClassMonitor(Views):
    """Scores of the raw and of the calibrated forecasts, and the width of the intervals.

    Parameters
    ----------
    raw
        Whether raw scores are probabilities.

    Attributes
    ----------
    raw, calibrated
        `MultiClassScores` of the two; `raw` is None where scores are no probabilities.

    Notes
    -----
    The width is that of the interval of the label that came.

    Examples
    --------
    >>> monitor = MultiClassMonitor(raw=True)
    >>> row = [0.9, 0.1, 0.75, 0.25, 0.5, 0.0, 1.0, 0.5]  # score, p, low, high
    >>> monitor.update(np.array([row]), np.array([0.0]))
    >>> monitor.mean_width, round(monitor.raw.brier, 4), monitor.calibrated.brier
    (0.5, 0.02, 0.125)
    """

    kind = MultiClassScores

    def update(self, rows: Floats, labels: Floats) -> None:
        """Judge predictions whose labels have come, in their order.

        Parameters
        ----------
        rows
            Array of shape (n, 4 times the classes): scores, probabilities, lower and upper ends.
        labels
            Array of shape (n,): numbers of the classes.
        """
        truth = labels.astype(np.int64)
        score, p, low, high = np.split(rows, 4, axis=1)
        self._judge(score, p, (high - low)[np.arange(len(truth)), truth], truth)
