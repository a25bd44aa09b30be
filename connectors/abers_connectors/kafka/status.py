"""How a service is doing, for whoever asks from another thread.

Governing rule: the loop writes and never waits for a reader; counters count what
this process has committed since it started, so they are raised after a commit,
never restored, and not lowered when a partition leaves.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import add, attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Protocol

import numpy as np

from abers.monitoring.evidence import loudest
from abers_connectors.kafka.tallies import Tallies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from abers.monitoring import Evidence
    from abers.stream import Judged, Outputs, Processor
    from abers_connectors.kafka.changelog import Applied
    from abers_connectors.kafka.decoding import Decoded
    from abers_connectors.kafka.wording import Outgoing

__all__ = ["Counts", "Gauges", "Histogram", "Status", "View"]

INPUTS = ("observations", "labels")
"""What the topics of an application bring, in the order of the changelog's numbers."""

_SINK, _DEAD = attrgetter("sink"), "dead_letters"
_MOST_HINTS = 20
_COMMITS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_HOUR, _DAY = 3600.0, 86_400.0
_DELAYS = (1.0, 10.0, 60.0, 600.0, _HOUR, 6 * _HOUR, _DAY, 3 * _DAY, 7 * _DAY, 30 * _DAY)


class _Place(Protocol):
    @property
    def partition(self) -> int: ...


class _Shard(Protocol):
    @property
    def place(self) -> _Place: ...
    @property
    def processor(self) -> Processor: ...


class _Work(Protocol):
    @property
    def outgoing(self) -> Sequence[Outgoing]: ...
    @property
    def applied(self) -> Applied: ...
    @property
    def decoded(self) -> Decoded: ...
    @property
    def outputs(self) -> Outputs | None: ...


@dataclass
class Histogram:
    """How often values were how large.

    Parameters
    ----------
    bounds
        Up to which value each bucket goes; the last bucket, which has no bound, is beside them.
    counts
        How many values each bucket has.
    sum
        Of all values.

    Examples
    --------
    >>> seen = Histogram.over(1.0, 10.0)
    >>> for value in (0.5, 1.0, 3.0, 99.0):
    ...     seen.add(value)
    >>> seen.cumulated(), seen.sum
    ([('1.0', 2), ('10.0', 3), ('+Inf', 4)], 103.5)
    """

    bounds: tuple[float, ...]
    counts: list[int]
    sum: float = 0.0

    @classmethod
    def over(cls, *bounds: float) -> Histogram:
        """Make one without values."""
        return cls(bounds, [0] * (len(bounds) + 1))

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def add_many(self, values: NDArray[np.float64]) -> None:
        """Count some values."""
        rows = np.searchsorted(self.bounds, values)
        more = np.bincount(rows, minlength=len(self.counts)).tolist()
        self.counts = [*map(add, self.counts, more)]
        self.sum += float(values.sum())

    def copied(self) -> Histogram:
        """Give a copy, which stays as it is."""
        return replace(self, counts=[*self.counts])

    def median(self) -> float:
        """Give the bound that half of the values are up to; 0 of none, the last one at most."""
        half = sum(self.counts) / 2
        pairs = zip(self.bounds, accumulate(self.counts), strict=False)
        reached = (bound for bound, count in pairs if count >= half)
        return next(reached, self.bounds[-1]) if half else 0.0

    def cumulated(self) -> list[tuple[str, int]]:
        """Give the buckets as Prometheus has them: how many values are up to each bound."""
        return [*zip([*map(str, self.bounds), "+Inf"], accumulate(self.counts), strict=True)]


@dataclass
class Counts:
    """What was done since the process started.

    Parameters
    ----------
    records, written, dead, snapshots, webhook
        Records read by input, written by sink, dead letters by reason; snapshots by result,
        "saved" or "failed"; alarms of the web hook by result, "sent", "failed" or "dropped".
    tombstones, commits, aborts, assignments, restores
        How many there were.
    commit_seconds, label_delay
        How long commits took; how much later than its observation a label was, in event time.
    tallies
        What labels said of predictions, by model.
    alarms
        Episodes, by model and test.
    """

    records: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)
    snapshots: Counter[str] = field(default_factory=Counter)
    webhook: Counter[str] = field(default_factory=Counter)
    tombstones: int = 0
    commits: int = 0
    aborts: int = 0
    assignments: int = 0
    restores: int = 0
    commit_seconds: Histogram = field(default_factory=lambda: Histogram.over(*_COMMITS))
    label_delay: Histogram = field(default_factory=lambda: Histogram.over(*_DELAYS))
    tallies: Tallies = field(default_factory=Tallies)
    alarms: Counter[tuple[str, str]] = field(default_factory=Counter)

    def copied(self) -> Counts:
        """Give a copy, which stays as it is."""
        return replace(
            self,
            records=self.records.copy(),
            written=self.written.copy(),
            dead=self.dead.copy(),
            snapshots=self.snapshots.copy(),
            webhook=self.webhook.copy(),
            commit_seconds=self.commit_seconds.copied(),
            label_delay=self.label_delay.copied(),
            tallies=self.tallies.copied(),
            alarms=self.alarms.copy(),
        )


@dataclass(frozen=True)
class Gauges:
    """How a shard is, as it was restored or after its last commit.

    Parameters
    ----------
    pending, early
        Observations that wait for labels, labels that wait for observations.
    clock
        Its event time, in milliseconds; None if it has none yet.
    """

    pending: int
    early: int
    clock: int | None


@dataclass(frozen=True)
class View:
    """All of it at one moment.

    Parameters
    ----------
    alive, ready, joined
        Whether it progresses; whether it serves all that it is to; whether it is in the group.
    assigned, restored
        Partition numbers.
    hints
        Sentences for whoever looks after it.
    counts, gauges, lags
        See `Counts`; by partition number; records behind, by topic and partition.
    evidence
        What the tests have come to, by model; the loudest of its segments.
    now
        The time on the wall, in milliseconds since 1970.
    """

    alive: bool
    ready: bool
    joined: bool
    assigned: list[int]
    restored: list[int]
    hints: list[str]
    counts: Counts
    gauges: dict[int, Gauges]
    lags: dict[tuple[str, int], int]
    evidence: Mapping[str, Sequence[Evidence]]
    now: float


class Status:
    """What the loop tells, and what others see of it.

    Parameters
    ----------
    patience
        Seconds without progress after which it counts as hung: `kafka.watchdog`.
    onlooker
        Called whenever something moves.
    session
        Seconds without an answer of the brokers after which they give the seat in the group to
        another process: `kafka.session_timeout`.
    clock, wall
        Monotonic time, and that on the wall, in seconds.
    """

    def __init__(
        self,
        patience: float,
        onlooker: Callable[[], None] = lambda: None,
        *,
        session: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.joined = False
        """Whether the process is in its group, as far as the loop knows."""
        self.heard = -math.inf
        """When the brokers last answered for the group: by the clock."""
        self.hindrance: str | None = None
        """Why it could not serve although it is in its group; a sentence."""
        self._patience, self._clock, self._wall = patience, clock, wall
        self._session = session
        self._onlooker, self._progress = onlooker, clock()
        self._lock = Lock()
        self._assigned: set[int] = set()
        self._restored: set[int] = set()
        self._hints: dict[str, None] = {}
        self._given_up: list[str] = []
        self._counts = Counts()
        self._retired: set[str] = set()
        self._gauges: dict[int, Gauges] = {}
        self._lags: dict[tuple[str, int], int] = {}
        self._evidence: Mapping[str, Sequence[Evidence]] = {}

    # What the loop tells

    def progressed(self) -> None:
        """Note that something moved, if only that nothing came."""
        self._progress = self._clock()
        self._onlooker()

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Note which partitions of topics are ours from now on; none of them is restored."""
        with self._lock:
            self._assigned = {number for _, number in partitions}
            self._restored = set()
            self._counts.assignments += 1
            mine = self._assigned
            self._gauges = {one: gauge for one, gauge in self._gauges.items() if one in mine}
            self._lags = {one: lag for one, lag in self._lags.items() if one[1] in mine}
            self._evidence = {}

    def restore(self, shard: _Shard) -> None:
        """Note that a shard is where its offsets are."""
        with self._lock:
            self._restored.add(shard.place.partition)
            self._counts.restores += 1
            self._gauge(shard)

    def commit(self, shard: _Shard, work: _Work) -> None:
        """Note what a transaction did to a shard; it is committed."""
        with self._lock:
            counts, inputs = self._counts, work.applied.inputs
            for which, name in enumerate(INPUTS):
                counts.records[name] += inputs.count(which)
            sinks = Counter(map(_SINK, work.outgoing))
            counts.written.update(sinks)
            if sinks[_DEAD]:
                counts.dead.update(str(one.reason) for one in work.outgoing if one.sink == _DEAD)
            counts.tombstones += len(work.decoded.tombstones)
            self._gauge(shard)
            if work.outputs is not None:
                self._retired.update(work.outputs.retired)
                counts.alarms.update((one.model, one.test) for _, one in work.outputs.alarms)
                if work.outputs.judged is not None:
                    self._judge(shard.processor, work.outputs.judged)

    def _judge(self, processor: Processor, judged: Judged) -> None:
        """Count what became known of predictions."""
        delays = np.maximum(judged.delays, 0) / 1000
        self._counts.label_delay.add_many(delays)
        models = [model for model, _ in processor.keys]
        self._counts.tallies.add(models, judged.keys, processor.facts(judged))

    def _gauge(self, shard: _Shard) -> None:
        pending, early = shard.processor.waiting
        gauges = Gauges(pending, early, shard.processor.clock)
        self._gauges[shard.place.partition] = gauges

    def committed(self, seconds: float) -> None:
        """Note how long a transaction took, from its beginning to its commit."""
        with self._lock:
            self._counts.commits += 1
            self._counts.commit_seconds.add(seconds)

    def abort(self, why: str) -> None:
        """Note that a transaction was given up, and why."""
        with self._lock:
            self._counts.aborts += 1
            self._given_up = [f"the last transaction that was given up: {why}"]

    def saved(self, *, well: bool) -> None:
        """Note that a snapshot was saved, or could not be."""
        with self._lock:
            self._counts.snapshots["saved" if well else "failed"] += 1

    def posted(self, result: str) -> None:
        """Note what became of an alarm that a web hook was to be told."""
        with self._lock:
            self._counts.webhook[result] += 1

    def weigh(self, shards: Iterable[_Shard]) -> None:
        """Note what the tests of all models have come to, when nothing is under way.

        What is counted of models that were retired, and that no shard has, is forgotten.
        """
        found: dict[str, list[Sequence[Evidence]]] = {}
        known: set[str] = set()
        for shard in shards:
            keys, monitors = shard.processor.keys, shard.processor.monitors
            known.update(model for model, _ in keys)
            for (model, _), monitor in zip(keys, monitors, strict=False):
                found.setdefault(model, []).append(monitor.tests)
        evidence = {model: loudest(many) for model, many in found.items()}
        with self._lock:
            self._evidence = evidence
            self._let_go(known)

    def _let_go(self, known: set[str]) -> None:
        gone, self._retired = self._retired - known, set()
        if gone:
            self._counts.tallies.drop(gone)
            rest = {one: many for one, many in self._counts.alarms.items() if one[0] not in gone}
            self._counts.alarms = Counter(rest)

    def lag(self, lags: Mapping[tuple[str, int], int]) -> None:
        """Note how many records of some partitions are still to be read."""
        with self._lock:
            self._lags.update(lags)

    def hint(self, sentence: str) -> None:
        """Tell something to whoever looks after the service, once."""
        with self._lock:
            if len(self._hints) < _MOST_HINTS:
                self._hints[sentence] = None

    def usual_delay(self) -> float:
        """Give the seconds that labels usually come after their observations; 0 if unknown."""
        return self._counts.label_delay.median()

    # What others see

    @property
    def alive(self) -> bool:
        """Whether it progresses, known without waiting for the loop or copying anything."""
        return self._clock() - self._progress <= self._patience

    def view(self) -> View:
        """Give all of it, at one moment."""
        with self._lock:
            now, hindrance = self._clock(), self.hindrance
            # The loop may hang in a call, and then only the time says that the seat is lost.
            joined = self.joined and now - self.heard <= self._session
            return View(
                self.alive,
                joined and self._assigned <= self._restored and hindrance is None,
                joined,
                sorted(self._assigned),
                sorted(self._restored),
                [*self._hints, *self._given_up, *([] if hindrance is None else [hindrance])],
                self._counts.copied(),
                dict(self._gauges),
                dict(self._lags),
                self._evidence,
                self._wall() * 1000,
            )
