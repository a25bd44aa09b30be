"""Bytes that say what they are and whether they are whole.

Governing rule: 8 bytes of magic, the last of which is the version of the
format, then the payload, then 16 bytes of blake2b over both; nothing of a
payload is looked at before its seal is known to be good.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

from abers.exceptions import StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["REMEDY", "Piece", "seal", "sealing", "unseal"]

Piece: TypeAlias = bytes | memoryview

REMEDY = "the bytes are damaged or not abers's; restore them from a copy"
_DIGEST = 16


def seal(magic: bytes, payload: bytes) -> bytes:
    """Put magic, version and checksum around a payload."""
    return b"".join(sealing(magic, [payload]))


def sealing(magic: bytes, pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Put magic, version and checksum around a payload that comes in pieces."""
    digest = blake2b(magic, digest_size=_DIGEST)
    yield magic
    for piece in pieces:
        digest.update(piece)
        yield piece
    yield digest.digest()


def unseal(magic: bytes, blob: bytes, what: str) -> memoryview:
    """Check magic, version and checksum, and take them off; `what` names it in messages."""
    if blob[: len(magic) - 1] != magic[:-1]:
        msg = f"not {what}; {REMEDY}"
        raise StateError(msg)
    if blob[len(magic) - 1 : len(magic)] != magic[-1:]:
        msg = (
            f"{what} of format {list(blob[len(magic) - 1 : len(magic)])}, this abers "
            f"reads format {magic[-1]}; load it with the version of abers that wrote it"
        )
        raise StateError(msg)
    payload = memoryview(blob)[len(magic) : -_DIGEST]
    if blob[len(magic) + len(payload) :] != _digest(magic, payload):
        msg = f"{what} has a wrong checksum; {REMEDY}"
        raise StateError(msg)
    return payload


def _digest(magic: bytes, payload: bytes | memoryview) -> bytes:
    digest = blake2b(magic, digest_size=_DIGEST)
    digest.update(payload)
    return digest.digest()
