"""JSON objects to rows and events.

A batch is decoded in one call into a typed record, which checks the type of each field. If any
record does not fit, the batch is read object by object, with the same result.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from abers_connectors.mapping.bad_record import BadRecordError
from abers_connectors.mapping.columns import FieldColumn
from abers_connectors.mapping.rows import events_of, row_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from abers.stream import Events
    from abers_connectors.mapping.fields import Record
    from abers_connectors.mapping.mapper import Mapper
    from abers_connectors.mapping.rows import Row
    from abers_connectors.mapping.typed_record import TypedRecord

    Metadata = Mapping[str, list[Any]]

__all__ = ["UNREADABLE", "JsonReader", "events_by_record"]

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, AttributeError)
"""What `JsonReader.read` raises if the texts must be read one by one."""


def events_by_record(
    records: Iterable[Record], mapper: Mapper, numbers: Iterable[int], metadata: Metadata
) -> Events:
    """Return the events of records with their metadata, mapped one by one."""
    if metadata:
        rows = zip(*metadata.values(), strict=True)
        records = (
            {**record, **dict(zip(metadata, row, strict=True))}
            for record, row in zip(records, rows, strict=True)
        )
    return events_of(list(map(mapper.row, records, numbers)))


class JsonReader:
    """Reads JSON objects, of which messages say that `each` holds one, such as "a line"."""

    def __init__(self, typed: TypedRecord | None, each: str) -> None:
        self.decode = msgspec.json.Decoder(dict[str, Any]).decode
        self._typed = None if typed is None else msgspec.json.Decoder(typed.record)
        self._each = each

    def read(
        self,
        raws: Sequence[bytes],
        mapper: Mapper,
        numbers: Iterable[int],
        metadata: Metadata | None = None,
    ) -> Events:
        """Return the events of texts, none of them blank, with their record numbers.

        Metadata has, by path, a value or None for each text. If a text needs a closer look, this
        raises one of `UNREADABLE` or a BadRecordError.
        """
        with suppress(*UNREADABLE):
            text = _joined(raws)  # the decoder skips fields that are not read
            if (events := self._typed_events(text, raws, mapper, metadata or {})) is not None:
                return events
        return events_by_record(map(self.decode, raws), mapper, numbers, metadata or {})

    def read_one(
        self, raw: bytes, mapper: Mapper, number: int, metadata: Metadata | None = None
    ) -> Row:
        """Return the row of one text of valid UTF-8, or raise a BadRecordError."""
        metadata = metadata or {}
        # The typed decoder goes first: it accepts some texts that the other refuses.
        with suppress(*UNREADABLE):
            if (events := self._typed_events(raw, [raw], mapper, metadata)) is not None:
                return row_of(events)
        extra = {path: value for path, (value,) in metadata.items()}
        return mapper.row({**self._record(raw), **extra}, number)

    def _typed_events(
        self, text: bytes, raws: Sequence[bytes], mapper: Mapper, metadata: Metadata
    ) -> Events | None:
        """Return the events of texts, joined in `text`; None if they need a closer look."""
        if self._typed is None or mapper.typed is None:
            return None
        joints = len(raws) - 1
        # If no text has a line end within, no object spans two texts, as a comma would be
        # missing between them: as many objects as texts are one each.
        if (
            text[:1] == b"{"
            and text[-1:] == b"}"
            and (text.count(b"}\n{") == joints == text.count(b"\n"))
        ):
            records = self._typed.decode_lines(text)
        else:
            records = [*map(self._typed.decode, raws)]
        if len(records) != len(raws):
            return None
        extra = {path: FieldColumn.of(found) for path, found in metadata.items()}
        return mapper.columns({**mapper.typed.columns(records), **extra})

    def _record(self, raw: bytes) -> Record:
        try:
            return self.decode(raw)
        except msgspec.ValidationError as error:
            detail = f"{error}; write one JSON object {self._each}, its numbers within range"
            raise BadRecordError("bad-record", detail) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            detail = (
                f"{error}; write one JSON object {self._each} (JSON has no NaN and no Infinity)"
            )
            raise BadRecordError("bad-json", detail) from None


def _joined(raws: Sequence[bytes]) -> bytes:
    """Return texts as lines, after a check that they are UTF-8."""
    joined = b"\n".join(raws)
    if not joined.isascii():
        joined.decode()
    return joined
