"""From the thread that works to the one that serves.

Governing rule: all readers share one budget. The thread that works makes one frame at a time, of a
model that a reader watches, and only while frames and their pages take at most a fixed share of a
core. More models make each page refresh less often; they never make the stream slower.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from abers_connectors.live.budget import Budget, Rate
from abers_connectors.live.frames import Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from abers_connectors.live.frames import Numbers
    from abers_connectors.models import Key, Seen
    from abers_connectors.report.watching import Watching

__all__ = ["Feed"]

_EVERY = 1.0  # seconds between two frames of a model, at least


class _Listener(NamedTuple):
    key: Key | None
    wake: Callable[[], None]


class _Board(NamedTuple):
    """What the server may show: never changed, only replaced."""

    seen: list[Seen]
    known: frozenset[Key]
    frames: Mapping[Key | None, Frame]

    @classmethod
    def of(cls, seen: list[Seen], frames: Mapping[Key | None, Frame]) -> _Board:
        return cls(seen, frozenset(one.key for one in seen), frames)

    def place(self, key: Key | None) -> Key | None:
        """Return the model that a reader sees; None if no model has the name."""
        if key is None:
            return self.seen[0].key if self.seen else None
        return key if key in self.known else None


class Feed:
    """Gives frames to whoever listens.

    Parameters
    ----------
    title
        What is served or replayed.
    watching
        What gathers.
    numbers
        Gives what became of the records; called in the thread that works.
    clock
        Monotonic, in seconds.
    cpu
        Seconds of a core that the calling thread has used.

    Attributes
    ----------
    closed
        Whether the server ends.
    """

    def __init__(
        self,
        title: str,
        watching: Watching,
        numbers: Callable[[], Numbers],
        *,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self.title = title
        self.closed = False
        self.budget = Budget(clock, cpu)
        self._watching, self._numbers, self._clock = watching, numbers, clock
        self._rate = Rate(clock)
        self._board = _Board([], frozenset(), {})
        self._turns: dict[Key | None, float] = {}
        self._made = 0
        self._listeners: set[_Listener] = set()
        self._lock = Lock()
        self._final: Frame | None = None

    # In the thread that works

    def tick(self) -> None:
        """Make the frames that are due and that the budget allows, in most cases one or none."""
        if self._final is not None:
            return
        now = self._clock()
        if self._rate.due(now):
            self._rate.add(now, self._numbers().events)
        if not self._listeners:
            self._board = self._board._replace(frames={})  # whoever comes later sees no old ones
        while self._listeners and self.budget.left(now) and self._give(now):
            pass

    def end(self) -> None:
        """Make the last frame; whoever comes later sees the findings of any model.

        The processors must not change any more.
        """
        numbers = self._numbers()
        seen, rate = self._watching.seen(), self._rate.overall(self._clock(), numbers.events)
        delay, number = self._watching.delay(), self._made + 1
        self._board = _Board.of(seen, {})
        self._final = Frame(
            number=number,
            key=None,
            ended=True,
            numbers=numbers,
            rate=rate,
            delay=delay,
            every=0.0,
            seen=seen,
            find=lambda: None,
        )
        self._wake(self._waiting())

    def _give(self, now: float) -> bool:
        """Make the frame of the model that waits longest; False if none is due."""
        with self.budget.spent():
            listeners, seen = self._waiting(), self._watching.seen()
            board = _Board.of(seen, {})
            places = {board.place(one.key) for one in listeners}
            # A new one may be shown at once, but not before those that wait longer.
            self._turns = {key: self._turns.get(key, now) for key in places}
            key, due = min(self._turns.items(), key=lambda turn: turn[1])
            if now < due:
                self.budget.pause(due)
                return False
            self._turns[key] = now + _EVERY
            frame = self._frame(key, seen, len(places))
            kept = {one: kept for one, kept in self._board.frames.items() if one in places}
            self._board = board._replace(frames=kept | {key: frame})
        self._wake([one for one in listeners if board.place(one.key) == key])
        return True

    def _frame(self, key: Key | None, seen: list[Seen], watched: int) -> Frame:
        findings = None if key is None else self._watching.findings(key)
        self._made += 1
        return Frame(
            number=self._made,
            key=key,
            ended=False,
            numbers=self._numbers(),
            rate=self._rate.recent(),
            delay=self._watching.delay(),
            every=max(_EVERY, watched * self.budget.pace),
            seen=seen,
            find=lambda: findings,
        )

    def _waiting(self) -> list[_Listener]:
        with self._lock:
            return [*self._listeners]

    @staticmethod
    def _wake(listeners: list[_Listener]) -> None:
        for listener in listeners:
            listener.wake()

    # In the thread that serves

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._listeners)

    @property
    def frames(self) -> int:
        """How many frames there were, of all models."""
        return self._made

    def frame(self, key: Key | None) -> Frame | None:
        """Return the newest frame of a model and segment; None before the first.

        Parameters
        ----------
        key
            Which; None is the one with most labels. All names that no model has share one frame.
        """
        final, board = self._final, self._board
        place = board.place(key)
        if final is None:
            return board.frames.get(place)
        if place is None:
            return final
        return final._replace(key=place, find=partial(self._watching.findings, place))

    @contextmanager
    def listening(self, key: Key | None, wake: Callable[[], None]) -> Iterator[None]:
        """Look at a model and segment in a `with` block; None is the one with most labels.

        Parameters
        ----------
        key
            Which.
        wake
            Called from the other thread whenever there is a new frame; must not wait.
        """
        one = _Listener(key, wake)
        with self._lock:
            self._listeners.add(one)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.discard(one)

    def close(self) -> None:
        """Let all who listen go."""
        self.closed = True
        self._wake(self._waiting())
