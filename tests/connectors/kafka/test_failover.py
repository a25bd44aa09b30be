"""Faults of three brokers: nothing is lost or doubled, and the time until predictions go on."""

from __future__ import annotations

import json
import signal
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from tests.connectors.kafka.brokers import PATIENCE, Broker
from tests.connectors.kafka.chaos.application import Application
from tests.connectors.kafka.chaos.campaign import SECTIONS
from tests.connectors.kafka.chaos.judge import judge
from tests.connectors.kafka.chaos.results import Result, record
from tests.connectors.kafka.chaos.workers import Supervisor, Worker
from tests.connectors.kafka.clients import CLIENTS

from abers_connectors.errors import CONFIG, UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PARTITIONS, NODES = 3, 3
# After so long the controller takes a broker for dead; a busy machine keeps its brokers alive.
SESSION = ("broker.session.timeout.ms=3000", "broker.heartbeat.interval.ms=500")
TRANSACTION = 20  # seconds, in which others lead what a dead broker has led
PATIENT = {
    "stall_timeout": "60s",
    "session_timeout": "30s",
    "transaction_timeout": f"{TRANSACTION}s",
}
START = 1_700_000_000_000

on_each_client = pytest.mark.parametrize("client", CLIENTS)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Broker]:
    """Return three brokers."""
    started = Broker.started("--nodes", str(NODES), "--properties", *SESSION)
    started.settle()
    yield started
    started.stop()


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
        """End."""
        self.finished()
        self._producer.close()

    def finished(self) -> int:
        """Write no more; return how many observations were written."""
        self._over.set()
        self.join()
        return self.count

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


@dataclass
class Scene:
    """An application in which predictions flow."""

    application: Application
    supervisor: Supervisor
    worker: Worker
    flow: Flow
    seen: Seen
    kills: int = 0
    since: float = 0.0  # when predictions could go on
    seconds: float = 0.0  # until they did

    @property
    def broker(self) -> Broker:
        """The brokers."""
        return self.application.broker

    def until(self, done: Callable[[], bool]) -> None:
        """Read predictions until a condition holds, while no worker has ended finally."""
        self.seen.until(done, self.supervisor.require_all)

    def wait(self, seconds: float) -> None:
        """Read predictions for some seconds."""
        until = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= until)

    def goes_on(self) -> None:
        """Read until each partition has predictions of observations that are written from now."""
        written = self.flow.count
        self.until(lambda: self.seen.beyond(written))
        self.seconds = time.monotonic() - self.since

    def kill(self, *nodes: int) -> None:
        """Kill nodes."""
        for node in nodes:
            self.broker.kill(node)
        self.kills += len(nodes)
        self.since = time.monotonic()

    def await_leaders(self, gone: int) -> None:
        """Wait until others lead what a node has led."""
        self.until(lambda: not self.broker.leaders() & {gone, -1})
        took = time.monotonic() - self.since
        print(f"others led after {took:.1f} s")  # noqa: T201 - what the test is for

    def start(self, *nodes: int) -> None:
        """Start nodes again, and wait for all copies."""
        for node in nodes:
            self.broker.start(node)
        self.since = max(self.since, time.monotonic())
        self.until(self.broker.whole)


def dies(scene: Scene, node: int) -> None:
    """Kill a node, and start it again when predictions have gone on."""
    scene.kill(node)
    scene.await_leaders(node)
    scene.goes_on()
    scene.start(node)


def leader_dies(scene: Scene) -> None:
    """Kill the leader of a partition."""
    dies(scene, scene.broker.leader(scene.application.topics["observations"], 0))


def group_coordinator_dies(scene: Scene) -> None:
    """Kill the coordinator of the group."""
    dies(scene, scene.broker.coordinator("__consumer_offsets", scene.application.name))


def transaction_coordinator_dies(scene: Scene) -> None:
    """Kill the coordinator of the worker's transactions."""
    dies(scene, scene.broker.coordinator("__transaction_state", f"{scene.application.name}-0"))


def two_die(scene: Scene) -> None:
    """Kill two nodes, so that no partition has enough replicas, and start them again."""
    scene.kill(2, 3)
    scene.wait(3)
    scene.start(2, 3)
    scene.goes_on()


def all_die(scene: Scene) -> None:
    """Kill all nodes, and start them again."""
    scene.kill(1, 2, 3)
    scene.wait(3)
    scene.start(1, 2, 3)
    scene.goes_on()


def one_hangs(scene: Scene) -> None:
    """Stop a node from answering; its connections stay open."""
    scene.broker.pause(1)
    scene.since = time.monotonic()
    scene.await_leaders(1)
    scene.goes_on()
    scene.broker.resume(1)
    scene.until(scene.broker.whole)


def partitions_move(scene: Scene) -> None:
    """Let a worker join, so that partitions move to it, and leave again."""
    scene.supervisor.add("1", leave_group_on_close=True, **PATIENT)
    scene.until(lambda: scene.application.seated("1"))
    scene.supervisor.retire("1")
    scene.since = time.monotonic()
    scene.goes_on()


def commit_is_late(scene: Scene) -> None:
    """Stop the worker until the brokers have aborted its open transaction, and resume it."""
    scene.worker.send(signal.SIGSTOP)
    scene.wait(1.5 * TRANSACTION)
    scene.worker.send(signal.SIGCONT)
    scene.since = time.monotonic()
    scene.goes_on()


def outputs_are_refused(scene: Scene) -> None:
    """Let the topic of predictions refuse every record for a while."""
    topic = scene.application.topics["predictions"]
    scene.broker.configure(topic, {"max.message.bytes": "128"})  # markers fit
    scene.wait(3)
    scene.broker.configure(topic, {"max.message.bytes": str(1 << 20)})
    scene.since = time.monotonic()
    scene.goes_on()


FAULTS: dict[str, Callable[[Scene], None]] = {
    "the leader of a partition is killed": leader_dies,
    "the coordinator of the group is killed": group_coordinator_dies,
    "the coordinator of transactions is killed": transaction_coordinator_dies,
    "two of three brokers are killed, and start again": two_die,
    "all brokers are killed, and start again": all_die,
    "a broker hangs": one_hangs,
    "partitions move to another process, and back": partitions_move,
    "a process is stopped past the time-out of its transaction": commit_is_late,
    "a topic refuses all outputs for a while, as too large": outputs_are_refused,
}


@pytest.mark.kafka
@pytest.mark.long
@on_each_client
@pytest.mark.parametrize("fault", FAULTS)
def test_predictions_go_on_after(fault: str, client: str, cluster: Broker, tmp_path: Path) -> None:
    """Every observation has one prediction, the state is equal, and a process ends only with 75."""
    sections = SECTIONS | {"kafka": CLIENTS[client]}
    application = Application(cluster, tmp_path, PARTITIONS, **sections)
    supervisor = Supervisor(application)
    worker = supervisor.add("0", **PATIENT)
    seen = Seen(application)
    try:
        with Flow(application) as flow:
            scene = Scene(application, supervisor, worker, flow, seen)
            scene.goes_on()
            FAULTS[fault](scene)
            count = flow.finished()
        scene.until(lambda: len({*seen.ids}) == count)
        supervisor.retire("0")
        found = judge(application, {str(number) for number in range(count)}, {})
    finally:
        seen.close()
        supervisor.close()
    exits = [code for one in supervisor.retired for code in one.exits]
    assert {*exits} <= {0, UNAVAILABLE}
    record(
        Result(
            fault,
            client,
            scene.kills,
            found.lost,
            found.duplicates,
            found.states_equal,
            exits.count(UNAVAILABLE),
            scene.seconds,
        )
    )


@pytest.mark.kafka
@pytest.mark.long
@on_each_client
def test_an_input_that_was_made_anew_is_refused(
    client: str, cluster: Broker, tmp_path: Path
) -> None:
    """A process that finds another topic under the name of its input ends with 78."""
    application = Application(cluster, tmp_path, PARTITIONS, kafka=CLIENTS[client], **SECTIONS)
    worker, seen = Worker(application, "0", **PATIENT), Seen(application)
    try:
        with Flow(application) as flow:
            seen.until(lambda: seen.beyond(0), lambda: None)
            flow.finished()
        worker.stop()
        cluster.recreate(application.topics["observations"], PARTITIONS)
        worker.start()
        assert worker.ended() == CONFIG
    finally:
        seen.close()
        worker.kill()
        worker.process.wait()
