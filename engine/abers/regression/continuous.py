"""A continuous predictive distribution: a base distribution whose CDF is mapped.

Governing rule: everything is asked of the base at mapped probabilities, from the nearer end. The
mean and the CRPS are integrals over probabilities, by the trapezoidal rule in log odds: there a
smooth integrand falls off exponentially at both ends, and the rule is as exact as doubles are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from abers.calibration._logistic import logistic
from abers.calibration.interval import VennInterval
from abers.plots import curve
from abers.regression._asked import count, finite, levels, places, plain
from abers.regression._beta_curve import bounded, logs
from abers.regression.distribution import PredictiveDistribution

if TYPE_CHECKING:
    from abers._arrays import Floats
    from abers.plots import Figure
    from abers.regression._beta_curve import Curve
    from abers.regression.distribution import Many

__all__ = ["CalibratedDistribution", "Smooth"]

_WIDTH = 0.125  # of the trapezoids
_NODES = np.arange(-37.0, 37.0 + _WIDTH, _WIDTH)
_AT, _LEFT = logistic(_NODES), logistic(-_NODES)  # probabilities, and what they leave
_WEIGHTS = _WIDTH * _AT * _LEFT
_WIRE = np.arange(1, 100) / 100.0  # levels of the quantiles that go over the wire
_DRAWN = np.arange(1, 400) / 400.0  # and of those that a figure goes through


class Smooth(Protocol):
    """A distribution with a density, such as a frozen continuous one of `scipy.stats`."""

    def logcdf(self, t: Any, /) -> Any:  # noqa: ANN401 - scipy takes and gives anything
        """Give the logarithm of its CDF at an array."""

    def logsf(self, t: Any, /) -> Any:  # noqa: ANN401 - scipy takes and gives anything
        """Give the logarithm of 1 - its CDF at an array."""

    def ppf(self, q: Any, /) -> Any:  # noqa: ANN401 - scipy takes and gives anything
        """Give its quantiles at an array of levels."""

    def isf(self, q: Any, /) -> Any:  # noqa: ANN401 - scipy takes and gives anything
        """Give its quantiles at 1 - an array of levels."""

    def logpdf(self, t: Any, /) -> Any:  # noqa: ANN401 - scipy takes and gives anything
        """Give the logarithm of its density at an array."""


class CalibratedDistribution:
    """A base distribution whose CDF goes through a smooth map.

    It is what `BetaCDF.distribution` and `GPBeta.distribution` give, and has the calls of
    `PredictiveDistribution`, and a density; its lower and its upper CDF are the same.

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

    def __init__(self, base: Smooth, curve: Curve) -> None:
        self._base, self._curve = base, curve

    def __repr__(self) -> str:
        """Name the median and an interval."""
        low, high = self.interval(0.8)
        return (
            f"<CalibratedDistribution: median {self.quantile(0.5):.4g}, "
            f"80 % in [{low:.4g}, {high:.4g}]>"
        )

    # What it is

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
        """Give a band of two step CDFs around its own, for the wire.

        Returns
        -------
        dict
            As `PredictiveDistribution.to_dict`; the thresholds are the quantiles at 0.01, 0.02, …,
            0.99, and between two of them the CDF is nowhere outside the band.

        Examples
        --------
        >>> from scipy import stats
        >>> from abers.regression import BetaCDF
        >>> wire = BetaCDF().distribution(stats.norm(1.0, 2.0)).to_dict()
        >>> wire["thresholds"][49], wire["lower"][50], wire["upper"][50], wire["support"]
        (1.0, 0.5, 0.51, [None, None])
        """
        quantiles = self._quantile(_WIRE, 1.0 - _WIRE)
        at = np.unique(quantiles[np.isfinite(quantiles)])
        inside = self._cdf(at)
        lower, upper = np.append(self.mass_below, inside), np.append(inside, 1.0 - self.mass_above)
        return PredictiveDistribution(at, lower, upper, support=self.support).to_dict()

    def plot(self, label: float | None = None, *, name: str = "label") -> Figure:
        """Draw the CDF, from its quantile at 0.0025 to that at 0.9975.

        Parameters
        ----------
        label, name
            As of `PredictiveDistribution.plot`.

        Returns
        -------
        plotly.graph_objects.Figure
            The figure, readable on a light and on a dark page.

        Raises
        ------
        ParameterError
            If the label is not finite.
        MissingExtraError
            If plotly is not installed.

        Examples
        --------
        >>> from scipy import stats
        >>> from abers.regression import BetaCDF
        >>> drawn = BetaCDF().distribution(stats.norm(1.0, 2.0)).plot(name="metres")
        >>> drawn.data[0].x[199], drawn.data[0].y[199]
        (1.0, 0.5)
        """
        came = None if label is None else float(finite(label, "label"))
        quantiles = self._quantile(_DRAWN, 1.0 - _DRAWN)
        at = np.unique(quantiles[np.isfinite(quantiles)])
        return curve(at, self._cdf(at), label=came, name=name)

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
            A number, or an array of any shape; infinity too, where every CDF is 1.

        Returns
        -------
        float or numpy.ndarray
            Probabilities, of the shape of `t`.

        Raises
        ------
        ParameterError
            If `t` is no number.
        """
        return plain(self._at(t))

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
        p = 1.0 - self._at(t)
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
        return -(log_density + self._curve.log_slope(*self._logs(labels)))

    def _at(self, t: float | Many) -> Floats:
        where = places(t)
        endless = np.isinf(where)
        inside = self._cdf(np.where(endless, 0.0, where))
        return np.where(endless, where > 0.0, inside).astype(np.float64)

    def _cdf(self, t: Floats) -> Floats:
        return self._curve.mapped(*self._logs(t))

    def _logs(self, t: Floats) -> tuple[Floats, Floats]:
        below, above = self._base.logcdf(t), self._base.logsf(t)
        return bounded(np.asarray(below, np.float64)), bounded(np.asarray(above, np.float64))

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
        level = levels(q, "q")
        return plain(self._quantile(level, 1.0 - level))

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
        low, high = self._quantile(tail, 1.0 - tail), self._quantile(1.0 - tail, tail)
        return (low, high) if low.ndim else (float(low), float(high))

    def _quantile(self, q: Floats, rest: Floats) -> Floats:
        """Find quantiles at levels, which come with what they leave: both may be tiny."""
        with np.errstate(divide="ignore"):
            odds = self._curve.inverse(np.log(q) - np.log(rest))
        below, above = self._base.ppf(logistic(odds)), self._base.isf(logistic(-odds))
        return np.asarray(np.where(odds < 0.0, below, above), np.float64)

    # Integrals and draws

    @property
    def mean(self) -> float:
        """Mean of the distribution, with its masses at the ends of the support."""
        return float((_WEIGHTS * self._quantile(_AT, _LEFT)).sum())

    @overload
    def crps(self, y: float, *, proper: bool = ...) -> float: ...
    @overload
    def crps(self, y: Many, *, proper: bool = ...) -> Floats: ...
    def crps(self, y: float | Many, *, proper: bool = False) -> float | Floats:
        """Continuous ranked probability score for a label.

        Twice the pinball loss of the quantiles, over all levels (Gneiting & Ranjan 2011), with the
        masses at the ends of the support put at `y` where it lies beyond them.

        Parameters
        ----------
        y
            The label, or an array of labels of any shape.
        proper
            Leave such masses at infinity, where any mass makes the score infinite.

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
        if proper and (self.mass_below > 0.0 or self.mass_above > 0.0):
            return plain(np.full(labels.shape[:-1], np.inf))
        below = self._cdf(labels)
        above = 1.0 - below
        # The loss has a kink at the label: one integral on either side of it.
        lower = self._quantile(below * _AT, above + below * _LEFT)
        upper = self._quantile(below + above * _AT, above * _LEFT)
        left = below**2 * _AT * np.maximum(labels - lower, 0.0)
        right = above**2 * _LEFT * np.maximum(upper - labels, 0.0)
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
        drawn = np.clip(
            np.random.default_rng(seed).random(count(n, "n", 0)), 2.0**-54, None
        )  # may be 0
        return self._quantile(drawn, 1.0 - drawn)
