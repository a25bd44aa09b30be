"""What else turns scores of several classes into probabilities on a stream.

As in `streams_rivals`; what calibrates one class against the rest is clipped, and divided by the
sum over the classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logit, softmax

from abers import OneVsRest
from abers.arrays import PREDICT
from abers.calibration import Isotonic
from benchmarks.papers.streams_rivals import (
    HALF_LIFE,
    REFITTED,
    OnlinePlatt,
    clipped,
    drawn,
    ran,
    window_name,
)
from benchmarks.papers.streams_several import shared

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from benchmarks.papers.streams_steps import Steps

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["OnlineTemperature", "class_rivals"]


def class_rivals(odds: Floats, scores: Floats, y: Integers, order: Steps) -> dict[str, Floats]:
    """Forecast by each rival from log odds of each class, or from the probabilities of them."""
    raw, row, at = shared(clipped(scores)), order.rows, order.kinds == PREDICT
    classes = range(raw.shape[1])

    def ivap(of: Floats, **forgetting: Any) -> tuple[Floats, Floats, Floats]:  # noqa: ANN401 - its options
        times = row.astype(np.float64) if "half_life" in forgetting else None
        held = OneVsRest(classes, **forgetting)
        p, low, high = held.run(order.kinds, of[row], y[row], times=times)
        return p[at], low[at], high[at]

    def rest(one: Callable[[Floats, Integers], Floats]) -> Floats:
        columns = [one(raw[:, k], (y == k).astype(np.int64)) for k in classes]
        return shared(clipped(np.column_stack(columns)))

    def isotonic(p: Floats, label: Integers) -> Floats:
        found: Floats = Isotonic(window=REFITTED).run(order.kinds, p[row], label[row])[at]
        return found

    _, low, high = ivap(scores, half_life=HALF_LIFE)
    return {
        "raw": raw,
        "IVAP": ivap(odds)[0],
        window_name(REFITTED): ivap(odds, window=REFITTED)[0],
        "IVAP, shrunk": shared(clipped(drawn(low, high, raw))),
        "OPS": rest(lambda p, label: ran(OnlinePlatt(logit(p)), label, order)),
        "temperature": ran(OnlineTemperature(raw), y, order),
        "isotonic, 1,000": rest(isotonic),
    }


class OnlineTemperature:
    """A power of all probabilities, divided by the sum, by the online Newton step.

    Online Platt scaling (Gupta & Ramdas 2023) has the same steps and constants. It begins at 1.
    """

    _rate, _first, _most = 10.0, 100.0, 100.0  # 1 / gamma, rho, and the largest power

    def __init__(self, raw: Floats) -> None:
        """Begin from the raw probabilities of all rows."""
        self._logs = np.log(raw)
        self._power, self._curvature = 1.0, self._first

    def forecast(self, row: int) -> Floats:
        """Return the probabilities of the classes."""
        found: Floats = softmax(self._power * self._logs[row])
        return found

    def learn(self, row: int, label: int) -> None:
        """Take a step along the gradient."""
        gradient = float(self.forecast(row) @ self._logs[row] - self._logs[row, label])
        self._curvature += gradient**2
        power = self._power - self._rate * gradient / self._curvature
        self._power = min(max(power, -self._most), self._most)
