"""Settled predictions as rows, and helpers of tasks for rows of floats."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from abers.stream.column_types import objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from abers.arrays import Floats, Integers
    from abers.stream.column_types import Column
    from abers.stream.columns import Events

__all__ = ["SettledRows", "by_name", "dicts"]


class SettledRows(NamedTuple):
    """Labelled predictions, a row each."""

    events: Events  # observation or label, whichever came last: both have the id and the model
    segments: Column  # of the observations
    label_times: Integers
    times: Integers  # event times of the observations
    rows: Floats  # score and prediction as issued, then any columns of `distribution_scores`
    values: Floats  # labels, as numbers of `Task.value`
    assumed: NDArray[np.bool_] | None = None  # labels that did not come; None without any
    late: NDArray[np.bool_] | None = None  # labels after assumed labels


def by_name(names: Sequence[str], rows: Floats) -> Column:
    """Return a dict of each row, from a name of each column to the value."""
    return objects([*map(dict, map(zip, repeat(names), rows.tolist()))])  # faster than a loop


def dicts(names: Sequence[str], row: Sequence[float]) -> list[dict[str, float]]:
    """Return a dict from name to value of each part of a row, which has a value for each name."""
    k = len(names)
    return [dict(zip(names, row[at : at + k], strict=True)) for at in range(0, len(row), k)]
