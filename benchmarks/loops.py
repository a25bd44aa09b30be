"""The service beside a bare loop: `python -m benchmarks.loops LOOP BOOTSTRAP TOPICS BATCH COUNT`.

Both read the same two topics in batches of equal size, in a transaction each, with the same client
settings. The bare loop writes one record per observation and does nothing else. The figure is
observations per second between the first commit and the last.
"""

from __future__ import annotations

import logging
import sys
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition

from abers_connectors.config.model import load
from abers_connectors.kafka.assembly import open_worker
from abers_connectors.runtime.application import Application
from abers_connectors.systemd import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LOOPS = ("bare", "abers")


def settings(bootstrap: str, topics: str) -> dict[str, object]:
    """Return the configuration of a service over topics whose names begin alike."""
    return {
        "task.scores": "probability",
        "kafka.bootstrap_servers": bootstrap,
        "kafka.application_id": f"{topics}-{time_ns()}",
        "kafka.changelog": f"{topics}.changelog",
        "kafka.observations": f"{topics}.observations",
        "kafka.labels": f"{topics}.labels",
        "kafka.predictions": f"{topics}.predictions",
        "kafka.dead_letters": f"{topics}.dead",
        "http.enabled": False,
    }


def bare(flags: Mapping[str, object], batch: int, count: int) -> float:
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
    with open_worker(config, Application.of(config), None, Supervisor({})) as service:
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
