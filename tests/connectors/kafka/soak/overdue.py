"""How long snapshots were overdue."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["longest_overdue"]


def longest_overdue(partitions: Iterable[Sequence[tuple[float, float]]], every: int) -> float:
    """Return the most seconds for which a snapshot was due, and not yet saved.

    Parameters
    ----------
    partitions
        Times in seconds, and numbers of records after the newest snapshot, of each partition.
    every
        Number of records after which a snapshot is due.
    """
    longest = 0.0
    for samples in partitions:
        for due, run in groupby(samples, lambda one: one[1] > every):
            times = [at for at, _ in run]
            longest = max(longest, times[-1] - times[0] if due else 0.0)
    return longest
