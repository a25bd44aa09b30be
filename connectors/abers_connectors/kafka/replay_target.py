"""Targets of a replay's predictions: a file, or a topic that no service uses.

A replay never writes to a topic that the service reads or writes. Each record keeps the timestamp
of the record that caused it; if the topic would not keep it, a warning says so before the first
write.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from abers.exceptions import ParameterError
from abers.stream import make_task
from abers_connectors.config.units import duration, moment
from abers_connectors.kafka.connection import (
    connection_errors,
    headers_to_client,
    new_producer,
    open_admin,
)
from abers_connectors.kafka.topics import NEEDED, topic_configs
from abers_connectors.runtime.serializer import OutputRecords, Serializer
from abers_connectors.schemas.output_encoder import as_json
from abers_connectors.sinks.registry import open_sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers.stream import Outputs, Settings
    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.runtime.reprocessor import TaskOutputs
    from abers_connectors.schemas.output_encoder import Encoder

__all__ = ["FileTarget", "ReplayTarget", "TopicTarget", "require_unused"]

_TIMEOUT = 60  # seconds of writing a batch
_MAX_REQUEST_BYTES = 1 << 20  # the default of the client
_UNLIMITED = -1

Item: TypeAlias = Any
"""A prediction as a target takes it; bytes are a dead letter instead."""


class ReplayTarget(Protocol):
    """Writes predictions."""

    def items(self, part: TaskOutputs) -> list[Item]:
        """Return the predictions as items for `write`."""
        ...

    def write(self, items: Sequence[Item]) -> list[bytes]:
        """Write predictions; return the dead letters of those that are too large."""
        ...

    def close(self) -> None:
        """Finish writing."""
        ...

    def discard(self) -> None:
        """Stop writing, and remove what can be removed."""
        ...


class FileTarget:
    """A file, which appears when it is complete, or standard output."""

    def __init__(self, path: str, settings: Settings) -> None:
        self._sink = open_sink(path, make_task(settings).prediction)

    def items(self, part: TaskOutputs) -> list[Item]:
        """Return the rows."""
        return [] if part.outputs is None else [*part.outputs.predictions]

    def write(self, items: Sequence[Item]) -> list[bytes]:
        """Write rows; none is too large."""
        self._sink.write(items)
        return []

    def close(self) -> None:
        """Complete the file."""
        self._sink.close()

    def discard(self) -> None:
        """Remove the file."""
        self._sink.discard()


class TopicTarget:
    """A topic; what was written before a failure stays there.

    Before the first write, `warn` is called with a sentence about everything that the topic will
    not keep. `encode` encodes predictions.
    """

    def __init__(
        self,
        topic: str,
        settings: Mapping[str, Any],
        compression: str,
        warn: Callable[[str], None],
        encode: Encoder = as_json,
    ) -> None:
        self._encode = encode
        self._topic, self._settings, self._warn = topic, settings, warn
        self._started = False
        with connection_errors(settings):
            self._config = _config_of(topic, settings)
            self._producer = new_producer(
                settings,
                compression,
                batch_size=1 << 18,
                linger_ms=50,
                max_request_size=_MAX_REQUEST_BYTES,
            )
            self._count = len(self._producer.partitions_for(topic))
        largest = int(self._config.get("max.message.bytes", _MAX_REQUEST_BYTES))
        self._serializer = Serializer(
            max_bytes=min(largest, _MAX_REQUEST_BYTES), encoders={"predictions": encode}
        )

    def items(self, part: TaskOutputs) -> list[Item]:
        """Return the arguments of the client for each record, or its dead letter."""
        if part.outputs is None:
            return []
        number = part.partition % self._count
        records, too_large = self._serialized(part.outputs, part)
        items: list[Item] = [
            (self._topic, value, key, headers_to_client(headers), number, timestamp)
            for key, value, headers, timestamp in zip(*records[:4], strict=True)
        ]
        for row, dead in too_large.items():
            items[row] = dead
        return items

    def _serialized(
        self, outputs: Outputs, part: TaskOutputs
    ) -> tuple[OutputRecords, dict[int, bytes]]:
        if part.decoded is not None:
            return self._serializer.predictions(outputs, part.decoded, part.records)
        predictions, size = outputs.predictions, len(outputs.predictions)
        known = [at if at >= 0 else None for at in predictions.columns["time"].tolist()]
        values = self._encode(predictions)  # a changelog has no keys and headers
        return OutputRecords([None] * size, values, [()] * size, known), {}

    def write(self, items: Sequence[Item]) -> list[bytes]:
        """Write records, and wait until they are written."""
        dead = [one for one in items if isinstance(one, bytes)]
        records = [one for one in items if not isinstance(one, bytes)]
        if items and not self._started:
            self._started = True
            times = [at for *_, at in records if at is not None]
            for loss in _losses(self._topic, self._config, min(times, default=None)):
                self._warn(loss)
        with connection_errors(self._settings):
            sent = [self._producer.send(*one) for one in records]
            self._producer.flush(_TIMEOUT)
            for future in sent:
                future.get(0)
        return dead

    def close(self) -> None:
        """Close the client."""
        self._producer.close()

    def discard(self) -> None:
        """Close the client without waiting."""
        self._producer.close(timeout=0)


def _losses(topic: str, config: Mapping[str, str], oldest: int | None) -> Iterator[str]:
    """Describe which records and times a topic will not keep, if the oldest record is this old."""
    if config.get("message.timestamp.type") == "LogAppendTime":
        yield (
            f"{topic} gives records the time of their writing (message.timestamp.type is "
            "LogAppendTime), so event times are in the predictions only"
        )
        return
    kept = int(config.get("retention.ms", _UNLIMITED))
    deletes = "delete" in config.get("cleanup.policy", "delete") and kept != _UNLIMITED
    if deletes and oldest is not None and oldest < time.time() * 1000 - kept:
        yield (
            f"{topic} deletes records older than {duration(kept)} (retention.ms), and the first "
            f"are of {moment(oldest)}; set retention.ms to -1 to keep them"
        )


def _config_of(topic: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the configuration of a topic; raise a ParameterError if it does not exist."""
    with open_admin(settings) as admin:
        if topic not in admin.list_topics():
            msg = f"--output: there is no topic {topic}; create it with retention.ms = -1"
            raise ParameterError(msg)
        config = topic_configs(admin, [topic])[topic]
    return {name: str(value) for name, value in config.items() if value is not None}


def require_unused(topic: str, kafka: KafkaSection) -> None:
    """Raise a ParameterError if a service of this configuration reads or writes a topic."""
    for name in NEEDED:
        if getattr(kafka, name) == topic:
            msg = f"--output: {topic} is kafka.{name}, which belongs to the service; "
            msg += "write to another topic"
            raise ParameterError(msg)
