"""No calibration: scores that are probabilities are served as they are, and nothing is learned."""

from __future__ import annotations

import json
import math
import struct
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from abers.base import Calibrator, Capabilities
from abers.calibration._classes import Classes, ClassProbabilities, Label
from abers.calibration.intervals import MultiInterval, MultiIntervals
from abers.calibration.sets import ScoreRange
from abers.exceptions import ParameterError
from abers.mathematics import LEARN, PREDICT, Forgetting
from abers.serialization import MAX_COUNT, count, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers.arrays import Floats, Integers
    from abers.mathematics import Steps

__all__ = ["Uncalibrated", "UncalibratedClasses"]

_COUNT = struct.Struct("<Q")


class _LabelCounter(Calibrator[Any, Any, Any, Any]):
    """A calibrator that counts labels, and holds none."""

    _labels_seen = 0

    def __len__(self) -> int:
        """Count the labels that came; none is kept."""
        return self._labels_seen

    def _learn(self, score: Any, label: Any, weight: int, time: float, number: int) -> bool:
        if self._labels_seen == MAX_COUNT:
            return False
        self._labels_seen += 1
        return True

    def _take(self, steps: Steps, held: Integers | None) -> tuple[Any, int]:
        learns = steps.kinds == LEARN
        seen = self._labels_seen + np.cumsum(learns)
        done = int(np.searchsorted(seen, MAX_COUNT, "right"))  # the first that is too many
        if done < len(seen):
            return None, done
        if held is not None:
            held[:] = seen
        self._labels_seen += int(np.count_nonzero(learns))
        return self._served(steps), len(learns)

    def _served(self, steps: Steps) -> Any:
        """Return the scores of the steps that predict, and NaN in the others."""
        return np.where(steps.kinds == PREDICT, steps.scores, np.nan)

    def _must_copy(self, steps: Steps) -> bool:
        return False


class Uncalibrated(ScoreRange, _LabelCounter):
    """No calibration: the score is the probability.

    It counts labels, and holds nothing, so its memory is constant and it needs no rule of
    forgetting. In a stream it is the calibrator "none": monitors and tests of a model alone.

    Notes
    -----
    **Guarantee.** None. **Scores** are probabilities, in [0, 1]; others are refused. Labels have
    no weights.

    Examples
    --------
    >>> from abers import Uncalibrated
    >>> Uncalibrated().predict_one(0.3)
    0.3
    """

    capabilities = Capabilities(
        task="binary",
        score="probability",
        answer="probability",
        weights=False,
        removal="none",
        forgetting=(),
    )
    _magic: ClassVar[bytes] = b"abersUC\x01"
    _remedy = "use Platt or Isotonic for other scores"
    _lowest: float = 0.0
    _highest: float = 1.0

    def __init__(self) -> None:
        super().__init__()

    def _predict(self, score: float, weight: int, time: float, number: int) -> float:
        return score

    def _save(self) -> bytes:
        return pack([_COUNT.pack(self._labels_seen)])

    def _load(self, payload: memoryview) -> None:
        (seen,) = unpack(payload)
        self._labels_seen = count(_COUNT.unpack(seen)[0], "labels")
        self._forget_by(Forgetting())


class UncalibratedClasses(ClassProbabilities, _LabelCounter):
    """No calibration of several classes: the scores are the probabilities.

    Parameters
    ----------
    classes
        All classes: strings, whole numbers or truth values; others are refused.
    max_classes
        The greatest number of classes.

    Raises
    ------
    ParameterError
        If the classes are not 2 to `max_classes` different labels.

    Notes
    -----
    **Guarantee.** None. **Scores** are probabilities of the classes, which sum to 1 within .02; a
    class that is missing from a dict has score 0. Each is served as it is, and is both ends of its
    interval. As `Uncalibrated` it counts labels, and holds none.

    Examples
    --------
    >>> from abers.calibration import UncalibratedClasses
    >>> UncalibratedClasses(["cat", "dog"]).predict_one({"cat": 0.75, "dog": 0.25}).p
    {'cat': 0.75, 'dog': 0.25}
    """

    capabilities = Capabilities(
        task="multiclass",
        score="class probabilities",
        answer="classes",
        weights=False,
        removal="none",
        forgetting=(),
    )
    _magic: ClassVar[bytes] = b"abersUM\x01"
    _lowest: float = math.nan  # a number is no score

    def __init__(self, classes: Iterable[Label], *, max_classes: int = 100) -> None:
        if classes is None:
            msg = "classes=None must be a list of labels"
            raise ParameterError(msg)
        self._classes = Classes(classes, max_classes)
        super().__init__()

    def _options(self) -> list[str]:
        return [f"{len(self._classes)} classes"]

    def _predict(self, score: Floats, weight: int, time: float, number: int) -> MultiInterval:
        p, low, high = (dict(zip(self.classes, score.tolist(), strict=True)) for _ in range(3))
        return MultiInterval(p, low, high)

    def _served(self, steps: Steps) -> MultiIntervals:
        served = np.ascontiguousarray(super()._served(steps).T)
        return MultiIntervals(served, served.copy(), served.copy())

    def _save(self) -> bytes:
        known = json.dumps([self.max_classes, *self.classes]).encode()
        return pack([known, _COUNT.pack(self._labels_seen)])

    def _load(self, payload: memoryview) -> None:
        known, seen = unpack(payload)
        most, *labels = json.loads(known)
        self._classes = Classes.known(labels, most, closed=True)
        self._labels_seen = count(_COUNT.unpack(seen)[0], "labels")
        self._forget_by(Forgetting())
