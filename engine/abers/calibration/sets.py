"""Calibration sets of the core: run, copied, saved, and the base of what holds one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, cast

import numpy as np

from abers.arrays import ONE
from abers.backends import core
from abers.base import Calibrator, L, S
from abers.calibration.label_rates import ALL
from abers.mathematics import Many, One
from abers.serialization import seal, unseal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers._core import CalibrationSet, Model
    from abers.arrays import Floats, Integers
    from abers.calibration.label_rates import LabelRates
    from abers.forgetting import Forgetting
    from abers.steps import Steps

__all__ = [
    "MAGIC",
    "Groups",
    "HeldCalibrator",
    "copied",
    "dump",
    "empty",
    "fitted",
    "group_columns",
    "groups",
    "load",
    "may_overflow",
    "observations",
    "pairs",
    "sealed",
    "unsealed",
]

MAGIC = b"abersVA\x01"
_FULL = 2.0**57  # units, beyond which a batch might overflow


class Groups(NamedTuple):
    """Observations kept, pooled by score: weights of label 0 and of label 1."""

    scores: Floats
    negatives: Floats
    positives: Floats


def empty(rule: Forgetting, label_rates: LabelRates = ALL) -> CalibrationSet:
    """Return an empty set that forgets by a rule."""
    ages = (rule.max_age or 0.0, rule.half_life or 0.0)
    return cast("CalibrationSet", core.CalibrationSet(rule.window or 0, *ages, label_rates))


def groups(held: CalibrationSet) -> Groups:
    """Return the observations of a set, in score order."""
    scores, negatives, positives = group_columns(held)
    return Groups(scores, negatives / ONE, positives / ONE)


def pairs(
    held: CalibrationSet, steps: Steps, sizes: Integers | None = None
) -> tuple[Floats, Floats, int]:
    """Run steps; return both probabilities, NaN where nothing is predicted, and steps taken."""
    p0, p1 = np.full((2, len(steps.kinds)), np.nan)
    done = held.run(*steps[:5], p0, p1, sizes)
    return p0, p1, done


def fitted(held: CalibrationSet, score: float) -> float | None:
    """Return the isotonic fit at a score, linear between blocks; None without observations."""
    around = held.around(score)
    if around is None:
        return None
    left, low, right, high = around
    if low == high or score <= left:
        return low
    if score >= right:
        return high
    # Halves keep the difference of two huge scores finite.
    scale = 0.5 if abs(left) > 1 else 1.0
    share = (score * scale - left * scale) / (right * scale - left * scale)
    return min(max(low + share * (high - low), low), high)


def dump(held: CalibrationSet) -> bytes:
    """Return the observations and the rule of a calibration set as bytes."""
    return held.save()


def load(payload: bytes | memoryview) -> CalibrationSet:
    """Restore a calibration set from `dump`; other bytes are a ValueError."""
    return cast("CalibrationSet", core.CalibrationSet.load(bytes(payload)))


def sealed(held: CalibrationSet) -> bytes:
    """Save a set by itself, as `abers.VennAbers` saves its own."""
    return seal(MAGIC, dump(held))


def unsealed(blob: bytes) -> CalibrationSet:
    """Restore a set from `sealed`; other bytes are a StateError or a ValueError."""
    return load(unseal(MAGIC, bytes(blob), "a saved VennAbers"))


def may_overflow(held: CalibrationSet | Model, steps: Steps, rate: float = 1.0) -> bool:
    """Return whether the total weight of a set might become too large half-way.

    The least of its rates of labels is `rate`.
    """
    return bool(held.total + steps.total_weight() / rate > _FULL)


def copied(held: CalibrationSet) -> CalibrationSet:
    """Return a copy of a set."""
    return load(dump(held))


class HeldCalibrator(Calibrator[S, L, One, Many], Generic[S, L, One, Many]):
    """A calibrator with its observations in one set of the core."""

    _held: Any

    @property
    def late(self) -> int:
        """Number of labels that came too old to be learned."""
        return int(self._held.late)

    def __len__(self) -> int:
        """Count the observations kept."""
        return int(self._held.size)

    def _learn(self, score: float, label: float, weight: int, time: float, number: int) -> bool:
        return bool(self._held.learn(score, label, weight, time))

    def _remove(self, score: float, label: float, weight: int) -> bool:
        return bool(self._held.remove(score, label, weight))

    def _must_copy(self, steps: Steps) -> bool:
        """Return whether a copy is needed; a set that keeps all undoes steps by their inverse."""
        return bool(self._forgetting) and may_overflow(self._held, steps)

    def _undo(self, steps: Steps, done: int, saved: bytes | None) -> None:
        if saved is not None:
            self._load(memoryview(saved))
        elif done:
            self._take(steps.inverse(done), None)

    def _check(self) -> None:
        """Assert every invariant of the core; an AssertionError shows the state."""
        with self._lock:
            self._held.check()


def group_columns(held: CalibrationSet) -> tuple[NDArray[np.float64], Integers, Integers]:
    """Return scores, and weights of both labels in units, a row each score."""
    count = held.group_count()
    columns = (np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64))
    held.groups(*columns)
    return columns


def observations(held: CalibrationSet) -> tuple[NDArray[Any], ...]:
    """Return scores, labels, weights in units and times of a set that forgets."""
    count = held.observation_count()
    kinds = (np.float64, np.uint8, np.int64, np.float64)
    columns: tuple[NDArray[Any], ...] = tuple(np.empty(count, kind) for kind in kinds)
    held.observations(*columns)
    return columns
