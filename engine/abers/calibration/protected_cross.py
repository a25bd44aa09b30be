"""Protected cross Venn-Abers prediction: K learners, and a price against their median.

The mixture is that of `abers.calibration.protected`; cross Venn-Abers makes its intervals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from abers import validation
from abers.backends import core
from abers.base import Capabilities
from abers.calibration import sets
from abers.calibration.cross import FoldCalibrator
from abers.calibration.intervals import ProtectedInterval, ProtectedIntervals
from abers.calibration.protected import (
    KINDS,
    REMEDY,
    BinaryMixture,
    Kind,
    ProtectedPool,
    checked_kind,
)
from abers.calibration.sets import within
from abers.mathematics import Forgetting

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers._core import CalibrationSet, FoldProtection
    from abers.arrays import Floats, Integers
    from abers.mathematics import Steps

__all__ = ["ProtectedCrossVennAbers", "fold_protection"]

_PREDICTED = 0.0  # in the place of a fold, which predictions have none of


def fold_protection(
    rule: Forgetting,
    folds: int,
    scores: Kind = "probability",
    raw_weight: float = 0.25,
    **teaching: int,
) -> FoldProtection:
    """Return a calibrator without labels; `teaching` is as in `protection`."""
    held = [sets.empty(rule) for _ in range(folds)]
    kind = KINDS.index(scores)
    model: FoldProtection = core.FoldProtection(held, kind, raw_weight, **teaching)
    return model


class ProtectedCrossVennAbers(
    ProtectedPool, BinaryMixture, FoldCalibrator[ProtectedInterval, ProtectedIntervals]
):
    """Calibrate the scores of K learners on all observations, at a bounded price.

    It is to `CrossVennAbers` what `ProtectedVennAbers` is to `VennAbers`: the methods are the same,
    where the raw probability is the median of those of the learners, and the Venn-Abers calibrator
    is the cross calibrator.

    Parameters
    ----------
    folds
        Number K of folds, at least 2.
    window, max_age, half_life
        A rule of forgetting, as in `CrossVennAbers`, is that of the cross calibrator.
    scores, raw_weight
        As in `ProtectedVennAbers`; the scores of all learners are of one kind.

    Raises
    ------
    ParameterError
        If there are fewer than 2 folds, or as `ProtectedVennAbers`.

    Notes
    -----
    The **raw probability** is the median of K probabilities: the scores, or the logistic functions
    of log odds. For an even K it is the mean of the middle two. It is clipped to [1e-6, 1 - 1e-6].

    **Guarantee.** On any sequence of observations with numbers, with any delays, in any order, and
    labels lost or not: over the labels of awaited observations, the log loss of `probability`
    exceeds that of the raw probability by at most C ln(1 / `raw_weight`) in total. C is `lanes`,
    the largest number of observations that ever awaited their labels together. The same holds
    against each other method, with its own weight. The interval is [low, high] of `CrossInterval`,
    which has no guarantee.

    **Folds** are those of `CrossVennAbers`. Numbers, expiries, **weights** and the **order of
    teaching** are as in `ProtectedVennAbers`.

    References
    ----------
    Those of `CrossVennAbers` and `ProtectedVennAbers`.

    Examples
    --------
    >>> from random import Random
    >>> from abers import ProtectedCrossVennAbers
    >>> rng, calibrator = Random(1), ProtectedCrossVennAbers(folds=3)
    >>> round(calibrator.predict_one((0.8, 0.7, 0.9), number=0).probability, 1)
    0.8
    >>> for number in range(1, 400):
    ...     p = calibrator.predict_one((0.8, 0.7, 0.9), number=number)
    ...     calibrator.learn_one((0.8, 0.7, 0.9), rng.randrange(2), number=number, id=number)
    >>> round(p.probability, 1), calibrator.lanes
    (0.5, 2)
    """

    capabilities = Capabilities(
        task="binary",
        score="folds",
        answer="protected",
        removal="none",
        stateful=True,
        columns=("folds", "ids"),
        options=("scores", "raw_weight"),
    )
    _magic: ClassVar[bytes] = b"abersPC\x01"
    _model: FoldProtection

    def __init__(
        self,
        folds: int = 5,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        *,
        scores: Kind = "probability",
        raw_weight: float = 0.25,
    ) -> None:
        super().__init__(window, max_age, half_life)
        count = validation.count(folds, "folds", 2)
        self._become(count, scores, raw_weight, self._forgetting)
        self._model = fold_protection(self._forgetting, count, scores, self._raw_weight)

    def _become(self, folds: int, scores: Kind, raw_weight: float, rule: Forgetting) -> None:
        self._scores_are = checked_kind(scores)
        self._raw_weight = validation.fraction(raw_weight, "raw_weight")
        self._count = folds
        self._forget_by(rule)

    # What it is

    @property
    def folds(self) -> int:
        """Number K of folds."""
        return self._count

    @property
    def late(self) -> int:
        """Number of labels that came too old for the interval's calibrator."""
        with self._lock:
            return sum(one.late for one in self._held)

    @property
    def _held(self) -> list[CalibrationSet]:
        return self._model.held

    @property
    def _taught(self) -> int:
        return self._model.learned

    def _options(self) -> list[str]:
        return [*super()._options(), *self._changed()]

    # The checks

    def _score(self, score: object) -> list[float]:
        row = super()._score(score)
        if self._scores_are == "probability" and not (min(row) >= 0.0 and max(row) <= 1.0):
            within(np.array(row), 0.0, 1.0, "fold {}: ", REMEDY)
        return row

    def _scores(self, scores: ArrayLike) -> Floats:
        rows = super()._scores(scores)
        if self._scores_are == "probability":
            for k, row in enumerate(rows):
                within(row, 0.0, 1.0, f"fold {k}: row {{}}: ", REMEDY)
        return rows

    # Steps

    def _predict(
        self, score: list[float], weight: int, time: float, number: int
    ) -> ProtectedInterval:
        row = [*score, _PREDICTED]
        return ProtectedInterval(*self._model.predict(row, weight, time, number))

    def _learn_in(
        self, fold: int, scores: list[float], label: int, weight: int, time: float, number: int
    ) -> bool:
        return self._model.learn([*scores, fold], label, weight, time, number)

    def _take(self, steps: Steps, held: Integers | None) -> tuple[ProtectedIntervals, int]:
        folds = self._folds_of(steps)
        rows, done = self._ran(steps, np.column_stack((*steps.scores, folds)), held)
        if done < len(rows):
            raise self._refuse(int(folds[done]), steps.row(done))
        return ProtectedIntervals(*np.ascontiguousarray(rows.T)), done

    # Saving

    def _load(self, payload: memoryview) -> None:
        model: FoldProtection = core.FoldProtection.load(bytes(payload))
        held = model.held
        self._become(len(held), KINDS[model.scores], model.raw_weight, Forgetting.of(held[0]))
        self._model = model
