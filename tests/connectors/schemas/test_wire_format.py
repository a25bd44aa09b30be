"""The head of a record says its schema; anything else is a bad record."""

from __future__ import annotations

import pytest

from abers.stream.cells import BadRecordError
from abers_connectors.schemas.registry import head, message_indexes, schema_id


def test_a_head_has_the_schema_id() -> None:
    """A zero byte and four bytes, the most significant first."""
    assert head(0x01020304) == b"\0\x01\x02\x03\x04"
    assert schema_id(head(0xFFFFFFFF)) == 0xFFFFFFFF


@pytest.mark.parametrize(
    ("raw", "begins"),
    [
        (b"", "is empty"),
        (b"\0\0\0\0", "begins with 00 00 00 00"),
        (b"\x01\0\0\0\x07abc", "begins with 01 00 00 00 07"),
        (b'{"id": 1}', "begins with 7b 22 69 64 22"),
    ],
)
def test_another_beginning_is_a_bad_record(raw: bytes, begins: str) -> None:
    """A wrong magic byte and a record that is too short are named."""
    with pytest.raises(BadRecordError, match=begins) as found:
        schema_id(raw)
    assert found.value.reason == "bad-wire-format"


@pytest.mark.parametrize(
    ("after", "indexes"),
    [(b"\0", (0,)), (b"\x02\x02", (1,)), (b"\x06\x02\0\x80\x02", (1, 0, 128))],
)
def test_message_indexes(after: bytes, indexes: tuple[int, ...]) -> None:
    """Numbers in zigzag form, behind their count; a lone zero is the first type."""
    assert message_indexes(head(7) + after + b"body") == (indexes, 5 + len(after))


@pytest.mark.parametrize("after", [b"", b"\x02", b"\x01", b"\xff" * 9, b"\x02\x01", b"\xd0\x01"])
def test_bad_message_indexes(after: bytes) -> None:
    """Indexes that are cut, negative, too large or too many are a bad record."""
    with pytest.raises(BadRecordError, match="no indexes"):
        message_indexes(head(7) + after)
