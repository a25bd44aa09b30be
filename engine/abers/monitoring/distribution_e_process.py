"""E-processes against predictive distributions and their intervals: they grow if miscalibrated.

A bet on an observation is made from the labels of those before it, and settled in the order of the
observations, whenever labels come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.backends import core
from abers.exceptions import ParameterError
from abers.monitoring.e_processes import EProcess
from abers.monitoring.regression import spread
from abers.monitoring.tests import EDetector, Martingale
from abers.serialization import MAX_COUNT, column, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.arrays import Floats
    from abers.monitoring.tests import SequentialTest

__all__ = ["DistributionEProcess"]

_BINS = 10  # of the PIT values
_FORGET = 1.0 - 1.0 / 500.0  # share of a count that is left at the next label, for the detector
_PRIOR = 0.5  # labels in each bin before the first


class _Frequencies:
    """Betting strategy: labels fall into bins as often as they did before."""

    def __init__(self, null: Sequence[float], forget: float, *, capped: bool = False) -> None:
        self._null, self._forget, self._capped = np.array(null), forget, capped
        self._prior = _PRIOR * len(null) * self._null
        self.counts = np.zeros(len(null))

    def factors(self, shares: Floats) -> Floats:
        """Return the factor of each label, given by its shares in the bins, and count it."""
        found = np.empty(len(shares))
        known = (self._null, self._prior, self.counts, self._forget)
        core.bet_on_bins(shares, *known, found, capped=self._capped)
        return found


class DistributionEProcess(EProcess):
    """Test whether intervals cover what they should, and PIT values are uniform.

    Parameters
    ----------
    levels
        Share of the labels that each interval should cover, between 0 and 1.
    pit
        Whether PIT values are tested too.
    alpha, average_run_length, cooldown, grace_period
        As of `CalibrationEProcess`.

    Raises
    ------
    ParameterError
        If a level is not between 0 and 1.

    Notes
    -----
    **Coverage.** The hypothesis of the test "coverage-0.9" is that P(the interval covers the
    label), given the labels of all observations before it, is at least 0.9. The bet is the share q
    of the intervals before that covered, after one at the level itself, but none above the level:
    the factor is q/0.9 for an interval that covers and (1 - q)/0.1 for one that does not. Its mean
    is at most 1, so that intervals may be too wide, as they are while little is known.

    **PIT.** The hypothesis of the test "pit" is that the label, given all labels before it, has the
    distribution predicted. Then its PIT value, drawn evenly between the CDF just below the label
    and at it, is uniform. The bet is on ten equal bins by how many values fell into each before,
    starting with half a value each; the factor is the mean over that draw, so nothing is random.

    **Change.** The detector multiplies the factors of the PIT values, or if there are none the mean
    of those of the intervals, where older labels count less: with each label, counts lose a five
    hundredth.

    **Guarantee.** That of each test, see `Martingale` and `EDetector`. As of
    `CalibrationEProcess`, an observation that expires is left out, which is valid only if being
    without a label does not depend on the label.

    References
    ----------
    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting; Arnold,
    Henzi & Ziegel (2023), Sequentially valid tests for forecast calibration; Krichevsky & Trofimov
    (1981), The performance of universal encoding.

    Examples
    --------
    >>> from abers.monitoring import EProcessSteps
    >>> process = DistributionEProcess([0.9])
    >>> numbers = np.arange(30)
    >>> steps = [np.full(30, kind, np.uint8) for kind in (0, 1)]
    >>> for kinds in steps:  # predict 30 observations, of which none is covered
    ...     opened = process.run(EProcessSteps(kinds, numbers, numbers, np.zeros((30, 1))))
    >>> [(one.test, one.incident.first) for one in opened]
    [('coverage-0.9', 3), ('change', 7)]
    """

    def __init__(  # noqa: PLR0913 - each is a choice
        self,
        levels: Sequence[float],
        *,
        pit: bool = False,
        alpha: float = 0.01,
        average_run_length: float = 1_000_000.0,
        cooldown: float = 10_000.0,
        grace_period: int = 0,
    ) -> None:
        if any(not 0.0 < level < 1.0 for level in levels):
            msg = f"levels {list(levels)} are not all between 0 and 1"
            raise ParameterError(msg)
        nulls = [(1.0 - level, level) for level in levels]
        self._pit = pit
        self._since = [_Frequencies(null, 1.0, capped=True) for null in nulls]
        self._recent = [_Frequencies(null, _FORGET, capped=True) for null in nulls]
        names = [f"coverage-{level:.9g}" for level in levels]
        if pit:
            uniform = [1.0 / _BINS] * _BINS
            self._since.append(_Frequencies(uniform, 1.0))
            self._recent = [_Frequencies(uniform, _FORGET)]
            names.append("pit")
        tests: list[SequentialTest] = [Martingale(name, alpha=alpha) for name in names]
        if names:
            change = {"average_run_length": average_run_length, "cooldown": cooldown}
            tests.append(EDetector("change", **change))
        super().__init__(tests, max(1, len(levels) + 2 * pit), grace_period)

    def _factors(self, rows: Floats) -> list[list[float]]:
        shares = self._shares(rows)
        found = [one.factors(part) for one, part in zip(self._since, shares, strict=True)]
        # The last ones are of the PIT values, if there are any.
        recent = zip(self._recent, shares[-len(self._recent) :], strict=True)
        changes = [one.factors(part) for one, part in recent]
        if changes:
            found.append(sum(changes[1:], changes[0]) / len(changes))
        return [one.tolist() for one in found]

    def _shares(self, rows: Floats) -> list[Floats]:
        """Return the shares of each label in the bins of each strategy."""
        covered = rows[:, :-2] if self._pit else rows[:, : len(self._since)]
        shares = [np.column_stack((1.0 - one, one)) for one in covered.T]
        if self._pit:
            shares.append(spread(rows[:, -2], rows[:, -1], _BINS))
        return shares

    def _dump(self) -> list[bytes]:
        return [one.counts.astype("<f8").tobytes() for one in (*self._since, *self._recent)]

    def _restore(self, strategies: Sequence[bytes]) -> None:
        for one, saved in zip((*self._since, *self._recent), strategies, strict=True):
            counts = column(saved, "<f8", "counts of bins", len(one.counts))
            require(((counts >= 0.0) & (counts <= MAX_COUNT)).all(), "counts of bins")
            one.counts[:] = counts

    def _sound(self, rows: Floats, labelled: NDArray[np.bool_]) -> bool:
        values = rows[labelled]
        return bool(((values >= 0.0) & (values <= 1.0)).all())
