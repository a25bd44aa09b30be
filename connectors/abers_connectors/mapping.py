"""Raw columns of records and tables: what is checked before their values are read.

The checks on the raw bytes of a record. A record is checked before its fields are read: it must be
within the size limit and UTF-8, and not in the format of a schema registry.

JSON objects to raw columns. A text is decoded into a type with the wanted fields; their values may
be anything; the other fields are skipped. If one of several texts cannot be decoded, the whole call
fails.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from abers.exceptions import ParameterError
from abers.stream.cells import FIELDS, LABEL_FIELDS, BadRecordError, Cells, root
from abers.stream.option import Option, Ref, said
from abers.stream.readers import number
from abers.suggestions import closest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from abers.stream.cells import RawColumns
    from abers.stream.columns import Schema

__all__ = [
    "JsonColumns",
    "Record",
    "checked",
    "columns_of",
    "csv_fault",
    "not_utf8",
    "require_columns",
    "too_large",
]

T = TypeVar("T")

_WIRE_HEAD = 5  # a zero byte and the schema id, before what a schema registry's client writes


def too_large(size: int, limit: int) -> BadRecordError:
    """Return the error for a record that exceeds the size limit."""
    most = Ref(Option("input.max_record_bytes", name="max_record_bytes"), limit)
    remedy = "; raise it if the record is as it should be"
    return BadRecordError("too-large", f"{size} bytes, but ", most, remedy)


def not_utf8(error: UnicodeDecodeError, what: str = "") -> BadRecordError:
    """Return the error for a text, named `what` in the message, that is not UTF-8."""
    byte = f"byte {error.object[error.start]:#04x} at position {error.start + 1}"
    return BadRecordError("not-utf8", f"{byte}{what} is not UTF-8; write it as UTF-8")


def csv_fault(error: Exception) -> str:
    """Return what is wrong with a line of CSV, and how to fix it, by the error of the reader."""
    if "new-line" in str(error):
        return "a field has \\r without quotes; quote the field or remove \\r"
    return f"{error}; see that every quote is closed"


def checked(raw: bytes, read: Callable[[bytes], T]) -> T:
    """Return what `read` makes of a record, or raise a BadRecordError if it is not UTF-8.

    Bytes that begin as a schema registry's clients write them get an error that says so.
    """
    try:
        raw.decode()
        return read(raw)
    except (UnicodeDecodeError, BadRecordError) as error:
        if raw[:1] == b"\0" and len(raw) >= _WIRE_HEAD:
            raise _schema_registry(raw) from None
        if isinstance(error, UnicodeDecodeError):
            raise not_utf8(error) from None
        raise


def _schema_registry(raw: bytes) -> BadRecordError:
    schema = int.from_bytes(raw[1:_WIRE_HEAD])
    detail = (
        f"the record begins as a schema registry's clients write it (schema {schema}), "
        'not as text; set input.format = "avro", "protobuf" or "json-schema", or write it as JSON '
        "without a schema"
    )
    return BadRecordError("schema-registry", detail)


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
            found = "it is a JSON array" if text.lstrip().startswith(b"[") else error
            detail = f"{found}; write one JSON object {self._each}, its numbers within range"
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


def require_columns(schema: Schema, name: str, columns: Sequence[str]) -> None:
    """Raise a ParameterError with all columns that an input lacks and its schema needs.

    A model or a segment may be missing, but not be there under a name in another case.
    """
    where = said((LABEL_FIELDS if schema.kind == "labels" else FIELDS,), schema.readers.front)
    if lacking := [paths for paths in schema.needs if not _is_there(columns, paths)]:
        *others, last = (f"no column {' or '.join(paths)}" for paths in lacking)
        what = " and ".join(filter(None, (", ".join(others), last)))
        msg = (
            f"{name} has {what}; its columns are {', '.join(columns)}; name the right "
            f"{'ones' if others else 'one'} {where}{_hint(lacking, columns)}"
        )
        raise ParameterError(msg)
    for path in schema.names:
        same = [one for one in columns if one.casefold() == path.casefold()]
        if same and path not in same:
            msg = (
                f"{name} has no column {path}, but {' and '.join(same)}; name the right one "
                f"{where}, or rename it"
            )
            raise ParameterError(msg)


def _is_there(columns: Sequence[str], paths: Iterable[str]) -> bool:
    roots = [root(path) for path in paths]
    return any(not names or not set(names).isdisjoint(columns) for names in roots)


def _hint(lacking: Sequence[Sequence[str]], columns: Sequence[str]) -> str:
    """Return the end of a message about missing columns: guesses, or the empty string."""
    near = {path: closest(path, columns) for paths in lacking for path in paths}
    if guesses := {path: one for path, one in near.items() if one is not None}:
        pairs = [one if len(lacking) == 1 else f"{one} for {path}" for path, one in guesses.items()]
        return f"; did you mean {', '.join(pairs)}?"
    if any(math.isfinite(number(one)) for one in columns):
        return "; is the first line a record? Then write the names of the columns above it"
    return ""
