"""Baselines: maps from score to probability, by pooling or by a curve with a few parameters.

Logistic regression on a few features with soft targets, by Newton's method. The mean loss is
convex, and made strictly so by a ridge of 1e-9, so there is one minimum, finite even where labels
are separable. The start decides only how soon it is reached. Sums are numpy's own, which do not
depend on threads.

A baseline holds its observations in a calibration set, so it forgets as the calibrator it is
compared with. Each change of its map sets the number of labels to the next change; the map also
changes at the end of `learn_many`, and at no other time.

Beta calibration: a family of curves that contains the identity and the logistic curve. The loss is
convex, so its minimum under a, b >= 0 is the free one, or the best of those on which one or both
are 0.
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
from abers.calibration.sets import HeldCalibrator, ScoreRange
from abers.exceptions import ParameterError, ScoreError
from abers.mathematics import LEARN, PREDICT, Forgetting
from abers.serialization import MAX_COUNT, pack, require, unpack
from abers.validation import shown

if TYPE_CHECKING:
    from abers._core import CalibrationSet
    from abers.arrays import Floats, Integers
    from abers.calibration.sets import Groups
    from abers.mathematics import Steps

__all__ = [
    "STEEPEST",
    "Baseline",
    "BetaCalibration",
    "DirectIsotonic",
    "Isotonic",
    "Platt",
    "Refitted",
    "fit",
    "logistic",
    "loss",
    "share",
]

_RIDGE = 1e-9
_STEPS = 100  # of Newton; a dozen in practice
_MIN_FALL_SHARE = 1e-4  # share of the promised fall that a step must bring
_MIN_FALL = 1e-12  # a smaller fall is lost in the rounding of the loss: the step is right
_CLOSE = 1e-20  # Newton decrement, squared: 1e-10 standard errors of one observation


def logistic(z: Floats) -> Floats:
    """Return 1 / (1 + exp(-z)) without overflow."""
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, e) / (1.0 + e)


def loss(features: Floats, weights: Floats, targets: Floats, theta: Floats) -> float:
    """Return the mean log loss at theta, ridge included.

    Features have shape (d, n) and weights (n,); targets are weight times wanted probability.
    """
    z = _scores(features, theta)
    softplus = np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))
    mean = (weights * softplus - targets * z).sum() / weights.sum()
    return float(mean + _RIDGE / 2 * (theta * theta).sum())


def fit(features: Floats, weights: Floats, targets: Floats, start: Floats) -> Floats:
    """Minimise `loss` over theta, from a start.

    Newton's method with backtracking (Lin, Lin & Weng 2007, A note on Platt's
    probabilistic outputs for support vector machines): every step lowers the loss.
    """
    theta, here = start, loss(features, weights, targets, start)
    for _ in range(_STEPS):
        gradient, hessian = _derivatives(features, weights, targets, theta)
        step = np.linalg.solve(hessian, gradient)
        fall = float((step * gradient).sum())
        if fall <= _CLOSE:
            return theta
        share = 1.0
        tried, there = theta - step, loss(features, weights, targets, theta - step)
        while fall > _MIN_FALL and there > here - _MIN_FALL_SHARE * share * fall:
            share /= 2.0
            tried = theta - share * step
            there = loss(features, weights, targets, tried)
        theta, here = tried, there
    return theta


def _derivatives(
    features: Floats, weights: Floats, targets: Floats, theta: Floats
) -> tuple[Floats, Floats]:
    p, total = logistic(_scores(features, theta)), weights.sum()
    gradient = np.array([(x * (weights * p - targets)).sum() for x in features]) / total
    curved = weights * p * (1.0 - p)
    hessian = np.array([[(x * y * curved).sum() for y in features] for x in features])
    return gradient + _RIDGE * theta, hessian / total + _RIDGE * np.eye(len(theta))


def _scores(features: Floats, theta: Floats) -> Floats:
    z: Floats = features[0] * theta[0]
    for x, each in zip(features[1:], theta[1:], strict=True):
        z = z + x * each
    return z


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
        How to forget, as in `Isotonic`.

    Notes
    -----
    **Guarantee.** None.

    Distances are differences of doubles. With nothing learned the probability is 1/2.

    References
    ----------
    That of `Isotonic`, and for the nearest score Vovk & Petej (2014), Venn-Abers predictors,
    section 3.

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


_FAR = 1e150  # scaled scores; beyond, a curve of any slope but 0 has long been 0 or 1


class Platt(Refitted):
    """Platt scaling: p = 1 / (1 + exp(-(slope * score + intercept))).

    The labels are smoothed as Platt does: with N1 the weight of label 1 and N0 that of
    label 0, the targets are (N1 + 1) / (N1 + 2) and 1 / (N0 + 2), so that the fit is
    finite. Newton's method with backtracking finds the minimum of the log loss.

    Parameters
    ----------
    window, max_age, half_life
        How to forget, as in `VennAbers`.
    refit
        A fit is made when the labels learned since the last fit reach this share of the
        observations that were kept then (0: after each label), and at the end of `learn_many`. It
        starts from the last fit.

    Raises
    ------
    ParameterError
        If `refit` is no share in [0, 1], or more than one rule of forgetting is given.

    Notes
    -----
    **Guarantee.** None: it is right if the log odds of label 1 are linear in the score.

    `predict_one` returns a float; with nothing learned it is 1/2. The slope may become
    negative.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines; Lin, Lin & Weng
    (2007), A note on Platt's probabilistic outputs for support vector machines.

    Examples
    --------
    >>> from abers import Platt
    >>> calibrator = Platt()
    >>> calibrator.learn_many([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    >>> round(calibrator.slope, 4), round(calibrator.predict_one(1.5), 4)
    (0.674, 0.7332)
    """

    _magic: ClassVar[bytes] = b"abersPL\x01"
    _first = (0.0, 1.0, 0.0, 0.0)  # centre and scale of the scores, slope and level in them

    @property
    def slope(self) -> float:
        """Slope of the log odds in the score."""
        _, scale, slope, _ = self._fitted.tolist()
        return float(slope / scale)

    @property
    def intercept(self) -> float:
        """Log odds at score 0."""
        centre, scale, slope, level = self._fitted.tolist()
        return float(level - slope * (centre / scale))

    def _may_be(self, parameters: Floats) -> bool:
        centre, scale = parameters[:2]
        return bool(np.isfinite([centre, scale]).all() and scale > 0.0) and super()._may_be(
            parameters[2:]
        )

    def _map(self, scores: Floats) -> Floats:
        _, _, slope, level = self._fitted
        return logistic(slope * self._scaled(scores) + level)

    def _scaled(self, scores: Floats) -> Floats:
        centre, scale = self._fitted[:2]
        with np.errstate(over="ignore"):
            scaled: Floats = np.clip((scores - centre) / scale, -_FAR, _FAR)
        return scaled

    def _fit(self, groups: Groups) -> Floats:
        scores, negatives, positives = groups
        weights = negatives + positives
        centre, scale = _frame(scores)
        start = self._moved(centre, scale)
        self._fitted = np.array([centre, scale, *start])
        ones = np.ones(len(scores))
        targets = positives * _target(positives) + negatives * (1.0 - _target(negatives))
        features = np.stack((self._scaled(scores), ones))
        return np.array([centre, scale, *fit(features, weights, targets, start)])

    def _moved(self, centre: float, scale: float) -> Floats:
        """Return slope and level of the curve in another frame; zeros if they are too large."""
        centre0, scale0, slope, level = self._fitted
        with np.errstate(over="ignore", invalid="ignore"):
            slope1 = slope * (scale / scale0)
            moved = np.array([slope1, level + slope * (centre / scale0 - centre0 / scale0)])
        return moved if (np.abs(moved) < STEEPEST).all() else np.zeros(2)


def _target(weights: Floats) -> float:
    total = float(weights.sum())
    return (total + 1.0) / (total + 2.0)


def _frame(scores: Floats) -> tuple[float, float]:
    """Return the middle and half the range of ascending scores, or 1 for a range of 0."""
    low, high = float(scores[0]), float(scores[-1])
    return low / 2 + high / 2, (high / 2 - low / 2) or 1.0


_MIN_SCORE, _MAX_SCORE = 2.0**-53, 1.0 - 2.0**-53
_FREE = ([0, 1, 2], [1, 2], [0, 2], [2])  # parameters that are fitted, the others being 0


class BetaCalibration(Refitted):
    """Beta calibration: log odds of p = a ln(score) - b ln(1 - score) + c, with a, b >= 0.

    Maximum likelihood; where it would make a or b negative, the best curve with that parameter 0
    takes its place. Until both labels came, the curve is the identity (a = b = 1, c = 0).

    Parameters
    ----------
    window, max_age, half_life, refit
        As in `Platt`.

    Raises
    ------
    ParameterError
        As in `Platt`.

    Notes
    -----
    **Guarantee.** None: it is right if the scores of either label follow beta distributions, or
    nearly so.

    **Scores** are probabilities, in [0, 1]; others are refused. They are kept 2**-53 away from 0
    and 1.

    `predict_one` returns a float. Where the labels are separable, a ridge of 1e-9 keeps the fit
    finite.

    References
    ----------
    Kull, Silva Filho & Flach (2017), Beta calibration: a well-founded and easily
    implemented improvement on logistic calibration for binary classifiers.

    Examples
    --------
    >>> from abers import BetaCalibration
    >>> calibrator = BetaCalibration()
    >>> calibrator.learn_many([0.2, 0.4, 0.3, 0.6, 0.7, 0.8], [0, 1, 0, 0, 1, 1])
    >>> round(calibrator.predict_one(0.5), 2)
    0.5
    """

    _magic: ClassVar[bytes] = b"abersBC\x01"
    _first = (1.0, 1.0, 0.0)
    capabilities = Capabilities(
        task="binary", score="probability", answer="probability", removal="none"
    )
    _lowest: float = 0.0
    _highest: float = 1.0

    @property
    def a(self) -> float:
        """Weight of ln(score)."""
        return float(self._fitted[0])

    @property
    def b(self) -> float:
        """Weight of -ln(1 - score)."""
        return float(self._fitted[1])

    @property
    def c(self) -> float:
        """Log odds where the two logarithms cancel."""
        return float(self._fitted[2])

    def _may_be(self, parameters: Floats) -> bool:
        return super()._may_be(parameters) and bool((parameters[:2] >= 0.0).all())

    def _map(self, scores: Floats) -> Floats:
        x, y, _ = _features(scores)
        a, b, c = self._fitted
        return logistic(a * x + b * y + c)

    def _fit(self, groups: Groups) -> Floats:
        """Return the parameters of the best nondecreasing curve."""
        scores, negatives, positives = groups
        if not (negatives.any() and positives.any()):
            return np.array(self._first)
        features, weights = _features(scores), negatives + positives
        fits = []
        for free in _FREE:
            theta = np.zeros(3)
            chosen = features[free]
            theta[free] = fit(chosen, weights, positives, self._fitted[free])
            if (theta[:2] >= 0.0).all():
                fits.append((loss(features, weights, positives, theta), theta))
            if len(free) == len(theta) and fits:
                break
        return min(fits, key=lambda fit: fit[0])[1]


def _features(scores: Floats) -> Floats:
    inside = np.clip(scores, _MIN_SCORE, _MAX_SCORE)
    return np.stack((np.log(inside), -np.log1p(-inside), np.ones(len(scores))))
