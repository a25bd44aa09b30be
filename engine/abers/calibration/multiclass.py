"""The base class of one-vs-rest and one-vs-one: classes, and a calibration set for each part.

One more calibration set, `_all`, learns every observation with score 0 and label 0 before any other
does. It counts, forgets, and refuses what cannot be learned; what it accepts, all others accept.
"""

from __future__ import annotations

import json
import math
import struct
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from abers.base import Calibrator, Capabilities
from abers.calibration import sets
from abers.calibration._class_labels import ClassLabels
from abers.calibration._classes import Classes, Label, mapping, table
from abers.calibration._classes import label as checked_label
from abers.calibration.intervals import MultiInterval, MultiIntervals
from abers.forgetting import Forgetting
from abers.serialization import pack, require, unpack
from abers.steps import PREDICT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import ArrayLike

    from abers._core import CalibrationSet
    from abers.arrays import Floats, Integers
    from abers.steps import Steps

__all__ = ["UNSEEN", "MultiClass", "Touched", "Triple"]

Triple: TypeAlias = "tuple[Floats, Floats, Floats]"
Touched: TypeAlias = "tuple[CalibrationSet, float, int]"
UNSEEN = -1  # the number of any class that has no number yet
_CLOCK = struct.Struct("<d")
_NOT_HELD = (
    "the observation is not there; remove only what was learned, with the scores, the label and "
    "the weight it had"
)


class MultiClass(ClassLabels, Calibrator[Any, "Label", MultiInterval, MultiIntervals]):
    """A calibrator of vectors of class scores, made of binary calibration sets.

    Arrays of scores have a column a class, in the order of `classes`, and need classes that are
    known. In `run`, labels are the numbers of classes; everywhere else they are classes.
    """

    capabilities = Capabilities(
        task="multiclass", score="classes", answer="classes", removal="single"
    )
    _lowest: float = math.nan  # a number is no score
    _smallest: ClassVar[float]  # score of a class that is accepted

    def __init__(
        self,
        classes: Iterable[Label] | None = None,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        *,
        max_classes: int = 100,
    ) -> None:
        known = Classes(classes, max_classes)
        super().__init__(window, max_age, half_life)
        self._hold(known, sets.empty(self._forgetting))

    def _hold(self, classes: Classes, everything: CalibrationSet) -> None:
        self._classes, self._all = classes, everything
        self._clock = -math.inf  # latest time of the parts, if not that of `_all`
        self._parts: dict[tuple[int, ...], CalibrationSet] = {}
        self._make_parts()

    def _make_parts(self) -> None:
        for number in range(len(self._classes)):
            self._grow(number)

    def _add(self, labels: Iterable[Label]) -> None:
        for each in labels:
            self._grow(len(self._classes))
            self._classes.add([each])

    @property
    def late(self) -> int:
        """Number of labels that came too old to be learned."""
        return self._all.late

    def __len__(self) -> int:
        """Count the observations kept."""
        return self._all.size

    def __repr__(self) -> str:
        """Return the rule of forgetting and the numbers of observations and classes."""
        return f"{super().__repr__()[:-1]}, {len(self._classes)} classes>"

    # Methods of the two classes; arguments are checked, and `_all` has accepted them

    @abstractmethod
    def _part(self) -> CalibrationSet:
        """Return an empty set for `_parts`."""

    @abstractmethod
    def _grow(self, number: int) -> None:
        """Add the sets of the class of the next number to `_parts`."""

    @abstractmethod
    def _touched(self, row: Floats, number: int) -> Iterator[Touched]:
        """Yield the sets that an observation of a class touches, each with its score and label."""

    @abstractmethod
    def _learn_row(self, row: Floats, number: int, weight: int, time: float) -> None:
        """Learn one observation."""

    @abstractmethod
    def _predict_row(self, row: Floats, weight: int, time: float) -> Triple:
        """Predict one observation; scores of unknown classes follow those of known classes."""

    @abstractmethod
    def _run(self, steps: Steps) -> Triple:
        """Run steps; return arrays of shape (number of classes, number of predictions)."""

    # The mathematics

    def _predict(
        self, score: dict[Label, float], weight: int, time: float, number: int
    ) -> MultiInterval:
        classes = (*self.classes, *self._classes.unknown(score))
        if not classes:
            return MultiInterval({}, {}, {})
        row = np.array([score.get(each, 0.0) for each in classes])
        answer = self._predict_row(row, weight, time)
        p, low, high = (dict(zip(classes, ends.tolist(), strict=True)) for ends in answer)
        return MultiInterval(p, low, high)

    def _learn(
        self, score: dict[Label, float], label: Label, weight: int, time: float, number: int
    ) -> bool:
        new = self._classes.unknown((*score, label))
        if not self._all.learn(0.0, 0, weight, time):
            return False
        self._add(new)
        self._learn_row(self._row(score), self._classes.numbers[label], weight, time)
        return True

    def _remove(self, score: dict[Label, float], label: Label, weight: int) -> bool:
        """Remove an observation from all sets it touched, or from none."""
        numbers = self._classes.numbers
        if any(each not in numbers for each in (*score, label)):
            return False
        touched = [(self._all, 0.0, 0), *self._touched(self._row(score), numbers[label])]
        for at, (part, own, number) in enumerate(touched):
            if not part.remove(own, number, weight):
                for other, back, was in touched[:at]:
                    other.learn(back, was, weight)
                return False
        return True

    def _take(self, steps: Steps, held: Integers | None) -> tuple[MultiIntervals, int]:
        n = len(steps.kinds)
        zeros = np.zeros(n)
        everything = steps._replace(scores=zeros, labels=zeros.astype(np.uint8))
        *_, done = sets.pairs(self._all, everything, held)
        answers = np.full((3, n, len(self._classes)), np.nan)
        if done == n:
            answers[:, steps.kinds == PREDICT] = np.array(self._run(steps)).swapaxes(1, 2)
        return MultiIntervals(*answers), done

    def _must_copy(self, steps: Steps) -> bool:
        return sets.may_overflow(self._all, steps)

    def _not_held(self, score: Any, label: Any, weight: int) -> str:
        return _NOT_HELD

    def _row(self, checked: dict[Label, float]) -> Floats:
        return np.array([checked.get(each, 0.0) for each in self.classes])

    # The checks

    def _score(self, score: Any) -> dict[Label, float]:
        return mapping(score, self._smallest)

    def _scores(self, scores: ArrayLike) -> Floats:
        return table(scores, self._classes, self._smallest)

    def _label(self, label: object) -> Label:
        return checked_label(label)

    # Saving

    def _may_be(self, clock: float) -> bool:
        """Return whether the parts can have this clock; most have none, -infinity."""
        return clock == -math.inf

    def _save(self) -> bytes:
        classes = [self._classes.closed, self.max_classes, *self.classes]
        pieces = [json.dumps(classes).encode(), _CLOCK.pack(self._clock)]
        return pack([*pieces, *map(sets.sealed, (self._all, *self._parts.values()))])

    def _load(self, payload: memoryview) -> None:
        """Restore the classes and the set of each part."""
        classes, clock, everything, *parts = unpack(payload)
        closed, most, *labels = json.loads(classes)
        held = sets.unsealed(everything)
        self._forget_by(Forgetting.of(held))
        self._hold(Classes.known(labels, most, closed=closed), held)
        (self._clock,) = _CLOCK.unpack(clock)
        require(self._may_be(self._clock), "clock")
        for key, blob in zip(self._parts, parts, strict=True):
            part, empty = sets.unsealed(blob), self._parts[key]
            rules = ((one.window, one.lifetime, one.half_life) for one in (part, empty))
            require(len({*rules}) == 1, "rules of forgetting")
            self._parts[key] = part
