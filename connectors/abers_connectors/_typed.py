"""From lines of JSON to events, a batch at a time.

Governing rule: the decoder itself checks what type each field has; a batch in
which any record is not plainly right is not taken here but read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from abers.stream.events import Label, Observation
from abers_connectors import values
from abers_connectors._paths import is_plain
from abers_connectors.records import BadRecordError, Labelled

if TYPE_CHECKING:
    from abers.stream.events import Event
    from abers_connectors.fields import Fields

__all__ = ["Typed", "labelled", "labels", "mixed"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Read = Callable[[Any], int]
_Value = bool | int | float | str


@dataclass(frozen=True)
class Typed(Generic[T_co]):
    """How plain records are read.

    Parameters
    ----------
    record
        What a record is decoded into.
    events
        From records to their events, or None if they need a closer look.
    """

    record: type[msgspec.Struct]
    events: Callable[[Sequence[Any]], Sequence[T_co] | None]


def mixed(fields: Fields, read: Read) -> Typed[Event] | None:
    """Compile what reads observations and labels."""

    def events(records: Sequence[Any]) -> list[Event]:
        return [
            Label(r.id, r.time, r.model, read(r.label))
            if r.score is None
            else Observation(r.id, r.time, r.model, r.score, None, r.segment)
            for r in records
        ]

    return _compiled(fields, events)


def labels(fields: Fields, read: Read) -> Typed[Label] | None:
    """Compile what reads labels."""
    return _compiled(
        fields, lambda records: [Label(r.id, r.time, r.model, read(r.label)) for r in records]
    )


def labelled(fields: Fields, read: Read) -> Typed[Labelled] | None:
    """Compile what reads observations with their labels."""

    def events(records: Sequence[Any]) -> list[Labelled] | None:
        if any(r.score is None for r in records):
            return None
        return [
            Labelled(Observation(r.id, r.time, r.model, r.score, None, r.segment), read(r.label))
            for r in records
        ]

    return _compiled(fields, events)


def _compiled(fields: Fields, make: Callable[[Sequence[Any]], list[T] | None]) -> Typed[T] | None:
    record = _struct(fields)
    if record is None:
        return None

    def events(records: Sequence[Any]) -> list[T] | None:
        texts = ([r.id for r in records], [r.model for r in records], [r.label for r in records])
        if any("" in column for column in texts):
            return None
        if not values.all_plain_times([r.time for r in records]):
            return None
        try:
            return make(records)
        except BadRecordError:
            return None

    return Typed(record, events)


def _struct(fields: Fields) -> type[msgspec.Struct] | None:
    """Make the type of a record; None if the mapping is not plain."""
    names = {"id": fields.id, "time": fields.time, "model": fields.model}
    names |= {"score": fields.score, "label": fields.label}
    if fields.segment is not None:
        names["segment"] = fields.segment
    paths = [*names.values()]
    if fields.x or fields.extra or len({*paths}) < len(paths) or not all(map(is_plain, paths)):
        return None
    columns: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        ("id", str),
        ("time", int),
        ("model", str, values.DEFAULT_MODEL),
        ("score", float | None, None),
        ("label", _Value | None, None),
    ]
    constants = {"segment": ""}
    if fields.segment is not None:
        columns.append(("segment", str, constants.pop("segment")))
    try:
        return msgspec.defstruct("Record", columns, rename=names, namespace=constants, gc=False)
    except ValueError:  # a name that would have to be escaped
        return None
