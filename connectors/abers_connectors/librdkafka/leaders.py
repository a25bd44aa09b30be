"""Leaders of partitions, requested in the background: the client's own request waits."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from abers_connectors.runtime.transport import TopicPartition

__all__ = ["Leaders"]

_NO_LEADER = -1
_TIMEOUT = 5.0  # seconds of a question


class Leaders:
    """Knows which partitions had no leader at the last request."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._admin = AdminClient({**settings, "log_level": 0})  # the producer logs the same
        self._thread: Thread | None = None
        self._missing = frozenset[tuple[str, int]]()

    def missing(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions that had no leader, and ask anew for the next call."""
        found = [one for one in partitions if one in self._missing]
        if self._thread is None or not self._thread.is_alive():
            topics = {one.topic for one in partitions}
            self._thread = Thread(target=self._ask, args=(topics,), name="leaders", daemon=True)
            self._thread.start()
        return found

    def close(self) -> None:
        """Wait for the end of a question."""
        if self._thread is not None:
            self._thread.join()

    def _ask(self, topics: Collection[str]) -> None:
        missing = set[tuple[str, int]]()
        with suppress(KafkaException):  # no broker answers, which the calls of the service report
            for topic in topics:
                found = self._admin.list_topics(topic, _TIMEOUT).topics[topic].partitions
                missing |= {(topic, n) for n, one in found.items() if one.leader == _NO_LEADER}
            self._missing = frozenset(missing)
