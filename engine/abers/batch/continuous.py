"""A continuous predictive distribution: the mapped CDF of a base distribution.

The base is evaluated at mapped probabilities only, from the nearer end. The mean and the CRPS are
integrals over probabilities, by the trapezoidal rule in log odds: there a smooth integrand falls
off exponentially at both ends, and the rule is as exact as doubles are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from abers.batch._beta_curve import bounded, logs
from abers.calibration.baselines import logistic
from abers.regression.base_distribution import BaseDistribution
from abers.regression.distribution import PredictiveDistribution
from abers.validation import finite, plain

if TYPE_CHECKING:
    from abers.arrays import Floats
    from abers.batch._beta_curve import Curve
    from abers.plotting import Figure
    from abers.regression.base_distribution import CDF, Many

__all__ = ["CalibratedDistribution", "Smooth"]

_WIDTH = 0.125  # of the trapezoids
_NODES = np.arange(-37.0, 37.0 + _WIDTH, _WIDTH)
_AT, _LEFT = logistic(_NODES), logistic(-_NODES)  # probabilities, and what they leave
_WEIGHTS = _WIDTH * _AT * _LEFT
_SENT = np.arange(1, 100) / 100.0  # levels of the quantiles in `to_dict`
_DRAWN = np.arange(1, 400) / 400.0  # and in a figure


class Smooth(Protocol):
    """A distribution with a density, such as a frozen continuous one of `scipy.stats`.

    All methods take and return arrays.
    """

    def logcdf(self, t: Any, /) -> Any:
        """Return the logarithm of the CDF."""

    def logsf(self, t: Any, /) -> Any:
        """Return the logarithm of 1 - the CDF."""

    def ppf(self, q: Any, /) -> Any:
        """Return the quantiles at levels."""

    def isf(self, q: Any, /) -> Any:
        """Return the quantiles at 1 - levels."""

    def logpdf(self, t: Any, /) -> Any:
        """Return the logarithm of the density."""


class CalibratedDistribution(BaseDistribution):
    """A base distribution with a smooth map of its CDF.

    `BetaCDF.distribution` and `GPBeta.distribution` return it. It has the calls of
    `PredictiveDistribution`, and a density; its lower and its upper CDF are its CDF.

    Parameters
    ----------
    base
        The base distribution.
    curve
        The map.

    Notes
    -----
    **Guarantee.** That of the calibrator which made it.

    **Mass at infinity.** A map with a = 0 or b = 0 leaves mass below or above all labels, at the
    ends of the base's support; if they are infinite, so are the mean and the CRPS.

    Examples
    --------
    >>> from scipy import stats
    >>> from abers.batch import BetaCDF
    >>> same = BetaCDF().distribution(stats.norm(1.0, 2.0))  # it has learned nothing
    >>> same
    <CalibratedDistribution: median 1, 80 % in [-1.563, 3.563]>
    >>> round(same.mean, 9), round(same.crps(1.0), 4), round(same.log_score(1.0), 4)
    (1.0, 0.4674, 1.6121)
    """

    __slots__ = ("_base", "_curve")

    def __init__(self, base: Smooth, curve: Curve) -> None:
        self._base, self._curve = base, curve

    def __repr__(self) -> str:
        """Name the median and an interval."""
        return f"<CalibratedDistribution: {self._summary()}>"

    @property
    def support(self) -> tuple[float, float]:
        """The ends of the base distribution, which may be infinite."""
        return float(self._base.ppf(0.0)), float(self._base.isf(0.0))

    @property
    def mass_below(self) -> float:
        """Mass at the lower end of the support, or below it."""
        return float(self._curve.mapped(*logs(np.array(0.0))))

    @property
    def mass_above(self) -> float:
        """Mass at the upper end of the support, or above it."""
        return float(1.0 - self._curve.mapped(*logs(np.array(1.0))))

    def to_dict(self) -> dict[str, Any]:
        """Return a band of two step CDFs around the CDF, as `PredictiveDistribution.to_dict`.

        The thresholds are the quantiles at 0.01, 0.02, …, 0.99; nowhere is the CDF outside the
        band.

        Examples
        --------
        >>> from scipy import stats
        >>> from abers.batch import BetaCDF
        >>> sent = BetaCDF().distribution(stats.norm(1.0, 2.0)).to_dict()
        >>> sent["thresholds"][49], sent["lower"][50], sent["upper"][50], sent["support"]
        (1.0, 0.5, 0.51, [None, None])
        """
        at = self._finite_quantiles(_SENT)
        inside = self._cdf(at)
        lower, upper = np.append(self.mass_below, inside), np.append(inside, 1.0 - self.mass_above)
        return PredictiveDistribution(at, lower, upper, support=self.support).to_dict()

    def _figure(self, label: float | None, name: str) -> Figure:
        from abers.plotting import curve  # noqa: PLC0415 - loaded only to draw

        at = self._finite_quantiles(_DRAWN)
        return curve(at, self._cdf(at), label=label, name=name)

    def _finite_quantiles(self, q: Floats) -> Floats:
        quantiles = self._quantiles(q, 1.0 - q)
        return np.unique(quantiles[np.isfinite(quantiles)])

    @overload
    def density(self, y: float) -> float: ...
    @overload
    def density(self, y: Many) -> Floats: ...
    def density(self, y: float | Many) -> float | Floats:
        """Return the density at `y`: that of the base times the slope of the map there.

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
        return -(log_density + self._curve.log_slope(*self._logs(labels)))

    def _values(self, t: Floats, cdf: CDF) -> Floats:
        return self._cdf(t)

    def _cdf(self, t: Floats) -> Floats:
        return self._curve.mapped(*self._logs(t))

    def _logs(self, t: Floats) -> tuple[Floats, Floats]:
        below, above = self._base.logcdf(t), self._base.logsf(t)
        return bounded(np.asarray(below, np.float64)), bounded(np.asarray(above, np.float64))

    def _quantiles(self, q: Floats, rest: Floats, cdf: CDF = "merged") -> Floats:
        with np.errstate(divide="ignore"):
            odds = self._curve.inverse(np.log(q) - np.log(rest))
        below, above = self._base.ppf(logistic(odds)), self._base.isf(logistic(-odds))
        return np.asarray(np.where(odds < 0.0, below, above), np.float64)

    @property
    def mean(self) -> float:
        """Mean, with the masses at the ends of the support."""
        return float((_WEIGHTS * self._quantiles(_AT, _LEFT)).sum())

    def _crps(self, labels: Floats) -> Floats:
        """Return twice the pinball loss over all levels (Gneiting & Ranjan 2011)."""
        labels = labels[..., np.newaxis]
        below = self._cdf(labels)
        above = 1.0 - below
        # The loss has a kink at the label: one integral on either side of it.
        lower = self._quantiles(below * _AT, above + below * _LEFT)
        upper = self._quantiles(below + above * _AT, above * _LEFT)
        left = below**2 * _AT * np.maximum(labels - lower, 0.0)
        right = above**2 * _LEFT * np.maximum(upper - labels, 0.0)
        return np.asarray(2.0 * (_WEIGHTS * (left + right)).sum(axis=-1))

    @overload
    def pit(self, y: float, seed: int | np.random.Generator = ...) -> float: ...
    @overload
    def pit(self, y: Many, seed: int | np.random.Generator = ...) -> Floats: ...
    def pit(self, y: float | Many, seed: int | np.random.Generator = 0) -> float | Floats:
        """Return the CDF at a label; `seed` is without effect, as there is no jump to be shared."""
        return plain(self._cdf(finite(y, "y")))

    def _pit_ends(self, labels: Floats) -> tuple[Floats, Floats]:
        at = self._cdf(labels)
        return at, at

    def _drawn(self, shares: Floats) -> Floats:
        above_0 = np.maximum(shares, 2.0**-54)
        return self._quantiles(above_0, 1.0 - above_0)
