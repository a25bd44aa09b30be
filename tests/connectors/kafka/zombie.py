"""Read one record, wait for a line of input, and commit: `zombie.py CLIENT BOOTSTRAP TOPIC WHEN`.

WHEN is "before" or "after" the line, at which the process takes its group metadata.

A process of its own, so that it can be stopped as a machine that hangs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.connectors.kafka.brokers import PATIENCE, Broker
from tests.connectors.kafka.joining import Reading, member, writer

from abers.exceptions import BrokerError
from abers_connectors.process import Watchdog
from abers_connectors.runtime.transport import TopicPartition

__all__ = ["started"]

_ROOT = Path(__file__).parents[3]


def started(client: str, broker: Broker, topic: str, when: str) -> subprocess.Popen[str]:
    """Start the process, and wait until it has read the record."""
    words = ["-m", "tests.connectors.kafka.zombie", client, broker.bootstrap, topic, when]
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "read\n"
    return process


def main(client: str, bootstrap: str, topic: str, when: str) -> None:
    """Print "read", and after the line of input how the commit ended."""
    broker, watchdog, here = Broker(bootstrap), Watchdog(PATIENCE), TopicPartition(topic, 0)
    producer = writer(broker, watchdog, topic, timeout=PATIENCE, client=client)
    group = member(broker, watchdog, "zombie", topic, session=3, client=client)
    reading = Reading(group, {here: 0})
    while not reading.poll(0.05, 1):
        pass
    metadata = group.membership().group_metadata
    producer.begin()
    producer.send(here, None, b"never")
    print("read", flush=True)  # noqa: T201 - it talks to the test by its output
    sys.stdin.readline()
    if when == "after":
        metadata = group.membership().group_metadata
    try:
        if metadata is not None:  # as a worker, which commits nothing outside the group
            producer.commit({here: 1}, metadata)
    except BrokerError as error:
        print(type(error).__name__, flush=True)  # noqa: T201
    else:
        print("outside" if metadata is None else "committed", flush=True)  # noqa: T201
    group.close()
    producer.close()
    watchdog.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
