"""MessagePack in pieces, `abers.stream.component`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import StateError
from abers.stream.component import (
    ARRAY,
    BINARY,
    MAP,
    TEXT,
    encode,
    encode_array,
    encode_struct,
    header,
)

SIZES = sorted({0, *(2**n + more for n in (0, 4, 5, 8, 16) for more in (-1, 0, 1))})
PLAIN = st.none() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
VALUES = st.recursive(PLAIN, lambda some: st.lists(some) | st.tuples(some, some), max_leaves=20)


@given(VALUES)
def test_pieces_are_the_whole(value: Any) -> None:  # noqa: ANN401
    """Whatever the value, its pieces are the bytes that msgspec makes of it."""
    assert b"".join(encode(value)) == msgspec.msgpack.encode(value)


@pytest.mark.parametrize("size", SIZES)
def test_every_size_begins_as_the_standard_says(size: int) -> None:
    """A value of each kind begins as msgspec begins it, on both sides of each change of form."""
    wholes: dict[Any, Any] = {TEXT: "x" * size, BINARY: bytes(size), ARRAY: [None] * size}
    wholes[MAP] = dict.fromkeys(range(size))
    for kind, whole in wholes.items():
        begun = header(kind, size)
        assert msgspec.msgpack.encode(whole)[: len(begun)] == begun


def test_too_large() -> None:
    """A size that no header can hold is refused."""
    assert len(header(BINARY, 2**32 - 1)) == 5
    with pytest.raises(StateError, match="4,294,967,296 bytes or items, more than a snapshot can"):
        header(BINARY, 2**32)


def test_bytes_are_not_copied() -> None:
    """Bytes in a list are a piece of their own, the very object, whatever their size."""
    blob = bytes(1_000_000)
    assert any(piece is blob for piece in encode([1, (2, blob)]))


def test_items_are_made_when_it_is_their_turn() -> None:
    """Of an array only the item at hand is there."""
    made: list[int] = []
    values = (made.append(i) or i for i in range(3))  # type: ignore[func-returns-value]
    parts = encode_array(3, values)
    seen = [len(made) for _ in parts]
    assert seen == [0, 1, 2, 3]


def test_structures() -> None:
    """Fields in their order are a map."""
    whole = {"a": [1, b"x"], "b": "text"}
    parts = encode_struct({name: encode(value) for name, value in whole.items()})
    assert b"".join(parts) == msgspec.msgpack.encode(whole)
