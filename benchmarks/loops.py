"""The service compared with a bare loop: `python -m benchmarks.loops LOOP CLIENT …`.

Both read the same two topics in batches of equal size, in a transaction each, with the same client
settings. The bare loop writes the bytes of predictions and changelog that the service wrote to
other topics before, and does nothing else. The figures are
observations per second between the first commit and the last, and the processor time of this
process in microseconds an input, and an observation and its label are two.
"""

from __future__ import annotations

import logging
import sys
from itertools import cycle
from time import perf_counter, process_time, time_ns
from typing import TYPE_CHECKING, Any, NamedTuple

import confluent_kafka
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition

from abers_connectors.config.model import load
from abers_connectors.kafka.assembly import open_worker
from abers_connectors.process import Supervisor
from abers_connectors.runtime.application import Application

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOPS = ("bare", "abers", "abers, protected")


class Written(NamedTuple):
    """What the service has written, to be written once more."""

    predictions: list[bytes]
    changelog: list[bytes]

    @classmethod
    def of(cls, bootstrap: str, topics: str) -> Written:
        """Read it."""
        return cls(*(_values(bootstrap, f"{topics}.{one}") for one in ("predictions", "changelog")))


def _values(bootstrap: str, topic: str) -> list[bytes]:
    partition, found = TopicPartition(topic, 0), list[bytes]()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    end = consumer.end_offsets([partition])[partition]
    while consumer.position(partition) < end:
        found += [one.value for part in consumer.poll(100).values() for one in part]
    consumer.close()
    return found


class Start(NamedTuple):
    """The moment of the first commit, and the inputs in it."""

    inputs: int
    wall: float
    cpu: float

    @classmethod
    def now(cls, inputs: int) -> Start:
        """Take the time."""
        return cls(inputs, perf_counter(), process_time())

    def figures(self, inputs: int) -> tuple[float, float]:
        """Return observations a second, and microseconds of processor time an input."""
        count = inputs - self.inputs
        wall, cpu = perf_counter() - self.wall, process_time() - self.cpu
        return count / 2 / wall, 1e6 * cpu / count


def settings(client: str, bootstrap: str, topics: str) -> dict[str, object]:
    """Return the configuration of a service over topics with names that begin alike."""
    return {
        "task.scores": "probability",
        "kafka.client": client,
        "kafka.bootstrap_servers": bootstrap,
        "kafka.application_id": f"{topics}-{time_ns()}",
        "kafka.changelog": f"{topics}.changelog",
        "kafka.observations": f"{topics}.observations",
        "kafka.labels": f"{topics}.labels",
        "kafka.predictions": f"{topics}.predictions",
        "kafka.dead_letters": f"{topics}.dead",
        "http.enabled": False,
    }


def bare_kafka_python(
    flags: Mapping[str, object], batch: int, count: int, written: Written
) -> tuple[float, float]:
    """Read and write in transactions, and do nothing between."""
    client = {"bootstrap_servers": flags["kafka.bootstrap_servers"], "metrics_enabled": False}
    inputs = [flags["kafka.observations"], flags["kafka.labels"]]
    producer = KafkaProducer(
        transactional_id=flags["kafka.application_id"],
        retry_backoff_ms=5,
        linger_ms=1000,
        batch_size=1 << 19,
        compression_type="lz4",
        **client,
    )
    producer.init_transactions()
    consumer = KafkaConsumer(
        *inputs,
        group_id=flags["kafka.application_id"],
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        **client,
    )
    predictions, changelog = cycle(written.predictions), cycle(written.changelog)
    done, started = 0, None
    while done < 2 * count:
        records: list[Any] = []
        while len(records) < min(batch, 2 * count - done):
            for some in consumer.poll(100, max_records=batch - len(records)).values():
                records += some
        producer.begin_transaction()
        for one in records:
            if one.topic == inputs[0]:
                producer.send(
                    flags["kafka.predictions"],
                    next(predictions),
                    one.key,
                    partition=one.partition,
                    timestamp_ms=one.timestamp,
                )
        producer.send(flags["kafka.changelog"], next(changelog), partition=0)
        ends = {TopicPartition(one.topic, one.partition): one.offset + 1 for one in records}
        offsets = {partition: OffsetAndMetadata(end) for partition, end in ends.items()}
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        producer.commit_transaction()
        done += len(records)
        started = started or Start.now(done)
    assert started is not None  # noqa: S101 - there are records
    found = started.figures(done)
    consumer.close()
    producer.close()
    return found


def bare_librdkafka(
    flags: Mapping[str, Any], batch: int, count: int, written: Written
) -> tuple[float, float]:
    """Read and write in transactions, and do nothing between."""
    client = {"bootstrap.servers": flags["kafka.bootstrap_servers"]}
    inputs = [flags["kafka.observations"], flags["kafka.labels"]]
    producer = confluent_kafka.Producer(
        {
            **client,
            "transactional.id": flags["kafka.application_id"],
            "linger.ms": 1000,
            "batch.size": 1 << 19,
            "compression.type": "lz4",
        }
    )
    producer.init_transactions()
    consumer = confluent_kafka.Consumer(
        {
            **client,
            "group.id": flags["kafka.application_id"],
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.subscribe(inputs)
    predictions, changelog = cycle(written.predictions), cycle(written.changelog)
    done, started = 0, None
    while done < 2 * count:
        records: list[Any] = consumer.consume(min(batch, 2 * count - done), 60)
        producer.begin_transaction()
        ends: dict[Any, int] = {}
        for one in records:
            topic, partition = one.topic(), one.partition()
            if topic == inputs[0]:
                time_ = one.timestamp()[1]
                producer.produce(
                    flags["kafka.predictions"],
                    next(predictions),
                    one.key(),
                    partition,
                    timestamp=time_,
                )
            ends[topic, partition] = one.offset() + 1
        producer.produce(flags["kafka.changelog"], next(changelog), partition=0)
        offsets = [
            confluent_kafka.TopicPartition(topic, number, end)
            for (topic, number), end in ends.items()
        ]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
        producer.commit_transaction()
        done += len(records)
        started = started or Start.now(done)
    assert started is not None  # noqa: S101 - there are records
    found = started.figures(done)
    consumer.close()
    producer.close()
    return found


def abers(
    flags: Mapping[str, object], batch: int, count: int, probability: str = "merged"
) -> tuple[float, float]:
    """Serve."""
    more = {"kafka.max_records": batch, "calibrator.probability": probability}
    config = load(flags={**flags, **more}, environ={})
    started, done = None, 0
    with open_worker(config, Application.of(config), None, Supervisor({})) as service:
        while done < 2 * count:
            service.turn()
            done = sum(service.status.view().counts.records.values())
            if done:
                started = started or Start.now(done)
        assert started is not None  # noqa: S101 - there are records
        return started.figures(done)


def main(name: str, client: str, bootstrap: str, topics: str, before: str, *sizes: str) -> None:
    """Run a loop over topics; the service has written to those with names like `before`."""
    batch, count = map(int, sizes)
    flags = settings(client, bootstrap, topics)
    if name == LOOPS[0]:
        bare = {"kafka-python": bare_kafka_python, "librdkafka": bare_librdkafka}[client]
        rate, cpu = bare(flags, batch, count, Written.of(bootstrap, before))
    else:
        rate, cpu = abers(flags, batch, count, "merged" if name == LOOPS[1] else "protected")
    sys.stdout.write(f"{rate} {cpu}\n")


if __name__ == "__main__":
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    main(*sys.argv[1:])
