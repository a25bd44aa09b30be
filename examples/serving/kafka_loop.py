"""A plain loop of confluent-kafka with a durable processor: each record is applied once.

Run `pip install abers confluent-kafka`, and then

    python examples/serving/kafka_loop.py localhost:9092 TOPIC ./state

A record of the topic is JSON: `{"id": "a1", "time": 0, "score": 0.83}` or, as its label,
`{"id": "a1", "time": 5, "label": 1}`. Times are in milliseconds. It prints each prediction.

The offsets are stored with the state, so neither a group nor transactions are needed. After a crash
the loop goes on after the last batch that is on disk: what that had printed is not printed again,
so read predictions that must not be missed from the state, by a `Follower`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from abers.stream import DurableProcessor, Event, Label, Observation

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCH, WAIT = 500, 1.0  # records and seconds


class Record(msgspec.Struct):
    """The value of a record."""

    id: str
    time: int
    score: float | None = None
    label: int | None = None

    def event(self) -> Event:
        """Return the event."""
        if self.label is None:
            return Observation(self.id, self.time, score=self.score)
        return Label(self.id, self.time, value=self.label)


def batches(consumer: Consumer, topic: str, position: dict[str, int]) -> Iterator[list[Event]]:
    """Yield events from a position on, which moves with them; what is no event is shown."""
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    starts = {n: position.get(str(n), OFFSET_BEGINNING) for n in partitions}
    consumer.assign([TopicPartition(topic, n, start) for n, start in starts.items()])
    while True:
        events: list[Event] = []
        for message in consumer.consume(BATCH, WAIT):
            if message.error():
                raise KafkaException(message.error())
            number, offset = message.partition(), message.offset() or 0
            try:
                events.append(msgspec.json.decode(message.value() or b"", type=Record).event())
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                print(f"offset {offset} of partition {number}: {error}", file=sys.stderr)
            position[str(number)] = offset + 1
        yield events


def main(bootstrap: str, topic: str, state: str) -> None:
    """Process records until Ctrl-C."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    consumer = Consumer(settings)
    with DurableProcessor(state) as durable:
        position: dict[str, int] = durable.position or {}
        for events in filter(None, batches(consumer, topic, position)):
            outputs = durable.process(events, position)
            for one in outputs.predictions:
                print(msgspec.json.encode(one).decode(), flush=True)
            for _, letter in outputs.dead_letters:
                print(f"{letter.reason}: {letter.detail}", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
