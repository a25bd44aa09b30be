"""The reader of event times: milliseconds since 1970, RFC 3339 and more of ISO 8601, or datetimes.

Texts of one length are parsed as a column.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np

from abers.stream.cells import BadRecordError, plain, whole_milliseconds
from abers.stream.option import Option, Phrase, Ref
from abers.stream.readers import CellReader, number, shown, text_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.stream.cells import Column
    from abers.stream.option import Part

__all__ = ["MICROSECONDS", "MILLISECONDS", "SECONDS", "TimeReader"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_WITH_OFFSET = Annotated[datetime, msgspec.Meta(tz=True)]
# A number is accepted below SECONDS, and from MILLISECONDS to below MICROSECONDS:
# milliseconds since 1970 have 12 or 13 digits from 1973 to 5138; seconds have 10 from 2001.
SECONDS, MILLISECONDS, MICROSECONDS = 10**9, 10**11, 10**14
_SPACE = re.compile(r"(?<=\d)\s+(?=(Z|[+-][\d:]+)$)")  # before an offset
_SHAPE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_SECONDS_END = len("2026-01-31T12:00:00")
_FIRST_TIME = int(np.datetime64("0001-01-01", "ms").astype(np.int64))
_LAST_TIME = int(np.datetime64("9999-12-31T23:59:59.999", "ms").astype(np.int64))
_LAST_HOUR, _LAST_MINUTE = 23, 59
_ZONE = Ref(Option("input.timezone", flag="--timezone", name="zone"))
_NO_ZONE = (
    "has no UTC offset; name its zone, such as Europe/Berlin or UTC, ",
    Phrase("in ", "in ", "with "),
    _ZONE,
    ", or",
)
_MOST_LENGTHS = 8  # of texts that are parsed as columns


class TimeReader(CellReader):
    """Reads an event time as whole milliseconds since 1970.

    Parameters
    ----------
    zone
        Zone of times without an offset; None refuses these. Of a local time that occurs twice, when
        clocks are set back, the first is meant.

    Examples
    --------
    >>> from zoneinfo import ZoneInfo
    >>> read = TimeReader(ZoneInfo("Europe/Berlin")).one
    >>> read("2013-04-01 05:00:00"), read("2013-04-01T03:00:00Z"), read(1364785200000)
    (1364785200000, 1364785200000, 1364785200000)
    """

    def __init__(self, zone: tzinfo | None = None) -> None:
        self._zone = zone

    def one(self, cell: Any) -> int:  # noqa: ANN401 - anything a column holds
        """Return the time, or raise a BadRecordError."""
        cell = plain(cell)
        found = number(cell)
        if not math.isfinite(found):
            return self._moment(cell)
        if abs(found) >= MICROSECONDS:
            reason = "seems to be in micro- or nanoseconds"
        elif SECONDS <= found < MILLISECONDS:
            reason = "seems to be in seconds"
        elif found != int(found):
            reason = "is not a whole number"
        elif type(cell) is str and "E+" in cell.upper():
            reason = "is rounded, as a spreadsheet does"
        else:
            return int(found)
        detail = f"time {shown(cell)} {reason}; write whole milliseconds since 1970, or RFC 3339"
        raise BadRecordError("bad-time", detail)

    def _moment(self, cell: Any) -> int:  # noqa: ANN401
        if isinstance(cell, np.datetime64):
            found = whole_milliseconds(cell)
            if _FIRST_TIME <= found <= _LAST_TIME:
                return found
        moment = _parsed(cell)
        if moment is not None:
            zoned = moment if moment.tzinfo or not self._zone else moment.replace(tzinfo=self._zone)
            with suppress(OverflowError):  # at the ends of the calendar
                if zoned.utcoffset() is not None:
                    return (zoned - _EPOCH) // _MILLISECOND
        wrong: tuple[Part, ...] = _NO_ZONE if moment else ("is not a time;",)
        forms = " write whole milliseconds since 1970, or RFC 3339 such as 2026-01-31T12:00:00Z"
        raise BadRecordError("bad-time", f"time {shown(cell)} ", *wrong, forms)

    def _whole(self, cells: Column, kind: type | None) -> Column | None:
        if kind is np.datetime64:
            cells = np.array(cells.tolist(), "datetime64[ms]")
        if cells.dtype.kind == "M":
            found = cells.astype("datetime64[ms]").astype(np.int64)
            return found if ((found >= _FIRST_TIME) & (found <= _LAST_TIME)).all() else None
        if kind is str:
            texts = cells.tolist()
            numbers = text_numbers(texts, np.int64)
            if numbers is None:
                return _milliseconds(texts)
            cells = numbers
        return cells if cells.dtype == np.int64 and self._are_times(cells) else None

    def _are_times(self, values: Column) -> bool:
        if not len(values):
            return True
        if values.min() >= MILLISECONDS and values.max() < MICROSECONDS:
            return True
        usual = (values >= MILLISECONDS) & (values < MICROSECONDS)
        return bool((usual | ((values > -MICROSECONDS) & (values < SECONDS))).all())


def _parsed(cell: Any) -> datetime | None:  # noqa: ANN401
    """Return the moment of a text or a date, local if it has no offset; None for other texts."""
    if isinstance(cell, str):
        text = _SPACE.sub("", cell.strip().upper())
        try:
            return msgspec.convert(text, _WITH_OFFSET)
        except msgspec.ValidationError:
            pass
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            return None
    if isinstance(cell, date) and not isinstance(cell, datetime):
        return datetime(cell.year, cell.month, cell.day)  # noqa: DTZ001 - local, as it has no zone
    return cell if type(cell) is datetime else None


def _milliseconds(texts: list[str]) -> NDArray[np.int64] | None:
    """Return the times of RFC 3339 texts; None if one needs a closer look."""
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    if (sizes == sizes[0]).all():
        return _of_one_size(texts, int(sizes[0]))
    lengths = np.unique(sizes).tolist()
    found = np.empty(len(texts), np.int64)
    for size in lengths if len(lengths) <= _MOST_LENGTHS else [0]:
        rows = np.flatnonzero(sizes == size)
        part = _of_one_size([texts[row] for row in rows.tolist()], size)
        if part is None:
            return None
        found[rows] = part
    return found


def _of_one_size(texts: list[str], size: int) -> NDArray[np.int64] | None:
    """Return the times of RFC 3339 texts of one length; None if one needs a closer look."""
    first, joined = texts[0], "\n".join(texts) + "\n"
    if _SHAPE.fullmatch(first) is None or not joined.isascii():
        return None
    chars = np.frombuffer(joined.encode(), np.uint8).reshape(len(texts), size + 1)
    digits = [place for place, one in enumerate(first) if one.isdigit()]
    marks = [place for place in range(size + 1) if place not in digits]
    zoned = first[-1] != "Z"
    end = size - (len("+00:00") if zoned else 1)
    numbers = chars - np.uint8(ord("0"))
    same = chars[:, marks] == chars[0, marks]
    if zoned:
        same[:, marks.index(end)] = np.isin(chars[:, end], (ord("+"), ord("-")))
    if not same.all() or (numbers[:, digits] > 9).any():  # noqa: PLR2004 - the largest digit
        return None
    try:
        seconds = np.ascontiguousarray(chars[:, :_SECONDS_END]).view(f"S{_SECONDS_END}")
        found = seconds.ravel().astype("datetime64[s]").astype(np.int64) * 1_000
    except ValueError:  # a day or an hour that there is not
        return None
    for place, weight in zip(range(_SECONDS_END + 1, end), (100, 10, 1), strict=False):
        found += numbers[:, place] * np.int64(weight)
    if (found < _FIRST_TIME).any():
        return None
    return _in_utc(found, numbers[:, end + 1 :], chars[:, end] == ord("-")) if zoned else found


def _in_utc(
    local: NDArray[np.int64], offsets: NDArray[np.uint8], negative: NDArray[np.bool_]
) -> NDArray[np.int64] | None:
    """Return times less their offsets, digits of "hh:mm"; None if one is not an offset."""
    hours, minutes = (offsets[:, at] * np.int64(10) + offsets[:, at + 1] for at in (0, 3))
    if (hours > _LAST_HOUR).any() or (minutes > _LAST_MINUTE).any():
        return None
    ahead = (hours * 60 + minutes) * 60_000
    return local - np.where(negative, -ahead, ahead)
