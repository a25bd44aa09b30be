"""Several pieces of bytes as one.

Governing rule: each piece is preceded by its length, so that any pieces come back as
they were, and nothing else does.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from abers._sealed import REMEDY
from abers.exceptions import StateError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["pack", "unpack"]

_LENGTH = struct.Struct("<Q")


def pack(pieces: Iterable[bytes]) -> bytes:
    """Join pieces."""
    return b"".join(part for piece in pieces for part in (_LENGTH.pack(len(piece)), piece))


def unpack(payload: memoryview) -> list[bytes]:
    """Take joined pieces apart, or raise a StateError."""
    pieces, at = [], 0
    while at < len(payload):
        length = int.from_bytes(payload[at : at + _LENGTH.size], "little")
        at += _LENGTH.size
        pieces.append(bytes(payload[at : at + length]))
        at += length
    if at != len(payload):
        msg = f"saved calibrator is cut short; {REMEDY}"
        raise StateError(msg)
    return pieces
