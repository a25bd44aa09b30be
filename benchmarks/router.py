"""The router on a broker of its own, compared with a bare loop: `python -m benchmarks.router …`.

Both read two topics with keys of any kind, and write each record to the partition of its model, in
transactions of equally many records. The bare loop reads only the model, and merges nothing. The
third router finds the model of a label by its id; each label waits for its observation. The
processor time is that of the process, in microseconds a record.

How late predictions are is measured with a router and without, at a steady rate.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from itertools import cycle
from time import process_time
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from benchmarks.page import Section, size, table
from benchmarks.rivals import ROOT
from benchmarks.service import (
    CLIENTS,
    DEFAULT,
    MEDIAN,
    NO_BROKER,
    SCRIPT,
    TAIL,
    broker,
    broker_here,
    lateness,
)
from benchmarks.timing import Spread, in_turns

if TYPE_CHECKING:
    from benchmarks.page import Key
    from benchmarks.plan import Plan

BARE, ROUTER, BY_ID = "bare", "router", "router, labels by id"
TASKS, INPUTS, MODELS = 16, 4, 50
BATCH = 2_000
_LOOPS = (BARE, ROUTER, BY_ID)
_ROUNDS, _RECORDS = 3, 200_000
_SPANS = 30.0  # seconds in which latency is measured
_ROUTED = {"kafka.route_by": "model"}


def router(plan: Plan) -> Section:
    """Measure the processor time of a record on each client, and how late predictions are."""
    title, whole = "The router", plan.rounds > _ROUNDS
    if not broker_here():
        return Section(title, NO_BROKER, {})
    records, rounds, spans = (
        (_RECORDS, _ROUNDS, _SPANS) if whole else (2 * plan.replayed, 1, _SPANS / 10)
    )
    rows: list[list[object]] = []
    values: dict[Key, Spread] = {}
    with broker(SCRIPT) as bootstrap:
        topics = f"routes-{time.time_ns()}"
        _written(bootstrap, topics, records)
        for client in CLIENTS:
            found = in_turns(
                rounds,
                {name: _Loop(name, client, bootstrap, topics, records) for name in _LOOPS},
            )
            rows.append([client, *found.values()])
            of = "" if client == DEFAULT else f" {client}"
            for name in _LOOPS:
                values[("router", name + of, BATCH)] = found[name]
        late = _late(bootstrap, spans)
    body = (
        f"Microseconds of processor time a record, {size(BATCH)} records a transaction,"
        f" {TASKS} partitions.\n\n{table(['', *_LOOPS], rows)}\n{late}"
    )
    return Section(title, body, values)


def _late(bootstrap: str, spans: float) -> str:
    """Return a table of how late predictions are, in turns with and without a router."""
    rows: list[list[object]] = []
    for client in CLIENTS:
        for name, more in (("alone", None), ("with a router", _ROUTED)):
            found = lateness(client, bootstrap, spans, more)
            late = [float(np.quantile(found, share)) for share in (0.5, 0.99)]
            rows.append([client, name, *(Spread.of([one]) for one in late)])
    text = f"Milliseconds until a reader has a prediction, at a steady rate for {spans:.0f} s.\n\n"
    return text + table(["", "", MEDIAN, TAIL], rows)


class _Loop:
    """A loop of a client, a process a round; calling it returns its processor time a record."""

    def __init__(self, name: str, client: str, bootstrap: str, topics: str, records: int) -> None:
        self._words = [name, client, bootstrap, topics, str(records)]

    def __call__(self) -> float:
        command = [sys.executable, "-m", "benchmarks.router", *self._words]
        return float(subprocess.check_output(command, cwd=ROOT))  # noqa: S603 - of ours


def _written(bootstrap: str, topics: str, records: int) -> None:
    """Write observations and labels, keyed by id."""
    from confluent_kafka import Producer  # noqa: PLC0415 - an extra
    from kafka import KafkaAdminClient  # noqa: PLC0415 - an extra

    names = ("observations", "labels", "predictions")
    made = {"num_partitions": INPUTS, "replication_factor": 1, "configs": {"retention.ms": "-1"}}
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics({f"{topics}.{one}": made for one in names}, wait_for_metadata=True)
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 0}
    )
    began = int(time.time() * 1000) - records
    for number, model in zip(range(records // 2), cycle(range(MODELS)), strict=False):
        key, at = f"{number:032}".encode(), began + number
        one = {"id": key.decode(), "time": at, "model": f"model{model}"}
        for name, more in (("observations", {"score": 0.37}), ("labels", {"label": 1})):
            value = json.dumps(one | more).encode()
            producer.produce(f"{topics}.{name}", value, key, timestamp=at)
        if number % 1_000 == 0:
            producer.poll(0)
    producer.flush()


def _flags(client: str, bootstrap: str, topics: str) -> dict[str, object]:
    """Return the configuration of an application of its own."""
    inputs = {name: f"{topics}.{name}" for name in ("observations", "labels", "predictions")}
    kafka = {
        "client": client,
        "bootstrap_servers": bootstrap,
        "application_id": f"app-{time.time_ns()}",
        "route_by": "model",
        "partitions": TASKS,
        "max_records": BATCH,
        **inputs,
    }
    return {"kafka": kafka, "http": {"enabled": False}}


def _routed(flags: dict[str, object], records: int) -> float:
    """Route all records; return the processor time of one after the first transaction."""
    from abers_connectors.config.model import load  # noqa: PLC0415 - it needs an extra
    from abers_connectors.kafka.assembly import open_worker  # noqa: PLC0415
    from abers_connectors.kafka.topic_checks import create_topics  # noqa: PLC0415
    from abers_connectors.process import Supervisor  # noqa: PLC0415
    from abers_connectors.runtime.application import Application  # noqa: PLC0415

    config = load(flags=flags, environ={})
    create_topics(config)
    opened = open_worker(config, Application.of(config), None, Supervisor({}), stage="router")
    with opened as running:
        counted = _Counted()
        while counted.done < records:
            running.turn()
            counted.reached(sum(running.status.view().counts.routed.values()))
        return counted.cost()


def _bare(flags: dict[str, Any], records: int) -> float:
    """Do the least with the same calls of a client that routes all records."""
    from abers_connectors.config.model import load  # noqa: PLC0415 - it needs an extra
    from abers_connectors.kafka.topic_checks import create_topics  # noqa: PLC0415
    from abers_connectors.process import Watchdog  # noqa: PLC0415
    from abers_connectors.runtime.transport import TopicPartition, open_transport  # noqa: PLC0415

    config = load(flags=flags, environ={})
    create_topics(config)
    kafka = config.kafka
    assert kafka is not None  # noqa: S101 - the flags have it
    topics = [kafka.observations, str(kafka.labels)]
    transport = open_transport(kafka, Watchdog(60.0))
    group, targets = f"{kafka.application_id}-bare", range(TASKS)
    consumer = transport.consumer(topics, group, group, session_timeout=10.0, grows=True)
    producer = transport.producer(
        group, topics=[kafka.routed], group=group, timeout=10.0, compression=kafka.compression
    )
    to = [TopicPartition(kafka.routed, number) for number in targets]
    decode, known = msgspec.json.Decoder(_Model).decode, dict[str, TopicPartition]()
    counted, epoch = _Counted(), -1
    while counted.done < records:
        found = consumer.poll(0.2, BATCH)
        now = consumer.membership()
        if now.epoch != epoch:
            epoch = now.epoch
            for one in now.assigned:
                consumer.seek(one, 0)
                consumer.resume(one)
        elif found and now.group_metadata is not None:
            producer.begin()
            for some in found.values():
                for read in some:
                    model = decode(read.value or b"").model
                    target = known.setdefault(model, to[len(known) % TASKS])
                    origin = (("o", b"0" * 21),)
                    producer.send(target, read.key, read.value, origin, read.timestamp)
            ends = {part: some[-1].offset + 1 for part, some in found.items()}
            producer.commit(ends, now.group_metadata)
            counted.reached(counted.done + sum(map(len, found.values())))
    producer.close()
    consumer.close()
    return counted.cost()


class _Model(msgspec.Struct):
    """The field that a bare loop reads."""

    model: str


class _Counted:
    """Records that are routed, and the processor time since the first of them."""

    def __init__(self) -> None:
        self.done = 0
        self._first: tuple[int, float] | None = None

    def reached(self, done: int) -> None:
        """Take the number of records that are routed."""
        self.done = done
        if done and self._first is None:
            self._first = done, process_time()

    def cost(self) -> float:
        """Return microseconds a record."""
        assert self._first is not None  # noqa: S101 - there are records
        first, began = self._first
        return 1e6 * (process_time() - began) / (self.done - first)


def main(words: list[str]) -> str:
    """Return the figure of a loop."""
    name, client, bootstrap, topics, records = words
    flags = _flags(client, bootstrap, topics)
    if name == BY_ID:
        flags["input.label_fields"] = {"model": "record:observation"}
    loop = _bare if name == BARE else _routed
    return str(loop(flags, int(records)))


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1:]))
