"""Topics of an application as the brokers describe them, and a sample of their records.

The sample shows whether the inputs are copartitioned. A key must be in one partition, the same in
both inputs. Two producers that partition differently break this without an error anywhere.
"""

from __future__ import annotations

import time
import zlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from abers_connectors.kafka.connection import new_consumer, to_client
from abers_connectors.runtime.slots import murmur2
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.runtime.transport import Record

__all__ = [
    "CHANGELOG",
    "INPUTS",
    "NEEDED",
    "NOT_AUTHORIZED",
    "NO_TOPIC",
    "ROUTED",
    "Finding",
    "Topic",
    "copartition_findings",
    "describe_topics",
    "topic_configs",
]

CHANGELOG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "LogAppendTime",
}
"""Required settings of the changelog; with others, parts of the state can be lost."""

ROUTED = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
}
"""Required settings of the topic to which routers write; with others, records can be lost."""

INPUTS = ("observations", "labels")
NEEDED = {
    **dict.fromkeys(INPUTS, ("READ",)),
    **dict.fromkeys(("predictions", "outcomes", "dead_letters", "alerts"), ("WRITE",)),
    "routed": ("READ", "WRITE"),
    "changelog": ("READ", "WRITE"),
}
"""Required permissions on a topic, by its key in the configuration."""

NO_TOPIC, NOT_AUTHORIZED = 3, 29  # error codes of Kafka's protocol


class Finding(NamedTuple):
    """A mistake in a topic, or a possible one if it is not fatal.

    Examples
    --------
    >>> print(Finding("kafka.labels", "there is no topic labels"))
    kafka.labels: there is no topic labels
    """

    where: str  # dotted path of the key in the configuration
    text: str  # what is wrong, and how to fix it
    fatal: bool = True  # whether a service must not start with it

    def __str__(self) -> str:
        """Return both as one sentence."""
        return f"{self.where}: {self.text}"


class Topic(NamedTuple):
    """A topic as the brokers describe it."""

    where: str  # dotted path of the key in the configuration
    name: str
    id: str  # another if the topic is made anew; "" if it is unknown
    error: int  # error code of Kafka's protocol; 0 if the topic exists
    partitions: int
    allowed: frozenset[str]  # operations that we may use on it
    settings: Mapping[str, str]  # empty if we may not see them


def topic_configs(admin: Any, topics: Iterable[str]) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - untyped
    """Return the configurations of topics, without those that we may not see."""
    from kafka.admin import ConfigResource, ConfigResourceType  # noqa: PLC0415 - an extra

    resources = [ConfigResource(ConfigResourceType.TOPIC, name, None) for name in topics]
    found = admin.describe_configs(resources, config_filter="all") if resources else {}
    return {
        name: {key: one["value"] for key, one in config.items()}
        for name, config in found.get("topic", {}).items()
    }


def describe_topics(admin: Any, kafka: KafkaSection, roles: Iterable[str]) -> dict[str, Topic]:  # noqa: ANN401 - untyped
    """Describe topics, by their keys in the section [kafka]."""
    used = [role for role in roles if role != "routed" or kafka.route_by is not None]
    names = {role: getattr(kafka, role) for role in used if getattr(kafka, role) is not None}
    found = {one["name"]: one for one in admin.describe_topics([*names.values()])}
    configs = topic_configs(admin, [name for name, one in found.items() if one["error_code"] == 0])
    return {
        role: Topic(
            f"kafka.{role}",
            name,
            str(found[name].get("topic_id") or ""),
            found[name]["error_code"],
            len(found[name]["partitions"]),
            frozenset(found[name]["authorized_operations"] or ()),
            configs.get(name, {}),
        )
        for role, name in names.items()
    }


_SAMPLE_RECORDS = 4_000  # of each topic, the last records of each partition
_MIN_SAMPLE_RECORDS = 10  # of each partition, however many partitions there are
_TIMEOUT = 10.0  # seconds for reading them
_MIN_KEYS = 20  # distinct keys that show how a topic is partitioned
_RECORDS_PER_KEY = 10  # from here on keys are models or segments rather than ids
_WIDTH = 40  # characters of a key in a message


class _KeyPartition(NamedTuple):
    key: bytes | None
    partition: int
    model: str | None  # None if it cannot be read


_Sample = dict[str, list[_KeyPartition]]


def copartition_findings(
    settings: Mapping[str, Any],
    inputs: Mapping[str, str],
    partitions: int,
    models: Callable[[Sequence[Record], Sequence[int]], Sequence[str | None]],
    *,
    routed: bool = False,
) -> Iterator[Finding]:
    """Find records without keys, keys in several partitions, and inputs without a common key.

    `inputs` are the topics by their keys in the configuration; each has that many partitions.
    `models` reads the models of records by the numbers of their inputs. With `routed`, routers
    bring records to models, and find the models of labels by ids; otherwise models in several
    partitions are found, too.
    """
    if partitions == 1:
        return
    sample = _read(settings, [*inputs.values()], partitions, models)
    for where, topic in inputs.items():
        keyless = sum(one.key is None for one in sample[topic])
        if keyless:
            ends = "a label may miss its observation" if routed else "they become dead letters"
            text = (
                f"{keyless:,} of the last {len(sample[topic]):,} records of topic {topic} have no "
                f"key; with {partitions} partitions {ends}, so let the producers "
                "give each label the key of its observation"
            )
            yield Finding(where, text, fatal=keyless == len(sample[topic]))
    last = [*inputs][-1]
    yield from (Finding(last, one) for one in _scattered_keys(sample, partitions))
    yield from (Finding(last, one, fatal=False) for one in _disjoint_keys(sample))
    if routed:
        return
    where, topic = next(iter(inputs.items()))
    yield from (Finding(where, one, fatal=False) for one in _spread_models(topic, sample))


def _spread_models(topic: str, sample: _Sample) -> Iterator[str]:
    """Find a topic in which most records have a key of their own, but a few models repeat."""
    records = sample[topic]
    keys = {one.key for one in records} - {None}
    models = {one.model for one in records} - {None}
    again = len(records) >= _RECORDS_PER_KEY * len(models) and len(models) > 1
    if again and len(records) >= _MIN_KEYS and 2 * len(keys) > len(records):
        yield (
            f"the last {len(records):,} records of topic {topic} have {len(keys):,} keys and "
            f"{len(models):,} models, so each model has a calibrator in each partition; set "
            'kafka.route_by = "model" to give it one, with all labels'
        )


def _read(
    settings: Mapping[str, Any],
    topics: Sequence[str],
    partitions: int,
    models: Callable[[Sequence[Record], Sequence[int]], Sequence[str | None]],
) -> _Sample:
    """Read the last keys of each partition, until a timeout."""
    numbers = range(partitions)
    parts = [to_client(TopicPartition(topic, number)) for topic in topics for number in numbers]
    sample: _Sample = {topic: [] for topic in topics}
    until = time.monotonic() + _TIMEOUT
    with new_consumer(settings, auto_offset_reset="latest") as consumer:
        consumer.assign(parts)
        starts, ends = consumer.beginning_offsets(parts), consumer.end_offsets(parts)
        for part in parts:
            consumer.seek(
                part,
                max(
                    starts[part],
                    ends[part] - max(_MIN_SAMPLE_RECORDS, _SAMPLE_RECORDS // partitions),
                ),
            )
        while time.monotonic() < until and any(consumer.position(one) < ends[one] for one in parts):
            for part, records in consumer.poll(timeout_ms=200).items():
                of = models(records, [topics.index(part.topic)] * len(records))
                sample[part.topic] += [
                    _KeyPartition(one.key, part.partition, model)
                    for one, model in zip(records, of, strict=True)
                ]
    return sample


def _scattered_keys(sample: _Sample, partitions: int) -> Iterator[str]:
    """Find keys in several partitions, or inputs that are partitioned differently."""
    partitions_of: dict[bytes, dict[int, str]] = defaultdict(dict)
    for topic, records in sample.items():
        for key, partition, _ in records:
            if key is not None:
                partitions_of[key].setdefault(partition, f"{topic}[{partition}]")
    scattered = [(key, [*where.values()]) for key, where in partitions_of.items() if len(where) > 1]
    hint = _hint(sample, partitions)
    if scattered:
        key, (one, other, *_) = min(scattered)
        yield (
            f"{len(scattered):,} of the last {len(partitions_of):,} keys of the inputs are in "
            f"several partitions, such as {_shown(key)} in {one} and {other}, so their labels do "
            f"not meet their observations; {hint or _ADVICE}"
        )
    elif hint is not None:
        yield f"labels do not meet their observations: {hint}"


_ADVICE = (
    "let all producers partition alike: the default of librdkafka is CRC32, that of Java and of "
    "kafka-python is murmur2, which librdkafka calls partitioner=murmur2_random"
)


def _hint(sample: _Sample, partitions: int) -> str | None:
    """Name the input with the default partitioner of librdkafka, if the other has that of Java."""

    def java(key: bytes) -> int:
        return murmur2(key) & 0x7FFFFFFF

    by = {
        name: [*_partitioned_by(sample, way, partitions)]
        for name, way in (("crc32", zlib.crc32), ("murmur2", java))
    }
    if by["crc32"] and by["murmur2"] and by["crc32"] != by["murmur2"]:
        odd, usual = by["crc32"][0], by["murmur2"][0]
        return (
            f"topic {odd} is partitioned by CRC32, the default of librdkafka, and {usual} by "
            "murmur2, that of Java and kafka-python; set partitioner=murmur2_random in the "
            f"producers of {odd}"
        )
    return None


def _partitioned_by(
    sample: _Sample, hash_key: Callable[[bytes], int], partitions: int
) -> Iterator[str]:
    """Find the topics with all keys in the partition of a hash."""
    for topic, records in sample.items():
        keys = {(one.key, one.partition) for one in records if one.key is not None}
        if len(keys) >= _MIN_KEYS and all(hash_key(k) % partitions == p for k, p in keys):
            yield topic


def _disjoint_keys(sample: _Sample) -> Iterator[str]:
    """Find inputs that share no key, although each key has many records."""
    keys = [{one.key for one in records} - {None} for records in sample.values()]
    often = [
        len(records) >= _RECORDS_PER_KEY * len(found)
        for records, found in zip(sample.values(), keys, strict=True)
    ]
    if len(keys) > 1 and all(keys) and all(often) and not set.intersection(*keys):
        one, other = (_shown(min(filter(None, found))) for found in keys)
        yield (
            f"the last records of the inputs share no key: {' and '.join(sample)} have keys "
            f"such as {one} and {other}; let the producers give each label the key of its "
            "observation"
        )


def _shown(key: bytes) -> str:
    text = key.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…")
