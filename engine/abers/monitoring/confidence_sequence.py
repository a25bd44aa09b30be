"""Confidence sequence for the mean of bounded outcomes, which may drift.

It says how far the sum of outcomes may be from the sum of their conditional means, at all times at
once. It assumes nothing about the outcomes except their range.
"""

from __future__ import annotations

import math

from abers.backends import core
from abers.exceptions import ParameterError

__all__ = ["ConfidenceSequence"]


class ConfidenceSequence:
    """Empirical Bernstein confidence sequence with a gamma-exponential mixture.

    Parameters
    ----------
    tightest
        The sum of squares at which the boundary is about as tight as can be, above 0. It is chosen
        before the data.
    alpha
        The level at which it is, between 0 and 1.
    scale
        The largest width of the range in which an outcome lies, given what came before it.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Notes
    -----
    Outcomes X come one after the other. Before each, a range of at most `scale` is known in which
    it lies, and a guess in that range. S is the sum of X minus its mean given all that came before
    it, and V the sum of (X - guess)**2.

    **Guarantee.** The probability that S ever reaches ``boundary(V, alpha)`` is at most `alpha`;
    so is that of -S. The outcomes may depend on each other and their means may drift. It is a
    statement about their average, not about single outcomes.

    For each rate a in [0, 1/c), exp(a S - V (-log(1 - c a) - c a) / c**2) is at most a martingale
    that begins with 1. So is its mean over rates, in closed form, and Ville's inequality bounds
    the probability that this mean ever reaches 1/alpha.

    References
    ----------
    Howard, Ramdas, McAuliffe & Sekhon (2021), Time-uniform, nonparametric, nonasymptotic
    confidence sequences: theorem 4 and proposition 9.

    Examples
    --------
    >>> sequence = ConfidenceSequence(500.0, 0.003)
    >>> round(sequence.boundary(500.0, 0.003), 1)
    88.0
    >>> sequence.reaches(88.0, 500.0, 0.003), sequence.reaches(87.9, 500.0, 0.003)
    (True, False)
    """

    def __init__(self, tightest: float, alpha: float, scale: float = 1.0) -> None:
        positive = 0.0 < tightest < math.inf and 0.0 < scale < math.inf
        if not (positive and 0.0 < alpha < 1.0):
            msg = (
                f"tightest {tightest!r}, alpha {alpha!r}, scale {scale!r}: give two positive "
                "numbers, and an alpha between 0 and 1"
            )
            raise ParameterError(msg)
        self._options = tightest, alpha, scale
        self._core = core.ConfidenceSequence(*self._options)

    def log_mixture(self, deviation: float, squares: float) -> float:
        """Return the natural logarithm of the mixture.

        Parameters
        ----------
        deviation
            The sum S, 0 or more.
        squares
            The sum V, 0 or more.

        Returns
        -------
        float
            It reaches log(1 / alpha) where S reaches the boundary.
        """
        return float(self._core.log_mixture(deviation, squares))

    def reaches(self, deviation: float, squares: float, alpha: float) -> bool:
        """Return whether a deviation reaches the boundary; one of 0 or less never does.

        Parameters
        ----------
        deviation, squares
            The sums S and V.
        alpha
            Level of this side.
        """
        return bool(self._core.reaches(deviation, squares, alpha))

    def boundary(self, squares: float, alpha: float) -> float:
        """Return the deviation S at which the mixture reaches 1/alpha.

        Parameters
        ----------
        squares
            The sum V, 0 or more.
        alpha
            Level of this side.
        """
        return float(self._core.boundary(squares, alpha))

    def __reduce__(self) -> tuple[object, tuple[float, float, float]]:
        """Pickle and copy the options."""
        return type(self), self._options
