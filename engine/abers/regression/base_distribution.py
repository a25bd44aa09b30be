"""The base class of predictive distributions: calls that need only CDFs and quantiles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal, TypeAlias, overload

import numpy as np

from abers.calibration.intervals import VennInterval
from abers.validation import count, finite, generator, levels, places, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats
    from abers.plotting import Figure

    Many: TypeAlias = Sequence[float] | Floats
    CDF: TypeAlias = Literal["lower", "upper", "merged"]

__all__ = ["BaseDistribution", "pair"]


class BaseDistribution(ABC):
    """A predictive distribution: a merged CDF between a lower and an upper CDF.

    The quantiles, the mean, the scores and the draws are those of the merged CDF. Mass outside the
    support, or at its ends, is never dropped.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def mass_below(self) -> float:
        """Mass below all labels, or at the lower end of the support."""

    @property
    @abstractmethod
    def mass_above(self) -> float:
        """Mass above all labels, or at the upper end of the support."""

    @abstractmethod
    def _values(self, t: Floats, cdf: CDF) -> Floats:
        """Return a CDF at finite numbers."""

    @abstractmethod
    def _quantiles(self, q: Floats, rest: Floats, cdf: CDF) -> Floats:
        """Return the quantiles of a CDF at levels `q`, and `rest` = 1 - q, which may be tiny."""

    @abstractmethod
    def _crps(self, labels: Floats) -> Floats:
        """Return the CRPS of labels, with masses beyond all labels at the ends of the support."""

    @abstractmethod
    def _pit_ends(self, labels: Floats) -> tuple[Floats, Floats]:
        """Return the merged CDF just below labels, and at them."""

    @abstractmethod
    def _drawn(self, shares: Floats) -> Floats:
        """Return one label for each uniform random number in [0, 1)."""

    @abstractmethod
    def _figure(self, label: float | None, name: str) -> Figure:
        """Draw the CDFs."""

    def _summary(self) -> str:
        low, high = self.interval(0.8)
        return f"median {self.quantile(0.5):.4g}, 80 % in [{low:.4g}, {high:.4g}]"

    def plot(self, label: float | None = None, *, name: str = "label") -> Figure:
        """Draw the merged CDF, and the band from lower to upper CDF if it has a width.

        Step CDFs run on to both ends of the axis, at the height of the mass that lies beyond; a
        continuous one is drawn from its quantile at 0.0025 to that at 0.9975.

        Parameters
        ----------
        label
            The label, if it is known.
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
        """
        return self._figure(None if label is None else float(finite(label, "label")), name)

    # CDFs

    def _at(self, t: float | Many, cdf: CDF) -> Floats:
        numbers = places(t)
        infinite = np.isinf(numbers)
        values = self._values(np.where(infinite, 0.0, numbers), cdf)
        return np.where(infinite, numbers > 0.0, values).astype(np.float64)

    @overload
    def lower(self, t: float) -> float: ...
    @overload
    def lower(self, t: Many) -> Floats: ...
    def lower(self, t: float | Many) -> float | Floats:
        """Return the lower CDF at `t`: the least probability of a label of at most `t`.

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
            If `t` is not a number.
        """
        return plain(self._at(t, "lower"))

    @overload
    def upper(self, t: float) -> float: ...
    @overload
    def upper(self, t: Many) -> Floats: ...
    def upper(self, t: float | Many) -> float | Floats:
        """Return the upper CDF at `t`; parameters, result and errors as of `lower`."""
        return plain(self._at(t, "upper"))

    @overload
    def cdf(self, t: float) -> float: ...
    @overload
    def cdf(self, t: Many) -> Floats: ...
    def cdf(self, t: float | Many) -> float | Floats:
        """Return the merged CDF at `t`; parameters, result and errors as of `lower`."""
        return plain(self._at(t, "merged"))

    @overload
    def probability_above(self, t: float) -> VennInterval: ...
    @overload
    def probability_above(self, t: Many) -> tuple[Floats, Floats]: ...
    def probability_above(self, t: float | Many) -> VennInterval | tuple[Floats, Floats]:
        """Return the probability of a label above `t`: the binary Venn-Abers prediction there.

        Parameters
        ----------
        t
            As in `lower`.

        Returns
        -------
        VennInterval or tuple
            The pair (p0, p1) = (1 - upper, 1 - lower); for an array two arrays.
        """
        p0, p1 = 1.0 - self._at(t, "upper"), 1.0 - self._at(t, "lower")
        return (p0, p1) if p0.ndim else VennInterval(float(p0), float(p1))

    # Quantiles

    @overload
    def quantile(self, q: float) -> float: ...
    @overload
    def quantile(self, q: Many) -> Floats: ...
    def quantile(self, q: float | Many) -> float | Floats:
        """Return the smallest t at which the merged CDF reaches `q`.

        Parameters
        ----------
        q
            A level in (0, 1), or an array of them of any shape.

        Returns
        -------
        float or numpy.ndarray
            The quantiles; where `q` falls into mass beyond all labels, minus infinity or infinity
            of a step CDF, and an end of the support of a continuous one.

        Raises
        ------
        ParameterError
            If a level is not inside (0, 1).
        """
        level = levels(q, "q")
        return plain(self._quantiles(level, 1.0 - level, "merged"))

    @overload
    def interval(self, level: float, *, band: bool = ...) -> tuple[float, float]: ...
    @overload
    def interval(self, level: Many, *, band: bool = ...) -> tuple[Floats, Floats]: ...
    def interval(
        self, level: float | Many, *, band: bool = False
    ) -> tuple[float, float] | tuple[Floats, Floats]:
        """Return the central prediction interval, closed at both ends.

        Parameters
        ----------
        level
            Probability of the interval, in (0, 1), or an array of them.
        band
            Use the upper CDF for the left end and the lower one for the right end, instead of the
            merged CDF for both: the widest interval of any CDF in the band. That of
            `abers.regression.IVAPR` covers the label with a probability of at least `level`,
            under its conditions; the interval of the merged CDF carries no guarantee.

        Returns
        -------
        tuple
            The quantiles at (1 - level) / 2 and (1 + level) / 2. They may be infinite.

        Raises
        ------
        ParameterError
            If a level is not inside (0, 1).
        """
        tail = (1.0 - levels(level, "level")) / 2.0
        low = self._quantiles(tail, 1.0 - tail, "upper" if band else "merged")
        high = self._quantiles(1.0 - tail, tail, "lower" if band else "merged")
        return pair(low, high)

    # Scores and draws

    @overload
    def crps(self, y: float, *, proper: bool = ...) -> float: ...
    @overload
    def crps(self, y: Many, *, proper: bool = ...) -> Floats: ...
    def crps(self, y: float | Many, *, proper: bool = False) -> float | Floats:
        """Return the continuous ranked probability score (CRPS) of the merged CDF for a label.

        The integral of (F(t) - 1{y <= t})^2, with the masses beyond all labels put at the ends of
        the support, or at `y` where it lies beyond them.

        Parameters
        ----------
        y
            The label, or an array of labels of any shape.
        proper
            Leave these masses at infinity, where any mass makes the score infinite.

        Returns
        -------
        float or numpy.ndarray
            The scores, in the unit of the label; smaller is better.

        Raises
        ------
        ParameterError
            If a label is not finite.
        """
        labels = finite(y, "y")
        infinite = proper and (self.mass_below > 0.0 or self.mass_above > 0.0)
        return plain(np.full(labels.shape, np.inf) if infinite else self._crps(labels))

    @overload
    def pit(self, y: float, seed: int | np.random.Generator) -> float: ...
    @overload
    def pit(self, y: Many, seed: int | np.random.Generator) -> Floats: ...
    def pit(self, y: float | Many, seed: int | np.random.Generator) -> float | Floats:
        """Return the randomised probability integral transform (PIT) of a label.

        The merged CDF just below `y`, plus a random share of its jump at `y`, with the masses at
        infinity put as in `crps`. Uniform if labels are drawn from the distribution.

        Parameters
        ----------
        y
            The label, or an array of labels of any shape.
        seed
            Seed or generator of the random shares.

        Returns
        -------
        float or numpy.ndarray
            Numbers in [0, 1], of the shape of `y`.

        Raises
        ------
        ParameterError
            If a label is not finite, or the seed is no whole number and no generator.
        """
        before, after = self._pit_ends(finite(y, "y"))
        shares = generator(seed).random(before.shape)
        return plain(before + shares * (after - before))

    @overload
    def pit_ends(self, y: float) -> tuple[float, float]: ...
    @overload
    def pit_ends(self, y: Many) -> tuple[Floats, Floats]: ...
    def pit_ends(self, y: float | Many) -> tuple[float, float] | tuple[Floats, Floats]:
        """Return the ends between which `pit` draws: the merged CDF just below a label, and at it.

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
        """
        return pair(*self._pit_ends(finite(y, "y")))

    def sample(self, n: int, seed: int | np.random.Generator) -> Floats:
        """Draw labels; masses beyond all labels lie at the ends of the support.

        Parameters
        ----------
        n
            Number of labels.
        seed
            Seed or generator.

        Returns
        -------
        numpy.ndarray
            An array of shape (n,), in the unit of the label.

        Raises
        ------
        ParameterError
            If `n` is no whole number of 0 or more, or the seed no whole number and no generator.
        """
        return self._drawn(generator(seed).random(count(n, "n", 0)))


def pair(low: Floats, high: Floats) -> tuple[float, float] | tuple[Floats, Floats]:
    """Return two numbers as numbers, two arrays as arrays."""
    return (low, high) if low.ndim else (float(low), float(high))
