"""E-process against forecasts of a binary label: it grows if they are not calibrated.

The bet on an observation is made when it is predicted, from the labels that had come by then. The
factors are multiplied in the order of the observations, whenever labels come.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from abers.calibration import sets
from abers.exceptions import LabelError, ScoreError
from abers.forgetting import Forgetting
from abers.monitoring.e_processes import EXPIRES, LEARNS, PREDICTS, EProcess, EProcessSteps
from abers.monitoring.tested_view import SettledForecasts, TestedView
from abers.monitoring.tests import EDetector, Martingale, hypothesis_of
from abers.monitoring.verdict import WORDS, Words
from abers.monitoring.verdict_sequence import VerdictSequence
from abers.serialization import require

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from abers.arrays import Floats, Integers
    from abers.monitoring.e_processes import OpenedIncident
    from abers.monitoring.tests import SequentialTest

__all__ = ["CalibrationEProcess"]

# Labels behind the bets of each test: all of them, and a window that those before a change leave.
_WINDOWS = (None, 1000)
_ALPHA = 0.05  # of all verdicts on a view
_COLUMNS = 4  # of an observation that waits, by view: forecast, a bet of each window, label
_SETTLED = 6  # of a settled one, by view: forecast, label, factors of four tests


class CalibrationEProcess(EProcess):
    """Test whether forecasts are calibrated, by betting against them with Venn-Abers prediction.

    Parameters
    ----------
    views
        Names of the forecasts that are tested, each by itself.
    tolerance
        Ratio of odds, of at least 1, by which forecasts may be off in the tests with a tolerance.
    alpha
        Of each test since the beginning, see `Martingale`.
    average_run_length, average_run_time, cooldown
        Of each test for a change, see `EDetector`.
    grace_period
        Number of labels that must have come before the first bet: earlier predictions are left out.
    outcome
        What labels count, as alarms and verdicts say it.
    of
        What the forecasts of each view are of, such as "of the top class"; for verdicts.
    classes
        Names of classes, each with verdicts on its own probabilities. Then a label also brings
        those of each class, view by view, and at last the number of its class.

    Raises
    ------
    ParameterError
        If an option is out of range.

    Notes
    -----
    The hypothesis of "since-start" and "change" is that P(Y = 1), given all that was known when
    the forecast p was issued and the labels of all observations before it, is p. The bet q is the
    merged Venn-Abers probability that an `abers.VennAbers` gives p, rounded to 1/4096: one of all
    labels for the test since the beginning, one of the last 1,000 for the detector; both are shrunk
    to p as if 100 more labels agreed with it. The factor is q/p for label 1, and (1 - q)/(1 - p)
    for label 0; its mean is 1 if the hypothesis is true. A label 1 that was forecast with 0, or 0
    with 1, makes it infinite.

    The hypothesis of "since-start-tolerance" and "change-tolerance" is that this probability lies
    between l and u, whose odds are those of p divided and multiplied by the tolerance. The bets
    are the same; the factor is q/p* for label 1, and (1 - q)/(1 - p*) for label 0, p* being the
    probability from l to u that is nearest to q. That is the reverse information projection of the
    bet on the hypothesis; the mean of the factor is at most 1 for each probability from l to u. It
    is 1 where the bet is among these, and with a tolerance of 1 it is that of the tests above.

    **Guarantee.** That of each test, see `Martingale` and `EDetector`; they hold however long
    labels take, also if that depends on the label, because a factor waits until all observations
    before it have their labels or expired. An observation that expires is left out; that is
    valid only if being without a label for so long does not depend on the label.

    Callers bound the number of waiting observations by letting them expire.

    References
    ----------
    Henzi, Puke, Dimitriadis & Ziegel (2023), A safe Hosmer-Lemeshow test; Vovk & Petej (2014),
    Venn-Abers predictors; Grünwald, de Heide & Koolen (2024), Safe testing.

    Examples
    --------
    >>> process = CalibrationEProcess()
    >>> for number in range(100):  # half of the labels are 1 where 0.1 was forecast
    ...     process.predict(number, 0.1)
    ...     opened = process.learn(number, number % 2)
    >>> for one in process.evidence():
    ...     print(one.name, round(one.log_wealth, 1), one.status)
    since-start 30.1 triggered
    change 7.2 active
    since-start-tolerance 21.7 triggered
    change-tolerance 11.6 active
    """

    _of_core: ClassVar[frozenset[str]] = frozenset({"_buffer", "_sets"})

    def __init__(  # noqa: PLR0913 - each is a choice
        self,
        views: Sequence[str] = ("calibrated",),
        *,
        tolerance: float = 1.25,
        alpha: float = 0.01,
        average_run_length: float = 1_000_000.0,
        average_run_time: int | None = None,
        cooldown: float = 10_000.0,
        grace_period: int = 0,
        outcome: str = "labels 1",
        of: str = "",
        classes: Sequence[str] = (),
    ) -> None:
        def tests() -> Iterator[SequentialTest]:
            for suffix, about in (
                ("", hypothesis_of(1.0)),
                ("-tolerance", hypothesis_of(tolerance)),
            ):
                yield Martingale(f"since-start{suffix}", alpha=alpha, hypothesis=about)
                yield EDetector(
                    f"change{suffix}",
                    average_run_length=average_run_length,
                    average_run_time=average_run_time,
                    cooldown=cooldown,
                    hypothesis=about,
                )

        def verdicts(view: str) -> Iterator[VerdictSequence]:
            subject, share = WORDS[view].subject, 2 if classes else 1
            words = Words(f"{subject} {of}".strip(), outcome)
            yield VerdictSequence(view, tolerance, _ALPHA / share, words=words)
            for name in classes:
                part = Words(subject, f"labels {name}", part=name, parts="classes")
                yield VerdictSequence(view, tolerance, _ALPHA / 2 / len(classes), words=part)

        self.tolerance, self._classes = tolerance, len(classes)
        width = len(views)
        tested = [TestedView(view, [*tests()], [outcome], [*verdicts(view)]) for view in views]
        self._beside = self._classes * width + 1 if classes else 0
        waits, settled = (one * width + self._beside for one in (_COLUMNS, _SETTLED))
        super().__init__(tested, waits, settled, grace_period)
        self._sets = [sets.empty(Forgetting(window)) for _ in views for window in _WINDOWS]

    def predict(self, number: int, *forecasts: float, time: int = 0) -> None:
        """Bet on an observation, whose number is above all before it; a forecast a view."""
        self.run(self._step(PREDICTS, number, time, *forecasts))

    def learn(self, number: int, *labels: float) -> list[OpenedIncident]:
        """Take the label in each view, and what it brings; return the incidents that it opens."""
        return self.run(self._step(LEARNS, number, 0, *labels))

    def expire(self, number: int) -> list[OpenedIncident]:
        """Let an observation expire; return the incidents that this opens."""
        return self.run(self._step(EXPIRES, number, 0))

    def _move(self, steps: EProcessSteps) -> int:
        values = np.ascontiguousarray(steps.values)
        count: int = self._buffer.bet(self._sets, self.tolerance, *steps[:3], values)
        if count < 0:
            row = count + len(values)
            shown = ", ".join(map(str, values[row, : len(self.views)].tolist()))
            if steps.kinds[row] == PREDICTS:
                msg = f"row {row}: forecast {shown} is not a probability; give one in [0, 1]"
                raise ScoreError(msg)
            msg = f"row {row}: label {shown} is unknown; labels are 0 and 1"
            raise LabelError(msg)
        return count

    def _settled(self, rows: Floats, times: Integers, skipped: Integers) -> list[SettledForecasts]:
        found, k = [], self._classes
        classes = rows[:, -1:] == np.arange(k)
        for number in range(len(self.views)):
            at, beside = _SETTLED * number, _SETTLED * len(self.views) + k * number
            factors = rows[:, at + 2 : at + _SETTLED].T.tolist()
            forecasts, labels = rows[:, at : at + 1], rows[:, at + 1 : at + 2]
            if k:
                forecasts = np.hstack((forecasts, rows[:, beside : beside + k]))
                labels = np.hstack((labels, classes))
            found.append(SettledForecasts(factors, forecasts, labels, times, skipped))
        return found

    def _dump(self) -> list[bytes]:
        return [sets.sealed(one) for one in self._sets]

    def _restore(self, strategies: Sequence[bytes]) -> None:
        try:
            restored = [sets.unsealed(one) for one in strategies]
        except struct.error as error:
            raise ValueError("bets") from error
        for one, window in zip(restored, _WINDOWS * len(self.views), strict=True):
            require(one.window == (window or 0) and not one.lifetime, "betting strategies")
        self._sets = restored

    def _sound(self, rows: Floats, labelled: NDArray[np.bool_]) -> bool:
        beside, rows = rows[:, : self._beside], rows[:, self._beside :]
        by_view = rows.reshape(len(rows), len(self.views), _COLUMNS)
        forecasts, bets, labels = by_view[..., 0], by_view[..., 1:-1], by_view[..., -1]
        known = labels[labelled]
        return bool(
            ((forecasts >= 0.0) & (forecasts <= 1.0)).all()
            and ((bets > 0.0) & (bets < 1.0)).all()
            and ((known == 0.0) | (known == 1.0)).all()
            and np.isnan(labels[~labelled]).all()
            and np.isnan(beside[~labelled]).all()
            and self._are_classes(beside[labelled])
        )

    def _are_classes(self, beside: Floats) -> bool:
        """Return whether rows are probabilities of classes, and the number of one."""
        if not self._beside:
            return True
        tables, numbers = beside[:, :-1], beside[:, -1]
        probable = (tables >= 0.0) & (tables <= 1.0)
        return bool(probable.all() and np.isin(numbers, np.arange(self._classes)).all())

    def _step(self, kind: int, number: int, time: int, *values: float) -> EProcessSteps:
        row = np.zeros((1, len(self.views) + self._beside))
        row[0, : len(values)] = values
        numbers, times = np.array([[number], [time]], np.int64)
        return EProcessSteps(np.array([kind], np.uint8), numbers, times, row)
