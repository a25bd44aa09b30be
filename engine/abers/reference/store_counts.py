"""What the pending store counts: part of its specification.

Each event is counted by one end, and so is each prediction; see `abers.stream.accounts`.
"""

from __future__ import annotations

from enum import IntEnum, auto

__all__ = ["Count"]


class Count(IntEnum):
    """Indices of the counts; in lower case their names."""

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
