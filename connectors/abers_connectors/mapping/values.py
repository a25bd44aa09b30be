"""Readers of field values: ids, times, scores, labels and features.

A string that parses as the value is accepted as the value, so that CSV, JSON and Parquet accept
the same records; null and the empty string mean no value. Everything else raises a
BadRecordError that says what is accepted.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec

from abers_connectors.mapping.bad_record import BadRecordError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import numpy as np
    import numpy.typing as npt

__all__ = [
    "DEFAULT_MODEL",
    "MICROSECONDS",
    "MILLISECONDS",
    "SECONDS",
    "ValueReaders",
    "are_plain_times",
    "binary",
    "class_reader",
    "class_scores",
    "cross",
    "features",
    "identity",
    "label_before_observation",
    "label_reader",
    "multiclass",
    "number_or_text",
    "regression",
    "regression_label",
    "score",
    "text",
    "time",
    "time_reader",
    "unchanged",
]

DEFAULT_MODEL = "default"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_WITH_OFFSET = Annotated[datetime, msgspec.Meta(tz=True)]
# A time is accepted below SECONDS, and from MILLISECONDS to below MICROSECONDS:
# milliseconds since 1970 have 12 or 13 digits from 1973 to 5138; seconds have 10 from 2001.
SECONDS, MILLISECONDS, MICROSECONDS = 10**9, 10**11, 10**14
_INT_BOUND = 2**63
_MAX_SHOWN_CHARACTERS = 60  # of a value in a message
_CACHED = 1024  # label values whose meaning is cached
_BOOLEANS = {"true": "1", "false": "0"}


def unchanged(value: Any) -> Any:  # noqa: ANN401 - whatever a record holds
    """Return a value as it is."""
    return value


def number_or_text(value: Any) -> Any:  # noqa: ANN401
    """Read a CSV cell: a finite number if it parses as one, otherwise a string."""
    found = _number(value)
    return found if math.isfinite(found) else value


def identity(value: Any) -> str:  # noqa: ANN401
    """Read an id: a string, or an integer, which becomes its digits."""
    if type(value) is str:
        return value
    return text(value, "id", "bad-id")


def text(value: Any, name: str, reason: str) -> str:  # noqa: ANN401
    """Read a name, such as a model's: a string, or an integer, which becomes its digits."""
    if type(value) is str:
        return value
    if type(value) is int:
        try:
            return str(value)
        except ValueError:  # thousands of digits
            pass
    detail = f"{_shown(value)} is not a valid {name}; write a string or a whole number"
    raise BadRecordError(reason, detail)


def _number(value: Any) -> float:  # noqa: ANN401
    """Read a number, NaN if the value is none; an integer of up to 64 bits stays one."""
    if type(value) is str and "_" not in value:  # Python allows underscores between digits
        try:
            value = int(value)
        except ValueError:
            try:
                return float(value)
            except ValueError:
                return math.nan
    if type(value) is int:
        return value if -_INT_BOUND < value < _INT_BOUND else _rounded(value)
    return value if type(value) is float else math.nan


def _rounded(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def score(value: Any) -> float:  # noqa: ANN401
    """Read a score: any finite number."""
    return _finite(value, "bad-score", "drop the record or repair the model's output")


def _finite(value: Any, reason: str, remedy: str) -> float:  # noqa: ANN401
    found = float(_number(value))
    if not math.isfinite(found):
        name = reason.removeprefix("bad-")
        if isinstance(value, str) and math.isfinite(_number(value.replace(",", "."))):
            remedy = "write a point before decimals, and no other"
        detail = f"{name} {_shown(value)} is not a finite number; {remedy}"
        raise BadRecordError(reason, detail)
    return found


def are_plain_times(values: npt.NDArray[np.int64]) -> bool:
    """Return whether all integers are valid times in milliseconds."""
    usual = (values >= MILLISECONDS) & (values < MICROSECONDS)
    return bool((usual | ((values > -MICROSECONDS) & (values < SECONDS))).all())


def time(value: Any) -> int:  # noqa: ANN401
    """Read an event time: integer milliseconds since 1970, or RFC 3339."""
    found = _number(value)
    if not math.isfinite(found):
        return _moment(value)
    if abs(found) >= MICROSECONDS:
        reason = "seems to be in micro- or nanoseconds"
    elif SECONDS <= found < MILLISECONDS:
        reason = "seems to be in seconds"
    elif found != int(found):
        reason = "is not a whole number"
    else:
        return int(found)
    detail = f"time {_shown(value)} {reason}; write whole milliseconds since 1970, or RFC 3339"
    raise BadRecordError("bad-time", detail)


def _moment(value: Any) -> int:  # noqa: ANN401
    try:
        return _milliseconds(msgspec.convert(value, _WITH_OFFSET))
    except (msgspec.ValidationError, OverflowError):
        local = _local(value) is not None
        wrong = "has no UTC offset; set input.timezone, or" if local else "is not a time;"
        detail = (
            f"time {_shown(value)} {wrong} write whole milliseconds "
            "since 1970, or RFC 3339 such as 2026-01-31T12:00:00Z"
        )
        raise BadRecordError("bad-time", detail) from None


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND


def _local(value: object) -> datetime | None:
    """Read a date or a time without offset; None for anything else."""
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    return value if isinstance(value, datetime) else None


def time_reader(zone: tzinfo | None) -> Callable[[Any], int]:
    """Return a reader of event times, in which a time without an offset is one of a time zone.

    Of a local time that occurs twice, when clocks are set back, the first is meant.

    >>> from zoneinfo import ZoneInfo
    >>> read = time_reader(ZoneInfo("Europe/Berlin"))
    >>> read("2013-04-01 05:00:00"), read("2013-04-01T03:00:00Z"), read(1364785200000)
    (1364785200000, 1364785200000, 1364785200000)
    """
    if zone is None:
        return time

    def read(value: Any) -> int:  # noqa: ANN401
        local = None if math.isfinite(_number(value)) else _local(value)
        if local is None or local.tzinfo is not None:
            return time(value)
        try:
            return _milliseconds(local.replace(tzinfo=zone))
        except OverflowError:  # at the ends of the calendar
            return time(value)

    return read


def label_before_observation(label: int, observation: int) -> BadRecordError:
    """Return the error for a label whose time is before that of its observation."""
    detail = (
        f"the label's time {label} is before that of its observation, {observation}; "
        "repair one of them, or name another field for the label's time"
    )
    return BadRecordError("bad-time", detail)


def label_reader(positive: Collection[object]) -> Callable[[Any], int]:
    """Return a reader of binary labels, which maps a value to 0 or 1.

    If there are positive values, they mean 1 and every other value means 0; if there are none,
    labels are 0 and 1, or false and true. The number 1, the string "1" and "true" in any case are
    equal.

    >>> read = label_reader(["fraud", 1])
    >>> read("fraud"), read("1"), read(True), read("genuine")
    (1, 1, 1, 0)
    """
    ones = frozenset(_form(value) for value in positive) or frozenset("1")
    zeros = frozenset("0")

    @lru_cache(_CACHED)
    def read(value: Any) -> int:  # noqa: ANN401
        form = _form(value)
        if form in ones:
            return 1
        if form in zeros or (positive and form is not None):
            return 0
        allowed = "a string, a number or a boolean" if positive else "0 or 1, or false or true"
        hint = "" if positive else ", or name the values that mean 1 in input.pos_label"
        if not positive and math.isfinite(_number(value)):
            hint += '; for labels that are numbers, set task.kind = "regression"'
        raise BadRecordError("bad-label", f"{_shown(value)} is not a label; write {allowed}{hint}")

    def label(value: Any) -> int:  # noqa: ANN401
        try:
            return read(value)
        except TypeError:  # a list or an object, which has no hash
            return read.__wrapped__(value)

    return label


def class_reader(classes: Collection[str]) -> Callable[[Any], str]:
    """Return a reader of multi-class labels, which maps a value to the name of a class.

    The number 1, the string "1" and "true" in any case are equal, unless they name different
    classes.

    >>> read = class_reader(["cat", "7"])
    >>> read("cat"), read(7), read("7.0")
    ('cat', '7', '7')
    """
    forms = {_form(name): name for name in classes} | {name: name for name in classes}

    def label(value: Any) -> str:  # noqa: ANN401
        is_name = type(value) is str and value in forms
        found = forms.get(value if is_name else _form(value))
        if found is None:
            detail = f"{_shown(value)} is not among the classes {_shown(list(classes))}"
            raise BadRecordError("bad-label", f"{detail}; add it to task.classes, or fix it")
        return found

    return label


def regression_label(value: Any) -> float:  # noqa: ANN401
    """Read a label that is a finite number."""
    return _finite(value, "bad-label", "drop it, or repair its source")


def _fold_scores(value: Any) -> float | list[float]:  # noqa: ANN401
    """Read a score, or a list of scores."""
    return [*map(score, value)] if type(value) is list else score(value)


def class_scores(value: Any) -> dict[str, float]:  # noqa: ANN401
    """Read the scores of several classes: an object with a number for each class."""
    if type(value) is not dict:
        detail = f'score {_shown(value)} is not an object; write {{"class": number, …}}'
        raise BadRecordError("bad-score", detail)
    return {name: score(found) for name, found in value.items()}


def _form(value: object) -> str | None:
    """Return the canonical form of a label, equal for equal meanings; None for no label."""
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
    """Read features: an object of names and values."""
    if type(value) is dict:
        return value
    detail = (
        f"features {_shown(value)} are not an object; "
        'write {"name": value, …}, or list the fields in input.fields.x'
    )
    raise BadRecordError("bad-features", detail)


def _shown(value: object) -> str:
    """Return a value for a message, shortened: a record may be large and nested."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]}…"


class ValueReaders(NamedTuple):
    """Readers of the values of a task; each may raise a BadRecordError."""

    label: Callable[[Any], Any]
    score: Callable[[Any], Any]
    type: Any  # JSON type of a score
    time: Callable[[Any], int] = time


def binary(positive: Collection[object] = ()) -> ValueReaders:
    """Return the readers of a binary task; see `label_reader`."""
    return ValueReaders(label_reader(positive), score, float)


def cross(positive: Collection[object] = ()) -> ValueReaders:
    """Return the readers of a binary task in which several learners may score an observation."""
    return ValueReaders(label_reader(positive), _fold_scores, float | list[float])


def multiclass(classes: Collection[str]) -> ValueReaders:
    """Return the readers of a multi-class task; see `class_reader`."""
    return ValueReaders(class_reader(classes), class_scores, dict[str, float])


def regression() -> ValueReaders:
    """Return the readers of a regression task."""
    return ValueReaders(regression_label, score, float)
