"""The merged calibrators of a stream by key, one step after the other, in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tests.oracles.ordered_calibrator import OrderedCalibrator

from abers import CrossVennAbers, OneVsRest, VennAbers
from abers.arrays import LEARN, PREDICT
from abers.stream.tasks.base import CalibrationSteps, PredictionRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream import Settings

__all__ = ["LABEL_BYTES", "OrderedCalibrators", "merged"]

LABEL_BYTES = {"ivap": 104, "cvap": 112}
"""What a label takes that waits to teach, by calibrator."""
CLASS_BYTES = 136, 8
"""The same with classes: for the label, and for each class."""


def merged(settings: Settings) -> OrderedCalibrator:
    """Return the merged calibrator of a model of a stream."""
    s = settings
    rule = {"window": s.window, "max_age": s.max_age, "half_life": s.half_life}
    if s.task == "multiclass":
        most = s.max_bytes // (CLASS_BYTES[0] + CLASS_BYTES[1] * len(s.classes))
        several = OneVsRest(s.classes, **rule)  # type: ignore[arg-type]
        return OrderedCalibrator(several, classes=s.classes, most=most)
    if s.calibrator == "cvap":
        folds = CrossVennAbers(s.folds, **rule)
        return OrderedCalibrator(folds, most=s.max_bytes // LABEL_BYTES["cvap"])
    return OrderedCalibrator(
        VennAbers(s.window, s.max_age, s.half_life), most=s.max_bytes // LABEL_BYTES["ivap"]
    )


class OrderedCalibrators:
    """Merged calibrators that are taught in an order of their own, one by one."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._classes = settings, settings.classes
        self._folds = settings.calibrator == "cvap"
        self._timed = settings.max_age is not None or settings.half_life is not None
        self._width = 3 * max(len(settings.classes), 1)
        self._each: list[OrderedCalibrator] = []

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._each)

    def size(self, key: int) -> int:
        """Return the number of labels that a key holds."""
        return len(self._each[key])

    def add(self, count: int) -> None:
        """Add empty ones."""
        self._each += [merged(self._settings) for _ in range(count)]

    def reset(self, key: int) -> None:
        """Put an empty one in the place of a key's."""
        self._each[key] = merged(self._settings)

    def keep(self, keys: Sequence[int]) -> None:
        """Keep some keys."""
        self._each = [self._each[key] for key in keys]

    def step(  # noqa: PLR0913, PLR0917 - the fields of a step
        self, key: int, kind: int, score: Sequence[float], value: float, time: int, number: int
    ) -> tuple[Sequence[float], int]:
        """Run one step."""
        one, when = self._each[key], {"time": time} if self._timed else {}
        n_labels = len(one)
        if kind == PREDICT:
            return self._row(one.predict_one(self._score(score), number=number, **when)), n_labels
        if kind == LEARN:
            label = self._classes[int(value)] if self._classes else int(value)
            of = {"fold": int(score[-1])} if self._folds else {}
            one.learn_one(self._score(score), label, number=number, **of, **when)
        else:
            one.expire_one(number)
        return [], n_labels

    def run(self, keys: np.ndarray[Any, Any], steps: CalibrationSteps) -> PredictionRows:
        """Run one step after the other."""
        rows, sizes = np.full((len(keys), self._width), np.nan), np.empty(len(keys), np.int64)
        assert steps.numbers is not None
        for row, key in enumerate(keys.tolist()):
            kind = steps.kinds[row]
            of = (steps.scores[row], steps.values[row], steps.times[row], steps.numbers[row])
            found, n_labels = self.step(key, kind, *(one.tolist() for one in of))
            if kind == PREDICT:
                rows[row] = found
            sizes[row] = n_labels if kind == PREDICT else self.size(key)
        return PredictionRows(rows, sizes)

    def _score(self, row: Sequence[float]) -> Any:  # noqa: ANN401 - of the calibrator
        if self._classes:
            return dict(zip(self._classes, row, strict=True))
        return row[:-1] if self._folds else row[0]

    def _row(self, found: Any) -> list[float]:  # noqa: ANN401 - of the calibrator
        if self._classes:
            return [one for part in found for one in part.values()]
        if self._folds:
            return [found.low, found.high, found.merged]
        return [*found, found.merged]
