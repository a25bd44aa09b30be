"""Live pages of a service and of a replay.

Both show what passes and change none of it. They are updated in the thread that works, and never
wait.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Self

from abers_connectors.config.sections import HttpSection
from abers_connectors.dashboard.feed import Feed, StreamCounts
from abers_connectors.dashboard.observer import Observer
from abers_connectors.dashboard.server import serving
from abers_connectors.exit_codes import show

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers.stream import Outputs, Processor
    from abers_connectors.replay.options import Period
    from abers_connectors.runtime.status import Status
    from abers_connectors.runtime.task import BatchResult, StreamTask

__all__ = ["ReplayPage", "ServicePage"]

_INTERRUPT_CHECK = 1.0  # seconds between two checks whether the command was interrupted


class ServicePage:
    """Live page of a service: what it has committed, and its status.

    It is updated after each commit and after each turn of the loop. Its feed has the frames for the
    server. Dates are in the zone.
    """

    def __init__(
        self,
        app: str,
        status: Status,
        zone: str = "UTC",
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._status, self._observer = status, Observer(index=status.models)
        self.feed = Feed(app, self._observer, self._counts, zone=zone, clock=clock)

    def take(self, task: StreamTask, result: BatchResult) -> None:
        """Add what was committed."""
        if result.outputs is not None:
            self._observer.take(task.processor, result.outputs)

    def refresh(self, tasks: Sequence[StreamTask]) -> None:
        """Make a frame of the tasks, if one is due."""
        self._observer.hold({one.checkpoint.partition: one.processor for one in tasks})
        self.feed.tick()

    def _counts(self) -> StreamCounts:
        """Return the counts of the stream over all partitions."""
        view = self._status.view()
        gauges = view.gauges.values()
        clocks = [one.clock for one in gauges if one.clock is not None]
        return StreamCounts(
            observations=view.counts.records["observations"],
            labels=view.counts.records["labels"],
            dead=dict(view.counts.dead),
            waiting=(sum(one.pending for one in gauges), sum(one.early for one in gauges)),
            lag=sum(view.lags.values()) + sum(view.router_lags.values()),
            behind=max(view.now - max(clocks), 0.0) / 1000 if clocks else None,
            hints=tuple(view.hints),
            largest=tuple(view.largest if len(view.largest) > 1 else ()),
            ready=view.ready,
            since=view.started,
        )


class ReplayPage:
    """Live page of a replay, served in a `with` block on a free port of this machine.

    The title is the stream; of a path the page shows the name of the file. Dates are in the zone,
    and a reference period is drawn. A replay without a pace is only processed in smaller batches,
    so that there is something to see.
    """

    def __init__(self, title: str, zone: str = "UTC", reference: Period | None = None) -> None:
        self._observer = Observer(reference)
        self._feed = Feed(Path(title).name, self._observer, self._counts, zone=zone)
        self._processors: Sequence[Processor] = ()
        self._dead: Mapping[str, int] = {}
        self._fraction: Callable[[], float | None] = lambda: None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Serve the page, and print its address."""
        self.url = self._stack.enter_context(serving(HttpSection(port=0), None, self._feed))
        show(f"The live page is at {self.url}/", err=True)
        return self

    def __exit__(self, *error: object) -> None:
        """Stop serving."""
        self._stack.close()

    def watch(
        self,
        processors: Sequence[Processor],
        dead: Mapping[str, int],
        fraction: Callable[[], float | None],
    ) -> None:
        """Show these processors from now on.

        The replay keeps counting its dead letters by reason. `fraction` returns the share of the
        stream that was read, if known.
        """
        self._processors, self._dead, self._fraction = processors, dead, fraction
        self._observer.hold(dict(enumerate(processors)))

    def take(self, processor: Processor, outputs: Outputs) -> None:
        """Add the outputs of one of the processors."""
        self._observer.take(processor, outputs)
        self.refresh()

    def refresh(self) -> None:
        """Make a frame, if one is due."""
        self._feed.tick()

    def stay(self) -> None:
        """Show the result until the command is interrupted."""
        show(f"It stays at {self.url}/ until Ctrl-C.", err=True)
        try:
            self._feed.end()
            # An interrupt just before a wait does not end it.
            while not Event().wait(_INTERRUPT_CHECK):
                pass
        except KeyboardInterrupt:
            return

    def _counts(self) -> StreamCounts:
        counters = [one.counters for one in self._processors]
        return StreamCounts(
            observations=sum(one["observations"] for one in counters),
            labels=sum(one["labels_in"] for one in counters),
            dead=dict(self._dead),
            waiting=self._observer.waiting(),
            read=self._fraction(),
        )
