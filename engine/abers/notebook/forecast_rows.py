"""Labels and forecasts from arrays of any library, checked and in order, with or without weights.

numpy or Arrow converts lists, and the columns of pandas, polars and other libraries, but imports
none of them. Everything is checked before anything is counted.

Scores and reliability of forecasts that count by their weights. Weights are multiples of 2**-30, as
those of calibrators, so a weight of 2 counts exactly as the same row twice.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from abers import validation
from abers.arrays import ONE
from abers.backends import core
from abers.calibration._classes import Classes
from abers.exceptions import LabelError, ParameterError, ScoreError, TimeError
from abers.monitoring.corp import Diagram, ForecastCells, drawn_bands
from abers.monitoring.forecast_groups import BINS
from abers.monitoring.probability import reliability_figure
from abers.validation import column, labelled_forecasts, same_length

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import ArrayLike, NDArray

    from abers.arrays import Floats, Integers
    from abers.monitoring.base import Figure
    from abers.monitoring.corp import Bands

__all__ = [
    "ForecastRows",
    "Group",
    "WeightedForecasts",
    "class_rows",
    "forecast_rows",
    "grouped",
    "in_order",
    "known_labels",
    "which_known",
]

Group: TypeAlias = "str | tuple[str, str]"
"""Name of a model or of a segment, or both."""

_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
_FARTHEST = 2.0**62  # of a time, which is kept as a 64-bit integer
_TIME_REMEDY = (
    "times are milliseconds since 1970, or other numbers, or datetimes; "
    "convert with numpy.asarray(time, 'datetime64[ms]') or pandas.to_datetime(time)"
)


class ForecastRows(NamedTuple):
    """Forecasts with their labels, in the order of time.

    Attributes
    ----------
    labels, forecasts
        Arrays of shape (n,): 0 or 1, and probabilities of label 1. Of several classes the number of
        each label, and an array of shape (n, classes) of probabilities.
    times
        Array of shape (n,): whole numbers, ascending.
    order
        Array of shape (n,): where each row was before it was sorted.
    """

    labels: Floats
    forecasts: Floats
    times: Integers
    order: Integers

    def take(self, rows: Integers) -> ForecastRows:
        """Return some of the rows."""
        labels, forecasts = self.labels[rows], self.forecasts[rows]
        return ForecastRows(labels, forecasts, self.times[rows], self.order[rows])


def forecast_rows(y: ArrayLike, p: ArrayLike, time: ArrayLike | None, first: int) -> ForecastRows:
    """Check labels, forecasts and times, and sort them by time; equal times keep their order.

    Parameters
    ----------
    y, p, time
        As in `report`.
    first
        Number of the first row: without times the numbers of the rows are the times.

    Raises
    ------
    LabelError, ScoreError, TimeError, ParameterError
        Names the value, its row and the remedy.
    """
    return in_order(*labelled_forecasts(y, p), time, first)


def in_order(labels: Floats, forecasts: Floats, time: ArrayLike | None, first: int) -> ForecastRows:
    """Sort checked labels and forecasts by time; see `forecast_rows`."""
    if time is None:
        numbers = np.arange(len(labels))
        return ForecastRows(labels, forecasts, numbers + first, numbers)
    given = column(time, "time")
    times = _times(given)
    same_length(times, "time", len(labels))
    # Dates as they are: many may be within a millisecond.
    order = np.argsort(given if given.dtype.kind == "M" else times, kind="stable")
    whole = np.floor(times).astype(np.int64)
    return ForecastRows(labels, forecasts, whole, np.arange(len(labels))).take(order)


def known_labels(y: ArrayLike) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return labels, with 0 in place of those that are not known yet, and which ones are known.

    Examples
    --------
    >>> known_labels([1.0, float("nan"), 0.0])
    (array([1., 0., 0.]), array([ True, False,  True]))
    """
    given = column(y, "y")
    known = which_known(given)
    if given.dtype.kind not in "fO":
        return given, known
    return np.where(known, given, given.dtype.type(0) if given.dtype.kind == "f" else 0), known


def which_known(given: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which labels are known: neither None nor NaN, nor what a library has for them."""
    if given.dtype.kind not in "fO":
        return np.ones(len(given), bool)
    return np.fromiter((one is not None and not _is_missing(one) for one in given), bool)


def grouped(
    rows: ForecastRows, model: ArrayLike | None, segment: ArrayLike | None, length: int
) -> dict[Group, ForecastRows]:
    """Return the rows of each model, segment, or model and segment, sorted by name.

    The columns have names for `length` rows, also for those that were left out.

    Raises
    ------
    ParameterError
        If a column has another length than the others, or a name is missing.
    """
    given = {"model": model, "segment": segment}
    columns = [
        _names(column(one, name), name, length) for name, one in given.items() if one is not None
    ]
    if not columns:
        return {}
    members: dict[Any, list[int]] = {}
    keys = columns[0] if len(columns) == 1 else [*zip(*columns, strict=True)]
    for at, row in enumerate(rows.order.tolist()):
        members.setdefault(keys[row], []).append(at)
    return {key: rows.take(np.array(members[key])) for key in sorted(members)}


def _times(given: NDArray[Any]) -> NDArray[Any]:
    """Return times as numbers; dates as milliseconds since 1970."""
    if given.dtype.kind == "M":
        missing = np.flatnonzero(np.isnat(given))
        if missing.size:
            validation.at(f"row {missing[0]}", _time, given[missing[0]].item())
        return given.astype("datetime64[ms]").astype(np.int64)
    if given.dtype.kind not in "iuf":
        given = np.array([validation.at(f"row {i}", _time, one) for i, one in enumerate(given)])
    bad = np.flatnonzero(~(np.abs(given.astype(np.float64)) <= _FARTHEST))
    if bad.size:
        validation.at(f"row {bad[0]}", _time, given[bad[0]].item())
    return given


def _time(value: object) -> float:
    """Return a time as a number; one without a timezone is in UTC."""
    if isinstance(value, datetime) and not _is_missing(value):
        zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (zoned - _EPOCH) / _MILLISECOND
    if abs(number := validation.as_number(value)) <= _FARTHEST:
        return number
    msg = f"time {validation.shown(value)} is not a time; {_TIME_REMEDY}"
    raise TimeError(msg)


def _names(given: NDArray[Any], name: str, length: int) -> list[str]:
    same_length(given, name, length)
    for row, value in enumerate(given.tolist()):
        if value is None or _is_missing(value):
            msg = f"row {row}: the {name} is missing; name it, or drop the row"
            raise ParameterError(msg)
    return [str(value) for value in given.tolist()]


def _is_missing(value: object) -> bool:
    """Return whether a value is NaN, or what a library has for it: it does not equal itself."""
    try:
        return not bool(value == value)  # noqa: PLR0124 - NaN alone differs from itself
    except (TypeError, ValueError):
        return True


_ROUNDING = 0.01  # probabilities that were written with few digits still sum to about 1


def class_rows(
    y: ArrayLike, p: Mapping[Any, ArrayLike], time: ArrayLike | None
) -> tuple[ForecastRows, NDArray[np.bool_]]:
    """Return forecasts with the numbers of their classes, and which labels are known, by row.

    The rows are in the order of time; a label that is not known yet has the number 0.

    Raises
    ------
    LabelError, ScoreError, TimeError, ParameterError
        Names the value, its row and the remedy.

    Examples
    --------
    >>> rows, known = class_rows(["b", None], {"a": [0.25, 0.5], "b": [0.75, 0.5]}, None)
    >>> rows.labels.tolist(), rows.forecasts.tolist(), known.tolist()
    ([1.0, 0.0], [[0.25, 0.75], [0.5, 0.5]], [True, False])
    """
    if len(p) == 1:
        msg = f"p has the class {validation.shown(next(iter(p)))} alone; give a column for each"
        raise ParameterError(msg)
    classes = Classes([*p], max(2, len(p)))
    columns = {validation.shown(name): _probabilities(name, one) for name, one in p.items()}
    _require_same_length({name: len(one) for name, one in columns.items()})
    table = np.column_stack([*columns.values()])
    off = np.flatnonzero(np.abs(table.sum(axis=1) - 1.0) > _ROUNDING)
    if off.size:
        shown = validation.shown(table[off[0]].tolist())
        msg = f"row {off[0]}: forecasts {shown} do not sum to 1; p needs a column for each class"
        raise ScoreError(msg)
    listed = isinstance(y, list | tuple)  # numpy would make a text of its NaN among texts
    given = column(np.array(y, object) if listed else y, "y")
    same_length(given, "y", len(table))
    known = which_known(given)
    labels = _numbers(given, known, classes)
    return in_order(labels.astype(np.float64), table, time, 0), known


def _require_same_length(lengths: Mapping[str, int]) -> None:
    """Raise a ParameterError unless all classes have as many rows."""
    first, *others = lengths.items()
    for name, length in others:
        if length != first[1]:
            msg = f"class {name} has {length} rows, class {first[0]} has {first[1]}; give one each"
            raise ParameterError(msg)


def _probabilities(name: object, given: ArrayLike) -> Floats:
    """Return the probabilities of a class."""
    where = f"class {validation.shown(name)}"
    found: Floats = validation.at(where, validation.scores, column(given, "p"))
    bad = np.flatnonzero((found < 0.0) | (found > 1.0))
    if bad.size:
        value = float(found[bad[0]])
        msg = f"{where}: row {bad[0]}: forecast {value!r} is not a probability between 0 and 1"
        raise ScoreError(msg)
    return found


def _numbers(given: NDArray[Any], known: NDArray[np.bool_], classes: Classes) -> Integers:
    """Return the number of the class of each label; whole numbers may be written as floats."""
    filled = given.astype(object)
    filled[~known] = classes.labels[0]
    if given.dtype.kind == "f":
        filled[known] = [int(one) if one.is_integer() else one for one in given[known].tolist()]
    try:
        return classes.index(filled, len(filled))
    except LabelError as error:
        remedy = "p maps each label to its column, such as p={'low': 'p_low', 'high': 'p_high'}"
        msg = f"{error}; {remedy}"
        raise LabelError(msg) from None


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
