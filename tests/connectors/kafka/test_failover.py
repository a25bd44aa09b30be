"""Faults of three brokers: nothing is lost or doubled, and the time until predictions go on."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING, Self

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.chaos.application import Application
from tests.connectors.kafka.chaos.campaign import SECTIONS
from tests.connectors.kafka.chaos.workers import Supervisor, Worker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

PARTITIONS, NODES = 3, 3
WITHIN = 5  # seconds on a machine at rest, once others have what the dead broker led
# After so long the controller takes a broker for dead; a busy machine keeps its brokers alive.
SESSION = "broker.session.timeout.ms=6000"
PATIENT = {"stall_timeout": "120s", "session_timeout": "30s", "transaction_timeout": "60s"}
START = 1_700_000_000_000


class Flow(threading.Thread):
    """Writes observations to all partitions in turn, a hundred a second, in a `with` block."""

    def __init__(self, application: Application) -> None:
        """Connect."""
        super().__init__(daemon=True)
        self._topic, self.count = application.topics["observations"], 0
        self._producer = KafkaProducer(
            **application.broker.client,
            acks="all",
            retry_backoff_ms=20,
            delivery_timeout_ms=1000 * PATIENCE,  # what is written arrives, whatever happens
        )
        self._over = threading.Event()

    def __enter__(self) -> Self:
        """Begin."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End, when all is written."""
        self._over.set()
        self.join()
        self._producer.close()

    def run(self) -> None:
        """Write."""
        while not self._over.wait(0.01):
            number = self.count
            seen = {"id": f"{number}", "time": START + number, "model": f"m{number % PARTITIONS}"}
            value = json.dumps(seen | {"score": 0.5}).encode()
            self._producer.send(
                self._topic, value, b"k", None, number % PARTITIONS, timestamp_ms=seen["time"]
            )
            self.count += 1


class Seen:
    """The committed predictions, as they arrive."""

    def __init__(self, application: Application) -> None:
        """Connect."""
        self._consumer = KafkaConsumer(
            **application.broker.client,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
        )
        topic = application.topics["predictions"]
        self._consumer.assign([TopicPartition(topic, n) for n in range(PARTITIONS)])
        self.ids: list[int] = []

    def until(self, done: Callable[[], bool], look: Callable[[], None]) -> None:
        """Read until a condition holds; checks that run meanwhile may raise to give up."""
        while not done():
            look()
            for records in self._consumer.poll(50).values():
                self.ids += [int(json.loads(one.value)["id"]) for one in records]

    def beyond(self, number: int) -> bool:
        """Return whether each partition has a prediction that was written after another."""
        return len({one % PARTITIONS for one in self.ids[-1_000:] if one > number}) == PARTITIONS

    def close(self) -> None:
        """Close."""
        self._consumer.close()


@pytest.mark.long
def test_predictions_go_on_when_any_of_three_brokers_dies(
    brokers: Callable[..., Broker], tmp_path: Path
) -> None:
    """The process survives, and no prediction is lost or doubled."""
    broker = brokers("--nodes", str(NODES), "--properties", SESSION)
    application = Application(broker, tmp_path, PARTITIONS, **SECTIONS)
    worker = Worker(application, "0", **PATIENT)

    def look() -> None:
        assert worker.process.poll() is None, worker.said()[-2_000:]

    seen = Seen(application)
    try:
        with Flow(application) as flow:
            seen.until(lambda: seen.beyond(0), look)
            for node in range(1, NODES + 1):
                killed = time.monotonic()
                broker.kill(node)
                while broker.leaders() & {node, -1}:
                    look()
                taken, written = time.monotonic(), flow.count
                seen.until(lambda: seen.beyond(written), look)  # noqa: B023 - called at once
                on, busy = time.monotonic(), os.getloadavg()[0] / (os.cpu_count() or 1)
                print(  # noqa: T201 - what the test is for
                    f"node {node}: others led after {taken - killed:.1f} s, "
                    f"predictions went on after {on - killed:.1f} s, load {busy:.1f} a core"
                )
                assert on - taken < WITHIN * max(1.0, busy)
                broker.start(node)
                while not broker.whole():
                    look()
        seen.until(lambda: len({*seen.ids}) == flow.count, look)
        assert len(seen.ids) == flow.count
    finally:
        seen.close()
        worker.kill()
        worker.process.wait()


@pytest.mark.long
@pytest.mark.parametrize("fault", ["one is paused", "two of three die", "all die"])
def test_predictions_go_on_after(
    fault: str, brokers: Callable[..., Broker], tmp_path: Path
) -> None:
    """A process that ends with 75 is started again; no prediction is lost or doubled."""
    broker = brokers("--nodes", str(NODES), "--properties", SESSION)
    application = Application(broker, tmp_path, PARTITIONS, **SECTIONS)
    supervisor = Supervisor(application)
    worker, look = supervisor.add("0", **PATIENT), supervisor.require_all
    seen = Seen(application)
    try:
        with Flow(application) as flow:
            seen.until(lambda: seen.beyond(0), look)
            if fault == "one is paused":
                broker.pause(1)
                while broker.leaders() & {1, -1}:
                    look()
                went_on(seen, flow, look, "others led what the paused broker had led")
                broker.resume(1)
            else:
                gone = range(2, NODES + 1) if fault == "two of three die" else range(1, NODES + 1)
                for node in gone:
                    broker.kill(node)
                written = flow.count
                seen.until(lambda: flow.count > written + 300, look)
                for node in gone:
                    broker.start(node)
                went_on(seen, flow, look, f"{fault}: the brokers were started again")
            while not broker.whole():
                look()
        seen.until(lambda: len({*seen.ids}) == flow.count, look)
        assert len(seen.ids) == flow.count
        assert set(worker.exits) <= {75}
    finally:
        seen.close()
        supervisor.close()


def went_on(seen: Seen, flow: Flow, look: Callable[[], None], since: str) -> None:
    """Read until all partitions have predictions of later observations, and print when."""
    began, written = time.monotonic(), flow.count
    seen.until(lambda: seen.beyond(written), look)
    print(f"{since}: predictions went on {time.monotonic() - began:.1f} s later")  # noqa: T201
