"""When labels come: laws of delays, and the steps of a stream under each.

A delay counts the observations that are predicted between a prediction and its label. All labels
that are still missing at the end come then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.arrays import LEARN, PREDICT

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Bytes = NDArray[np.uint8]
    Law = Callable[[Integers, np.random.Generator], Integers]

__all__ = ["BY_LABEL", "LAWS", "MEAN", "MOST", "RANDOM", "Steps", "equal", "steps"]

MEAN, MOST = 200.0, 1_000
"""Of delays that are drawn: the mean of their geometric law, and where they are cut."""


class Steps(NamedTuple):
    """Steps of a stream, in order: what each does, and with which row."""

    kinds: Bytes  # 0 predicts, 1 learns
    rows: Integers


def equal(delay: int) -> Law:
    """Let all labels be equally late."""
    return lambda labels, _: np.full(len(labels), delay)


def _random(labels: Integers, rng: np.random.Generator) -> Integers:
    return np.minimum(rng.geometric(1.0 / MEAN, len(labels)), MOST)


def _by_label(labels: Integers, rng: np.random.Generator) -> Integers:
    return np.where(labels == 1, _random(labels, rng), MOST)


BY_LABEL, RANDOM = "by label", "random"
LAWS: dict[str, Law] = {
    "at once": equal(0),
    "100 late": equal(100),
    "1,000 late": equal(1_000),
    "10,000 late": equal(10_000),
    BY_LABEL: _by_label,
    RANDOM: _random,
}


def steps(law: Law, labels: Integers) -> Steps:
    """Order predictions and labels, with delays of seed 0."""
    row = np.arange(len(labels))
    delays = law(labels, np.random.default_rng(0))
    order = np.argsort(np.concatenate((2 * row, 2 * (row + delays) + 1)), kind="stable")
    kinds = np.repeat(np.array([PREDICT, LEARN], np.uint8), len(row))
    return Steps(kinds[order], np.concatenate((row, row))[order])
