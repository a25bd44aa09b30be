"""Inductive Venn-Abers predictive distributions, updated one labelled observation at a time.

A predictive set of the chosen backend, or a grid of calibration sets, does the mathematics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from abers import validation
from abers.backends import core
from abers.base import NO_TIME, Capabilities
from abers.exceptions import ParameterError
from abers.forgetting import Forgetting
from abers.regression import predictive_sets
from abers.regression.distribution import PredictiveDistribution
from abers.regression.distribution_calibrator import (
    NO_LEVELS,
    DistributionCalibrator,
    Quantiles,
    support_ends,
)
from abers.regression.grid import GridSet
from abers.steps import PREDICT, Steps
from abers.validation import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers._core import PredictiveSet
    from abers.arrays import Floats, Integers

    Held: TypeAlias = PredictiveSet | GridSet

__all__ = ["IVAPR", "Quantiles"]


class IVAPR(DistributionCalibrator[float]):
    """Turn the scores of any regression model into calibrated predictive distributions.

    The inductive Venn-Abers predictor for regression: at every threshold t the binary Venn-Abers
    prediction of "the label is above t", exact, so that an observation gets a lower and an upper
    predictive CDF. The score may be any output of the model that is larger for larger labels, in
    any unit.

    At most one of `window`, `max_age` and `half_life` may be given; with none, everything is kept.

    Parameters
    ----------
    window, max_age, half_life
        How to forget, as of `abers.VennAbers`.
    support
        Where `PredictiveDistribution` puts the masses beyond the labels seen, a pair of finite
        ends between which all labels lie; by default the smallest and the largest label kept, or
        the first and the last of `grid`.
    grid
        Ascending thresholds at which alone the CDFs are kept, for streams with many predictions:
        exact there, bracketed between. By default every label kept is one.

    Raises
    ------
    ParameterError
        If more than one of the three is given, or an option makes no sense.

    Notes
    -----
    **Guarantee.** With a scorer fixed before the calibration data and exchangeable observations of
    equal weight, at every step, also with a `window`:

    - At every threshold one of the two CDFs, the one that belongs to the true label, is perfectly
      calibrated (Vovk & Petej 2014, Theorem 1, for each threshold).
    - For every level q at once, P(label < low) <= q and P(label > high) <= 1 - q, where low is the
      smallest and high the largest t at which a CDF of the band can reach q. So
      ``interval(level, band=True)`` covers the label with a probability of at least `level`.

    Proof. Let F be the CDF that the fit with the true label has at the score, and Q the smallest t
    at which F reaches q. F lies in the band, so low <= Q <= high. The fit is symmetric in its
    n + 1 observations, and its quantiles are the isotonic regressions of the quantile: among the
    observations with one value of Q, at most a share q of the labels is below it, and at most
    1 - q above. The query is equally likely to be any of them. So this holds given Q too, which is
    not seen, but lies in [low, high]; the coverage is not conditional on both ends together.

    Infinite ends are part of it. Quantiles of the merged CDF carry no guarantee; their coverage is
    close to their level in practice. A half-life, unequal weights, a scorer that keeps learning,
    labels that come late or never because of their value, or drift void all of it.

    **Ties** in the score and in the label are pooled; the order of arrival never matters.

    **Cost.** A prediction reads the observations near its score, as many as can matter (about
    n^(2/3) of n where the score tells much, in the worst case all), and a few quantiles take a
    fraction of the whole band. With `grid` a prediction takes a few microseconds
    for each of them, and so does a label.

    **Weights and times** are as in `abers.VennAbers`. **Threads** may share a calibrator.

    References
    ----------
    Petej (2018), Inductive Venn-Abers prediction for regression, Algorithm 2, here without its
    quadratic precomputation; Henzi, Ziegel & Gneiting (2021), Isotonic distributional regression,
    which lies in the band; Allen, Gavrilopoulos, Henzi, Kleger & Ziegel (2025), In-sample
    calibration yields conformal calibration guarantees: this band is their conformal isotonic
    distributional regression.

    Examples
    --------
    >>> from abers.regression import IVAPR
    >>> calibrator = IVAPR(support=(0.0, 10.0))
    >>> calibrator.learn_many([1.0, 2.0, 3.0, 4.0], [1.5, 1.0, 4.0, 3.0])
    >>> predicted = calibrator.predict_one(3.5)
    >>> predicted.lower(3.0), predicted.upper(3.0), round(predicted.quantile(0.5), 3)
    (0.3333333333333333, 0.6666666666666666, 3.0)
    >>> [predicted.quantile(0.5) for predicted in calibrator.predict_many([1.5, 3.5])]
    [1.0, 3.0]
    >>> calibrator.quantile_one(3.5, 0.5), calibrator.quantiles_many([3.5], [0.5]).high.tolist()
    (3.0, [[4.0]])
    >>> predicted.interval(0.3, band=True), predicted.interval(0.9, band=True)
    ((1.0, inf), (-inf, inf))
    """

    capabilities = Capabilities(task="regression", answer="distribution", columns=("levels",))
    _magic: ClassVar[bytes] = b"abersIR\x01"

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        *,
        support: tuple[float, float] | None = None,
        grid: ArrayLike | None = None,
    ) -> None:
        super().__init__(window, max_age, half_life)
        rule, self._ends, self._grid = self._forgetting, support_ends(support), _grid(grid)
        self._hold(core.PredictiveSet(rule.window or 0, rule.max_age or 0.0, rule.half_life or 0.0))

    def _hold(self, memory: PredictiveSet) -> None:
        self._bounded = self._ends != (-np.inf, np.inf)
        self._memory, grid = memory, self._grid
        self._held: Held = GridSet(memory, grid) if len(grid) else memory

    @property
    def support(self) -> tuple[float, float] | None:
        """The ends between which all labels lie, None if they were not given."""
        return self._ends if self._bounded else None

    @property
    def grid(self) -> Floats | None:
        """The thresholds at which alone the CDFs are kept, None without a grid."""
        return self._grid.copy() if len(self._grid) else None

    def _options(self) -> list[str]:
        support = [f"support={self._ends}"] if self._bounded else []
        grid = [f"grid of {len(self._grid)}"] if len(self._grid) else []
        return [*super()._options(), *support, *grid]

    def quantile_one(self, score: float, q: float, time: float | None = None) -> float:
        """Predict one quantile for one score, without making the whole distribution.

        Parameters
        ----------
        score, time
            As in `predict_one`.
        q
            The level, in (0, 1).

        Returns
        -------
        float
            The same as ``predict_one(score, time).quantile(q)``.

        Raises
        ------
        ScoreError, TimeError, ParameterError
            If an argument cannot be used.
        """
        score = validation.score(score)
        when = NO_TIME if time is None else self._forgetting.time(time)
        (level,) = validation.level_list([q]).tolist()
        with self._lock:
            return self._held.quantile(score, level, when)

    def predict_many(  # type: ignore[override]  # not quantiles
        self,
        scores: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
        numbers: ArrayLike | None = None,
    ) -> list[PredictiveDistribution]:
        """Return the distributions, a list, for an array of scores; only times change them."""
        column = validation.scores(scores)
        self._weights(weights, len(column))
        when = self._forgetting.times(times, len(column), required=False)
        with self._lock:
            answers = self._held.predict_many(column, when)
        return [self._distribution(*answer) for answer in answers]

    def quantiles_many(
        self, scores: ArrayLike, levels: ArrayLike, *, times: ArrayLike | None = None
    ) -> Quantiles:
        """Predict quantiles for an array of scores, without building the whole distributions.

        Parameters
        ----------
        scores
            Array of shape (n,).
        levels
            Array of shape (k,) of levels in (0, 1).
        times
            Array of shape (n,), as in `predict_one`.

        Returns
        -------
        Quantiles
            Three arrays of shape (n, k).

        Raises
        ------
        InputError
            If a row or a level cannot be used.
        """
        column = validation.scores(scores)
        when = self._forgetting.times(times, len(column), required=False)
        kinds = np.full(len(column), PREDICT, np.uint8)
        steps = Steps(kinds, column, column, None, when, extra=validation.level_list(levels))
        found: Quantiles = self._transact(self._take, steps)
        return found

    def _predict(
        self, score: float, weight: int, time: float, number: int
    ) -> PredictiveDistribution:
        return self._distribution(*self._held.predict(score, time))

    def _take(self, steps: Steps, held: Integers | None) -> tuple[Quantiles, int]:
        levels = NO_LEVELS if steps.extra is None else steps.extra
        quantiles = np.full((3, len(steps.kinds), len(levels)), np.nan)
        done = self._held.run(*steps[:5], levels, quantiles, held)
        return Quantiles(*quantiles), done

    def _save(self) -> bytes:
        return predictive_sets.dump(self._memory, self._ends, self._grid)

    def _load(self, payload: memoryview) -> None:
        memory, header, self._grid = predictive_sets.load(payload)
        self._forget_by(Forgetting.of(memory))
        self._ends = header.lo, header.hi
        self._hold(memory)

    def _distribution(
        self, smallest: float, largest: float, table: Floats
    ) -> PredictiveDistribution:
        ends = self._ends if self._bounded else (smallest, largest)
        return PredictiveDistribution(table[0, 1:], table[1], table[2], support=ends)


def _grid(given: ArrayLike | None) -> Floats:
    if given is None:
        return np.empty(0)
    grid = validation.numbers(given, "grid") + 0.0
    apart = grid.ndim == 1 and (np.nextafter(grid[:-1], np.inf) < grid[1:]).all()
    if not grid.size or not apart or not np.isfinite(grid).all():
        msg = f"grid={shown(given)} is not a list of ascending finite numbers; sort them"
        raise ParameterError(msg)
    return grid
