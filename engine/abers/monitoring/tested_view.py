"""Tests of the forecasts in one view: the raw scores, or the predictions that are served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.monitoring.shift import ShiftEstimate
from abers.saveable import CopiedWhole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats, Integers
    from abers.monitoring.evidence import Evidence, Incident
    from abers.monitoring.shift import Shift
    from abers.monitoring.tests import SequentialTest
    from abers.monitoring.verdict_sequence import VerdictSequence

__all__ = ["ALARM_TEST", "OpenedTest", "SettledForecasts", "TestedView"]

ALARM_TEST = "change-tolerance"
"""Name of the test whose incidents are alarms."""


class SettledForecasts(NamedTuple):
    """Forecasts whose labels came, a row each, in the order of the observations.

    Attributes
    ----------
    factors
        Factors for each test, in the order of the tests.
    forecasts, labels
        Arrays of shape (n, k): probabilities of k outcomes, and whether each came, as 0 or 1; of
        one with a level how far it is counted at least, and at most, see `LevelSums`.
    times
        Event times.
    skipped
        Numbers of observations directly before each that got no label in time.
    """

    factors: Sequence[Sequence[float]]
    forecasts: Floats
    labels: Floats
    times: Integers
    skipped: Integers


class OpenedTest(NamedTuple):
    """An incident that opened at a row, with the shift if it is an alarm."""

    row: int
    test: str
    incident: Incident
    shift: Shift | None


class TestedView(CopiedWhole):
    """Tests of one view, the shift that its alarms report, and the verdicts on its forecasts.

    Parameters
    ----------
    name
        Name of the view, "raw" or "calibrated".
    tests
        Its tests. The incidents of `ALARM_TEST`, the last, are alarms. The others are armed again
        when all incidents of the verdicts are over.
    outcomes
        What the labels of the first columns count, a text for each; see `Shift`.
    verdicts
        Verdicts on each column; another block begins behind each row at which an alarm opens.
    """

    __test__ = False  # pytest takes it for a test

    def __init__(
        self,
        name: str,
        tests: Sequence[SequentialTest],
        outcomes: Sequence[str],
        verdicts: Sequence[VerdictSequence],
    ) -> None:
        self.name, self._tests, self.verdicts = name, (*tests,), (*verdicts,)
        self._shift = ShiftEstimate(outcomes) if outcomes else None

    def update(self, settled: SettledForecasts) -> list[OpenedTest]:
        """Test settled forecasts; return the incidents that opened, by test."""
        times = settled.times.tolist()
        tests = [*zip(self._tests, settled.factors, strict=True)]
        raised = [one for test, factors in tests[-1:] for one in test.update(factors, times)]
        alarms = [row for row, _ in raised]
        over = self._decide(settled, alarms)
        found = [
            (row, test.name, incident)
            for test, factors in tests[:-1]
            for row, incident in _run(test, factors, times, over)
        ]
        found += [(row, ALARM_TEST, incident) for row, incident in raised]
        shifts: dict[int, Shift] = {}
        if self._shift is not None:
            k = self._shift.width
            probabilities, labels = settled.forecasts[:, :k], settled.labels[:, :k]
            rows = (settled.factors[-1], probabilities, labels, times, alarms)
            shifts = dict(zip(alarms, self._shift.update(*rows), strict=True))
        return [
            OpenedTest(row, name, one, shifts.get(row) if name == ALARM_TEST else None)
            for row, name, one in found
        ]

    def _decide(self, settled: SettledForecasts, alarms: Sequence[int]) -> list[int]:
        """Add settled forecasts to the verdicts, in parts that end at each alarm.

        Return the rows at which no incident of any verdict was open any more.
        """
        ends = [row + 1 for row in alarms]
        open_, turns = sum(one.open for one in self.verdicts), []
        columns = (np.ascontiguousarray(one.T) for one in settled[1:3])
        for verdicts, forecasts, labels in zip(self.verdicts, *columns, strict=True):
            for begin, end in zip([0, *ends], [*ends, len(settled.times)], strict=True):
                part = slice(begin, end)
                times, skipped = settled.times[part], settled.skipped[part]
                change = -1 if verdicts.open else 1
                for row in verdicts.add(forecasts[part], labels[part], times, skipped):
                    turns.append((begin + row, change))
                    change = -change
                if begin < end and end in ends:
                    turns += [(end - 1, 1)] * (not verdicts.open)
                    verdicts.restart(int(settled.times[end - 1]))
        over = []
        # An incident that opens at a row where another is over keeps that of the view open.
        for row, change in sorted(turns, key=lambda turn: (turn[0], -turn[1])):
            open_ += change
            if not open_:
                over.append(row)
        return over

    def evidence(self, skipped: int) -> tuple[Evidence, ...]:
        """Return the evidence of each test."""
        return tuple(test.evidence(skipped, self.name) for test in self._tests)

    def state(self) -> tuple[Any, ...]:
        """Return the state: what `load` takes."""
        shift = None if self._shift is None else self._shift.state()
        verdicts = [one.state() for one in self.verdicts]
        return ([test.state() for test in self._tests], shift, verdicts)

    def load(self, state: Sequence[Any]) -> None:
        """Restore a state; a ValueError if it cannot be one."""
        tests, shift, verdicts = state
        for test, one in zip(self._tests, tests, strict=True):
            test.load(one)
        if self._shift is not None:
            self._shift.load(shift)
        for one, saved in zip(self.verdicts, verdicts, strict=True):
            one.load(saved)


def _run(
    test: SequentialTest, factors: Sequence[float], times: Sequence[int], over: Sequence[int]
) -> list[tuple[int, Incident]]:
    """Run a test, and arm it again behind each row at which the incident of its view is over."""
    found, begin = [], 0
    for end in [*(row + 1 for row in over), len(factors)]:
        opened = test.update(factors[begin:end], times[begin:end])
        found += [(begin + row, incident) for row, incident in opened]
        if end - 1 in over:
            test.arm()
        begin = end
    return found
