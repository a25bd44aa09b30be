"""JSON objects to raw columns.

A text is decoded into a type with the wanted fields; their values may be anything; the other
fields are skipped. If one of several texts cannot be decoded, the whole call fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from abers.stream.cells import BadRecordError, Cells

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from abers.stream.cells import RawColumns

__all__ = ["JsonColumns", "Record", "columns_of"]

Record: TypeAlias = Mapping[str, Any]
"""The top-level fields of a record by name."""


class JsonColumns:
    """Decodes JSON objects; messages say that `each` has one, such as "a line".

    `fields` are the top-level fields that are wanted.
    """

    def __init__(self, fields: Collection[str], each: str) -> None:
        self._each = each
        try:
            record, self._columns = _struct(sorted(fields))
        except ValueError:  # a name that needs escapes
            record, self._columns = dict[str, Any], lambda records: columns_of(records, fields)
        self._decode: Callable[[bytes], Any] = msgspec.json.Decoder(record).decode

    def many(self, texts: Sequence[bytes]) -> RawColumns:
        """Return the columns of some texts, or raise if `one` refuses one of them."""
        # One by one costs no more than as lines, and no text is ever taken for two objects.
        records = [*map(self._decode, texts)]
        if not all(map(bytes.isascii, texts)):
            b"".join(texts).decode()  # the decoder does not check what it skips
        return self._columns(records)

    def one(self, text: bytes) -> RawColumns:
        """Return the columns of one text of valid UTF-8, or raise a BadRecordError."""
        try:
            return self._columns([self._decode(text)])
        except msgspec.ValidationError as error:
            detail = f"{error}; write one JSON object {self._each}, its numbers within range"
            raise BadRecordError("bad-record", detail) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            detail = (
                f"{error}; write one JSON object {self._each} (JSON has no NaN and no Infinity)"
            )
            raise BadRecordError("bad-json", detail) from None


def columns_of(records: Sequence[Record], fields: Collection[str]) -> RawColumns:
    """Return the columns of some fields of records; a field that none has is left out."""
    return _columns({name: [one.get(name) for one in records] for name in fields})


def _columns(found: Mapping[str, list[Any]]) -> RawColumns:
    return {name: Cells.of(cells) for name, cells in found.items() if _has_any(cells)}


def _has_any(cells: list[Any]) -> bool:
    return cells[0] is not None or cells.count(None) < len(cells)


def _struct(fields: Sequence[str]) -> tuple[Any, Callable[[list[Any]], RawColumns]]:
    """Return a type with these fields, and what makes columns of its objects."""
    names = [f"f{number}" for number in range(len(fields))]
    members = [(name, Any, None) for name in names]
    rename = dict(zip(names, fields, strict=True))
    record = msgspec.defstruct("Record", members, rename=rename, gc=False)
    # A literal attribute costs a third of `attrgetter`.
    parts = ", ".join(f"[one.{name} for one in records]" for name in names)
    read = eval(f"lambda records: [{parts}]")  # noqa: S307 - of names that are made above
    return record, lambda records: _columns(dict(zip(fields, read(records), strict=True)))
