"""Protected Venn-Abers prediction: calibration whose price against the raw score is bounded.

A mixture of experts gives the probability: the raw score, Venn-Abers calibrators that forget at
several rates, and corrections of the raw score.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, get_args

import numpy as np

from abers.backends import core
from abers.base import Calibrator, Capabilities
from abers.calibration import mixture_state, sets
from abers.calibration.intervals import ProtectedInterval, ProtectedIntervals
from abers.calibration.lane_mixture import first_weight
from abers.calibration.mixture_steps import HALF_LIVES, rules
from abers.calibration.raw_probability import (
    CLIP,
    REMEDY,
    BinaryMixture,
    Kind,
    checked_kind,
    raw_probabilities,
    raw_probability,
)
from abers.calibration.score_range import ScoreRange
from abers.forgetting import Forgetting
from abers.serialization import MAX_COUNT, pack, require, unpack

if TYPE_CHECKING:
    from abers._core import Aggregation, CalibrationSet, Protection
    from abers.arrays import Floats, Integers
    from abers.steps import Steps

__all__ = ["ProtectedVennAbers"]

_HEADER = struct.Struct("<Bdqqqqq")


class ProtectedVennAbers(
    ScoreRange,
    BinaryMixture,
    Calibrator[float, int, ProtectedInterval, ProtectedIntervals],
):
    """Calibrate a binary model that may drift, with labels that may be late, at a bounded price.

    The probability is a mixture of forecasts that are made when an observation is predicted, and
    never again: the raw probability; Venn-Abers calibrators of all observations and with half-lives
    of 300 and 3,000 predictions, drawn to the raw probability where their intervals are wide;
    online Platt scaling; the composite jumper; and fixed share over these.

    Parameters
    ----------
    window, max_age, half_life
        A rule of forgetting is that of the calibrator of all observations, whose interval is
        returned.
    scores
        "probability"; "logit" if scores are log odds; "any" for other numbers, in place of which
        the running share of label 1 is then the raw probability.
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
    awaited their labels together. The same holds against each other expert, with its own weight.
    The interval is that of `VennAbers`, with its guarantee.

    Observations need numbers: those of `predict_one` and `learn_one` tell which label belongs to
    which prediction, and `expire_one` says that a label will not come. Without a number a
    prediction changes nothing and its label is learned as if it had just been predicted; the
    guarantee then needs each label before the next prediction. A number that is predicted again
    gets its first probability again, with an interval from the labels that came since. A label of
    an unknown number teaches the experts alone.

    **Weights** teach the Venn-Abers calibrators; the mixture does not weigh.

    References
    ----------
    Weinberger & Ordentlich (2002), On delayed prediction of individual sequences; Joulani, Gyorgy &
    Szepesvari (2013), Online learning under delayed feedback; Vovk, Petej & Gammerman (2021),
    Protected probabilistic classification; Herbster & Warmuth (1998), Tracking the best expert.

    Examples
    --------
    >>> from abers import ProtectedVennAbers
    >>> calibrator = ProtectedVennAbers()
    >>> calibrator.predict_one(0.9, number=0).probability
    0.9
    >>> for number in range(1, 400):
    ...     p = calibrator.predict_one(0.9, number=number)
    ...     calibrator.learn_one(0.9, number % 2, number=number)
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
    _calibrator = "venn_abers"
    _magic: ClassVar[bytes] = b"abersPV\x01"
    _width: ClassVar[int] = 3
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
        self._sets: list[CalibrationSet] = [*map(sets.empty, rules(self._forgetting))]
        self._mixture: Aggregation = core.Aggregation(len(self._sets), self._raw_weight)
        self._protection: Protection = self._protect(0)

    def _protect(self, positives: int) -> Protection:
        found: Protection = core.Protection(self._mixture, self._sets, positives)
        return found

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

    def __len__(self) -> int:
        """Count the observations that the interval's calibrator holds."""
        return int(self._held.size)

    @property
    def _held(self) -> CalibrationSet:
        return self._sets[0]

    def _options(self) -> list[str]:
        return [*super()._options(), *self._changed()]

    # Steps

    def _predict(self, score: float, weight: int, time: float, number: int) -> ProtectedInterval:
        raw = self._raw_one(score)
        return ProtectedInterval(*self._protection.predict(score, raw, weight, time, number))

    def _learn(self, score: float, label: float, weight: int, time: float, number: int) -> bool:
        raw = self._raw_one(score)
        return self._protection.learn(score, raw, label == 1, weight, time, number)

    def _expire(self, number: int) -> None:
        self._protection.expire(number)

    def _take(self, steps: Steps, held: Integers | None) -> tuple[ProtectedIntervals, int]:
        columns = np.empty((self._width, len(steps.kinds)))
        labels = np.asarray(steps.labels, np.uint8)
        done = self._protection.run(
            *(steps.kinds, steps.scores, self._raw(steps), labels),
            *(steps.weights, steps.times, steps.numbers, *columns, held),
        )
        return ProtectedIntervals(*columns), done

    def _raw_one(self, score: float) -> float:
        """Return the raw probability of one step."""
        if self._scores_are == "probability":
            return min(max(score, CLIP), 1.0 - CLIP)
        counts = self._protection.positives, self._mixture.taught
        return raw_probability(self._scores_are, [score], *counts)

    def _raw(self, steps: Steps) -> Floats:
        """Return the raw probability of each step."""
        counts = self._protection.positives, self._mixture.taught
        return raw_probabilities(self._scores_are, steps, *counts)

    def _predictions(self, *columns: Floats) -> ProtectedIntervals:
        return ProtectedIntervals(*columns)

    def _must_copy(self, steps: Steps) -> bool:
        return any(sets.may_overflow(one, steps) for one in self._sets)

    # Saving

    def _save(self) -> bytes:
        mixture = self._mixture
        header = _HEADER.pack(
            get_args(Kind).index(self._scores_are),
            self._raw_weight,
            *(mixture.moment, mixture.labels, mixture.lane_count),
            *(mixture.taught, self._protection.positives),
        )
        return pack([header, *mixture_state.dump(mixture), *map(sets.sealed, self._sets)])

    def _load(self, payload: memoryview) -> None:
        header, *pieces = unpack(payload)
        kind, weight, moment, labels, lanes, learned, positives = _HEADER.unpack(header)
        held = [sets.unsealed(piece) for piece in pieces[mixture_state.PIECES :]]
        fixed = [Forgetting.of(one).half_life for one in held[1:]]
        require(fixed == [*HALF_LIVES], "calibrators")
        rule = Forgetting.of(held[0])
        require(0 <= positives <= learned and labels >= 0 and 0 <= lanes <= moment, "counts")
        require(labels <= learned <= MAX_COUNT and moment <= MAX_COUNT, "counts")
        self._become(get_args(Kind)[kind], weight, rule)
        self._sets, self._mixture = held, core.Aggregation(len(held), weight)
        mixture_state.load(self._mixture, pieces, lanes, (moment, labels, learned))
        self._protection = self._protect(positives)
