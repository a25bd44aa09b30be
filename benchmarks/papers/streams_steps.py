"""When labels come: laws of delays, and the steps of a stream under each.

A delay counts the observations that are predicted between a prediction and its label. All labels
that are still missing at the end come then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.arrays import LEARN, PREDICT

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Bytes = NDArray[np.uint8]
    Labels = NDArray[Any]  # classes, or numbers
    Law = Callable[[Labels, np.random.Generator], Integers]

__all__ = [
    "AT_ONCE",
    "BY_LABEL",
    "LAWS",
    "LAWS_OF_NUMBERS",
    "MEAN",
    "MOST",
    "RANDOM",
    "Steps",
    "equal",
    "steps",
]

MOST, _SHARE = 1_000, 0.2
MEAN = _SHARE * MOST
"""Of delays that are drawn: the mean of their geometric law, and where they are cut."""


class Steps(NamedTuple):
    """Steps of a stream, in order: what each does, and with which row."""

    kinds: Bytes  # 0 predicts, 1 learns
    rows: Integers

    def since(self, row: int) -> Steps:
        """Return the steps of the rows from one on, which then counts as 0."""
        kept = self.rows >= row
        return Steps(self.kinds[kept], self.rows[kept] - row)


def equal(delay: int) -> Law:
    """Let all labels be equally late."""
    return lambda labels, _: np.full(len(labels), delay)


def geometric(most: int) -> Law:
    """Draw delays from a geometric law, cut at `most`, with a mean of a fifth of that."""
    return lambda labels, rng: np.minimum(rng.geometric(1.0 / (_SHARE * most), len(labels)), most)


def late(most: int, which: Callable[[Labels], NDArray[np.bool_]]) -> Law:
    """Let some labels come after `most`, and draw the delays of the others."""
    return lambda labels, rng: np.where(which(labels), most, geometric(most)(labels, rng))


AT_ONCE, BY_LABEL, RANDOM = "at once", "by label", "random"
LAWS: dict[str, Law] = {
    AT_ONCE: equal(0),
    "100 late": equal(100),
    "1,000 late": equal(1_000),
    "10,000 late": equal(10_000),
    BY_LABEL: late(MOST, lambda labels: labels % 2 == 0),
    RANDOM: geometric(MOST),
}


LAWS_OF_NUMBERS: dict[str, Callable[[int], Law]] = {
    AT_ONCE: lambda _: equal(0),
    "late": lambda most: equal(most // 10),
    "very late": equal,
    BY_LABEL: lambda most: late(most, lambda labels: labels > np.median(labels)),
}
"""The same for streams of numbers, by the longest delay."""


def steps(law: Law, labels: Labels) -> Steps:
    """Order predictions and labels, with delays of seed 0."""
    row = np.arange(len(labels))
    delays = law(labels, np.random.default_rng(0))
    order = np.argsort(np.concatenate((2 * row, 2 * (row + delays) + 1)), kind="stable")
    kinds = np.repeat(np.array([PREDICT, LEARN], np.uint8), len(row))
    return Steps(kinds[order], np.concatenate((row, row))[order])
