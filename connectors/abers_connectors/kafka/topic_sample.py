"""The newest records of a topic as a source of events, to preview them."""

from __future__ import annotations

import os
from bisect import bisect
from itertools import islice
from typing import TYPE_CHECKING

from abers.exceptions import ParameterError
from abers_connectors.kafka.settings import client_settings
from abers_connectors.kafka.topic_history import TopicHistory
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.timestamp_merge import LABELS, OBSERVATIONS
from abers_connectors.runtime.transport import OffsetRange
from abers_connectors.sources.base import BadRecord, Batch, Origin
from abers_connectors.sources.lines import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers_connectors.config.model import Config
    from abers_connectors.runtime.transport import Record
    from abers_connectors.sources.base import Position

__all__ = ["TopicSample"]

_NEWEST = 10_000  # records of all partitions together
_BATCH_RECORDS = 1000


class TopicSample:
    """A `Source` of a topic's records in the order of their timestamps, decoded as in a service.

    They are labels if it is the configuration's topic of labels, and otherwise observations.
    """

    def __init__(self, config: Config, topic: str, environ: Mapping[str, str] = os.environ) -> None:
        if config.kafka is None:
            msg = "to check a topic, name a configuration with a section [kafka]"
            raise ParameterError(msg)
        self.name = topic
        self._config, self._kafka = config, config.kafka
        self._which = LABELS if topic == self._kafka.labels else OBSERVATIONS
        self._environ = environ

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Return the records; the position is ignored."""
        del position
        settings = client_settings(self._kafka, self._environ)
        history = TopicHistory([self.name], settings, timeout=self._kafka.stall_timeout / 1000)
        try:
            deserializer = Deserializer(
                self._config, partitions=history.partition_count, environ=self._environ
            )
            most = -(-_NEWEST // history.partition_count)
            ranges = {
                one: OffsetRange(max(part.start, part.end - most), part.end)
                for one, part in history.ranges().items()
            }
            reads = history.read(ranges)
            while batch := [one.record for one in islice(reads, _BATCH_RECORDS)]:
                yield self._batch(deserializer, batch)
        finally:
            history.close()

    def fraction(self) -> float | None:
        """Return None: the sample is small."""
        return None

    def _batch(self, deserializer: Deserializer, records: Sequence[Record]) -> Batch:
        decoded = deserializer.decode(records, [self._which] * len(records))
        bad = [
            BadRecord(bisect(decoded.rows, row), reason, detail, _origin_of_record(records[row]))
            for row, reason, detail in decoded.dead
        ]
        rows = decoded.rows
        return Batch(
            decoded.events, bad, {}, len(records), lambda n: _origin_of_record(records[rows[n]])
        )


def _origin_of_record(record: Record) -> Origin:
    where = f"{record.topic}[{record.partition}]@{record.offset}"
    return Origin(where, shown(record.value or b""))
