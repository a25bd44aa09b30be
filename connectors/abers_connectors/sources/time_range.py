"""The part of a stream in a range of event time: rows, and row groups by their footers.

What the footer of a Parquet file says of its row groups, before any of them is read. Times and
names are those of the statistics, where the writer left some; without them nothing is skipped, and
the file may begin at any time.

Events outside the part are counted and dropped. A source that knows what lies outside does not read
it. Positions are those of the whole stream.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from abers.stream import Events
    from abers_connectors.sources.base import Batch, Origin, Position, Source
    from abers_connectors.sources.parquet import ParquetFile
    from abers_connectors.sources.parquet_pages import Statistics

__all__ = ["BEFORE_ALL", "Part", "TimeRange", "least_time", "narrowed", "wanted_groups"]

BEFORE_ALL = -(2**63)
_INTEGERS = ("INT64", "INT32")
_TICKS = {"milliseconds": 1, "microseconds": 1_000, "nanoseconds": 1_000_000}


class Part(NamedTuple):
    """The part of a stream that is wanted: times in milliseconds, and names of models."""

    since: int | None = None
    until: int | None = None
    models: Collection[str] = ()  # all if empty

    def may_have_time(self, bounds: tuple[int, int] | None) -> bool:
        """Return whether a time within bounds may be wanted."""
        if bounds is None:
            return True
        least, most = bounds
        late = self.until is not None and least >= self.until
        return not late and (self.since is None or most >= self.since)

    def may_have_model(self, bounds: tuple[str, str] | None) -> bool:
        """Return whether a name within bounds may be wanted."""
        if bounds is None or not self.models:
            return True
        return any(bounds[0] <= one <= bounds[1] for one in self.models)


def wanted_groups(file: ParquetFile, part: Part, time: str | None, model: str | None) -> list[int]:
    """Return the numbers of the row groups that may have wanted rows.

    Time and model are paths of columns in the file; None says that it does not have their values.
    """
    return [
        group
        for group in range(len(file.groups))
        if part.may_have_time(_times(file, group, time))
        and part.may_have_model(_names(file, group, model))
    ]


def least_time(file: ParquetFile, groups: Sequence[int], time: str | None) -> int:
    """Return a time that no row of these row groups is before."""
    bounds = [_times(file, group, time) for group in groups]
    return min((BEFORE_ALL if one is None else one[0] for one in bounds), default=BEFORE_ALL)


def _statistics(file: ParquetFile, group: int, column: str | None) -> tuple[Statistics, Any] | None:
    """Return the statistics of a column in a row group, and its type; None if unknown."""
    for number, found in enumerate(file.groups[group].columns[: len(file.schema)]):
        if found.path == column and found.statistics is not None:
            return found.statistics, file.schema.column(number)
    return None


def _times(file: ParquetFile, group: int, column: str | None) -> tuple[int, int] | None:
    """Return the least and the largest time in milliseconds; None if unknown."""
    if (found := _statistics(file, group, column)) is None:
        return None
    statistics, column_type = found
    if column_type.physical_type not in _INTEGERS:
        return None
    kind = json.loads(column_type.logical_type.to_json())
    least, most = (
        int.from_bytes(one, "little", signed=True) for one in (statistics.least, statistics.most)
    )
    if kind["Type"] == "Timestamp" and kind["isAdjustedToUTC"]:
        ticks = _TICKS[kind["timeUnit"]]
        return least // ticks, most // ticks
    return (least, most) if kind["Type"] in {"None", "Int"} else None


def _names(file: ParquetFile, group: int, column: str | None) -> tuple[str, str] | None:
    """Return the least and the largest name, in the order of characters; None if unknown."""
    if (found := _statistics(file, group, column)) is None:
        return None
    statistics, column_type = found
    if column_type.physical_type != "BYTE_ARRAY" or statistics.signed:
        return None
    if statistics.nulls != 0 or not statistics.least:
        return None  # records without a name belong to a model, too
    try:
        return statistics.least.decode(), statistics.most.decode()
    except UnicodeDecodeError:
        return None


@runtime_checkable
class _Narrowable(Protocol):
    """A source that need not read what lies outside a part."""

    def within(self, part: Part) -> Source: ...


def narrowed(source: Source, part: Part) -> Source:
    """Return a source that does not read what it knows to be outside a part, if it can."""
    return source.within(part) if isinstance(source, _Narrowable) else source


class TimeRange:
    """The events of a source at or after one time and before another, in milliseconds.

    With models, only those of these models.
    """

    def __init__(
        self,
        source: Source,
        since: int | None = None,
        until: int | None = None,
        models: Collection[str] = (),
    ) -> None:
        self.name = source.name
        self.dropped = 0  # events outside the part that were read
        self._source = narrowed(source, Part(since, until, models))
        self._since, self._until, self._models = since, until, frozenset(models)

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches after a position, without the events outside the part."""
        for batch in self._source.batches(position):
            kept = np.flatnonzero(self._inside(batch.events))
            self.dropped += len(batch.events) - len(kept)
            bad = [one._replace(row=int(np.searchsorted(kept, one.row))) for one in batch.bad]
            events, origin = batch.events.take(kept), _origin(batch, kept)
            yield replace(batch, events=events, bad=bad, origin=origin)

    def fraction(self) -> float | None:
        """Return the share of the source that has been read."""
        return self._source.fraction()

    def _inside(self, events: Events) -> NDArray[np.bool_]:
        inside = np.ones(len(events), bool)
        if self._since is not None:
            inside &= events.times >= self._since
        if self._until is not None:
            inside &= events.times < self._until
        if self._models:
            wanted = (name in self._models for name in events.models.tolist())
            inside &= np.fromiter(wanted, bool, len(events))
        return inside


def _origin(batch: Batch, kept: NDArray[np.intp]) -> Callable[[int], Origin]:
    return lambda row: batch.origin(int(kept[row]))
