"""Protected cross Venn-Abers prediction: K learners, and a price against their median.

A mixture of experts gives the probability. The calibration sets of the core and the mixture run a
batch one after the other, in columns.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from abers import validation
from abers.arrays import EXPIRE, LEARN, PREDICT
from abers.backends import core
from abers.base import Capabilities
from abers.calibration import sets
from abers.calibration.cross_merge import merge, merge_one
from abers.calibration.fold_calibrator import FoldCalibrator
from abers.calibration.intervals import ProtectedInterval, ProtectedIntervals, drawn, shrunk
from abers.calibration.lane_mixture import PIECES, first_weight
from abers.calibration.mixture_steps import HALF_LIVES, rules, set_steps
from abers.calibration.raw_probability import (
    KINDS,
    REMEDY,
    BinaryMixture,
    Kind,
    checked_kind,
    raw_probabilities,
    raw_probability,
)
from abers.calibration.score_range import within
from abers.forgetting import Forgetting
from abers.serialization import MAX_COUNT, pack, require, unpack
from abers.steps import NO_NUMBER

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers._core import Aggregation, CalibrationSet
    from abers.arrays import Floats, Integers
    from abers.calibration.mixture_steps import SetSteps
    from abers.steps import Steps

__all__ = ["ProtectedCrossVennAbers"]

_HEADER = struct.Struct("<QBdqqqqq")


class _Forecasts(NamedTuple):
    """Predictions of the experts, a row each; `sizes` is of the first, after a step."""

    p: Floats
    low: Floats
    high: Floats
    sizes: Integers


class ProtectedCrossVennAbers(BinaryMixture, FoldCalibrator[ProtectedInterval, ProtectedIntervals]):
    """Calibrate the scores of K learners on all observations, at a bounded price.

    It is to `CrossVennAbers` what `ProtectedVennAbers` is to `VennAbers`. The probability is a
    mixture of forecasts that are made when an observation is predicted, and never again: the raw
    probability; cross calibrators of all observations and with half-lives of 300 and 3,000
    predictions, drawn to the raw probability where their intervals are wide; online Platt scaling;
    the composite jumper; and fixed share over these.

    Parameters
    ----------
    folds
        Number K of folds, at least 2.
    window, max_age, half_life
        A rule of forgetting, as in `CrossVennAbers`, is that of the cross calibrator of all
        observations, which makes the interval.
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
    The **raw probability** is the median of K probabilities: the scores, or the logistic functions
    of log odds. For an even K it is the mean of the middle two. It is clipped to [1e-6, 1 - 1e-6].

    **Guarantee.** On any sequence of observations with numbers, with any delays, in any order, and
    labels lost or not: over the labels of awaited observations, the log loss of `probability`
    exceeds that of the raw probability by at most C ln(1 / `raw_weight`) in total. C is `lanes`,
    the largest number of observations that ever awaited their labels together. The same holds
    against each other expert, with its own weight. The interval is [low, high] of `CrossInterval`,
    which has no guarantee.

    **Folds** are those of `CrossVennAbers`. Numbers, expiries and **weights** are as in
    `ProtectedVennAbers`.

    References
    ----------
    Those of `CrossVennAbers` and `ProtectedVennAbers`.

    Examples
    --------
    >>> from abers import ProtectedCrossVennAbers
    >>> calibrator = ProtectedCrossVennAbers(folds=3)
    >>> calibrator.predict_one((0.8, 0.7, 0.9), number=0).probability
    0.8
    >>> for number in range(1, 400):
    ...     p = calibrator.predict_one((0.8, 0.7, 0.9), number=number)
    ...     calibrator.learn_one((0.8, 0.7, 0.9), number % 2, number=number, id=number)
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
    _calibrator = "cross_venn_abers"
    _magic: ClassVar[bytes] = b"abersPC\x01"
    _mixture: Aggregation

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
        held = [[sets.empty(one) for _ in range(count)] for one in rules(self._forgetting)]
        self._become(held, scores, raw_weight)

    def _become(
        self, held: list[list[CalibrationSet]], scores: Kind, raw_weight: float, positives: int = 0
    ) -> None:
        self._scores_are = checked_kind(scores)
        self._raw_weight = first_weight(raw_weight, "raw_weight")
        self._sets = held  # of each expert, K of them
        self._mixture = core.Aggregation(len(held), self._raw_weight)
        self._positives = positives  # learned labels that are 1

    # What it is

    @property
    def folds(self) -> int:
        """Number K of folds."""
        return len(self._sets[0])

    @property
    def late(self) -> int:
        """Number of labels that came too old for the interval's calibrator."""
        with self._lock:
            return sum(one.late for one in self._held)

    def __len__(self) -> int:
        """Count the observations that the interval's calibrator holds."""
        return sum(one.size for one in self._held)

    @property
    def _held(self) -> list[CalibrationSet]:
        return self._sets[0]

    @property
    def _taught(self) -> int:
        return int(self._mixture.taught)

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

    # One step

    def _predict(
        self, score: list[float], weight: int, time: float, number: int
    ) -> ProtectedInterval:
        moment, _ = self._moment(PREDICT, number)
        given, low, high = self._forecast_one(score, weight, self._times(moment, time))
        return ProtectedInterval(low, high, self._mix(PREDICT, number, 0, given))

    def _learn_in(
        self, fold: int, scores: list[float], label: int, weight: int, time: float, number: int
    ) -> bool:
        moment, known = self._moment(LEARN, number)
        times = self._times(moment, time)
        mine = [(by_fold[fold], at) for by_fold, at in zip(self._sets, times, strict=True)]
        if not all(one.takes(weight, at) for one, at in mine):
            return False
        given = [math.nan] * (1 + len(mine))  # not read if its forecasts were kept
        if not known:
            given, *_ = self._forecast_one(scores, weight, times)
        for one, at in mine:
            one.learn(scores[fold], label, weight, at)
        self._mix(LEARN, number, label, given)
        self._positives += label
        return True

    def _expire(self, number: int) -> None:
        self._mix(EXPIRE, number, 0, [math.nan] * (1 + len(self._sets)))

    # Without columns: arrays of one row would take ten times as long

    def _raw_one(self, scores: list[float]) -> float:
        return raw_probability(self._scores_are, scores, self._positives, self._taught)

    def _moment(self, kind: int, number: int) -> tuple[float, bool]:
        """Return the number of predictions before an observation, and whether it awaits a label."""
        moments, known = np.empty(1), np.empty(1, np.uint8)
        self._mixture.moments(np.array([kind], np.uint8), np.array([number]), moments, known)
        return moments.item(), bool(known[0])

    def _times(self, moment: float, time: float) -> list[float]:
        """Return the times by which the experts forget."""
        return [time, *[moment] * (len(self._sets) - 1)]

    def _forecast_one(
        self, scores: list[float], weight: int, times: list[float]
    ) -> tuple[list[float], float, float]:
        """Return the raw probability and those of the experts, and the ends of the first."""
        raw = self._raw_one(scores)
        experts = [*zip(self._sets, times, strict=True)]
        ends = [
            [by_fold[k].predict(score, weight, at) for by_fold, at in experts]
            for k, score in enumerate(scores)
        ]
        merged = merge_one(np.array(ends))
        low, high, _ = merged[0]
        return [raw, *(drawn(p, b - a, raw) for a, b, p in merged)], low, high

    def _mix(self, kind: int, number: int, label: int, given: list[float]) -> float:
        """Run one step of the mixture."""
        out = np.empty(1)
        columns = np.array([kind], np.uint8), np.array([number]), np.array([label], np.uint8)
        self._mixture.run(*columns, np.array([given]), out)
        return out.item()

    # Batches

    def _take(self, steps: Steps, held: Integers | None) -> tuple[ProtectedIntervals, int]:
        n, before, folds = len(steps.kinds), len(self), self._folds_of(steps)
        numbers = np.full(n, NO_NUMBER) if steps.numbers is None else steps.numbers
        labels = np.asarray(steps.labels, np.uint8)
        raw = raw_probabilities(self._scores_are, steps, self._positives, self._taught)
        of_sets = set_steps(self._mixture, steps, numbers)
        asked = of_sets.rows[of_sets.own.kinds == PREDICT]
        found = self._forecast(of_sets, folds[of_sets.rows], raw[asked])
        given = np.full((n, 1 + len(self._sets)), np.nan)
        given[:, 0], given[asked, 1:] = raw, found.p.T
        answers = np.full((3, n), np.nan)
        answers[:2, asked] = found.low[0], found.high[0]
        self._mixture.run(steps.kinds, numbers, labels, given, answers[2])
        self._positives += int(np.count_nonzero(labels[steps.kinds == LEARN]))
        if held is not None:
            held[:] = of_sets.sizes(before, found.sizes)
        answers[:, steps.kinds != PREDICT] = np.nan
        return ProtectedIntervals(*answers), n

    def _forecast(self, steps: SetSteps, folds: Integers, raw: Floats) -> _Forecasts:
        """Run the steps of all sets: all folds predict, and that of an observation learns."""
        own, asked = steps.own, steps.own.kinds == PREDICT
        times = [steps.times(expert) for expert in range(len(self._sets))]
        p0, p1 = np.empty((2, self.folds, len(self._sets), len(raw)))
        sizes = np.zeros(len(asked), np.int64)
        for k in range(self.folds):
            mine = asked | (folds == k)
            rows = np.flatnonzero(mine)
            part = own._replace(scores=own.scores[k]).take(rows)
            after = np.empty(len(rows) + 1, np.int64)
            for expert, by_fold in enumerate(self._sets):
                when, one = times[expert], by_fold[k]
                after[0] = one.size
                timed = part._replace(times=None if when is None else when[rows])
                low, high, done = sets.pairs(one, timed, after[1:])
                if done < len(rows):
                    raise self._refuse(k, part.row(done))
                p0[k, expert], p1[k, expert] = low[asked[rows]], high[asked[rows]]
                if expert == 0:
                    sizes += after[np.cumsum(mine)]
        low, high, merged = merge(p0, p1)
        return _Forecasts(shrunk(merged, high - low, raw), low, high, sizes)

    def _must_copy(self, steps: Steps) -> bool:
        return any(sets.may_overflow(one, steps) for by_fold in self._sets for one in by_fold)

    # Saving

    def _save(self) -> bytes:
        mixture = self._mixture
        header = _HEADER.pack(
            *(self.folds, KINDS.index(self._scores_are), self._raw_weight),
            *(mixture.moment, mixture.labels, mixture.taught, mixture.lane_count, self._positives),
        )
        every = [one for by_fold in self._sets for one in by_fold]
        return pack([header, *mixture.pieces(), *map(sets.sealed, every)])

    def _load(self, payload: memoryview) -> None:
        header, *pieces = unpack(payload)
        folds, kind, weight, moment, labels, taught, lanes, positives = _HEADER.unpack(header)
        require(0 <= labels <= taught <= MAX_COUNT and 0 <= lanes <= moment <= MAX_COUNT, "counts")
        require(0 <= positives <= taught and labels <= moment, "counts")
        held = [sets.unsealed(piece) for piece in pieces[PIECES:]]
        require(folds > 1 and len(held) % folds == 0, "folds")
        parts = [held[first : first + folds] for first in range(0, len(held), folds)]
        require(len(parts) == 1 + len(HALF_LIVES), "calibrators")
        own = Forgetting.of(held[0])
        for part, rule in zip(parts, rules(own), strict=True):
            same = all(str(Forgetting.of(one)) == str(rule) for one in part)
            require(same, "rules of forgetting")
        require(bool(own) or sum(one.size for one in parts[0]) == taught, "counts")
        self._forget_by(own)
        self._become(parts, KINDS[kind], weight, positives)
        self._mixture.load_pieces(pieces[:PIECES], moment, labels, taught, lanes)
