"""A continuous predictive distribution: a base distribution whose CDF is mapped.

Governing rule: everything is asked of the base at mapped probabilities. The mean and the CRPS are
integrals over probabilities, by the trapezoidal rule in log odds: there a smooth integrand falls
off exponentially at both ends, and the rule is as exact as doubles are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from abers.calibration._logistic import logistic
from abers.calibration.interval import VennInterval
from abers.regression._asked import finite, levels, plain

if TYPE_CHECKING:
    from abers._arrays import Floats
    from abers.regression._beta_curve import BetaCurve
    from abers.regression.distribution import Many

__all__ = ["CalibratedDistribution", "Smooth"]

_WIDTH = 0.125  # of the trapezoids
_NODES = np.arange(-37.0, 37.0 + _WIDTH, _WIDTH)
_AT, _LEFT = logistic(_NODES), logistic(-_NODES)  # probabilities, and what they leave
_WEIGHTS = _WIDTH * _AT * _LEFT


class Smooth(Protocol):
    """A distribution with a density, such as a frozen continuous one of `scipy.stats`."""

    def cdf(self, t: Any, /) -> Any:  # noqa: ANN401 - scipy takes and gives anything
        """Give its CDF at an array."""

    def ppf(self, q: Any, /) -> Any:  # noqa: ANN401 - scipy takes and gives anything
        """Give its quantiles at an array of levels."""

    def logpdf(self, t: Any, /) -> Any:  # noqa: ANN401 - scipy takes and gives anything
        """Give the logarithm of its density at an array."""


class CalibratedDistribution:
    """A base distribution whose CDF goes through a beta map; what `BetaCDF.distribution` gives.

    It has the calls of `PredictiveDistribution`, and a density; its lower and its upper CDF are
    the same.

    Parameters
    ----------
    base
        The base distribution.
    curve
        The map.

    Notes
    -----
    **Guarantee.** None of its own: it has that of the calibrator which made it.

    **Mass at infinity.** A map with a = 0 or b = 0 leaves mass below or above all labels, at the
    ends of the base's support; if they are infinite, so are the mean and the CRPS.

    Examples
    --------
    >>> from scipy import stats
    >>> from abers.regression import BetaCDF
    >>> same = BetaCDF().distribution(stats.norm(1.0, 2.0))  # it has learned nothing
    >>> same
    <CalibratedDistribution: median 1, 80 % in [-1.563, 3.563]>
    >>> round(same.mean, 9), round(same.crps(1.0), 4), round(same.log_score(1.0), 4)
    (1.0, 0.4674, 1.6121)
    """

    __slots__ = ("_base", "_curve")

    def __init__(self, base: Smooth, curve: BetaCurve) -> None:
        self._base, self._curve = base, curve

    def __repr__(self) -> str:
        """Name the median and an interval."""
        low, high = self.interval(0.8)
        return (
            f"<CalibratedDistribution: median {self.quantile(0.5):.4g}, "
            f"80 % in [{low:.4g}, {high:.4g}]>"
        )

    # Its CDF and its density

    @overload
    def cdf(self, t: float) -> float: ...
    @overload
    def cdf(self, t: Many) -> Floats: ...
    def cdf(self, t: float | Many) -> float | Floats:
        """Give the CDF at `t`.

        Parameters
        ----------
        t
            A finite number, or an array of any shape.

        Returns
        -------
        float or numpy.ndarray
            Probabilities, of the shape of `t`.

        Raises
        ------
        ParameterError
            If `t` is no finite number.
        """
        return plain(self._cdf(finite(t, "t")))

    lower = upper = cdf

    @overload
    def probability_above(self, t: float) -> VennInterval: ...
    @overload
    def probability_above(self, t: Many) -> tuple[Floats, Floats]: ...
    def probability_above(self, t: float | Many) -> VennInterval | tuple[Floats, Floats]:
        """Probability of a label above `t`, twice, as the interval of no width that it is.

        Parameters
        ----------
        t
            As in `cdf`.

        Returns
        -------
        VennInterval or tuple
            The pair; for an array two arrays.
        """
        p = 1.0 - self._cdf(finite(t, "t"))
        return (p, p) if p.ndim else VennInterval(float(p), float(p))

    @overload
    def density(self, y: float) -> float: ...
    @overload
    def density(self, y: Many) -> Floats: ...
    def density(self, y: float | Many) -> float | Floats:
        """Give the density at `y`: that of the base times the slope of the map there.

        Parameters
        ----------
        y
            A label, or an array of labels of any shape.

        Returns
        -------
        float or numpy.ndarray
            Densities, of the shape of `y`.
        """
        return plain(np.exp(-self._log_score(y)))

    @overload
    def log_score(self, y: float) -> float: ...
    @overload
    def log_score(self, y: Many) -> Floats: ...
    def log_score(self, y: float | Many) -> float | Floats:
        """Negative log density at a label, in nats; infinite where the density is 0.

        Parameters
        ----------
        y
            The label, or an array of labels of any shape.

        Returns
        -------
        float or numpy.ndarray
            The scores; smaller is better.

        Raises
        ------
        ParameterError
            If a label is not finite.
        """
        return plain(self._log_score(y))

    def _log_score(self, y: float | Many) -> Floats:
        labels = finite(y, "y")
        log_density = np.asarray(self._base.logpdf(labels), np.float64)
        return -(log_density + self._curve.log_slope(self._base_cdf(labels)))

    def _cdf(self, t: Floats) -> Floats:
        return self._curve.forward(self._base_cdf(t))

    def _base_cdf(self, t: Floats) -> Floats:
        return np.asarray(self._base.cdf(t), np.float64)

    # Quantiles

    @overload
    def quantile(self, q: float) -> float: ...
    @overload
    def quantile(self, q: Many) -> Floats: ...
    def quantile(self, q: float | Many) -> float | Floats:
        """Smallest t at which the CDF reaches `q`.

        Parameters
        ----------
        q
            A level in (0, 1), or an array of them of any shape.

        Returns
        -------
        float or numpy.ndarray
            The quantiles.

        Raises
        ------
        ParameterError
            If a level is not inside (0, 1).
        """
        return plain(self._quantile(levels(q, "q")))

    @overload
    def interval(self, level: float, *, band: bool = ...) -> tuple[float, float]: ...
    @overload
    def interval(self, level: Many, *, band: bool = ...) -> tuple[Floats, Floats]: ...
    def interval(
        self,
        level: float | Many,
        *,
        band: bool = False,  # noqa: ARG002 - as `PredictiveDistribution` takes it; there is none
    ) -> tuple[float, float] | tuple[Floats, Floats]:
        """Central prediction interval.

        Parameters
        ----------
        level
            Probability that the interval is to hold, in (0, 1), or an array.
        band
            Without effect: the band has no width.

        Returns
        -------
        tuple
            The ends.

        Raises
        ------
        ParameterError
            If a level is not inside (0, 1).
        """
        tail = (1.0 - levels(level, "level")) / 2.0
        low, high = self._quantile(tail), self._quantile(1.0 - tail)
        return (low, high) if low.ndim else (float(low), float(high))

    def _quantile(self, q: Floats) -> Floats:
        return np.asarray(self._base.ppf(self._curve.inverse(q)), np.float64)

    # Integrals and draws

    @property
    def mean(self) -> float:
        """Mean of the distribution."""
        return float((_WEIGHTS * self._quantile(_AT)).sum())

    @overload
    def crps(self, y: float) -> float: ...
    @overload
    def crps(self, y: Many) -> Floats: ...
    def crps(self, y: float | Many) -> float | Floats:
        """Continuous ranked probability score for a label.

        Twice the pinball loss of the quantiles, over all levels (Gneiting & Ranjan 2011).

        Parameters
        ----------
        y
            The label, or an array of labels of any shape.

        Returns
        -------
        float or numpy.ndarray
            The scores, in the unit of the label; smaller is better.

        Raises
        ------
        ParameterError
            If a label is not finite.
        """
        labels = finite(y, "y")[..., np.newaxis]
        below = self._cdf(labels)
        above = 1.0 - below
        # The loss has a kink at the label: one integral on either side of it.
        left = below**2 * _AT * (labels - self._quantile(below * _AT))
        right = above**2 * _LEFT * (self._quantile(below + above * _AT) - labels)
        return plain(2.0 * (_WEIGHTS * (left + right)).sum(axis=-1))

    @overload
    def pit(self, y: float, seed: int | np.random.Generator = ...) -> float: ...
    @overload
    def pit(self, y: Many, seed: int | np.random.Generator = ...) -> Floats: ...
    def pit(
        self,
        y: float | Many,
        seed: int | np.random.Generator = 0,  # noqa: ARG002 - as `PredictiveDistribution` takes it
    ) -> float | Floats:
        """Probability integral transform of a label: the CDF at it.

        Parameters
        ----------
        y
            The label, or an array of labels of any shape.
        seed
            Without effect: there is no jump to be shared.

        Returns
        -------
        float or numpy.ndarray
            Numbers in [0, 1], of the shape of `y`.

        Raises
        ------
        ParameterError
            If a label is not finite.
        """
        return plain(self._cdf(finite(y, "y")))

    def sample(self, n: int, seed: int | np.random.Generator) -> Floats:
        """Draw labels.

        Parameters
        ----------
        n
            How many.
        seed
            Where the random numbers come from.

        Returns
        -------
        numpy.ndarray
            An array of shape (n,).
        """
        drawn = np.random.default_rng(seed).random(n)
        return self._quantile(np.clip(drawn, 2.0**-54, None))  # a draw may be 0
