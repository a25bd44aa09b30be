"""The raw probability: what scores say by themselves, with which a protected one is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np

from abers.arrays import LEARN
from abers.backends import core
from abers.calibration.lane_mixture import ProbabilityMixture
from abers.calibration.mixture_steps import HALF_LIVES
from abers.exceptions import ParameterError
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats
    from abers.steps import Steps

__all__ = [
    "CLIP",
    "KINDS",
    "REMEDY",
    "BinaryMixture",
    "Kind",
    "checked_kind",
    "logistic",
    "raw_probabilities",
    "raw_probability",
]

CLIP = 1e-6
"""Least distance of a raw probability from 0 and 1."""

REMEDY = "declare scores='logit' for log odds, or scores='any'"
"""What to do with scores that are not probabilities."""

Kind = Literal["probability", "logit", "any"]

KINDS: tuple[Kind, ...] = get_args(Kind)
"""What scores can be; the core knows them by their numbers."""


class BinaryMixture(ProbabilityMixture):
    """A mixin of calibrators of two classes that mix a raw probability and its corrections."""

    _calibrator: ClassVar[str]  # name of the expert that makes the interval
    _scores_are: Kind

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the experts, in order."""
        rates = [f"half_life_{one}" for one in HALF_LIVES]
        return ("raw", self._calibrator, *rates, "platt", "jumper", "fixed_share")

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
    if scores not in KINDS:
        msg = f"scores={shown(scores)} is unknown; use {', '.join(KINDS)}"
        raise ParameterError(msg)
    return scores


def raw_probabilities(kind: Kind, steps: Steps, positives: int, taught: int) -> Floats:
    """Return the raw probability of each step.

    Of K scores, a row each, it is the median of their probabilities. For scores of any kind it is
    the share of label 1 before the step, one of each label added; `positives` of `taught` labels
    came before all steps.
    """
    if kind == "any":
        learns = steps.kinds == LEARN
        positive = learns & (np.asarray(steps.labels) == 1)
        ones = positives + np.cumsum(positive) - positive
        found = (ones + 1.0) / (taught + np.cumsum(learns) - learns + 2.0)
    else:
        found = logistic(steps.scores) if kind == "logit" else steps.scores
        found = _median(found) if found.ndim > 1 else found
    clipped: Floats = np.minimum(np.maximum(found, CLIP), 1.0 - CLIP)
    return clipped


def raw_probability(kind: Kind, scores: Sequence[float], positives: int, taught: int) -> float:
    """Return the raw probability of one step, as `raw_probabilities` does of many."""
    if kind == "any":
        found = (positives + 1.0) / (taught + 2.0)
    else:
        row = logistic(np.array(scores)).tolist() if kind == "logit" else scores
        ordered, k = sorted(row), len(row)
        found = (ordered[(k - 1) // 2] + ordered[k // 2]) / 2.0
    return min(max(found, CLIP), 1.0 - CLIP)


def logistic(scores: Floats) -> Floats:
    """Return the probabilities of scores that are log odds, an array of any shape."""
    found = np.empty(scores.size)
    core.logistics(np.ascontiguousarray(scores).reshape(-1), found)
    return found.reshape(scores.shape)


def _median(rows: Floats) -> Floats:
    """Return the median of each column, of an even number of rows the mean of the middle two."""
    ordered, k = np.sort(rows, axis=0), len(rows)
    median: Floats = (ordered[(k - 1) // 2] + ordered[k // 2]) / 2.0
    return median
