"""History of a model over all processors that have it, as pages and reports read it."""

from __future__ import annotations

from bisect import bisect_right
from heapq import heappop, heappush
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from abers.monitoring import Expert, joined_windows
from abers.stream.history import EvidencePoint, ExpertPoint, experts_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers.arrays import Floats
    from abers.monitoring import TaskMonitor, Window
    from abers.stream import Alarm
    from abers.stream.history import ModelHistory

__all__ = ["ExpertsAt", "JoinedHistory", "joined_history"]


class ExpertsAt(NamedTuple):
    """Experts after so many labels, up to an event time."""

    labels: int
    time: int
    experts: Mapping[str, Expert]


class JoinedHistory(NamedTuple):
    """Windows, evidence and experts over time, the last alarms, and the last labels.

    Each alarm is behind the number of labels so far. A row of `last` has label, score and
    quantiles at these levels; only a regression has any.
    """

    windows: Sequence[Window[TaskMonitor]]
    evidence: Sequence[EvidencePoint]
    experts: Sequence[ExpertsAt]
    alarms: Sequence[tuple[int, Alarm]]
    last: Floats
    levels: Sequence[float]


def joined_history(
    many: Sequence[tuple[ModelHistory, TaskMonitor]], levels: Sequence[float] = ()
) -> JoinedHistory:
    """Return the history of several processors or models together, in the order of event time.

    Parameters
    ----------
    many
        Histories, each with its monitor.
    levels
        Levels of the quantiles of a regression.
    """
    some = [(history, monitor) for history, monitor in many if history.windowed.count]
    if not some:
        return JoinedHistory([], [], [], [], np.empty((0, 2 + len(levels))), levels)
    most = some[0][0].windowed.most
    trails = [history.now(monitor) for history, monitor in some]
    evidence = [*_evidence([one for one, _ in trails])]
    names = [history.names for history, _ in some]
    return JoinedHistory(
        joined_windows([history.windowed.windows(monitor) for history, monitor in some], most),
        [_strongest(group) for group in _groups(evidence, most)],
        [*_experts([one for _, one in trails], names, most)],
        [*_alarms([history for history, _ in some], [one for one, _ in trails], evidence)],
        np.concatenate([_part(history.last, len(some)) for history, _ in some]),
        levels,
    )


class _Moment(NamedTuple):
    """A point of a trail, with the labels of all trails up to it."""

    labels: int
    time: int
    trail: int
    point: Any


def _moments(trails: Sequence[Sequence[EvidencePoint | ExpertPoint]]) -> list[_Moment]:
    """Return the points of all trails in the order of event time."""
    points = [(one.time, number, one) for number, some in enumerate(trails) for one in some]
    counted, labels, found = [0] * len(trails), 0, []
    for time, number, one in sorted(points, key=itemgetter(0, 1)):
        labels += one.labels - counted[number]
        counted[number] = one.labels
        found.append(_Moment(labels, time, number, one))
    return found


def _evidence(trails: Sequence[Sequence[EvidencePoint]]) -> Iterator[EvidencePoint]:
    """Yield the strongest evidence of all trails at each moment."""
    newest = [-1] * len(trails)
    heap: list[tuple[float, int, int]] = []  # evidence, negative; trail; and number of the moment
    for at, one in enumerate(_moments(trails)):
        newest[one.trail] = at
        heappush(heap, (-one.point.log_wealth, one.trail, at))
        while newest[heap[0][1]] != heap[0][2]:
            heappop(heap)
        yield EvidencePoint(one.labels, one.time, -heap[0][0])


def _strongest(group: Sequence[EvidencePoint]) -> EvidencePoint:
    """Return the end of a group, with its strongest evidence."""
    return group[-1]._replace(log_wealth=max(one.log_wealth for one in group))


def _experts(
    trails: Sequence[Sequence[ExpertPoint]], names: Sequence[Sequence[str]], most: int
) -> Iterator[ExpertsAt]:
    """Yield the experts of all trails at so many moments at most."""
    latest: dict[int, ExpertPoint] = {}
    for group in _groups(_moments(trails), most):
        latest |= {one.trail: one.point for one in group}
        yield ExpertsAt(group[-1].labels, group[-1].time, _mixed(latest, names))


def _mixed(latest: Mapping[int, ExpertPoint], names: Sequence[Sequence[str]]) -> dict[str, Expert]:
    """Return the mean weights over all lanes, and the total losses."""
    lanes = sum(one.lanes for one in latest.values())
    found: dict[str, Expert] = {}
    for number, point in latest.items():
        for name, one in experts_at(names[number], point).items():
            weight, loss = found.get(name, Expert(0.0, 0.0))
            if weight is not None and one.weight is not None:
                weight += one.weight * point.lanes / lanes
            found[name] = Expert(weight if one.weight is not None else None, loss + one.loss)
    return found


P = TypeVar("P", EvidencePoint, _Moment)


def _groups(points: Sequence[P], most: int) -> list[list[P]]:
    """Return at most so many groups of consecutive points, evenly over the labels."""
    groups: dict[int, list[P]] = {}
    for one in points if len(points) > most else ():
        groups.setdefault((one.labels - 1) * most // points[-1].labels, []).append(one)
    return list(groups.values()) or [[one] for one in points]


def _alarms(
    histories: Sequence[ModelHistory],
    trails: Sequence[Sequence[EvidencePoint]],
    together: Sequence[EvidencePoint],
) -> Iterator[tuple[int, Alarm]]:
    """Yield the alarms of all histories, each behind the labels of all when it was raised."""
    if len(histories) == 1:
        yield from histories[0].alarms
        return
    found = []
    for history, trail in zip(histories, trails, strict=True):
        for labels, alarm in history.alarms:
            raised = next(one.time for one in trail if one.labels >= labels)
            upto = bisect_right(together, raised, key=attrgetter("time"))
            found.append((together[upto - 1].labels, alarm))
    yield from sorted(found, key=lambda one: (one[0], one[1].time))


def _part(last: Floats, among: int) -> Floats:
    """Return the share of the last labels that one of several histories has."""
    return last[-max(len(last) // among, 1) :]
