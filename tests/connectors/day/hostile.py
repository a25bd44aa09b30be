"""A hostile producer: what it writes, and what must become of each record."""

from __future__ import annotations

import math
import time
from random import Random
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from tests.connectors.day.records import MODELS
from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.chaos.traffic import Sent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Message
    from tests.connectors.day.schemas import Schemas
    from tests.connectors.kafka.chaos.application import Application

__all__ = ["LIMIT", "Hostile"]

LIMIT = 100_000
"""Bytes that a record may have; the configuration must say so."""

_HUGE = 900_000  # bytes; a record of a broker may have 1,048,588
_EACH = 25  # records of each kind
_BOMBS, _REPEATS = 8, 10
_AGE = 400 * 86_400_000  # ms: a time that nobody believes
_NOWHERE = 2_000_000_000  # a schema that the registry does not know


class Hostile:
    """Writes a flood of records of all bad kinds, and of names of models that nobody knows.

    Parameters
    ----------
    application
        The application.
    schemas
        The schemas of its records.
    seed
        Seed of the draws.
    names
        Number of names of models.

    Attributes
    ----------
    poison
        Topic, partition and offset of each record that is not an event, and the reason.
    ids
        Observations that are to be predicted.
    strangers
        Ids of the observations of models that nobody knows.
    """

    def __init__(self, application: Application, schemas: Schemas, seed: int, names: int) -> None:
        """Connect."""
        self.poison: dict[tuple[str, int, int], str] = {}
        self.ids: set[str] = set()
        self.strangers: set[str] = set()
        self._topics, self._schemas, self._names = application.topics, schemas, names
        self._random = Random(seed)  # noqa: S311 - not for secrets
        self._producer = Producer(
            {
                "bootstrap.servers": application.broker.bootstrap,
                "compression.type": "lz4",
                "message.timeout.ms": 1000 * PATIENCE,
                "log_level": 2,  # it says that the brokers have stopped
            }
        )

    def flood(self) -> None:
        """Write all, as fast as the brokers take it."""
        for one in self._all():
            while True:
                try:
                    self._write(one)
                    break
                except BufferError:  # the brokers are slower
                    self._producer.poll(0.1)
            self._producer.poll(0)
        assert self._producer.flush(PATIENCE) == 0

    def _write(self, one: Sent) -> None:
        def delivered(error: object, there: Message) -> None:
            assert error is None, error
            topic, partition, offset = there.topic(), there.partition(), there.offset()
            assert topic is not None
            assert partition is not None
            assert offset is not None
            if one.reason is not None:
                self.poison[topic, partition, offset] = one.reason
            elif one.id is not None:
                self.ids.add(one.id)

        self._producer.produce(
            self._topics[one.topic],
            one.value,
            one.key,
            timestamp=one.time,
            headers=[*one.headers],
            on_delivery=delivered,
        )

    def _all(self) -> Iterator[Sent]:
        kinds = [*self._kinds()]
        self._random.shuffle(kinds)
        every = self._names // len(kinds)
        for number in range(self._names):
            yield self._stranger(number)
            if number % every == 0 and kinds:
                yield kinds.pop()
        yield from kinds

    def _stranger(self, number: int) -> Sent:
        """Return an observation of a model that has only this."""
        schemas, now, name = self._schemas, _now(), f"x{number}-{self._random.getrandbits(40):x}"
        more = {"channel": "x"} if schemas.evolved else {}
        self.strangers.add(name)
        value = schemas.written(
            schemas.observation, id=name, time=now, model=f"junk {name}", score=0.5, **more
        )
        return Sent("observations", self._random.randbytes(4), value, now)

    def _kinds(self) -> Iterator[Sent]:
        for number in range(_EACH):
            for reason, topic, value in self._bad(f"h{number}"):
                yield Sent(topic, self._random.randbytes(4), value, _now(), reason)
            yield from self._again(f"d{number}")
        for number in range(_BOMBS):
            yield from self._bombs(f"b{number}")

    def _bad(self, name: str) -> Iterator[tuple[str, str, bytes | None]]:
        """Yield records that are no events, with the reason and the topic."""
        schemas, random, now = self._schemas, self._random, _now()
        model = f"model-{random.randrange(MODELS)}"
        more = {"channel": "x"} if schemas.evolved else {}
        keys = {"id": name, "time": now, "model": model}

        def seen(**instead: object) -> bytes:
            fields = keys | {"score": 0.5} | more | instead
            return schemas.written(schemas.observation, **fields)

        def label(**instead: object) -> bytes:
            return schemas.written(schemas.label, **keys | {"label": 1} | instead)

        good = seen()
        yield "bad-wire-format", "observations", random.randbytes(40).replace(b"\0", b"\1")
        yield "bad-wire-format", "labels", b'{"id": "a", "label": 1}'
        yield "bad-wire-format", "observations", b""
        yield "unknown-schema", "labels", b"\0" + _NOWHERE.to_bytes(4) + good[5:]
        yield "bad-avro", "observations", good[:-5]
        yield (
            "missing-field",
            "observations",
            schemas.written(schemas.strange, order=name, amount=1.0),
        )
        yield "bad-score", "observations", seen(score=math.nan)
        yield "bad-score", "observations", seen(score=math.inf)
        yield "bad-score", "observations", seen(score=2.0)
        yield "bad-label", "labels", label(label=7)
        yield "time-in-future", "observations", seen(time=now + _AGE)
        yield "time-in-future", "labels", label(time=now + _AGE)
        yield "too-long", "observations", seen(id="i" * 1_000)
        yield "too-long", "observations", seen(model="m" * 1_000)
        yield "too-large", "observations", seen(id="i" * _HUGE)
        yield "tombstone", "labels", None

    def _again(self, name: str) -> Iterator[Sent]:
        """Yield an observation again and again, each time with another score."""
        schemas, now = self._schemas, _now()
        more = {"channel": "x"} if schemas.evolved else {}
        for number in range(_REPEATS):
            value = schemas.written(
                schemas.observation, id=name, time=now, model="model-2", score=number / 10, **more
            )
            yield Sent("observations", None, value, now, id=name)

    def _bombs(self, name: str) -> Iterator[Sent]:
        """Yield observations that are right, with headers beyond measure."""
        schemas, now = self._schemas, _now()
        more = {"channel": "x"} if schemas.evolved else {}
        many = [(f"h{number}", b"x" * 9) for number in range(4_000)]
        for kind, headers in (
            ("many", many),
            ("same", [("x", b"")] * 4_000),
            ("large", [("x", b"y" * (_HUGE // 2))]),
            ("ours", [("abers.origin", b"\0" * 21), ("abers.reason", b"junk")]),
        ):
            one = f"{name}-{kind}"
            value = schemas.written(
                schemas.observation, id=one, time=now, model="model-1", score=0.5, **more
            )
            yield Sent("observations", None, value, now, id=one, headers=headers)


def _now() -> int:
    return time.time_ns() // 1_000_000
