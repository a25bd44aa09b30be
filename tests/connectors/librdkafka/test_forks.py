"""The process is copied while the threads of librdkafka work."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.connectors.kafka.brokers import Message
from tests.connectors.kafka.joining import Reading, member, settled, writer

from abers.stream.background_snapshot import BackgroundSnapshotter
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.process import Watchdog

FETCHED = 30_000  # records, more than the client keeps in its queue
SIZE = 1 << 20  # bytes of a snapshot


def pieces() -> Iterator[bytes]:
    """Make a snapshot as a copy of the process does: it allocates memory and gives it back."""
    for _ in range(4):
        yield bytes(bytearray(SIZE // 4))


@pytest.mark.parametrize("forks", [50, pytest.param(1_000, marks=pytest.mark.long)])
def test_no_copy_of_the_process_hangs(
    forks: int, broker: Broker, topics: Callable[..., str], watchdog: Watchdog
) -> None:
    """Each copy is made while records are fetched and written, and none of it is lost."""
    topic, outputs = topics(), topics("outputs")
    broker.produce(topic, [Message(b"x" * 100)] * FETCHED, linger_ms=20, batch_size=1 << 17)
    group = member(broker, watchdog, "a", topic, client="librdkafka")
    (owner,) = settled(group, owned=1)
    producer = writer(broker, watchdog, outputs, client="librdkafka")
    here, reading = TopicPartition(topic, 0), Reading(group, {TopicPartition(topic, 0): 0})
    saved: list[int] = []
    snapshotter = BackgroundSnapshotter(
        lambda _, offset, made: saved.append(offset + sum(map(len, made))), stall_timeout=60
    )
    pauses: list[float] = []
    read = written = 0
    while len(pauses) < forks or snapshotter.busy():
        found = sum(map(len, reading.poll(0.01, 500).values()))
        read += found
        if not found:  # all is read: once more from the start
            group.seek(here, 0)
        producer.begin()
        for _ in range(20):
            producer.send(TopicPartition(outputs, 0), None, b"y" * 1_000)
        began = time.monotonic()
        if len(pauses) < forks and snapshotter.start(0, len(pauses), pieces):
            pauses.append(time.monotonic() - began)
        owner = group.membership()
        producer.commit({here: read}, owner.group_metadata)
        written += 20
    snapshotter.close()
    assert saved == [SIZE + number for number in range(forks)]
    assert [one for one in snapshotter.finished() if one.error is not None] == []
    assert len(broker.consume(outputs)) == written
    median, tail = np.quantile(pauses, [0.5, 0.99]) * 1000
    print(f"{forks} copies, each stopped the loop for {median:.1f} ms, 99 %: {tail:.1f} ms")  # noqa: T201
    group.close()
    producer.close()
