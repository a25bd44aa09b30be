"""A reader that follows the topics of routers, and keeps what is deleted there later."""

from __future__ import annotations

import re
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from tests.connectors.kafka.brokers import PATIENCE, patiently

if TYPE_CHECKING:
    from kafka.consumer.fetcher import ConsumerRecord
    from tests.connectors.kafka.chaos.application import Application

__all__ = ["RoutedTap"]

_LOOK = 1.0  # seconds between two questions for topics


class RoutedTap:
    """Reads the routed records of all generations from their beginning, in a thread.

    Attributes
    ----------
    records
        Committed records by generation, each in the order in which they were read.
    """

    def __init__(self, application: Application) -> None:
        """Start to follow."""
        self._application = application
        self._named = re.compile(rf"{re.escape(application.name)}\.routed(?:-(\d+))?")
        self.records: dict[int, list[ConsumerRecord]] = defaultdict(list)
        self._followed: dict[TopicPartition, int] = {}  # with their generations
        self._looked, self._ended = 0.0, threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> dict[int, list[ConsumerRecord]]:
        """Read to the ends, and return the records by generation, partition and offset."""
        self._ended.set()
        self._thread.join()
        if self._failed is not None:
            raise self._failed
        return {
            generation: sorted(
                self.records[generation], key=lambda one: (one.partition, one.offset)
            )
            for generation in sorted(self.records)
        }

    def _run(self) -> None:
        try:
            with patiently(self._consumer) as consumer:
                while not self._ended.is_set():
                    self._turn(consumer)
                self._finish(consumer)
        except BaseException as error:  # noqa: BLE001 - raised by `close`
            self._failed = error

    def _consumer(self) -> KafkaConsumer:
        return KafkaConsumer(
            **self._application.broker.client,
            group_id=None,
            isolation_level="read_committed",
            auto_offset_reset="none",  # what was deleted unread is an error
            metadata_max_age_ms=1_000,
        )

    def _turn(self, consumer: KafkaConsumer) -> None:
        try:
            if time.monotonic() - self._looked > _LOOK:
                self._look(consumer)
            if not self._followed:
                self._ended.wait(0.1)
                return
            polled = consumer.poll(timeout_ms=200)
        except KafkaError as error:
            if not error.retriable:
                raise
            return
        for partition, records in polled.items():
            self.records[self._followed[partition]] += records

    def _look(self, consumer: KafkaConsumer) -> None:
        """Follow topics of routers that are new."""
        for topic in consumer.topics():
            found = self._named.fullmatch(topic)
            if found is None:
                continue
            parts = [TopicPartition(topic, n) for n in consumer.partitions_for_topic(topic) or ()]
            new = [one for one in parts if one not in self._followed]
            if new:
                self._followed |= dict.fromkeys(new, int(found[1] or 1))
                consumer.assign([*self._followed])
                for one in new:
                    consumer.seek(one, 0)
        self._looked = time.monotonic()

    def _finish(self, consumer: KafkaConsumer) -> None:
        """Read to the ends of the topics, to which nobody writes any more."""
        self._look(consumer)
        parts = [*self._followed]
        self._application.broker.await_transactions(*{one.topic for one in parts})
        ends = consumer.end_offsets(parts)
        deadline = time.monotonic() + PATIENCE
        while any((consumer.position(one) or 0) < ends[one] for one in parts):
            assert time.monotonic() < deadline
            self._turn(consumer)
