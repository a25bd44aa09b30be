"""The raw probability: what scores say by themselves, with which a protected one is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from abers.backends import core
from abers.calibration.lane_mixture import ProbabilityMixture
from abers.exceptions import ParameterError
from abers.validation import shown

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = [
    "CLIP",
    "KINDS",
    "REMEDY",
    "BinaryMixture",
    "Kind",
    "checked_kind",
    "logistic",
]

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
    if scores not in KINDS:
        msg = f"scores={shown(scores)} is unknown; use {', '.join(KINDS)}"
        raise ParameterError(msg)
    return scores


def logistic(scores: Floats) -> Floats:
    """Return the probabilities of scores that are log odds, an array of any shape."""
    found = np.empty(scores.size)
    core.logistics(np.ascontiguousarray(scores).reshape(-1), found)
    return found.reshape(scores.shape)
