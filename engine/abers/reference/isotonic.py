"""Isotonic regression of groups of labels, and its blocks, in plain Python.

The blocks of the isotonic mean: the definition of `isotonic_blocks` of the native core. References
---------- Ayer, Brunk, Ewing, Reid & Silverman (1955), for pooling adjacent violators.

References
----------
Ayer, Brunk, Ewing, Reid & Silverman (1955), An empirical distribution function for sampling with
incomplete information.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers.arrays import Floats, Integers

__all__ = ["Block", "covering", "isotonic_blocks", "pool"]


class Block(NamedTuple):
    """A block of the isotonic regression: scores from lower to upper share one fitted value."""

    lower: float
    upper: float
    weight: int  # of all labels
    positives: int  # weight of label 1

    @property
    def value(self) -> float:
        """The fitted value, correctly rounded (as Python's integer division is)."""
        return self.positives / self.weight


def pool(groups: Iterable[tuple[float, tuple[int, int]]]) -> list[Block]:
    """Return the isotonic regression of groups, by pooling adjacent violators.

    A group is a score and its weights of label 0 and label 1. Scores increase from group to group.
    """
    blocks: list[Block] = []
    # Invariant: `blocks` is the regression of the groups so far; its values strictly increase.
    for score, (negatives, group_positives) in groups:
        lower, weight, positives = score, negatives + group_positives, group_positives
        # Compares the two means without division, so without rounding.
        while blocks and blocks[-1].positives * weight >= positives * blocks[-1].weight:
            left = blocks.pop()
            lower = left.lower
            weight += left.weight
            positives += left.positives
        blocks.append(Block(lower, score, weight, positives))
    return blocks


def covering(blocks: Iterable[Block], score: float) -> Block:
    """Return the block that covers a score, which must be the score of a group."""
    return next(block for block in blocks if block.upper >= score)


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
