"""Feed: frames from the thread that works to the thread that serves.

All readers share one budget. The thread that works makes one frame at a time, of a model that a
reader watches, and only while frames and their pages take at most a fixed share of a core. With
more models each page refreshes less often; the stream never becomes slower.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from abers.pages.model_findings import Silence
from abers_connectors.dashboard.budget import Budget, Rate
from abers_connectors.dashboard.label_arrivals import LabelArrivals
from abers_connectors.dashboard.live_blocks import LiveBlocks
from abers_connectors.dashboard.model_states import ModelStates
from abers_connectors.runtime.largest_models import LargeModel  # noqa: TC001 - msgspec reads it

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers.pages.blocks import Block
    from abers_connectors.dashboard.model_states import ListedStatus
    from abers_connectors.dashboard.models import Key
    from abers_connectors.dashboard.observer import Observer

__all__ = ["Feed", "Frame", "StreamCounts"]

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
