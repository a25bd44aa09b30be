"""The labelled observations that a baseline remembers.

Governing rule: they are held, forgotten, checked and saved by `VennAbers` itself, so
that a baseline forgets as the calibrator it is compared with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.calibration import _checks
from abers.calibration._steps import Steps
from abers.calibration.venn_abers import VennAbers
from abers.exceptions import ParameterError
from abers.reference import LEARN, ONE, REMOVE

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.calibration._typing import Floats, Integers

__all__ = ["Groups", "Store"]


class Groups(NamedTuple):
    """Observations held, pooled by score: weights of label 0 and of label 1."""

    scores: Floats
    negatives: Floats
    positives: Floats


class Store(VennAbers):
    """A calibrator that tells what it holds, and takes a batch in pieces."""

    def groups(self) -> Groups:
        """List what is held, in score order."""
        with self._lock:
            count = self._held.group_count()
            scores, negatives, positives = np.empty(count), *np.empty((2, count), np.int64)
            self._held.groups(scores, negatives, positives)
        return Groups(scores, negatives / ONE, positives / ONE)

    def around(self, score: float) -> tuple[float, float, float, float] | None:
        """Find the nearest scores of the fit around a checked one, each with its value."""
        with self._lock:
            return self._held.around(score)

    def checked(
        self,
        kinds: ArrayLike,
        scores: Floats,
        labels: ArrayLike,
        weights: ArrayLike | None,
        times: ArrayLike | None,
    ) -> Steps:
        """Check a batch of predictions and labels."""
        n = len(scores)
        steps = _checks.steps(kinds, n)
        if (steps == REMOVE).any():
            msg = f"row {np.argmax(steps == REMOVE)}: a baseline removes nothing; steps are 0 and 1"
            raise ParameterError(msg)
        when = self._forgetting.times(times, n, required=bool((steps == LEARN).any()))
        return Steps(steps, scores, _checks.labels(labels, n), self._units(weights, n), when)

    def may_overflow(self, steps: Steps) -> bool:
        """Tell whether a checked batch could still be refused."""
        return self._may_overflow(steps)

    def take(self, steps: Steps, rows: Integers, names: Integers) -> Integers:
        """Learn some rows of a checked batch; return the numbers of observations then held."""
        held = np.empty(len(rows), np.int64)
        columns = (None if column is None else column[rows] for column in steps)
        self._run(Steps(*columns), names, predicts=False, held=held)  # type: ignore[arg-type]
        return held
