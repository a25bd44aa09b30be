"""Protected Venn-Abers prediction: calibration at a bounded price against the raw score.

A mixture of methods gives the probability: the raw score, its Venn-Abers calibrator, corrections
that follow changes, and combinations of these.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeGuard, get_args

import numpy as np

from abers import validation
from abers.backends import core
from abers.base import Calibrator, Capabilities
from abers.calibration import sets
from abers.calibration.intervals import ProtectedInterval, ProtectedIntervals
from abers.calibration.sets import ScoreRange
from abers.exceptions import ParameterError
from abers.mathematics import Forgetting
from abers.validation import shown

if TYPE_CHECKING:
    from abers._core import (
        CalibrationSet,
        ClassMixture,
        ClassProtection,
        DistributionProtection,
        FoldProtection,
        MethodMixture,
        Protection,
    )
    from abers.arrays import Floats, Integers
    from abers.mathematics import Steps

    Protected: TypeAlias = Protection | FoldProtection | ClassProtection

__all__ = [
    "CLASS_METHODS",
    "CLIP",
    "FOLD_METHODS",
    "KINDS",
    "METHODS",
    "REMEDY",
    "BinaryMixture",
    "Kind",
    "LaneMixture",
    "MethodNames",
    "ProbabilityMixture",
    "ProtectedPool",
    "ProtectedVennAbers",
    "checked_kind",
    "is_protected",
    "logistic",
    "protection",
]

_DOUBLE = 8  # bytes


class LaneMixture:
    """A mixin of calibrators: methods with a weight in each lane."""

    _mixture: MethodMixture | ClassMixture | DistributionProtection
    _lock: Any

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the methods, in order."""
        raise NotImplementedError

    @property
    def lanes(self) -> int:
        """Largest number of observations that ever awaited their labels together."""
        with self._lock:
            return int(self._mixture.lane_count)

    @property
    def awaiting(self) -> int:
        """Number of observations that await their labels."""
        with self._lock:
            return int(self._mixture.awaiting_count)

    @property
    def awaiting_bytes(self) -> int:
        """Bytes of the weights and of what an observation keeps that awaits its label."""
        return _DOUBLE * (len(self.experts) + self._mixture.kept_size)

    def expert_table(self) -> Floats:
        """Return mean weight and total loss of each method, and of the mixture, a row each.

        Returns
        -------
        numpy.ndarray
            Rows in the order of `experts`; the last is the mixture, and its weight is NaN.
        """
        count = len(self.experts)
        rows, column = np.full((count + 1, 2), np.nan), np.empty(count + 1)
        with self._lock:
            self._mixture.weights(column[:count])
            rows[:count, 0] = column[:count]
            self._mixture.losses(column)
        rows[:, 1] = column + 0.0  # -0.0 becomes 0.0
        return rows

    def expert_weights(self) -> dict[str, float]:
        """Return the mean weight of each method over the lanes.

        Returns
        -------
        dict of str to float
            Weights that sum to one, by the names of `experts`.
        """
        return dict(zip(self.experts, self.expert_table()[:-1, 0].tolist(), strict=True))

    def _totals(self) -> dict[str, float]:
        """Return the total loss of each method, and of the mixture as "protected"."""
        names = (*self.experts, "protected")
        return dict(zip(names, self.expert_table()[:, 1].tolist(), strict=True))


class ProbabilityMixture(LaneMixture):
    """A mixin of calibrators: methods with weights that follow their log losses."""

    _raw_weight: float

    @property
    def raw_weight(self) -> float:
        """Weight of the raw probabilities at first."""
        return self._raw_weight

    @property
    def price(self) -> float:
        """Bound on the log loss in excess of that of the raw probabilities, in nats, in total."""
        return self.lanes * -math.log(self._raw_weight)

    def expert_losses(self) -> dict[str, float]:
        """Return the total log loss of each method, and of the mixture as "protected".

        Returns
        -------
        dict of str to float
            Losses in nats over the labels of awaited observations, and of those without numbers.
        """
        return self._totals()


CLIP = 1e-6
"""Least distance of a raw probability from 0 and 1."""

REMEDY = "declare scores='logit' for log odds, or scores='any'"
"""What to do with scores that are not probabilities."""

Kind = Literal["probability", "logit", "any"]

KINDS: tuple[Kind, ...] = get_args(Kind)
"""What scores can be; the core knows them by their numbers."""


class BinaryMixture(ProbabilityMixture):
    """A mixin of calibrators of two classes: what scores are, and the first weight."""

    _scores_are: Kind

    @property
    def scores(self) -> Kind:
        """What scores are."""
        return self._scores_are

    def _changed(self) -> list[str]:
        """Return the options that are not as by default."""
        given = {
            "scores": (self._scores_are, "probability"),
            "raw_weight": (self._raw_weight, 0.25),
        }
        return [f"{name}={one!r}" for name, (one, usual) in given.items() if one != usual]


def checked_kind(scores: Kind) -> Kind:
    """Check what scores are said to be."""
    if not isinstance(scores, str) or scores not in KINDS:
        msg = f"scores={shown(scores)} is unknown; use {', '.join(KINDS)}"
        raise ParameterError(msg)
    return scores


def logistic(scores: Floats) -> Floats:
    """Return the probabilities of scores that are log odds, an array of any shape."""
    found = np.empty(scores.size)
    core.logistics(np.ascontiguousarray(scores).reshape(-1), found)
    return found.reshape(scores.shape)


METHODS = (
    "raw",
    "venn_abers",
    "jumper",
    "platt",
    "stack_scores",
    "stack_all",
    "stack_2000",
    "stack_1000",
    "share",
    "share_16",
    "share_arrival",
)
"""Names of the methods of two classes, in the order of the core."""

FOLD_METHODS = tuple("cross_venn_abers" if name == "venn_abers" else name for name in METHODS)
"""Those of K scores."""

CLASS_METHODS = (
    "raw",
    "one_vs_rest",
    "stack_scores",
    "stack_all",
    "stack_1000",
    "stack_100",
    "share",
    "share_16",
    "product",
)
"""Those of several classes."""


def is_protected(model: object) -> TypeGuard[Protected]:
    """Return whether a model of the core is a protected calibrator."""
    return isinstance(model, core.Protection | core.FoldProtection | core.ClassProtection)


class MethodNames(ProbabilityMixture):
    """A mixin of what has a model of the core: its methods by name, and their mixture."""

    _model: Protected

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the methods, in order."""
        if isinstance(self._model, core.ClassProtection):
            return CLASS_METHODS
        return FOLD_METHODS if isinstance(self._model, core.FoldProtection) else METHODS

    @property
    def _mixture(self) -> MethodMixture | ClassMixture:  # type: ignore[override]
        return self._model.mixture


class ProtectedPool(MethodNames):
    """A mixin of calibrators: steps, which the model takes one by one or in runs."""

    def __len__(self) -> int:
        """Count the observations that the calibrator of the intervals holds."""
        return self._model.size

    def _expire(self, number: int) -> None:
        self._model.expire(number)

    def _ran(self, steps: Steps, scores: Floats, held: Integers | None) -> tuple[Floats, int]:
        """Run steps with a row of scores each; return rows of answers, and the steps taken."""
        out = np.empty((len(steps.kinds), self._model.forecast_width))
        done = self._model.run(
            steps.kinds,
            np.ascontiguousarray(scores),
            np.asarray(steps.labels, np.int64),
            steps.weights,
            steps.times,
            steps.numbers,
            out,
            held,
        )
        return out, done

    def _must_copy(self, steps: Steps) -> bool:
        return sets.may_overflow(self._model, steps)

    def _save(self) -> bytes:
        return self._model.save()


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
    is wide; switching among fixed corrections (the composite jumper); online Platt scaling of
    recent labels; logistic regressions that combine their log odds, some of them with averages of
    late scores, labels and errors; and fixed share over these. docs/protection.md has all of them.

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
        If `scores` is no such kind, `raw_weight` is not between 0 and 1, or a rule of forgetting is
        invalid or not the only rule.

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
        self._raw_weight = validation.fraction(raw_weight, "raw_weight")
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
