"""Scores that are the probabilities of several classes, and their checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.calibration._class_labels import ClassLabels
from abers.calibration._classes import label as checked_label
from abers.calibration._classes import mapping, table
from abers.exceptions import ScoreError
from abers.validation import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Floats

__all__ = ["ClassProbabilities"]

_ROUNDING = 0.02  # probabilities that were written with few digits; streams refuse at half of it
_NO_PROBABILITIES = "not probabilities that sum to 1; divide the scores by their sum"


class ClassProbabilities(ClassLabels):
    """A mixin of calibrators: scores are probabilities of all classes, and labels are classes."""

    def _score(self, score: Any) -> Floats:
        checked = mapping(score, 0.0)
        self._classes.unknown(checked)
        row = np.array([checked.get(each, 0.0) for each in self.classes])
        if not _are_probabilities(row):
            msg = f"scores {shown(checked)} are {_NO_PROBABILITIES}"
            raise ScoreError(msg)
        return row

    def _scores(self, scores: ArrayLike) -> Floats:
        found = table(scores, self._classes, 0.0)
        bad = np.flatnonzero(~_are_probabilities(found))
        if bad.size:
            msg = f"row {bad[0]}: scores {shown(found[:, bad[0]].tolist())} are {_NO_PROBABILITIES}"
            raise ScoreError(msg)
        return found

    def _label(self, label: object) -> int:
        named = checked_label(label)
        self._classes.unknown([named])
        return self._classes.numbers[named]


def _are_probabilities(scores: Floats) -> Any:
    """Return whether scores that are not negative sum to 1, as far as digits go."""
    with np.errstate(over="ignore"):  # an infinite sum is not 1
        return np.abs(np.asarray(sum(scores)) - 1.0) <= _ROUNDING
