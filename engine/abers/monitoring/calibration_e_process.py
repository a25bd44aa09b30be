"""E-process against forecasts of a binary label: it grows if they are not calibrated.

The bet on an observation is made when it is predicted, from the labels that had come by then. The
factors are multiplied in the order of the observations, whenever labels come.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from abers.calibration import sets
from abers.exceptions import LabelError, ScoreError
from abers.forgetting import Forgetting
from abers.monitoring.e_processes import EXPIRES, LEARNS, PREDICTS, EProcess, EProcessSteps
from abers.monitoring.tests import EDetector, Martingale
from abers.serialization import require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.arrays import Floats
    from abers.monitoring.e_processes import OpenedIncident

__all__ = ["CalibrationEProcess"]

# Labels behind the bets of each test: all of them, and a window that those before a change leave.
_WINDOWS = (None, 1000)
_COLUMNS = 4  # of an observation that waits: forecast, a bet for each test, label


class CalibrationEProcess(EProcess):
    """Test whether forecasts are calibrated, by betting against them with Venn-Abers prediction.

    Parameters
    ----------
    alpha
        Of the test since the beginning, see `Martingale`.
    average_run_length, cooldown
        Of the test for a change, see `EDetector`.
    grace_period
        Number of labels that must have come before the first bet: earlier predictions are left out.

    Notes
    -----
    The hypothesis is that P(Y = 1), given all that was known when the forecast p was issued and
    the labels of all observations before it, is p. The bet q is the merged Venn-Abers probability
    that an `abers.VennAbers` gives p, rounded to 1/4096: one of all labels for the test since the
    beginning, one of the last 1,000 for the detector; both are shrunk to p as if 100 more labels
    agreed with it. The factor is q/p for label 1, and (1 - q)/(1 - p) for label 0; its mean is 1
    if the hypothesis is true. A label 1 that was forecast with 0, or 0 with 1, makes it infinite.

    **Guarantee.** That of each test, see `Martingale` and `EDetector`; they hold however long
    labels take, also if that depends on the label, because a factor waits until all observations
    before it have their labels or expired. An observation that expires is left out; that is
    valid only if being without a label for so long does not depend on the label.

    Callers bound the number of waiting observations by letting them expire.

    References
    ----------
    Henzi, Puke, Dimitriadis & Ziegel (2023), A safe Hosmer-Lemeshow test; Vovk & Petej (2014),
    Venn-Abers predictors.

    Examples
    --------
    >>> process = CalibrationEProcess()
    >>> for number in range(100):  # half of the labels are 1 where 0.1 was forecast
    ...     process.predict(number, 0.1)
    ...     opened = process.learn(number, number % 2)
    >>> [(one.name, round(one.log_wealth, 1), one.active) for one in process.evidence()]
    [('since-start', 30.1, True), ('change', 7.2, True)]
    """

    def __init__(
        self,
        *,
        alpha: float = 0.01,
        average_run_length: float = 1_000_000.0,
        cooldown: float = 10_000.0,
        grace_period: int = 0,
    ) -> None:
        since = Martingale("since-start", alpha=alpha)
        change = EDetector("change", average_run_length=average_run_length, cooldown=cooldown)
        super().__init__((since, change), _COLUMNS, grace_period)
        self._settled_width = len(self._tests)  # a factor each
        self._strategies = [sets.empty(Forgetting(window)) for window in _WINDOWS]

    def predict(self, number: int, forecast: float, time: int = 0) -> None:
        """Bet on an observation, whose number is above all before it."""
        self.run(_step(PREDICTS, number, time, forecast))

    def learn(self, number: int, label: int) -> list[OpenedIncident]:
        """Take a label; return the incidents that it opens."""
        return self.run(_step(LEARNS, number, 0, label))

    def expire(self, number: int) -> list[OpenedIncident]:
        """Let an observation expire; return the incidents that this opens."""
        return self.run(_step(EXPIRES, number, 0, 0.0))

    def _move(self, steps: EProcessSteps) -> int:
        values = np.ascontiguousarray(steps.values[:, 0])
        count: int = self._buffer.bet(*self._strategies, *steps[:3], values)
        if count < 0:
            row = count + len(values)
            if steps.kinds[row] == PREDICTS:
                msg = f"row {row}: forecast {values[row]} is not a probability; give one in [0, 1]"
                raise ScoreError(msg)
            msg = f"row {row}: label {values[row]} is unknown; labels are 0 and 1"
            raise LabelError(msg)
        return count

    def _factors(self, rows: Floats) -> list[list[float]]:
        return [column.tolist() for column in rows.T]

    def _dump(self) -> list[bytes]:
        return [sets.sealed(one) for one in self._strategies]

    def _restore(self, strategies: Sequence[bytes]) -> None:
        try:
            restored = [sets.unsealed(one) for one in strategies]
        except struct.error as error:
            raise ValueError("bets") from error
        for one, window in zip(restored, _WINDOWS, strict=True):
            require(one.window == (window or 0) and not one.lifetime, "betting strategies")
        self._strategies = restored

    def _sound(self, rows: Floats, labelled: NDArray[np.bool_]) -> bool:
        forecasts, bets, labels = rows[:, 0], rows[:, 1:-1], rows[labelled, -1]
        return bool(
            ((forecasts >= 0.0) & (forecasts <= 1.0)).all()
            and ((bets > 0.0) & (bets < 1.0)).all()
            and ((labels == 0.0) | (labels == 1.0)).all()
        )


def _step(kind: int, number: int, time: int, value: float) -> EProcessSteps:
    return EProcessSteps(
        np.array([kind], np.uint8),
        np.array([number], np.int64),
        np.array([time], np.int64),
        np.array([[value]], np.float64),
    )
