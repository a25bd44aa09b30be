"""Records of a campaign: observations, late labels, and everything that a topic should not hold.

They are drawn from a seed alone, and the reason that the dead letter of each bad record must have
is known beforehand.
"""

from __future__ import annotations

import heapq
import json
import time
from collections import Counter
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka import KafkaProducer
from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.chaos.tasks import BINARY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.connectors.kafka.chaos.application import Application
    from tests.connectors.kafka.chaos.tasks import Task

__all__ = [
    "LIMIT",
    "MODELS",
    "START",
    "Sent",
    "Traffic",
    "bad_record",
    "made",
    "observed",
    "with_any_keys",
]

START = 1_700_000_000_000
LIMIT = 2_000
"""Bytes that a record may have; the configuration must say so."""

MODELS = 9

_STEP = 10  # ms between two observations
_MEAN_DELAY = 15_000  # ms of a label
_CODECS = (None, "gzip", "snappy", "lz4", "zstd")
_TOMBSTONE = "tombstone"
_METADATA_AGE = 3_000  # ms after which partitions are found that were added


class Sent(NamedTuple):
    """A record to be written, with the reason if it is not an event."""

    topic: str
    key: bytes | None
    value: bytes | None
    time: int
    reason: str | None = None
    id: str | None = None  # of an observation that is to be predicted
    headers: Sequence[tuple[str, bytes]] = ()  # more of them


def made(seed: int, count: int, task: Task = BINARY) -> Iterator[Sent]:
    """Return observations and their labels, in the order of their times."""
    random = Random(seed)  # noqa: S311 - not for secrets
    due: list[tuple[int, int, Sent]] = []
    for number in range(count):
        now = START + number * _STEP
        while due and due[0][0] <= now:
            yield heapq.heappop(due)[2]
        key = f"model-{random.randrange(MODELS)}"
        for one in observed(random, number, now, key, task):
            if one.topic == "labels":
                heapq.heappush(due, (one.time, number, one))
            else:
                yield one
        if random.random() < 0.01:
            yield bad_record(random, number, now, key, task)
    for _, _, one in sorted(due):
        yield one


def observed(  # noqa: PLR0913, PLR0917 - of one observation
    random: Random, number: int, now: int, key: str, task: Task, mean_delay: float = _MEAN_DELAY
) -> Iterator[Sent]:
    """Return an observation; a few come twice, and some have no label, several or an early one."""
    name, brought = f"o{number}", task.asked(random)
    value = _json(id=name, time=now, model=key, **brought)
    yield Sent("observations", key.encode(), value, now, id=name)
    if random.random() < 0.01:
        yield Sent("observations", key.encode(), value, now, id=name)
    if random.random() < 0.05:
        return
    early = random.random() < 0.02
    delay = -1 if early else int(random.expovariate(1 / mean_delay))
    label = _json(id=name, time=now + delay, model=key, label=task.answered(random, brought))
    for _ in range(1 + (random.random() < 0.02)):
        yield Sent("labels", key.encode(), label, max(now + delay, START))


def bad_record(random: Random, number: int, now: int, model: str, task: Task) -> Sent:
    """Return a record that is not an event, of one of all kinds."""
    key, topic = model.encode(), random.choice(["observations", "labels"])
    bare: dict[str, Any] = {"id": f"p{number}", "time": now, "model": model}
    brought, wrong = task.asked(random), [*task.bad]
    if topic == "labels":
        brought = {"label": task.answered(random, brought)}
        wrong = [("bad-label", {"label": "maybe"})]
    good = bare | brought
    kinds: list[tuple[str, bytes | None]] = [
        ("bad-json", b'{"id": "b"'),
        ("bad-json", b""),
        ("bad-json", b'{"a":' * 300),
        ("bad-record", b"[0.5, 1]"),
        ("missing-field", _json(**bare)),
        ("missing-field", _json(time=now, model=model, **brought)),
        *((reason, _json(**bare | instead)) for reason, instead in wrong),
        ("bad-time", _json(**good | {"time": "noon"})),
        ("bad-id", _json(**good | {"id": [1]})),
        ("bad-model", _json(**good | {"model": [1]})),
        ("time-in-future", _json(**good | {"time": now + 3_600_000})),
        ("not-utf8", b'{"id": "b\xff", "time": 5, "score": 1}'),
        ("schema-registry", b"\0\0\0\0\x11\xff\x01ab"),
        ("too-large", _json(**good) + b" " * LIMIT),
        ("null-key", _json(**good)),
        (_TOMBSTONE, None),
    ]
    reason, value = random.choice(kinds)
    return Sent(topic, None if reason == "null-key" else key, value, now, reason)


def _json(**fields: Any) -> bytes:  # noqa: ANN401
    return json.dumps(fields).encode()


def with_any_keys(records: Iterator[Sent], seed: int) -> Iterator[Sent]:
    """Yield records under keys that say nothing of their models; some have none."""
    random = Random(seed)  # noqa: S311 - not for secrets
    for one in records:
        if one.reason != "null-key":  # which is none where keys may be any
            bare = random.random() < 0.1 and one.value is not None  # this client writes no such one
            yield one._replace(key=None if bare else random.randbytes(4))


class Traffic:
    """Writes the records, in chunks that are compressed in turn by each codec.

    Attributes
    ----------
    ids
        Observations that were written, and are to be predicted.
    poison
        Topic, partition and offset of each record that is not an event, and the reason.
    count
        Number of records that were written.
    """

    def __init__(
        self, application: Application, seed: int, count: int, task: Task = BINARY
    ) -> None:
        """Connect."""
        self.application, self.left = application, made(seed, count, task)
        self.ids: set[str] = set()
        self.poison: dict[tuple[str, int, int], str] = {}
        self.count = 0
        client = application.broker.client
        self._producers = [
            KafkaProducer(
                **client,
                compression_type=one,
                linger_ms=20,
                acks="all",
                metadata_max_age_ms=_METADATA_AGE,
                delivery_timeout_ms=1000 * PATIENCE,
                max_block_ms=1000 * PATIENCE,
            )
            for one in _CODECS
        ]
        self._turn = 0

    def play(self, count: int, rate: float = 1e9) -> int:
        """Write a number of records, at a limited rate, and return the number written."""
        began, written = time.monotonic(), 0
        while written < count:
            chunk = [*islice(self.left, min(200, count - written))]
            if not chunk:
                break
            self.write(chunk)
            written += len(chunk)
            time.sleep(max(0.0, began + written / rate - time.monotonic()))
        return written

    def write(self, chunk: Sequence[Sent]) -> None:
        """Write some records, and wait until the brokers have them."""
        producer = self._producers[self._turn % len(self._producers)]
        self._turn += 1
        topics = self.application.topics
        sent = [
            producer.send(
                topics[one.topic],
                one.value,
                key=one.key,
                timestamp_ms=one.time,
                headers=[("trace", b"%d" % one.time), *one.headers],
            )
            for one in chunk
        ]
        for one, future in zip(chunk, sent, strict=True):
            there = future.get(timeout=PATIENCE)  # in order: the next chunk has another producer
            if one.reason is not None:
                self.poison[there.topic, there.partition, there.offset] = one.reason
            elif one.id is not None:
                self.ids.add(one.id)
        self.count += len(chunk)

    def close(self) -> None:
        """Close."""
        for one in self._producers:
            one.close()

    def kinds(self) -> Counter[str]:
        """Return the number of records that are not events, by reason."""
        return Counter(self.poison.values())
