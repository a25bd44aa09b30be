"""From the thread that works to the one that serves.

Governing rule: the thread that works gives away frames, which stay as they are; at most one a
second, only while somebody listens, only of what they look at, and without waiting for them. So
neither the number of listeners nor their slowness costs the stream anything.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from abers_connectors.models import Key, Seen
    from abers_connectors.report.findings import Findings
    from abers_connectors.report.watching import Watching

__all__ = ["Feed", "Frame", "Numbers"]

_EVERY = 1.0  # seconds between two frames
_SPAN = 10  # frames that a rate goes over


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the records, as a loop knows it.

    Parameters
    ----------
    events
        How many records were applied, or refused.
    dead
        Dead letters by reason.
    waiting
        How many observations wait for labels, and labels for observations.
    read
        Which share of the stream was read, if it has an end.
    lag
        How many records are still to be read, if that is known.
    behind
        How old the newest event is, in seconds, if time goes on.
    hints
        Sentences for whoever looks after it.
    ready
        Whether everything is served.
    """

    events: int
    dead: Mapping[str, int]
    waiting: tuple[int, int]
    read: float | None = None
    lag: int | None = None
    behind: float | None = None
    hints: tuple[str, ...] = ()
    ready: bool = True


class Frame(NamedTuple):
    """All that a page shows, at one moment.

    Attributes
    ----------
    title
        What is served or replayed.
    ended
        Whether nothing more will come.
    numbers
        What became of the records.
    rate
        Events a second, over the last seconds; of what has ended, over all of it.
    delay
        Median delay of the last labels, in seconds of event time.
    seen
        All models and segments.
    findings
        Of those that somebody looks at.
    """

    title: str
    ended: bool
    numbers: Numbers
    rate: float | None
    delay: float | None
    seen: list[Seen]
    findings: Mapping[Key, Findings]


class _Listener(NamedTuple):
    key: Key | None
    wake: Callable[[], None]


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

    Attributes
    ----------
    frame
        The newest; None before the first.
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
    ) -> None:
        self.title = title
        self.frame: Frame | None = None
        self.closed = False
        self._watching, self._numbers, self._clock = watching, numbers, clock
        self._due = self._began = clock()
        self._passed: deque[tuple[float, int]] = deque(maxlen=_SPAN)
        self._listeners: set[_Listener] = set()
        self._lock = Lock()
        self._ended = False

    # In the thread that works

    def tick(self) -> None:
        """Make a frame if one is due."""
        now = self._clock()
        if now < self._due or self._ended:
            return
        self._due = now + _EVERY
        numbers = self._numbers()
        self._passed.append((now, numbers.events))
        with self._lock:
            listeners = [*self._listeners]
        if listeners:
            self._give(numbers, self._rate(), listeners, ended=False)

    def end(self) -> None:
        """Make the last frame, of all models, that whoever comes later sees too."""
        self._ended = True
        numbers = self._numbers()
        seconds = self._clock() - self._began
        with self._lock:
            listeners = [*self._listeners]
        self._give(numbers, numbers.events / seconds if seconds else None, listeners, ended=True)

    def _rate(self) -> float | None:
        (first, before), (last, after) = self._passed[0], self._passed[-1]
        return (after - before) / (last - first) if last > first else None

    def _give(
        self, numbers: Numbers, rate: float | None, listeners: list[_Listener], *, ended: bool
    ) -> None:
        watching = self._watching
        seen = watching.seen()
        wanted = {one.key for one in listeners} | {one.key for one in (seen if ended else seen[:1])}
        findings = {
            key: one
            for key in wanted
            if key is not None and (one := watching.findings(key)) is not None
        }
        self.frame = Frame(self.title, ended, numbers, rate, watching.delay(), seen, findings)
        for listener in listeners:
            listener.wake()

    # In the thread that serves

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._listeners)

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
        with self._lock:
            for one in self._listeners:
                one.wake()
