"""Slots, which partitions own: a hash of the model gives each model a slot, which never changes.

A partition owns a range of slots, so when partitions are doubled each range is cut in two.
"""

from __future__ import annotations

from functools import lru_cache

__all__ = ["SLOTS", "murmur2", "owners_of", "partition_of", "slot_of", "slots_of"]

SLOTS = 4096
"""Number of slots, and so the largest number of partitions."""

_KNOWN = 1 << 16  # models; their slots are kept
_WORD, _MIX, _SEED = 0xFFFFFFFF, 0x5BD1E995, 0x9747B28C


def murmur2(data: bytes) -> int:
    """Return the hash by which Java's clients choose the partition of a key, as 32 bits.

    Examples
    --------
    >>> hex(murmur2(b"fraud"))
    '0x62cd450a'
    """
    found = _SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        part = int.from_bytes(data[at : at + 4], "little") * _MIX & _WORD
        part = (part ^ part >> 24) * _MIX & _WORD
        found = found * _MIX & _WORD ^ part
    if rest := data[whole:]:
        found = (found ^ int.from_bytes(rest, "little")) * _MIX & _WORD
    found = (found ^ found >> 13) * _MIX & _WORD
    return found ^ found >> 15


@lru_cache(_KNOWN)
def slot_of(model: str) -> int:
    """Return the slot of a model.

    Examples
    --------
    >>> slot_of("fraud")
    1290
    """
    return (murmur2(model.encode("utf-8", "surrogatepass")) & 0x7FFFFFFF) % SLOTS


def slots_of(partition: int, partitions: int) -> range:
    """Return the slots that one of `partitions` partitions owns.

    Examples
    --------
    >>> slots_of(0, 3), slots_of(2, 3)
    (range(0, 1366), range(2731, 4096))
    """
    first, end = (-(-SLOTS * one // partitions) for one in (partition, partition + 1))
    return range(first, end)


def partition_of(model: str, partitions: int) -> int:
    """Return which of `partitions` partitions owns the slot of a model.

    Examples
    --------
    >>> partition_of("fraud", 16)
    5
    """
    return slot_of(model) * partitions // SLOTS


def owners_of(slots: range, partitions: int) -> range:
    """Return which of `partitions` partitions own at least one of the slots.

    Examples
    --------
    >>> owners_of(slots_of(1, 3), 6)
    range(2, 4)
    """
    return range(slots[0] * partitions // SLOTS, slots[-1] * partitions // SLOTS + 1)
