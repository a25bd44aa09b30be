"""Rows, which records become one by one, and their conversion to columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from abers import stream
from abers.stream.columns import column

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LabelledObservation", "Row", "events_of", "row_of"]


class LabelledObservation(NamedTuple):
    """An observation of a historical stream with its label."""

    observation: stream.Observation
    value: Any  # the label, which must not be used before it is released; None if not known yet
    time: int | None = None  # of the label, else of the observation; None if a delay decides


Row: TypeAlias = "stream.Event | LabelledObservation"
"""What a record becomes. The rows of a source are either all events or all labelled."""


def events_of(rows: Sequence[Row]) -> stream.Events:
    """Return rows as columns; the labels of labelled observations become `awaited`.

    >>> events_of([LabelledObservation(stream.Observation("a", 1, score=0.5), 1)]).awaited
    array([1])
    """
    if not rows or not isinstance(rows[0], LabelledObservation):
        return stream.Events.of(cast("Sequence[stream.Event]", rows))
    observations, values, times = zip(*cast("Sequence[LabelledObservation]", rows), strict=True)
    known = None if times[0] is None else column(times)
    return replace(stream.Events.of(observations), awaited=column(values), awaited_times=known)


def row_of(events: stream.Events) -> Row:
    """Return the row that a single event was made of."""
    (event,) = events
    if events.awaited is None:
        return event
    time = None if events.awaited_times is None else events.awaited_times.tolist()[0]
    return LabelledObservation(cast("stream.Observation", event), events.awaited.tolist()[0], time)
