"""Protected Venn-Abers prediction: calibration at a bounded price against the raw score.

A mixture of methods gives the probability: the raw score, its Venn-Abers calibrator, corrections
that follow changes, and combinations of these.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from abers.backends import core
from abers.base import Calibrator, Capabilities
from abers.calibration import sets
from abers.calibration.intervals import ProtectedInterval, ProtectedIntervals
from abers.calibration.lane_mixture import first_weight
from abers.calibration.protected_pool import ProtectedPool
from abers.calibration.raw_probability import KINDS, REMEDY, BinaryMixture, Kind, checked_kind
from abers.calibration.score_range import ScoreRange
from abers.forgetting import Forgetting

if TYPE_CHECKING:
    from abers._core import CalibrationSet, Protection
    from abers.arrays import Floats, Integers
    from abers.steps import Steps

__all__ = ["ProtectedVennAbers", "protection"]


def protection(
    rule: Forgetting,
    scores: Kind = "probability",
    raw_weight: float = 0.25,
    **teaching: int,
) -> Protection:
    """Return a calibrator without labels.

    Until labels of both classes came, a missing one holds back all later ones for up to `wait`
    predictions, 4,096 where that is 0. From an `age` of 0 on labels are taught when observations
    are so old by the clock. Labels that wait to teach take at most `room` bytes, from 0 on.
    """
    held = sets.empty(rule)
    model: Protection = core.Protection(held, KINDS.index(scores), raw_weight, **teaching)
    return model


class ProtectedVennAbers(
    ScoreRange,
    ProtectedPool,
    BinaryMixture,
    Calibrator[float, int, ProtectedInterval, ProtectedIntervals],
):
    """Calibrate a binary model that may drift, with labels that may be late, at a bounded price.

    The probability is a mixture of forecasts that are made when an observation is predicted, and
    never again: the raw probability; `VennAbers`, drawn to the raw probability where its interval
    is wide; the composite jumper; online Platt scaling of recent labels; logistic regressions that
    combine their log odds, some of them with averages of late scores, labels and errors; and fixed
    share over these. docs/protection.md has all of them.

    Parameters
    ----------
    window, max_age, half_life
        A rule of forgetting is that of the calibrator that makes the interval.
    scores
        "probability"; "logit" if scores are log odds; "any" for other numbers: then the running
        share of label 1 is the raw probability.
    raw_weight
        Weight of the raw probability in the mixture at first, between 0 and 1.

    Raises
    ------
    ParameterError
        If an option makes no sense, or more than one rule of forgetting is given.

    Notes
    -----
    **Guarantee.** On any sequence of observations with numbers, with any delays, in any order, and
    labels lost or not: over the labels of awaited observations, the log loss of `probability`
    exceeds that of the raw probability, clipped to [1e-6, 1 - 1e-6], by at most
    C ln(1 / `raw_weight`) in total. C is `lanes`, the largest number of observations that ever
    awaited their labels together. The same holds against each other method, with its own weight.
    The interval is that of `VennAbers`, with its guarantee.

    Observations need numbers: those of `predict_one` and `learn_one` tell which label belongs to
    which prediction, and `expire_one` says that a label will not come. Without a number a
    prediction changes nothing and its label is learned as if it had just been predicted; the
    guarantee then needs each label before the next prediction. A number that is predicted again
    gets its first probability again, with an interval from the labels that came since. A label of
    an unknown number teaches the Venn-Abers calibrator alone.

    **Order of teaching.** Labels of one class may come sooner than those of the other. So a label
    waits, where delays tell the label, until those of all earlier observations were taught, have
    expired, or are overdue: later than nearly all labels of either class so far. Only then it
    teaches the Venn-Abers calibrator and most methods. `len` counts the labels that did.

    **Weights** teach the Venn-Abers calibrator; the mixture does not weigh.

    References
    ----------
    Weinberger & Ordentlich (2002), On delayed prediction of individual sequences; Joulani, Gyorgy &
    Szepesvari (2013), Online learning under delayed feedback; Vovk, Petej & Gammerman (2021),
    Protected probabilistic classification; Herbster & Warmuth (1998), Tracking the best expert;
    Platt (1999), Probabilistic outputs for support vector machines; Wolpert (1992), Stacked
    generalization.

    Examples
    --------
    >>> from random import Random
    >>> from abers import ProtectedVennAbers
    >>> rng, calibrator = Random(1), ProtectedVennAbers()
    >>> round(calibrator.predict_one(0.9, number=0).probability, 2)
    0.89
    >>> for number in range(1, 400):
    ...     p = calibrator.predict_one(0.9, number=number)
    ...     calibrator.learn_one(0.9, rng.randrange(2), number=number)
    >>> round(p.probability, 1), calibrator.lanes
    (0.5, 2)
    """

    capabilities = Capabilities(
        task="binary",
        answer="protected",
        removal="none",
        stateful=True,
        options=("scores", "raw_weight"),
    )
    _magic: ClassVar[bytes] = b"abersPV\x01"
    _model: Protection
    _remedy = REMEDY

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        *,
        scores: Kind = "probability",
        raw_weight: float = 0.25,
    ) -> None:
        super().__init__(window, max_age, half_life)
        self._become(scores, raw_weight, self._forgetting)
        self._model = protection(self._forgetting, scores, self._raw_weight)

    def _become(self, scores: Kind, raw_weight: float, rule: Forgetting) -> None:
        self._scores_are = checked_kind(scores)
        self._raw_weight = first_weight(raw_weight, "raw_weight")
        self._forget_by(rule)
        if scores == "probability":
            self._lowest, self._highest = 0.0, 1.0
            self.capabilities = replace(type(self).capabilities, score="probability")

    # What it is

    @property
    def late(self) -> int:
        """Number of labels that came too old for the interval's calibrator."""
        with self._lock:
            return int(self._held.late)

    @property
    def _held(self) -> CalibrationSet:
        return self._model.held

    def _options(self) -> list[str]:
        return [*super()._options(), *self._changed()]

    # Steps

    def _predict(self, score: float, weight: int, time: float, number: int) -> ProtectedInterval:
        return ProtectedInterval(*self._model.predict(score, weight, time, number))

    def _learn(self, score: float, label: float, weight: int, time: float, number: int) -> bool:
        return self._model.learn(score, label == 1, weight, time, number)

    def _take(self, steps: Steps, held: Integers | None) -> tuple[ProtectedIntervals, int]:
        rows, done = self._ran(steps, steps.scores[:, np.newaxis], held)
        return ProtectedIntervals(*np.ascontiguousarray(rows.T)), done

    def _predictions(self, *columns: Floats) -> ProtectedIntervals:
        return ProtectedIntervals(*columns)

    # Saving

    def _load(self, payload: memoryview) -> None:
        model: Protection = core.Protection.load(bytes(payload))
        self._become(KINDS[model.scores], model.raw_weight, Forgetting.of(model.held))
        self._model = model
