"""State that is saved as bytes: one form for pickling, copying, comparing and the disk."""

from __future__ import annotations

import copy
import struct
import threading
from abc import ABC, abstractmethod
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar, Self

from abers.exceptions import StateError
from abers.serialization import REMEDY, seal, unseal

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CopiedWhole", "Saveable"]

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
        restored.__setstate__(bytes(blob))
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
