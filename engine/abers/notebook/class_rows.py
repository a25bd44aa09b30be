"""Labels and probabilities of several classes from arrays of any library, checked and in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers import validation
from abers.calibration._classes import Classes
from abers.exceptions import LabelError, ParameterError, ScoreError
from abers.forecast_arrays import column, same_length
from abers.notebook.forecast_rows import in_order, which_known

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from abers.arrays import Floats, Integers
    from abers.notebook.forecast_rows import ForecastRows

__all__ = ["class_rows"]

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
