"""What Python knows of the numbers of the native pending store.

The store joins observations and labels; `core.PendingStore` has its clocks, entries and limits.
"""

from __future__ import annotations

from enum import IntEnum, auto
from typing import TypeAlias

__all__ = [
    "APART",
    "ASSUMED",
    "ASSUMES",
    "EARLY",
    "ENTRY_BYTES",
    "FINISHED",
    "LATE",
    "NO_CLOCK",
    "PENDING",
    "QUORUM",
    "REPEATS",
    "WAITS",
    "Count",
    "Unknown",
]

PENDING, EARLY, FINISHED = 0, 1, 2
"""Kinds of entries: observations, labels before them, and ids that are done."""
ASSUMES, LATE = 2, 3
"""Kinds of steps beyond those that predict and learn; a late label is not learned."""
WAITS, REPEATS = 0, 1
"""Results of a label that is no step; with any other its observation no longer waits."""
ASSUMED = -1.0
"""What an observation has in the place of the bytes of its features once its label is assumed."""
ENTRY_BYTES = (180, 110, 110)
"""Bytes that an entry of each kind counts for, besides its id and features."""

QUORUM = 3
"""Number of ids that must agree when the clock of a model starts, or moves far."""
APART = 3
"""Factor of the distance of agreeing ids by which a single event may then be ahead."""
NO_CLOCK = -(1 << 61)
"""The clock of a step while it is unknown."""

Unknown: TypeAlias = "tuple[int, str, int, int, float]"
"""An unmatched label: row of the event that expired it, id, model, time, value."""


class Count(IntEnum):
    """Indices of the counts; in lower case their names.

    Each event is counted by one end, and so is each prediction; see `abers.stream.accounts`.
    """

    PREDICTIONS = 0
    LABELS = auto()  # learned, and not assumed
    ASSUMED = auto()
    EARLY_LABELS = auto()
    DUPLICATE_OBSERVATIONS = auto()
    DUPLICATE_LABELS = auto()
    LATE_LABELS = auto()
    LATE_EVENTS = auto()
    AHEAD_EVENTS = auto()
    EXPIRED = auto()  # those of retired models, too
    EVICTED = auto()
    RETIRED_OBSERVATIONS = auto()
    UNKNOWN_LABELS = auto()  # those that were evicted, too
    EVICTED_LABELS = auto()
    FORGOTTEN = auto()
