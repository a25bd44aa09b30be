"""What is kept of each model over time: e-processes with their alarms, scores and experts.

E-processes against the predictions of all keys, and the alarms that they raise. Observations are
numbered as they are predicted, those of each key apart, so a key knows nothing of the others. For
the tests, an observation expires when `most` others of its key were predicted after it and its
label has not come, so no more than that many of a key ever wait.

History of each model: scores, evidence and experts over time, in bounded memory. Evidence and
experts are read where batches end, so a history is no function of the events alone. It is saved
next to the state, and restored with it. Only pages and reports read it.
"""

from __future__ import annotations

from collections import deque
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from abers.arrays import raw
from abers.backends import core
from abers.monitoring import (
    MixtureMonitor,
    ProtectionMonitor,
    Totals,
    Trail,
    WindowedMonitor,
    formats,
)
from abers.monitoring.e_processes import EXPIRES, EProcessSteps
from abers.monitoring.formats import is_date
from abers.monitoring.mixture_monitor import experts_of
from abers.monitoring.tested_view import ALARM_TEST
from abers.serialization import column, require
from abers.stream.calibrators import grouped
from abers.stream.component import ARRAY, encode, encode_array, header
from abers.stream.events import Alarm
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from abers._core import WatchedModel
    from abers.arrays import Floats, Integers
    from abers.monitoring import BinaryMonitor, Expert, ScoredRows, TaskMonitor
    from abers.monitoring.e_processes import EProcess, OpenedIncident
    from abers.monitoring.tested_view import Shift
    from abers.monitoring.tests import Evidence
    from abers.serialization import Piece
    from abers.stream.tasks.base import Task
    from abers.stream.validation import ExpiredObservations, JoinedSteps

__all__ = [
    "EvidencePoint",
    "ExpertPoint",
    "KeyedEProcesses",
    "ModelHistory",
    "SavedEProcesses",
    "SavedHistory",
    "alarm_message",
    "alarms",
    "experts_at",
]


def alarm_message(
    model: str, segment: str, process: EProcess, opened: OpenedIncident, test: Evidence
) -> str:
    """Return the message of an alarm.

    Parameters
    ----------
    model, segment
        Of the e-process.
    process
        The e-process.
    opened
        The incident that opened.
    test
        The evidence of its test.

    Examples
    --------
    >>> from abers.monitoring import CalibrationEProcess, EDetector, OpenedIncident, Shift
    >>> process, detector = CalibrationEProcess(), EDetector("change", average_run_length=1_000)
    >>> ((_, incident),) = detector.update([2000.0], [1_364_792_400_000])
    >>> shift = Shift(1_364_790_000_000, 400, "labels 1", 123.0, 180.25, 9.5)
    >>> opened = OpenedIncident(0, "raw", "change", incident, shift)
    >>> for sentence in alarm_message("m", "", process, opened, detector.evidence()).split(". "):
    ...     print(sentence)
    model 'm', 1 Apr 2013, 05:00 UTC: raw is too high
    Since 1 Apr 2013, 04:20: 400 labels, 180.2 promised, 123 came
    Evidence 2,000 to 1; alarm line 1,000 to 1
    If all probabilities are right, false alarms come once in 1,000 labels on average, at most.
    """
    subject = f"model {shown(model)}" + (f", segment {shown(segment)}" if segment else "")
    time, shift = opened.incident.first, opened.shift
    zone = " UTC" if is_date(time) else ""
    fault = "miscalibrated" if shift is None else process.faults[shift.direction]
    evidence, line = map(formats.to_one, (opened.incident.log_wealth, test.log_threshold))
    parts = (
        f"{subject}, {formats.moment(time)}{zone}: {process.subjects[opened.view]} {fault}.",
        "" if shift is None else shift.sentence(process.came),
        f"Evidence {evidence}; alarm line {line}.",
        test.guarantee,
    )
    return " ".join(filter(None, parts)).replace(formats.NO_BREAK, " ")


_UNKNOWN = -1  # number of an observation that is not tested
_SPARE = 8  # the numbers grow by one part in so many at least


_Losses: TypeAlias = tuple[int, float, float, int, int, int]
_Key: TypeAlias = tuple[
    list[bytes],
    tuple[memoryview, memoryview, memoryview, memoryview],
    tuple[int, int, int],
    list[tuple[bytes, list[memoryview]]],
    _Losses | None,
]


class SavedEProcesses(msgspec.Struct, array_like=True):
    """State of all e-processes."""

    numbers: memoryview  # those of the observations that wait for labels, as little-endian i8
    keys: list[_Key | None]  # state of the e-process of each key


class KeyedEProcesses:
    """The e-process of each key, and the numbers of the observations that wait."""

    def __init__(self, make: Callable[[], EProcess], most: int) -> None:
        self._make, self._most = make, most
        self.by_key: list[EProcess] = []
        self._numbers = np.full(1, _UNKNOWN)  # by slot

    def add(self) -> EProcess:
        """Add and return the e-process of one more key."""
        self.by_key.append(self._make())
        return self.by_key[-1]

    def renew(self, key: int) -> EProcess:
        """Replace the e-process of a key by a new e-process; what waits is no longer tested."""
        self.by_key[key] = self._make()
        return self.by_key[key]

    def keep(self, keys: Integers, slots: Integers) -> None:
        """Keep only these keys and slots, in their order."""
        self.by_key = [self.by_key[key] for key in keys.tolist()]
        self._numbers = np.concatenate(([_UNKNOWN], self._numbers[slots]))

    def reserve(self, slots: int) -> None:
        """Reserve a number for every slot."""
        if (more := slots - len(self._numbers)) > 0:
            spare = np.full(more + slots // _SPARE, _UNKNOWN)
            self._numbers = np.concatenate((self._numbers, spare))

    def run(
        self,
        joined: JoinedSteps,
        expired: ExpiredObservations,
        numbers: Integers,
        forecasts: Floats,
        outcomes: Floats,
    ) -> list[tuple[int, int, OpenedIncident]]:
        """Add predictions, and settle what is labelled or expires in a batch.

        Numbers and forecasts are those of each prediction, outcomes the values of each label, a row
        each. Return the incidents that opened, in the order of the events, with row and key of
        each.
        """
        predicts = joined.learns == 0
        self._numbers[joined.slots[predicts]] = numbers
        values = np.empty((len(predicts), forecasts.shape[1]))
        values[predicts], values[~predicts] = forecasts, outcomes
        steps = EProcessSteps(joined.learns, self._numbers[joined.slots], joined.times, values)
        rows, keys = joined.rows, joined.keys
        if len(expired.rows):
            rows, order = _order_with_ends(rows, expired.rows)
            keys = np.concatenate((keys, expired.keys))[order]
            steps = _with_ends(steps, self._numbers[expired.slots], order)
        present, order, offsets = grouped(keys)
        if not present:
            return []
        if len(present) > 1:
            rows, steps = rows[order], steps.part(order)
        processes = [self.by_key[key] for key in present]
        found = [
            (int(rows[one.step]), present[at], one)
            for at, one in processes[0].run_many(processes, offsets[1:], steps, self._most)
        ]
        return sorted(found, key=itemgetter(0, 1))

    # Saving

    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the state with what waits in these slots."""
        yield header(ARRAY, 2)
        yield from encode(raw(self._numbers[slots]))
        yield from encode_array(len(self.by_key), (one.state() for one in self.by_key))

    def load(self, saved: SavedEProcesses, made: Integers) -> int:
        """Load a state for the slots from the second on; return how many observations wait.

        Of each key so many observations were made. A ValueError is raised if it cannot be one.
        """
        numbers = column(saved.numbers, "<i8", "numbers of observations")
        most = max(made.tolist(), default=0)
        require(((numbers >= _UNKNOWN) & (numbers < most)).all(), "numbers of observations")
        require(len(numbers) < len(self._numbers), "numbers of observations")
        self._numbers[1 : len(numbers) + 1] = numbers
        for key, (process, state) in enumerate(zip(self.by_key, saved.keys, strict=True)):
            process.load(state)
            waiting = process.waiting
            sound = waiting >= made[key] - self._most
            require((sound & (waiting < made[key])).all(), "observations that wait")
        return len(numbers)


def _order_with_ends(rows: Integers, ends: Integers) -> tuple[Integers, Integers]:
    """Return rows of steps and of ends in order, each end behind the steps of its row."""
    rows = np.concatenate((rows, ends))
    order = np.argsort(rows, kind="stable")
    return rows[order], order


def _with_ends(steps: EProcessSteps, numbers: Integers, order: Integers) -> EProcessSteps:
    """Return steps and the ends of observations with these numbers, in an order."""
    more = len(numbers)
    return EProcessSteps(
        np.concatenate((steps.kinds, np.full(more, EXPIRES, np.uint8)))[order],
        np.concatenate((steps.numbers, numbers))[order],
        np.concatenate((steps.times, np.zeros(more, np.int64)))[order],
        np.concatenate((steps.values, np.zeros((more, steps.values.shape[1]))))[order],
    )


def alarms(
    opened: Sequence[tuple[int, int, OpenedIncident]],
    keys: Sequence[tuple[str, str]],
    e_processes: Sequence[EProcess],
) -> list[tuple[int, Alarm]]:
    """Return the alarms among incidents that opened, with the row of each.

    The incidents have their rows and keys; of each key there are model and segment, and e-process.
    """
    made = []
    for row, key, one in opened:
        if one.test != ALARM_TEST:
            continue
        process = e_processes[key]
        of = (one.view, one.test)
        (test,) = (each for each in process.evidence() if (each.view, each.name) == of)
        number, time, _, wealth = one.incident
        message = alarm_message(*keys[key], process, one, test)
        alarm = Alarm(*keys[key], *of, number, time, wealth, test.log_threshold, message)
        made.append((row, _sized(alarm, process, one.shift)))
    return made


def _sized(alarm: Alarm, process: EProcess, shift: Shift | None) -> Alarm:
    """Return an alarm with the labels since the fault probably began."""
    if shift is None:
        return alarm
    return msgspec.structs.replace(
        alarm,
        fault=process.faults[shift.direction],
        since=shift.since,
        labels=shift.labels,
        outcome=shift.outcome,
        promised=shift.expected,
        came=shift.observed,
    )


_WINDOWS = 64  # of a model: points enough for a screen
_EXPERT_POINTS = 32  # experts take longer to read
_ALARMS = 32  # the last ones
_LAST_LABELS = 60  # of a regression: as many as a reader can tell apart in a figure


class EvidencePoint(NamedTuple):
    """Evidence of a change, as a natural logarithm, after so many labels.

    The time is the largest event time of the observations with these labels.
    """

    labels: int
    time: int
    log_wealth: float


class ExpertPoint(NamedTuple):
    """Experts of a mixture with so many lanes after so many labels; the time is as of evidence.

    The weight and the loss of each stand in an array of doubles, and a weight of None is NaN.
    """

    labels: int
    time: int
    lanes: int
    values: bytes


class SavedHistory(msgspec.Struct, array_like=True):
    """State of a `ModelHistory`."""

    windows: tuple[int, int, int, list[Totals]]
    evidence: list[EvidencePoint]
    names: list[str]
    experts: list[ExpertPoint]
    alarms: list[tuple[int, Alarm]]
    last: bytes


class ModelHistory:
    """Scores in windows over time, trails of evidence and of experts, and the last alarms.

    Of a regression, it has the last labels, and the scores and quantiles of their predictions.

    Attributes
    ----------
    windowed
        Scores in windows.
    evidence, experts
        Points at the ends of windows.
    names
        Those of the experts, as the values of each point have them.
    alarms
        The last alarms, each behind the number of labels before it.
    last
        Array with a row for each of the last labels: label, score, quantiles.
    """

    def __init__(self, task: Task, levels: Sequence[float] = ()) -> None:
        codec = msgspec.msgpack
        self.windowed = WindowedMonitor(
            task.monitor, _WINDOWS, pack=codec.encode, unpack=codec.decode
        )
        self.evidence = Trail(_higher, _WINDOWS)
        self.experts = Trail(_later, _EXPERT_POINTS)
        self.names: list[str] = []
        self.alarms: deque[tuple[int, Alarm]] = deque(maxlen=_ALARMS)
        self._watched: WatchedModel | None = None
        self.last: Floats = np.empty((0, 2 + len(levels)))

    def update(
        self,
        scored: ScoredRows,
        times: Integers,
        monitor: TaskMonitor,
    ) -> bool:
        """Add labelled predictions, to the monitor too.

        Parameters
        ----------
        scored
            Predictions, at least one.
        times
            Array of shape (n,): event times of their observations.
        monitor
            Monitor of all predictions.

        Returns
        -------
        bool
            Whether a window ended.
        """
        completed = self.windowed.update(monitor, scored, times)
        if scored.scores is not None and scored.quantiles is not None:
            rows = np.column_stack((scored.labels, scored.scores, scored.quantiles))
            self.last = np.concatenate((self.last, rows[-_LAST_LABELS:]))[-_LAST_LABELS:]
        return completed

    def watched(self, monitor: BinaryMonitor) -> WatchedModel:
        """Return what the core adds predictions to: the monitor of the model, and its windows."""
        if self._watched is None:
            raw = None if monitor.raw is None else monitor.raw.core
            beside = (one.core for one in monitor.others if isinstance(one, ProtectionMonitor))
            parts = (monitor.calibrated.core, raw, next(beside, None), self.windowed.counter)
            self._watched = core.WatchedModel(*parts)
        return self._watched

    def note(self, monitor: TaskMonitor, alarms: Sequence[Alarm], *, completed: bool) -> None:
        """Add the alarms of a batch, and evidence and experts if a window ended in it."""
        labels = self.windowed.count
        self.alarms += [(labels, one) for one in alarms]
        for alarm in alarms if labels else ():  # its evidence is a peak between two windows
            self.evidence.note(EvidencePoint(labels, self.windowed.last, alarm.log_wealth))
        if completed:
            for one in self._evidence(monitor):
                self.evidence.note(one)
            if self.experts.lacks(self.windowed.count):
                for point in self._experts(monitor):
                    self.experts.note(point)

    def now(self, monitor: TaskMonitor) -> tuple[list[EvidencePoint], list[ExpertPoint]]:
        """Return the points of the trails, and those of this moment, if they are known."""
        evidence, mixed = self.evidence.points, self.experts.points
        if self.windowed.count:
            for height in self._evidence(monitor):
                evidence = self.evidence.with_last(height)
            for point in self._experts(monitor):
                mixed = self.experts.with_last(point)
        return evidence, mixed

    def _evidence(self, monitor: TaskMonitor) -> list[EvidencePoint]:
        views = (view for one in monitor.e_processes for view in one.views)
        found = [one for view in views if (one := view.alarm_evidence) is not None]
        return [EvidencePoint(self.windowed.count, self.windowed.last, max(found))] if found else []

    def _experts(self, monitor: TaskMonitor) -> list[ExpertPoint]:
        points = []
        for one in monitor.others:
            if isinstance(one, MixtureMonitor) and one.mixtures:
                self.names, rows = one.expert_rows()
                lanes = sum(mixture.lanes for mixture in one.mixtures)
                at = self.windowed.count, self.windowed.last
                points.append(ExpertPoint(*at, lanes, rows.tobytes()))
        return points

    def save(self) -> SavedHistory:
        """Return the state: what `load` takes."""
        evidence, mixed = self.evidence.points, self.experts.points
        last = bytes(raw(self.last))
        return SavedHistory(
            self.windowed.state(), evidence, self.names, mixed, [*self.alarms], last
        )

    def load(self, saved: SavedHistory, monitors: Collection[str]) -> None:
        """Restore a state, before the first label; a ValueError if it cannot be one.

        The totals of other monitors than these are dropped.
        """
        points = _of_monitors(saved.windows[-1], monitors)
        self.windowed.load(*saved.windows[:-1], points)
        bytes_each = 16 * len(saved.names)
        require(all(len(one.values) == bytes_each for one in saved.experts), "experts")
        self.names = saved.names
        self.evidence.load(saved.evidence)
        self.experts.load(saved.experts)
        self.alarms.extend(saved.alarms)
        width = self.last.shape[1]
        last = column(memoryview(saved.last), "<f8", "last labels")
        require(len(last) % width == 0 and len(last) <= _LAST_LABELS * width, "last labels")
        self.last = last.reshape(-1, width)


def experts_at(names: Sequence[str], point: ExpertPoint) -> dict[str, Expert]:
    """Return the experts of a point by name."""
    return experts_of(names, np.frombuffer(point.values).reshape(-1, 2))


def _of_monitors(points: Sequence[Totals], monitors: Collection[str]) -> Sequence[Totals]:
    """Drop the totals of monitors that are gone; the last point has those of all."""
    read = msgspec.msgpack.Decoder(dict[str, Any]).decode
    if not points or read(points[-1].totals).keys() <= {*monitors}:
        return points
    kept = (
        {name: totals for name, totals in read(one.totals).items() if name in monitors}
        for one in points
    )
    write = msgspec.msgpack.encode
    return [one._replace(totals=write(each)) for one, each in zip(points, kept, strict=True)]


def _higher(before: EvidencePoint, after: EvidencePoint) -> EvidencePoint:
    return after._replace(log_wealth=max(before.log_wealth, after.log_wealth))


def _later(before: ExpertPoint, after: ExpertPoint) -> ExpertPoint:
    del before
    return after
