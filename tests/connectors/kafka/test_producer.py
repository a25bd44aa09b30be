from __future__ import annotations

import re
import threading
import time
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import NotCoordinatorError
from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.clients import on_each_client
from tests.connectors.kafka.joining import member, out_of_reach, settled, writer

from abers.exceptions import BrokerError
from abers_connectors.kafka.transaction_repair import (
    last_transaction_committed,
    repeat_transaction_end,
)
from abers_connectors.runtime.transport import TopicPartition, TransactionError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.kafka.client import PartitionReader
    from abers_connectors.process import Watchdog


@on_each_client
def test_who_lost_a_partition_cannot_commit(
    client: str,
    broker: Broker,
    topics: Callable[..., str],
    watchdog: Watchdog,
    reader: Callable[[str], PartitionReader],
) -> None:
    """A commit with the group metadata of an older generation aborts everything."""
    observations, labels = topics("observations", 2), topics("labels", 2)
    first = member(broker, watchdog, "a", observations, labels, client=client)
    (before,) = settled(first, owned=4)
    second = member(broker, watchdog, "b", observations, labels, client=client)
    after, _ = settled(first, second, owned=4)
    assert after.epoch > before.epoch
    assert {one.partition for one in after.assigned} == {0}
    assert len(after.assigned) == 2, "of both topics the same partitions"
    producer = writer(broker, watchdog, observations, client=client)
    producer.begin()
    producer.send(TopicPartition(observations, 1), None, b"late")
    with pytest.raises(TransactionError, match="the transaction was aborted"):
        producer.commit({TopicPartition(observations, 1): 7}, before.group_metadata)
    producer.begin()
    producer.commit({TopicPartition(observations, 0): 1}, after.group_metadata)
    log = reader(observations)
    assert log.committed(TopicPartition(observations, 0)) == 1
    assert log.committed(TopicPartition(observations, 1)) is None
    assert broker.consume(observations) == []
    for one in (producer, first, second):
        one.close()


@on_each_client
def test_a_record_of_nothing(
    client: str, broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """A record with neither key nor value is written, as a router must write it."""
    topic = topics()
    first = member(broker, watchdog, "a", topic, client=client)
    (membership,) = settled(first, owned=1)
    producer = writer(broker, watchdog, topic, client=client)
    producer.begin()
    producer.send(TopicPartition(topic, 0), None, None, [("origin", b"x")])
    producer.commit({TopicPartition(topic, 0): 0}, membership.group_metadata)
    (found,) = broker.consume(topic)
    assert (found.key or None, found.value, [*found.headers]) == (None, None, [("origin", b"x")])
    for one in (producer, first):
        one.close()


def knows_directory(log: Path, directory: Path, topic: str) -> bool:
    """Return whether the controller's log has the directory of the first partition of a topic."""
    about = directory / f"{topic}-0" / "partition.metadata"  # is written late
    if not about.exists():
        return False
    (of_topic,) = re.findall(r"topic_id: (\S+)", about.read_text())
    (of_directory,) = re.findall(r"directory.id=(\S+)", (directory / "meta.properties").read_text())
    ids = (re.escape(urlsafe_b64decode(one + "==")) for one in (of_topic, of_directory))
    pattern = re.compile(b".{,16}".join(ids), re.DOTALL)
    logs = (log / "__cluster_metadata-0").glob("*.log")
    return any(pattern.search(one.read_bytes()) for one in logs)


@on_each_client
def test_a_partition_without_a_leader(
    client: str, brokers: Callable[..., Broker], tmp_path: Path, watchdog: Watchdog
) -> None:
    """The partitions on a failed disk are named, and no others."""
    kept, failing = tmp_path / "kept", tmp_path / "failing"
    own = brokers(
        "--properties",
        f"log.dirs={kept},{failing}",
        f"metadata.log.dir={kept}",
        "log.flush.offset.checkpoint.interval.ms=100",
    )
    producer = writer(own, watchdog, own.create(), client=client)
    names = [own.create() for _ in range(4)]  # where there is less
    partitions = [TopicPartition(name, 0) for name in names]
    while not all(any((at / f"{name}-0").is_dir() for at in (kept, failing)) for name in names):
        time.sleep(0.005)  # a broker may announce a leader before it makes the directory
    lost = {one for one in partitions if (failing / f"{one.topic}-0").is_dir()}
    assert lost
    assert lost != {*partitions}
    producer.leaderless(partitions)  # asks for the next call
    assert producer.leaderless(partitions) == []
    while not all(knows_directory(kept, failing, one.topic) for one in lost):
        time.sleep(0.05)  # what fails before stays unknown
    failing.rename(tmp_path / "failed")
    failing.touch()
    while (found := {*producer.leaderless(partitions)}) != lost:
        assert found < lost
        time.sleep(0.05)
    producer.close()


@on_each_client
def test_aborts_right_after_a_record(
    client: str, broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """A transaction can be aborted before the coordinator knows of its first partition."""
    topic = topics()
    group = member(broker, watchdog, "a", topic, client=client)
    (owner,) = settled(group, owned=1)
    producer = writer(broker, watchdog, topic, client=client)
    to = TopicPartition(topic, 0)
    for number in range(30):
        producer.begin()
        producer.send(to, None, b"kept %d" % number)
        producer.commit({to: number + 1}, owner.group_metadata)
        producer.begin()
        producer.send(to, None, b"aborted")
        time.sleep(number / 5000)  # the request that adds the partition is sent after 1 ms or so
        producer.abort()
    assert [one.value for one in broker.consume(topic)] == [b"kept %d" % one for one in range(30)]
    for one in (producer, group):
        one.close()


@on_each_client
def test_namesake_fences(
    client: str, broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """A producer of the same id ends the transactions of the one before."""
    topic = topics()
    group = member(broker, watchdog, "a", topic, client=client)
    (owner,) = settled(group, owned=1)
    zombie = writer(broker, watchdog, topic, client=client)
    zombie.begin()
    zombie.send(TopicPartition(topic, 0), None, b"never")
    heir = writer(broker, watchdog, topic, client=client)
    with pytest.raises(BrokerError, match="took the place of this one"):
        zombie.commit({TopicPartition(topic, 0): 1}, owner.group_metadata)
    assert broker.consume(topic) == []
    heir.close()
    group.close()


@on_each_client
def test_end_that_the_brokers_lost(
    client: str, brokers: Callable[..., Broker], watchdog: Watchdog, tmp_path: Path
) -> None:
    """A transaction that a killed broker leaves open is not committed with the next one."""
    broker = brokers("--dir", tmp_path)
    topic = broker.create("predictions", 3)
    timeout = 5
    before = KafkaProducer(
        **broker.client, transactional_id=f"id-{topic}", transaction_timeout_ms=1000 * timeout
    )
    before.init_transactions()
    before.begin_transaction()
    for number in range(3):
        before.send(topic, b"never", partition=number)
    before.flush()
    assert broker.process is not None
    broker.process.kill()
    broker.process.wait()
    time.sleep(timeout)  # so that the transaction is overdue when the broker is back
    broker = brokers("--dir", tmp_path)
    after = writer(broker, watchdog, topic, client=client)
    group = member(broker, watchdog, "a", topic, client=client)
    (owner,) = settled(group, owned=3)
    after.begin()
    for number in range(3):
        after.send(TopicPartition(topic, number), None, b"once")
    after.commit({TopicPartition(topic, 0): 0}, owner.group_metadata)
    assert [one.value for one in broker.consume(topic)] == 3 * [b"once"]
    after.close()
    group.close()


def test_a_request_whose_coordinator_is_out_of_reach_is_sent_again(
    broker: Broker,
    topics: Callable[..., str],
    watchdog: Watchdog,
    reader: Callable[[str], PartitionReader],
) -> None:
    """The transaction is committed, offsets and all, as soon as the coordinator can be reached."""
    topic = topics()
    here = TopicPartition(topic, 0)
    producer = writer(broker, watchdog, topic, timeout=60)
    producer.begin()
    producer.send(here, None, b"once")
    producer._producer.flush()
    out_of_reach(producer._producer._sender._client)
    committing = threading.Thread(
        target=producer.commit, args=({here: 1}, f"group-of-{topic}"), daemon=True
    )
    committing.start()
    committing.join(PATIENCE)
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
    reader: Callable[[str], PartitionReader],
) -> None:
    """A new epoch aborts the transaction, before a commit or in it, whatever the client says."""
    topic = topics()
    here = TopicPartition(topic, 0)
    producer = writer(broker, watchdog, topic)
    client = producer._producer
    manager = client._transaction_manager

    def begin_anew() -> None:
        client.flush()
        with manager._lock:
            ending = manager.begin_commit() if committing else None
            manager.bump_producer_id_and_epoch()
        client._sender.wakeup()
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
    """The end of the last transaction is known until the next client of its id connects."""
    topic = topics("predictions", 2)

    def known() -> bool | None:
        return last_transaction_committed(f"id-{topic}", [topic], broker.client, seconds=10)

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
        repeat_transaction_end(client, [topic], "g", committed=committed)
        assert known() is committed
    client.close()
    assert [one.value for one in broker.consume(topic)] == [b"one"]


def test_a_coordinator_that_moved_is_found(
    broker: Broker, topics: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that asks the former coordinator, which it never forgets, is replaced."""
    topic = topics()
    asked: list[KafkaAdminClient] = []
    describe = KafkaAdminClient.describe_transactions

    def of_the_first_moved(admin: KafkaAdminClient, ids: list[str]) -> object:
        asked.append(admin)
        if admin is asked[0]:
            raise NotCoordinatorError
        return describe(admin, ids)

    monkeypatch.setattr(KafkaAdminClient, "describe_transactions", of_the_first_moved)
    assert last_transaction_committed(f"id-{topic}", [topic], broker.client, seconds=10) is None
    assert len(asked) == 2
