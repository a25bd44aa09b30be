"""A calibrator that is taught in an order of its own: the specification of a stream's merged ones.

Labels teach it in the order of `TeachingOrder`, or by age; of observations that this does not know,
at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tests.oracles.teaching_order import TeachingByAge, TeachingOrder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.oracles.teaching_order import Taught

__all__ = ["OrderedCalibrator"]


class OrderedCalibrator:
    """A calibrator with numbered observations; until two classes came nothing is passed by age.

    With an `age`, calls have the time of the observation, `moment`, and the clock.
    """

    def __init__(
        self,
        calibrator: Any,  # noqa: ANN401 - any
        age: int | None = None,
        classes: Sequence[Any] = (0, 1),
        most: int = 2**62,
    ) -> None:
        self._calibrator, self._classes = calibrator, [*classes]
        self._order: Any = TeachingOrder(2**63 - 1, len(classes), most)
        if age is not None:
            self._order = TeachingByAge(age, most)
        self._by_age = age is not None
        self._held: dict[int, tuple[Any, Any, dict[str, Any]]] = {}

    def __len__(self) -> int:
        """Count the observations that the calibrator holds."""
        return len(self._calibrator)

    def predict_one(
        self,
        score: Any,  # noqa: ANN401 - of the calibrator
        time: float | None = None,
        *,
        number: int,
        moment: int = 0,
        clock: float = -math.inf,
    ) -> Any:  # noqa: ANN401 - likewise
        """Predict; the observation waits for its label from now on."""
        self._advance(clock)
        found = self._calibrator.predict_one(score, time)
        self._teach(self._order.predict(number, *[moment] * self._by_age))
        return found

    def learn_one(
        self,
        score: Any,  # noqa: ANN401 - of the calibrator
        label: Any,  # noqa: ANN401 - likewise
        *,
        number: int,
        clock: float = -math.inf,
        **options: Any,  # noqa: ANN401 - likewise
    ) -> None:
        """Take a label, and teach what is due."""
        if self._order.waits(number):
            self._held[number] = score, label, options
            self._teach(self._order.label(number, self._classes.index(label)) or [])
        else:
            self._calibrator.learn_one(score, label, **options)
        self._advance(clock)

    def expire_one(self, number: int, clock: float = -math.inf) -> None:
        """Stop waiting for a label."""
        self._advance(clock)
        self._teach(self._order.expire(number))

    def _advance(self, clock: float) -> None:
        if self._by_age:
            self._teach(self._order.advance(clock))

    def _teach(self, due: Taught) -> None:
        for number in due:
            score, label, options = self._held.pop(number)
            self._calibrator.learn_one(score, label, **options)
