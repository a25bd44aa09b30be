"""A real broker for the tests of Kafka, and functions that write to it and read from it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.kafka.brokers import PATIENCE, SCRIPT, Broker

from abers_connectors.kafka.client import PartitionReader
from abers_connectors.process import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# First, so that `-m kafka` knows of the marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use a broker or a schema registry with `kafka`."""
    servers = {"broker", "brokers", "schema_registry"}
    for item in items:
        if isinstance(item, pytest.Function) and servers & {*item.fixturenames}:
            item.add_marker("kafka")


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """Return the broker of all tests: our own, or that of `KAFKA_BOOTSTRAP`."""
    if "KAFKA_BOOTSTRAP" in os.environ:
        yield Broker(os.environ["KAFKA_BOOTSTRAP"])
        return
    started = Broker.started()
    started.settle()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def schema_registry() -> Iterator[str]:
    """Return the URL of the schema registry of all tests."""
    script = SCRIPT.with_name("schema-registry")
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready, _, url = process.stdout.readline().strip().partition(" ")
        assert ready == "ready", "scripts/schema-registry has said why"
        yield url
        process.terminate()


@pytest.fixture
def brokers() -> Iterator[Callable[..., Broker]]:
    """Start further brokers, with the options of scripts/kafka-broker."""
    running = []

    def start(*words: str, **more: Any) -> Broker:  # noqa: ANN401 - those of Broker.started
        running.append(Broker.started(*words, **more))
        running[-1].settle()
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.fixture
def topics(broker: Broker) -> Callable[..., str]:
    """Create topics: `topics("labels", 3, cleanup_policy="compact")` returns the new name."""
    return broker.create


@pytest.fixture
def produce(broker: Broker) -> Callable[..., list[int]]:
    """Write messages to a topic: `produce(topic, [Message(b"…", key=b"a")])` returns offsets."""
    return broker.produce


@pytest.fixture
def consume(broker: Broker) -> Callable[..., list[Any]]:
    """Read all records of a topic: `consume(topic, isolation="read_uncommitted")`."""
    return broker.consume


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    """Return a watchdog, which ends the tests if it finds a stall."""
    one = Watchdog(PATIENCE)
    yield one
    one.close()


@pytest.fixture
def reader(broker: Broker, watchdog: Watchdog) -> Iterator[Callable[[str], PartitionReader]]:
    """Open readers outside the group that is named after a topic."""
    with ExitStack() as stack:

        def made(topic: str) -> PartitionReader:
            log = PartitionReader(f"group-of-{topic}", settings=broker.client, watchdog=watchdog)
            stack.callback(log.close)
            return log

        yield made
