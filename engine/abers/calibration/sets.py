"""Calibration sets of the core, the base of what holds one, and the scores and rates of its labels.

Known rates at which labels of each class come. If the label of an observation comes with a
probability r_y that depends on its class y alone, the labels that came are not as all observations
are: those of class y stand for 1 / r_y observations each. So they are learned with that weight, and
a query gets the weight of the class that it is given; then labels and query are exchangeable by
weight (Tibshirani et al. 2019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, cast

import numpy as np

from abers import validation
from abers.arrays import ONE
from abers.backends import core
from abers.base import Calibrator, L, S
from abers.exceptions import ParameterError, ScoreError
from abers.mathematics import Many, One
from abers.serialization import seal, unseal
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from abers._core import CalibrationSet, Model
    from abers.arrays import Floats, Integers
    from abers.mathematics import Forgetting, Steps

__all__ = [
    "ALL",
    "LEAST",
    "MAGIC",
    "TOO_HEAVY",
    "Groups",
    "HeldCalibrator",
    "LabelRates",
    "ScoreRange",
    "among_labelled",
    "checked_rates",
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
    "within",
]

LabelRates = tuple[float, float]
"""Shares of the labels of class 0, and of class 1, that come."""

ALL: LabelRates = (1.0, 1.0)
"""The rates where every label comes."""

LEAST = 1e-6
"""The least rate: a label stands for at most so many observations that sums of weights have room.
"""

TOO_HEAVY = "forget earlier; with label_rates a label weighs 1 over the share of its class"
"""What to do where only the calibrator weighs labels, and they weigh too much."""


def checked_rates(rates: Sequence[float]) -> LabelRates:
    """Check rates of labels.

    Parameters
    ----------
    rates
        Share of the labels of class 0 that come, and that of class 1.

    Returns
    -------
    tuple of float
        Both, each from `LEAST` to 1.

    Raises
    ------
    ParameterError
        If they are not two numbers, or out of range.

    Examples
    --------
    >>> checked_rates([0.5, 1])
    (0.5, 1.0)
    """
    try:
        zero, one = (float(validation.score(rate)) for rate in rates)
    except (TypeError, ValueError) as error:
        raise ParameterError(_refused(rates)) from error
    if not all(LEAST <= rate <= 1.0 for rate in (zero, one)):
        raise ParameterError(_refused(rates))
    return zero, one


def among_labelled(probabilities: Floats, rates: LabelRates) -> Floats:
    """Return probabilities of label 1 among observations with labels.

    Parameters
    ----------
    probabilities
        Probabilities among all observations, an array of any shape.
    rates
        The rates of labels.

    Returns
    -------
    numpy.ndarray
        Probabilities with the odds times r_1 / r_0, of the same shape.

    Examples
    --------
    >>> import numpy as np
    >>> among_labelled(np.array([0.0, 0.5, 1.0]), (0.5, 1.0)).round(3).tolist()
    [0.0, 0.667, 1.0]
    """
    if rates[0] == rates[1]:
        return probabilities
    ones = probabilities * rates[1]
    labelled: Floats = ones / (ones + (1.0 - probabilities) * rates[0])
    return labelled


def _refused(rates: object) -> str:
    return (
        f"label_rates={shown(rates)} must be two shares from {LEAST:f} to 1: of the labels of "
        "class 0 that come, then of class 1"
    )


class ScoreRange:
    """A mixin of calibrators: scores lie between two ends, which are 0 and 1 or are not reached."""

    _lowest: float
    _highest: float
    _remedy: str  # what to do with scores that are not probabilities

    def _score(self, score: object) -> float:
        return float(self._within(np.array([validation.score(score)]), "")[0])

    def _scores(self, scores: ArrayLike) -> Floats:
        return self._within(validation.scores(scores), "row {}: ")

    def _within(self, column: Floats, where: str) -> Floats:
        return within(column, self._lowest, self._highest, where, self._remedy)


def within(column: Floats, lowest: float, highest: float, where: str, remedy: str) -> Floats:
    """Return scores that lie between two ends; else a ScoreError names the first bad row."""
    bad = np.flatnonzero(~((lowest <= column) & (column <= highest)))
    if bad.size:
        msg = (
            f"{where.format(bad[0])}score {column[bad[0]].item()!r} is not a probability in "
            f"[0, 1]; {remedy}"
        )
        raise ScoreError(msg)
    return column


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
