"""The service on a broker of its own: its rate beside a bare loop, and the delay of predictions.

Broker, producer, service and reader share this machine, as in a small deployment. Every round is a
process of its own, the loops in turns.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from abers_connectors.kafka.topics import CHANGELOG
from benchmarks.page import Key, Section, size, table
from benchmarks.rivals import ROOT
from benchmarks.timing import Spread, in_turns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.plan import Plan

BARE, SERVICE, SHARE = "bare", "abers", "share of the bare loop"
BATCHES = (500, 2_000)
MEDIAN, TAIL = "median", "99 %"
_BEHIND = 500  # observations between one and its label
_EVENTS = 500  # a second, half of them labels
_ROUNDS = 5
_MANY = 10_000  # observations from which on all is measured, and often
_SNAPSHOTS = 2_000  # records between two
_SUFFIXES = ("observations", "labels", "predictions", "dead", "changelog")


def service(plan: Plan) -> Section:
    """Measure rates and latency; where no broker can be had, say so."""
    title = "The service on Kafka"
    script = [sys.executable, str(ROOT / "scripts" / "kafka-broker")]
    if subprocess.run([*script, "--fetch"], check=False, capture_output=True).returncode:  # noqa: S603 - of ours
        return Section(title, "Not measured: there is no broker here.", {})
    with _broker(script) as bootstrap:
        parts = [_rates(plan, bootstrap), _latency(plan, bootstrap)]
    values = {key: spread for _, found in parts for key, spread in found.items()}
    return Section(title, "".join(body for body, _ in parts), values)


@contextmanager
def _broker(script: list[str]) -> Iterator[str]:
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - of ours
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        try:
            yield process.stdout.readline().split()[1]
        finally:
            process.terminate()


def _create(bootstrap: str, topics: str, suffixes: tuple[str, ...] = _SUFFIXES) -> None:
    from kafka import KafkaAdminClient  # noqa: PLC0415 - an extra

    options = {"num_partitions": 1, "replication_factor": 1}
    configs = {suffix: {"retention.ms": "-1"} for suffix in suffixes} | {"changelog": CHANGELOG}
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics(
            {f"{topics}.{one}": options | {"configs": configs[one]} for one in suffixes},
            wait_for_metadata=True,
        )


def _event(number: int, time_: int, **fields: float) -> dict[str, Any]:
    value = {"id": f"observation-{number:08}", "time": time_, "model": "fraud", **fields}
    return {
        "value": json.dumps(value).encode(),
        "key": b"fraud",
        "partition": 0,
        "timestamp_ms": time_,
    }


def _written(bootstrap: str, topics: str, count: int) -> None:
    """Write observations, and labels some seconds of event time later."""
    from kafka import KafkaProducer  # noqa: PLC0415 - an extra

    draw = random.Random(7)  # noqa: S311 - no secret
    began = int(time.time() * 1000) - 10 * count
    with KafkaProducer(bootstrap_servers=bootstrap, linger_ms=20, batch_size=1 << 17) as producer:
        for number in range(count):
            score, at = round(draw.random(), 4), began + 10 * number
            observed = _event(number, at, score=score)
            producer.send(f"{topics}.observations", **observed)
            late = _event(number, at + 10 * _BEHIND, label=int(draw.random() < score**2))
            producer.send(f"{topics}.labels", **late)


def _rates(plan: Plan, bootstrap: str) -> tuple[str, dict[Key, Spread]]:
    count = plan.replayed // 2
    rows: list[list[object]] = []
    values: dict[Key, Spread] = {}
    whole = count >= _MANY
    for batch in BATCHES if whole else BATCHES[-1:]:
        shares: list[float] = []
        last = [0.0]

        def run(name: str, batch: int = batch, last: list[float] = last) -> float:
            topics = f"rates-{name}-{batch}-{time.time_ns()}"
            _create(bootstrap, topics)
            _written(bootstrap, topics, count)
            words = [name, bootstrap, topics, str(batch), str(count)]
            command = [sys.executable, "-m", "benchmarks.loops", *words]
            rate = float(subprocess.check_output(command, cwd=ROOT)) / 1000  # noqa: S603 - of ours
            if name == SERVICE:
                shares.append(rate / last[0])  # noqa: B023 - used within the turn
            last[0] = rate
            return rate

        found = in_turns(
            _ROUNDS if whole else 1, {name: partial(run, name) for name in (BARE, SERVICE)}
        )
        found[SHARE] = Spread.of(shares)
        values |= {("service", name, batch): spread for name, spread in found.items()}
        rows.append([size(batch), *found.values()])
    body = (
        "### Beside a bare loop\n\nThousands of observations a second, each with its label: twice"
        f" as many records. {size(count)} of them wait in two topics of one partition; read, and"
        " written in a transaction of so many records. The bare loop of kafka-python writes the"
        " bytes of each observation to another topic and does nothing else; abers decodes both,"
        " merges them by time, calibrates, and writes predictions and a changelog.\n\n"
        + table(["records a transaction", *found], rows)
    )
    return body, values


def _latency(plan: Plan, bootstrap: str) -> tuple[str, dict[Key, Spread]]:
    spans = max(4.0, plan.replayed / 5_000)
    topics = f"latency-{time.time_ns()}"
    _create(bootstrap, topics)
    with TemporaryDirectory() as folder, _serving(bootstrap, topics, Path(folder)):
        late = _late(bootstrap, topics, spans)
    found = {MEDIAN: float(np.median(late)), TAIL: float(np.quantile(late, 0.99))}
    values: dict[Key, Spread] = {
        ("late", name, _EVENTS): Spread.of([value]) for name, value in found.items()
    }
    body = (
        f"### How late a prediction is\n\n{_EVENTS} events a second, half of them labels, for"
        f" {spans:.0f} s; a snapshot every {size(_SNAPSHOTS)} records. Milliseconds from the time"
        " of the observation's record to the moment at which a reader of committed records has"
        " the prediction.\n\n"
        + table(["", *found, "predictions"], [["", *values.values(), size(len(late))]])
    )
    return body, values


@contextmanager
def _serving(bootstrap: str, topics: str, folder: Path) -> Iterator[None]:
    from benchmarks.loops import settings  # noqa: PLC0415 - it needs an extra

    flags = settings(bootstrap, topics)
    sections: dict[str, list[str]] = {
        "state": [f"path = {json.dumps(str(folder / 'state'))}", f"snapshot_every = {_SNAPSHOTS}"]
    }
    for path, value in flags.items():
        section, key = path.split(".")
        sections.setdefault(section, []).append(f"{key} = {json.dumps(value)}")
    config = folder / "abers.toml"
    config.write_text(
        "".join(f"[{name}]\n" + "\n".join(lines) + "\n" for name, lines in sections.items())
    )
    command = [sys.executable, "-m", "abers_connectors", "run", str(config)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:  # noqa: S603 - of ours
        try:
            yield
        finally:
            process.terminate()


def _late(bootstrap: str, topics: str, spans: float) -> list[float]:
    """Write at a steady rate, and read what comes of it."""
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition  # noqa: PLC0415 - an extra

    count = int(spans * _EVENTS / 2)
    warm = _EVENTS // 2  # observations before the first that counts
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        group_id=None,
        fetch_max_wait_ms=100,
    )
    consumer.assign([TopicPartition(f"{topics}.predictions", 0)])

    def write() -> None:
        draw = random.Random(7)  # noqa: S311 - no secret
        with KafkaProducer(bootstrap_servers=bootstrap) as producer:
            first = _event(0, int(time.time() * 1000), score=0.5)
            producer.send(f"{topics}.observations", **first)
            serves.wait()
            began = time.time()
            for number in range(1, warm + count):
                wait = began + 2 * number / _EVENTS - time.time()
                if wait > 0:
                    time.sleep(wait)
                now, score = int(time.time() * 1000), round(draw.random(), 4)
                producer.send(f"{topics}.observations", **_event(number, now, score=score))
                earlier = max(0, number - _EVENTS)
                producer.send(f"{topics}.labels", **_event(earlier, now, label=number % 2))

    serves = threading.Event()
    threading.Thread(target=write, daemon=True).start()
    late: list[float] = []
    while len(late) < warm + count:
        for records in consumer.poll(100).values():
            serves.set()
            now = time.time() * 1000
            late += [now - one.timestamp for one in records]
    consumer.close()
    return late[warm:]
