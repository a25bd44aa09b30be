"""What a calibrator accepts: scores, labels, weights and times, one or many.

Governing rule: everything is checked and converted before anything is changed,
and a refusal names the value, its row, and the remedy.
"""

from __future__ import annotations

import math
import sys
from numbers import Real
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from abers._arrays import unmasked
from abers._shown import shown
from abers.exceptions import (
    InputError,
    LabelError,
    ParameterError,
    ScoreError,
    TimeError,
    WeightError,
)
from abers.reference import LEARN, ONE, PREDICT, REMOVE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from abers._arrays import Bytes, Floats, Integers

_LARGEST = sys.float_info.max
_LABELS = {0: 0, 1: 1}  # True, 1.0 and numpy's ones are equal to 1 and hash alike
_SPREAD = "a normal forecast needs a spread; repair the model's output"
_Array = TypeVar("_Array", bound="NDArray[np.generic]")


def _finite(value: object, what: str, error: type[InputError], remedy: str) -> float:
    if type(value) is float and -_LARGEST <= value <= _LARGEST:
        return value + 0.0  # -0.0 becomes 0.0
    if not isinstance(value, Real | np.bool_) or not math.isfinite(number := _as_float(value)):
        msg = f"{what} {shown(value)} is not a finite number; {remedy}"
        raise error(msg)
    return number + 0.0


def _as_float(value: Real | np.bool_) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def score(value: object) -> float:
    """Check one score: any finite real number."""
    return _finite(value, "score", ScoreError, "drop the observation or repair the model's output")


def time(value: object) -> float:
    """Check one event time: any finite real number."""
    return _finite(value, "time", TimeError, "give the event time as a number, such as seconds")


def spread(value: object) -> float:
    """Check one standard deviation: any positive, finite real number."""
    number = _finite(value, "standard deviation", ScoreError, _SPREAD)
    if number <= 0.0:
        msg = f"standard deviation {shown(value)} is not positive; {_SPREAD}"
        raise ScoreError(msg)
    return number


def resolvable(time: float, half_life: float) -> bool:
    """Tell whether doubles resolve half-lives at a time: it is at most 2**50 of them from zero."""
    return abs(time) / half_life <= 2.0**50


def label(value: object) -> int:
    """Check one label: 0, 1, False or True."""
    try:
        return _LABELS[value]  # type: ignore[index]
    except (KeyError, TypeError):
        msg = f"label {shown(value)} is not 0 or 1; map the positive class to 1 and all others to 0"
        raise LabelError(msg) from None


def real(value: object) -> float:
    """Check one real label: any finite real number."""
    return _finite(value, "label", LabelError, "drop the observation or repair its label")


def weight(value: object, largest: int) -> int:
    """Check one weight and round it to a multiple of 2**-30, the unit of the result."""
    if type(value) is float and value == 1.0:  # an array that equals 1 is no weight
        return ONE
    remedy = "weights are positive and finite"
    units = _finite(value, "weight", WeightError, remedy) * ONE
    if not 0.5 < units <= largest:  # noqa: PLR2004 - rounds to 0
        msg = (
            f"weight {shown(value)} is out of range; weights lie between 2**-30 and "
            f"{largest // ONE} (they are rounded to multiples of 2**-30)"
        )
        raise WeightError(msg)
    return round(units)


def _is_column(values: object, kind: type[np.generic]) -> bool:
    """Tell whether this is what it is to become: to convert few rows takes longer than to check."""
    return type(values) is np.ndarray and values.dtype == kind and values.ndim == 1


def _column(values: ArrayLike, check: Callable[[object], float], what: str) -> NDArray[np.generic]:
    given = unmasked(values)
    array = _one_dimensional(given, what)
    if array.dtype.kind not in "fiub":  # strings or objects: say which row, or convert
        array = np.array([_in_row(i, check, value) for i, value in enumerate(given)])  # type: ignore[arg-type]
    return array


def _one_dimensional(values: ArrayLike, what: str) -> NDArray[np.generic]:
    try:
        array = np.asarray(unmasked(values))
    except ValueError as error:  # rows of different lengths
        msg = f"{what} must be one-dimensional; {error}"
        raise ParameterError(msg) from None
    if array.ndim != 1:
        msg = f"{what} must be one-dimensional, not of shape {array.shape}"
        raise ParameterError(msg)
    return array


def _in_row(row: int, check: Callable[[object], float], value: object) -> float:
    try:
        return check(value)
    except InputError as error:
        msg = f"row {row}: {error}"
        raise type(error)(msg) from None


def _floats(values: ArrayLike, check: Callable[[object], float], what: str) -> Floats:
    if _is_column(values, np.float64):
        array: Floats = np.ascontiguousarray(values) + 0.0
    else:
        with np.errstate(over="ignore"):  # a long double too large becomes infinite, is refused
            array = np.ascontiguousarray(_column(values, check, what), dtype=np.float64) + 0.0
    finite = np.isfinite(array)
    if not finite.all():
        bad = int(np.flatnonzero(~finite)[0])
        _in_row(bad, check, float(array[bad]))
    return array


def scores(values: ArrayLike) -> Floats:
    """Check an array of scores."""
    return _floats(values, score, "scores")


def spreads(values: ArrayLike, length: int) -> Floats:
    """Check an array of standard deviations."""
    column = _floats(values, spread, "standard deviations")
    bad = np.flatnonzero(column <= 0.0)
    if bad.size:
        _in_row(int(bad[0]), spread, float(column[bad[0]]))
    return _same_length(column, length, "standard deviations")


def times(values: ArrayLike, length: int) -> Floats:
    """Check an array of event times."""
    return _same_length(_floats(values, time, "times"), length, "times")


def labels(values: ArrayLike, length: int) -> Bytes:
    """Check an array of labels."""
    if _is_column(values, np.uint8):
        column = np.asarray(values)
        known = column <= 1
    else:
        column = _column(values, label, "labels")
        known = (column == 0) | (column == 1)
    if not known.all():
        bad = int(np.flatnonzero(~known)[0])
        _in_row(bad, label, column[bad].item())
    return _same_length(column.astype(np.uint8), length, "labels")


def reals(values: ArrayLike, length: int) -> Floats:
    """Check an array of real labels."""
    return _same_length(_floats(values, real, "labels"), length, "labels")


def weights(values: ArrayLike, length: int, largest: int) -> Integers:
    """Check an array of weights and round them to multiples of 2**-30, the unit of the result."""

    def check(value: object) -> float:
        return weight(value, largest) / ONE

    column = _floats(values, check, "weights")
    with np.errstate(over="ignore"):  # then it is too large
        units = column * ONE
    bad = np.flatnonzero(~((units > 0.5) & (units <= largest)))  # noqa: PLR2004 - rounds to 0
    if bad.size:
        _in_row(int(bad[0]), check, float(column[bad[0]]))
    return _same_length(np.rint(units).astype(np.int64), length, "weights")


def steps(values: ArrayLike, length: int) -> Bytes:
    """Check an array of steps: 0 predicts, 1 learns, 2 removes."""
    if _is_column(values, np.uint8):
        column = np.asarray(values)
        known = column <= REMOVE
    else:
        column = _one_dimensional(values, "steps")
        # Compared one by one: numpy's own search takes ten times as long for a single step.
        known = (column == PREDICT) | (column == LEARN) | (column == REMOVE)
    if not known.all():
        bad = np.flatnonzero(~known)
        msg = (
            f"row {bad[0]}: step {shown(column.tolist()[bad[0]])} is unknown; "
            "steps are 0 (predict), 1 (learn) and 2 (remove)"
        )
        raise ParameterError(msg)
    return _same_length(column.astype(np.uint8), length, "steps")


def _same_length(array: _Array, length: int, what: str) -> _Array:
    if len(array) != length:
        msg = f"{what} has {len(array)} rows, scores has {length}; give one of each per row"
        raise ParameterError(msg)
    return array
