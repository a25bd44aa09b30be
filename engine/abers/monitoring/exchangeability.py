"""Conformal test martingale: it grows if scores are no longer exchangeable.

Only the rank of a score among those before it counts. The seed and the number of the score decide
the draw that breaks a tie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers import validation
from abers.arrays import unmasked
from abers.monitoring.tests import EDetector, Martingale
from abers.serialization import CopiedWhole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from abers.arrays import Floats, Integers
    from abers.monitoring.tests import Evidence, SequentialTest

__all__ = ["ExchangeabilityEProcess"]

_CELLS = 4096  # of the grid of scores: bounds memory
_PART = 64  # scores that are compared with each other at once
_JUMP = 0.01  # share of the wealth that is redistributed at each step
_BETS = 3  # against large ranks, against none, and against small ranks


class ExchangeabilityEProcess(CopiedWhole):
    """Test whether scores are exchangeable, by betting against their ranks.

    Parameters
    ----------
    seed
        Seed of the draws that break ties.
    alpha, average_run_length, cooldown
        As of `CalibrationEProcess`.

    Notes
    -----
    Let n scores have come, this score included. Its conformal p-value is (the number of larger
    scores + an evenly drawn share of the number of equal scores) / n. Scores are first put on a
    grid of 4,096 cells by s / (1 + |s|), which leaves ranks as they are but for ties. If scores are
    exchangeable, p-values are independent and uniform (Vovk, Gammerman & Shafer 2005), with any
    grid. The bet is the Simple Jumper: the factor 1 + e (p - 1/2) for e = -1, 0 and 1, each with
    its share of the wealth; 0.01 of it is redistributed evenly before each step.

    **Guarantee.** That of each test, see `Martingale` and `EDetector`, if scores are exchangeable,
    like those of a fixed scorer on independent observations of one kind. It needs no labels. A
    scorer that keeps learning changes its scores, and voids the guarantee.

    References
    ----------
    Vovk, Gammerman & Shafer (2005), Algorithmic Learning in a Random World, chapter 7; Vovk,
    Petej, Nouretdinov, Ahlberg, Carlsson & Gammerman (2021), Retrain or not retrain: conformal
    test martingales for change-point detection, Algorithm 1.

    Examples
    --------
    >>> process = ExchangeabilityEProcess()
    >>> rng = np.random.default_rng(1)
    >>> _ = process.update(rng.normal(0.0, 1.0, 1_000))
    >>> [one.active for one in process.evidence()]
    [False, False]
    >>> _ = process.update(rng.normal(1.5, 1.0, 500))
    >>> [one.active for one in process.evidence()]
    [True, True]
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        alpha: float = 0.01,
        average_run_length: float = 1_000_000.0,
        cooldown: float = 10_000.0,
    ) -> None:
        self._seed = seed
        self._tests: tuple[SequentialTest, ...] = (
            Martingale("exchangeability", alpha=alpha),
            EDetector("change", average_run_length=average_run_length, cooldown=cooldown),
        )
        self._cells = np.zeros(_CELLS, np.int64)
        self._count = 0
        self._shares = [1.0 / _BETS] * _BETS

    def update(self, scores: ArrayLike, times: ArrayLike | None = None) -> Floats:
        """Take scores in their order.

        Parameters
        ----------
        scores
            Array of shape (n,).
        times
            Their event times, by default their numbers.

        Returns
        -------
        numpy.ndarray
            Array of shape (n,): the p-values.

        Raises
        ------
        ScoreError
            If a score is not finite; nothing is done then.
        """
        column = validation.scores(scores)
        numbers = np.arange(self._count, self._count + len(column))
        dates = numbers if times is None else np.asarray(unmasked(times))
        with np.errstate(over="ignore"):
            squashed = column / (1.0 + np.abs(column))  # from -1 to 1
        cells = np.minimum(((squashed + 1.0) * (_CELLS / 2)).astype(np.int64), _CELLS - 1)
        parts = [self._ranked(cells[at : at + _PART]) for at in range(0, len(cells), _PART)]
        values = np.concatenate(parts) if parts else np.empty(0)
        factors = self._bet(values.tolist())
        for test in self._tests:
            test.update(factors, dates.tolist())
        return values

    def _ranked(self, cells: Integers) -> Floats:
        """Return the p-values of a few scores, and count them."""
        n = len(cells)
        above = self._cells[::-1].cumsum()[::-1]  # in each cell and above it
        before = np.tri(n, n, -1, bool)
        larger = above[cells] - self._cells[cells] + (before & (cells > cells[:, None])).sum(axis=1)
        equal = self._cells[cells] + (before & (cells == cells[:, None])).sum(axis=1) + 1
        numbers = np.arange(self._count, self._count + n)
        np.add.at(self._cells, cells, 1)
        self._count += n
        values: Floats = (larger + _draws(self._seed, numbers) * equal) / (numbers + 1)
        return values

    def _bet(self, values: list[float]) -> list[float]:
        """Return the factor of each p-value."""
        low, middle, high = self._shares
        share, factors = _JUMP / _BETS, []
        for value in values:
            lean = value - 0.5
            low = (low * (1.0 - _JUMP) + share) * (1.0 - lean)
            middle = middle * (1.0 - _JUMP) + share
            high = (high * (1.0 - _JUMP) + share) * (1.0 + lean)
            factor = low + middle + high
            low, middle, high = low / factor, middle / factor, high / factor
            factors.append(factor)
        self._shares = [low, middle, high]
        return factors

    def evidence(self) -> tuple[Evidence, ...]:
        """Return the evidence of each test."""
        return tuple(test.evidence(view="raw") for test in self._tests)

    def state(self) -> tuple[Any, ...]:
        """Return the state: what `load` takes."""
        cells = np.flatnonzero(self._cells)
        counts = self._cells[cells].tolist()
        return (cells.tolist(), counts, self._shares, [test.state() for test in self._tests])

    def load(self, state: Sequence[Any]) -> None:
        """Restore a state, before the first score."""
        cells, counts, shares, tests = state
        self._cells[cells] = counts
        self._count, self._shares = sum(counts), list(shares)
        for test, one in zip(self._tests, tests, strict=True):
            test.load(one)


def _draws(seed: int, numbers: Integers) -> Floats:
    """Draw from 0 to 1 for each number, always the same (SplitMix64, Steele et al. 2014)."""
    u64 = np.uint64
    mixed = u64(seed) + (numbers.astype(u64) + u64(1)) * u64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> u64(30))) * u64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> u64(27))) * u64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> u64(31))) >> u64(11)).astype(np.float64) * 2.0**-53
