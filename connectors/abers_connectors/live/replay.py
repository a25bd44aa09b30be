"""The live page of a replay.

Governing rule: it shows what passes and changes none of it; a replay without a pace is only taken
in smaller steps, so that there is something to see.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Self

from abers_connectors import terminal
from abers_connectors.config import Http
from abers_connectors.http import serving
from abers_connectors.live.feed import Feed
from abers_connectors.live.watching import Numbers, Watching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from abers.stream import Events, Outputs
    from abers_connectors.pace import Pace
    from abers_connectors.records import Source
    from abers_connectors.running import Run

__all__ = ["ReplayPage"]

_STEP = 500  # events that are taken together where there is no pace


class ReplayPage:
    """Serves a page in a `with` block.

    Parameters
    ----------
    title
        What is replayed; of a path the page shows the name of the file.
    source
        What is read.
    """

    def __init__(self, title: str, source: Source) -> None:
        self._source = source
        self._watching = Watching()
        self._feed = Feed(Path(title).name, self._watching, self._numbers)
        self._running: Run | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Serve from now on, on a free port of this machine."""
        self.url = self._stack.enter_context(serving(Http(port=0), None, self._feed))
        terminal.say(f"The live page is at {self.url}/")
        return self

    def __exit__(
        self,
        error: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop serving."""
        self._stack.close()

    def paced(self, pace: Pace | None) -> Callable[[Events], Iterable[Events]]:
        """Divide events so that the page can be made in between."""
        if pace is None:
            return _stepwise
        pace.meanwhile(self._feed.tick)
        return pace

    def watch(self, running: Run) -> None:
        """Gather what a run puts out from now on."""
        self._running = running
        self._watching.hold({0: running.processor})
        running.onlookers.append(self._take)

    def stay(self) -> None:
        """Show what came of it until the command is interrupted."""
        self._feed.end()
        terminal.say(f"It stays at {self.url}/ until Ctrl-C.")
        try:
            Event().wait()
        except KeyboardInterrupt:
            return

    def _take(self, outputs: Outputs) -> None:
        if self._running is not None:
            self._watching.take(self._running.processor, outputs)
        self._feed.tick()

    def _numbers(self) -> Numbers:
        running = self._running
        if running is None:
            return Numbers(events=0, dead={}, waiting=(0, 0))
        counters = running.processor.counters
        return Numbers(
            events=counters["observations"] + counters["labels_in"],
            dead=dict(running.dead),
            waiting=running.processor.waiting,
            read=self._source.fraction(),
        )


def _stepwise(events: Events) -> Iterator[Events]:
    for start in range(0, len(events), _STEP):
        yield events[start : start + _STEP]
