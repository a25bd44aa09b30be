"""How a calibrator forgets: the last so many, by age, by half-life, or not at all.

Governing rule: times belong to a calibrator that forgets by time, and to no
other; there they are required of what is learned, and doubles must resolve them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.calibration import _checks
from abers.exceptions import ParameterError, TimeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.calibration._typing import Floats


class Forgetting:
    """A rule of forgetting, checked; at most one of its parameters is not None.

    Attributes
    ----------
    window, max_age, half_life
        As of `VennAbers`.
    by_time
        Whether observations need their event times.
    """

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        if sum(option is not None for option in (window, max_age, half_life)) > 1:
            msg = "window, max_age and half_life exclude each other; give at most one"
            raise ParameterError(msg)
        self.window = None if window is None else _window(window)
        self.max_age = None if max_age is None else _span(max_age, "max_age")
        self.half_life = None if half_life is None else _span(half_life, "half_life")
        self.by_time = self.max_age is not None or self.half_life is not None

    def __bool__(self) -> bool:
        """Say whether anything is forgotten."""
        return self.by_time or self.window is not None

    def __str__(self) -> str:
        """Write the rule as the argument of the calibrator; the empty text if there is none."""
        given = [f"{name}={value}" for name, value in self._given().items() if value is not None]
        return ", ".join(given)

    def _given(self) -> dict[str, float | None]:
        return {"window": self.window, "max_age": self.max_age, "half_life": self.half_life}

    def time(self, time: float | None) -> float:
        """Check the event time of what is learned, or one that was given for a prediction."""
        if not self.by_time:
            msg = f"time {time!r} given to a calibrator without max_age or half_life; leave it out"
            raise TimeError(msg)
        if time is None:
            msg = "time is missing; with max_age or half_life each observation needs its event time"
            raise TimeError(msg)
        return self._resolvable(_checks.time(time))

    def times(self, times: ArrayLike | None, length: int, *, required: bool) -> Floats | None:
        """Check an array of event times, if there is one."""
        if times is None:
            if required and self.by_time and length:
                self.time(None)
            return None
        if not self.by_time:
            msg = "times given to a calibrator without max_age or half_life; leave them out"
            raise TimeError(msg)
        column = _checks.times(times, length)
        if length:
            self._resolvable(float(column[np.argmax(np.abs(column))]))
        return column

    def _resolvable(self, time: float) -> float:
        if self.half_life and not _checks.resolvable(time, self.half_life):
            msg = f"time {time!r} is more than 2**50 half-lives from zero; use a later zero of time"
            raise TimeError(msg)
        return time


def _window(window: int) -> int:
    if isinstance(window, bool) or not isinstance(window, int | np.integer) or window < 1:
        msg = f"window={window!r} is not a positive whole number of observations"
        raise ParameterError(msg)
    if window >= 1 << 63:
        msg = f"window={window!r} is out of range; leave it out to keep everything"
        raise ParameterError(msg)
    return int(window)


def _span(span: float, name: str) -> float:
    try:
        number = _checks.time(span)
    except TimeError:
        number = 0.0
    if number <= 0.0:
        msg = f"{name}={span!r} is not a positive, finite span of time"
        raise ParameterError(msg)
    return number
