"""Where a replay puts its predictions: a file, or a topic that is not the service's own.

Governing rule: a replay never writes where a service reads or writes; a record
is as old as the one that it is about, and of a topic that would not keep it so,
this is said before anything is written.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import msgspec

from abers.exceptions import ParameterError
from abers.stream import task_of
from abers_connectors._config_moments import duration, moment
from abers_connectors.files.writing import open_sink
from abers_connectors.kafka.client_settings import reaching
from abers_connectors.kafka.transport import Partition
from abers_connectors.kafka.wording import Outgoing, Wording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers.stream import Outputs, Settings
    from abers_connectors.config import Kafka
    from abers_connectors.kafka.decoding import Decoded
    from abers_connectors.kafka.transport import Record

__all__ = ["FileTarget", "Made", "Target", "TopicTarget", "require_apart"]

_TIMEOUT = 60  # seconds that brokers have for a batch
_LARGEST = 1 << 20  # bytes of a request, as the client has it by default
_FOR_EVER = -1

Item: TypeAlias = Any
"""A prediction as a target takes it."""


class Made(NamedTuple):
    """What came of some records of a shard; nothing is known of them where a changelog told it."""

    shard: int
    outputs: Outputs | None
    decoded: Decoded | None = None
    records: Sequence[Record] = ()


class Target(Protocol):
    """Takes predictions."""

    def items(self, made: Made) -> list[Item]:
        """Give each prediction as `write` takes it."""
        ...

    def write(self, items: Sequence[Item]) -> list[Outgoing]:
        """Write predictions, and give those that became dead letters instead."""
        ...

    def close(self) -> None:
        """Take no more; all is there."""
        ...

    def discard(self) -> None:
        """Take no more, and leave nothing that need not be left."""
        ...


class FileTarget:
    """A file, which appears when it is whole, or standard output.

    Parameters
    ----------
    path
        Its name, which tells the format.
    settings
        Those of the processors.
    """

    def __init__(self, path: str, settings: Settings) -> None:
        self._sink = open_sink(path, task_of(settings).prediction)

    def items(self, made: Made) -> list[Item]:
        """Give the rows."""
        return [] if made.outputs is None else [*made.outputs.predictions]

    def write(self, items: Sequence[Item]) -> list[Outgoing]:
        """Write rows; a file takes all."""
        self._sink.write(items)
        return []

    def close(self) -> None:
        """Put the file into its place."""
        self._sink.close()

    def discard(self) -> None:
        """Leave no file."""
        self._sink.discard()


class TopicTarget:
    """A topic; what was written before a failure stays there.

    Parameters
    ----------
    topic
        Its name.
    settings
        Of the client.
    compression
        Of the records; "none" for none.
    say
        Told in sentences what the topic will not keep, before anything is written.
    """

    def __init__(
        self,
        topic: str,
        settings: Mapping[str, Any],
        compression: str,
        say: Callable[[str], None],
    ) -> None:
        self._topic, self._settings, self._say = topic, settings, say
        self._begun = False
        with reaching(settings):
            from kafka import KafkaProducer  # noqa: PLC0415 - an extra

            self._config = _config_of(topic, settings)
            self._producer = KafkaProducer(
                **settings,
                compression_type=None if compression == "none" else compression,
                allow_auto_create_topics=False,
                batch_size=1 << 18,
                linger_ms=50,
                max_request_size=_LARGEST,
                metrics_enabled=False,
            )
            self._count = len(self._producer.partitions_for(topic))
        largest = int(self._config.get("max.message.bytes", _LARGEST))
        self._wording = Wording(max_bytes=min(largest, _LARGEST))

    def items(self, made: Made) -> list[Item]:
        """Give records, and where each of them goes."""
        to = Partition(self._topic, made.shard % self._count)
        return [(to, one) for one in self._worded(made)]

    def _worded(self, made: Made) -> list[Outgoing]:
        if made.outputs is None:
            return []
        said = made.outputs.predictions
        if made.decoded is None:  # a changelog keeps no keys and headers
            times = said.columns["time"].tolist()
            values = map(msgspec.json.encode, said)
            return [
                Outgoing("predictions", None, value, (), at if at >= 0 else None)
                for at, value in zip(times, values, strict=True)
            ]
        return self._wording.predictions(made.outputs, made.decoded, made.records)

    def write(self, items: Sequence[Item]) -> list[Outgoing]:
        """Write records, and wait until they are there."""
        dead = [one for _, one in items if one.sink != "predictions"]
        if items and not self._begun:
            self._begun = True
            times = [one.timestamp for _, one in items if one.timestamp is not None]
            for loss in _losses(self._topic, self._config, min(times, default=None)):
                self._say(loss)
        with reaching(self._settings):
            sent = [
                self._producer.send(
                    to.topic, one.value, one.key, [*one.headers], to.number, one.timestamp
                )
                for to, one in items
                if one.sink == "predictions"
            ]
            self._producer.flush(_TIMEOUT)
            for future in sent:
                future.get(0)
        return dead

    def close(self) -> None:
        """Close the client; all is there."""
        self._producer.close()

    def discard(self) -> None:
        """Close the client, and wait for nothing."""
        self._producer.close(timeout=0)


def _losses(topic: str, config: Mapping[str, str], oldest: int | None) -> Iterator[str]:
    """Say what a topic will not keep of records of which the first is of this time."""
    if config.get("message.timestamp.type") == "LogAppendTime":
        yield (
            f"{topic} gives records the time of their writing (message.timestamp.type is "
            "LogAppendTime), so event times are in the predictions only"
        )
        return
    kept = int(config.get("retention.ms", _FOR_EVER))
    deletes = "delete" in config.get("cleanup.policy", "delete") and kept != _FOR_EVER
    if deletes and oldest is not None and oldest < time.time() * 1000 - kept:
        yield (
            f"{topic} deletes records older than {duration(kept)} (retention.ms), and the first "
            f"are of {moment(oldest)}; set retention.ms to -1 to keep them"
        )


def _config_of(topic: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """Ask for the configuration of a topic."""
    from kafka import KafkaAdminClient  # noqa: PLC0415 - an extra
    from kafka.admin import ConfigFilterType, ConfigResource, ConfigResourceType  # noqa: PLC0415

    with KafkaAdminClient(**settings) as admin:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        if topic not in admin.list_topics():
            msg = f"--output: there is no topic {topic}; create it with retention.ms = -1"
            raise ParameterError(msg)
        found = admin.describe_configs([resource], config_filter=ConfigFilterType.ALL)
    told = found["topic"][topic]
    return {name: str(one["value"]) for name, one in told.items() if one["value"] is not None}


def require_apart(topic: str, kafka: Kafka) -> None:
    """Refuse, with a ParameterError, a topic that a service of this configuration reads or writes.

    Parameters
    ----------
    topic
        Where a replay is to write.
    kafka
        The section of the configuration.
    """
    names = ("observations", "labels", "predictions", "outcomes", "dead_letters", "changelog")
    for name in (*names, "alerts"):
        if getattr(kafka, name) == topic:
            msg = (
                f"--output: {topic} is kafka.{name}, which belongs to the service; "
                "write into another topic"
            )
            raise ParameterError(msg)
