"""Protected regression: predictive distributions at a bounded price against a base.

A pool of methods gives the distribution: the base, its quantile calibration, inductive Venn-Abers
predictive distributions, recent residuals, and a line that follows late ones. The core does the
mathematics.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from abers import validation
from abers.arrays import EXPIRE, PREDICT
from abers.backends import core
from abers.base import Capabilities
from abers.calibration.protected import LaneMixture
from abers.exceptions import ParameterError, ScoreError
from abers.mathematics import Forgetting, Steps
from abers.regression.distribution import PredictiveDistribution
from abers.regression.distribution_calibrator import (
    NO_LEVELS,
    DistributionCalibrator,
    Quantiles,
    require_range,
    support_ends,
)
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from abers._core import DistributionProtection
    from abers.arrays import Floats, Integers

    Score: TypeAlias = float | Sequence[float]

__all__ = ["METHODS", "ProtectedIVAPR"]

Kind = Literal["number", "quantiles"]

METHODS = (
    "base",
    "recalibrated",
    "ivapr",
    "ivapr_1000",
    "residuals_100",
    "residuals_300",
    "gaussian",
    "line_gaussian",
    "line_residuals",
    "share",
    "share_4",
)
"""Names of the methods, in the order of the core."""

_SHARES = 2  # methods at the end that weigh those before
_MOST_MEMBERS = 1000
_WINDOW = 5_000  # labels, by default
_MOST_LABELS = 1 << 20


class ProtectedIVAPR(LaneMixture, DistributionCalibrator["Score"]):
    """Calibrate a regression model that may drift, with late labels, at a bounded price.

    The distribution is a pool of forecasts that are made when an observation is predicted, and
    never again: the base; its quantile calibration; `IVAPR` of the last `window` labels and of the
    last 1,000, drawn to the base where their bands are wide; the score plus its last 100 and 300
    residuals, or as a normal distribution of recent ones; a line of the score and late residuals,
    by recursive least squares, as a normal distribution and with its last 300 residuals; and two
    fixed shares over these. docs/protection.md has all of them. A better method gets a larger
    weight.

    Parameters
    ----------
    support
        The pair of ends between which all labels lie, at least 1e-290 apart and from -1e290 to
        1e290; required.
    window
        Number of the last labels that `IVAPR` keeps, from 1 to 1,048,576; 5,000 by default. All
        other methods keep at most 1,000, so the memory of a calibrator is bounded.
    scores
        "number" if the score is a point prediction: the base is the score plus its last 1,000
        residuals. "quantiles" if the score is a list of quantiles, the base itself, at the levels
        (i - 1/2) / `members` for i = 1, ..., `members`. Residuals are then those of their mean.
    members
        Number of quantiles that stand for a forecast, from 2 to 1000.
    base_weight
        Weight of the base in the pool at first, between 0 and 1.

    Raises
    ------
    ParameterError
        If there is no support, or an option is invalid.

    Notes
    -----
    **Guarantee.** On any sequence of observations with numbers, with any delays, in any order, and
    labels lost or not: over the labels of awaited observations, the total continuous ranked
    probability score (CRPS) exceeds that of the base by at most C 2 R ln(1 / `base_weight`). C is
    `lanes`, the largest number of observations that ever awaited their labels together, and R the
    width of the support. The same holds against each other method, with its own weight. A forecast
    is scored as its `members` quantiles, clipped to the support, each with the same mass. There is
    no guarantee of coverage; see `CoverageTracker`.

    The pool is linear: its CDF is the mean of those of the methods, by weight. On a support of
    width R the CRPS is exp-concave with the rate 1 / (2 R): twice the rate times the squared
    derivative of the score along any direction is at most its second derivative there, by the
    inequality of Cauchy and Schwarz. So weights that are multiplied by exp(-CRPS / (2 R)) bound
    the excess of a lane.

    Observations need numbers, as those of `ProtectedVennAbers`. Without a number a prediction
    changes nothing and its label is learned as if it had just been predicted; the guarantee then
    needs each label before the next prediction. A number that is predicted again gets its first
    distribution again. A label of an unknown number teaches `IVAPR` and the windows of residuals
    alone. Before the first label all methods of a number are the base. Labels teach when they come.

    **Cost.** An observation that awaits its label keeps 9 x `members` + 25 numbers. A calibrator
    keeps about 90 bytes for each label of `window`, and 200 kB more. The room that predictions need
    is 100 bytes for each label, and 450 where scores say nothing about labels.

    References
    ----------
    V'yugin & Trunov (2019), Online learning with continuous ranked probability score; Weinberger &
    Ordentlich (2002), On delayed prediction of individual sequences; Joulani, Gyorgy & Szepesvari
    (2013), Online learning under delayed feedback.

    Examples
    --------
    >>> from abers.regression import ProtectedIVAPR
    >>> calibrator = ProtectedIVAPR(support=(0.0, 10.0))
    >>> calibrator.predict_one(4.0, number=0).quantile([0.1, 0.9]).tolist()
    [4.0, 4.0]
    >>> for number in range(1, 200):
    ...     predicted = calibrator.predict_one(4.0, number=number)
    ...     calibrator.learn_one(4.0, 5.0 + number % 2, number=number)
    >>> predicted.quantile([0.1, 0.9]).round(1).tolist(), calibrator.lanes
    ([5.0, 6.0], 2)
    """

    capabilities = Capabilities(
        task="regression",
        answer="distribution",
        weights=False,
        removal="none",
        forgetting=("window",),
        stateful=True,
        columns=("levels",),
        options=("base_weight",),
    )
    _magic: ClassVar[bytes] = b"abersPR\x01"

    def __init__(
        self,
        support: tuple[float, float] | None = None,
        *,
        window: int = _WINDOW,
        scores: Kind = "number",
        members: int = 50,
        base_weight: float = 0.5,
    ) -> None:
        super().__init__(validation.count(window, "window", 1, _MOST_LABELS))
        members = validation.count(members, "members", 2, _MOST_MEMBERS)
        ends = support_ends(support)
        require_range(ends)
        if not isinstance(scores, str) or scores not in get_args(Kind):
            msg = f"scores={shown(scores)} is unknown; use {', '.join(get_args(Kind))}"
            raise ParameterError(msg)
        weight = validation.fraction(base_weight, "base_weight")
        pointwise = scores == "number"
        self._become(
            core.DistributionProtection(*ends, members, pointwise, weight, self._forgetting.window)
        )

    def _become(self, mixture: DistributionProtection) -> None:
        self._mixture: DistributionProtection = mixture
        self._ends, self._members = (mixture.low, mixture.high), mixture.members
        self._scores_are: Kind = "number" if mixture.pointwise else "quantiles"
        self._base_weight = mixture.base_weight
        if not mixture.pointwise:
            self._lowest = math.nan  # a number is no score
            self.capabilities = replace(type(self).capabilities, score="quantiles")

    # What it is

    @property
    def support(self) -> tuple[float, float]:
        """The ends between which all labels lie."""
        return self._ends

    @property
    def scores(self) -> Kind:
        """What scores are."""
        return self._scores_are

    @property
    def members(self) -> int:
        """Number of quantiles that stand for a forecast."""
        return self._members

    @property
    def base_weight(self) -> float:
        """Weight of the base at first."""
        return self._base_weight

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the methods, in order."""
        return METHODS

    @property
    def late(self) -> int:
        """Number of labels that came too old to be learned: none does."""
        return 0

    def __len__(self) -> int:
        """Count the labels that `IVAPR` keeps."""
        return int(self._mixture.size)

    @property
    def price(self) -> float:
        """Bound on the total CRPS in excess of that of the base, in the unit of the label."""
        low, high = self._ends
        return self.lanes * 2.0 * (high - low) * -math.log(self._base_weight)

    def expert_losses(self) -> dict[str, float]:
        """Return the total CRPS of each method, and of the pool as "protected".

        Returns
        -------
        dict of str to float
            Totals over the labels of awaited observations, and of those without numbers.
        """
        return self._totals()

    def _options(self) -> list[str]:
        given = {
            "window": (self.window, _WINDOW),
            "scores": (self._scores_are, "number"),
            "members": (self._members, 50),
            "base_weight": (self._base_weight, 0.5),
        }
        changed = [f"{name}={one!r}" for name, (one, usual) in given.items() if one != usual]
        return [f"support={self._ends}", *changed]

    # Scores

    def _score(self, score: object) -> Any:
        if self._scores_are == "number":
            return super()._score(score)
        return self._scores([score])[:, 0].tolist()

    def _scores(self, scores: ArrayLike) -> Floats:
        if self._scores_are == "number":
            return super()._scores(scores)
        shape = f"scores must be of shape (n, {self._members}), a column for each quantile"
        table = validation.array(scores, shape)
        if table.size == 0:
            table = table.reshape(0, self._members)
        if table.ndim != 2 or table.shape[1] != self._members:  # noqa: PLR2004 - rows and columns
            msg = f"{shape}, not {table.shape}"
            raise ScoreError(msg)
        columns = np.array([validation.scores(column) for column in table.T])
        bad = np.flatnonzero((columns[:-1] > columns[1:]).any(axis=0))
        if bad.size:
            msg = f"row {bad[0]}: quantiles do not ascend; sort them"
            raise ScoreError(msg)
        return columns

    # One step

    def _predict(self, score: Any, weight: int, time: float, number: int) -> PredictiveDistribution:
        points, cdf = np.empty((2, (len(METHODS) - _SHARES) * self._members))
        steps = self._mixture.predict(np.atleast_1d(score), number, points, cdf)
        values = np.concatenate(([0.0], cdf[:steps]))
        return PredictiveDistribution(points[:steps], values, support=self._ends)

    def _learn(self, score: Any, label: float, weight: int, time: float, number: int) -> bool:
        self._mixture.learn(np.atleast_1d(score), label, number)
        return True

    def _expire(self, number: int) -> None:
        self._mixture.expire(number)

    # Batches

    def predict_many(  # type: ignore[override]  # not quantiles
        self,
        scores: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
        numbers: ArrayLike | None = None,
    ) -> list[PredictiveDistribution]:
        """Return the distributions, a list, for an array of scores; as `predict_one` for each."""
        column = self._scores(scores)
        n = column.shape[-1]
        self._weights(weights, n)
        self._forgetting.times(times, n, required=False)
        of = None if numbers is None else validation.observations(numbers, n)
        kinds, found = np.full(n, PREDICT, np.uint8), []

        def take(steps: Steps, held: Integers | None) -> tuple[list[PredictiveDistribution], int]:
            return found, self._run(steps, held, lambda _, one: found.append(one))

        answers: list[PredictiveDistribution] = self._transact(
            take, Steps(kinds, column, np.zeros(n), None, None, of)
        )
        return answers

    def _take(self, steps: Steps, held: Integers | None) -> tuple[Quantiles, int]:
        levels = NO_LEVELS if steps.extra is None else steps.extra
        table = np.full((len(steps.kinds), len(levels)), np.nan)

        def keep(row: int, one: PredictiveDistribution) -> None:
            if len(levels):
                table[row] = one.quantile(levels)

        done = self._run(steps, held, keep)
        return Quantiles(table, table.copy(), table.copy()), done

    def _run(
        self,
        steps: Steps,
        held: Integers | None,
        keep: Callable[[int, PredictiveDistribution], None],
    ) -> int:
        """Run steps, and pass on the predictions; return how many were taken."""
        for row, (kind, score, label, weight, time, number) in enumerate(steps.each()):
            if kind == PREDICT:
                keep(row, self._predict(score, weight, time, number))
            elif kind == EXPIRE:
                self._expire(number)
            else:
                self._learn(score, label, weight, time, number)
            if held is not None:
                held[row] = len(self)
        return len(steps.kinds)

    def _must_copy(self, steps: Steps) -> bool:
        return False  # no step is refused

    # Saving

    def _save(self) -> bytes:
        return self._mixture.save()

    def _load(self, payload: memoryview) -> None:
        mixture: DistributionProtection = core.DistributionProtection.load(bytes(payload))
        self._forget_by(Forgetting(mixture.window))
        self._become(mixture)
