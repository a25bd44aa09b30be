"""All-time scores of the probabilities of two or several classes, raw and calibrated.

A prediction is scored once, as it was issued, when its label comes. Raw scores are scored only
where they are declared to be probabilities.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from abers.arrays import ONE
from abers.backends import core
from abers.monitoring.base import BAND_LEVEL, Figure, TaskMonitor
from abers.monitoring.corp import Reliability
from abers.monitoring.measures import ClassForecasts, Measure, Number
from abers.monitoring.scores import (
    BRIER,
    ECE,
    LARGEST_LOSS,
    LOG_LOSS,
    PrequentialScores,
    ViewScores,
)
from abers.serialization import count, number, require

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from abers.arrays import Floats, Integers
    from abers.monitoring.base import BandMaker
    from abers.monitoring.measures import ScoredRows

__all__ = [
    "BinaryMonitor",
    "MultiClassMonitor",
    "MultiClassScores",
    "ProbabilityMonitor",
    "reliability_figure",
]

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


_MEAN_WIDTH = Measure(
    "mean_width",
    "mean interval width",
    "difference of probabilities",
    "Mean width of the intervals.",
    "mean width",
    "interval width",
    gauge="",
)
_ROUNDED = 1.0 + 1e-9  # sums of many widths of at most 1 may be a little more


S = TypeVar("S", bound=ViewScores)


class ProbabilityMonitor(TaskMonitor, Generic[S]):
    """Scores of the raw and of the calibrated forecasts, and the width of the intervals."""

    measures: ClassVar[tuple[Measure, ...]] = (*TaskMonitor.measures, _MEAN_WIDTH)
    kind: ClassVar[Any]
    """Scores of one view, such as `PrequentialScores`."""
    title: ClassVar[str]
    """Heading of the reliability diagrams."""
    right: ClassVar[str]
    """What the probabilities in them are of, in words."""

    def __init__(self, *, raw: bool) -> None:
        super().__init__()
        self.raw: S | None = self.kind() if raw else None
        self.calibrated: S = self.kind()
        self.width_sum = 0.0

    @property
    def count(self) -> int:
        """Number of predictions scored."""
        return int(self.calibrated.count)

    @property
    def mean_width(self) -> float:
        """Mean width of the intervals; NaN before the first label."""
        return self.width_sum / self.count if self.count else float("nan")

    @property
    def has_raw_view(self) -> bool:
        """Whether the raw scores have numbers too."""
        return self.raw is not None

    def scores(self) -> dict[str, S]:
        """Return the scores of each view by name."""
        raw = {} if self.raw is None else {"raw": self.raw}
        return raw | {"calibrated": self.calibrated}

    def _add(self, scored: ScoredRows) -> None:
        for view, scores in self.scores().items():
            scores.update_many(*scored.forecasts[view])
        if scored.widths is not None:
            self.width_sum = core.added(self.width_sum, scored.widths)

    def _numbers(self) -> list[Number]:
        numbers = [one for view, part in self.scores().items() for one in part.summary(view)]
        return [*numbers, Number(_MEAN_WIDTH, self.mean_width)]

    def _figures(self, bands: BandMaker) -> list[Figure]:
        """Return the figure of the reliability diagrams."""
        kept = {view: one.reliability for view, one in self.scores().items()}
        return [reliability_figure(kept, bands, self.title, self.right)]

    def totals(self) -> tuple[Any, ...]:
        """Return the state without the reliability diagrams."""
        return (self.width_sum, self.calibrated.totals(), self.raw and self.raw.totals())

    def state(self) -> tuple[Any, ...]:
        """Return the state; see `Monitor.state`."""
        return (self.width_sum, self.calibrated.state(), self.raw and self.raw.state())

    @classmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the monitor with this state; see `Monitor.restore`."""
        width, calibrated, raw = state
        monitor = cls(raw=raw is not None)
        monitor.calibrated = cls.kind.restore(calibrated)
        most = monitor.count * _ROUNDED
        monitor.width_sum = number(width, "widths", -most, most)
        if raw is not None:
            restored = monitor.raw = cls.kind.restore(raw)
            require(restored.count == monitor.count, "counts of views")
        return monitor

    @classmethod
    def _total(cls, many: Sequence[Self]) -> Self:
        whole = cls(raw=False)
        whole.calibrated = cls.kind.total(one.calibrated for one in many)
        raw = [one.raw for one in many if one.raw is not None]
        whole.raw = cls.kind.total(raw) if raw else None
        whole.width_sum = math.fsum(one.width_sum for one in many)
        return whole


class BinaryMonitor(ProbabilityMonitor[PrequentialScores]):
    """Scores of the raw and of the calibrated probabilities, and the width of the intervals.

    Parameters
    ----------
    raw
        Whether raw scores are probabilities.

    Attributes
    ----------
    raw, calibrated
        `PrequentialScores` of each view; `raw` is None where scores are not probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from abers.monitoring import BinaryForecasts, ScoredRows
    >>> labels = np.array([1.0])
    >>> forecasts = {
    ...     "raw": BinaryForecasts(np.array([0.9]), labels),
    ...     "calibrated": BinaryForecasts(np.array([0.75]), labels),
    ... }
    >>> monitor = BinaryMonitor(raw=True)
    >>> monitor.update(ScoredRows(labels, forecasts, widths=np.array([0.5])))
    >>> monitor.mean_width, round(monitor.raw.brier, 4)
    (0.5, 0.01)
    >>> [(one.view, one.name, one.value) for one in monitor.summary() if one.name == "ece"]
    [('raw', 'ece', 0.09999999999999998), ('calibrated', 'ece', 0.25)]
    >>> [one.id for one in monitor.figures()]
    ['reliability']
    """

    @property
    def width_sum(self) -> float:
        """Sum of the widths of the intervals."""
        return self.calibrated.width_sum

    @width_sum.setter
    def width_sum(self, total: float) -> None:
        self.calibrated.width_sum = total

    name = "binary"
    measures = (*ProbabilityMonitor.measures, LOG_LOSS, BRIER, ECE)
    kind = PrequentialScores

    title = "Reliability"
    right = "the label 1"


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
