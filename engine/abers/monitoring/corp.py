"""CORP reliability diagrams, and the decomposition of scores that they give.

The isotonic regression of the labels recalibrates the forecasts and pools them in blocks, without a
choice of bins. Everything else is read off these blocks.

Reliability diagram of all forecasts of one view, in bounded memory. Forecasts are counted in the
cells of a fixed grid, and each cell stands for their mean.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from abers import validation
from abers.backends import core
from abers.exceptions import ScoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import ArrayLike

    from abers._core import Tally
    from abers.arrays import Floats, Integers

    Costs: TypeAlias = Callable[[Floats, Integers, Integers], Floats]

__all__ = [
    "Bands",
    "Decomposition",
    "Diagram",
    "ForecastCells",
    "Reliability",
    "corp",
    "drawn_bands",
    "probabilities",
]


class Decomposition(NamedTuple):
    """Parts of a mean score: score = miscalibration - discrimination + uncertainty.

    Attributes
    ----------
    score
        Mean loss of the forecasts.
    miscalibration
        Loss that recalibration would have saved; 0 or more.
    discrimination
        Loss that recalibrated forecasts save over the share of label 1 as the only forecast; 0 or
        more.
    uncertainty
        Loss of that only forecast: it depends only on the labels.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


class Bands(NamedTuple):
    """Consistency bands: where the diagram of calibrated forecasts would lie.

    Attributes
    ----------
    forecast
        Array of shape (k,): the distinct forecasts, ascending.
    lower, upper
        Arrays of shape (k,): the ends of the band at each.
    """

    forecast: Floats
    lower: Floats
    upper: Floats


class Diagram:
    """CORP reliability diagram of some forecasts.

    Parameters
    ----------
    forecasts
        Array of shape (k,): the distinct forecasts, ascending.
    counts
        Array of shape (k,): number of forecasts of each, at least one.
    positives
        Array of shape (k,): how many of them have label 1.

    Attributes
    ----------
    lower, upper
        Arrays of shape (blocks,): smallest and largest forecast of each block.
    probability
        Array of shape (blocks,): share of label 1, ascending; the recalibrated forecasts.
    count, positives
        Arrays of shape (blocks,): number of forecasts of each block, and how many have label 1.

    Notes
    -----
    **Guarantee.** With any proper scoring rule, no function that never decreases with the forecast
    has less loss on these labels than the recalibrated forecasts. That is a statement about these
    labels, not about later labels.

    References
    ----------
    Dimitriadis, Gneiting & Jordan (2021), Stable reliability diagrams for probabilistic
    classifiers; Ayer et al. (1955) for pooling adjacent violators.

    Examples
    --------
    >>> diagram = Diagram(np.array([0.2, 0.6, 0.7]), np.array([4, 2, 2]), np.array([1, 2, 1]))
    >>> diagram.lower.tolist(), diagram.upper.tolist(), diagram.probability.tolist()
    ([0.2, 0.6], [0.2, 0.7], [0.25, 0.75])
    >>> diagram
    Diagram of 8 labels in 2 blocks: Brier score 0.2075, miscalibration 0.0200, \
discrimination 0.0625, uncertainty 0.2500
    """

    def __init__(self, forecasts: Floats, counts: Integers, positives: Integers) -> None:
        self._forecasts, self._counts, self._positives = forecasts, counts, positives
        ends = np.empty(len(forecasts), np.int64)
        ends = ends[: core.pooled(counts, positives, ends)]
        self.upper = forecasts[ends - 1]
        self.lower = forecasts[np.concatenate(([0], ends))[:-1]]
        self.count, self.positives = (
            np.diff(column.cumsum()[ends - 1], prepend=0) for column in (counts, positives)
        )
        self.probability = self.positives / self.count

    def __repr__(self) -> str:
        """Return the size of the diagram, and the parts of its Brier score."""
        labels, parts = int(self.count.sum()), self.decomposition()
        scores = ", ".join(f"{name} {value:.4f}" for name, value in parts._asdict().items())
        return f"Diagram of {labels:,} labels in {len(self.count):,} blocks: Brier {scores}"

    def decomposition(self, loss: Literal["brier", "log"] = "brier") -> Decomposition:
        """Split the mean loss of the forecasts into its three parts.

        Parameters
        ----------
        loss
            The Brier score, or the logarithmic loss in nats. A forecast of 0 for a label 1, or of
            1 for a label 0, makes the latter infinite, and the miscalibration with it.

        Returns
        -------
        Decomposition
            The parts; NaN if there is no forecast.

        Examples
        --------
        >>> tuple(corp([0.25, 0.25, 0.75, 0.75], [0, 0, 1, 0]).decomposition())
        (0.1875, 0.0625, 0.0625, 0.1875)
        """
        costs, total = _COSTS[loss], int(self.count.sum())
        if not total:
            return Decomposition(*[math.nan] * 4)
        positives = self.positives.sum(keepdims=True)
        score, best, worst = (
            float(costs(*groups).sum()) / total
            for groups in (
                (self._forecasts, self._counts, self._positives),
                (self.probability, self.count, self.positives),
                (positives / total, np.array([total]), positives),
            )
        )
        # Below 0 only by rounding.
        return Decomposition(score, max(score - best, 0.0), max(worst - best, 0.0), worst)

    def coarser(self, parts: int) -> Diagram:
        """Return the diagram of forecasts that are pooled at their mean in equal parts of [0, 1].

        It has at most `parts` distinct forecasts, so its bands take less time.

        Examples
        --------
        >>> corp([0.10, 0.20, 0.90], [0, 1, 1]).coarser(4).upper.round(2).tolist()
        [0.15, 0.9]
        """
        bins = np.minimum((self._forecasts * parts).astype(np.int64), parts - 1)
        sums, counts, positives = (
            np.bincount(bins, column, minlength=parts)
            for column in (self._forecasts * self._counts, self._counts, self._positives)
        )
        some = counts > 0
        means = np.clip(sums[some] / counts[some], 0.0, 1.0)
        return Diagram(means, counts[some].astype(np.int64), positives[some].astype(np.int64))

    def bands(self, level: float = 0.9, *, resamples: int = 100, seed: int = 0) -> Bands:
        """Return the consistency bands: labels are drawn as if the forecasts were right.

        A diagram that leaves the band speaks against the forecasts: at each forecast by itself
        it does so in 1 - `level` of the cases if they are right.

        Parameters
        ----------
        level
            Share of the drawn diagrams that lie inside at each forecast.
        resamples, seed
            Number of drawn diagrams, and the seed of the draws.

        Returns
        -------
        Bands
            Bands that contain the diagonal at every forecast.

        Raises
        ------
        ParameterError
            If the level is not between 0 and 1, there is no draw, or the seed is no whole number.

        Notes
        -----
        The forecasts are fixed, and their labels drawn independently. So the bands do not apply to
        labels that depend on each other given their forecasts.

        Examples
        --------
        >>> low, high = corp([0.5] * 100, [1, 0] * 50).bands()[1:]
        >>> bool(0.35 < low[0] < 0.5 < high[0] < 0.65)
        True
        """
        level = validation.fraction(level, "level")
        resamples = validation.count(resamples, "resamples", 1)
        forecasts, counts = self._forecasts, self._counts
        rng = validation.generator(seed)
        draws = (rng.binomial(counts, forecasts) for _ in range(resamples))
        return drawn_bands(forecasts, counts, draws, level)


def drawn_bands(
    forecasts: Floats, counts: Integers, draws: Iterable[Integers], level: float = 0.9
) -> Bands:
    """Return the bands within which diagrams of drawn labels lie; see `Diagram.bands`."""
    drawn = []
    for positives in draws:
        one = Diagram(forecasts, counts, positives)
        drawn.append(one.probability[np.searchsorted(one.upper, forecasts)])
    lower, upper = np.quantile(drawn, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return Bands(forecasts, np.minimum(lower, forecasts), np.maximum(upper, forecasts))


def corp(forecasts: ArrayLike, labels: ArrayLike) -> Diagram:
    """Return the exact CORP reliability diagram of forecasts and their labels.

    Parameters
    ----------
    forecasts
        Array of shape (n,): probabilities of label 1.
    labels
        Array of shape (n,): 0 or 1.

    Returns
    -------
    Diagram
        Of these forecasts, equal forecasts pooled.

    Raises
    ------
    ScoreError
        If a forecast is not a probability.
    LabelError
        If a label is neither 0 nor 1.
    ParameterError
        If labels and forecasts differ in number.

    Examples
    --------
    >>> diagram = corp([0.1, 0.4, 0.35, 0.8], [0, 1, 0, 1])
    >>> diagram.probability.tolist(), diagram.count.tolist()
    ([0.0, 1.0], [2, 2])
    """
    issued = probabilities(forecasts)
    truth = validation.labels(labels, len(issued))
    distinct, groups, counts = np.unique(issued, return_inverse=True, return_counts=True)
    positives = np.bincount(groups, truth, minlength=len(distinct)).astype(np.int64)
    return Diagram(distinct, counts.astype(np.int64), positives)


def probabilities(forecasts: ArrayLike) -> Floats:
    """Check and return an array of forecasts."""
    issued = validation.scores(forecasts)
    bad = np.flatnonzero(~((issued >= 0.0) & (issued <= 1.0)))
    if bad.size:
        forecast = float(issued[bad[0]])
        msg = f"forecast {forecast!r} is not a probability; it must lie between 0 and 1"
        raise ScoreError(msg)
    return issued


def _squares(forecasts: Floats, counts: Integers, positives: Integers) -> Floats:
    return positives * (1.0 - forecasts) ** 2 + (counts - positives) * forecasts**2


def _logarithms(forecasts: Floats, counts: Integers, positives: Integers) -> Floats:
    negatives = counts - positives
    with np.errstate(divide="ignore", invalid="ignore"):
        ones, zeros = -positives * np.log(forecasts), -negatives * np.log1p(-forecasts)
    # A label that never came costs nothing, with any probability.
    return np.where(positives > 0, ones, 0.0) + np.where(negatives > 0, zeros, 0.0)


_COSTS: dict[str, Costs] = {"brier": _squares, "log": _logarithms}


class ForecastCells(NamedTuple):
    """The mean forecast of each cell that has any, ascending, and the counts there."""

    forecasts: Floats
    counts: Integers
    positives: Integers


class Reliability:
    """CORP reliability diagram of all forecasts so far.

    Parameters
    ----------
    tally
        Counts in the core that others add to as well; none unless given.

    Notes
    -----
    Cells have a width of 1/8 in log odds, from -8 to 8, and also end at the multiples of 1/20; one
    more lies beyond each end.

    **Guarantee.** That of `Diagram`, for forecasts that are replaced by the mean of their cell. A
    forecast that is alone in its cell, however often, stays exact if it is at least 2**-12;
    a smaller forecast is rounded to multiples of 2**-64. There are 148 cells, of 32 bytes each.

    Sums are exact, so they have no order: the order of the forecasts, their batches and the number
    of `Reliability` over which they were spread make no difference.

    Examples
    --------
    >>> reliability = Reliability()
    >>> reliability.update_many([0.25, 0.25, 0.75, 0.75], [0, 0, 1, 0])
    >>> reliability.diagram().probability.tolist()
    [0.0, 0.5]
    >>> reliability.decomposition().miscalibration
    0.0625
    """

    def __init__(self, tally: Tally | None = None) -> None:
        self._tally = core.Tally() if tally is None else tally

    @property
    def count(self) -> int:
        """Number of forecasts."""
        return int(self.cells().counts.sum())

    def update_many(self, forecasts: ArrayLike, labels: ArrayLike) -> None:
        """Count labelled forecasts: arrays as of `corp`; if it would raise, none is counted."""
        issued = probabilities(forecasts)
        self.add(issued, validation.labels(labels, len(issued)).astype(np.float64))

    def add(self, forecasts: Floats, labels: Floats) -> None:
        """Count forecasts and labels that were checked; see `update_many`."""
        self._tally.add(forecasts, labels)

    def diagram(self) -> Diagram:
        """Return the diagram of the mean forecasts of the cells."""
        return Diagram(*self.cells())

    def decomposition(self) -> Decomposition:
        """Return the parts of the mean Brier score of these forecasts; see `Diagram`."""
        return self.diagram().decomposition()

    def state(self) -> bytes:
        """Return the state: what `restore` takes."""
        return self._tally.save()

    @classmethod
    def restore(cls, state: bytes) -> Reliability:
        """Return the `Reliability` with this state; a ValueError if it cannot be one."""
        return cls(core.Tally.load(state))

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        """Pickle and copy the state."""
        return type(self).restore, (self.state(),)

    @classmethod
    def total(cls, many: Iterable[Reliability]) -> Reliability:
        """Add up different forecasts."""
        whole = cls()
        for one in many:
            whole.include(one)
        return whole

    def include(self, other: Reliability) -> None:
        """Add the forecasts of another."""
        self._tally.include(other._tally)

    def cells(self) -> ForecastCells:
        """Return the mean forecast and the counts of each cell."""
        size = self._tally.size()
        cells = ForecastCells(np.empty(size), *np.empty((2, size), np.int64))
        self._tally.cells(*cells)
        return cells
