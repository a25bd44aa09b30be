"""Saved state: seals around bytes, checks of what is read, and one form for pickles and the disk.

A seal is 8 bytes of magic, the last of them the version of the format, then the payload, then 16
bytes of blake2b over both. With a secret key it is 8 bytes that say so, the magic, the length of
the owner's name, that name, the payload, and 32 bytes of blake2b under the key over all of it. No
payload is read before its seal is verified.

The checks raise a ValueError that names the value; the reader of a whole state turns it into a
StateError.
"""

from __future__ import annotations

import copy
import hmac
import math
import struct
import threading
from abc import ABC, abstractmethod
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np

from abers.exceptions import ParameterError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

__all__ = [
    "MAX_COUNT",
    "MAX_KEY_BYTES",
    "MIN_KEY_BYTES",
    "REMEDY",
    "CopiedWhole",
    "Piece",
    "Saveable",
    "as_bytes",
    "column",
    "count",
    "is_keyed",
    "number",
    "numbers",
    "pack",
    "require",
    "seal",
    "seal_pieces",
    "unpack",
    "unseal",
    "whole",
    "wholes",
]

Piece: TypeAlias = bytes | memoryview

MAX_COUNT = 1 << 48
"""The greatest count that is accepted; sums over bins and calibrators stay exact in 64 bits."""
MIN_KEY_BYTES, MAX_KEY_BYTES = 16, 64  # bytes of a key
REMEDY = "the bytes are damaged or not abers's; restore them from a copy"

_DIGEST_BYTES, _KEYED_DIGEST_BYTES = 16, 32
_KEYED = b"abersKS\x01"
_HEAD = struct.Struct("<8s8sI")  # marks a keyed seal; magic, length of the owner's name
_HINT = "the command line reads ABERS_STATE_KEY"
_LENGTH = struct.Struct("<Q")


# Seals


def is_keyed(blob: bytes) -> bool:
    """Return whether bytes are marked as sealed under a key."""
    return blob[: len(_KEYED) - 1] == _KEYED[:-1]


def seal(magic: bytes, payload: bytes, key: bytes | None = None, owner: str = "") -> bytes:
    """Return a payload under a seal: with a checksum, or under a key for its owner."""
    return b"".join(seal_pieces(magic, [payload], key, owner))


def seal_pieces(
    magic: bytes, pieces: Iterable[Piece], key: bytes | None = None, owner: str = ""
) -> Iterator[Piece]:
    """Yield the pieces of a payload under a seal, as `seal` joins them."""
    if key is None:
        digest = blake2b(magic, digest_size=_DIGEST_BYTES)
        yield magic
    else:
        digest = _keyed_digest(_checked(key))
        name = owner.encode()
        pieces = chain([_HEAD.pack(_KEYED, magic, len(name)) + name], pieces)
    for piece in pieces:
        digest.update(piece)
        yield piece
    yield digest.digest()


def as_bytes(blob: object, what: str) -> bytes:
    """Return a saved state as bytes; a ParameterError for the name of a file, say."""
    if isinstance(blob, bytes):
        return blob  # it may be large, so it is not copied
    try:
        return bytes(memoryview(blob))  # type: ignore[arg-type]
    except TypeError:
        msg = f"{what} is bytes, and not {type(blob).__name__}; read them from their file first"
        raise ParameterError(msg) from None


def unseal(
    magic: bytes, blob: bytes, what: str, key: bytes | None = None, owner: str | None = None
) -> memoryview:
    """Verify a seal and return its payload; `what` is the name of the state in messages.

    A key of None is for a seal with a checksum, and an owner of None accepts any. A StateError says
    that the bytes are damaged, of another kind or version, or under another key.
    """
    if key is not None:
        _checked(key)
    if is_keyed(blob):
        if key is None:
            msg = f"{what} is sealed, and there is no key; give the key that sealed it ({_HINT})"
            raise StateError(msg)
        return _unseal_keyed(magic, blob, what, key, owner)
    payload = _unseal_checksum(magic, blob, what)
    if key is not None:
        msg = (
            f"{what} is not sealed, and a key is given, so anybody may have written it; take one "
            f"that was saved under the key, or give no key ({_HINT})"
        )
        raise StateError(msg)
    return payload


def _unseal_checksum(magic: bytes, blob: bytes, what: str) -> memoryview:
    """Check kind, version and checksum, and return the payload."""
    if blob[: len(magic) - 1] != magic[:-1]:
        msg = f"not {what}; {REMEDY}"
        raise StateError(msg)
    if blob[len(magic) - 1 : len(magic)] != magic[-1:]:
        msg = (
            f"{what} of format {list(blob[len(magic) - 1 : len(magic)])}, this abers "
            f"reads format {magic[-1]}; load it with the version of abers that wrote it"
        )
        raise StateError(msg)
    payload = memoryview(blob)[len(magic) : -_DIGEST_BYTES]
    digest = blake2b(magic, digest_size=_DIGEST_BYTES)
    digest.update(payload)
    if blob[len(magic) + len(payload) :] != digest.digest():
        msg = f"{what} has a wrong checksum; {REMEDY}"
        raise StateError(msg)
    return payload


def _unseal_keyed(
    magic: bytes, blob: bytes, what: str, key: bytes, owner: str | None
) -> memoryview:
    """Check key, format and owner, and return the payload."""
    end = len(blob) - _KEYED_DIGEST_BYTES
    sealed = memoryview(blob)
    digest = _keyed_digest(key)
    digest.update(sealed[: max(end, 0)])
    if end < _HEAD.size or not hmac.compare_digest(digest.digest(), sealed[end:]):
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
    name = bytes(sealed[_HEAD.size : start]).decode()
    if owner is not None and name != owner:
        msg = f"{what} was sealed for {name!r}, not for {owner!r}; take the snapshot of {owner!r}"
        raise StateError(msg)
    return sealed[start:end]


def _keyed_digest(key: bytes) -> blake2b:
    return blake2b(key=key, digest_size=_KEYED_DIGEST_BYTES)


def _checked(key: bytes) -> bytes:
    if not isinstance(key, bytes):
        of = f"{MIN_KEY_BYTES} to {MAX_KEY_BYTES}"
        msg = f"key is a {type(key).__name__} and not bytes; give {of} random bytes"
        raise ParameterError(msg)
    if not MIN_KEY_BYTES <= len(key) <= MAX_KEY_BYTES:
        msg = f"key of {len(key)} bytes; give {MIN_KEY_BYTES} to {MAX_KEY_BYTES} random bytes"
        raise ParameterError(msg)
    return key


# Several byte strings in one


def pack(pieces: Iterable[bytes]) -> bytes:
    """Join byte strings, each after its length."""
    return b"".join(part for piece in pieces for part in (_LENGTH.pack(len(piece)), piece))


def unpack(payload: memoryview) -> list[bytes]:
    """Undo `pack`, or raise a StateError."""
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


# Checks of numbers that were saved


def require(condition: object, what: str) -> None:
    """Raise a ValueError that names what is wrong, unless a condition holds."""
    if not condition:
        raise ValueError(what)


def whole(value: Any, what: str, least: int, most: int) -> int:
    """Check a whole number between two ends."""
    require(type(value) is int and least <= value <= most, what)
    return int(value)


def count(value: Any, what: str, most: int = MAX_COUNT) -> int:
    """Check a count."""
    return whole(value, what, 0, most)


def number(value: Any, what: str, least: float = -math.inf, most: float = math.inf) -> float:
    """Check a number between two ends, which may be infinite; it is not NaN."""
    require(type(value) is float and least <= value <= most, what)
    return float(value)


def wholes(
    values: Any,
    what: str,
    size: int | None = None,
    most: int = MAX_COUNT,
) -> NDArray[np.int64]:
    """Check a list of counts."""
    require(_is_list(values, size), what)
    return np.array([count(one, what, most) for one in values], np.int64)


def numbers(
    values: Any,
    what: str,
    size: int | None = None,
    least: float = -math.inf,
    most: float = math.inf,
) -> NDArray[np.float64]:
    """Check a list of numbers between two ends."""
    require(_is_list(values, size), what)
    return np.array([number(one, what, least, most) for one in values], np.float64)


def column(given: Any, kind: str, what: str, size: int | None = None) -> NDArray[Any]:
    """Read a column from its little-endian bytes."""
    require(isinstance(given, bytes | memoryview), what)
    found = np.frombuffer(given, kind)
    require(size is None or len(found) == size, what)
    return found.astype(found.dtype.newbyteorder("="))


def _is_list(values: Sequence[Any], size: int | None) -> bool:
    return isinstance(values, list | tuple) and (size is None or len(values) == size)


_LOAD_ERRORS = (ValueError, TypeError, LookupError, OverflowError, struct.error)


class CopiedWhole:
    """Base of objects with whole copies: what one learns later, the other does not."""

    def __copy__(self) -> Self:
        """Return a deep copy."""
        return copy.deepcopy(self)


class Saveable(ABC):
    """Base of objects with a lock and a binary form. Two objects are equal if their bytes are."""

    _magic: ClassVar[bytes] = b""  # 8 bytes, the last is the version of the format

    def __new__(cls, *_args: Any, **_keywords: Any) -> Self:
        """Return an object with its lock; subclasses need not call `super().__init__`."""
        new = super().__new__(cls)
        new._lock = lock = threading.Lock()
        # `with lock` costs about as much as a prediction; calling these directly is faster.
        new._acquire, new._release, new._locked = lock.acquire, lock.release, lock.locked
        return new

    _lock: threading.Lock
    _acquire: Callable[[], object]
    _release: Callable[[], object]
    _locked: Callable[[], bool]

    @abstractmethod
    def _save(self) -> bytes:
        """Return the whole state: equal bytes for objects that behave alike."""

    @abstractmethod
    def _load(self, payload: memoryview) -> None:
        """Restore the state of these bytes, or raise a ValueError that says what is wrong."""

    @classmethod
    def _kind(cls) -> bytes:
        """Return the magic, by default a hash of the name of the class."""
        name = f"{cls.__module__}:{cls.__qualname__}".encode()
        return cls._magic or blake2b(name, digest_size=7).digest() + b"\x01"

    def state_bytes(self) -> bytes:
        """Return the state: equal bytes for objects that behave alike.

        Returns
        -------
        bytes
            The payload of `to_bytes`, without version and checksum.
        """
        with self._lock:
            return self._save()

    def to_bytes(self) -> bytes:
        """Save the state: versioned, with a checksum, the same on both backends.

        Returns
        -------
        bytes
            The argument of `from_bytes`.
        """
        return seal(self._kind(), self.state_bytes())

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """Restore a saved object, which goes on bit for bit as the original would have.

        Parameters
        ----------
        blob
            The result of `to_bytes`.

        Returns
        -------
        Self
            An object of this class.

        Raises
        ------
        StateError
            If the bytes are damaged, of another kind or of an unknown version.

        Examples
        --------
        >>> from abers import VennAbers
        >>> calibrator = VennAbers(window=1000)
        >>> calibrator.learn_one(0.7, 1)
        >>> VennAbers.from_bytes(calibrator.to_bytes()) == calibrator
        True
        """
        restored = cls.__new__(cls)
        restored.__setstate__(as_bytes(blob, f"a saved {cls.__name__}"))
        return restored

    def __setstate__(self, blob: bytes) -> None:
        """Restore the saved state, or raise a StateError."""
        name = type(self).__name__
        payload = unseal(self._kind(), blob, f"a saved {name}")
        try:
            self._load(payload)
            same = self._save() == bytes(payload)  # a memoryview compares slowly
        except StateError:
            raise
        except _LOAD_ERRORS as error:
            msg = f"saved {name} is inconsistent ({error}); {REMEDY}"
            raise StateError(msg) from None
        # A payload must be in the one form that `_save` writes; otherwise equal objects would have
        # different bytes.
        if not same:
            msg = f"saved {name} is inconsistent (form); {REMEDY}"
            raise StateError(msg)

    def __hash__(self) -> int:
        """Raise a TypeError; the state changes with each label."""
        msg = f"{type(self).__name__} can change, so it has no hash"
        raise TypeError(msg)

    def __eq__(self, other: object) -> bool:
        """Return whether the other has the same class and state."""
        if type(other) is not type(self) or not isinstance(other, Saveable):
            return NotImplemented
        return self is other or self.state_bytes() == other.state_bytes()

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        """Pickle and copy the saved form."""
        return type(self).from_bytes, (self.to_bytes(),)

    def __bool__(self) -> bool:
        """Return True even when it is empty, so that `calibrator or default` keeps it."""
        return True
