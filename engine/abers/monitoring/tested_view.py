"""Tests of the forecasts in one view: the raw scores, or the predictions that are served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.backends import core
from abers.monitoring.evidence import Incident
from abers.monitoring.shift import Shift
from abers.saveable import CopiedWhole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers._core import ViewTests
    from abers.arrays import Floats, Integers
    from abers.monitoring.evidence import Evidence
    from abers.monitoring.tests import SequentialTest
    from abers.monitoring.verdict_sequence import VerdictSequence

__all__ = ["ALARM_TEST", "OpenedTest", "SettledForecasts", "TestedView"]

ALARM_TEST = "change-tolerance"
"""Name of the test that raises alarms."""


class SettledForecasts(NamedTuple):
    """Labelled forecasts, a column each, in the order of the observations.

    Attributes
    ----------
    forecasts, labels
        Arrays of shape (k, n): probabilities of k outcomes, and whether each came, as 0 or 1; of
        one with a level how far it is counted at least, and at most, see `LevelSums`.
    times
        Event times.
    skipped
        Numbers of observations directly before each that got no label in time.
    """

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
    """Tests of one view, with what their alarms report, and the verdicts on its forecasts.

    Parameters
    ----------
    name
        Name of the view, "raw" or "calibrated".
    tests
        Its tests as they begin. The incidents of `ALARM_TEST`, the last, are alarms. The others are
        restarted when all incidents of the verdicts are over.
    outcomes
        What the labels of the first rows count, a text for each; see `Shift`.
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
        self.name, self._tests, self.verdicts = name, tuple(tests), tuple(verdicts)
        self._outcomes = tuple(outcomes)
        self.native = self._begin()

    def _begin(self) -> ViewTests:
        tests = [test.native for test in self._tests]
        made: ViewTests = core.ViewTests(tests, len(self._outcomes))
        return made

    def update(self, settled: SettledForecasts, factors: Floats) -> list[OpenedTest]:
        """Test settled forecasts, with a row of factors each; return what opened, by test."""
        if not self._tests:
            self.decide(settled, ())
            return []
        k, times = len(self._outcomes), settled.times
        last = np.ascontiguousarray(factors[:, -1])
        shares, labels = (np.ascontiguousarray(one[:k].T) for one in settled[:2])
        raised = self.native.alarms(last, shares, labels, times)
        over = self.decide(settled, [(row, shift[0]) for row, _, shift in raised])
        found = [
            self.opened(row, test, incident)
            for test, row, incident in self.native.others(factors, times, np.array(over, np.int64))
        ]
        return [*found, *(self.opened(row, -1, *sizes) for row, *sizes in raised)]

    def opened(self, row: int, test: int, incident: Any, shift: Any = None) -> OpenedTest:  # noqa: ANN401 - of the core
        """Return what opened, with the names of test and outcome."""
        sized = None
        if shift is not None and self._outcomes:
            since, labels, column, *sizes = shift
            sized = Shift(since, labels, self._outcomes[column], *sizes)
        return OpenedTest(row, self._tests[test].name, Incident(*incident), sized)

    def decide(self, settled: SettledForecasts, alarms: Sequence[tuple[int, int]]) -> list[int]:
        """Add settled forecasts to the verdicts, in parts that end at each alarm.

        Each alarm has its row, and the event time at which its fault began. Return the rows behind
        which no incident of any verdict is open any more.
        """
        ends = [row + 1 for row, _ in alarms]
        began = dict(zip(ends, (since for _, since in alarms), strict=True))
        open_, turns = sum(one.open for one in self.verdicts), []
        for verdicts, forecasts, labels in zip(self.verdicts, *settled[:2], strict=True):
            for begin, end in zip([0, *ends], [*ends, len(settled.times)], strict=True):
                part = slice(begin, end)
                times, skipped = settled.times[part], settled.skipped[part]
                change = -1 if verdicts.open else 1
                for row in verdicts.add(forecasts[part], labels[part], times, skipped):
                    turns.append((begin + row, change))
                    change = -change
                if begin < end and end in began:
                    turns += [(end - 1, 1)] * (not verdicts.open)
                    verdicts.restart(int(settled.times[end - 1]), began[end])
        over = []
        # An incident that opens at a row where another is over keeps that of the view open.
        for row, change in sorted(turns, key=lambda turn: (turn[0], -turn[1])):
            open_ += change
            if not open_:
                over.append(row)
        return over

    @property
    def alarm_evidence(self) -> float | None:
        """Natural logarithm of the evidence of the test that raises alarms; None without tests."""
        if not self._tests:
            return None
        return float(self.native.test(len(self._tests) - 1).log_wealth)

    def evidence(self, skipped: int) -> tuple[Evidence, ...]:
        """Return the evidence of each test."""
        now = (test.having(self.native.test(at)) for at, test in enumerate(self._tests))
        return tuple(test.evidence(skipped, self.name) for test in now)

    def state(self) -> tuple[Any, ...]:
        """Return the state: what `load` takes."""
        return (self.native.save(), [one.state() for one in self.verdicts])

    def load(self, state: Sequence[Any]) -> None:
        """Restore a state; a ValueError if it cannot be one."""
        tests, verdicts = state
        self.native.load(tests)
        for one, saved in zip(self.verdicts, verdicts, strict=True):
            one.load(saved)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle and copy all attributes; that of the core by its state."""
        return vars(self) | {"native": self.native.save()}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Restore all attributes."""
        tests = saved.pop("native")
        vars(self).update(saved)
        self.native = self._begin()
        self.native.load(tests)
