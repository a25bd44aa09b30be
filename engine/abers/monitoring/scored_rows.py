"""Additive per-row scores of settled predictions.

Every monitor reads them. Their sums over any predictions, of any number of workers and any time,
are all that scores, calibration errors and coverages need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from abers.arrays import Floats, Integers

__all__ = ["BinaryForecasts", "ClassForecasts", "Forecasts", "ScoredRows", "TrackedRows"]


class BinaryForecasts(NamedTuple):
    """Probabilities of label 1, and labels 0 and 1.

    Examples
    --------
    >>> forecasts = BinaryForecasts(np.array([0.75, 0.5]), np.array([1.0, 0.0]))
    >>> forecasts.squares.tolist(), forecasts.losses.round(4).tolist()
    ([0.0625, 0.25], [0.2877, 0.6931])
    """

    probabilities: Floats
    true: Floats

    @property
    def squares(self) -> Floats:
        """Brier scores."""
        squares: Floats = (self.probabilities - self.true) ** 2
        return squares

    @property
    def losses(self) -> Floats:
        """Log losses in nats; infinite where the label had the probability 0."""
        p = self.probabilities
        return _losses(np.where(self.true == 1.0, p, 1.0 - p))

    def take(self, rows: Any) -> BinaryForecasts:  # noqa: ANN401 - a slice, or numbers
        """Return some of the rows."""
        return BinaryForecasts(self.probabilities[rows], self.true[rows])


class ClassForecasts(NamedTuple):
    """Probabilities of several classes, a row each, and numbers of classes.

    Examples
    --------
    >>> table = np.array([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1]])
    >>> forecasts = ClassForecasts(table, np.array([0, 1]))
    >>> forecasts.probabilities.tolist(), forecasts.true.tolist()
    ([0.7, 0.5], [1.0, 0.0])
    >>> forecasts.squares.round(2).tolist()
    [0.14, 0.62]
    """

    table: Floats
    labels: Integers

    @property
    def probabilities(self) -> Floats:
        """Largest probability of each row."""
        largest: Floats = self.table[np.arange(len(self.labels)), self.table.argmax(axis=1)]
        return largest

    @property
    def true(self) -> Floats:
        """Whether the first class with the largest probability is the label, as 0 or 1."""
        true: Floats = (self.table.argmax(axis=1) == self.labels).astype(np.float64)
        return true

    @property
    def squares(self) -> Floats:
        """Brier scores, from 0 to 2."""
        hot = np.eye(self.table.shape[1])[self.labels]
        squares: Floats = ((self.table - hot) ** 2).sum(axis=1)
        return squares

    @property
    def losses(self) -> Floats:
        """Log losses in nats; infinite where the label had the probability 0."""
        return _losses(self.table[np.arange(len(self.labels)), self.labels])

    def take(self, rows: Any) -> ClassForecasts:  # noqa: ANN401 - a slice, or numbers
        """Return some of the rows."""
        return ClassForecasts(self.table[rows], self.labels[rows])


class TrackedRows(NamedTuple):
    """Intervals of `calibrator.coverage`, and whether they covered their labels, a row each.

    Attributes
    ----------
    level
        Share of labels that they are to cover.
    covered
        Whether each covered its label.
    widths
        In the unit of the label; 0 of an empty interval.
    whole, empty
        Whether each has no limit: an infinite end, or both ends of the support; and whether it is
        empty.
    scores
        Interval scores, see `abers.regression.scores.interval_score`; infinite of an empty interval
        and of an infinite one.
    """

    level: float
    covered: NDArray[np.bool_]
    widths: Floats
    whole: NDArray[np.bool_]
    empty: NDArray[np.bool_]
    scores: Floats

    def take(self, rows: Any) -> TrackedRows:  # noqa: ANN401 - a slice, or numbers
        """Return some of the rows."""
        return TrackedRows(self.level, *(column[rows] for column in self[1:]))


Forecasts: TypeAlias = BinaryForecasts | ClassForecasts
"""Probabilities and their labels in one view, a row each."""


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Predictions as they were issued and their labels, a row each.

    Attributes
    ----------
    labels
        As the numbers of the task: 0 and 1, numbers of classes, or the labels themselves.
    forecasts
        By view, "raw" and "calibrated"; empty for a regression.
    widths
        Of Venn-Abers intervals; of several classes that of the label that came.
    scores, quantiles
        Of a regression: the scores, and the predicted quantiles, a column a level.
    covered
        Of a regression: whether the central interval of each level covered the label.
    outside
        Of protected probabilities: whether they lie outside their Venn-Abers intervals; of several
        classes, whether that of any class does.
    tracked
        Of a regression: the intervals of `calibrator.coverage`, if there are any.
    crps, pit
        Of predictive distributions: the CRPS, and the CDF just below the label and at it.

    Examples
    --------
    >>> p, labels = np.array([0.75, 0.5]), np.array([1.0, 0.0])
    >>> scored = ScoredRows(labels, {"calibrated": BinaryForecasts(p, labels)})
    >>> len(scored), scored.take(slice(1)).labels.tolist()
    (2, [1.0])
    """

    labels: Floats
    forecasts: Mapping[str, Forecasts] = field(default_factory=dict)
    widths: Floats | None = None
    outside: NDArray[np.bool_] | None = None
    scores: Floats | None = None
    quantiles: Floats | None = None
    covered: Mapping[float, NDArray[np.bool_]] = field(default_factory=dict)
    crps: Floats | None = None
    pit: tuple[Floats, Floats] | None = None
    tracked: TrackedRows | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.labels)

    def take(self, rows: Any) -> ScoredRows:  # noqa: ANN401 - a slice, or numbers
        """Return some of the rows: a slice, or an array of row numbers."""
        if type(rows) is slice and rows == slice(None):  # a batch of one model
            return self
        return ScoredRows(
            self.labels[rows],
            {view: one.take(rows) for view, one in self.forecasts.items()},
            None if self.widths is None else self.widths[rows],
            None if self.outside is None else self.outside[rows],
            None if self.scores is None else self.scores[rows],
            None if self.quantiles is None else self.quantiles[rows],
            {level: column[rows] for level, column in self.covered.items()},
            None if self.crps is None else self.crps[rows],
            None if self.pit is None else (self.pit[0][rows], self.pit[1][rows]),
            None if self.tracked is None else self.tracked.take(rows),
        )


def _losses(of_label: Floats) -> Floats:
    with np.errstate(divide="ignore"):  # the loss of an impossible label is infinite
        return 0.0 - np.log(of_label)
