"""Scores that must lie between two ends, as probabilities do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers import validation
from abers.exceptions import ScoreError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Floats

__all__ = ["ScoreRange", "within"]


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
