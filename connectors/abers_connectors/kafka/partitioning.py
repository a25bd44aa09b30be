"""Whether labels lie where their observations are, as far as a sample of the inputs shows.

Governing rule: one key lies in one partition, the same one in both inputs; two
producers that partition differently break it without an error anywhere.
"""

from __future__ import annotations

import time
import zlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from abers_connectors.kafka.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["misplaced"]

_SAMPLE = 4_000  # records of each topic, the last ones of each partition
_LEAST = 10  # records of each partition, however many there are
_PATIENCE = 10.0  # seconds for reading them
_SURE = 20  # distinct keys that show how a topic is partitioned
_FEW = 10  # records a key, from which on keys are models or segments rather than ids
_WIDTH = 40  # characters of a key in a message


class _Place(NamedTuple):
    key: bytes | None
    partition: int


_Sample = dict[str, list[_Place]]


def misplaced(
    settings: Mapping[str, Any], inputs: Mapping[str, str], partitions: int
) -> Iterator[Finding]:
    """Look at the last records of the inputs, and where they lie.

    Parameters
    ----------
    settings
        Of the client.
    inputs
        The topics by their keys in the configuration.
    partitions
        How many each has.

    Yields
    ------
    Finding
        Records without keys, keys in several partitions, inputs without a common key.
    """
    if partitions == 1:
        return
    sample = _read(settings, [*inputs.values()], partitions)
    for where, topic in inputs.items():
        keyless = sum(place.key is None for place in sample[topic])
        if keyless:
            text = (
                f"{keyless:,} of the last {len(sample[topic]):,} records of topic {topic} have no "
                f"key; with {partitions} partitions they become dead letters, so let the producers "
                "give each label the key of its observation"
            )
            yield Finding(where, text, fatal=keyless == len(sample[topic]))
    last = [*inputs][-1]
    yield from (Finding(last, one) for one in _apart(sample, partitions))
    yield from (Finding(last, one, fatal=False) for one in _strangers(sample))


def _read(settings: Mapping[str, Any], topics: Sequence[str], partitions: int) -> _Sample:
    from kafka import KafkaConsumer, TopicPartition  # noqa: PLC0415 - an extra

    parts = [TopicPartition(topic, number) for topic in topics for number in range(partitions)]
    sample: _Sample = {topic: [] for topic in topics}
    until = time.monotonic() + _PATIENCE
    with KafkaConsumer(
        **settings, isolation_level="read_committed", enable_auto_commit=False
    ) as consumer:
        consumer.assign(parts)
        starts, ends = consumer.beginning_offsets(parts), consumer.end_offsets(parts)
        for part in parts:
            consumer.seek(part, max(starts[part], ends[part] - max(_LEAST, _SAMPLE // partitions)))
        while time.monotonic() < until and any(consumer.position(one) < ends[one] for one in parts):
            for part, records in consumer.poll(timeout_ms=200).items():
                sample[part.topic] += [_Place(one.key, part.partition) for one in records]
    return sample


def _apart(sample: _Sample, partitions: int) -> Iterator[str]:
    """Find keys in several partitions, or else inputs that are partitioned differently."""
    places: dict[bytes, dict[int, str]] = defaultdict(dict)
    for topic, records in sample.items():
        for key, partition in records:
            if key is not None:
                places[key].setdefault(partition, f"{topic}[{partition}]")
    apart = [(key, [*where.values()]) for key, where in places.items() if len(where) > 1]
    hint = _hint(sample, partitions)
    if apart:
        key, (one, other, *_) = min(apart)
        yield (
            f"{len(apart):,} of the last {len(places):,} keys of the inputs lie in several "
            f"partitions, such as {_shown(key)} in {one} and {other}, so their labels do not meet "
            f"their observations; {hint or _ADVICE}"
        )
    elif hint is not None:
        yield f"labels do not meet their observations: {hint}"


_ADVICE = (
    "have all producers partition alike: the default of librdkafka is CRC32, that of Java and of "
    "kafka-python is murmur2, which librdkafka calls partitioner=murmur2_random"
)


def _hint(sample: _Sample, partitions: int) -> str | None:
    """Name the input that librdkafka's default has partitioned while Java's has the other."""
    from kafka.partitioner.default import murmur2  # noqa: PLC0415

    def java(key: bytes) -> int:
        return int(murmur2(key) & 0x7FFFFFFF)

    by = {
        name: [*_explained(sample, way, partitions)]
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


def _explained(sample: _Sample, hashed: Callable[[bytes], int], partitions: int) -> Iterator[str]:
    """Name the topics whose keys lie where a hash puts them, every one."""
    for topic, records in sample.items():
        keys = {place for place in records if place.key is not None}
        if len(keys) >= _SURE and all(hashed(k or b"") % partitions == p for k, p in keys):
            yield topic


def _strangers(sample: _Sample) -> Iterator[str]:
    """Find that the inputs share no key, although each comes often."""
    keys = [{place.key for place in records} - {None} for records in sample.values()]
    often = [
        len(records) >= _FEW * len(found)
        for records, found in zip(sample.values(), keys, strict=True)
    ]
    if len(keys) > 1 and all(keys) and all(often) and not set.intersection(*keys):
        one, other = (_shown(min(filter(None, found))) for found in keys)
        yield (
            f"the last records of the inputs share no key: {' and '.join(sample)} have such as "
            f"{one} and {other}; let the producers give each label the key of its observation"
        )


def _shown(key: bytes) -> str:
    text = key.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…")
