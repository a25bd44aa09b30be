"""Sums over groups of forecasts with labels: a specification of the native core.

Terms are added row by row, so sums do not depend on how forecasts are batched.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np
from tests.oracles.elementary import logit
from tests.oracles.tally import BINS, EDGES

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = ["BIN_SUMS", "COUNTED", "HEAD", "GroupSums"]

HEAD = 2
"""Number of sums before those of the halves: the weight and the cut."""
COUNTED = 4
"""Sums of each group before those of tolerances: labels, labels 1, forecasts, squares."""
BIN_SUMS = COUNTED + 2
"""Number of sums of a bin."""

_LEAST = float.fromhex("0x1.4875c38cc6b4ap-22")  # log odds of -15


class GroupSums:
    """Sums over forecasts above and below a running cut, and in ten equal bins.

    The sums are an array: the weight and the cut; for the lower and the upper half the number of
    labels, of labels 1, the sum of forecasts, that of squared distances, that of the lower end of
    each tolerance, and that of the upper end of each; for each bin the same with the ends of the
    first tolerance only.

    The cut is the mean of the log odds of the rows before, each clipped to 15 and weighted with
    p (1 - p). A row is in the upper half if its log odds are at least the cut, or if the weight of
    the rows before is 0. The mean is moved by its distance to each row, so that equal forecasts
    never move it.
    """

    def __init__(self, tolerances: Floats) -> None:
        """Start with no forecasts."""
        if not len(tolerances):
            msg = "there is no tolerance"
            raise ValueError(msg)
        self._tolerances = tolerances.copy()
        self._half = COUNTED + 2 * len(tolerances)
        self._sums = np.zeros(HEAD + 2 * self._half + BINS * BIN_SUMS)

    def size(self) -> int:
        """Return the number of sums."""
        return len(self._sums)

    def add(self, forecasts: Floats, labels: Floats) -> None:
        """Add probabilities with labels 0 or 1."""
        for p, y in zip(forecasts.tolist(), labels.tolist(), strict=True):
            self._add(p, y)

    def _add(self, p: float, y: float) -> None:
        sums, n = self._sums, len(self._tolerances)
        weight, cut = sums[:HEAD].tolist()
        w, x = p * (1.0 - p), logit(min(max(p, _LEAST), 1.0 - _LEAST))
        upper = weight == 0.0 or x >= cut
        weight += w
        if w > 0.0:
            cut += (x - cut) * (w / weight)
        sums[:HEAD] = weight, cut
        q, scaled = 1.0 - p, p * self._tolerances
        ends = np.concatenate((p / (p + q * self._tolerances), scaled / (scaled + q)))
        counted = [1.0, y, p, (y - p) * (y - p)]
        start = HEAD + upper * self._half
        sums[start : start + self._half] += [*counted, *ends]
        start = HEAD + 2 * self._half + bisect_right(EDGES, p) * BIN_SUMS
        sums[start : start + BIN_SUMS] += [*counted, ends[0], ends[n]]

    def sums(self, out: Floats) -> None:
        """Write the sums."""
        out[:] = self._sums

    def is_undecided(self, main: float, bins: float) -> bool:
        """Return whether no group can be outside the first tolerance, nor all be inside.

        A deviation can only be a group's if its square is at least twice that of the distances,
        times a threshold: of the halves and their sum, or of the bins.
        """
        halves = self._groups(HEAD, self._half, 2, len(self._tolerances))
        both = [low + high for low, high in zip(*halves, strict=True)]
        parts = self._groups(HEAD + 2 * self._half, BIN_SUMS, BINS, 1)
        if any(_may_be_outside(one, main) for one in (both, *halves)):
            return False
        if any(_may_be_outside(one, bins) for one in parts):
            return False
        inside = (not one[0] or _may_be_inside(one, main) for one in halves)
        return not (_may_be_inside(both, main) and all(inside))

    def _groups(self, start: int, width: int, n: int, tolerances: int) -> list[list[float]]:
        """Return labels, labels 1, squares and both ends of n groups of sums."""
        rows = self._sums[start : start + n * width].reshape(n, width)
        columns = rows[:, [0, 1, 3, COUNTED, COUNTED + tolerances]]
        groups: list[list[float]] = columns.tolist()
        return groups

    def load(self, sums: Floats) -> None:
        """Replace the sums."""
        self._sums[:] = sums


def _may_be_outside(group: list[float], threshold: float) -> bool:
    _, observed, squares, least, most = group
    return any(
        deviation > 0.0 and deviation * deviation >= 2.0 * squares * threshold
        for deviation in (observed - most, least - observed)
    )


def _may_be_inside(group: list[float], threshold: float) -> bool:
    _, observed, squares, least, most = group
    return all(
        deviation > 0.0 and deviation * deviation >= 2.0 * squares * threshold
        for deviation in (most - observed, observed - least)
    )
