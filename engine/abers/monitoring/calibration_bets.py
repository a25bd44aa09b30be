"""Bets against the forecasts of a binary label, which win if these are not calibrated.

Governing rule: the bet on an observation is made when it is predicted, from labels that had come by
then; what bets win is multiplied in the order of the observations, whenever labels come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from abers._saved import require
from abers.calibration import VennAbers
from abers.exceptions import LabelError, ScoreError
from abers.monitoring.evidence import ChangeDetector, SinceStart
from abers.monitoring.settling import EXPIRES, LEARNS, PREDICTS, Opened, Settling, Steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["CalibrationBets"]

_WINDOW = 1000  # labels from which changes are bet on: those before a change soon have left it
_COLUMNS = 4  # of what waits: the forecast, a bet for each test, and the label


class CalibrationBets(Settling):
    """Test whether forecasts are calibrated, by betting against them with Venn-Abers prediction.

    Parameters
    ----------
    alpha
        Of the test since the beginning, see `SinceStart`.
    distance, quiet
        Of the detector of changes, see `ChangeDetector`.
    least
        How many labels must have come before the first bet: what was predicted earlier is left out.

    Notes
    -----
    The hypothesis is that P(Y = 1), given all that was known when the forecast p was issued and
    the labels of all observations before it, is p. The bet q is the merged Venn-Abers probability
    that an `abers.VennAbers` gives p, rounded to 1/4096: one of all labels for the test since the
    beginning, one of the last 1,000 for the detector; both are drawn to p as if 100 more labels
    had spoken for it. The factor is q/p for label 1, and (1 - q)/(1 - p) for label 0; its mean is 1
    if the hypothesis is true. A label 1 that was forecast with 0, or 0 with 1, makes it infinite.

    **Guarantee.** That of each test, see `SinceStart` and `ChangeDetector`; they hold however long
    labels take, also if that depends on the label, because a factor waits until all observations
    before it have their labels or expired. An observation that expires is left out; that is
    valid only if being without a label for so long does not depend on the label.

    What waits is bounded only by what the caller lets wait: let observations expire.

    References
    ----------
    Henzi, Puke, Dimitriadis & Ziegel (2023), A safe Hosmer-Lemeshow test; Vovk & Petej (2014),
    Venn-Abers predictors.

    Examples
    --------
    >>> bets = CalibrationBets()
    >>> for number in range(100):  # of what was forecast with 0.1, half comes true
    ...     bets.predict(number, 0.1)
    ...     opened = bets.learn(number, number % 2)
    >>> [(one.name, round(one.log_wealth, 1), one.ringing) for one in bets.evidence()]
    [('since-start', 30.1, True), ('change', 7.2, True)]
    """

    def __init__(
        self,
        *,
        alpha: float = 0.01,
        distance: float = 1_000_000.0,
        quiet: float = 10_000.0,
        least: int = 0,
    ) -> None:
        since = SinceStart("since-start", alpha=alpha)
        change = ChangeDetector("change", distance=distance, quiet=quiet)
        super().__init__((since, change), _COLUMNS, least)
        self._bettors = (VennAbers(), VennAbers(window=_WINDOW))

    def predict(self, number: int, forecast: float, time: int = 0) -> None:
        """Bet on an observation, with a number above all before it."""
        self.run(_step(PREDICTS, number, time, forecast))

    def learn(self, number: int, label: int) -> list[Opened]:
        """Take a label; the episodes that it opens."""
        return self.run(_step(LEARNS, number, 0, label))

    def expire(self, number: int) -> list[Opened]:
        """Let an observation wait no longer; the episodes that this opens."""
        return self.run(_step(EXPIRES, number, 0, 0.0))

    @property
    def _told(self) -> int:
        return len(self._tests)  # a factor for each

    def _move(self, steps: Steps) -> int:
        values = np.ascontiguousarray(steps.values[:, 0])
        sets = [one._held for one in self._bettors]  # noqa: SLF001 - steps were checked here
        count: int = self._waiting.bet(*sets, *steps[:3], values)
        if count < 0:
            _refuse(steps.kinds, values, count + len(values))
        return count

    def _factors(self, rows: Floats) -> list[list[float]]:
        return [column.tolist() for column in rows.T]

    def _dump(self) -> list[bytes]:
        return [one.to_bytes() for one in self._bettors]

    def _restore(self, bettors: Sequence[bytes]) -> None:
        everything, recent = map(VennAbers.from_bytes, bettors)
        for one, window in ((everything, None), (recent, _WINDOW)):
            ages = one.max_age is not None or one.half_life is not None
            require(one.window == window and not ages, "bettors")
        self._bettors = (everything, recent)

    def _sound(self, rows: Floats, labelled: NDArray[np.bool_]) -> bool:
        forecasts, stakes, labels = rows[:, 0], rows[:, 1:-1], rows[labelled, -1]
        return bool(
            ((forecasts >= 0.0) & (forecasts <= 1.0)).all()
            and ((stakes > 0.0) & (stakes < 1.0)).all()
            and ((labels == 0.0) | (labels == 1.0)).all()
        )


def _refuse(kinds: NDArray[np.uint8], values: Floats, row: int) -> NoReturn:
    """Say what is wrong with a row."""
    value = float(values[row])
    if kinds[row] == PREDICTS:
        msg = f"row {row}: forecast {value!r} is no probability; it must lie in [0, 1]"
        raise ScoreError(msg)
    msg = f"row {row}: label {value!r} is unknown; labels are 0 and 1"
    raise LabelError(msg)


def _step(kind: int, number: int, time: int, value: float) -> Steps:
    return Steps(
        np.array([kind], np.uint8),
        np.array([number], np.int64),
        np.array([time], np.int64),
        np.array([[value]], np.float64),
    )
