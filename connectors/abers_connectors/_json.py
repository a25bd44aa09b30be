"""From texts of JSON, one object each, to rows and events.

Governing rule: many are read at once if all of them are plainly right, and
otherwise one by one, with the same result.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from abers_connectors._typed import given
from abers_connectors.records import BadRecordError, Row, gathered, row_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from abers.stream import Events
    from abers_connectors._paths import Record
    from abers_connectors._typed import Typed
    from abers_connectors.fields import Mapper

    Told = Mapping[str, list[Any]]

__all__ = ["UNREADABLE", "Json"]

UNREADABLE = (
    msgspec.DecodeError,
    UnicodeDecodeError,
    RecursionError,
    TypeError,
    AttributeError,
)
"""What `Json.read` raises if a text needs a closer look."""


class Json:
    """Reads objects.

    Parameters
    ----------
    typed
        How plain ones are read; None if none are.
    each
        What holds one, for messages: "a line".
    """

    def __init__(self, typed: Typed | None, each: str) -> None:
        self.decode = msgspec.json.Decoder(dict[str, Any]).decode
        self._typed = None if typed is None else msgspec.json.Decoder(typed.record)
        self._each = each

    def read(
        self,
        raws: Sequence[bytes],
        mapper: Mapper,
        numbers: Iterable[int],
        told: Told | None = None,
    ) -> Events:
        """Read all texts.

        Parameters
        ----------
        raws
            The texts, at least one, and none bad or blank.
        mapper
            What is read where.
        numbers
            Those of the records.
        told
            What is known beside the texts: by path a value for each, None where there is none.

        Returns
        -------
        Events
            One for each text, or an error: one of `UNREADABLE` or a BadRecordError.
        """
        with suppress(*UNREADABLE):
            text = _joined(raws)  # the decoder passes over what is not asked for
            if (events := self._plain(text, raws, mapper, told or {})) is not None:
                return events
        records: Iterable[Record] = map(self.decode, raws)
        if told:
            rows = zip(*told.values(), strict=True)
            records = (
                {**record, **dict(zip(told, row, strict=True))}
                for record, row in zip(records, rows, strict=True)
            )
        return gathered(list(map(mapper.row, records, numbers)))

    def read_one(self, raw: bytes, mapper: Mapper, number: int, told: Told | None = None) -> Row:
        """Read one text of valid UTF-8, as it is read among others; or raise a BadRecordError."""
        told = told or {}
        # The typed way first: it takes some texts that the other refuses.
        with suppress(*UNREADABLE):
            if (events := self._plain(raw, [raw], mapper, told)) is not None:
                return row_of(events)
        beside = {path: value for path, (value,) in told.items()}
        return mapper.row({**self._record(raw), **beside}, number)

    def _plain(
        self, text: bytes, raws: Sequence[bytes], mapper: Mapper, told: Told
    ) -> Events | None:
        """Read texts, joined in `text`, that are plainly right; None if they need a closer look."""
        if self._typed is None or mapper.typed is None:
            return None
        joints = len(raws) - 1
        # If no text goes on over lines, then no object does over the end of a text, where a comma
        # would be: as many objects as texts are one each.
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
        beside = {path: given(values) for path, values in told.items()}
        return mapper.columns({**mapper.typed.columns(records), **beside})

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
    """Join texts, which have to be UTF-8, as lines."""
    joined = b"\n".join(raws)
    if not joined.isascii():
        joined.decode()
    return joined
