"""The live page of a service: what it has committed, and what its status says.

Governing rule: it is told after each commit, and looked at after each turn of the loop, in the
thread of that; and it does nothing that could wait.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from abers_connectors.live.feed import Feed
from abers_connectors.live.frames import Numbers
from abers_connectors.report.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abers_connectors.kafka.shard import Shard, Work
    from abers_connectors.kafka.status import Status

__all__ = ["ServicePage"]


class ServicePage:
    """What a service shows.

    Parameters
    ----------
    app
        Its name.
    status
        What it tells of itself.
    clock
        Monotonic, in seconds.

    Attributes
    ----------
    feed
        Gives frames to the server.
    """

    def __init__(
        self, app: str, status: Status, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._status, self._watching = status, Watching()
        self.feed = Feed(app, self._watching, self._numbers, clock=clock)

    def take(self, shard: Shard, work: Work) -> None:
        """Gather what was committed."""
        if work.outputs is not None:
            self._watching.take(shard.processor, work.outputs)

    def look(self, shards: Sequence[Shard]) -> None:
        """Show how the shards are, if it is time to."""
        self._watching.hold({one.place.partition: one.processor for one in shards})
        self.feed.tick()

    def _numbers(self) -> Numbers:
        view = self._status.view()
        gauges = view.gauges.values()
        clocks = [one.clock for one in gauges if one.clock is not None]
        return Numbers(
            events=view.counts.records.total(),
            dead=dict(view.counts.dead),
            waiting=(sum(one.pending for one in gauges), sum(one.early for one in gauges)),
            lag=sum(view.lags.values()),
            behind=max(view.now - max(clocks), 0.0) / 1000 if clocks else None,
            hints=tuple(view.hints),
            ready=view.ready,
        )
