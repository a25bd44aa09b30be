"""Labels and forecasts from arrays of any library, checked and in the order of time.

numpy or Arrow converts lists, and the columns of pandas, polars and other libraries, but imports
none of them. Everything is checked before anything is counted.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from abers import validation
from abers.exceptions import ParameterError, TimeError
from abers.forecast_arrays import column, labelled_forecasts, same_length

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from abers.arrays import Floats, Integers

__all__ = [
    "ForecastRows",
    "Group",
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
    times = _times(column(time, "time"))
    same_length(times, "time", len(labels))
    order = np.argsort(times, kind="stable")
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
    if isinstance(value, Real) and abs(float(value)) <= _FARTHEST:
        return float(value)
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
