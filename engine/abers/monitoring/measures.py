"""What monitors read and say: scored rows, mixtures and trackers, and numbers with their words.

Additive per-row scores of settled predictions. Every monitor reads them. Their sums over any
predictions, of any number of workers and any time, are all that scores, calibration errors and
coverages need.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from abers.arrays import Floats, Integers

__all__ = [
    "BinaryForecasts",
    "ClassForecasts",
    "Expert",
    "Forecasts",
    "Measure",
    "Mixture",
    "Number",
    "ScoredRows",
    "TrackedRows",
    "Tracker",
    "class_bets",
    "class_outcomes",
    "means",
]


class Measure(NamedTuple):
    """Definition of a number.

    Attributes
    ----------
    name
        For machines, such as "log_loss".
    label
        Row of a table, such as "log loss". Empty if tables leave it out.
    unit
        For axes and metrics, such as "nats".
    help
        One sentence.
    brief
        Column of a narrow table; None for the label, empty if narrow tables leave it out.
    chart
        Heading of a figure over time; None for the label, empty for no figure.
    gauge
        Prometheus gauge; None for "abers_" and the name, empty if counters have the sums instead.
    finite
        Whether a mean leaves out infinite terms; otherwise one makes it infinite.

    Examples
    --------
    >>> coverage = Measure("coverage", "coverage of the {} % interval", "ratio", "Of {} %.")
    >>> coverage.at("90").name, coverage.at("90").label
    ('coverage_90', 'coverage of the 90 % interval')
    """

    name: str
    label: str
    unit: str
    help: str
    brief: str | None = None
    chart: str | None = None
    gauge: str | None = None
    finite: bool = False

    @property
    def metric(self) -> str:
        """Prometheus gauge; empty if counters have the sums instead."""
        return f"abers_{self.name}" if self.gauge is None else self.gauge

    def at(self, value: str) -> Measure:
        """Return the measure with a value in place of its braces."""
        return self._replace(
            name=f"{self.name}_{value}",
            label=self.label.format(value),
            help=self.help.format(value),
            brief=None if self.brief is None else self.brief.format(value),
            chart=None if self.chart is None else self.chart.format(value),
        )


class Number(NamedTuple):
    """A number with its definition.

    Attributes
    ----------
    measure
        Definition of the number.
    value
        NaN before the first label, if it is a mean.
    view
        "raw" or "calibrated"; empty where the number is not of one view of the forecasts.
    infinite
        Number of infinite terms; None where no term can be infinite.
    labels
        More labels of a metric, such as the name of a test.

    Examples
    --------
    >>> brier = Measure("brier", "Brier score", "squared error", "Mean squared error.")
    >>> one = Number(brier, 0.25, "calibrated")
    >>> one.name, one.label, one.unit, one.value
    ('brier', 'Brier score', 'squared error', 0.25)
    """

    measure: Measure
    value: float
    view: str = ""
    infinite: int | None = None
    labels: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """Name for machines."""
        return self.measure.name

    @property
    def label(self) -> str:
        """Row of a table; empty if tables leave it out."""
        return self.measure.label

    @property
    def unit(self) -> str:
        """Unit for axes and metrics."""
        return self.measure.unit

    @property
    def help(self) -> str:
        """Meaning, in one sentence."""
        return self.measure.help

    @property
    def brief(self) -> str:
        """Column of a narrow table; empty if narrow tables leave it out."""
        return self.measure.label if self.measure.brief is None else self.measure.brief

    @property
    def chart(self) -> str:
        """Heading of a figure over time; empty for no figure."""
        return self.measure.label if self.measure.chart is None else self.measure.chart

    @property
    def metric(self) -> str:
        """Prometheus gauge; empty if counters have the sums instead."""
        return self.measure.metric

    def to_dict(self) -> dict[str, Any]:
        """Return number and definition in JSON's types; a value that is not finite is None.

        Examples
        --------
        >>> Number(Measure("a", "A", "labels", "All."), math.nan).to_dict()["value"] is None
        True
        """
        return {
            "name": self.name,
            "value": self.value if math.isfinite(self.value) else None,
            "unit": self.unit,
            "label": self.label,
            "help": self.help,
            "view": self.view,
            "infinite": self.infinite,
            "labels": dict(self.labels),
        }


def means(numbers: Iterable[Number]) -> dict[str, float]:
    """Return the values of one view by name; after each mean its number of infinite terms, if any.

    Examples
    --------
    >>> loss = Measure("loss", "loss", "nats", "Mean loss.")
    >>> means([Number(loss, 0.5, infinite=2)])
    {'loss': 0.5, 'loss_infinite': 2}
    """
    found: dict[str, float] = {}
    for one in numbers:
        found[one.name] = one.value
        if one.infinite is not None:
            found[f"{one.name}_infinite"] = one.infinite
    return found


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


_LOSSES = 4  # columns of `_losses`


def class_bets(tables: Sequence[Floats], *, each: bool) -> Floats:
    """Return a row for each prediction: of each view the largest probability, and more.

    Parameters
    ----------
    tables
        Probabilities of all classes by view, a row a prediction.
    each
        Whether each class has verdicts, and so its own columns.

    Examples
    --------
    >>> class_bets([np.array([[0.5, 0.25, 0.25]])], each=False).tolist()
    [[0.5, 0.0, 0.0, 0.0, 0.0]]
    """
    known = [np.clip(one, 0.0, 1.0) for one in tables]
    most = np.column_stack([one.max(axis=1) for one in known])
    nothing = np.zeros((len(most), _LOSSES))
    if not each:
        return np.hstack((most, nothing))
    return np.hstack((most, nothing, *known, nothing[:, :1]))


def class_outcomes(found: Sequence[ClassForecasts], *, each: bool) -> Floats:
    """Return a row for each label: of each view whether it is the first choice, and more.

    Examples
    --------
    >>> from abers.monitoring import ClassForecasts
    >>> found = ClassForecasts(np.array([[0.5, 0.25, 0.25]]), np.array([0]))
    >>> class_outcomes([found], each=False).tolist()
    [[1.0, 0.5, 0.5, 1.0, 1.0]]
    """
    true = np.column_stack([one.true for one in found])
    issued = [np.clip(one.table, 0.0, 1.0) for one in found]
    labels = found[0].labels
    losses = _class_losses(issued[0], issued[-1], labels)
    if not each:
        return np.hstack((true, losses))
    return np.hstack((true, losses, *issued, labels[:, np.newaxis].astype(np.float64)))


def _class_losses(raw: Floats, calibrated: Floats, labels: Integers) -> Floats:
    """Return what losses need of each row; see `CalibrationEProcess`."""
    rows = np.arange(len(labels))
    ratios = np.ones_like(calibrated)
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        np.divide(calibrated, raw, out=ratios, where=(raw > 0.0) | (calibrated > 0.0))
    ends = (ratios.min(axis=1), ratios.max(axis=1))
    return np.column_stack((raw[rows, labels], calibrated[rows, labels], *ends))


class Mixture(Protocol):
    """Mixture of methods in lanes, such as `abers.ProtectedVennAbers`.

    The first method is the base: what the loss of the mixture is compared with.
    """

    @property
    def lanes(self) -> int:
        """Largest number of observations that ever awaited their labels together."""
        ...

    @property
    def price(self) -> float:
        """Bound on the total loss in excess of that of the base."""
        ...

    @property
    def experts(self) -> Sequence[str]:
        """Names of the methods, in order."""
        ...

    def expert_table(self) -> Floats:
        """Return mean weight over the lanes and total loss of each expert, a row each.

        A last row has the total loss of the mixture, and a weight of NaN.
        """
        ...


class Expert(NamedTuple):
    """A method of mixtures; the mixture itself, "protected", has the weight None.

    Attributes
    ----------
    weight
        Mean weight over the lanes.
    loss
        Total loss: of probabilities the log loss in nats, of distributions the CRPS in the unit of
        the label.
    """

    weight: float | None
    loss: float


class Tracker(Protocol):
    """Tracker that moves intervals, such as `abers.regression.CoverageTracker`."""

    @property
    def level(self) -> float:
        """Share of labels that intervals are to cover."""
        ...

    @property
    def slack(self) -> float:
        """How far hits or misses may be off before the whole support, or nothing, is served."""
        ...

    @property
    def waited(self) -> int:
        """Largest number of observations that ever awaited their labels together."""
        ...

    @property
    def labels(self) -> int:
        """Number of labels of awaited observations."""
        ...

    @property
    def covered(self) -> int:
        """Number of these labels that their served intervals cover."""
        ...
