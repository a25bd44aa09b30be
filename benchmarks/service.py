"""The service on a broker of its own: its rate, that of a bare loop, and the delay of predictions.

Both clients are measured in the same rounds.

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
    from collections.abc import Iterator, Mapping

    from benchmarks.plan import Plan

BARE, SERVICE, SHARE = "bare", "abers", "share of the bare loop"
PROTECTED = "abers, protected"
CPU = "µs of processor time an input"
DEFAULT, FAST = "kafka-python", "librdkafka"
CLIENTS = (DEFAULT, FAST)
SCRIPT = [sys.executable, str(ROOT / "scripts" / "kafka-broker"), "--optimized"]
NO_BROKER = "Not measured: there is no broker here."
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
    if not broker_here():
        return Section(title, NO_BROKER, {})
    with broker(SCRIPT) as bootstrap:
        parts = [_rates(plan, bootstrap), _latency(plan, bootstrap)]
    values = {key: spread for _, found in parts for key, spread in found.items()}
    return Section(title, "".join(body for body, _ in parts), values)


def broker_here() -> bool:
    """Return whether a broker can be had; it is fetched."""
    return not subprocess.run([*SCRIPT, "--fetch"], check=False, capture_output=True).returncode  # noqa: S603 - of ours


@contextmanager
def broker(script: list[str]) -> Iterator[str]:
    """Start a broker, and return its address."""
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - of ours
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        try:
            yield process.stdout.readline().split()[1]
        finally:
            process.terminate()


def create(bootstrap: str, topics: str, suffixes: tuple[str, ...] = _SUFFIXES) -> None:
    """Create the topics of a service, with names that begin alike."""
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


class _Loops:
    """The loops of a client in batches of a size, each over topics of its own."""

    def __init__(self, client: str, batch: int, count: int, bootstrap: str) -> None:
        self._client, self._batch, self._count = client, batch, count
        self._bootstrap = bootstrap
        self.cpu: dict[str, list[float]] = {}
        self.shares: list[float] = []
        self._bare = 0.0
        self._before, _, _ = self._ran(SERVICE)  # what it wrote is what the bare loop writes

    def run(self, name: str) -> float:
        """Return thousands of inputs a second."""
        _, rate, cpu = self._ran(name)
        if name == BARE:
            self._bare = rate
        elif name == SERVICE:
            self.shares.append(rate / self._bare)
        self.cpu.setdefault(name, []).append(cpu)
        return 2 * rate / 1000

    def _ran(self, name: str) -> tuple[str, float, float]:
        """Run a loop over topics of its own; return their name, its rate and processor time."""
        topics = f"rates-{time.time_ns()}"
        create(self._bootstrap, topics)
        _written(self._bootstrap, topics, self._count)
        before = topics if name == SERVICE else self._before
        words = [name, self._client, self._bootstrap, topics, before]
        sizes = [str(self._batch), str(self._count)]
        command = [sys.executable, "-m", "benchmarks.loops", *words, *sizes]
        rate, cpu = map(float, subprocess.check_output(command, cwd=ROOT).split())  # noqa: S603 - of ours
        return topics, rate, cpu


def _rates(plan: Plan, bootstrap: str) -> tuple[str, dict[Key, Spread]]:
    count = plan.replayed // 2
    rows: list[list[object]] = []
    values: dict[Key, Spread] = {}
    whole = count >= _MANY
    loops = [
        (client, batch, _Loops(client, batch, count, bootstrap))
        for batch in (BATCHES if whole else BATCHES[-1:])
        for client in CLIENTS
    ]
    names = (BARE, SERVICE, PROTECTED)
    measures = {
        f"{name} {client} {batch}": partial(one.run, name)
        for client, batch, one in loops
        for name in names
    }
    found = in_turns(_ROUNDS if whole else 1, measures)
    for client, batch, one in loops:
        rates = [found[f"{name} {client} {batch}"] for name in names]
        cpu = [Spread.of(one.cpu[name]) for name in names]
        share = Spread.of(one.shares)
        rows.append([f"{client}, {size(batch)}", *rates, share, *cpu])
        of = "" if client == DEFAULT else f" {client}"
        values |= {
            ("service", BARE + of, batch): rates[0],
            ("service", SERVICE + of, batch): rates[1],
            ("service", SHARE + of, batch): share,
        }
        values[("service", CPU + of, batch)] = cpu[1]
        values[("service", f"{CPU}, {PROTECTED}{of}", batch)] = cpu[2]
    body = (
        "### Compared with a bare loop\n\nThousands of inputs a second, half of them observations"
        f" and half their labels. {size(2 * count)} of them wait in two topics of one partition;"
        " read, and written in a transaction of so many records. A bare loop writes the bytes of"
        " predictions and changelog that abers wrote before, and does nothing else; abers decodes"
        " both, merges them by time, calibrates, and writes predictions and a changelog. The"
        " columns are those of calibrated probabilities without and with protection, which is the"
        " default. Broker and loop share the machine. The processor time is that of the loop's"
        " process.\n\n"
        + table(
            ["client, records a transaction", *names, SHARE, *(f"{one}, µs" for one in names)], rows
        )
    )
    return body, values


def _latency(plan: Plan, bootstrap: str) -> tuple[str, dict[Key, Spread]]:
    spans = max(4.0, plan.replayed / 5_000)
    rows: list[list[object]] = []
    values: dict[Key, Spread] = {}
    for client in CLIENTS:
        late = lateness(client, bootstrap, spans)
        found = {MEDIAN: float(np.median(late)), TAIL: float(np.quantile(late, 0.99))}
        spreads = [Spread.of([value]) for value in found.values()]
        of = "" if client == DEFAULT else f" {client}"
        values |= {
            ("late", name + of, _EVENTS): one for name, one in zip(found, spreads, strict=True)
        }
        rows.append([client, *spreads, size(len(late))])
    body = (
        f"### How late a prediction is\n\n{_EVENTS} events a second, half of them labels, for"
        f" {spans:.0f} s; a snapshot every {size(_SNAPSHOTS)} records. Milliseconds from the time"
        " of the observation's record to the moment at which a reader of committed records has"
        " the prediction.\n\n" + table(["", MEDIAN, TAIL, "predictions"], rows)
    )
    return body, values


def lateness(
    client: str, bootstrap: str, spans: float, more: Mapping[str, object] | None = None
) -> list[float]:
    """Return how late each prediction of a service is, in milliseconds; `more` configures it."""
    topics = f"latency-{time.time_ns()}"
    create(bootstrap, topics)
    with (
        TemporaryDirectory() as folder,
        _serving(client, bootstrap, topics, Path(folder), more or {}),
    ):
        return _late(bootstrap, topics, spans)


@contextmanager
def _serving(
    client: str, bootstrap: str, topics: str, folder: Path, more: Mapping[str, object]
) -> Iterator[None]:
    from benchmarks.loops import settings  # noqa: PLC0415 - it needs an extra

    flags: dict[str, object] = {**settings(client, bootstrap, topics), **more}
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
    command = [sys.executable, "-m", "abers_connectors", "run", str(config), "--create-topics"]
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
