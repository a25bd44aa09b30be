"""Baselines: maps from score to probability, made from labelled observations.

A baseline holds its observations in a calibration set, so it forgets as the calibrator it is
compared with. Each change of its map sets the number of labels to the next change; the map also
changes at the end of `learn_many`, and at no other time.
"""

from __future__ import annotations

import math
import struct
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from abers import validation
from abers.base import Capabilities
from abers.calibration import sets
from abers.calibration.score_range import ScoreRange
from abers.calibration.sets import HeldCalibrator
from abers.exceptions import ParameterError, ScoreError
from abers.forgetting import Forgetting
from abers.serialization import MAX_COUNT, pack, require, unpack
from abers.steps import LEARN, PREDICT
from abers.validation import shown

if TYPE_CHECKING:
    from abers._core import CalibrationSet
    from abers.arrays import Floats, Integers
    from abers.calibration.sets import Groups
    from abers.steps import Steps

__all__ = [
    "STEEPEST",
    "Baseline",
    "DirectIsotonic",
    "Isotonic",
    "Refitted",
    "share",
]

STEEPEST = 1.0 / np.finfo(float).eps
"""More than any parameter of a fitted curve; a steeper curve is more than a double holds."""

_SCHEDULE = struct.Struct("<dQ")
_UNKNOWN = 0.5  # without observations


class Baseline(ScoreRange, HeldCalibrator[float, int, float, "Floats"]):
    """A map from score to probability: define `_map`, and `_change` if it is fitted.

    Parameters
    ----------
    window, max_age, half_life
        How to forget, as in `VennAbers`.
    """

    capabilities = Capabilities(task="binary", answer="probability", removal="none")
    _remedy = "use Platt or Isotonic for other scores"

    def _start(self) -> None:
        self._hold(sets.empty(self._forgetting))

    def _hold(self, held: CalibrationSet) -> None:
        self._held = held
        self._due = 1  # labels to the next change of the map

    @abstractmethod
    def _map(self, scores: Floats) -> Floats:
        """Map checked scores to probabilities."""

    def _change(self) -> int:
        """Fit the map to what is kept; return the number of labels to the next change."""
        return 1

    def _predict(self, score: float, weight: int, time: float, number: int) -> float:
        return float(self._map(np.array([score]))[0])

    def _learn(self, score: float, label: float, weight: int, time: float, number: int) -> bool:
        learned = super()._learn(score, label, weight, time, number)
        if learned:
            self._count(1)
        return learned

    def _take(self, steps: Steps, held: Integers | None) -> tuple[Floats, int]:
        """Run predictions and labels up to each change of the map in turn."""
        n = len(steps.kinds)
        p, learns = np.full(n, np.nan), steps.kinds == LEARN
        learned, done, at = np.flatnonzero(learns), 0, 0
        while at < n:
            rows = learned[done : done + self._due]
            end = int(rows[-1]) + 1 if len(rows) == self._due else n
            here = slice(at, end)
            asked = at + np.flatnonzero(steps.kinds[here] == PREDICT)
            p[asked] = self._map(steps.scores[asked])
            sizes = np.empty(len(rows) + 1, np.int64)
            sizes[0] = len(self)
            *_, taken = sets.pairs(self._held, steps.take(rows), sizes[1:])
            if taken < len(rows):
                return p, int(rows[taken])
            if held is not None:
                held[here] = sizes[np.cumsum(learns[here])]
            self._count(len(rows))
            done, at = done + len(rows), end
        return p, n

    def _learn_all(self, steps: Steps, held: Integers | None) -> tuple[Floats, int]:
        """Learn all, then fit once; a batch of no observations fits too."""
        *_, done = sets.pairs(self._held, steps, held)
        if done == len(steps.kinds):
            self._due = self._change()
        return np.empty(0), done

    def _must_copy(self, steps: Steps) -> bool:
        return sets.may_overflow(self._held, steps)

    def _count(self, labels: int) -> None:
        self._due -= labels
        if not self._due:
            self._due = self._change()

    # Saving

    def _save(self) -> bytes:
        return pack(self._pieces())

    def _load(self, payload: memoryview) -> None:
        self._fill(unpack(payload))
        scores = sets.groups(self._held).scores
        inside = not len(scores) or self._lowest <= scores[0] <= scores[-1] <= self._highest
        require(inside, "scores")

    def _pieces(self) -> list[bytes]:
        return [sets.sealed(self._held)]

    def _fill(self, pieces: list[bytes]) -> None:
        (held,) = pieces
        self._hold(sets.unsealed(held))
        self._forget_by(Forgetting.of(self._held))


class Refitted(Baseline):
    """A map of some parameters."""

    _first: tuple[float, ...]  # parameters of a map that has learned nothing

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        *,
        refit: float = 0.01,
    ) -> None:
        self._refit = share(refit)
        super().__init__(window, max_age, half_life)

    def _hold(self, held: CalibrationSet) -> None:
        super()._hold(held)
        self._fitted: Floats = np.array(self._first)

    @property
    def refit(self) -> float:
        """Share of the observations kept after which as many new labels make a fit due."""
        return self._refit

    @abstractmethod
    def _fit(self, groups: Groups) -> Floats:
        """Fit the parameters to one or more groups, starting from the present parameters."""

    def _change(self) -> int:
        groups = sets.groups(self._held)
        if len(groups.scores):
            self._fitted = self._fit(groups)
        return max(1, math.ceil(self._refit * len(self)))

    def _may_be(self, parameters: Floats) -> bool:
        """Return whether parameters can have been fitted."""
        return bool((np.abs(parameters) < STEEPEST).all())

    def _pieces(self) -> list[bytes]:
        schedule = _SCHEDULE.pack(self._refit, self._due)
        return [*super()._pieces(), schedule, self._fitted.astype("<f8").tobytes()]

    def _fill(self, pieces: list[bytes]) -> None:
        store, schedule, fitted = pieces
        parameters = np.frombuffer(fitted, "<f8").astype(np.float64)
        refit, due = _SCHEDULE.unpack(schedule)
        require(parameters.shape == (len(self._first),) and self._may_be(parameters), "parameters")
        require(0 < due <= MAX_COUNT, "labels to the next fit")
        self._refit = share(refit)
        super()._fill([store])
        self._due, self._fitted = due, parameters


class Isotonic(Baseline):
    """Isotonic regression of label on score, exact after each label.

    Within a block of the fit the probability is its value, between two blocks it is linear, outside
    it is that of the nearest: `VennAbers.isotonic`.

    Parameters
    ----------
    window, max_age, half_life
        How to forget, as in `VennAbers`.

    Notes
    -----
    **Guarantee.** None: the fit is optimal for the labels it was made from, and overconfident for
    others. It may return 0 or 1, so the log loss may be infinite.

    `predict_one` returns a float; with nothing learned it is 1/2.

    References
    ----------
    Zadrozny & Elkan (2002), Transforming classifier scores into accurate multiclass probability
    estimates.

    Examples
    --------
    >>> from abers import Isotonic
    >>> calibrator = Isotonic()
    >>> calibrator.learn_many([0.0, 0.2, 0.4, 1.0], [0, 1, 0, 1])
    >>> calibrator.predict_one(0.3), calibrator.predict_one(0.7)
    (0.5, 0.75)
    """

    _magic: ClassVar[bytes] = b"abersIS\x01"

    def _map(self, scores: Floats) -> Floats:
        if not len(self):
            return np.full(len(scores), _UNKNOWN)
        return np.array([sets.fitted(self._held, score) for score in scores.tolist()], np.float64)


class DirectIsotonic(Baseline):
    """Isotonic regression of label on score, read at the nearest calibration score (DIR).

    The method that Venn-Abers prediction improves on: one probability, which may be 0 or 1, so the
    log loss may be infinite. Of two calibration scores at the same distance the smaller counts.

    Parameters
    ----------
    window, max_age, half_life
        How to forget, as in `VennAbers`.

    Notes
    -----
    **Guarantee.** None.

    Distances are differences of doubles. With nothing learned the probability is 1/2.

    References
    ----------
    Zadrozny & Elkan (2002), Transforming classifier scores into accurate multiclass probability
    estimates; Vovk & Petej (2014), Venn-Abers predictors, section 3, for the nearest score.

    Examples
    --------
    >>> from abers.calibration import DirectIsotonic
    >>> calibrator = DirectIsotonic()
    >>> calibrator.learn_many([0.1, 0.4, 0.35, 0.8], [0, 1, 0, 1])
    >>> calibrator.predict_one(0.37), calibrator.predict_one(0.38)
    (0.0, 1.0)
    """

    _magic: ClassVar[bytes] = b"abersDI\x01"

    def _map(self, scores: Floats) -> Floats:
        return np.array([self._nearest(score) for score in scores.tolist()], np.float64)

    def _nearest(self, score: float) -> float:
        around = self._held.around(score)
        if around is None:
            return _UNKNOWN
        left, low, right, high = around
        nearest: float = low if score - left <= right - score else high
        return nearest


def share(refit: float) -> float:
    """Check the share of the observations kept after which a fit is due."""
    try:
        checked = validation.score(refit)
    except ScoreError:
        checked = math.nan
    if not 0.0 <= checked <= 1.0:
        msg = f"refit={shown(refit)} is not a share in [0, 1] of the observations kept"
        raise ParameterError(msg)
    return checked
