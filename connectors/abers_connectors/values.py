"""What the fields of a record may hold: an id, a time, a score, a label, features.

Governing rule: a text that reads as the value is the value, so that CSV, JSON
and Parquet accept the same; null and the empty text are nothing. Everything
else raises a BadRecordError that says what would be accepted.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from abers_connectors.records import BadRecordError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import numpy as np
    import numpy.typing as npt

__all__ = [
    "DEFAULT_MODEL",
    "MICROSECONDS",
    "MILLISECONDS",
    "SECONDS",
    "are_plain_times",
    "class_reader",
    "features",
    "fold_scores",
    "identity",
    "is_given",
    "label_reader",
    "number",
    "number_or_text",
    "score",
    "scores",
    "text",
    "time",
    "unchanged",
]

DEFAULT_MODEL = "default"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_WITH_OFFSET = Annotated[datetime, msgspec.Meta(tz=True)]
# A time is taken as it stands from MILLISECONDS on and below SECONDS, and below MICROSECONDS:
# milliseconds since 1970 have 12 or 13 digits from 1973 to 5138; seconds have 10 from 2001.
SECONDS, MILLISECONDS, MICROSECONDS = 10**9, 10**11, 10**14
_LARGEST = 2**63
_SHOWN = 60  # characters of a value in a message
_KNOWN = 1024  # label values that are remembered with their meaning
_BOOLEANS = {"true": "1", "false": "0"}


def is_given(value: Any) -> bool:  # noqa: ANN401 - whatever a record holds
    """Say whether a field holds anything."""
    return value is not None and value != ""


def unchanged(value: Any) -> Any:  # noqa: ANN401
    """Take a value as it stands."""
    return value


def number_or_text(value: Any) -> Any:  # noqa: ANN401
    """Read a text of CSV: a number if it reads as one that is finite."""
    found = _number(value)
    return found if math.isfinite(found) else value


def identity(value: Any) -> str:  # noqa: ANN401
    """Read an id: a text, or a whole number, which is written out."""
    if type(value) is str:
        return value
    return text(value, "id", "bad-id")


def text(value: Any, name: str, reason: str) -> str:  # noqa: ANN401
    """Read a name, of a model say: a text, or a whole number, which is written out."""
    if type(value) is str:
        return value
    if type(value) is int:
        try:
            return str(value)
        except ValueError:  # thousands of digits
            pass
    detail = f"{_shown(value)} is no {name}; write a text or a whole number"
    raise BadRecordError(reason, detail)


def _number(value: Any) -> float:  # noqa: ANN401
    """Read a number: what is none gives NaN, and a whole one stays whole if 64 bits hold it."""
    if type(value) is str and "_" not in value:  # which Python allows between digits
        try:
            value = int(value)
        except ValueError:
            try:
                return float(value)
            except ValueError:
                return math.nan
    if type(value) is int:
        return value if -_LARGEST < value < _LARGEST else _rounded(value)
    return value if type(value) is float else math.nan


def _rounded(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def score(value: Any) -> float:  # noqa: ANN401
    """Read a score: any finite number."""
    found = float(_number(value))
    if not math.isfinite(found):
        detail = (
            f"score {_shown(value)} is not a finite number; "
            "drop the record or repair the model's output"
        )
        raise BadRecordError("bad-score", detail)
    return found


def are_plain_times(values: npt.NDArray[np.int64]) -> bool:
    """Say whether all of some whole numbers are times as they stand."""
    usual = (values >= MILLISECONDS) & (values < MICROSECONDS)
    return bool((usual | ((values > -MICROSECONDS) & (values < SECONDS))).all())


def time(value: Any) -> int:  # noqa: ANN401
    """Read an event time: whole milliseconds since 1970, or RFC 3339."""
    found = _number(value)
    if not math.isfinite(found):
        return _moment(value)
    if abs(found) >= MICROSECONDS:
        reason = "looks like micro- or nanoseconds"
    elif SECONDS <= found < MILLISECONDS:
        reason = "looks like seconds"
    elif found != int(found):
        reason = "is not a whole number"
    else:
        return int(found)
    detail = f"time {_shown(value)} {reason}; write whole milliseconds since 1970, or RFC 3339"
    raise BadRecordError("bad-time", detail)


def _moment(value: Any) -> int:  # noqa: ANN401
    try:
        moment = msgspec.convert(value, _WITH_OFFSET)
        return (moment - _EPOCH) // _MILLISECOND
    except (msgspec.ValidationError, OverflowError):
        detail = (
            f"time {_shown(value)} is no time with an offset from UTC; write whole milliseconds "
            "since 1970, or RFC 3339 such as 2026-01-31T12:00:00Z"
        )
        raise BadRecordError("bad-time", detail) from None


def label_reader(positive: Collection[object]) -> Callable[[Any], int]:
    """Make what reads labels.

    Parameters
    ----------
    positive
        The values that mean 1, as every other then means 0; if empty, labels are 0 and 1,
        or false and true.

    Returns
    -------
    callable
        From a value to 0 or 1. The number 1, its text and "true" in any case are one value.

    Examples
    --------
    >>> read = label_reader(["fraud", 1])
    >>> read("fraud"), read("1"), read(True), read("genuine")
    (1, 1, 1, 0)
    """
    ones = frozenset(_form(value) for value in positive) or frozenset("1")
    zeros = frozenset("0")

    @lru_cache(_KNOWN)
    def read(value: Any) -> int:  # noqa: ANN401
        form = _form(value)
        if form in ones:
            return 1
        if form in zeros or (positive and form is not None):
            return 0
        allowed = "a text, a number or a boolean" if positive else "0 or 1, or false or true"
        hint = "" if positive else ", or name the values that mean 1 in input.positive"
        raise BadRecordError("bad-label", f"{_shown(value)} is not a label; write {allowed}{hint}")

    def label(value: Any) -> int:  # noqa: ANN401
        try:
            return read(value)
        except TypeError:  # a list or an object, which has no hash
            return read.__wrapped__(value)

    return label


def class_reader(classes: Collection[str]) -> Callable[[Any], str]:
    """Make what reads labels of several classes.

    Parameters
    ----------
    classes
        They.

    Returns
    -------
    callable
        From a value to a class. The number 1, its text and "true" in any case are one value,
        unless another class is written so.

    Examples
    --------
    >>> read = class_reader(["cat", "7"])
    >>> read("cat"), read(7), read("7.0")
    ('cat', '7', '7')
    """
    forms = {_form(name): name for name in classes} | {name: name for name in classes}

    def label(value: Any) -> str:  # noqa: ANN401
        written = type(value) is str and value in forms
        found = forms.get(value if written else _form(value))
        if found is None:
            detail = f"{_shown(value)} is not among the classes {_shown(list(classes))}"
            raise BadRecordError("bad-label", f"{detail}; add it to task.classes, or mend it")
        return found

    return label


def number(value: Any) -> float:  # noqa: ANN401
    """Read a label that is a number: a finite one."""
    found = float(_number(value))
    if not math.isfinite(found):
        detail = f"label {_shown(value)} is not a finite number; drop it, or repair its source"
        raise BadRecordError("bad-label", detail)
    return found


def fold_scores(value: Any) -> float | list[float]:  # noqa: ANN401
    """Read a score, or a list of them."""
    return [*map(score, value)] if type(value) is list else score(value)


def scores(value: Any) -> dict[str, float]:  # noqa: ANN401
    """Read the scores of several classes: an object with a number for each class."""
    if type(value) is not dict:
        detail = f'score {_shown(value)} is no object; write {{"class": number, …}}'
        raise BadRecordError("bad-score", detail)
    return {name: score(found) for name, found in value.items()}


def _form(value: object) -> str | None:
    """Write a value so that those which mean the same are equal; None for what is no value."""
    if isinstance(value, str):
        value = value.strip()
        found = _number(value)
        if not math.isfinite(found):
            return _BOOLEANS.get(value.lower(), value)
        value = found
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int | float):
        try:
            return str(int(value) if value == int(value) else value)
        except (ValueError, OverflowError):  # infinite, or thousands of digits
            return None
    return None


def features(value: Any) -> dict[str, Any]:  # noqa: ANN401
    """Read features: a mapping from name to value."""
    if type(value) is dict:
        return value
    detail = (
        f"features {_shown(value)} are no object; "
        'write {"name": value, …}, or list the fields in input.fields.x'
    )
    raise BadRecordError("bad-features", detail)


def _shown(value: object) -> str:
    """Write a value for a message, briefly: a record may be large and nested."""
    try:
        written = repr(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"
    return written if len(written) <= _SHOWN else f"{written[:_SHOWN]}…"
