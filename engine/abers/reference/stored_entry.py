"""Entries of the pending store, and the bytes that they count for: part of its specification."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ENTRY_BYTES", "StoredEntry"]

ENTRY_BYTES = (180, 110, 110)
"""Bytes of a pending observation with its prediction, of an early label and of a finished id, each
without id and features: what it takes in memory."""


class StoredEntry(NamedTuple):
    """An entry of one of the three stores; its model and id are its name."""

    slot: int  # of a prediction: pending, and those gone since `recycle`, have distinct slots
    key: int
    time: int  # of the event; of a finished id that of its observation
    stored: int
    value: float  # the value of an early label; of an observation its features' bytes, or ASSUMED

    def size(self, store: int, id_: str) -> int:
        """Return the bytes of the entry, of its id, and of the features of an observation."""
        features = 0 if store else max(0, int(self.value))
        return ENTRY_BYTES[store] + len(id_.encode()) + features
