"""The transport of librdkafka.

kafka-python reads partitions outside the group, repairs transactions and removes members: the state
is restored the same way, and librdkafka lacks some of the requests.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from abers_connectors.kafka.client import PartitionReader
from abers_connectors.kafka.connection import client_settings as kafka_python_settings
from abers_connectors.librdkafka.connection import client_settings
from abers_connectors.librdkafka.consumer import LibrdkafkaConsumer
from abers_connectors.librdkafka.producer import LibrdkafkaProducer

if TYPE_CHECKING:
    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.process import Watchdog
    from abers_connectors.runtime.transport import Transport

__all__ = ["LibrdkafkaTransport", "open_transport"]


class LibrdkafkaTransport:
    """The `runtime.transport.Transport` of librdkafka."""

    def __init__(self, kafka: KafkaSection, watchdog: Watchdog) -> None:
        beside = kafka_python_settings(kafka)
        settings = client_settings(kafka, beside)
        self.reader = partial(PartitionReader, settings=beside, watchdog=watchdog)
        self.producer = partial(
            LibrdkafkaProducer, settings=settings, repair_settings=beside, watchdog=watchdog
        )
        self.consumer = partial(
            LibrdkafkaConsumer,
            protocol=kafka.group_protocol,
            settings=settings,
            admin_settings=beside,
            watchdog=watchdog,
        )


def open_transport(kafka: KafkaSection, watchdog: Watchdog) -> Transport:
    """Return the transport of a configuration; it connects when a client is opened."""
    return LibrdkafkaTransport(kafka, watchdog)
