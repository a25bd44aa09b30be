"""Feed: frames from the thread that works to the thread that serves.

Budget of the live page, and rate of the stream. The cost of a frame and its page is measured in
seconds of a core, not of the clock, so a busy machine does not count twice. The pause after each
keeps the share of the core right.

Blocks of the models that readers watch, made anew when enough labels came. They take some 15
milliseconds with their HTML, and nobody reads numbers that change each second.

All readers share one budget. The thread that works makes one frame at a time, of a model that a
reader watches, and only while frames and their pages take at most a fixed share of a core. With
more models each page refreshes less often; the stream never becomes slower.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import contextmanager
from functools import partial
from statistics import median
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from abers.pages.model_document import model_blocks
from abers.pages.model_findings import Silence
from abers_connectors.dashboard.observer import ModelStates
from abers_connectors.runtime.models import LargeModel  # noqa: TC001 - msgspec reads it

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers.pages.blocks import Block
    from abers_connectors.dashboard.observer import Key, ListedStatus, ObservedModel, Observer

__all__ = ["SHARE", "Budget", "Feed", "Frame", "LabelArrivals", "LiveBlocks", "StreamCounts"]

SHARE = 0.05
"""Share of one core that all frames and pages together may use."""

_SPAN = 10  # samples that a rate goes over
_SAMPLE_SECONDS = 1.0  # between two samples
_NEW = 0.25  # weight of the newest frame in the mean cost


class Budget:
    """Allowance of CPU time: the next frame is made once the last frames are paid for.

    The clock is monotonic; `cpu` returns the seconds of a core that the calling thread has used.

    Examples
    --------
    >>> used = iter([0.0, 0.02])
    >>> budget = Budget(lambda: 100.0, lambda: next(used))
    >>> with budget.spent():
    ...     pass
    >>> budget.left(100.3), budget.left(100.5)
    (False, True)
    """

    def __init__(self, clock: Callable[[], float], cpu: Callable[[], float]) -> None:
        self._clock, self._cpu = clock, cpu
        self._due = clock()
        self._costs = {True: 0.0, False: 0.0}
        self._lock = Lock()

    @property
    def pace(self) -> float:
        """Seconds from one frame to the next, by the cost of the last frames."""
        return sum(self._costs.values()) / SHARE

    def left(self, now: float) -> bool:
        """Return whether a frame may be made now."""
        return now >= self._due

    def pause(self, until: float) -> None:
        """Make no frame before this moment."""
        with self._lock:
            self._due = max(self._due, until)

    @contextmanager
    def spent(self, *, drawing: bool = False) -> Iterator[None]:
        """Charge the CPU time of a `with` block, in which a frame is made or its page drawn."""
        began = self._cpu()
        try:
            yield
        finally:
            used = self._cpu() - began
            with self._lock:
                mean = self._costs[drawing]
                self._costs[drawing] = mean + (_NEW if mean else 1.0) * (used - mean)
                self._due = max(self._due, self._clock()) + used / SHARE


class Rate:
    """Rate of events, from a sample a second of a monotonic clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._due = self._began = clock()
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SPAN)

    def due(self, now: float) -> bool:
        """Return whether a second has passed since the last sample."""
        return now >= self._due

    def add(self, now: float, events: int) -> None:
        """Add a sample: the number of events so far."""
        self._due = now + _SAMPLE_SECONDS
        self._samples.append((now, events))

    def recent(self) -> float | None:
        """Return the rate over the last seconds; None while there are too few samples."""
        if not self._samples:
            return None
        (first, before), (last, after) = self._samples[0], self._samples[-1]
        return (after - before) / (last - first) if last > first else None

    def overall(self, now: float, events: int) -> float | None:
        """Return the rate since the beginning."""
        seconds = now - self._began
        return events / seconds if seconds else None


_GAPS = 100  # that the median is of
_TIMES = 3  # the median gap, from which labels count as missing
_MINUTE = 60.0


class LabelArrivals:
    """Times at which labels came; the clock is monotonic, in seconds.

    Examples
    --------
    >>> arrivals = LabelArrivals()
    >>> for now, labels in ((10.0, 1), (40.0, 2), (70.0, 2)):
    ...     arrivals.note(now, labels)
    >>> arrivals.age(70.0), arrivals.silence(70.0), arrivals.silence(150.0)
    (30.0, None, 60.0)
    """

    def __init__(self) -> None:
        self._labels = 0
        self._last: float | None = None
        self._gaps: deque[float] = deque(maxlen=_GAPS)

    def note(self, now: float, labels: int) -> None:
        """Note how many labels came so far."""
        if labels == self._labels:
            return
        if self._last is not None:
            self._gaps.append(now - self._last)
        self._labels, self._last = labels, now

    def age(self, now: float) -> float | None:
        """Return how long ago the last label came; None before the first."""
        return None if self._last is None else now - self._last

    def silence(self, now: float) -> float | None:
        """Return for how many whole minutes no label came, in seconds; None while labels come.

        Labels are missing after three times the median gap between them, and at least a minute.
        """
        age = self.age(now)
        if age is None or not self._gaps or age < max(_TIMES * median(self._gaps), _MINUTE):
            return None
        return age // _MINUTE * _MINUTE


_KEPT = 40  # models: a few more than readers at once
_MORE = 100  # blocks are made again after one label more in so many,
_SECONDS = 10.0  # or after any more label and so long
_WHERE = "the predictions that the stream wrote"


class _MadeBlocks(NamedTuple):
    at: float  # by the clock of the page
    labels: int  # number of predictions scored
    active: tuple[bool, ...]  # whether each test is
    silence: Silence | None
    blocks: tuple[Block, ...]

    def holds(self, now: float, labels: int, active: tuple[bool, ...], silence: object) -> bool:
        """Return whether the blocks may be shown."""
        few = self.labels < labels <= self.labels + self.labels / _MORE
        fresh = labels == self.labels or (few and now < self.at + _SECONDS)
        return fresh and (self.active, self.silence) == (active, silence)


class LiveBlocks:
    """Blocks of models, with times in a zone; they are read and made in the thread that works."""

    def __init__(self, observer: Observer, zone: str) -> None:
        self._observer, self._zone = observer, zone
        self._made: dict[Key, _MadeBlocks] = {}

    def __call__(
        self, key: Key, now: float = 0.0, silence: Silence | None = None
    ) -> tuple[Block, ...] | None:
        """Return the blocks of a model at a time of a clock; None for an unknown model."""
        monitor = self._observer.total(key)
        if monitor is None:
            return None
        active = tuple(one.active for one in monitor.tests)
        made = self._made.pop(key, None)
        if made is None or not made.holds(now, monitor.count, active, silence):
            blocks = self._blocks(self._observer.observed(key), silence)
            made = _MadeBlocks(now, monitor.count, active, silence, blocks)
        while len(self._made) >= _KEPT:
            del self._made[next(iter(self._made))]
        self._made[key] = made
        return made.blocks

    def _blocks(self, model: ObservedModel, silence: Silence | None) -> tuple[Block, ...]:
        details = model.details()._replace(where=_WHERE, silence=silence)
        return model_blocks(model.monitor, details, zone=self._zone)


_FRAME_SECONDS = 1.0  # between two frames of a model, at least


class StreamCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a stream at one moment."""

    observations: int  # records that were read
    labels: int  # likewise
    dead: Mapping[str, int]  # unreadable records by reason
    waiting: tuple[int, int]  # observations without their labels, labels without observations
    read: float | None = None  # share of the stream that was read, if it has an end
    lag: int | None = None  # records still to be read, if known
    behind: float | None = None  # age of the newest event in seconds, of a service
    hints: tuple[str, ...] = ()  # sentences for the operator
    ready: bool = True  # whether everything is served
    largest: tuple[LargeModel, ...] = ()  # models, the largest first, of a service with several
    since: int | None = None  # wall-clock time in milliseconds from which it counts, of a service

    @property
    def events(self) -> int:
        """Number of records that were read."""
        return self.observations + self.labels


class Frame(NamedTuple):
    """Numbers of one model at one moment, which never change.

    Two frames with the same number are the same. The key is None on the page of a name that no
    model has. The rate is in events a second, over the last seconds, and of a stream that has ended
    over all of it; the delay is the median of the last labels, in seconds of event time. `every` is
    in seconds between two frames of this model, as long as no other reader comes. `age` is how long
    ago the last label came, in seconds. `blocks` may be slow: do not call it in the event loop. Its
    result is None without a model.
    """

    number: int
    key: Key | None
    ended: bool
    counts: StreamCounts
    rate: float | None
    delay: float | None
    every: float
    age: float | None
    models: Sequence[ListedStatus]
    blocks: Callable[[], tuple[Block, ...] | None]


class _Reader(NamedTuple):
    key: Key | None
    wake: Callable[[], None]


class _Published(NamedTuple):
    """Models, and frames that the server may show: only replaced as a whole."""

    models: Sequence[ListedStatus]
    first: Key | None  # of the model with most labels
    known: frozenset[Key]
    frames: Mapping[Key | None, Frame]

    @classmethod
    def of(cls, models: Sequence[ListedStatus]) -> _Published:
        most = min(models, key=lambda one: (-one.status.labels, one.key), default=None)
        first = None if most is None else most.key
        return cls(models, first, frozenset(one.key for one in models), {})

    def resolve(self, key: Key | None) -> Key | None:
        """Return the model that a reader sees; None if no model has the name."""
        if key is None:
            return self.first
        return key if key in self.known else None


class Feed:
    """Frames of a stream, by its title, for its readers.

    The counts are read in the thread that works. Dates are in the zone. The clock is monotonic;
    `cpu` returns the seconds of a core that the calling thread has used. `closed` is whether the
    server ends.
    """

    def __init__(  # noqa: PLR0913 - the clocks are for tests
        self,
        title: str,
        observer: Observer,
        counts: Callable[[], StreamCounts],
        *,
        zone: str = "UTC",
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self.title = title
        self.closed = False
        self.budget = Budget(clock, cpu)
        self._observer, self._counts, self._clock = observer, counts, clock
        self._rate = Rate(clock)
        self.zone = zone
        self._arrivals, self._states = LabelArrivals(), ModelStates()
        self._blocks = LiveBlocks(observer, zone)
        self._published = _Published.of([])
        self._turns: dict[Key | None, float] = {}
        self._made = 0
        self._listeners: set[_Reader] = set()
        self._lock = Lock()
        self._final: Frame | None = None

    # In the thread that works

    def tick(self) -> None:
        """Make the frames that are due and that the budget allows, in most cases one or none."""
        if self._final is not None:
            return
        now = self._clock()
        self._arrivals.note(now, self._observer.labels)
        if self._rate.due(now):
            self._rate.add(now, self._counts().events)
        if not self._listeners:
            self._published = self._published._replace(frames={})  # no old ones later
        while self._listeners and self.budget.left(now) and self._publish(now):
            pass

    def end(self) -> None:
        """Make the last frame; later readers see any model. Processors must not change any more."""
        self._blocks = LiveBlocks(self._observer, self.zone)  # no old ones
        self._states.renew_last(self._observer.models(), self._observer.total)
        self._published = _Published.of(self._states.listed)
        rate = self._rate.overall(self._clock(), self._counts().events)
        last = self._frame(None, self._published.models, 0)
        self._final = last._replace(ended=True, rate=rate, every=0.0)
        self._wake(self._waiting())

    def _publish(self, now: float) -> bool:
        """Make the frame of the model that waits longest; return whether one was due."""
        with self.budget.spent():
            listeners = self._waiting()
            published = self._listed()
            keys = {published.resolve(one.key) for one in listeners}
            # A new frame may be shown at once, but not before those that wait longer.
            self._turns = {key: self._turns.get(key, now) for key in keys}
            key, due = min(self._turns.items(), key=lambda turn: turn[1])
            if now < due:
                self.budget.pause(due)
                return False
            self._turns[key] = now + _FRAME_SECONDS
            frame = self._frame(key, published.models, len(keys))
            frames = {one: old for one, old in self._published.frames.items() if one in keys}
            self._published = published._replace(frames=frames | {key: frame})
        self._wake([one for one in listeners if published.resolve(one.key) == key])
        return True

    def _listed(self) -> _Published:
        """Return the models as they are now; only a few are renewed each time."""
        self._observer.update()
        self._states.renew(self._observer.index.worst_first(), self._observer.total)
        models = self._states.listed
        return self._published if models is self._published.models else _Published.of(models)

    def _frame(self, key: Key | None, models: Sequence[ListedStatus], watched: int) -> Frame:
        """Return the next frame, with the blocks of a model if there is a key."""
        counts = self._counts()
        blocks = None if key is None else self._blocks(key, self._clock(), self._silence(counts))
        self._made += 1
        return Frame(
            number=self._made,
            key=key,
            ended=False,
            counts=counts,
            rate=self._rate.recent(),
            delay=self._observer.delay(),
            every=max(_FRAME_SECONDS, watched * self.budget.pace),
            age=self._arrivals.age(self._clock()),
            models=models,
            blocks=lambda: blocks,
        )

    def _silence(self, counts: StreamCounts) -> Silence | None:
        """Return that no label came for long; None while labels come."""
        seconds, latest = self._arrivals.silence(self._clock()), self._observer.latest
        if seconds is None or latest is None or not counts.ready:
            return None
        return Silence(int(1000 * seconds), counts.waiting[0], None, latest)

    def _waiting(self) -> list[_Reader]:
        with self._lock:
            return [*self._listeners]

    @staticmethod
    def _wake(listeners: list[_Reader]) -> None:
        for listener in listeners:
            listener.wake()

    # In the thread that serves

    @property
    def listeners(self) -> int:
        """Number of readers."""
        return len(self._listeners)

    @property
    def models(self) -> Sequence[ListedStatus]:
        """All models, the most harmful first, as of the last update."""
        if self._final is not None:
            return self._final.models
        return self._states.list_only(self._observer.index.worst_first())

    @property
    def frames(self) -> int:
        """Number of frames so far, of all models."""
        return self._made

    def frame(self, key: Key | None) -> Frame | None:
        """Return the newest frame of a model; None before the first.

        The key None is the model with most labels. All names that no model has share one frame.
        """
        final, published = self._final, self._published
        key = published.resolve(key)
        if final is None:
            return published.frames.get(key)
        if key is None:
            return final
        return final._replace(key=key, blocks=partial(self._blocks, key))

    @contextmanager
    def listening(self, key: Key | None, wake: Callable[[], None]) -> Iterator[None]:
        """Watch a model in a `with` block; the key None is the model with most labels.

        `wake` is called from the other thread whenever there is a new frame; it must not wait.
        """
        one = _Reader(key, wake)
        with self._lock:
            self._listeners.add(one)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.discard(one)

    def close(self) -> None:
        """Disconnect all readers."""
        self.closed = True
        self._wake(self._waiting())
