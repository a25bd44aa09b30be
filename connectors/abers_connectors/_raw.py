"""What the bytes of a record may be, before anybody asks for its fields.

Governing rule: bytes that cannot be read are told by what they look like: too
many, those of another format, or no text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from abers_connectors.records import BadRecordError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["checked", "not_utf8", "too_large"]

T = TypeVar("T")

_WIRE_HEAD = 5  # a zero and the schema's id, before what a schema registry's client writes


def too_large(size: int, limit: int) -> BadRecordError:
    """Make the error of a record with more bytes than allowed."""
    detail = (
        f"{size} bytes, but input.max_record_bytes = {limit}; "
        "raise it if the record is as it should be"
    )
    return BadRecordError("too-large", detail)


def not_utf8(error: UnicodeDecodeError, what: str = "") -> BadRecordError:
    """Make the error of a text, called `what` in the message, that is not UTF-8."""
    byte = f"byte {error.object[error.start]:#04x} at place {error.start + 1}"
    return BadRecordError("not-utf8", f"{byte}{what} is not UTF-8; write it as UTF-8")


def checked(raw: bytes, read: Callable[[bytes], T]) -> T:
    """Read a text.

    Parameters
    ----------
    raw
        Its bytes.
    read
        Reads what is UTF-8, or raises a BadRecordError.

    Returns
    -------
    object
        What was read.

    Raises
    ------
    BadRecordError
        If it is none; that of a schema registry is told as such.
    """
    try:
        raw.decode()
        return read(raw)
    except (UnicodeDecodeError, BadRecordError) as error:
        if raw[:1] == b"\0" and len(raw) >= _WIRE_HEAD:
            raise _of_a_registry(raw) from None
        if isinstance(error, UnicodeDecodeError):
            raise not_utf8(error) from None
        raise


def _of_a_registry(raw: bytes) -> BadRecordError:
    schema = int.from_bytes(raw[1:_WIRE_HEAD])
    detail = (
        f"the record begins as a schema registry's clients write it (schema {schema}), "
        "not as text; have it written as JSON without a schema"
    )
    return BadRecordError("schema-registry", detail)
