"""Verdicts on a stream, block after block, and the tests of the forecasts in one view.

Size of a change: labels observed and expected since the change probably began. A detector says that
something changed, but neither when nor by how much. The moment is estimated by Page's CUSUM. M is
the product of the factors of the detector. The change is estimated to begin after the last
observation at which M was at most 1; M begins again at 1 there, and after each alarm. The bets must
learn a change before they win, so the estimate is late rather than early.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from abers import validation
from abers.backends import core
from abers.exceptions import ParameterError
from abers.monitoring import formats
from abers.monitoring.forecast_groups import (
    STATUSES,
    ForecastGroups,
    LevelSums,
    checked_rows,
    label_needs,
    tolerances,
)
from abers.monitoring.tests import Incident
from abers.monitoring.verdict import WORDS, Verdict, verdict_of
from abers.serialization import CopiedWhole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers._core import GroupVerdicts, LevelVerdicts, ViewTests
    from abers.arrays import Floats, Integers
    from abers.monitoring.forecast_groups import LabelNeed
    from abers.monitoring.tests import Evidence, SequentialTest
    from abers.monitoring.verdict import Words

__all__ = ["ALARM_TEST", "OpenedTest", "SettledForecasts", "Shift", "TestedView", "VerdictSequence"]


class VerdictSequence(CopiedWhole):
    """Verdicts on the forecasts of one view: whether they can be trusted now, and how far.

    Parameters
    ----------
    view
        "raw" or "calibrated".
    tolerance
        Ratio of odds within which forecasts are right, at least 1; see `ForecastGroups`.
    alpha
        Bound on the probability that any verdict is ever wrong, between 0 and 1.
    words
        What sentences call the forecasts: those of two classes unless given.
    level
        The only forecast there is, if labels may be counted in part; see `LevelSums`.

    Attributes
    ----------
    core
        The verdicts in the core.

    Raises
    ------
    ParameterError
        If the tolerance is below 1, or alpha not between 0 and 1.

    Notes
    -----
    Only the sums of the present block are kept. A verdict that forecasts are outside the tolerance
    starts another block, and so does `restart`, when an alarm opens. If only one half or bin is
    known to be outside, the block goes on until it is eight times as long: "too high among higher
    scores" may become "over-confident". A verdict outside is shown until one of these comes: the
    main groups of a block (all forecasts, the lower and the upper half) are inside; a later block
    is outside again; the same group of the present block has four times as many labels, and their
    mean is within the tolerance. The last says that the miscalibration is not seen any more, not
    that it is over: an incident is open until the main groups are inside.

    Block k has the level alpha / (k (k + 1)): three quarters for the main groups, one for ten bins
    of the score. It is evaluated when it has grown by 1 %, or by 10 labels if that is more, so
    results depend on counts and never on batches.

    **Guarantee.** The probability that a verdict is ever wrong, in any block and however often you
    read it, is at most `alpha`. *Trustworthy* means: over the labels of the block, the mean true
    probability of each main group is between the means of what its forecasts may stand for by the
    tolerance. *Too high* and *too low* mean that in the named range it is not; *over-confident* and
    *under-confident*, that the halves differ in it. All are statements about averages, even if
    forecasts and probabilities drift, not about single forecasts: forecasts that are too high as
    often as too low are trustworthy on average. The tests of `CalibrationEProcess` are statements
    about every forecast.

    The true probability of a label is that given all forecasts up to its own and the labels of all
    observations before it. So late labels that share an unforeseen shock count as miscalibration.
    Observations without a label are in no group, which is valid only if the lack of a label does
    not depend on its value.

    References
    ----------
    Howard, Ramdas, McAuliffe & Sekhon (2021), Time-uniform, nonparametric, nonasymptotic
    confidence sequences.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> p = rng.beta(2, 5, 20_000)
    >>> sequence = VerdictSequence("raw", 1.25)
    >>> sequence.update(p[:300], rng.random(300) < p[:300], np.arange(300))
    >>> sequence.verdict().status
    'no miscalibration found'
    >>> sequence.update(p, rng.random(20_000) < p, np.arange(300, 20_300))
    >>> sequence.verdict().status
    'trustworthy'
    >>> sequence.restart(20_299)  # an alarm opened
    >>> odds = p / (1 - p) / 2
    >>> labels = rng.random(20_000) < odds / (1 + odds)
    >>> sequence.update(p, labels, np.arange(20_300, 40_300))
    >>> verdict = sequence.verdict()
    >>> verdict.status, sequence.open
    ('too high', True)
    """

    def __init__(
        self,
        view: str,
        tolerance: float,
        alpha: float = 0.05,
        *,
        words: Words | None = None,
        level: float | None = None,
    ) -> None:
        self.view, self.tolerance = view, validation.tolerance(tolerance)
        self.alpha = validation.fraction(alpha, "alpha")
        self.words, self.level = words or WORDS[view], level
        self.core = self._empty()

    def _empty(self) -> GroupVerdicts | LevelVerdicts:
        of, level = tolerances(self.tolerance), self.level
        empty: GroupVerdicts | LevelVerdicts = (
            core.GroupVerdicts(self.alpha, of)
            if level is None
            else core.LevelVerdicts(self.alpha, level, of)
        )
        return empty

    @property
    def groups(self) -> ForecastGroups | LevelSums:
        """Sums of the present block, as they are now."""
        sums: Any = self.core.sums
        if self.level is None:
            return ForecastGroups.of(sums, self.tolerance)
        return LevelSums(self.level, self.tolerance, sums)

    @property
    def labels(self) -> int:
        """Number of labels of the present block."""
        return int(self.core.labels)

    @property
    def skipped(self) -> int:
        """Number of observations of the present block without a label."""
        return int(self.core.skipped)

    @property
    def start(self) -> int:
        """Event time of the first label of the present block."""
        return int(self.core.start)

    @property
    def until(self) -> int:
        """The latest event time of any label; a verdict never ends before it began."""
        return int(self.core.until)

    @property
    def blocks(self) -> int:
        """Number of blocks, with the present one."""
        return int(self.core.blocks)

    @property
    def partitions(self) -> int:
        """Number of partitions that were combined."""
        return int(self.core.partitions)

    @property
    def open(self) -> bool:
        """Whether an incident is open."""
        return bool(self.core.open)

    @property
    def began(self) -> int | None:
        """Event time at which the fault of the open incident began, or None.

        The last alarm says when; without an alarm it is the first label of the block that is
        outside.
        """
        return int(self.core.began) if self.open else None

    @property
    def held(self) -> Verdict | None:
        """The verdict outside that is shown, unless the present block says more."""
        held = self.core.held
        return None if held is None else verdict_of(held, self.view, self.words)

    @property
    def next(self) -> int:
        """Number of labels at which the present block is evaluated next."""
        return int(self.core.next)

    def update(
        self,
        forecasts: Floats,
        labels: Floats,
        times: Integers,
        skipped: Integers | None = None,
    ) -> None:
        """Take labelled forecasts, in the order of the observations.

        Parameters
        ----------
        forecasts, labels
            Arrays of shape (n,), as for `corp`.
        times
            Array of shape (n,): event times, in milliseconds where they are dates.
        skipped
            Array of shape (n,): numbers of observations directly before each that got no label in
            time; None if all are 0.

        Raises
        ------
        ScoreError, LabelError, ParameterError
            As `corp`; nothing is taken then.
        """
        issued, truth = checked_rows(forecasts, labels)
        if len(times) != len(issued) or (skipped is not None and len(skipped) != len(issued)):
            msg = f"{len(issued)} forecasts need as many event times and counts"
            raise ParameterError(msg)
        self.add(issued, truth, times, skipped)

    def add(
        self,
        forecasts: Floats,
        labels: Floats,
        times: Integers,
        skipped: Integers | None = None,
    ) -> list[int]:
        """Take columns that were checked; see `update`.

        Of a level they are how far each label is counted at least, and at most. Return the rows at
        which an incident opened or was over, in turn.
        """
        when = np.ascontiguousarray(times, np.int64)
        turns: list[int] = self.core.add(forecasts, labels, when, skipped)
        return turns

    def restart(self, time: int, began: int | None = None) -> None:
        """Start another block, behind the observation of this event time: an alarm opened.

        Its fault began at an event time; at the same unless that is given.
        """
        self.core.restart(time, time if began is None else began)

    def verdict(self) -> Verdict:
        """Return the verdict that is shown now."""
        return verdict_of(self.core.verdict(), self.view, self.words)

    def label_needs(self) -> list[LabelNeed]:
        """Return about how many labels of the present block allow which statement: a guide."""
        return label_needs(self.groups, self.core.level)

    def brief(self) -> tuple[str, float]:
        """Return the status of the verdict, and the ratio of observed to expected outcomes.

        That takes a tenth of the time of `verdict`, which also computes ranges.
        """
        status, ratio = self.core.brief()
        # The same NaN each time, so that two summaries are equal.
        return STATUSES[status], math.nan if math.isnan(ratio) else ratio

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Combine the verdicts of different partitions of one model.

        Their present blocks are added up. The level is shared among all combinations of blocks
        that the partitions can be in, so the guarantee holds for the total if labels of different
        partitions do not depend on each other, given what was known when they were predicted. A
        verdict outside that is shown in a partition is shown, the last of them; its guarantee is
        that of one partition.
        """
        first = many[0]
        options: dict[str, Any] = {"words": first.words, "level": first.level}
        combined = cls(first.view, first.tolerance, first.alpha, **options)
        cores: list[Any] = [one.core for one in many]
        combined.core = cores[0].total(cores[1:])
        return combined

    def state(self) -> bytes:
        """Return the state in canonical form: what `load` takes."""
        return self.core.save()

    def load(self, state: bytes | memoryview) -> None:
        """Restore a state; a ValueError if it cannot be one.

        A block that was counted with another tolerance ends, and another begins.
        """
        self.core.load(bytes(state))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle and copy the options and the state."""
        return {**vars(self), "core": self.state()}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Restore options and state."""
        vars(self).update(saved)
        self.core = self._empty()
        self.load(saved["core"])


_CLEAR = 2.0  # standard deviations from which a difference has a direction


class Shift(NamedTuple):
    """Labels observed and expected from the estimated beginning of a change to its alarm.

    Attributes
    ----------
    since
        Event time of the first observation.
    labels
        Number of labels.
    outcome
        What is counted, such as "labels 1"; of several outcomes that of the largest difference in
        standard deviations.
    observed, expected
        How many were observed, and the sum of their forecasts.
    deviation
        Standard deviation of the number observed if all forecasts were right.
    """

    since: int
    labels: int
    outcome: str
    observed: float
    expected: float
    deviation: float

    def sentence(self, came: str, zone: str = "UTC") -> str:
        """Return what was promised and came since then.

        Examples
        --------
        >>> shift = Shift(1_364_790_000_000, 99, "labels 1", 19.0, 37.5, 4.8)
        >>> shift.sentence("came").replace(formats.NO_BREAK, " ")
        'Since 1 Apr 2013, 04:20: 99 labels, 37.5 promised, 19 came.'
        """
        labels = "label" if self.labels == 1 else "labels"
        return (
            f"Since {formats.moment(self.since, zone)}: {formats.count(self.labels)} {labels}, "
            f"{formats.number(self.expected, 1)} promised, {formats.count(self.observed)} {came}."
        )

    @property
    def direction(self) -> int:
        """1 if forecasts are too high, -1 if too low, 0 if they are about right on average.

        Examples
        --------
        >>> [Shift(0, 100, "labels 1", n, 50.0, 5.0).direction for n in (30.0, 55.0, 70.0)]
        [1, 0, -1]
        """
        gap = self.expected - self.observed
        if abs(gap) < _CLEAR * self.deviation:
            return 0
        return 1 if gap > 0.0 else -1


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
