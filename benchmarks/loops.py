"""The service beside a bare loop: `python -m benchmarks.loops LOOP BOOTSTRAP TOPICS BATCH COUNT`.

Governing rule: both read the same two topics in batches of as many records, in a transaction
each, with the same settings of the client; the bare one writes one record for each observation,
and nothing else. What is told is observations a second between the first commit and the last.
"""

from __future__ import annotations

import logging
import sys
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition

from abers_connectors.config import load
from abers_connectors.kafka.serving import home_of, opened
from abers_connectors.notify import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LOOPS = ("bare", "abers")


def settings(bootstrap: str, topics: str) -> dict[str, object]:
    """Give the configuration of a service over topics whose names begin alike."""
    return {
        "task.scores": "probability",
        "kafka.bootstrap": bootstrap,
        "kafka.app": f"{topics}-{time_ns()}",
        "kafka.changelog": f"{topics}.changelog",
        "kafka.observations": f"{topics}.observations",
        "kafka.labels": f"{topics}.labels",
        "kafka.predictions": f"{topics}.predictions",
        "kafka.dead_letters": f"{topics}.dead",
        "http.enabled": False,
    }


def bare(flags: Mapping[str, object], batch: int, count: int) -> float:
    """Read and write in transactions, and do nothing between."""
    client = {"bootstrap_servers": flags["kafka.bootstrap"], "metrics_enabled": False}
    inputs = [flags["kafka.observations"], flags["kafka.labels"]]
    producer = KafkaProducer(
        transactional_id=flags["kafka.app"],
        retry_backoff_ms=5,
        linger_ms=1000,
        batch_size=1 << 19,
        compression_type="lz4",
        **client,
    )
    producer.init_transactions()
    consumer = KafkaConsumer(
        *inputs,
        group_id=flags["kafka.app"],
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        **client,
    )
    done, started = 0, 0.0
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
                    one.value,
                    one.key,
                    partition=one.partition,
                    timestamp_ms=one.timestamp,
                )
        ends = {TopicPartition(one.topic, one.partition): one.offset + 1 for one in records}
        offsets = {partition: OffsetAndMetadata(end) for partition, end in ends.items()}
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        producer.commit_transaction()
        started = started or perf_counter()
        done += len(records)
    rate = (count - batch / 2) / (perf_counter() - started)
    consumer.close()
    producer.close()
    return rate


def abers(flags: Mapping[str, object], batch: int, count: int) -> float:
    """Serve."""
    config = load(flags={**flags, "kafka.max_records": batch}, environ={})
    first, started, done = 0, 0.0, 0
    with opened(config, home_of(config), None, Supervisor({})) as service:
        while done < 2 * count:
            service.turn()
            done = sum(service.status.view().counts.records.values())
            if done and not started:
                first, started = done, perf_counter()
        return (count - first / 2) / (perf_counter() - started)


if __name__ == "__main__":
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    name, bootstrap, topics, batch, count = sys.argv[1:]
    loop: Callable[[Mapping[str, object], int, int], float] = {"bare": bare, "abers": abers}[name]
    sys.stdout.write(f"{loop(settings(bootstrap, topics), int(batch), int(count))}\n")
