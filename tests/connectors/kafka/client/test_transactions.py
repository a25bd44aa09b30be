from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaProducer
from tests.connectors.kafka.client.joining import member, out_of_reach, settled, writer

from abers.exceptions import BrokerError
from abers_connectors.kafka.client.ending import end_again, last_committed
from abers_connectors.kafka.transport import Partition, TransactionError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
    producer = writer(broker, watchdog, seen)
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


def test_a_partition_without_a_leader(
    brokers: Callable[..., Broker], tmp_path: Path, watchdog: Watchdog
) -> None:
    """What lies on a disk that failed is named, and nothing else."""
    kept, failing = tmp_path / "kept", tmp_path / "failing"
    own = brokers(
        "--properties",
        f"log.dirs={kept},{failing}",
        f"metadata.log.dir={kept}",
        "log.flush.offset.checkpoint.interval.ms=100",
    )
    producer = writer(own, watchdog, own.create())
    names = [own.create() for _ in range(4)]  # where there is less
    partitions = [Partition(name, 0) for name in names]
    lost = {one for one in partitions if (failing / f"{one.topic}-0").is_dir()}
    assert lost
    assert lost != {*partitions}
    assert producer.leaderless(partitions) == []
    failing.rename(tmp_path / "failed")
    failing.touch()
    while not (found := producer.leaderless(partitions)):
        time.sleep(0.05)
    assert {*found} == lost
    producer.close()


def test_namesake_fences(broker: Broker, topics: Callable[..., str], watchdog: Watchdog) -> None:
    """Who comes with the same identity ends the transactions of the one before."""
    topic = topics()
    group = member(broker, watchdog, "a", topic)
    (owner,) = settled(group, owned=1)
    zombie = writer(broker, watchdog, topic)
    zombie.begin()
    zombie.send(Partition(topic, 0), None, b"never")
    heir = writer(broker, watchdog, topic)
    with pytest.raises(BrokerError, match="took the place of this one"):
        zombie.commit({Partition(topic, 0): 1}, owner.proof)
    assert broker.consume(topic) == []
    heir.close()
    group.close()


def test_end_that_the_brokers_lost(
    brokers: Callable[..., Broker], watchdog: Watchdog, tmp_path: Path
) -> None:
    """What a broker that was killed leaves open is not committed with what is written next."""
    broker = brokers("--dir", tmp_path)
    topic = broker.create("predictions", 3)
    before = KafkaProducer(
        **broker.client, transactional_id=f"id-{topic}", transaction_timeout_ms=1000
    )
    before.init_transactions()
    before.begin_transaction()
    for number in range(3):
        before.send(topic, b"never", partition=number)
    before.flush()
    assert broker.process is not None
    broker.process.kill()
    broker.process.wait()
    broker = brokers("--dir", tmp_path)  # later than the transaction's time-out
    after = writer(broker, watchdog, topic)
    after.begin()
    for number in range(3):
        after.send(Partition(topic, number), None, b"once")
    after.commit({}, f"group-of-{topic}")
    assert [one.value for one in broker.consume(topic)] == 3 * [b"once"]
    after.close()


def test_a_request_whose_coordinator_is_out_of_reach_is_sent_again(
    broker: Broker, topics: Callable[..., str], watchdog: Watchdog, reader: Callable[[str], Log]
) -> None:
    """The transaction is committed, offsets and all, as soon as the coordinator can be reached."""
    topic = topics()
    here = Partition(topic, 0)
    producer = writer(broker, watchdog, topic, timeout=60)
    producer.begin()
    producer.send(here, None, b"once")
    producer._producer.flush()  # noqa: SLF001 - until then there is nothing to cut off
    out_of_reach(producer._producer._sender._client)  # noqa: SLF001
    committing = threading.Thread(
        target=producer.commit, args=({here: 1}, f"group-of-{topic}"), daemon=True
    )
    committing.start()
    committing.join(60)
    assert not committing.is_alive()
    assert [one.value for one in broker.consume(topic)] == [b"once"]
    assert reader(topic).committed(here) == 1
    producer.close()


@pytest.mark.parametrize("committing", [False, True])
def test_a_client_that_began_anew_has_committed_nothing(
    committing: bool,  # noqa: FBT001 - a parameter of the test
    broker: Broker,
    topics: Callable[..., str],
    watchdog: Watchdog,
    reader: Callable[[str], Log],
) -> None:
    """A new epoch aborts the transaction, before a commit or in it, whatever the client says."""
    topic = topics()
    here = Partition(topic, 0)
    producer = writer(broker, watchdog, topic)
    client = producer._producer  # noqa: SLF001 - when it begins anew nobody can tell it
    manager = client._transaction_manager  # noqa: SLF001

    def begin_anew() -> None:
        client.flush()
        with manager._lock:  # noqa: SLF001 - so that nothing comes between
            ending = manager.begin_commit() if committing else None
            manager.bump_producer_id_and_epoch()
        client._sender.wakeup()  # noqa: SLF001
        if ending is not None:
            ending.wait()
        while manager.is_bumping_epoch():
            pass

    producer.begin()
    producer.send(here, None, b"never")
    if committing:
        client.commit_transaction = begin_anew
    else:
        begin_anew()
    with pytest.raises(TransactionError, match="the transaction was aborted"):
        producer.commit({here: 1}, f"group-of-{topic}")
    assert broker.consume(topic) == []
    assert reader(topic).committed(here) is None
    producer.begin()
    producer.send(here, None, b"once")
    producer.commit({here: 1}, f"group-of-{topic}")
    assert [one.value for one in broker.consume(topic)] == [b"once"]
    producer.close()


def test_last_end(broker: Broker, topics: Callable[..., str]) -> None:
    """How the last transaction ended is known until the next client of its identity comes."""
    topic = topics("predictions", 2)

    def known() -> bool | None:
        return last_committed(f"id-{topic}", [topic], broker.client, seconds=10)

    assert known() is None
    client = KafkaProducer(**broker.client, transactional_id=f"id-{topic}")
    client.init_transactions()
    assert known() is None
    for ending, committed in ((client.commit_transaction, True), (client.abort_transaction, False)):
        client.begin_transaction()
        client.send(topic, b"one", partition=0)
        client.flush()
        assert known() is False, "open, so it is aborted when the next one comes"
        ending()
        assert known() is committed
        end_again(client, [topic], "g", committed=committed)
        assert known() is committed
    client.close()
    assert [one.value for one in broker.consume(topic)] == [b"one"]
