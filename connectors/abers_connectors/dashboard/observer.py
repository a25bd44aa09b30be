"""Models of the processors, as pages and reports read them.

Models of a stream, with their segments: how they are found, ordered and named. Wherever models are
listed, those with an active alarm are first, then those with the strongest evidence against their
predictions. Each has the same name, however many processors share the stream.

States of many models for their list, the most harmful first. The answers about a model take some
milliseconds, so they are made again only after so many more labels, and of a few models at a time.

All of it happens in the thread that works, so nothing is read while it changes.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import reduce
from heapq import heappop, heappush
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from abers.calibration.sets import ALL
from abers.monitoring import Expert, event_time, is_date, joined_windows
from abers.monitoring.answers import main_level
from abers.pages.model_findings import LatestOutcomes, ModelDetails, ReferenceShares
from abers.stream import make_task
from abers.stream.alarms import EvidencePoint, ExpertPoint, experts_at
from abers.stream.calibrators import by_key
from abers_connectors.runtime.models import Key, ModelIndex, ModelStatus, model_status, worst_first

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from abers.arrays import Floats, Integers
    from abers.monitoring import ScoredRows, TaskMonitor, Window
    from abers.monitoring.answers import Answers
    from abers.stream import Alarm, Outputs, Processor, SettledBatch
    from abers.stream.alarms import ModelHistory
    from abers_connectors.replay.options import Period

__all__ = [
    "ExpertsAt",
    "JoinedHistory",
    "Key",
    "ListedStatus",
    "ModelStates",
    "ModelStatus",
    "ObservedModel",
    "Observer",
    "Reference",
    "ReferencePeriod",
    "StatesOfModel",
    "joined_history",
    "key_id",
    "key_name",
    "model_monitors",
    "model_statuses",
]

_MODELS = 100  # that have a reference


class Reference(NamedTuple):
    """Predictions of a period, named by its dates, and what they promised."""

    name: str
    monitor: TaskMonitor
    shares: ReferenceShares


class ReferencePeriod:
    """Monitors of the predictions of observations in a period, by model and segment."""

    def __init__(self, period: Period) -> None:
        self._period = period
        self._monitors: dict[Key, TaskMonitor] = {}
        self._sums: dict[Key, dict[str, Floats]] = {}

    def take(self, processor: Processor, batch: SettledBatch) -> None:
        """Add the settled predictions of a batch that are in the period."""
        first, end = self._period
        inside = batch.take(np.flatnonzero((batch.times >= first) & (batch.times < end)))
        for number, rows in by_key(inside.keys):
            key = processor.keys[number]
            if key not in self._monitors and len(self._monitors) < _MODELS:
                self._monitors[key] = make_task(processor.settings).monitor()
            if key in self._monitors:
                scored = inside.scored.take(rows)
                self._monitors[key].update(scored)
                self._add(key, scored)

    def _add(self, key: Key, scored: ScoredRows) -> None:
        """Add what predictions promised, and what came of it."""
        sums = self._sums.setdefault(key, {})
        for view, promised, came in _promises(scored):
            sums[view] = sums.get(view, np.zeros(2)) + np.array((promised, came))

    def of(self, keys: Collection[Key]) -> Reference | None:
        """Return the reference of some models together; None if no label of theirs is in it."""
        known = [key for key in keys if key in self._monitors]
        if not known:
            return None
        some = [self._monitors[key] for key in known]
        total = type(some[0]).total(some)
        return Reference(self._name(), total, self._shares(known, total.count))

    def _shares(self, keys: Sequence[Key], labels: int) -> ReferenceShares:
        """Return what was promised and came for some models together."""
        views = [*self._sums[keys[0]]]
        sums = {view: np.sum([self._sums[key][view] for key in keys], axis=0) for view in views}
        promised, came = (
            {view: float(one[at]) / labels for view, one in sums.items()} for at in (0, 1)
        )
        return ReferenceShares(*self._period, labels, promised, came)

    def _name(self) -> str:
        first, end = self._period
        if not is_date(first):
            return f"{first:,} to {end:,}"
        return f"{_date(first)} to {_date(end)}"


def _promises(scored: ScoredRows) -> Iterator[tuple[str, float, float]]:
    """Yield of each view the sum of what was promised, and how often it came."""
    for view, one in scored.forecasts.items():
        yield view, float(one.probabilities.sum()), float(one.true.sum())
    level = main_level([*scored.covered])
    if level is not None:
        inside = scored.covered[level]
        yield "calibrated", level * len(inside), float(inside.sum())


def _date(time: int) -> str:
    """Return a date, with the time of day unless that is midnight."""
    return event_time(time).removesuffix(" UTC").removesuffix(" 00:00:00")


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


def model_monitors(processors: Iterable[Processor]) -> dict[Key, list[TaskMonitor]]:
    """Return the monitors of each model and segment, one a processor that has it."""
    found: dict[Key, list[TaskMonitor]] = {}
    for processor in processors:
        for key, monitor in zip(processor.keys, processor.monitors, strict=False):
            found.setdefault(key, []).append(monitor)
    return found


def model_statuses(models: Mapping[Key, Sequence[TaskMonitor]]) -> list[ModelStatus]:
    """Return the status of each model, the worst first."""
    return worst_first(
        reduce(ModelStatus.joined, [model_status(key, one) for one in monitors])
        for key, monitors in models.items()
    )


def key_id(key: Key) -> str:
    """Return a key as an address has it."""
    return msgspec.json.encode(key).decode()


def key_name(key: Key) -> str:
    """Return the name of a key; the only model of a stream may have an empty one."""
    model, segment = key
    return f"{model} · {segment}" if segment else model


_ORDER = ("no", "partly", "recovering", "undecided", "yes", "waiting")
_SHOWN = ("model", "calibrated")
_RENEWED = 10  # models with answers that a frame makes
_MORE = 100  # answers are made again after one label more in so many
_LAST = 1_000  # models with answers that are made when the stream has ended


class StatesOfModel(NamedTuple):
    """States of the answers by question, and how many of the latest labels are wrong at least.

    `raw_wrong_by` is None where raw scores promise nothing.
    """

    states: Mapping[str, str]
    wrong_by: float
    raw_wrong_by: float | None

    @classmethod
    def of(cls, answers: Answers) -> StatesOfModel:
        """Return what a list says of the answers."""
        raw = None if answers.now is None else answers.now.views.get("raw")
        return cls(
            {one.question: one.state for one in answers.answers},
            answers.wrong_by,
            None if raw is None else raw.wrong_by,
        )


class ListedStatus(NamedTuple):
    """A model in the list; its states are None until its turn comes, and without tests."""

    status: ModelStatus
    found: StatesOfModel | None = None

    @property
    def key(self) -> Key:
        """Model and segment."""
        return self.status.key


class _KnownStates(NamedTuple):
    labels: int
    active: bool
    turn: int  # number of the renewal that made it
    found: StatesOfModel | None


class ModelStates:
    """States of models; one thread renews them, and others may read the list meanwhile."""

    def __init__(self) -> None:
        self.listed: Sequence[ListedStatus] = ()
        """All models, the most harmful first; never changed, only replaced."""
        self._statuses: Sequence[ModelStatus] = ()
        self._known: dict[Key, _KnownStates] = {}
        self._turn = 0

    def renew(
        self,
        statuses: Sequence[ModelStatus],
        monitor: Callable[[Key], TaskMonitor | None],
        most: int = _RENEWED,
    ) -> None:
        """Renew the states of a few models with more labels, of those that wait longest.

        Parameters
        ----------
        statuses
            All models.
        monitor
            Function that returns the monitor of a model, of all processors together.
        most
            Number of models that are renewed at most.
        """
        due = sorted(filter(self._is_due, statuses), key=self._waits_since)[:most]
        self._turn += 1
        for one in due:
            whole = monitor(one.key)
            answers = None if whole is None else whole.answers()
            found = None if answers is None else StatesOfModel.of(answers)
            self._known[one.key] = _KnownStates(one.labels, one.active, self._turn, found)
        if due or statuses is not self._statuses:
            self._statuses = statuses
            self.listed = self._list(statuses)

    def renew_last(
        self, statuses: Sequence[ModelStatus], monitor: Callable[[Key], TaskMonitor | None]
    ) -> None:
        """Renew the states of a stream that has ended."""
        self.renew(statuses, monitor, _LAST)

    def list_only(self, statuses: Sequence[ModelStatus]) -> Sequence[ListedStatus]:
        """Return models with the states that are known."""
        return self.listed if statuses is self._statuses else self._list(statuses)

    def _is_due(self, one: ModelStatus) -> bool:
        known = self._known.get(one.key)
        if known is None:
            return True
        labels = known.labels
        few = labels <= one.labels < labels + labels / _MORE + 1
        return one.active != known.active or not few

    def _waits_since(self, one: ModelStatus) -> int:
        known = self._known.get(one.key)
        return 0 if known is None else known.turn

    def _list(self, statuses: Sequence[ModelStatus]) -> list[ListedStatus]:
        found = [
            ListedStatus(one, self._known[one.key].found if one.key in self._known else None)
            for one in statuses
        ]
        return sorted(found, key=_harm)


def _harm(one: ListedStatus) -> tuple[float, int]:
    """Return what sorts models by harm; those that are equal stay in the order of evidence."""
    if one.found is None:
        return 0.0, len(_ORDER) if not one.status.active else 0
    state = min(_ORDER.index(one.found.states[name]) for name in _SHOWN)
    return -one.found.wrong_by, state


_DELAYS = 1_000  # labels with delays that are kept, of all models


class ObservedModel(NamedTuple):
    """Monitor and history of a model, of all processors together."""

    monitor: TaskMonitor
    history: JoinedHistory
    reference: Reference | None = None
    among_labelled: bool = False

    def details(self) -> ModelDetails:
        """Return what a page shows of the history."""
        history = self.history
        return ModelDetails(
            alarms=history.alarms,
            experts_over_time=history.experts,
            outcomes=LatestOutcomes(history.last, history.levels) if len(history.last) else None,
            reference=None if self.reference is None else self.reference.shares,
            among_labelled=self.among_labelled,
        )


class Observer:
    """Reads the models of processors; their scores and histories are those of the processors.

    A reference period is scored too. The index has all models as of its last update.
    """

    def __init__(self, reference: Period | None = None, index: ModelIndex | None = None) -> None:
        self.index = ModelIndex() if index is None else index
        self._reference = None if reference is None else ReferencePeriod(reference)
        self._processors: dict[int, Processor] = {}
        self._delays = np.empty(0)
        self.labels = 0
        """Number of labelled predictions."""
        self.latest: int | None = None
        """Largest event time of these labels."""

    def hold(self, processors: Mapping[int, Processor]) -> None:
        """Set the current processors, by partition number."""
        self._processors = dict(processors)

    def take(self, processor: Processor, outputs: Outputs) -> None:
        """Add the outputs of a processor, once they are committed."""
        if outputs.settled_batch is not None and len(outputs.settled_batch.times):
            self._note(outputs.settled_batch.times + outputs.settled_batch.delays)
            delays = np.maximum(outputs.settled_batch.delays[-_DELAYS:], 0) / 1000
            self._delays = np.concatenate([self._delays, delays])[-_DELAYS:]
            if self._reference is not None:
                self._reference.take(processor, outputs.settled_batch)

    def _note(self, times: Integers) -> None:
        """Note the event times of labels."""
        self.labels += len(times)
        latest = int(np.max(times))
        self.latest = latest if self.latest is None else max(self.latest, latest)

    def delay(self) -> float | None:
        """Return the median delay of the last labels, in seconds of event time."""
        return float(np.median(self._delays)) if len(self._delays) else None

    def waiting(self) -> tuple[int, int]:
        """Return the numbers of pending observations and of early labels."""
        pairs = [processor.waiting for processor in self._processors.values()]
        return sum(pending for pending, _ in pairs), sum(early for _, early in pairs)

    def update(self) -> None:
        """Update the index, at a bounded cost."""
        self.index.update(self._processors)

    def models(self) -> list[ModelStatus]:
        """Return the models as they are now, the worst first: slow with many."""
        return model_statuses(self.monitors())

    def total(self, key: Key) -> TaskMonitor | None:
        """Return the monitor of a model, of all processors together; None without the model."""
        monitors = [monitor for _, monitor in self._found(key)]
        return type(monitors[0]).total(monitors) if monitors else None

    def monitors(self) -> dict[Key, list[TaskMonitor]]:
        """Return the monitors of each model, one a processor that has it."""
        return model_monitors(self._processors.values())

    def observed(self, key: Key) -> ObservedModel:
        """Return a model that there is."""
        return self._model(self._found(key), [key])

    def whole(self) -> ObservedModel:
        """Return all models together; there is at least one."""
        processors = self._processors.values()
        found = [
            each
            for one in processors
            for each in zip(one.keys, one.histories, one.monitors, strict=False)
        ]
        if len(processors) > 1:
            found.sort(key=itemgetter(0))  # sums depend on their order
        pairs = [(history, monitor) for _, history, monitor in found]
        return self._model(pairs, [key for one in processors for key in one.keys])

    def _found(self, key: Key) -> list[tuple[ModelHistory, TaskMonitor]]:
        """Return the history and the monitor of a key in each processor that has it."""
        found = []
        for one in self._processors.values():
            for known, history, monitor in zip(one.keys, one.histories, one.monitors, strict=False):
                if known == key:
                    found.append((history, monitor))
        return found

    def _model(
        self, found: Sequence[tuple[ModelHistory, TaskMonitor]], keys: Sequence[Key]
    ) -> ObservedModel:
        monitors = [monitor for _, monitor in found]
        settings = next(iter(self._processors.values())).settings
        levels = settings.quantiles if settings.task == "regression" else ()
        reference = None if self._reference is None else self._reference.of(dict.fromkeys(keys))
        total = type(monitors[0]).total(monitors)
        history = joined_history(found, levels)
        return ObservedModel(total, history, reference, settings.label_rates != ALL)
