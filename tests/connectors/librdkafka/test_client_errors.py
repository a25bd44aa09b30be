from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.librdkafka import connection
from abers_connectors.librdkafka.connection import translated_errors


@pytest.mark.parametrize(
    ("error", "raised", "words"),
    [
        (KafkaError(KafkaError.FENCED_INSTANCE_ID), BrokerError, "took the place of this one"),
        (
            KafkaError(KafkaError._FATAL, "Static consumer fenced by other consumer"),  # noqa: SLF001
            BrokerError,
            "joined its group again when the coordinator had failed",
        ),
        (
            KafkaError(KafkaError.INVALID_PRODUCER_EPOCH),
            BrokerError,
            "took the place of this one, or a broker failed while it ended a transaction",
        ),
        (
            KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED),
            ConfigError,
            "reading: a permission is missing",
        ),
        (KafkaError(KafkaError._TRANSPORT, "gone"), BrokerError, "reading: gone"),  # noqa: SLF001
    ],
)
def test_errors_become_those_of_abers(
    error: KafkaError, raised: type[Exception], words: str
) -> None:
    """A fenced process, a missing permission and everything else differ."""
    with pytest.raises(raised, match=words), translated_errors("reading"):
        raise KafkaException(error)


def test_the_names_of_errors_are_the_clients() -> None:
    """Each error that the code names exists under this name."""
    names = connection.TRANSIENT | connection._FENCED_PRODUCER | connection._FORBIDDEN  # noqa: SLF001
    for name in names:
        assert KafkaError(getattr(KafkaError, name)).name() == name
