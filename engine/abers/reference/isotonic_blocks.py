"""The blocks of the isotonic mean: the definition of `isotonic_blocks` of the native core.

References
----------
Ayer, Brunk, Ewing, Reid & Silverman (1955), for pooling adjacent violators.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from abers.arrays import Floats, Integers

__all__ = ["isotonic_blocks"]


def isotonic_blocks(scores: Floats, labels: Floats, starts: Integers, sums: Floats) -> int:
    """Write where each block starts, and the sum of its labels; return how many there are.

    Scores ascend; those that are equal are in one block.
    """
    blocks: list[tuple[int, float]] = []  # their means ascend
    stop = 0
    for _, rows in groupby(zip(scores.tolist(), labels.tolist(), strict=True), itemgetter(0)):
        start, total = stop, 0.0
        for _, label in rows:
            total, stop = total + label, stop + 1
        # Means are compared without a division, so that whole numbers are exact.
        while blocks and blocks[-1][1] * (stop - start) >= total * (start - blocks[-1][0]):
            left, before = blocks.pop()
            start, total = left, total + before
        blocks.append((start, total))
    for at, (start, total) in enumerate(blocks):
        starts[at], sums[at] = start, total
    return len(blocks)
