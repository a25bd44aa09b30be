"""Confidence sequence for the mean of bounded outcomes, which may drift.

It says how far the sum of outcomes may be from the sum of their conditional means, at all times at
once. Nothing is assumed of the outcomes but their range.
"""

from __future__ import annotations

import math

from abers.exceptions import ParameterError

__all__ = ["ConfidenceSequence"]

_LN2 = math.log(2.0)
_PRECISION = 1e-13  # relative, of the continued fraction
_TINY = 1e-300  # in place of a denominator of 0
_ROOT = 1e-10  # relative precision of a boundary


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
    so is that of -S. The outcomes may depend on each other and their means may drift. Nothing is
    said of any single outcome: it is a statement about their average.

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

    __slots__ = ("_constant", "_rho", "_scale")

    def __init__(self, tightest: float, alpha: float, scale: float = 1.0) -> None:
        positive = 0.0 < tightest < math.inf and 0.0 < scale < math.inf
        if not (positive and 0.0 < alpha < 1.0):
            msg = (
                f"tightest {tightest!r}, alpha {alpha!r}, scale {scale!r}: give two positive "
                "numbers, and an alpha between 0 and 1"
            )
            raise ParameterError(msg)
        self._scale = scale
        log = -2.0 * math.log(alpha)
        # Best for the mixture of normal distributions, which this one is near for large sums.
        self._rho = rho = tightest / scale**2 / (log + math.log1p(log))
        self._constant = rho * math.log(rho) - math.lgamma(rho) - _log_p(rho, rho) - rho

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
        s, shape = deviation / self._scale, squares / self._scale**2 + self._rho
        return self._without_p(s, shape) + _log_p(shape, s + shape)

    def reaches(self, deviation: float, squares: float, alpha: float) -> bool:
        """Return whether a deviation reaches the boundary; one of 0 or less never does.

        Parameters
        ----------
        deviation, squares
            The sums S and V.
        alpha
            Level of this side.
        """
        threshold = -math.log(alpha)
        # No mixture exceeds its largest part, which is at most exp(S**2 / (2 V)).
        if deviation <= 0.0 or deviation * deviation < 2.0 * squares * threshold:
            return False
        s, shape = deviation / self._scale, squares / self._scale**2 + self._rho
        most = self._without_p(s, shape)
        if most < threshold:
            return False
        # P(a, x) is at least 1/2 for x >= a.
        return most - _LN2 >= threshold or most + _log_p(shape, s + shape) >= threshold

    def boundary(self, squares: float, alpha: float) -> float:
        """Return the deviation S at which the mixture reaches 1/alpha.

        Parameters
        ----------
        squares
            The sum V, 0 or more.
        alpha
            Level of this side.
        """
        low = math.sqrt(-2.0 * squares * math.log(alpha))
        high = low + self._scale
        while not self.reaches(high, squares, alpha):
            low, high = high, 2.0 * high
        while high - low > _ROOT * high:
            middle = 0.5 * (low + high)
            if self.reaches(middle, squares, alpha):
                high = middle
            else:
                low = middle
        return high

    def _without_p(self, s: float, shape: float) -> float:
        """Return the logarithm of the mixture but for P(shape, s + shape)."""
        x = s + shape
        return self._constant + math.lgamma(shape) - shape * math.log(x) + x


def _log_p(a: float, x: float) -> float:
    """Return log P(a, x), the regularised lower incomplete gamma function, for x >= a > 0.

    1 - P is a continued fraction, which is computed by Lentz's method; it converges the faster the
    more x exceeds a, within some multiple of the root of a if they are equal.
    """
    b = x + 1.0 - a
    c, d = 1.0 / _TINY, 1.0 / b
    fraction, n, factor = d, 0, 0.0
    while abs(factor - 1.0) > _PRECISION:
        n += 1
        term = n * (a - n)
        b += 2.0
        d = 1.0 / (term * d + b or _TINY)
        c = b + term / c or _TINY
        factor = c * d
        fraction *= factor
    log_front = a * math.log(x) - x - math.lgamma(a)
    return math.log1p(-fraction * math.exp(log_front))
