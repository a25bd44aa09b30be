"""E-processes against predictions, with labels that come late, in any order.

An observation waits until it and all before it have a label or expired. Then the tests take its
factor, or it is counted as skipped. So tests see observations in their order, whenever labels come.
The bet on an observation is made when it is predicted, from the labels that had come by then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from abers import validation
from abers.arrays import raw
from abers.backends import core
from abers.exceptions import LabelError, ScoreError
from abers.monitoring.answers import Sums
from abers.monitoring.tested_view import TestedView, VerdictSequence
from abers.monitoring.tests import EDetector, Martingale, checked_options, hypothesis_of
from abers.monitoring.verdict import WORDS, LossDifference, Words
from abers.serialization import CopiedWhole, column, count, require

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from abers.arrays import Bytes, Floats, Integers
    from abers.monitoring.tested_view import Shift
    from abers.monitoring.tests import Evidence, Incident, SequentialTest

__all__ = [
    "EXPIRES",
    "LEARNS",
    "PREDICTS",
    "CalibrationEProcess",
    "EProcess",
    "EProcessSteps",
    "OpenedIncident",
]

PREDICTS, LEARNS, EXPIRES = 0, 1, 2  # kinds of steps


class EProcessSteps(NamedTuple):
    """Steps of observations, a row each, in order.

    Attributes
    ----------
    kinds
        0: the observation is predicted. 1: its label comes. 2: it expires without a label.
    numbers
        Numbers of the observations, ascending among those that are predicted.
    times
        Event times of the observations.
    values
        Shape (n, width): forecasts where an observation is predicted, outcomes where a label comes.
    """

    kinds: Bytes
    numbers: Integers
    times: Integers
    values: Floats

    def part(self, rows: Any) -> EProcessSteps:  # noqa: ANN401 - a slice, or an array
        """Return some of the steps."""
        return EProcessSteps(*(column[rows] for column in self))


class OpenedIncident(NamedTuple):
    """An incident that opened.

    Attributes
    ----------
    step
        Index of the last step that it needed.
    view, test
        Name of the view, and of the test.
    incident
        The incident as it opened.
    shift
        Labels observed and expected, of an alarm.
    """

    step: int
    view: str
    test: str
    incident: Incident
    shift: Shift | None


class EProcess(CopiedWhole, ABC):
    """Tests of the predictions of one calibrator, by betting on observations.

    Parameters
    ----------
    views
        What is tested, and the tests.
    width
        Number of floats of an observation that waits. The last is its label: NaN until that comes.
    grace_period
        Number of labels that must have come before the first bet: earlier predictions are left out.
    """

    subjects: ClassVar[Mapping[str, str]] = {"raw": "raw is", "calibrated": "calibrated is"}
    """How a sentence about a view begins."""
    came: str = "came"
    """What a label did that a promise counts."""
    faults: ClassVar[Mapping[int, str]] = {
        1: "too high",
        -1: "too low",
        0: "miscalibrated, though about right on average",
    }
    """How forecasts are wrong, by the direction of a shift."""
    _of_core: ClassVar[frozenset[str]] = frozenset({"_buffer"})
    """Attributes that the core keeps, which only `_core_state` can save."""

    def __init__(self, views: Sequence[TestedView], width: int, grace_period: int) -> None:
        self.views, self._width = (*views,), width
        both = [view.name for view in views] == ["raw", "calibrated"]
        self.losses = LossDifference() if both else None
        self.grace_period = validation.count(grace_period, "grace_period", 0)
        self._begin()

    def _begin(self) -> None:
        """Set the attributes that the core keeps, as they are before the first observation."""
        self._buffer = core.ReorderBuffer(self._width, self.grace_period)

    @property
    def skipped(self) -> int:
        """Number of observations that expired."""
        return int(self._buffer.skipped)

    @property
    def verdicts(self) -> list[VerdictSequence]:
        """Verdicts on the forecasts of each view."""
        return [one for view in self.views for one in view.verdicts]

    @property
    def waiting(self) -> Integers:
        """Numbers of the observations that wait for their label or an earlier label, ascending."""
        return self._columns()[0]

    @property
    def labels_waiting(self) -> int:
        """Number of labels that came, and wait for those of earlier observations."""
        return int((self._columns()[2] == 0).sum())

    @abstractmethod
    def run(self, steps: EProcessSteps, most: int | None = None) -> list[OpenedIncident]:
        """Run any sequence of steps.

        Parameters
        ----------
        steps
            Steps in order. A label or an end of an observation that does not wait is ignored.
        most
            An observation expires when one with a number higher by so much is predicted; None keeps
            all.

        Returns
        -------
        list of OpenedIncident
            Incidents that opened, by test.

        Raises
        ------
        InputError
            If a row cannot be used; nothing is done then.
        """

    @staticmethod
    def run_many(
        processes: Sequence[Any], ends: Integers, steps: EProcessSteps, most: int | None = None
    ) -> list[tuple[int, OpenedIncident]]:
        """Run the steps of several e-processes of one kind and the same options.

        Parameters
        ----------
        processes
            The e-processes.
        ends
            Where the steps of each end.
        steps, most
            As of `run`, those of one e-process behind those of the other.

        Returns
        -------
        list
            Incidents that opened, each behind the number of its e-process.

        Raises
        ------
        InputError
            If a row cannot be used.
        """
        found, begin = list[tuple[int, OpenedIncident]](), 0
        for number, (process, end) in enumerate(zip(processes, ends.tolist(), strict=True)):
            for one in process.run(steps.part(slice(begin, end)), most):
                found.append((number, one._replace(step=begin + one.step)))
            begin = end
        return found

    @abstractmethod
    def answer_sums(self, *, over_time: bool = True) -> Sums:
        """Return the sums behind the answers about the predictions, with points over time or not.

        They are a copy, which later predictions do not change.
        """

    @property
    def _warm_up(self) -> int:
        """Number of predictions of the warm-up that are known."""
        return 0

    def _incidents(self, at: int = 0) -> dict[str, int]:
        """Return at what event time the fault of each view with an open incident began.

        Open is that of some verdicts of the view.
        """
        return {
            view.name: one.began
            for view in self.views
            for one in view.verdicts[at : at + 1]
            if one.began is not None
        }

    @abstractmethod
    def _dump(self) -> list[bytes]:
        """Return the state of the betting strategies."""

    @abstractmethod
    def _restore(self, strategies: Sequence[bytes]) -> None:
        """Restore the betting strategies from what `_dump` returned."""

    def evidence(self) -> tuple[Evidence, ...]:
        """Return the evidence of each test, by view."""
        return tuple(one for view in self.views for one in view.evidence(self.skipped))

    def state(self) -> tuple[Any, ...] | None:
        """Return the state: what `load` takes; None before the first observation."""
        buffer = self._buffer
        if not (buffer.came or buffer.skipped or buffer.size() or self._warm_up):
            return None
        views = [view.state() for view in self.views]
        losses = None if self.losses is None else self.losses.state()
        return (*self._core_state(), views, losses)

    def load(self, state: Sequence[Any] | None) -> None:
        """Restore a state, before the first observation.

        Raises
        ------
        ValueError
            If it cannot be one; the e-process is unusable then.
        """
        if state is None:
            return
        *core_state, views, losses = state
        self._load_core(*core_state)
        require((losses is None) == (self.losses is None), "losses")
        if self.losses is not None:
            self.losses.load(losses)
        for view, one in zip(self.views, views, strict=True):
            view.load(one)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle and copy all attributes; the core's own by their state."""
        kept = {name: one for name, one in vars(self).items() if name not in self._of_core}
        strategies, waiting, counts = self._core_state()
        return {**kept, "core": (strategies, [*map(bytes, waiting)], counts)}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Restore all attributes."""
        core_state = saved.pop("core")
        vars(self).update(saved)
        self._begin()
        self._load_core(*core_state)

    def _core_state(self) -> tuple[list[bytes], list[memoryview], tuple[int, int, int]]:
        """Return the betting strategies, the columns of what waits, and counts."""
        buffer = self._buffer
        waiting = [raw(column) for column in self._columns()]
        return self._dump(), waiting, (buffer.came, buffer.skipped, buffer.gap)

    def _load_core(
        self, strategies: Sequence[bytes], waiting: Sequence[Any], counts: Sequence[Any]
    ) -> None:
        """Restore what `_core_state` returned; a ValueError if it cannot be one."""
        came, skipped, gap = counts
        self._restore(strategies)
        self._load_buffer(*waiting)
        self._buffer.came = count(came, "labels that came")
        self._buffer.skipped = count(skipped, "observations without a label")
        self._buffer.gap = count(gap, "observations without a label", skipped)

    def _load_buffer(self, *saved: Any) -> None:  # noqa: ANN401 - columns, as they were saved
        """Restore the buffer: its first row waits for a label, and no row with a label waits."""
        numbers = column(saved[0], "<i8", "numbers of observations")
        n = len(numbers)
        times, waits = column(saved[1], "<i8", "times", n), column(saved[2], "u1", "waits", n)
        rows = column(saved[3], "<f8", "what waits", n * self._width).reshape(n, self._width)
        if not n:
            return
        require((numbers[:-1] < numbers[1:]).all() and (numbers[:1] >= 0).all(), "numbers")
        require((waits <= 1).all() and waits[:1].all(), "waits")
        require((np.isnan(rows[:, -1]) | (waits == 0)).all(), "labels of what waits")
        require(self._sound(rows, ~np.isnan(rows[:, -1])), "what waits")
        self._buffer.load(numbers, times, waits, rows)

    @abstractmethod
    def _sound(self, rows: Floats, labelled: NDArray[np.bool_]) -> bool:
        """Return whether all rows are valid; some have their label."""

    def _columns(self) -> tuple[Integers, Integers, Bytes, Floats]:
        n = self._buffer.size()
        numbers, times = np.empty(n, np.int64), np.empty(n, np.int64)
        waits, rows = np.empty(n, np.uint8), np.empty((n, self._width))
        self._buffer.columns(numbers, times, waits, rows)
        return numbers, times, waits, rows


_ALPHA = 0.05  # of all verdicts on a view
_LOSSES = 4  # of several classes, that a label brings
_COLUMNS = 4  # of an observation that waits, by view: forecast, a bet of each memory, label


@cache
def _tests(
    tolerance: float,
    alpha: float,
    average_run_length: float,
    average_run_time: int | None,
    cooldown: float,
) -> tuple[SequentialTest, ...]:
    """Return the tests of a view as they begin, which all e-processes of these options share."""
    made: list[SequentialTest] = []
    for suffix, about in (("", hypothesis_of(1.0)), ("-tolerance", hypothesis_of(tolerance))):
        made.append(Martingale(f"since-start{suffix}", alpha=alpha, hypothesis=about))
        change = EDetector(
            f"change{suffix}",
            average_run_length=average_run_length,
            average_run_time=average_run_time,
            cooldown=cooldown,
            hypothesis=about,
        )
        made.append(change)
    return (*made,)


@cache
def _words(subject: str, outcome: str) -> Words:
    """Return words, which all e-processes of these options share."""
    return Words(subject, outcome)


class CalibrationEProcess(EProcess):
    """Test whether forecasts are calibrated, by betting against them with sums on a grid.

    Parameters
    ----------
    views
        Names of the forecasts that are tested, each by itself.
    tolerance
        Ratio of odds, of at least 1, by which forecasts may be off in the tests with a tolerance.
    alpha
        Probability of a false alarm of each test since the start, at most; see `Martingale`.
    average_run_length, average_run_time, cooldown
        Options of each test for a change; see `EDetector`.
    grace_period
        Number of labels that must have come before the first bet: earlier predictions are left out.
    outcome
        What labels count, in the words of alarms and verdicts.
    of
        What the forecasts of each view are about, such as "of the top class"; for verdicts.
    classes
        Names of classes, each with verdicts on its own probabilities.
    multiclass
        Whether there are more than two classes. Then a label brings more behind its values: the
        probabilities of the class that came, raw and calibrated; the least and the largest ratio of
        calibrated to raw probability of any class; and with `classes` the probabilities of each,
        view by view, and at last the number of the class that came.

    Raises
    ------
    ParameterError
        If an option is out of range.

    Notes
    -----
    The hypothesis of "since-start" and "change" is that P(Y = 1), given all that was known when
    the forecast p was issued and the labels of all observations before it, is p. The bet q is the
    mean of five probabilities, each with a weight that grows as it predicts labels better: p
    itself; how often labels came among all forecasts, among those in the same of 16 cells of log
    odds, and of 32, each drawn to the wider cell as if 10 more labels agreed with that; and a line
    that is fitted to log odds. One of these bets remembers all labels, for the test since the
    beginning; one forgets a five hundredth with each label, for the detector. The factor is q/p for
    label 1, and (1 - q)/(1 - p) for label 0; its mean is 1 if the hypothesis is true. A label 1
    that was forecast with 0, or 0 with 1, makes it infinite.

    The hypothesis of "since-start-tolerance" and "change-tolerance" is that this probability lies
    between l and u: their odds are those of p divided and multiplied by the tolerance. The bets
    are the same; the factor is q/p* for label 1, and (1 - q)/(1 - p*) for label 0, p* being the
    probability from l to u that is nearest to q. That is the reverse information projection of the
    bet on the hypothesis; the mean of the factor is at most 1 for each probability from l to u. It
    is 1 where the bet is among these, and with a tolerance of 1 it is that of the tests above.

    **Guarantee.** That of each test, see `Martingale` and `EDetector`. They hold however long
    labels take, even if that depends on the label, because a factor waits until all observations
    before it have their labels or have expired. An observation that expires is left out, which
    is valid only if the lack of a label does not depend on its value.

    Callers bound the number of waiting observations by letting them expire.

    References
    ----------
    Henzi, Puke, Dimitriadis & Ziegel (2023), A safe Hosmer-Lemeshow test; Herbster & Warmuth
    (1998), Tracking the best expert; Grünwald, de Heide & Koolen (2024), Safe testing.

    Examples
    --------
    >>> process = CalibrationEProcess()
    >>> for number in range(100):  # half of the labels are 1 where 0.1 was forecast
    ...     process.predict(number, 0.1)
    ...     opened = process.learn(number, number % 2)
    >>> for one in process.evidence():
    ...     print(one.name, round(one.log_wealth, 1), one.status)
    since-start 43.4 triggered
    change 7.5 active
    since-start-tolerance 35.0 triggered
    change-tolerance 11.5 active
    """

    _of_core: ClassVar[frozenset[str]] = frozenset({"_buffer", "native"})

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
        multiclass: bool = False,
    ) -> None:
        def verdicts(view: str) -> Iterator[VerdictSequence]:
            subject, share = WORDS[view].subject, 2 if classes else 1
            words = _words(f"{subject} {of}".strip(), outcome)
            yield VerdictSequence(view, tolerance, _ALPHA / share, words=words)
            for name in classes:
                part = Words(subject, f"labels {name}", part=name, parts="classes")
                yield VerdictSequence(view, tolerance, _ALPHA / 2 / len(classes), words=part)

        tolerance, alpha = validation.tolerance(tolerance), validation.fraction(alpha, "alpha")
        self.tolerance, self._classes = tolerance, len(classes)
        self._names, self._several = (*classes,), multiclass
        self.came = "right" if multiclass else "came"
        run = checked_options(average_run_length, average_run_time, cooldown)
        tests = _tests(tolerance, alpha, *run)
        tested = [TestedView(view, tests, [outcome], [*verdicts(view)]) for view in views]
        by_class = self._classes * len(views) + 1 if classes else 0
        self._beside = _LOSSES + by_class if multiclass else 0
        super().__init__(tested, _COLUMNS * len(views) + self._beside, grace_period)

    def _begin(self) -> None:
        views = self.views
        tests = [view.native for view in views]
        verdicts = [one.core for one in self.verdicts]
        losses = None if self.losses is None else self.losses.core
        options = (self._several, self.tolerance, self.grace_period)
        self.native = core.BinaryTests(tests, verdicts, losses, *options)
        self._buffer = self.native.queue
        for number, view in enumerate(views):
            view.native = self.native.tests(number)
            for at, one in enumerate(view.verdicts):
                one.core = self.native.verdicts(number, at)
        if self.losses is not None:
            self.losses.core = self.native.losses

    def predict(self, number: int, *forecasts: float, time: int = 0) -> None:
        """Bet on an observation, with a number above all before it; a forecast a view."""
        self.run(self._step(PREDICTS, number, time, *forecasts))

    def learn(self, number: int, *labels: float) -> list[OpenedIncident]:
        """Take the label in each view, and what it brings; return the incidents that it opens."""
        return self.run(self._step(LEARNS, number, 0, *labels))

    def expire(self, number: int) -> list[OpenedIncident]:
        """Let an observation expire; return the incidents that this opens."""
        return self.run(self._step(EXPIRES, number, 0))

    def run(self, steps: EProcessSteps, most: int | None = None) -> list[OpenedIncident]:
        """Run any sequence of steps; see `EProcess.run`."""
        ends = np.array([len(steps.kinds)], np.int64)
        return [one for _, one in self.run_many([self], ends, steps, most)]

    @staticmethod
    def run_many(
        processes: Sequence[CalibrationEProcess],
        ends: Integers,
        steps: EProcessSteps,
        most: int | None = None,
    ) -> list[tuple[int, OpenedIncident]]:
        """Run the steps of all in two native calls; nothing is done if a row cannot be used.

        The incidents of each e-process stand by view and test; see `EProcess.run_many`.
        """
        values = np.ascontiguousarray(steps.values)
        _require_usable(steps.kinds, values, len(processes[0].views))
        records = [one.native for one in processes]
        opened = []
        for number, view, test, step, incident, shift in core.run_binary_tests(
            records, ends, *steps[:3], values, most
        ):
            tested = processes[number].views[view]
            named = tested.opened(step, test, incident, shift)
            opened.append((number, OpenedIncident(step, tested.name, *named[1:])))
        return opened

    def answer_sums(self, *, over_time: bool = True) -> Sums:
        """Return the sums behind the answers about the forecasts; see `EProcess.answer_sums`."""
        sums = self.native.answers
        return Sums(
            sums.now(),
            sums.whole(),
            sums.trail() if over_time else (),
            sums.skipped,
            self._buffer.came,
            self.grace_period,
            [view.name for view in self.views],
            self._incidents(),
            self._names,
            self.tolerance,
            several=self._several,
        )

    @property
    def _warm_up(self) -> int:
        return int(self.native.answers.skipped)

    def _dump(self) -> list[bytes]:
        bets = [self.native.save_bets(view) for view in range(len(self.views))]
        return [*bets, self.native.answers.save()]

    def _restore(self, strategies: Sequence[bytes]) -> None:
        by_view = [partial(self.native.load_bets, view) for view in range(len(self.views))]
        for load, saved in zip([*by_view, self.native.answers.load], strategies, strict=True):
            load(saved)

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
        """Return whether rows are losses, probabilities of classes, and the number of a class."""
        if not self._beside:
            return True
        tables = np.hstack((beside[:, :2], beside[:, _LOSSES:-1]))
        probable = (tables >= 0.0) & (tables <= 1.0)
        sound = bool(probable.all() and (beside[:, 2:_LOSSES] >= 0.0).all())
        return sound and bool(
            not self._classes or np.isin(beside[:, -1], np.arange(self._classes)).all()
        )

    def _step(self, kind: int, number: int, time: int, *values: float) -> EProcessSteps:
        row = np.zeros((1, len(self.views) + self._beside))
        row[0, : len(values)] = values
        numbers, times = np.array([[number], [time]], np.int64)
        return EProcessSteps(np.array([kind], np.uint8), numbers, times, row)


def _require_usable(kinds: Bytes, values: Floats, views: int) -> None:
    """Raise an InputError that names the first forecast or label that cannot be one."""
    row = core.first_refused(kinds, values, views)
    if row is None:
        return
    shown = ", ".join(map(str, values[row, :views].tolist()))
    if kinds[row] == PREDICTS:
        msg = f"row {row}: forecast {shown} is not a probability; give one in [0, 1]"
        raise ScoreError(msg)
    msg = f"row {row}: label {shown} is unknown; labels are 0 and 1"
    raise LabelError(msg)
