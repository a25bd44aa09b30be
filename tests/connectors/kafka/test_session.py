"""Session time-out of the consumer group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.connectors.kafka.brokers import unique
from tests.connectors.kafka.clients import CLIENTS, CONSUMER

from abers_connectors.config.sections import KafkaSection
from abers_connectors.kafka.connection import session_timeout

if TYPE_CHECKING:
    from tests.connectors.kafka.brokers import Broker


def section(broker: Broker, **keys: Any) -> KafkaSection:  # noqa: ANN401 - of the section
    """Return the section [kafka] of a new application."""
    return KafkaSection(
        bootstrap_servers=(broker.bootstrap,),
        application_id=unique("app"),
        observations="in",
        predictions="out",
        **keys,
    )


def test_the_session_time_out_is_that_of_the_group(broker: Broker) -> None:
    """It is the group's own, or the brokers'; that of the classic protocol is configured."""
    kafka = section(broker, **CLIENTS[CONSUMER])
    assert session_timeout(kafka, kafka.application_id) == 45
    broker.set_session_timeout(kafka.application_id, 7)
    assert session_timeout(kafka, kafka.application_id) == 7
    assert session_timeout(section(broker, session_timeout=12_000), "app") == 12
