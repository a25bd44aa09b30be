"""A stream task that processes records as a service does."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from abers.stream import Processor
from abers_connectors.config.model import load
from abers_connectors.runtime.application import Checkpoint
from abers_connectors.runtime.batches import MergedRecords
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.serializer import Serializer
from abers_connectors.runtime.task import BatchResult, StreamTask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.connectors.kafka.reads import Read

    from abers_connectors.runtime.serializer import OutputRecords
    from abers_connectors.runtime.transport import Headers

__all__ = ["Done", "Sent", "Served", "sent"]

Done = BatchResult


class Sent(NamedTuple):
    """A record that is written to a sink."""

    sink: str
    key: bytes | None
    value: bytes
    headers: Headers
    timestamp: int | None
    reason: str | None = None


def sent(found: Mapping[str, OutputRecords]) -> list[Sent]:
    """Return the records of all sinks."""
    return [Sent(sink, *one) for sink, some in found.items() for one in zip_longest(*some)]


class Served(StreamTask):
    """A task that processes records, by a configuration with such flags."""

    def __init__(self, partition: int = 0, flags: Mapping[str, object] | None = None) -> None:
        config = load(flags={"input.observations": "x.jsonl", **(flags or {})}, environ={})
        super().__init__(Processor(config.settings()), Checkpoint("app", partition, 0, 0, (0, 0)))
        self._deserializer = Deserializer(config, partitions=2)
        self._serializer = Serializer(max_bytes=1 << 20)

    def take(self, *records: Read, inputs: bytes = b"") -> BatchResult:
        """Process some records, by default of the first input."""
        merged = MergedRecords([*records], [*(inputs or bytes(len(records)))])
        return self.process(merged, self._deserializer, self._serializer)
