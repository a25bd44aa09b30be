"""A protected calibrator of classes that become known as they come.

`ProtectedMultiClass` needs its classes. Here a class is known from its first score or label on, as
river's classifiers have it. The calibrator exists from the second class on.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, ClassVar

from abers.calibration import ProtectedMultiClass
from abers.calibration._classes import Classes, mapping
from abers.calibration.intervals import MultiInterval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers.calibration._classes import Label
    from abers.capabilities import Capabilities

    Scores = Mapping[Label, float]

__all__ = ["OpenClasses"]

_FEWEST = 2  # classes that make a choice


class OpenClasses:
    """A `ProtectedMultiClass` that grows; a prediction without a number changes nothing.

    Scores are divided by their sum, and are equal if all are 0.

    Parameters
    ----------
    window, max_age, half_life, max_classes
        As in `ProtectedMultiClass`.

    Attributes
    ----------
    protected
        The calibrator; None before the second class.
    """

    capabilities: ClassVar[Capabilities] = ProtectedMultiClass.capabilities

    def __init__(
        self,
        window: int | None,
        max_age: float | None,
        half_life: float | None,
        max_classes: int,
    ) -> None:
        self._classes = Classes(None, max_classes)
        self._rule = (window, max_age, half_life)
        self.protected: ProtectedMultiClass | None = None
        self._made([0, 1])  # refuses options that make no sense

    def predict_one(
        self,
        scores: Scores,
        time: float | None = None,
        weight: float = 1.0,
        *,
        number: int | None = None,
    ) -> MultiInterval:
        """Predict for the scores of one observation, as `ProtectedMultiClass` does."""
        checked = mapping(scores, 0.0)
        new = self._classes.unknown(checked)
        labels, calibrator = [*self._classes.labels, *new], self._grown(new)
        if calibrator is None:  # there is nothing to choose from
            self._made([0, 1]).predict_one({0: 1.0}, time, weight)
            found = MultiInterval(*(dict.fromkeys(labels, end) for end in (1.0, 0.0, 1.0)))
        else:
            found = calibrator.predict_one(_shares(checked, labels), time, weight, number=number)
        if number is not None:
            self._classes.add(new)
            self.protected = calibrator
        return found

    def learn_one(
        self,
        scores: Scores,
        label: Label,
        *,
        weight: float = 1.0,
        time: float | None = None,
        number: int | None = None,
    ) -> None:
        """Learn one labelled observation; nothing but its class before the second class."""
        checked = mapping(scores, 0.0)
        new = self._classes.unknown([*checked, label])
        labels, calibrator = [*self._classes.labels, *new], self._grown(new)
        if calibrator is None:
            self._made([0, 1]).learn_one({0: 1.0}, 0, weight=weight, time=time)
        else:
            shares = _shares(checked, labels)
            calibrator.learn_one(shares, label, weight=weight, time=time, number=number)
        self._classes.add(new)
        self.protected = calibrator

    def expire_one(self, number: int) -> None:
        """Stop waiting for the label of an observation."""
        if self.protected is not None:
            self.protected.expire_one(number)

    def _grown(self, new: list[Label]) -> ProtectedMultiClass | None:
        """Return the calibrator with new classes too; if there are any, a copy."""
        if not new:
            return self.protected
        if self.protected is None:
            labels = [*self._classes.labels, *new]
            return self._made(labels) if len(labels) >= _FEWEST else None
        grown = copy.copy(self.protected)
        for label in new:
            grown.add_class(label)
        return grown

    def _made(self, labels: list[Label]) -> ProtectedMultiClass:
        return ProtectedMultiClass(labels, *self._rule, max_classes=self._classes.most)


def _shares(scores: Scores, labels: list[Label]) -> Scores:
    """Divide scores by their sum; a model that says nothing finds all labels alike."""
    largest = max(scores.values(), default=0.0)
    if largest == 0.0:
        return dict.fromkeys(labels, 1.0 / len(labels))
    parts = {label: score / largest for label, score in scores.items()}  # no sum is infinite
    total = math.fsum(parts.values())
    return {label: part / total for label, part in parts.items()}
