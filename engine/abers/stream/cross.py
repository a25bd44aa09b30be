"""The binary task by cross Venn-Abers prediction: K scores become one interval.

Governing rule: nothing is computed here that `abers.CrossVennAbers` does not
compute; a row is the K scores, the fold, the ends and the merge. The fold is
decided by the id when an observation comes in, and learned by its label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers._shown import shown
from abers.calibration import CrossVennAbers, _folds, cross_ends, cross_log_merge
from abers.exceptions import ScoreError
from abers.stream.binary import Binary
from abers.stream.tasks import Answers, alike

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.stream.columns import Column, Events
    from abers.stream.settings import Settings
    from abers.stream.tasks import Steps

    Floats = NDArray[np.float64]

__all__ = ["Cross"]


class _Calibrator:
    """A cross Venn-Abers calibrator, as the processor drives it."""

    def __init__(self, cross: CrossVennAbers) -> None:
        self._cross = cross
        self._aging = cross.max_age is not None or cross.half_life is not None

    def run(self, steps: Steps) -> Answers:
        held = np.empty(len(steps.kinds), np.int64)
        times = steps.times if self._aging else None
        scores, folds = steps.scores[:, :-1], steps.scores[:, -1].astype(np.int64)
        p0, p1 = self._cross.run(steps.kinds, scores, steps.values, folds, times=times, held=held)
        low, high = cross_ends(p0, p1)
        return Answers(np.column_stack((low, high, cross_log_merge(p0, p1))), held)

    def __len__(self) -> int:
        return len(self._cross)

    def to_bytes(self) -> bytes:
        return self._cross.to_bytes()


class Cross(Binary):
    """Binary labels, calibrated by cross Venn-Abers prediction.

    Parameters
    ----------
    settings
        Those of the processor: the number of folds, what scores are, and how calibrators forget.
    """

    answer_width = 3

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._folds = settings.folds
        self.score_width = settings.folds + 1

    def score(self, given: object, id_: str) -> list[float]:
        """Check the scores of one observation: one of each fold's learner, or one for all."""
        scores = [*given] if isinstance(given, list | tuple) else [given] * self._folds
        if len(scores) != self._folds:
            msg = f"score {shown(given)} is not one number, or {self._folds}, one a fold"
            raise ScoreError(msg)
        return [*map(self._checked, scores), float(_folds.of_id(id_, self._folds))]

    def columns(self, events: Events) -> tuple[Floats, Floats] | None:
        """Do what `score` and `value` do for all of a batch; None if anything is unusual."""
        found = super().columns(events)
        if found is None:
            return None
        folds = np.zeros(len(events))
        seen = events.ids[~events.labels].tolist()
        folds[~events.labels] = [_folds.of_id(one, self._folds) for one in seen]
        scores = np.repeat(found[0], self._folds, axis=1)
        return np.column_stack((scores, folds)), found[1]

    def are_scores(self, rows: Floats) -> bool:
        """Tell whether rows are finite scores, and a fold."""
        folds = np.isin(rows[:, -1], np.arange(self._folds))
        return super().are_scores(rows[:, :-1]) and bool(folds.all())

    def are_answers(self, rows: Floats) -> bool:
        """Tell whether rows are probabilities."""
        return bool(((rows >= 0.0) & (rows <= 1.0)).all())

    def lesson(self, value: float, id_: str) -> tuple[Any, ...]:
        """Give what a learner is told of a label: the label, and the fold."""
        return (self.label(value), _folds.of_id(id_, self._folds))

    def calibrator(self, state: bytes | None = None) -> _Calibrator:
        """Make an empty calibrator, or the one that gave these bytes."""
        none = CrossVennAbers(self._folds, **self._forgetting)
        return _Calibrator(none if state is None else alike(CrossVennAbers.from_bytes(state), none))

    def _read(self, rows: Floats) -> tuple[Column, Column, Column, Column]:
        # The median of equal scores is their value, to the last bit.
        scores = np.median(rows[:, : self._folds], axis=1)
        low, high, p = rows[:, -3:].T
        return scores, low, high, p
