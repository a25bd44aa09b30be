"""What calibrators share that hold a calibration set for each of K folds.

The set of its fold learns an observation, and all sets predict it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from abers import validation
from abers.base import NO_TIME, Calibrator
from abers.calibration.folds import fold_of, fold_of_id, fold_of_rows, score_columns, score_row
from abers.exceptions import NotHeldError, ParameterError, WeightError
from abers.mathematics import Many, One
from abers.steps import LEARN, NO_NUMBER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from abers.arrays import Floats, Integers
    from abers.steps import Steps

__all__ = ["FoldCalibrator"]


class FoldCalibrator(Calibrator["Sequence[float]", int, One, Many], Generic[One, Many]):
    """A calibrator of the scores of K learners, each trained without its fold."""

    _lowest: float = math.nan  # a number is no score

    @property
    @abstractmethod
    def folds(self) -> int:
        """Number K of folds."""

    @property
    @abstractmethod
    def _taught(self) -> int:
        """Number of labels learned, less those removed."""

    def _options(self) -> list[str]:
        return [f"folds={self.folds}", *super()._options()]

    def fold_of(self, id: str | int | None = None) -> int:  # noqa: A002 - the word of `learn_one`
        """Return the fold of an id, or of the next label without an id.

        Parameters
        ----------
        id
            A string or a whole number, which is taken as its decimal digits.

        Returns
        -------
        int
            From 0 to K - 1: the learner that must not be trained on this observation.

        Raises
        ------
        ParameterError
            If the id is of another type.

        Examples
        --------
        >>> from abers import CrossVennAbers
        >>> calibrator = CrossVennAbers(folds=5)
        >>> calibrator.fold_of("order-17"), calibrator.fold_of("order-18"), calibrator.fold_of()
        (1, 3, 0)
        """
        return self._taught % self.folds if id is None else fold_of_id(id, self.folds)

    def learn_one(
        self,
        scores: Sequence[float],
        label: int,
        *,
        number: float | None = None,
        fold: int | None = None,
        id: str | int | None = None,  # noqa: A002 - the field's word
        weight: float = 1.0,
        time: float | None = None,
    ) -> None:
        """Learn one labelled observation in its fold; of its K scores that of the fold is learned.

        The number of the `fold`, from 0 to K - 1, or the `id` decides. Without them the folds take
        turns. Everything else is as in `abers.base.Calibrator.learn_one`.
        """
        row, named, units = self._score(scores), self._label(label), self._weight(weight)
        given = fold_of(fold, id, self.folds)
        timed = self._by_time or time is not None
        when = self._forgetting.time(time) if timed else NO_TIME
        of = NO_NUMBER if number is None else validation.observation(number)
        with self._lock:
            k = self._taught % self.folds if given is None else given
            learned = self._learn_in(k, row, named, units, when, of)
        if not learned:
            raise WeightError(self._overflow())

    def remove_one(
        self,
        scores: Sequence[float],
        label: int,
        *,
        fold: int | None = None,
        id: str | int | None = None,  # noqa: A002 - the field's word
        weight: float = 1.0,
    ) -> None:
        """Undo one `learn_one` with the same arguments, exactly.

        `fold` or `id` must be given, since the turn of an observation is not stored. Everything
        else is as in `abers.base.Calibrator.remove_one`.
        """
        self._require_removal()
        row, named, units = self._score(scores), self._label(label), self._weight(weight)
        k = fold_of(fold, id, self.folds)
        if k is None:
            msg = "an observation can be removed only from its fold; give fold or id"
            raise ParameterError(msg)
        with self._lock:
            removed = self._remove_from(k, row[k], named, units)
        if not removed:
            raise NotHeldError(self._not_held(row[k], named, units))

    # The mathematics

    def _score(self, score: object) -> list[float]:
        return score_row(score, self.folds)

    def _scores(self, scores: ArrayLike) -> Floats:
        return score_columns(scores, self.folds)

    def _extra(self, columns: dict[str, Any], length: int) -> Integers | None:
        """Return the fold of each row; None if labels take turns."""
        folds, ids = columns.pop("folds", None), columns.pop("ids", None)
        super()._extra(columns, length)
        return fold_of_rows(folds, ids, self.folds, length)

    @abstractmethod
    def _learn_in(
        self, fold: int, scores: list[float], label: int, weight: int, time: float, number: int
    ) -> bool:
        """Learn an observation in its fold; return False if the total weight would be too large."""

    def _remove_from(self, fold: int, score: float, label: int, weight: int) -> bool:
        """Undo `_learn_in`; return False if that weight is not there."""
        raise NotImplementedError

    def _learn(self, score: list[float], label: int, weight: int, time: float, number: int) -> bool:
        raise NotImplementedError  # `learn_one` needs the fold

    # Batches

    def _folds_of(self, steps: Steps) -> Integers:
        """Return the fold of each step; labels without one take turns."""
        turns = (self._taught + np.cumsum(steps.kinds == LEARN) - 1) % self.folds
        folds: Integers = turns if steps.extra is None else steps.extra
        return folds

    def _refuse(self, fold: int, row: int) -> WeightError:
        msg = f"fold {fold}: row {row}: {self._overflow()} (within the fold)"
        return WeightError(msg)
