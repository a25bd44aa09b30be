"""A predictive distribution of steps: a step CDF, or a band of two and their merge.

A CDF is its value before the first threshold and after each one. The rest, below and above them,
is mass at infinity, which is never dropped; the support says where the mean, a score or a draw
puts it.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from abers.cdfs import merged
from abers.exceptions import ParameterError
from abers.regression.base_distribution import BaseDistribution, pair
from abers.validation import finite, levels, numbers, shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Floats
    from abers.plotting import Figure
    from abers.regression.base_distribution import CDF, Many

__all__ = ["PredictiveDistribution"]

_ROUNDING = 1e-12  # how far from 1 the sum of all masses may be


class PredictiveDistribution(BaseDistribution):
    """A step CDF, or a band from a lower to an upper CDF, immutable.

    Where there is a band, the distribution *of* it is the merged CDF U / (U + 1 - L), the one
    that is minimax for log loss at every threshold; the mean, the quantiles and the scores are its.

    Parameters
    ----------
    thresholds
        Array of shape (k,), strictly ascending: where a CDF jumps.
    lower
        Array of shape (k + 1,), ascending in [0, 1]: the lower CDF before the first
        threshold, and from each threshold on.
    upper
        The upper CDF likewise, nowhere below the lower; by default the lower.
    support
        Where the mass outside the thresholds is put by `mean`, `crps`, `pit` and `sample`, a
        pair (lo, hi) around all thresholds, which may be infinite; by default the first and
        last threshold.

    Raises
    ------
    ParameterError
        If these are not CDFs, or the support does not span the thresholds.

    Notes
    -----
    **Guarantee.** That of the calibrator which made it. Of `abers.regression.IVAPR`:
    ``interval(level, band=True)`` covers the label with a probability of at least `level`.

    **Mass at infinity.** Every CDF in a Venn-Abers band leaves mass beyond the labels seen, so the
    true mean is undefined and the true CRPS infinite. Both are finite only for a support, which
    every report of them has to name.

    References
    ----------
    Petej (2018), Inductive Venn-Abers prediction for regression, section 4; Vovk & Petej (2014),
    Venn-Abers predictors, section 4, for the merge.

    Examples
    --------
    >>> band = PredictiveDistribution([1.0, 2.0], [0.0, 0.25, 0.75], [0.25, 0.75, 1.0])
    >>> band
    <PredictiveDistribution of 2 steps: median 1, 80 % in [-inf, inf], mass 0.2 below and 0.2 above>
    >>> band.lower(1.5), band.upper(1.5), band.cdf(1.5), band.probability_above(1.5)
    (0.25, 0.75, 0.5, VennInterval(p0=0.25, p1=0.75))
    >>> band.quantile([0.1, 0.5, 0.6, 0.9]).tolist(), band.quantile_ends(0.5)
    ([-inf, 1.0, 2.0, inf], (1.0, 2.0))
    >>> band.interval(0.5), band.interval(0.5, band=True)
    ((1.0, 2.0), (-inf, 2.0))
    >>> band.merged().interval(0.5, band=True)
    (1.0, 2.0)
    >>> band.thickness
    0.5
    >>> round(band.crps(1.5), 12), band.crps(1.5, proper=True), band.to_dict()["support"]
    (0.25, inf, [1.0, 2.0])
    >>> band.plot(1.5, name="degrees Celsius").layout.xaxis.title.text
    'degrees Celsius'
    >>> whole = PredictiveDistribution([1.0, 2.0], [0.0, 0.5, 1.0])
    >>> whole.pit(1.5, seed=0), whole.pit_ends(2.0), whole.sample(4, seed=0).tolist()
    (0.5, (0.5, 1.0), [1.0, 2.0, 2.0, 2.0])
    """

    __slots__ = ("_lower", "_merged", "_support", "_thresholds", "_upper")

    def __init__(
        self,
        thresholds: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike | None = None,
        *,
        support: tuple[float, float] | None = None,
    ) -> None:
        self._thresholds = _ascending(thresholds)
        self._lower = _cdf(lower, len(self._thresholds), "lower")
        self._upper = self._lower if upper is None else _cdf(upper, len(self._thresholds), "upper")
        if (self._lower > self._upper).any():
            msg = "lower is above upper somewhere; exchange them"
            raise ParameterError(msg)
        self._support = _span(support, self._thresholds)
        single = np.array_equal(self._lower, self._upper)  # its own merge, to the last bit
        self._merged = self._lower if single else merged(self._lower, self._upper)
        for values in (self._thresholds, self._lower, self._upper, self._merged):
            values.setflags(write=False)

    @property
    def thresholds(self) -> Floats:
        """Where a CDF jumps, ascending; an array of shape (k,)."""
        return self._thresholds

    @property
    def values(self) -> Floats:
        """The merged CDF before the first threshold, and from each on; of shape (k + 1,)."""
        return self._merged

    @property
    def support(self) -> tuple[float, float]:
        """Where the masses below and above the thresholds are put: a pair (lo, hi)."""
        return self._support

    @property
    def mass_below(self) -> float:
        """Mass of the merged CDF below the first threshold, at minus infinity."""
        return float(self._merged[0])

    @property
    def mass_above(self) -> float:
        """Mass of the merged CDF above the last threshold, at infinity."""
        return float(1.0 - self._merged[-1])

    @property
    def thickness(self) -> float:
        """Largest distance of upper and lower CDF: what the calibrator does not know; 0 to 1."""
        return float(np.max(self._upper - self._lower))

    def __eq__(self, other: object) -> bool:
        """Return whether two distributions have the same steps and the same support."""
        if not isinstance(other, PredictiveDistribution):
            return NotImplemented
        same = map(np.array_equal, self._steps(), other._steps())
        return self._support == other._support and all(same)

    def __hash__(self) -> int:
        """Hash the thresholds and the support."""
        return hash((self._thresholds.tobytes(), self._support))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy the steps."""
        return partial(PredictiveDistribution, support=self._support), self._steps()

    def _steps(self) -> tuple[Floats, Floats, Floats]:
        return self._thresholds, self._lower, self._upper

    def __repr__(self) -> str:
        """Name the median, an interval and the masses at infinity."""
        return (
            f"<PredictiveDistribution of {len(self._thresholds)} steps: {self._summary()}, "
            f"mass {self.mass_below:.2g} below and {self.mass_above:.2g} above>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the steps as plain lists, to be sent as JSON.

        Returns
        -------
        dict
            `thresholds` (k numbers), `lower` and `upper` (k + 1 each) and `support` (a pair;
            None for an infinite end, which JSON does not have).
        """
        return {
            "thresholds": self._thresholds.tolist(),
            "lower": self._lower.tolist(),
            "upper": self._upper.tolist(),
            "support": [end if math.isfinite(end) else None for end in self._support],
        }

    def merged(self) -> PredictiveDistribution:
        """Return the merged CDF by itself, with the same support.

        Returns
        -------
        PredictiveDistribution
            A distribution without a band, which has the same quantiles, mean and scores.
        """
        return PredictiveDistribution(self._thresholds, self._merged, support=self._support)

    def _figure(self, label: float | None, name: str) -> Figure:
        from abers.plotting import band  # noqa: PLC0415 - loaded only to draw

        return band(*self._steps(), self._merged, label=label, name=name)

    def _cdf(self, cdf: CDF) -> Floats:
        return {"lower": self._lower, "upper": self._upper, "merged": self._merged}[cdf]

    def _values(self, t: Floats, cdf: CDF) -> Floats:
        return self._cdf(cdf)[np.searchsorted(self._thresholds, t, side="right")]

    def _quantiles(self, q: Floats, rest: Floats, cdf: CDF) -> Floats:
        points: Floats = np.concatenate(([-np.inf], self._thresholds, [np.inf]))
        return points[np.searchsorted(self._cdf(cdf), q)]

    @overload
    def quantile_ends(self, q: float) -> tuple[float, float]: ...
    @overload
    def quantile_ends(self, q: Many) -> tuple[Floats, Floats]: ...
    def quantile_ends(self, q: float | Many) -> tuple[float, float] | tuple[Floats, Floats]:
        """Smallest and largest quantile of any CDF in the band.

        Parameters
        ----------
        q
            As in `quantile`.

        Returns
        -------
        tuple
            The quantiles of the upper, and of the lower CDF. Of `abers.regression.IVAPR`, under
            its conditions, P(label < first) <= q and P(label > second) <= 1 - q.

        Raises
        ------
        ParameterError
            If a level is not inside (0, 1).
        """
        level = levels(q, "q")
        rest = 1.0 - level
        return pair(self._quantiles(level, rest, "upper"), self._quantiles(level, rest, "lower"))

    @property
    def mean(self) -> float:
        """Mean of the merged CDF, with its masses at infinity at the ends of the support."""
        points, masses = self._masses()
        held = masses > 0.0  # a point without mass may be infinite
        with np.errstate(invalid="ignore"):  # infinities of both signs: there is no mean
            return float((points[held] * masses[held]).sum())

    def _crps(self, labels: Floats) -> Floats:
        points, masses = self._masses()
        after = np.append(self._merged, 1.0)
        gaps = points - labels[..., np.newaxis]
        gaps[..., 0] = np.minimum(gaps[..., 0], 0.0)
        gaps[..., -1] = np.maximum(gaps[..., -1], 0.0)
        held = masses > 0.0  # a point without mass may be infinite
        gaps, masses, after = gaps[..., held], masses[held], after[held]
        # Not by BLAS: its last digit depends on the machine.
        losses = 2.0 * ((gaps > 0.0) - after + masses / 2.0) * gaps * masses
        return np.asarray(losses.sum(axis=-1))

    def _drawn(self, shares: Floats) -> Floats:
        points, _ = self._masses()
        # In (0, 1], as quantiles are: a draw of 1 belongs to the last point that has mass.
        return points[np.searchsorted(np.append(self._merged, 1.0), 1.0 - shares)]

    def _pit_ends(self, labels: Floats) -> tuple[Floats, Floats]:
        lo, hi = self._support
        before = self._merged[np.searchsorted(self._thresholds, labels, side="left")]
        after = self._merged[np.searchsorted(self._thresholds, labels, side="right")]
        before = np.where(labels > lo, before, 0.0)
        after = np.where(labels < hi, after, 1.0)
        return before, after

    def _masses(self) -> tuple[Floats, Floats]:
        """Return where all masses are, with the support for infinity, and the masses."""
        lo, hi = self._support
        points = np.concatenate(([lo], self._thresholds, [hi]))
        masses = np.diff(self._merged, prepend=0.0, append=1.0)
        total = float(masses.sum())
        assert abs(total - 1.0) <= _ROUNDING, f"masses add up to {total}"  # noqa: S101
        return points, masses


def _ascending(values: ArrayLike) -> Floats:
    thresholds = np.array(finite(values, "thresholds"))
    if thresholds.ndim != 1 or not (thresholds[:-1] < thresholds[1:]).all():
        msg = "thresholds do not ascend strictly; sort them and pool equal thresholds"
        raise ParameterError(msg)
    return thresholds


def _cdf(values: ArrayLike, steps: int, name: str) -> Floats:
    cdf = np.array(numbers(values, name))
    if cdf.shape != (steps + 1,):
        msg = (
            f"{name} has shape {cdf.shape}, not ({steps + 1},); give its value before the first "
            "threshold and after each"
        )
        raise ParameterError(msg)
    if not (cdf[0] >= 0.0 and cdf[-1] <= 1.0 and (cdf[:-1] <= cdf[1:]).all()):
        msg = f"{name} is not a CDF; its values must ascend within [0, 1]"
        raise ParameterError(msg)
    return cdf


def _span(support: tuple[float, float] | None, thresholds: Floats) -> tuple[float, float]:
    """Return the ends of the support, by default the outer thresholds."""
    ends = (thresholds[0], thresholds[-1]) if len(thresholds) else (-math.inf, math.inf)
    if support is None:
        return float(ends[0]), float(ends[1])
    ends_given = numbers(support, "support")
    if ends_given.shape != (2,):
        msg = f"support={shown(support)} is not a pair; give (lo, hi)"
        raise ParameterError(msg)
    lo, hi = ends_given.tolist()
    if not lo <= hi or (len(thresholds) and not (lo <= ends[0] and ends[1] <= hi)):
        msg = f"support=({lo!r}, {hi!r}) does not span the thresholds; widen it"
        raise ParameterError(msg)
    return lo, hi
