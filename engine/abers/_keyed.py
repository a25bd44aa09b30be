"""Bytes under a secret key, for one place.

Governing rule: nothing under the seal is looked at before the key has shown that somebody who has
it sealed these bytes, and the place in them is the one that is asked for.

Without a key the bytes are those of `abers._sealed`. With one they are 8 bytes that say so, the
magic of what is sealed, the length of the place, the place, the payload, and 32 bytes of blake2b
under the key over all of that.
"""

from __future__ import annotations

import hmac
import struct
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING

from abers import _sealed
from abers.exceptions import ParameterError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from abers._sealed import Piece

__all__ = ["LONGEST", "SHORTEST", "is_keyed", "seal", "sealing", "unseal"]

SHORTEST, LONGEST = 16, 64  # bytes of a key

_KEYED = b"abersKS\x01"
_DIGEST = 32
_HEAD = struct.Struct("<8s8sI")  # that it is under a key, of what kind it is, length of the place
_HINT = "the command line reads ABERS_STATE_KEY"


def is_keyed(blob: bytes) -> bool:
    """Tell whether bytes say that they are under a key."""
    return blob[: len(_KEYED) - 1] == _KEYED[:-1]


def seal(magic: bytes, payload: bytes, key: bytes | None, place: str) -> bytes:
    """Put a seal around a payload: under a key, for a place, or a checksum without a key."""
    return b"".join(sealing(magic, [payload], key, place))


def sealing(
    magic: bytes, pieces: Iterable[Piece], key: bytes | None, place: str
) -> Iterator[Piece]:
    """Put a seal around a payload that comes in pieces, as `seal` does."""
    if key is None:
        yield from _sealed.sealing(magic, pieces)
        return
    of = place.encode()
    head = _HEAD.pack(_KEYED, magic, len(of)) + of
    digest = _begun(_checked(key))
    for piece in chain([head], pieces):
        digest.update(piece)
        yield piece
    yield digest.digest()


def unseal(
    magic: bytes, blob: bytes, what: str, key: bytes | None, place: str | None
) -> memoryview:
    """Check a seal, and take it off.

    Parameters
    ----------
    magic, what
        Of the kind that is asked for, and its name in messages.
    key
        The secret under which it must be; None if it must be under none.
    place
        Whose it must be; None takes that of any place.
    """
    if key is not None:
        _checked(key)
    if is_keyed(blob):
        if key is None:
            msg = f"{what} is sealed, and there is no key; give the one it has ({_HINT})"
            raise StateError(msg)
        return _unsealed(magic, blob, what, key, place)
    payload = _sealed.unseal(magic, blob, what)
    if key is not None:
        msg = (
            f"{what} is not sealed, and a key is given, so anybody may have written it; take one "
            f"that was saved under the key, or give no key ({_HINT})"
        )
        raise StateError(msg)
    return payload


def _unsealed(magic: bytes, blob: bytes, what: str, key: bytes, place: str | None) -> memoryview:
    end = len(blob) - _DIGEST
    whole = memoryview(blob)
    digest = _begun(key)
    digest.update(whole[: max(end, 0)])
    if end < _HEAD.size or not hmac.compare_digest(digest.digest(), whole[end:]):
        msg = (
            f"{what} was sealed under another key, or was changed since; give the key it was "
            "saved under, or restore it from a copy"
        )
        raise StateError(msg)
    keyed, kind, length = _HEAD.unpack_from(blob)
    start = _HEAD.size + length
    if keyed != _KEYED or kind != magic:
        msg = (
            f"{what} is sealed in another format ({keyed + kind!r}, this abers reads "
            f"{_KEYED + magic!r}); load it with the version of abers that wrote it"
        )
        raise StateError(msg)
    of = bytes(whole[_HEAD.size : start]).decode()
    if place is not None and of != place:
        msg = f"{what} was sealed for {of!r}, not for {place!r}; take the one of this place"
        raise StateError(msg)
    return whole[start:end]


def _begun(key: bytes) -> blake2b:
    return blake2b(key=key, digest_size=_DIGEST)


def _checked(key: bytes) -> bytes:
    if not SHORTEST <= len(key) <= LONGEST:
        msg = f"key of {len(key)} bytes; give {SHORTEST} to {LONGEST} random ones"
        raise ParameterError(msg)
    return key
