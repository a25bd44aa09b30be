"""Isotonic regression of integer weights, exactly.

Governing rule: adjacent violators are pooled by comparing products of integers, so the fit is the
definition's, and a value is rounded once, when it leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers._arrays import Integers

__all__ = ["Block", "covering", "pool", "pooled"]


class Block(NamedTuple):
    """A block of the isotonic regression: scores from lower to upper share one fitted value."""

    lower: float
    upper: float
    weight: int
    positives: int

    @property
    def value(self) -> float:
        """The fitted value, correctly rounded (as Python's integer division is)."""
        return self.positives / self.weight


def pool(groups: Iterable[tuple[float, tuple[int, int]]]) -> list[Block]:
    """Pool adjacent violators: the isotonic regression of groups that come in score order.

    Invariant of the loop: `blocks` is the isotonic regression of the groups read so far, its
    values strictly increasing.
    """
    blocks: list[Block] = []
    for upper, (negatives, positives) in groups:
        lower, weight = upper, negatives + positives
        while blocks and blocks[-1].positives * weight >= positives * blocks[-1].weight:
            lower, _, pooled_weight, pooled_positives = blocks.pop()
            weight += pooled_weight
            positives += pooled_positives  # noqa: PLW2901 - the block grows to the left
        blocks.append(Block(lower, upper, weight, positives))
    return blocks


def covering(blocks: Iterable[Block], score: float) -> Block:
    """Find the block of a fit that covers a score at which it has a group."""
    return next(block for block in blocks if block.upper >= score)


def pooled(counts: Integers, positives: Integers, ends: Integers) -> int:
    """Write the number of groups up to the end of each block of a fit; how many blocks it has.

    `counts`, all above 0, and `positives` are of groups in score order.
    """
    groups = zip((counts - positives).tolist(), positives.tolist(), strict=True)
    blocks = pool((float(end), group) for end, group in enumerate(groups, 1))
    ends[: len(blocks)] = [int(block.upper) for block in blocks]
    return len(blocks)
