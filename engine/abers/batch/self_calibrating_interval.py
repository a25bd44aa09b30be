"""Intervals that cover the label given its calibrated mean, by self-calibrating conformal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from abers.arrays import ONE
from abers.base import Capabilities
from abers.batch._level_calibrator import LevelCalibrator
from abers.batch._self_calibration import Neighbours
from abers.regression import predictive_sets
from abers.regression.distribution_calibrator import NO_LEVELS
from abers.serialization import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.arrays import Floats, Integers
    from abers.steps import Steps

__all__ = ["CalibratedInterval", "CalibratedIntervals", "SelfCalibratingInterval"]

_FURTHEST = 1e280  # from 0: sums of labels, times two counts of labels, are finite

T = TypeVar("T", float, "Floats")


class _EndsAndMean(NamedTuple, Generic[T]):
    low: T
    high: T
    mean: T


class CalibratedInterval(_EndsAndMean[float]):
    """An interval for a label, closed at both ends, and its calibrated mean.

    Attributes
    ----------
    low, high
        The ends, in the unit of the label, which may be infinite.
    mean
        The isotonic mean of the labels at the score; NaN without labels.
    """

    __slots__ = ()

    def covers(self, label: float) -> bool:
        """Return whether a label is in it."""
        return self.low <= label <= self.high


class CalibratedIntervals(_EndsAndMean["Floats"]):
    """Intervals for many labels, as `CalibratedInterval` with arrays of shape (n,)."""

    __slots__ = ()

    def covers(self, labels: Floats) -> NDArray[np.bool_]:
        """Return whether each label is in its interval."""
        return (self.low <= labels) & (labels <= self.high)


class SelfCalibratingInterval(LevelCalibrator[float, CalibratedInterval, CalibratedIntervals]):
    """Turn scores into a calibrated mean, and an interval that holds among equal means.

    The score may be any output of a regression model that is larger for larger labels, in any unit.
    For each label that the query could have, the isotonic mean is fitted with it. The label
    conforms if its distance from the mean is not among the largest 1 - `level` of all observations
    with that mean. The interval reaches from the least to the greatest label that conforms.

    At most one of `window` and `max_age` may be set.

    Parameters
    ----------
    level
        The probability with which an interval is to cover the label, in (0, 1).
    window, max_age
        How to forget, as in `abers.VennAbers`.

    Raises
    ------
    ParameterError
        If the level is not inside (0, 1), or a rule of forgetting is invalid.

    Notes
    -----
    **Guarantee.** With a scorer fixed before the calibration data and exchangeable observations,
    the interval covers the label with a probability of at least `level` given V, the isotonic mean
    fitted with the true label; also with a `window`. V is perfectly calibrated: the mean of the
    label given V is V. `mean` is the fit without the label, always inside the interval, and differs
    from V by little where many labels share a mean. A scorer that keeps learning, or drift, void
    the guarantee.

    **Open ends.** Where fewer than about 1 / (1 - `level`) labels share a mean, every label
    conforms. So ends may be infinite, and with few labels intervals are wider than those of
    `ConformalInterval`.

    **Ties** in the score are pooled, and blocks with equal means are one; the order of arrival
    never matters.

    **Rounding.** Sums are those of doubles. Where labels are whole numbers, or multiples of a power
    of two, they are exact, and ends are correctly rounded.

    **Weights** are refused: a quantile of residuals has to know which observation each is.

    **Cost.** A prediction reads all labels: less than 1 ms for 10,000. With `max_age` labels are
    sorted anew after each change.

    **Times** and **threads** are as in `abers.VennAbers`.

    References
    ----------
    van der Laan & Alaa (2024), Self-calibrating conformal prediction, arXiv 2402.07307; here
    without a grid of labels, and with the isotonic mean itself.

    Examples
    --------
    >>> from abers.batch import SelfCalibratingInterval
    >>> calibrator = SelfCalibratingInterval(0.5)
    >>> calibrator.learn_many([1.0, 1.0, 1.0, 2.0, 2.0], [1.0, 2.0, 6.0, 8.0, 9.0])
    >>> calibrator.predict_one(1.0)
    CalibratedInterval(low=1.0, high=6.0, mean=3.0)
    """

    capabilities = Capabilities(
        task="regression",
        answer="prediction interval",
        weights=False,
        forgetting=("window", "max_age"),
    )
    _magic: ClassVar[bytes] = b"abersSC\x01"
    _width: ClassVar[int] = 3
    _ends = (-_FURTHEST, _FURTHEST)

    def __init__(
        self, level: float, window: int | None = None, max_age: float | None = None
    ) -> None:
        super().__init__(level, window, max_age)
        self._sorted: tuple[Floats, Floats, Floats] | None = None

    def _predict(self, score: float, weight: int, time: float, number: int) -> CalibratedInterval:
        scores, labels = self._seen(time)
        return CalibratedInterval(*Neighbours.of(scores, labels, score).interval(self._level))

    def _seen(self, time: float) -> tuple[Floats, Floats]:
        """Return scores, ascending, and labels that are young enough for a query."""
        if self._sorted is None:
            self._sorted = self._columns()
        scores, labels, times = self._sorted
        if self.max_age is None or not len(times):
            return scores, labels
        young = times >= np.fmax(np.max(times), time) - self.max_age
        return scores[young], labels[young]

    def _columns(self) -> tuple[Floats, Floats, Floats]:
        if self.max_age is not None:
            scores, labels, _, times = predictive_sets.rows(self._held)
            order = np.lexsort((labels, scores))
            return scores[order], labels[order], times[order]
        n = self._held.pooled_count()
        scores, labels, weights = np.empty(n), np.empty(n), np.empty(n, np.int64)
        self._held.pooled(scores, labels, weights)
        copies = weights // ONE
        return scores.repeat(copies), labels.repeat(copies), NO_LEVELS

    def _learn(self, score: float, label: float, weight: int, time: float, number: int) -> bool:
        self._sorted = None
        return super()._learn(score, label, weight, time, number)

    def _remove(self, score: float, label: float, weight: int) -> bool:
        self._sorted = None
        return super()._remove(score, label, weight)

    def _learn_all(self, steps: Steps, held: Integers | None) -> tuple[Any, int]:
        self._sorted = None
        nothing = np.empty((3, len(steps.kinds), 0))
        return None, self._held.run(*steps[:5], NO_LEVELS, nothing, held)

    def _predictions(self, *columns: Floats) -> CalibratedIntervals:
        return CalibratedIntervals(*columns)

    def _outside(self, y: float) -> str:
        return (
            f"label {y!r} is further than {_FURTHEST} from 0, where sums of labels are infinite; "
            "drop the observation or scale labels down"
        )

    def _load(self, payload: memoryview) -> None:
        super()._load(payload)
        require(self.half_life is None, "half-life")
        labels = predictive_sets.rows(self._held)[1]
        require(bool((np.abs(labels) <= _FURTHEST).all()), "labels")
        self._sorted = None
