"""What the fields of a file may hold: a score, a label, a time, an id.

Governing rule: a text that reads as the value is the value, so CSV and JSON
Lines accept the same; everything else raises a ValueError that says what would
be accepted.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec

__all__ = ["identity", "label", "probability", "score", "time"]

_LABELS = {"0": 0, "false": 0, "1": 1, "true": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WITH_OFFSET = Annotated[datetime, msgspec.Meta(tz=True)]
_LARGEST = 2**63  # what JSON readers and the encoder take as a whole number


def score(value: object) -> float:
    """Read a score: any finite number."""
    number = _number(value)
    if not math.isfinite(number):
        msg = f"{value!r} is not a finite number; drop the record or repair the model's output"
        raise ValueError(msg)
    return number


def probability(value: object) -> float:
    """Read a score that is declared a probability."""
    number = score(value)
    if not 0.0 <= number <= 1.0:
        msg = f"{value!r} is not a probability in [0, 1]; drop the record or --probabilities"
        raise ValueError(msg)
    return number


def label(value: object) -> int:
    """Read a label: 0, 1, false or true, in any case."""
    try:
        return _LABELS[str(value).strip().lower()]
    except KeyError:
        msg = f"{value!r} is not a label; write 0 or 1, or false or true"
        raise ValueError(msg) from None


def time(value: object) -> float:
    """Read an event time: a number as it stands, or RFC 3339 as epoch milliseconds."""
    number = _number(value)
    if math.isfinite(number):
        return _whole(value, number)
    try:
        moment = msgspec.convert(value, _WITH_OFFSET)
    except msgspec.ValidationError:
        msg = f"{value!r} is no time; write a number, or RFC 3339 such as 2026-01-31T12:00:00Z"
        raise ValueError(msg) from None
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def identity(value: object) -> str:
    """Read an id: a text or a whole number."""
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    msg = f"{value!r} is no id; write a text or a whole number"
    raise ValueError(msg)


def _number(value: object) -> float:
    """Give NaN for what is no number, as for a text that says so."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    return math.nan


def _whole(value: object, number: float) -> float:
    """Keep a whole number whole: nanoseconds since 1970 do not fit a float."""
    try:
        whole = int(value) if isinstance(value, str | int) else None
    except ValueError:
        return number
    return number if whole is None or abs(whole) >= _LARGEST else whole
