"""Tests of the forecasts in one view: the raw scores, or the predictions that are served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from abers.monitoring.shift import ShiftEstimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats, Integers
    from abers.monitoring.evidence import Evidence, Incident
    from abers.monitoring.shift import Shift
    from abers.monitoring.tests import SequentialTest

__all__ = ["ALARM_TEST", "OpenedTest", "RowObserver", "SettledForecasts", "TestedView"]

ALARM_TEST = "change-tolerance"
"""Name of the test whose incidents are alarms."""


class RowObserver(Protocol):
    """What reads settled forecasts of one view, in the order of the observations."""

    def update(self, forecasts: Floats, labels: Floats, times: Integers) -> None:
        """Take rows: forecasts, labels 0 and 1, event times."""
        ...

    def restart(self, time: int) -> None:
        """Begin again behind the rows so far, for an alarm opened at this event time."""
        ...


class SettledForecasts(NamedTuple):
    """Forecasts whose labels came, a row each, in the order of the observations.

    Attributes
    ----------
    factors
        Factors for each test, in the order of the tests.
    forecasts, labels
        Arrays of shape (n, k): probabilities of k outcomes, and whether each came, as 0 or 1.
    times
        Event times.
    """

    factors: Sequence[Sequence[float]]
    forecasts: Floats
    labels: Floats
    times: Integers


class OpenedTest(NamedTuple):
    """An incident that opened at a row, with the shift if it is an alarm."""

    row: int
    test: str
    incident: Incident
    shift: Shift | None


class TestedView:
    """Tests of one view, the shift that its alarms report, and what else reads its forecasts.

    Parameters
    ----------
    name
        Name of the view, "raw" or "calibrated".
    tests
        Its tests. The incidents of `ALARM_TEST`, the last, are alarms.
    outcomes
        What its labels count, a text for each column; see `Shift`.

    Attributes
    ----------
    observers
        By column, what reads its forecasts and labels: settled rows in the order of the
        observations, split behind each row at which an alarm opened. Their state is their own.
    """

    __test__ = False  # pytest takes it for a test

    def __init__(self, name: str, tests: Sequence[SequentialTest], outcomes: Sequence[str]) -> None:
        self.name, self._tests = name, (*tests,)
        self._shift = ShiftEstimate(outcomes) if outcomes else None
        self.observers: list[RowObserver | None] = [None for _ in outcomes]

    def update(self, settled: SettledForecasts) -> list[OpenedTest]:
        """Test settled forecasts; return the incidents that opened, by test."""
        times = settled.times.tolist()
        found = [
            (row, test.name, incident)
            for test, factors in zip(self._tests, settled.factors, strict=True)
            for row, incident in test.update(factors, times)
        ]
        alarms = [row for row, name, _ in found if name == ALARM_TEST]
        shifts: dict[int, Shift] = {}
        if self._shift is not None:
            rows = (settled.factors[-1], *settled[1:3], times, alarms)
            shifts = dict(zip(alarms, self._shift.update(*rows), strict=True))
        self._observe(settled, alarms)
        return [
            OpenedTest(row, name, one, shifts.get(row) if name == ALARM_TEST else None)
            for row, name, one in found
        ]

    def _observe(self, settled: SettledForecasts, alarms: Sequence[int]) -> None:
        """Pass on settled forecasts, in parts that end at each alarm."""
        ends = [row + 1 for row in alarms]
        for column, observer in enumerate(self.observers):
            if observer is None:
                continue
            for begin, end in zip([0, *ends], [*ends, len(settled.times)], strict=True):
                part = slice(begin, end)
                forecasts, labels = (
                    np.ascontiguousarray(one[part, column]) for one in settled[1:3]
                )
                if begin < end:
                    observer.update(forecasts, labels, settled.times[part])
                if end in ends and begin < end:
                    observer.restart(int(settled.times[end - 1]))

    def evidence(self, skipped: int) -> tuple[Evidence, ...]:
        """Return the evidence of each test."""
        return tuple(test.evidence(skipped, self.name) for test in self._tests)

    def state(self) -> tuple[Any, ...]:
        """Return the state: what `load` takes."""
        shift = None if self._shift is None else self._shift.state()
        return ([test.state() for test in self._tests], shift)

    def load(self, state: Sequence[Any]) -> None:
        """Restore a state; a ValueError if it cannot be one."""
        tests, shift = state
        for test, one in zip(self._tests, tests, strict=True):
            test.load(one)
        if self._shift is not None:
            self._shift.load(shift)
