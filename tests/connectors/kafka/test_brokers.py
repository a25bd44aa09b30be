"""The broker that tests and demonstrations start."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.kafka.brokers import PATIENCE, SCRIPT, Broker, Message, unique

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MESSAGES = [
    Message(b"a", key=b"k", time=1_000, headers=[("h", b"1")]),
    Message(None, key=b"k", time=2_000),
    Message(b"c", time=3_000, partition=1),
]


def test_what_is_written_is_read(
    topics: Callable[..., str],
    produce: Callable[..., list[int]],
    consume: Callable[..., list[Any]],
) -> None:
    """Key, value, partition, time and headers of a record are those that were written."""
    topic = topics(partitions=2)
    offsets = produce(topic, MESSAGES[:2])
    assert offsets == [0, 1]
    produce(topic, MESSAGES[2:])
    found = {(one.value, one.key, one.timestamp, tuple(one.headers)) for one in consume(topic)}
    assert found == {(one.value, one.key, one.time, tuple(one.headers)) for one in MESSAGES}
    assert {one.partition for one in consume(topic) if one.value == b"c"} == {1}


@pytest.mark.parametrize("codec", ["gzip", "lz4", "snappy", "zstd"])
def test_every_codec_is_read(
    codec: str,
    topics: Callable[..., str],
    produce: Callable[..., list[int]],
    consume: Callable[..., list[Any]],
) -> None:
    """Records that were compressed by any of Kafka's codecs are read."""
    topic = topics()
    values = [b"%d" % n * 100 for n in range(50)]
    produce(topic, [Message(value) for value in values], compression_type=codec)
    assert [one.value for one in consume(topic)] == values


def test_a_killed_broker_goes_on_where_it_was(
    brokers: Callable[..., Broker], tmp_path: Path
) -> None:
    """Killed and started again on the same folder, it is at the same port and has its data."""
    first = brokers("--dir", tmp_path / "broker")
    topic = first.create()
    first.produce(topic, [Message(b"a"), Message(b"b")], acks="all")
    assert first.process is not None
    first.process.kill()
    first.process.wait()
    second = brokers("--dir", tmp_path / "broker")
    assert second.bootstrap == first.bootstrap
    assert [one.value for one in second.consume(topic)] == [b"a", b"b"]


def test_old_records_are_kept(brokers: Callable[..., Broker]) -> None:
    """A record of years ago is deleted from a topic that says so, and from no other."""
    often = ("log.retention.check.interval.ms=100", "log.initial.task.delay.ms=100")
    broker = brokers("--properties", *often)
    week, default = broker.create(retention_ms="604800000"), unique("default")
    with broker.admin() as admin:
        admin.create_topics({default: {"num_partitions": 1, "replication_factor": 1}})
        admin.wait_for_topics([default])
    for topic in (default, week):
        broker.produce(topic, [Message(b"a", time=1_000)])
    until = time.monotonic() + PATIENCE
    while broker.consume(week):
        assert time.monotonic() < until, "nothing is ever deleted"
    assert [one.value for one in broker.consume(default)] == [b"a"]


@pytest.mark.long
def test_one_of_three_nodes_dies_and_comes_back(brokers: Callable[..., Broker]) -> None:
    """With a node killed the others take what is written; started again it has all of it."""
    cluster = brokers("--nodes", "3")
    topic = cluster.create()
    for values in ([b"a"], [b"b"]):
        cluster.produce(topic, [Message(value) for value in values], acks="all")
        cluster.kill(2)
    assert [one.value for one in cluster.consume(topic)] == [b"a", b"b"]
    cluster.start(2)
    cluster.kill(1)
    assert [one.value for one in cluster.consume(topic)] == [b"a", b"b"]


def test_a_stopped_broker_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, brokers: Callable[..., Broker], tmp_path: Path
) -> None:
    """SIGTERM stops the broker, however often it comes, and its folder is gone."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = brokers().process
    assert process is not None
    assert any(tmp_path.glob("abers-kafka-*/storage"))
    for _ in range(100):  # as when the one who stops it ends at once
        process.terminate()
    assert process.wait() == 128 + signal.SIGTERM
    assert not any(tmp_path.glob("abers-kafka-*"))


def test_a_taken_port_is_left_alone(broker: Broker) -> None:
    """A port that is in use is refused, and its owner keeps it."""
    port = broker.bootstrap.rpartition(":")[2]
    words = [sys.executable, str(SCRIPT), "--port", port]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert f"port {port} of 127.0.0.1 cannot be had" in ran.stderr
    assert broker.create()


@pytest.mark.kafka
def test_it_ends_with_whoever_started_it() -> None:
    """When the process that started the broker is killed, both are gone."""
    words = ["sh", "-c", '"$0" "$1"; true', sys.executable, str(SCRIPT)]
    parent = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline().startswith("ready ")
    parent.kill()
    assert parent.stdout.read() == ""  # the end, which comes when nobody can write any more
    parent.communicate()
