"""Rules of forgetting: a window, a maximum age, a half-life, or none.

Only a calibrator that forgets by time takes event times. It needs one for each label, and doubles
must resolve them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers import validation
from abers.arrays import LIMIT, LIMIT_DECAYING, ONE
from abers.exceptions import ParameterError, TimeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Floats

__all__ = ["Forgetting"]


class Forgetting:
    """A checked rule of forgetting, as in `VennAbers`; with `by_time`, labels need event times."""

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        if sum(option is not None for option in (window, max_age, half_life)) > 1:
            msg = "window, max_age and half_life exclude each other; give at most one"
            raise ParameterError(msg)
        self.window = None if window is None else validation.count(window, "window", 1)
        self.max_age = None if max_age is None else _span(max_age, "max_age")
        self.half_life = None if half_life is None else _span(half_life, "half_life")
        self.by_time = self.max_age is not None or self.half_life is not None

    @classmethod
    def of(cls, held: Any) -> Forgetting:  # noqa: ANN401 - of the core, or around one of them
        """Return the rule of a set of observations."""
        max_age = None if held.half_life else held.lifetime or None
        return cls(held.window or None, max_age, held.half_life or None)

    def __bool__(self) -> bool:
        """Return whether anything is forgotten."""
        return self.by_time or self.window is not None

    def __str__(self) -> str:
        """Return the rule as an argument of the calibrator; an empty string without a rule."""
        given = ((name, getattr(self, name)) for name in ("window", "max_age", "half_life"))
        return ", ".join(f"{name}={value}" for name, value in given if value is not None)

    def too_heavy(self) -> str:
        """Return why a label is refused with which the total weight would be too large."""
        limit = (LIMIT_DECAYING if self.half_life else LIMIT) / ONE
        return f"the total weight would pass {limit:.0f}; scale the weights down or forget earlier"

    def time(self, time: float | None) -> float:
        """Check the event time of a label, or of a prediction."""
        if not self.by_time:
            msg = f"time {time!r} given to a calibrator without max_age or half_life; leave it out"
            raise TimeError(msg)
        if time is None:
            msg = "time is missing; with max_age or half_life each observation needs its event time"
            raise TimeError(msg)
        return self._resolvable(validation.time(time))

    def times(self, times: ArrayLike | None, length: int, *, required: bool) -> Floats | None:
        """Check an array of event times, if there is one."""
        if times is None:
            if required and self.by_time and length:
                self.time(None)
            return None
        if not self.by_time:
            msg = "times given to a calibrator without max_age or half_life; leave them out"
            raise TimeError(msg)
        column = validation.times(times, length)
        if length:
            self._resolvable(float(column[np.argmax(np.abs(column))]))
        return column

    def _resolvable(self, time: float) -> float:
        if self.half_life and not validation.resolvable(time, self.half_life):
            msg = f"time {time!r} is more than 2**50 half-lives from zero; use a later zero of time"
            raise TimeError(msg)
        return time


def _span(span: float, name: str) -> float:
    try:
        number = validation.time(span)
    except TimeError:
        number = 0.0
    if number <= 0.0:
        msg = f"{name}={span!r} is not a positive, finite span of time"
        raise ParameterError(msg)
    return number
