"""The transport of kafka-python."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from abers_connectors.kafka.consumer import GroupConsumer
from abers_connectors.kafka.producer import TransactionalProducer
from abers_connectors.kafka.reader import PartitionReader
from abers_connectors.kafka.settings import client_settings

if TYPE_CHECKING:
    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.runtime.transport import Transport
    from abers_connectors.runtime.watchdog import Watchdog

__all__ = ["KafkaPythonTransport", "open_transport"]


class KafkaPythonTransport:
    """A `runtime.transport.Transport`."""

    def __init__(self, kafka: KafkaSection, watchdog: Watchdog) -> None:
        common: dict[str, Any] = {"settings": client_settings(kafka), "watchdog": watchdog}
        self.reader = partial(PartitionReader, **common)
        self.producer = partial(TransactionalProducer, **common)
        self.consumer = partial(GroupConsumer, **common)


def open_transport(kafka: KafkaSection, watchdog: Watchdog) -> Transport:
    """Return the transport of a configuration; it connects when a client is opened."""
    return KafkaPythonTransport(kafka, watchdog)
