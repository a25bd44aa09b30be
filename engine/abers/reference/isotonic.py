"""Isotonic regression of groups of labels, by pooling adjacent violators, in plain Python.

References
----------
Ayer, Brunk, Ewing, Reid & Silverman (1955), An empirical distribution function for sampling with
incomplete information.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Block", "covering", "pool"]


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
