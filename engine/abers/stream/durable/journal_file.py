"""The file of a journal that its writer appends to."""

from __future__ import annotations

import os

__all__ = ["JournalFile"]

_sync = getattr(os, "fdatasync", os.fsync)  # which some systems lack; it writes the size, too


class JournalFile:
    """Appends bytes, and returns when they are on disk.

    Parameters
    ----------
    descriptor
        Of the file, which is closed with this object.
    size
        Bytes of the file that are kept; what is behind them is cut off.

    Attributes
    ----------
    size
        Number of bytes.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor, self.size = descriptor, size
        os.ftruncate(descriptor, size)
        _sync(descriptor)  # a process that was killed may have left frames that are not on disk

    def append(self, data: bytes) -> None:
        """Append bytes; if an OSError is raised, nobody knows which of them are on disk."""
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._descriptor, rest, self.size)
            self.size += written
            rest = rest[written:]
        _sync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
