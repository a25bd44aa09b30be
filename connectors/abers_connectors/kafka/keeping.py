"""What the service does beside its batches: snapshots, and telling how it is.

Governing rule: nothing here may stop the loop or fail it. A snapshot that cannot
be saved costs time at the next restart, and nothing else.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from abers_connectors.kafka.saving import Saver
from abers_connectors.kafka.unmatched import Unmatched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abers_connectors.kafka.home import Home
    from abers_connectors.kafka.shard import Shard
    from abers_connectors.kafka.snapshots import Snapshots
    from abers_connectors.kafka.status import Status
    from abers_connectors.kafka.transport import Consumer
    from abers_connectors.notify import Supervisor

__all__ = ["Keeping"]

_LOOKS = 1.0  # seconds between two looks at how far behind the service is

_log = logging.getLogger(__name__)


class Keeping:
    """Saves snapshots in the background, tells the lag, and when all is ready.

    Parameters
    ----------
    home
        Which application.
    snapshots
        Where they go; None if there are none.
    every
        How many records lie between two of a shard, whichever processes applied them.
    consumer
        Knows the lag.
    status
        Is told.
    supervisor
        Is told once that all is ready.
    trim
        Called with the number of a shard of which a snapshot was saved, in the background.
    clock
        Monotonic, in seconds.
    """

    def __init__(  # noqa: PLR0913 - what there is to keep
        self,
        home: Home,
        snapshots: Snapshots | None,
        *,
        every: int,
        consumer: Consumer,
        status: Status,
        supervisor: Supervisor,
        trim: Callable[[int], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._home, self._every = home, every
        self._consumer, self._status, self._clock = consumer, status, clock
        self._saver = None if snapshots is None else Saver(snapshots.save, trim)
        self._unmatched = Unmatched()
        self._looked = clock()
        self._supervisor: Supervisor | None = supervisor

    def __call__(self, shards: Sequence[Shard]) -> None:
        """Do what is due."""
        if self._saver is not None:
            self._save(self._saver, shards)
            self._tell(self._saver)
        if self._clock() - self._looked >= _LOOKS:
            self._looked = self._clock()
            self._look(shards)
        if self._supervisor is not None and self._status.view().ready:
            self._supervisor.ready()
            self._supervisor = None

    def close(self) -> None:
        """Give up what is not done."""
        if self._saver is not None:
            self._saver.close(0.0)

    def _save(self, saver: Saver, shards: Sequence[Shard]) -> None:
        """Begin a snapshot of the shard that has waited longest, if none is under way."""
        due = [shard for shard in shards if shard.unsaved >= self._every]
        if not due or saver.busy():
            return
        shard = max(due, key=lambda one: one.unsaved)
        shard.unsaved = 0
        make = partial(self._home.saved, shard.processor, shard.place)
        saver.start(shard.place.partition, shard.place.changelog, make)

    def _tell(self, saver: Saver) -> None:
        for one in saver.finished():
            self._status.saved(well=one.error is None)
            place = {
                "topic": self._home.changelog,
                "partition": one.partition,
                "offset": one.offset,
            }
            if one.error is None:
                _log.info("snapshot of %d bytes in %.1f s", one.size, one.seconds, extra=place)
            else:
                _log.warning("snapshot not saved: %s", one.error, extra=place)

    def _look(self, shards: Sequence[Shard]) -> None:
        lags: dict[tuple[str, int], int] = {}
        for shard in shards:
            for partition in self._home.partitions(shard.place.partition):
                lag = self._consumer.reached(partition).lag
                if lag is not None:
                    lags[partition] = lag
        self._status.lag(lags)
        self._status.weigh(shards)
        if told := self._unmatched.look(shards, self._status.usual_delay()):
            self._status.hint(told)
            _log.warning(told)
