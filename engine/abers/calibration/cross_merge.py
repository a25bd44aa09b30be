"""The merge of K intervals for log loss, by functions that are the same on every machine.

Ends and merge are those of `CrossInterval`, but for last digits: a mixture remembers them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.backends import core
from abers.calibration.intervals import clamped, clamped_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.arrays import Floats

__all__ = ["merge", "merge_one"]


def merge(p0: Floats, p1: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the ends and the merge of intervals by fold, expert and prediction."""
    _, experts, n = p0.shape
    for_0, for_1 = np.empty((2, experts * n))
    core.geometric_means((1.0 - p0).reshape(len(p0), -1), for_0)
    core.geometric_means(p1.reshape(len(p1), -1), for_1)
    merged = clamped(for_1 / (for_0 + for_1))
    ends = np.minimum(1.0 - for_0, for_1), np.maximum(1.0 - for_0, for_1)
    low, high, found = (one.reshape(experts, n) for one in (*ends, merged))
    return low, high, found


def merge_one(ends: NDArray[np.float64]) -> list[tuple[float, float, float]]:
    """Return both ends and the merge of each expert from ends by fold and expert."""
    folds, experts, _ = ends.shape
    ends[:, :, 0] = 1.0 - ends[:, :, 0]
    means = np.empty(2 * experts)
    core.geometric_means(ends.reshape(folds, -1), means)
    found = []
    for for_0, for_1 in means.reshape(experts, 2).tolist():
        low, high = sorted((1.0 - for_0, for_1))
        found.append((low, high, clamped_number(for_1 / (for_0 + for_1))))
    return found
