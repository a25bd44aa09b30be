from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.connectors.kafka.client.joining import member, settled, writer

from abers.exceptions import BrokerError
from abers_connectors.kafka.transport import Partition, TransactionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.kafka.client import Log
    from abers_connectors.kafka.watchdog import Watchdog


def test_who_lost_a_partition_cannot_commit(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog, reader: Callable[[str], Log]
) -> None:
    """An offset that is committed with the proof of an older generation aborts everything."""
    seen, told = topics("seen", 2), topics("told", 2)
    first = member(broker, watchdog, "a", seen, told)
    (before,) = settled(first, owned=4)
    second = member(broker, watchdog, "b", seen, told)
    after, _ = settled(first, second, owned=4)
    assert after.epoch > before.epoch
    assert {one.number for one in after.assigned} == {0}
    assert len(after.assigned) == 2, "of both topics the same partitions"
    producer = writer(broker, watchdog, f"id-{seen}")
    producer.begin()
    producer.send(Partition(seen, 1), None, b"late")
    with pytest.raises(TransactionError, match="the transaction was aborted"):
        producer.commit({Partition(seen, 1): 7}, before.proof)
    producer.begin()
    producer.commit({Partition(seen, 0): 1}, after.proof)
    log = reader(seen)
    assert log.committed(Partition(seen, 0)) == 1
    assert log.committed(Partition(seen, 1)) is None
    assert broker.consume(seen) == []
    for one in (producer, first, second):
        one.close()


def test_namesake_fences(broker: Broker, topics: Callable[..., str], watchdog: Watchdog) -> None:
    """Who comes with the same identity ends the transactions of the one before."""
    topic = topics()
    group = member(broker, watchdog, "a", topic)
    (owner,) = settled(group, owned=1)
    zombie = writer(broker, watchdog, f"id-{topic}")
    zombie.begin()
    zombie.send(Partition(topic, 0), None, b"never")
    heir = writer(broker, watchdog, f"id-{topic}")
    with pytest.raises(BrokerError, match="took the place of this one"):
        zombie.commit({Partition(topic, 0): 1}, owner.proof)
    assert broker.consume(topic) == []
    heir.close()
    group.close()
