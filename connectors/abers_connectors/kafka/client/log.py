"""The reader beside the group.

Governing rule: what is asked is asked anew, and what is told is true whatever
transactions are open.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from kafka import KafkaConsumer
from kafka import errors as told

from abers_connectors.kafka.client._common import FETCH_WAIT, to_client, translated
from abers_connectors.kafka.client_settings import reaching
from abers_connectors.kafka.home import named
from abers_connectors.kafka.telling import stuck
from abers_connectors.kafka.transport import Bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers_connectors.kafka.transport import Partition, Record
    from abers_connectors.kafka.watchdog import Watchdog

__all__ = ["Log"]

_PATIENCE = 200  # ms of one look at what has come
_ANSWER = 1000  # ms until it is looked who leads now


class Log:
    """Reads partitions without being a member of the group; a `transport.Reader`.

    Parameters
    ----------
    group
        Whose committed offsets are asked for.
    settings, watchdog
        As of `Group`.
    """

    def __init__(self, group: str, *, settings: Mapping[str, Any], watchdog: Watchdog) -> None:
        self._watchdog = watchdog
        common = {
            "enable_auto_commit": False,
            "auto_offset_reset": "none",
            "allow_auto_create_topics": False,
            "fetch_max_wait_ms": FETCH_WAIT,
            "metrics_enabled": False,
            **settings,
        }
        # The first client of a service, so whatever is wrong with the way to the brokers shows.
        with watchdog.call("connect"), reaching(settings):
            # A member would do for the committed offsets, were it not that it answers with what
            # an earlier request of its own, given up by a poll, had found.
            self._committed = KafkaConsumer(
                group_id=group,
                isolation_level="read_committed",
                max_partition_fetch_bytes=8 << 20,
                **common,
            )
            # Asked of a reader of committed records only, an end hides what an open
            # transaction is in front of.
            self._all = KafkaConsumer(isolation_level="read_uncommitted", **common)

    def partitions(self, topic: str) -> int:
        """Count the partitions of a topic; 0 if there is no such topic."""
        with self._watchdog.call("metadata"), translated(f"topic {topic}"):
            return len(self._all.partitions_for_topic(topic) or ())

    def committed(self, partition: Partition) -> int | None:
        """Give the offset that the group committed, after any open transaction has ended."""
        with self._watchdog.call("committed"), translated(f"offset of {named(partition)}"):
            offset: int | None = self._committed.committed(to_client(partition))
        return offset

    def bounds(self, partition: Partition) -> Bounds:
        """Give its bounds; the end counts open transactions."""
        known = to_client(partition)
        with self._watchdog.call("bounds"), translated(f"bounds of {named(partition)}"):
            start = _asked(self._all, self._all.beginning_offsets, [known])[known]
            return Bounds(start, _asked(self._all, self._all.end_offsets, [known])[known])

    def stable_end(self, partition: Partition) -> int:
        """Give the offset before which every transaction has ended."""
        known = to_client(partition)
        with self._watchdog.call("end"), translated(f"end of {named(partition)}"):
            end: int = _asked(self._committed, self._committed.end_offsets, [known])[known]
            return end

    def at_time(self, partition: Partition, time_: int) -> int | None:
        """Give the first offset whose record is of a time or later; None if there is none."""
        known = to_client(partition)
        with self._watchdog.call("time"), translated(f"a time of {named(partition)}"):
            found = _asked(self._all, self._all.offsets_for_times, {known: time_})[known]
        return None if found is None else cast("int", found.offset)

    def read(self, partition: Partition, start: int, end: int) -> Iterator[Sequence[Record]]:
        """Give the committed records from one offset to before another, waiting for them."""
        known = to_client(partition)
        self._committed.assign([known])
        self._committed.seek(known, start)
        position, moved = start, time.monotonic()
        while position < end:
            with self._watchdog.call("read"), translated(f"reading {named(partition)}"):
                found = self._committed.poll(_PATIENCE).get(known, [])
                now_at = self._committed.position(known)
            if now_at > position:
                position, moved = now_at, time.monotonic()
            elif time.monotonic() - moved > self._watchdog.seconds:
                raise stuck(partition, position, end)
            yield [one for one in found if one.offset < end]

    def close(self) -> None:
        """Close."""
        with self._watchdog.call("close"), translated("closing"):
            self._committed.close()
            self._all.close()


def _asked(client: Any, ask: Callable[..., Any], what: object) -> Any:  # noqa: ANN401
    """Ask a leader for offsets, and where it does not answer find out who leads now.

    Told by a broker that another one leads, kafka-python 3.0.12 asks the same one again until
    its time is over, and does not find out by itself.
    """
    while True:
        with suppress(told.KafkaTimeoutError):
            return ask(what, timeout_ms=_ANSWER)
        with suppress(told.RetriableError):
            client.topics()  # which reads anew who leads what
