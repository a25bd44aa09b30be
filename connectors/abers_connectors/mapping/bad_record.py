"""The checks on the raw bytes of a record.

A record is checked before its fields are read: it must be within the size limit and UTF-8, and
not in the format of a schema registry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from abers.stream.cells import BadRecordError
from abers.stream.option import Option, Ref

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["checked", "not_utf8", "too_large"]

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
