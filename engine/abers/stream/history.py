"""History of each model: scores, evidence and experts over time, in bounded memory.

Evidence and experts are read where batches end, so a history is no function of the events alone. It
is saved next to the state, and restored with it. Only pages and reports read it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

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
)
from abers.monitoring.mixture_monitor import experts_of
from abers.serialization import column, require
from abers.stream.events import Alarm  # noqa: TC001 - msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from abers._core import WatchedModel
    from abers.arrays import Floats, Integers
    from abers.monitoring import BinaryMonitor, Expert, ScoredRows, TaskMonitor
    from abers.stream.tasks.base import Task

__all__ = ["EvidencePoint", "ExpertPoint", "ModelHistory", "SavedHistory", "experts_at"]

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
