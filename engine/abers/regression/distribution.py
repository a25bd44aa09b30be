"""A predictive distribution: a step CDF, or a band of two and what they are merged to.

Governing rule: a CDF is its value before the first threshold and after each one. What it keeps
below and above them is mass at infinity, which is never dropped: whoever needs a finite place for
it (the mean, a score, a draw) says where, by the support.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from abers._predictive import merged
from abers._shown import shown
from abers.calibration.interval import VennInterval
from abers.exceptions import ParameterError
from abers.plots import band
from abers.regression._asked import count, finite, levels, numbers, places, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from abers.plots import Figure

    Floats: TypeAlias = NDArray[np.float64]
    Many: TypeAlias = Sequence[float] | Floats

__all__ = ["PredictiveDistribution"]

_ROUNDING = 1e-12  # how far from 1 the sum of all masses may be


class PredictiveDistribution:
    """A step CDF, or a band of a lower and an upper one, immutable.

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
        The upper CDF likewise, nowhere below the lower one; by default the lower one.
    support
        Where the mass outside the thresholds is put by `mean`, `crps`, `pit` and `sample`, a
        pair (lo, hi) around all thresholds, which may be infinite; by default the first and
        last threshold.

    Raises
    ------
    ParameterError
        If these are no CDFs, or the support does not span the thresholds.

    Notes
    -----
    **Guarantee.** None of its own: it has that of the calibrator which made it.

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
    >>> band.lower(1.5), band.upper(1.5), band.cdf(1.5)
    (0.25, 0.75, 0.5)
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
        self._support = _around(support, self._thresholds)
        single = np.array_equal(self._lower, self._upper)  # its own merge, to the last bit
        self._merged = self._lower if single else merged(self._lower, self._upper)
        for values in (self._thresholds, self._lower, self._upper, self._merged):
            values.setflags(write=False)

    # What it is

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
        """Where the masses below and above the thresholds are put when they need a place."""
        return self._support

    @property
    def mass_below(self) -> float:
        """Mass of the merged CDF below the first threshold, at minus infinity."""
        return float(self._merged[0])

    @property
    def mass_above(self) -> float:
        """Mass of the merged CDF above the last threshold, at infinity."""
        return float(1.0 - self._merged[-1])

    def __eq__(self, other: object) -> bool:
        """Tell whether two distributions have the same steps and the same support."""
        if not isinstance(other, PredictiveDistribution):
            return NotImplemented
        return self._support == other._support and all(
            np.array_equal(mine, theirs)
            for mine, theirs in (
                (self._thresholds, other._thresholds),
                (self._lower, other._lower),
                (self._upper, other._upper),
            )
        )

    def __hash__(self) -> int:
        """Hash the thresholds and the support."""
        return hash((self._thresholds.tobytes(), self._support))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by way of the steps."""
        return _made, (self._thresholds, self._lower, self._upper, self._support)

    def __repr__(self) -> str:
        """Name the median, an interval and the masses at infinity."""
        low, high = self.interval(0.8)
        return (
            f"<PredictiveDistribution of {len(self._thresholds)} steps: "
            f"median {self.quantile(0.5):.4g}, 80 % in [{low:.4g}, {high:.4g}], "
            f"mass {self.mass_below:.2g} below and {self.mass_above:.2g} above>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the steps as plain lists, for the wire.

        Returns
        -------
        dict
            `thresholds` (k numbers), `lower` and `upper` (k + 1 each) and `support` (a pair;
            None for an infinite end, which JSON does not have).

        Examples
        --------
        >>> PredictiveDistribution([1.0], [0.0, 1.0]).to_dict()["support"]
        [1.0, 1.0]
        """
        ends = [end if math.isfinite(end) else None for end in self._support]
        return {
            "thresholds": self._thresholds.tolist(),
            "lower": self._lower.tolist(),
            "upper": self._upper.tolist(),
            "support": ends,
        }

    def merged(self) -> PredictiveDistribution:
        """Give the merged CDF by itself, with the same support.

        Returns
        -------
        PredictiveDistribution
            A distribution without a band, which has the same quantiles, mean and scores.

        Examples
        --------
        >>> band = PredictiveDistribution([1.0, 2.0], [0.0, 0.25, 0.75], [0.25, 0.75, 1.0])
        >>> band.merged().interval(0.5, band=True)
        (1.0, 2.0)
        """
        return PredictiveDistribution(self._thresholds, self._merged, support=self._support)

    def plot(self, label: float | None = None, *, name: str = "label") -> Figure:
        """Draw the band between the lower and the upper CDF, and the merged CDF.

        The masses at infinity are drawn as they are: the steps run on to both ends of the axis,
        at the height of the mass that lies beyond.

        Parameters
        ----------
        label
            The label that came, if it did.
        name
            What is predicted, with its unit; the name of the axis.

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
        >>> unsure = PredictiveDistribution([1.0, 2.0], [0.0, 0.25, 0.75], [0.25, 0.75, 1.0])
        >>> unsure.plot(1.5, name="degrees Celsius").layout.xaxis.title.text
        'degrees Celsius'
        """
        came = None if label is None else float(finite(label, "label"))
        return band(self._thresholds, self._lower, self._upper, self._merged, label=came, name=name)

    # Its CDFs

    @overload
    def lower(self, t: float) -> float: ...
    @overload
    def lower(self, t: Many) -> Floats: ...
    def lower(self, t: float | Many) -> float | Floats:
        """Give the lower CDF at `t`: the least probability of a label of at most `t`.

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
        return plain(_at(self._thresholds, self._lower, t))

    @overload
    def upper(self, t: float) -> float: ...
    @overload
    def upper(self, t: Many) -> Floats: ...
    def upper(self, t: float | Many) -> float | Floats:
        """Give the upper CDF at `t`, as `lower`.

        Parameters
        ----------
        t
            As in `lower`.

        Returns
        -------
        float or numpy.ndarray
            Probabilities, of the shape of `t`.
        """
        return plain(_at(self._thresholds, self._upper, t))

    @overload
    def cdf(self, t: float) -> float: ...
    @overload
    def cdf(self, t: Many) -> Floats: ...
    def cdf(self, t: float | Many) -> float | Floats:
        """Give the merged CDF at `t`, as `lower`.

        With p0 = 1 - U and p1 = 1 - L it is 1 - p1 / (1 - p0 + p1).

        Parameters
        ----------
        t
            As in `lower`.

        Returns
        -------
        float or numpy.ndarray
            Probabilities, of the shape of `t`.
        """
        return plain(_at(self._thresholds, self._merged, t))

    @overload
    def probability_above(self, t: float) -> VennInterval: ...
    @overload
    def probability_above(self, t: Many) -> tuple[Floats, Floats]: ...
    def probability_above(self, t: float | Many) -> VennInterval | tuple[Floats, Floats]:
        """Probability of a label above `t`: the binary Venn-Abers prediction at that threshold.

        Parameters
        ----------
        t
            As in `lower`.

        Returns
        -------
        VennInterval or tuple
            The pair (p0, p1) = (1 - upper, 1 - lower); for an array two arrays.

        Examples
        --------
        >>> band = PredictiveDistribution([1.0, 2.0], [0.0, 0.25, 0.75], [0.25, 0.75, 1.0])
        >>> band.probability_above(1.5)
        VennInterval(p0=0.25, p1=0.75)
        """
        p0 = 1.0 - _at(self._thresholds, self._upper, t)
        p1 = 1.0 - _at(self._thresholds, self._lower, t)
        return (p0, p1) if p0.ndim else VennInterval(float(p0), float(p1))

    # Quantiles

    @overload
    def quantile(self, q: float) -> float: ...
    @overload
    def quantile(self, q: Many) -> Floats: ...
    def quantile(self, q: float | Many) -> float | Floats:
        """Smallest t at which the merged CDF reaches `q`.

        Parameters
        ----------
        q
            A level in (0, 1), or an array of them of any shape.

        Returns
        -------
        float or numpy.ndarray
            The quantiles; minus infinity or infinity where `q` falls into the mass there.

        Raises
        ------
        ParameterError
            If a level is not inside (0, 1).

        Examples
        --------
        >>> band = PredictiveDistribution([1.0, 2.0], [0.0, 0.25, 0.75], [0.25, 0.75, 1.0])
        >>> band.quantile([0.1, 0.5, 0.6, 0.9]).tolist()
        [-inf, 1.0, 2.0, inf]
        """
        return plain(self._reached(self._merged, levels(q, "q")))

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
            The quantiles of the upper, and of the lower CDF.

        Raises
        ------
        ParameterError
            If a level is not inside (0, 1).

        Examples
        --------
        >>> band = PredictiveDistribution([1.0, 2.0], [0.0, 0.25, 0.75], [0.25, 0.75, 1.0])
        >>> band.quantile_ends(0.5)
        (1.0, 2.0)
        """
        asked = levels(q, "q")
        low, high = self._reached(self._upper, asked), self._reached(self._lower, asked)
        return (low, high) if low.ndim else (float(low), float(high))

    @overload
    def interval(self, level: float, *, band: bool = ...) -> tuple[float, float]: ...
    @overload
    def interval(self, level: Many, *, band: bool = ...) -> tuple[Floats, Floats]: ...
    def interval(
        self, level: float | Many, *, band: bool = False
    ) -> tuple[float, float] | tuple[Floats, Floats]:
        """Central prediction interval, closed at both ends.

        Parameters
        ----------
        level
            Probability that the interval is to hold, in (0, 1), or an array.
        band
            Take the left end from the upper CDF and the right end from the lower one, which
            gives the widest interval of any CDF in the band, instead of the merged CDF.

        Returns
        -------
        tuple
            The ends, which may be infinite.

        Raises
        ------
        ParameterError
            If a level is not inside (0, 1).

        Examples
        --------
        >>> band = PredictiveDistribution([1.0, 2.0], [0.0, 0.25, 0.75], [0.25, 0.75, 1.0])
        >>> band.interval(0.5), band.interval(0.5, band=True)
        ((1.0, 2.0), (-inf, 2.0))
        """
        tail = (1.0 - levels(level, "level")) / 2.0
        low = self._reached(self._upper if band else self._merged, tail)
        high = self._reached(self._lower if band else self._merged, 1.0 - tail)
        return (low, high) if low.ndim else (float(low), float(high))

    def _reached(self, values: Floats, q: Floats) -> Floats:
        places: Floats = np.concatenate(([-np.inf], self._thresholds, [np.inf]))
        return places[np.searchsorted(values, q)]

    # What needs a place for the masses at infinity

    @property
    def mean(self) -> float:
        """Mean of the merged CDF with its masses at the ends of the support."""
        places, masses = self._placed()
        held = masses > 0.0  # a place without mass may be infinite
        with np.errstate(invalid="ignore"):  # infinities of both signs: there is no mean
            return float(places[held] @ masses[held])

    @overload
    def crps(self, y: float, *, proper: bool = ...) -> float: ...
    @overload
    def crps(self, y: Many, *, proper: bool = ...) -> Floats: ...
    def crps(self, y: float | Many, *, proper: bool = False) -> float | Floats:
        """Continuous ranked probability score of the merged CDF for a label.

        The integral of (F(t) - 1{y <= t})^2, exactly, with the masses at infinity put at the
        ends of the support, or at `y` where it lies beyond them.

        Parameters
        ----------
        y
            The label, or an array of labels of any shape.
        proper
            Leave the masses at infinity, where any mass makes the score infinite.

        Returns
        -------
        float or numpy.ndarray
            The scores, in the unit of the label; smaller is better.

        Raises
        ------
        ParameterError
            If a label is not finite.

        Examples
        --------
        >>> band = PredictiveDistribution([1.0, 2.0], [0.0, 0.25, 0.75], [0.25, 0.75, 1.0])
        >>> round(band.crps(1.5), 12), band.crps(1.5, proper=True)
        (0.25, inf)
        """
        labels = finite(y, "y")
        if proper and (self.mass_below > 0.0 or self.mass_above > 0.0):
            return plain(np.full(labels.shape, np.inf))
        places, masses = self._placed()
        after = np.append(self._merged, 1.0)
        gaps = places - labels[..., np.newaxis]
        gaps[..., 0] = np.minimum(gaps[..., 0], 0.0)
        gaps[..., -1] = np.maximum(gaps[..., -1], 0.0)
        held = masses > 0.0  # a place without mass may be infinite
        gaps, masses, after = gaps[..., held], masses[held], after[held]
        return plain(2.0 * ((gaps > 0.0) - after + masses / 2.0) * gaps @ masses)

    @overload
    def pit(self, y: float, seed: int | np.random.Generator) -> float: ...
    @overload
    def pit(self, y: Many, seed: int | np.random.Generator) -> Floats: ...
    def pit(self, y: float | Many, seed: int | np.random.Generator) -> float | Floats:
        """Randomised probability integral transform of a label.

        The merged CDF just below `y`, plus a random share of its jump at `y`, with the masses at
        infinity put as in `crps`. Uniform if labels are drawn from the distribution.

        Parameters
        ----------
        y
            The label, or an array of labels of any shape.
        seed
            Where the random shares come from.

        Returns
        -------
        float or numpy.ndarray
            Numbers in [0, 1], of the shape of `y`.

        Raises
        ------
        ParameterError
            If a label is not finite.

        Examples
        --------
        >>> PredictiveDistribution([1.0, 2.0], [0.0, 0.5, 1.0]).pit(1.5, seed=0)
        0.5
        """
        before, after = map(np.asarray, self.pit_ends(y))
        shares = np.random.default_rng(seed).random(before.shape)
        return plain(before + shares * (after - before))

    @overload
    def pit_ends(self, y: float) -> tuple[float, float]: ...
    @overload
    def pit_ends(self, y: Many) -> tuple[Floats, Floats]: ...
    def pit_ends(self, y: float | Many) -> tuple[float, float] | tuple[Floats, Floats]:
        """Give the ends between which `pit` draws: the merged CDF just below a label, and at it.

        Parameters
        ----------
        y
            The label, or an array of labels of any shape.

        Returns
        -------
        tuple
            The ends, of the shape of `y`, with the masses at infinity put as in `crps`.

        Raises
        ------
        ParameterError
            If a label is not finite.

        Examples
        --------
        >>> PredictiveDistribution([1.0, 2.0], [0.0, 0.5, 1.0]).pit_ends(2.0)
        (0.5, 1.0)
        """
        labels = finite(y, "y")
        lo, hi = self._support
        before = self._merged[np.searchsorted(self._thresholds, labels, side="left")]
        after = self._merged[np.searchsorted(self._thresholds, labels, side="right")]
        before = np.where(labels > lo, before, 0.0)
        after = np.where(labels < hi, after, 1.0)
        return (before, after) if labels.ndim else (float(before), float(after))

    def sample(self, n: int, seed: int | np.random.Generator) -> Floats:
        """Draw labels from the merged CDF with its masses at the ends of the support.

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

        Examples
        --------
        >>> PredictiveDistribution([1.0, 2.0], [0.0, 0.5, 1.0]).sample(4, seed=0).tolist()
        [1.0, 2.0, 2.0, 2.0]
        """
        drawn = 1.0 - np.random.default_rng(seed).random(
            count(n, "n", 0)
        )  # in (0, 1], as quantiles are
        places, _ = self._placed()
        # A draw of 1 belongs to the last place that has mass.
        return places[np.searchsorted(np.append(self._merged, 1.0), drawn)]

    def _placed(self) -> tuple[Floats, Floats]:
        """Places of all masses, those at infinity at the ends of the support, and the masses."""
        lo, hi = self._support
        places = np.concatenate(([lo], self._thresholds, [hi]))
        masses = np.diff(self._merged, prepend=0.0, append=1.0)
        total = float(masses.sum())
        assert abs(total - 1.0) <= _ROUNDING, f"masses add up to {total}"  # noqa: S101
        return places, masses


def _made(
    thresholds: Floats, lower: Floats, upper: Floats, support: tuple[float, float]
) -> PredictiveDistribution:
    return PredictiveDistribution(thresholds, lower, upper, support=support)


def _at(thresholds: Floats, values: Floats, t: ArrayLike) -> Floats:
    where = places(t)
    found = values[np.searchsorted(thresholds, where, side="right")]
    return np.where(np.isinf(where), where > 0.0, found).astype(np.float64)


def _ascending(values: ArrayLike) -> Floats:
    thresholds = np.array(finite(values, "thresholds"))
    if thresholds.ndim != 1 or not (thresholds[:-1] < thresholds[1:]).all():
        msg = "thresholds do not ascend strictly; sort them and pool equal ones"
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
        msg = f"{name} is no CDF; its values ascend within [0, 1]"
        raise ParameterError(msg)
    return cdf


def _around(support: tuple[float, float] | None, thresholds: Floats) -> tuple[float, float]:
    ends = (thresholds[0], thresholds[-1]) if len(thresholds) else (-math.inf, math.inf)
    if support is None:
        return float(ends[0]), float(ends[1])
    pair = numbers(support, "support")
    if pair.shape != (2,):
        msg = f"support={shown(support)} is no pair; give (lo, hi)"
        raise ParameterError(msg)
    lo, hi = pair.tolist()
    if not lo <= hi or (len(thresholds) and not (lo <= ends[0] and ends[1] <= hi)):
        msg = f"support=({lo!r}, {hi!r}) does not span the thresholds; widen it"
        raise ParameterError(msg)
    return lo, hi
