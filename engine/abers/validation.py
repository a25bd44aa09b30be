"""Checks of input: scores, labels, weights, times, levels, and forecasts in arrays.

Each check returns the converted value, or raises an error that names the value, its row and the
remedy. Callers check everything before they change anything.
"""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from reprlib import Repr
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from abers.arrays import EXPIRE, LEARN, LIMIT, ONE, PREDICT, REMOVE, total, unmasked
from abers.exceptions import (
    InputError,
    LabelError,
    ParameterError,
    ScoreError,
    TimeError,
    WeightError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from abers.arrays import Bytes, Floats, Integers

__all__ = [
    "array",
    "as_number",
    "at",
    "column",
    "count",
    "finite",
    "fraction",
    "generator",
    "label",
    "labelled_forecasts",
    "labels",
    "level_list",
    "levels",
    "number",
    "numbers",
    "observation",
    "observations",
    "places",
    "plain",
    "real",
    "reals",
    "resolvable",
    "row_weights",
    "same_length",
    "score",
    "scores",
    "shown",
    "sizes",
    "spread",
    "spreads",
    "steps",
    "time",
    "times",
    "tolerance",
    "weight",
    "weights",
]

_MAX_FLOAT = sys.float_info.max
_BINARY_LABELS = {0: 0, 1: 1}  # True, 1.0 and their numpy values are equal to 1 and hash alike
_SPREAD_REMEDY = "a normal forecast needs a spread; repair the model's output"
_MAX_INT64 = (1 << 63) - 1
_MAX_SHOWN_CHARACTERS = 60  # of a value in a message
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = _MAX_SHOWN_CHARACTERS
_NUMBERS = (Real, np.bool_, Decimal)
_ArrayType = TypeVar("_ArrayType", bound="NDArray[np.generic]")
_Result = TypeVar("_Result")


def shown(value: object) -> str:
    """Show a value as `repr` does, shortened; by its type where that fails.

    Examples
    --------
    >>> shown("high"), len(shown("x" * 1_000_000))
    ("'high'", 60)
    """
    try:
        return _SHORT.repr(value)
    except Exception:  # noqa: BLE001 - anything a foreign __repr__ raises
        return f"<{type(value).__name__}>"


def _finite_number(value: object, what: str, error: type[InputError], remedy: str) -> float:
    if type(value) is float and -_MAX_FLOAT <= value <= _MAX_FLOAT:
        return value + 0.0  # -0.0 becomes 0.0
    if not math.isfinite(number := as_number(value)):
        msg = f"{what} {shown(value)} is not a finite number; {remedy}"
        raise error(msg)
    return number + 0.0


def as_number(value: object) -> float:
    """Return a number as a float: infinity if it is too large, and NaN for anything else.

    Examples
    --------
    >>> as_number(np.float32(0.5)), as_number(10**400), as_number("0.5")
    (0.5, inf, nan)
    """
    if not isinstance(value, _NUMBERS) or isinstance(value, np.timedelta64):
        return math.nan  # numpy has durations among its integers
    try:
        return float(value)
    except (OverflowError, ValueError):  # too large, or a signalling NaN of `Decimal`
        return math.inf


def score(value: object) -> float:
    """Check one score: any finite real number."""
    return _finite_number(
        value, "score", ScoreError, "drop the observation or repair the model's output"
    )


def time(value: object) -> float:
    """Check one event time: any finite real number."""
    return _finite_number(
        value, "time", TimeError, "give the event time as a number, such as seconds"
    )


def spread(value: object) -> float:
    """Check one standard deviation: any positive, finite real number."""
    number = _finite_number(value, "standard deviation", ScoreError, _SPREAD_REMEDY)
    if number <= 0.0:
        msg = f"standard deviation {shown(value)} is not positive; {_SPREAD_REMEDY}"
        raise ScoreError(msg)
    return number


def resolvable(time: float, half_life: float) -> bool:
    """Return whether a time is at most 2**50 half-lives from zero, so that doubles resolve them."""
    return abs(time) / half_life <= 2.0**50


def label(value: object) -> int:
    """Check one label: 0, 1, False or True."""
    try:
        return _BINARY_LABELS[value]  # type: ignore[index]
    except (KeyError, TypeError):
        msg = f"label {shown(value)} is not 0 or 1; map the positive class to 1 and all others to 0"
        raise LabelError(msg) from None


def real(value: object) -> float:
    """Check one real label: any finite real number."""
    return _finite_number(value, "label", LabelError, "drop the observation or repair its label")


def weight(value: object, largest: int) -> int:
    """Check one weight and round it to a multiple of 2**-30, the unit of the result."""
    if type(value) is float and value == 1.0:  # an array that equals 1 is no weight
        return ONE
    remedy = "weights are positive and finite"
    units = _finite_number(value, "weight", WeightError, remedy) * ONE
    if not 0.5 < units <= largest:  # noqa: PLR2004 - rounds to 0
        msg = (
            f"weight {shown(value)} is out of range; weights lie between 2**-30 and "
            f"{largest // ONE} (they are rounded to multiples of 2**-30)"
        )
        raise WeightError(msg)
    return round(units)


def _is_column(values: object, kind: type[np.generic]) -> bool:
    """Return whether this is a column of a type already: to convert few rows takes longer."""
    return type(values) is np.ndarray and values.dtype == kind and values.ndim == 1


def _column(values: ArrayLike, check: Callable[[object], float], what: str) -> NDArray[np.generic]:
    given = unmasked(values)
    array = _one_dimensional(given, what)
    if array.dtype.kind not in "fiub":  # strings or objects: say which row, or convert
        array = np.array([at(f"row {i}", check, value) for i, value in enumerate(given)])  # type: ignore[arg-type]
    return array


def array(values: ArrayLike, rule: str) -> NDArray[Any]:
    """Return values as an array, or say by which rule rows of different lengths are wrong."""
    given = unmasked(values)
    try:
        found = np.asarray(given)
        # Next to a text all would be texts, and a message would show a number as one.
        return np.asarray(given, object) if found.dtype.kind in "US" else found
    except ValueError:
        msg = f"{rule}, but its rows are of different lengths"
        raise ParameterError(msg) from None


def _one_dimensional(values: ArrayLike, what: str) -> NDArray[Any]:
    found = array(values, f"{what} must be one-dimensional")
    if found.ndim != 1:
        msg = f"{what} must be one-dimensional, not of shape {found.shape}"
        raise ParameterError(msg)
    return found


def at(where: str, check: Callable[..., _Result], *arguments: object) -> _Result:
    """Call a check, and name in its error the row or the fold that is wrong."""
    try:
        return check(*arguments)
    except InputError as error:
        msg = f"{where}: {error}"
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
        at(f"row {bad}", check, float(array[bad]))
    return array


def scores(values: ArrayLike) -> Floats:
    """Check an array of scores."""
    return _floats(values, score, "scores")


def spreads(values: ArrayLike, length: int) -> Floats:
    """Check an array of standard deviations."""
    column = _floats(values, spread, "standard deviations")
    bad = np.flatnonzero(column <= 0.0)
    if bad.size:
        at(f"row {bad[0]}", spread, float(column[bad[0]]))
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
        at(f"row {bad}", label, column[bad].item())
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
        at(f"row {bad[0]}", check, float(column[bad[0]]))
    return _same_length(np.rint(units).astype(np.int64), length, "weights")


def steps(values: ArrayLike, length: int) -> tuple[Bytes, bool]:
    """Check an array of steps: 0 predicts, 1 learns, 2 removes, 3 expires.

    Return them, and whether there are others than the first two.
    """
    if _is_column(values, np.uint8):
        column = np.asarray(values)
        rare = not (column <= LEARN).all()
        known = column <= EXPIRE if rare else None
    else:
        column = _one_dimensional(values, "steps")
        # Compared one by one: numpy's own search takes ten times as long for a single step.
        common = (column == PREDICT) | (column == LEARN)
        rare = not common.all()
        known = common | (column == REMOVE) | (column == EXPIRE) if rare else None
    if known is not None and not known.all():
        bad = np.flatnonzero(~known)
        msg = (
            f"row {bad[0]}: step {shown(column.tolist()[bad[0]])} is unknown; "
            "steps are 0 (predict), 1 (learn), 2 (remove) and 3 (expire)"
        )
        raise ParameterError(msg)
    return _same_length(column.astype(np.uint8), length, "steps"), rare


def observation(value: object) -> int:
    """Check the number of one observation: a whole number from 0 on."""
    return count(value, "number", 0)


def observations(values: ArrayLike, length: int) -> Integers:
    """Check an array of observation numbers: whole numbers from 0 on, -1 for none."""
    given = _one_dimensional(values, "numbers")
    if given.size and given.dtype.kind not in "iu":
        msg = (
            f"numbers of type {given.dtype} must be whole numbers between 0 and {_MAX_INT64}, or "
            "-1 for none"
        )
        raise ParameterError(msg)
    bad = np.flatnonzero((given < -1) | (given > _MAX_INT64))
    if bad.size:
        msg = (
            f"row {bad[0]}: number {given[bad[0]]} must be between 0 and {_MAX_INT64}, or -1 for "
            "none"
        )
        raise ParameterError(msg)
    return _same_length(given.astype(np.int64), length, "numbers")


def sizes(held: Integers, length: int) -> None:
    """Check the array that a run fills with the numbers of observations kept."""
    if held.dtype != np.int64 or held.shape != (length,):
        msg = f"held is {held.dtype} of shape {held.shape}, not int64 of shape ({length},)"
        raise ParameterError(msg)


def _same_length(array: _ArrayType, length: int, what: str) -> _ArrayType:
    if len(array) != length:
        msg = f"{what} has {len(array)} rows, scores has {length}; give one of each per row"
        raise ParameterError(msg)
    return array


# Arguments of distributions and scores, of any shape


def plain(values: Floats) -> float | Floats:
    """Return a single value as a number, and an array as it is."""
    return values if np.ndim(values) else float(values)


def levels(values: ArrayLike, name: str) -> Floats:
    """Check probabilities that are neither 0 nor 1."""
    found = numbers(values, name)
    bad = ~((found > 0.0) & (found < 1.0))
    if bad.any():
        msg = f"{name}={shown(float(found[bad][0]))} is not inside (0, 1); give a probability"
        raise ParameterError(msg)
    return found


def level_list(values: ArrayLike) -> Floats:
    """Check a list of levels: it is one-dimensional, and none is 0 or 1."""
    found = levels(values, "levels")
    if found.ndim != 1:
        msg = f"levels={shown(values)} must be a list of numbers inside (0, 1)"
        raise ParameterError(msg)
    return np.ascontiguousarray(found)


def places(values: ArrayLike) -> Floats:
    """Check the arguments of a CDF: numbers, which may be infinite."""
    where = numbers(values, "t")
    if np.isnan(where).any():
        msg = "t is not a number; ask for the CDF at numbers"
        raise ParameterError(msg)
    return where


def finite(values: ArrayLike, name: str) -> Floats:
    """Check finite numbers."""
    found = numbers(values, name)
    bad = ~np.isfinite(found)
    if bad.any():
        msg = f"{name}={shown(float(found[bad][0]))} is not a finite number; drop it"
        raise ParameterError(msg)
    return found


def numbers(values: ArrayLike, name: str) -> Floats:
    """Check that all values are numbers, which may be infinite or NaN."""
    with suppress(TypeError, ValueError, OverflowError):
        given = np.asarray(unmasked(values))
        if given.dtype.kind != "m":  # durations, which numpy converts
            return np.asarray(given, np.float64)
    msg = f"{name}={shown(values)} must be a number or an array of numbers; convert it"
    raise ParameterError(msg)


def number(value: object, name: str, words: str, fits: Callable[[float], bool]) -> float:
    """Check a single number, such as "a number of 1 or more"; NaN must not fit."""
    found = as_number(value) if isinstance(value, Real) else math.nan
    if not fits(found):
        msg = f"{name}={shown(value)} must be {words}"
        raise ParameterError(msg)
    return found


def fraction(value: object, name: str) -> float:
    """Check a single number above 0 and below 1.

    Examples
    --------
    >>> fraction(0.9, "level")
    0.9
    """
    return number(value, name, "a number above 0 and below 1", lambda one: 0.0 < one < 1.0)


def tolerance(value: object) -> float:
    """Check a tolerance, a ratio of odds."""
    words = "a finite number of 1 or more, a ratio of odds"
    return number(value, "tolerance", words, lambda ratio: 1.0 <= ratio < math.inf)


def generator(seed: object) -> np.random.Generator:
    """Return the generator of a seed, or the one that is passed."""
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, int | np.integer) and seed >= 0:
        return np.random.default_rng(int(seed))
    msg = f"seed={shown(seed)} must be a whole number of 0 or more, or a generator of numpy"
    raise ParameterError(msg)


def count(value: object, name: str, least: int, most: int = _MAX_INT64) -> int:
    """Check a number of things: whole, and between two ends."""
    is_bool = isinstance(value, bool)
    if is_bool or not isinstance(value, int | np.integer) or not least <= value <= most:
        too_large = isinstance(value, int | np.integer) and value > _MAX_INT64
        bounded = most < _MAX_INT64 or too_large
        range_ = f"between {least} and {most}" if bounded else f"of {least} or more"
        msg = f"{name}={shown(value)} is not a whole number {range_}"
        raise ParameterError(msg)
    return int(value)


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
    found = array(values, f"{name} must be one-dimensional")
    if found.ndim != 1:
        column = "a list or an array"
        if found.ndim > 1:
            column = f"one column, such as {name}[:, {found.shape[-1] - 1}]"
        msg = f"{name} must be one-dimensional, not of shape {found.shape}; pass {column}"
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
    nothing = np.array([as_number(one) == 0 for one in given.tolist()], bool)
    counted = given.copy()
    counted[nothing] = 1
    units = weights(counted, length, LIMIT)
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
        return labels(given, len(given)).astype(np.float64)
    except LabelError as error:
        msg = f"{error}; {_LABEL_REMEDY}"
        raise LabelError(msg) from None


def _forecasts(given: NDArray[Any]) -> Floats:
    issued = scores(given)
    bad = np.flatnonzero((issued < 0.0) | (issued > 1.0))
    if bad.size:
        msg = (
            f"row {bad[0]}: forecast {float(issued[bad[0]])!r} is not a probability between 0 and "
            "1; divide percentages by 100, and turn other scores into probabilities first"
        )
        raise ScoreError(msg)
    return issued
