"""Whether all that a service reads and writes has a leader.

Governing rule: a service that could not commit the next record says so before the record comes.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from abers_connectors.kafka.home import named
from abers_connectors.kafka.transport import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers_connectors.kafka.home import Home
    from abers_connectors.kafka.shard import Shard
    from abers_connectors.kafka.status import Status
    from abers_connectors.kafka.transport import Producer

__all__ = ["Leaders"]

_EVERY = 1.0  # seconds

_log = logging.getLogger(__name__)


class Leaders:
    """Looks for partitions without a leader: while there are any, the service is not ready.

    Parameters
    ----------
    home
        Which application.
    outputs
        How many partitions each topic has that outputs go to.
    producer
        Knows the leaders.
    status
        Notes what is missing.
    clock
        Monotonic, in seconds.
    """

    def __init__(
        self,
        home: Home,
        outputs: Mapping[str, int],
        producer: Producer,
        status: Status,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._home, self._outputs = home, outputs
        self._producer, self._status, self._clock = producer, status, clock
        self._looked = clock()

    def __call__(self, shards: Sequence[Shard]) -> None:
        """Look, if it is time to."""
        if self._clock() - self._looked < _EVERY:
            return
        self._looked = self._clock()
        needed = {one for shard in shards for one in self._needed(shard.place.partition)}
        gone = self._producer.leaderless(sorted(needed))
        before, self._status.hindrance = self._status.hindrance, _sentence(gone)
        if self._status.hindrance == before:
            return
        if self._status.hindrance is None:
            _log.info("all partitions have a leader again")
        else:
            _log.warning(self._status.hindrance)

    def _needed(self, number: int) -> list[Partition]:
        """Give what a shard reads and writes."""
        written = [Partition(topic, number % count) for topic, count in self._outputs.items()]
        return [*self._home.partitions(number), self._home.log(number), *written]


def _sentence(gone: Sequence[Partition]) -> str | None:
    if not gone:
        return None
    places = ", ".join(map(named, gone))
    return f"no broker leads {places}: nothing can be committed; look at the brokers"
