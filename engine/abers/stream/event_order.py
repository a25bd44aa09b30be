"""The order of events by time: labels come first at equal times.

A label is known at its time, so a prediction at that time may have learned it. Merged
inputs, labels that a delay releases, and tables of history have this one order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.arrays import Integers
    from abers.stream.column_types import Column

__all__ = ["filled_times", "observations_before", "released_order", "time_order"]

_MOST = 2**63


def filled_times(times: Column, before: int | None = None) -> Integers:
    """Return times, with that of the row before in place of a missing time.

    Parameters
    ----------
    times
        Of events.
    before
        The time before the first row, by default the first time that there is.

    Examples
    --------
    >>> filled_times(np.array([None, 3, "?", 5], object)).tolist()
    [3, 3, 3, 5]
    """
    if times.dtype != object:
        return times
    good = np.fromiter((type(one) is int and -_MOST < one < _MOST for one in times), bool)
    known = np.where(good, times, 0).astype(np.int64)
    if before is None:
        before = int(known[good][0]) if good.any() else 0
    rows = np.maximum.accumulate(np.where(good, np.arange(1, len(times) + 1), 0))
    return np.concatenate([[before], known])[rows]


def time_order(times: Integers, labels: NDArray[np.bool_]) -> Integers:
    """Return the rows of events by time, labels first at equal times, otherwise as they came.

    Examples
    --------
    >>> time_order(np.array([5, 3, 5]), np.array([False, False, True])).tolist()
    [1, 2, 0]
    """
    return np.lexsort((~labels, times))


def observations_before(clocks: Integers, due: Integers, own: Integers) -> Integers:
    """Return the number of observations before each label that is released among them.

    These are all before the first one at the time of the label or later, and always its own.

    Parameters
    ----------
    clocks
        Of the observations, ascending.
    due
        When each label is known.
    own
        Number of observations up to that of each label, which is counted.

    Examples
    --------
    >>> observations_before(np.array([1, 5, 9]), np.array([5, 5, 9]), np.array([1, 2, 3])).tolist()
    [1, 2, 3]
    """
    return np.maximum(np.searchsorted(clocks, due), own)


def released_order(times: Integers, due: Integers, rows: Integers) -> Integers:
    """Return the order of observations, and of labels behind them, by time.

    Parameters
    ----------
    times
        Event times of the observations.
    due
        Event times of the labels.
    rows
        The observation of each label.

    Examples
    --------
    >>> released_order(np.array([9, 5]), np.array([9]), np.array([1])).tolist()
    [1, 2, 0]
    """
    n = len(times)
    order = np.argsort(times, kind="stable")
    position = np.empty(n, np.int64)
    position[order] = np.arange(1, n + 1)
    before = observations_before(times[order], due, position[rows])
    # Of labels between the same observations, the label that is known first comes first.
    known = np.concatenate([times, due])
    return np.lexsort((known, np.arange(n + len(due)) >= n, np.concatenate([position, before])))
