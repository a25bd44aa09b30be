"""Status of a service, which the loop updates and other threads read.

The metrics and the live page show its counters and gauges. Counters count what this process has
committed since it started. They are raised after a commit, never restored, and not lowered when a
partition is revoked.

The loop never waits for a reader: a reader gets a copy, made at one moment.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections import Counter
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import add
from threading import Lock
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from abers.monitoring import evidence_numbers, others_total, strongest, verdicts_total
from abers.stream import accounts
from abers_connectors.runtime.models import (
    OTHERS,
    LargeModel,
    LargestModels,
    ModelIndex,
    ModelTotals,
    NamedModels,
    state_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from abers.monitoring import Evidence, Number, TaskMonitor
    from abers.monitoring.answers import Sums
    from abers_connectors.runtime.task import BatchResult, StreamTask

__all__ = [
    "INPUTS",
    "ROUTER",
    "TASKS",
    "Counters",
    "Histogram",
    "Seat",
    "Stage",
    "Status",
    "StatusView",
    "TaskGauges",
]

_COMMITS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_HOUR, _DAY = 3600.0, 86_400.0
_DELAYS = (1.0, 10.0, 60.0, 600.0, _HOUR, 6 * _HOUR, _DAY, 3 * _DAY, 7 * _DAY, 30 * _DAY)


@dataclass
class Histogram:
    """Counts of values in buckets.

    Examples
    --------
    >>> histogram = Histogram.over(1.0, 10.0)
    >>> for value in (0.5, 1.0, 3.0, 99.0):
    ...     histogram.add(value)
    >>> histogram.cumulated(), histogram.sum
    ([('1.0', 2), ('10.0', 3), ('+Inf', 4)], 103.5)
    """

    bounds: tuple[float, ...]  # upper bound of each bucket but the last, which has none
    counts: list[int]  # number of values in each bucket
    sum: float = 0.0  # of all values

    @classmethod
    def over(cls, *bounds: float) -> Histogram:
        """Return an empty histogram."""
        return cls(bounds, [0] * (len(bounds) + 1))

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def add_many(self, values: NDArray[np.float64]) -> None:
        """Count several values."""
        rows = np.searchsorted(self.bounds, values)
        more = np.bincount(rows, minlength=len(self.counts)).tolist()
        self.counts = [*map(add, self.counts, more)]
        self.sum += float(values.sum())

    def __copy__(self) -> Histogram:
        """Return an independent copy."""
        return replace(self, counts=[*self.counts])

    def median(self) -> float:
        """Return the bound of the median's bucket; 0 if empty, the last bound at most."""
        half = sum(self.counts) / 2
        pairs = zip(self.bounds, accumulate(self.counts), strict=False)
        reached = (bound for bound, count in pairs if count >= half)
        return next(reached, self.bounds[-1]) if half else 0.0

    def cumulated(self) -> list[tuple[str, int]]:
        """Return the cumulative buckets, as Prometheus has them."""
        return [*zip([*map(str, self.bounds), "+Inf"], accumulate(self.counts), strict=True)]


@dataclass
class Counters:
    """Counters of a process since its start."""

    records: Counter[str] = field(default_factory=Counter)  # read, by input
    written: Counter[str] = field(default_factory=Counter)  # records, by sink
    ends: Counter[str] = field(default_factory=Counter)  # as `abers.stream.accounts` names them
    dead: Counter[str] = field(default_factory=Counter)  # dead letters, by reason
    snapshots: Counter[str] = field(default_factory=Counter)  # by result: saved, failed
    webhook: Counter[str] = field(default_factory=Counter)  # by result: sent, failed, dropped
    tombstones: int = 0
    routed: Counter[str] = field(default_factory=Counter)  # records of routers, by input
    commits: Counter[str] = field(default_factory=Counter)  # committed transactions, by stage
    aborts: Counter[str] = field(default_factory=Counter)  # aborted transactions, by stage
    assignments: int = 0  # rebalances
    restores: int = 0  # restored tasks
    commit_seconds: Histogram = field(default_factory=lambda: Histogram.over(*_COMMITS))
    label_delay: Histogram = field(  # in seconds of event time
        default_factory=lambda: Histogram.over(*_DELAYS)
    )
    model_totals: ModelTotals = field(default_factory=ModelTotals)
    # By model, view and test.
    alarms: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def __copy__(self) -> Counters:
        """Return an independent copy."""
        return Counters(**{name: copy(value) for name, value in vars(self).items()})


@dataclass(frozen=True)
class TaskGauges:
    """Gauges of a task, as of its restore or its last commit."""

    pending: int  # observations that wait for labels
    early: int  # labels that wait for observations
    clock: int | None  # event time in milliseconds; None before the first event
    to_replay: int  # records since the newest snapshot, which a restore would apply again
    accounts: Mapping[str, int]  # since the beginning of the state; see `abers.stream.accounts`


_DEAD = "dead:"
Stage: TypeAlias = Literal["router", "tasks"]
ROUTER: Stage = "router"
TASKS: Stage = "tasks"
"""The stages of an application with a router; one without has only tasks."""
INPUTS = ("observations", "labels")
"""The inputs of an application, by their numbers in the changelog."""

_MAX_HINTS = 20
_MAX_MODELS = 100  # as by http.max_models
_STRONGEST = 10  # models without counts of their own that have evidence in metrics


@dataclass
class Seat:
    """The place of a stage of the process in its consumer group."""

    joined: bool = False  # as far as the loop knows
    last_heartbeat: float = -math.inf  # when the brokers last answered for the group, by the clock

    def kept(self, now: float, session_timeout: float) -> bool:
        """Return whether the stage is in its group.

        If the loop hangs in a call, only the time shows that the membership has expired.
        """
        return self.joined and now - self.last_heartbeat <= session_timeout


@dataclass(frozen=True)
class StatusView:
    """The status at one moment."""

    alive: bool  # the loop makes progress
    ready: bool  # all assigned tasks run
    joined: bool  # the process is in its consumer groups
    stages: Collection[Stage]  # of the process; none if the application has no routers
    assigned: list[int]  # partitions
    restored: list[int]  # partitions with tasks that are restored
    hints: list[str]  # warnings for the operator, a sentence each
    counts: Counters
    gauges: dict[int, TaskGauges]  # by partition
    unbalanced: dict[int, list[str]]  # accounts that do not close, by partition
    sizes: dict[int, int]  # estimated bytes of memory of each state, by partition
    largest: Sequence[LargeModel]  # models with the most predictions of late
    lags: dict[tuple[str, int], int]  # records behind, by topic and partition
    router_lags: Mapping[tuple[str, int], int]  # the same of what routers read
    # By model, see `Status.update_evidence`: of each test the strongest segment,
    evidence: Mapping[str, Sequence[Evidence]]
    numbers: Mapping[str, Sequence[Number]]  # and of other monitors the numbers over all segments
    answer_sums: Mapping[str, Sequence[Sums]]  # those behind the answers, of all segments
    started: int  # wall-clock time in milliseconds since 1970, from which `counts` count
    now: float  # wall-clock time in milliseconds since 1970
    snapshot_every: int | None  # records between snapshots; None without a store of them
    input_partitions: int | None  # of each input, of all processes together; None while unknown
    following: Mapping[str, int]  # partitions that follow another application, by how far they are

    def gauges_of_monitors(self) -> Iterator[tuple[str, Number]]:
        """Yield each number of a model that is a gauge, with the model."""
        for model, tests in self.evidence.items():
            for number in (*evidence_numbers(tests), *self.numbers.get(model, ())):
                if number.metric:
                    yield model, number


class Status:
    """Status of a service.

    After `stall_timeout` seconds without progress the loop counts as hung, and after
    `session_timeout` seconds without a heartbeat the brokers reassign the partitions. The first
    `max_models` models have counts of their own, see `NamedModels`. `on_progress` is called
    whenever the loop makes progress, with what it does next. `clock` is monotonic. `application`
    and `process` are `kafka.application_id` and `kafka.group_instance_id`, and `stages` are those
    that run in the process.
    """

    def __init__(  # noqa: PLR0913 - each is independent
        self,
        stall_timeout: float,
        on_progress: Callable[[str], object] = lambda _: None,
        *,
        session_timeout: float = math.inf,
        max_models: int = _MAX_MODELS,
        application: str = "abers",
        process: str = "0",
        stages: Collection[Stage] = (TASKS,),
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.application, self.process = application, process
        self.input_partitions: int | None = None
        """Partitions of each input, of all processes together; None while unknown."""
        self.routes = False
        """Whether the application has routers, in this process or others."""
        self.seats = {stage: Seat() for stage in stages}
        """The place of each stage of the process in its group."""
        self.not_ready_reason: str | None = None
        """Why the service is not ready although it is in its group; a sentence."""
        self.snapshot_every: int | None = None
        """Records after which a task saves a snapshot; None without a store."""
        self.session_timeout = session_timeout
        """Seconds after which the brokers remove a process that does not answer."""
        self._stall_timeout = stall_timeout
        self._clock, self._wall, self._started = clock, wall, int(1000 * wall())
        self._on_progress, self._progress = on_progress, clock()
        self._lock = Lock()
        self._assigned: set[int] = set()
        self._restored: set[int] = set()
        self._hints: dict[str, None] = {}
        self._losses: Sequence[str] = ()
        self._last_abort: list[str] = []
        self._take_over: list[str] = []
        self._following: Mapping[str, int] = {}
        self._counts = Counters()
        self._names = NamedModels(max_models)
        self.models = ModelIndex()
        """All models of the tasks."""
        self._retired: set[str] = set()
        self._gauges: dict[int, TaskGauges] = {}
        self._sizes: dict[int, int] = {}
        self._large, self._largest = LargestModels(clock), list[LargeModel]()
        self._lags: dict[tuple[str, int], int] = {}
        self._router_lags: Mapping[tuple[str, int], int] = {}
        self._evidence: Mapping[str, Sequence[Evidence]] = {}
        self._numbers: Mapping[str, Sequence[Number]] = {}
        self._answer_sums: Mapping[str, Sequence[Sums]] = {}

    # Updates by the loop

    def progressed(self, doing: str = "") -> None:
        """Record that the loop made progress, even if no record arrived, and what it does next."""
        self._progress = self._clock()
        self._on_progress(doing)

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Record a new assignment; no task of it is restored yet."""
        with self._lock:
            mine = self._assigned = {partition for _, partition in partitions}
            self._restored = set()
            self._counts.assignments += 1
            self._gauges = {one: gauge for one, gauge in self._gauges.items() if one in mine}
            self._lags = {one: lag for one, lag in self._lags.items() if one[1] in mine}
            self._evidence, self._numbers, self._sizes, self._answer_sums = {}, {}, {}, {}
            self._large, self._largest = LargestModels(self._clock), []
        self.models.update({})

    def restored(self, task: StreamTask) -> None:
        """Record that a task is restored."""
        with self._lock:
            self._restored.add(task.checkpoint.partition)
            self._counts.restores += 1
            self._update_gauges(task)

    def batch_committed(self, task: StreamTask, result: BatchResult) -> None:
        """Count the results of a batch that is committed."""
        with self._lock:
            counts, inputs = self._counts, result.changelog_record.inputs
            for which, name in enumerate(INPUTS):
                counts.records[name] += inputs.count(which)
            for sink, records in result.output_records.items():
                if records.values:  # a sink without records has no count
                    counts.written[sink] += len(records.values)
                    counts.dead.update(records.reasons)
            counts.tombstones += len(result.decoded.tombstones)
            self._count_ends(task)
            if result.outputs is not None:
                self._retired.update(result.outputs.retired)
                shown = self._names.name
                counts.alarms.update(
                    (shown(one.model), one.view, one.test) for _, one in result.outputs.alarms
                )
                settled = result.outputs.settled_batch
                if settled is not None:
                    counts.label_delay.add_many(np.maximum(settled.delays, 0) / 1000)
                    keys = task.processor.keys
                    models = {key: shown(keys[key][0]) for key in np.unique(settled.keys).tolist()}
                    counts.model_totals.add(models, settled.keys, settled.scored)

    def events_taken(self, task: StreamTask) -> None:
        """Count the events of a task since the last call, each as a record, and how they ended.

        Its accounts have dead letters by reason, as "dead:bad-score".
        """
        with self._lock:
            ends, counts = self._count_ends(task), self._counts
            for name in INPUTS:
                counts.records[name] += ends[name]
            counts.written["predictions"] += ends["predictions"]
            counts.written["outcomes"] += ends["learned"]
            reasons = {one: n for one, n in ends.items() if one.startswith(_DEAD) and n}
            counts.dead.update({one.removeprefix(_DEAD): n for one, n in reasons.items()})

    def _count_ends(self, task: StreamTask) -> dict[str, int]:
        """Count how events ended, and return how many did so since the last call."""
        gauges = self._gauges.get(task.checkpoint.partition)
        before = {} if gauges is None else gauges.accounts
        self._update_gauges(task)
        now = self._gauges[task.checkpoint.partition].accounts
        ends = {name: n - before.get(name, 0) for name, n in now.items()}
        self._counts.ends.update(ends)
        return ends

    def _update_gauges(self, task: StreamTask) -> None:
        pending, early = task.processor.waiting
        clock, to_replay = task.processor.clock, task.records_to_replay
        gauges = TaskGauges(pending, early, clock, to_replay, task.accounts)
        self._gauges[task.checkpoint.partition] = gauges

    def transaction_committed(self, seconds: float, stage: Stage = TASKS) -> None:
        """Count a committed transaction of a stage, and its duration."""
        with self._lock:
            self._counts.commits[stage] += 1
            self._counts.commit_seconds.add(seconds)

    def transaction_aborted(self, why: str, stage: Stage = TASKS) -> None:
        """Count an aborted transaction of a stage."""
        with self._lock:
            self._counts.aborts[stage] += 1
            self._last_abort = [f"the last aborted transaction: {why}"]

    def update_take_over(self, sentence: str | None, following: Mapping[str, int]) -> None:
        """Replace the hint about a take-over, and the partitions that follow its predecessor."""
        self._take_over = [] if sentence is None else [sentence]
        self._following = following

    def snapshot_finished(self, *, saved: bool) -> None:
        """Count a snapshot."""
        with self._lock:
            self._counts.snapshots["saved" if saved else "failed"] += 1

    def webhook_called(self, result: str) -> None:
        """Count a call of the webhook."""
        with self._lock:
            self._counts.webhook[result] += 1

    def update_lags(self, lags: Mapping[tuple[str, int], int]) -> None:
        """Update the lags of some partitions."""
        with self._lock:
            self._lags.update(lags)

    def routed(self, inputs: Sequence[int]) -> None:
        """Count records that a router has committed, by their inputs."""
        with self._lock:
            for which, name in enumerate(INPUTS):
                self._counts.routed[name] += inputs.count(which)

    def update_router_lags(self, lags: Mapping[tuple[str, int], int]) -> None:
        """Replace the lags of the partitions that a router reads."""
        self._router_lags = lags

    def update_evidence(self, tasks: Sequence[StreamTask]) -> None:
        """Update sizes, the index of all models, and the evidence of some, between two batches.

        These are the models with counts of their own, and the few others with the strongest
        evidence. The totals of retired models that no task has any more are dropped.
        """
        processors = {task.checkpoint.partition: task.processor for task in tasks}
        self.models.update(processors)
        others, known = self._strongest_others(), set[str]()
        found: dict[str, list[TaskMonitor]] = {}
        for processor in processors.values():
            keys = processor.keys
            known.update(model for model, _ in keys)
            for (model, _), monitor in zip(keys, processor.monitors, strict=False):
                if model in self._names or model in others:
                    found.setdefault(model, []).append(monitor)
        evidence = {model: strongest([one.tests for one in many]) for model, many in found.items()}
        numbers = {
            model: [
                *(number for one in others_total(many) for number in one.summary()),
                *verdicts_total(many),
            ]
            for model, many in found.items()
        }
        sums = {model: [*_answer_sums(many)] for model, many in found.items()}
        sizes = {number: state_bytes(processor) for number, processor in processors.items()}
        largest = self._large(processors.values())
        with self._lock:
            self._evidence, self._numbers, self._sizes = evidence, numbers, sizes
            self._largest = largest
            self._answer_sums = sums
            gone, self._retired = self._retired - known, set()
            self._counts.model_totals.drop(gone)
            self._names.drop(gone)
            for one in [one for one in self._counts.alarms if one[0] in gone]:
                del self._counts.alarms[one]

    def _strongest_others(self) -> set[str]:
        """Return the models without counts of their own that have the strongest evidence."""
        found: set[str] = set()
        for one in self.models.worst_first():
            model, _ = one.key
            if self._names.name(model) == OTHERS:
                found.add(model)
            if len(found) == _STRONGEST:
                break
        return found

    def hint(self, sentence: str) -> None:
        """Add a warning for the operator, once."""
        with self._lock:
            if len(self._hints) < _MAX_HINTS:
                self._hints[sentence] = None

    def update_losses(self, sentences: Sequence[str]) -> None:
        """Replace the hints about what is lost, and about memory."""
        self._losses = sentences

    # Reads by other threads

    def median_label_delay(self) -> float:
        """Return the median delay of labels in seconds of event time; 0 if unknown."""
        return self._counts.label_delay.median()

    @property
    def alive(self) -> bool:
        """Whether the loop makes progress; reading it takes no lock and copies nothing."""
        return self._clock() - self._progress <= self._stall_timeout

    def view(self) -> StatusView:
        """Return the status at this moment."""
        with self._lock:
            now, reason = self._clock(), self.not_ready_reason
            found = {n: accounts.unbalanced(one.accounts) for n, one in self._gauges.items()}
            unbalanced = {n: sentences for n, sentences in found.items() if sentences}
            wrong = [f"partition {n}: {one}" for n, many in unbalanced.items() for one in many]
            joined = all(one.kept(now, self.session_timeout) for one in self.seats.values())
            return StatusView(
                self.alive,
                joined and self._assigned <= self._restored and reason is None,
                joined,
                [*self.seats] if self.routes else [],
                sorted(self._assigned),
                sorted(self._restored),
                [
                    *(*self._take_over, *self._hints, *self._losses, *wrong, *self._last_abort),
                    *([] if reason is None else [reason]),
                ],
                copy(self._counts),
                dict(self._gauges),
                unbalanced,
                self._sizes,
                self._largest,
                dict(self._lags),
                self._router_lags,
                self._evidence,
                self._numbers,
                self._answer_sums,
                self._started,
                self._wall() * 1000,
                self.snapshot_every,
                self.input_partitions,
                self._following,
            )


def _answer_sums(many: Iterable[TaskMonitor]) -> Iterator[Sums]:
    """Yield the sums behind the answers about now; a reader makes answers of them."""
    for monitor in many:
        for process in monitor.e_processes:
            yield process.answer_sums(over_time=False)
