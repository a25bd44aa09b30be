"""A process that is stopped between reading and commit, for longer than its session."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from tests.connectors.kafka import zombie
from tests.connectors.kafka.brokers import Message
from tests.connectors.kafka.clients import on_each_client
from tests.connectors.kafka.joining import member, settled, writer

from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.kafka.client import PartitionReader
    from abers_connectors.process import Watchdog


@on_each_client
@pytest.mark.parametrize("when", ["before", "after"])
def test_what_a_zombie_has_read_is_not_committed(  # noqa: PLR0913, PLR0917 - parameters and fixtures
    client: str,
    when: str,
    broker: Broker,
    topics: Callable[..., str],
    watchdog: Watchdog,
    reader: Callable[[str], PartitionReader],
) -> None:
    """It commits as soon as it continues, before it hears that its partition is another's."""
    topic = topics()
    broker.produce(topic, [Message(b"one")])
    with zombie.started(client, broker, topic, when) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.send_signal(signal.SIGSTOP)
        heir = member(broker, watchdog, "heir", topic, client=client)
        settled(heir, owned=1)
        process.stdin.write("\n")
        process.stdin.flush()
        process.send_signal(signal.SIGCONT)
        ended = process.stdout.readline().strip()
        # After: unless it reads the answer to a heartbeat from before it was stopped, which counts
        # as one of now. Then the broker refuses the commit, as before.
        refused = {"TransactionError", "BrokerError"}
        assert ended in (refused | {"outside"} if when == "after" else refused)
        process.communicate()
    writer(broker, watchdog, topic, client=client).close()  # ends what the zombie left open
    assert reader(topic).committed(TopicPartition(topic, 0)) is None
    assert [one.value for one in broker.consume(topic)] == [b"one"]
    heir.close()
