"""Sums over groups of forecasts with labels: a specification of the native core.

Terms are added row by row, so sums do not depend on how forecasts are batched.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np
from tests.oracles.elementary import logistic, logit
from tests.oracles.findings import ALL, Group
from tests.oracles.tally import BINS, EDGES

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = ["BIN_SUMS", "COUNTED", "HEAD", "TOLERANCES", "GroupSums"]

HEAD = 2
"""Number of sums before those of the halves: the weight and the cut."""
COUNTED = 4
"""Sums of each group before those of tolerances: labels, ones, forecasts, squares."""
BIN_SUMS = COUNTED + 2
"""Number of sums of a bin."""
TOLERANCES = 16
"""That of the verdicts, then a grid."""

_LEAST = float.fromhex("0x1.4875c38cc6b4ap-22")  # log odds of -15


class GroupSums:
    """Sums over forecasts above and below a running cut, and in ten equal bins.

    The sums are an array: the weight and the cut; for the lower and the upper half the number of
    labels, of ones, the sum of forecasts, that of squared distances, that of the lower end of
    each tolerance, and that of the upper end of each; for each bin the same with the ends of the
    first tolerance only.

    The cut is the mean of the log odds of the rows before, each clipped to 15 and weighted with
    p (1 - p). A row is in the upper half if its log odds are at least the cut, or if the weight of
    the rows before is 0. The mean is moved by its distance to each row, so that equal forecasts
    never move it.
    """

    def __init__(self, tolerances: Floats) -> None:
        """Start with no forecasts."""
        if len(tolerances) != TOLERANCES:
            msg = f"there are {TOLERANCES} tolerances"
            raise ValueError(msg)
        self.tolerances: list[float] = tolerances.tolist()
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

    @property
    def labels(self) -> int:
        """Number of labels."""
        return int(self.groups()[ALL].labels)

    @property
    def cut(self) -> float:
        """Forecast at which the halves meet now."""
        return logistic(float(self._sums[1]))

    def groups(self) -> list[Group]:
        """Return the sums of all forecasts, the lower half, the upper half, and each bin."""
        bins = self._sums[HEAD + 2 * self._half :].reshape(BINS, BIN_SUMS)
        return [*self.main_groups(0), *(Group(*row) for row in bins.tolist())]

    def main_groups(self, tolerance: int) -> list[Group]:
        """Return the sums of all forecasts and of both halves at one of the tolerances."""
        ends = COUNTED + tolerance
        rows = self._sums[HEAD : HEAD + 2 * self._half].reshape(2, self._half)
        halves = rows[:, [*range(COUNTED), ends, ends + TOLERANCES]].tolist()
        both = [low + high for low, high in zip(*halves, strict=True)]
        return [Group(*row) for row in (both, *halves)]

    def clear(self) -> None:
        """Begin anew."""
        self._sums[:] = 0.0

    def load(self, sums: Floats) -> None:
        """Replace the sums."""
        self._sums[:] = sums
