"""Check of labels and forecasts in arrays, with remedies for usual mistakes."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from abers import validation
from abers.arrays import LIMIT, ONE, total
from abers.exceptions import LabelError, ParameterError, ScoreError, WeightError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from abers.arrays import Floats, Integers

__all__ = ["column", "labelled_forecasts", "row_weights", "same_length"]

_LABEL_REMEDY = "labels are the first argument; drop rows without a label"


def labelled_forecasts(y: ArrayLike, p: ArrayLike) -> tuple[Floats, Floats]:
    """Return labels and forecasts as arrays of floats.

    Parameters
    ----------
    y
        Array of shape (n,): 0 or 1.
    p
        Array of shape (n,): probabilities of label 1.

    Raises
    ------
    LabelError, ScoreError
        If a label is neither 0 nor 1, or a forecast is not a probability: names the first of these
        values, its row and the remedy.
    ParameterError
        If an array has another shape.

    Examples
    --------
    >>> labelled_forecasts([0, True], [0.25, 1])
    (array([0., 1.]), array([0.25, 1.  ]))
    """
    issued, given = column(p, "p"), column(y, "y")
    same_length(given, "y", len(issued))
    return _labels(given), _forecasts(issued)


def column(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return an array of shape (n,), or raise a ParameterError that says what else it is."""
    found = validation.array(values, f"{name} must be one-dimensional")
    if found.ndim != 1:
        column = f"; pass one column, such as {name}[:, 1]" if found.ndim > 1 else ""
        msg = f"{name} must be one-dimensional, not of shape {found.shape}{column}"
        raise ParameterError(msg)
    return found


def same_length(found: NDArray[Any], name: str, length: int) -> None:
    """Raise a ParameterError unless a column has as many rows as there are forecasts."""
    if len(found) != length:
        msg = f"{name} has {len(found)} rows, p has {length}; each forecast needs one of each"
        raise ParameterError(msg)


def row_weights(weight: ArrayLike, length: int) -> Integers:
    """Return weights in units of 2**-30; a weight of 0 counts nothing.

    Raises
    ------
    WeightError
        If a weight is negative, too large or no finite number.
    ParameterError
        If there is not one for each forecast, or all are 0.

    Examples
    --------
    >>> (row_weights([0.5, 0, 2], 3) / 2**30).tolist()
    [0.5, 0.0, 2.0]
    """
    given = column(weight, "weight")
    same_length(given, "weight", length)
    nothing = np.array([isinstance(one, Real) and one == 0 for one in given.tolist()], bool)
    units = validation.weights(np.where(nothing, 1.0, given), length, LIMIT)
    units[nothing] = 0
    if length and nothing.all():
        msg = "weight is zero in every row; one row at least must count"
        raise ParameterError(msg)
    if total(units) > LIMIT:
        msg = f"the weights add up to more than {LIMIT // ONE}; divide all of them by a number"
        raise WeightError(msg)
    return units


def _labels(given: NDArray[Any]) -> Floats:
    try:
        return validation.labels(given, len(given)).astype(np.float64)
    except LabelError as error:
        msg = f"{error}; {_LABEL_REMEDY}"
        raise LabelError(msg) from None


def _forecasts(given: NDArray[Any]) -> Floats:
    issued = validation.scores(given)
    bad = np.flatnonzero((issued < 0.0) | (issued > 1.0))
    if bad.size:
        msg = (
            f"row {bad[0]}: forecast {float(issued[bad[0]])!r} is not a probability between 0 and "
            "1; divide percentages by 100, and turn other scores into probabilities first"
        )
        raise ScoreError(msg)
    return issued
