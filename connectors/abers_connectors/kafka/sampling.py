"""The newest records of a topic as a source of events, for a look at them.

Governing rule: they are read as the service reads them, and the service does
not notice.
"""

from __future__ import annotations

import os
from bisect import bisect
from itertools import islice
from typing import TYPE_CHECKING

from abers.exceptions import ParameterError
from abers_connectors.files.lines import shown
from abers_connectors.kafka.client_settings import client_settings
from abers_connectors.kafka.decoding import Decoder
from abers_connectors.kafka.history import History, Span
from abers_connectors.kafka.merging import LABELS, OBSERVATIONS
from abers_connectors.records import Bad, Batch, Origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers_connectors.config import Config
    from abers_connectors.kafka.transport import Record
    from abers_connectors.records import Position

__all__ = ["TopicSample"]

_NEWEST = 10_000  # records of all partitions together
_TOGETHER = 1000


class TopicSample:
    """Some records of a topic, in the order of their times; a `Source`.

    Parameters
    ----------
    config
        How they are read; with [kafka].
    topic
        Whose they are: labels if it is the configuration's topic of labels, and otherwise
        observations.
    environ
        Where secrets are.
    """

    def __init__(self, config: Config, topic: str, environ: Mapping[str, str] = os.environ) -> None:
        if config.kafka is None:
            msg = "a topic can be looked at with a configuration that has topics"
            raise ParameterError(msg)
        self.name = topic
        self._config, self._kafka = config, config.kafka
        self._which = LABELS if topic == self._kafka.labels else OBSERVATIONS
        self._environ = environ

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Give the records; there is no position to go on from."""
        del position
        settings = client_settings(self._kafka, self._environ)
        history = History([self.name], settings, patience=self._kafka.watchdog / 1000)
        try:
            decoder = Decoder(self._config, partitions=history.shards)
            most = -(-_NEWEST // history.shards)
            spans = {
                one: Span(max(span.start, span.end - most), span.end)
                for one, span in history.part().items()
            }
            reads = history.read(spans)
            while batch := [one.record for one in islice(reads, _TOGETHER)]:
                yield self._batch(decoder, batch)
        finally:
            history.close()

    def fraction(self) -> float | None:
        """Say nothing: it takes no time."""
        return None

    def _batch(self, decoder: Decoder, records: Sequence[Record]) -> Batch:
        decoded = decoder.decode(records, [self._which] * len(records))
        bad = [
            Bad(bisect(decoded.rows, row), reason, detail, _origin(records[row]))
            for row, reason, detail in decoded.dead
        ]
        rows = decoded.rows
        return Batch(decoded.events, bad, {}, len(records), lambda n: _origin(records[rows[n]]))


def _origin(record: Record) -> Origin:
    where = f"{record.topic}[{record.partition}]@{record.offset}"
    return Origin(where, shown(record.value or b""))
