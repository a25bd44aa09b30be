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
from abers_connectors.live.frames import Numbers
from abers_connectors.report.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from abers.stream import Outputs, Processor

__all__ = ["ReplayPage"]

_LOOK = 1.0  # seconds between two looks whether the command was interrupted


class ReplayPage:
    """Serves a page in a `with` block.

    Parameters
    ----------
    title
        What is replayed; of a path the page shows the name of the file.
    """

    def __init__(self, title: str) -> None:
        self._watching = Watching()
        self._feed = Feed(Path(title).name, self._watching, self._numbers)
        self._processors: Sequence[Processor] = ()
        self._dead: Mapping[str, int] = {}
        self._fraction: Callable[[], float | None] = lambda: None
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

    def watch(
        self,
        processors: Sequence[Processor],
        dead: Mapping[str, int],
        fraction: Callable[[], float | None],
    ) -> None:
        """Show from now on what some processors come to.

        Parameters
        ----------
        processors
            All that take part.
        dead
            Dead letters by reason, as they stand at any time.
        fraction
            Gives which share of the stream was read, if that is known.
        """
        self._processors, self._dead, self._fraction = processors, dead, fraction
        self._watching.hold(dict(enumerate(processors)))

    def take(self, processor: Processor, outputs: Outputs) -> None:
        """Gather what one of them put out."""
        self._watching.take(processor, outputs)
        self.look()

    def look(self) -> None:
        """Show how things are, if it is time to."""
        self._feed.tick()

    def stay(self) -> None:
        """Show what came of it until the command is interrupted."""
        terminal.say(f"It stays at {self.url}/ until Ctrl-C.")
        try:
            self._feed.end()
            while not Event().wait(_LOOK):  # one that comes just before a wait does not end it
                pass
        except KeyboardInterrupt:
            return

    def _numbers(self) -> Numbers:
        counts = [one.counters for one in self._processors]
        return Numbers(
            events=sum(one["observations"] + one["labels_in"] for one in counts),
            dead=dict(self._dead),
            waiting=self._watching.waiting(),
            read=self._fraction(),
        )
