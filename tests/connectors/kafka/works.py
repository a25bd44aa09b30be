"""What a batch did, as a service makes it: records decoded, processed and worded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from abers.stream import Processor
from abers_connectors.config import load
from abers_connectors.kafka.changelog import Applied
from abers_connectors.kafka.decoding import Decoded, Decoder
from abers_connectors.kafka.wording import Outgoing, Wording

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.connectors.kafka.reads import Read

    from abers.stream import Outputs

__all__ = ["Done", "Served"]


class Done(NamedTuple):
    """What a batch did."""

    outgoing: Sequence[Outgoing]
    applied: Applied
    decoded: Decoded
    outputs: Outputs | None


class _Place(NamedTuple):
    partition: int


class Served:
    """A shard that takes records, by a configuration with such flags."""

    def __init__(self, partition: int = 0, flags: Mapping[str, object] | None = None) -> None:
        config = load(flags={"input.observations": "x.jsonl", **(flags or {})}, environ={})
        self.place = _Place(partition)
        self.processor = Processor(config.settings())
        self._decoder = Decoder(config, partitions=2)
        self._wording = Wording(max_bytes=1 << 20)

    def take(self, *records: Read, inputs: bytes = b"") -> Done:
        """Take some records, of the first input unless told."""
        which = inputs or bytes(len(records))
        decoded = self._decoder.decode(records, which)
        outputs = entry = None
        if len(decoded.events):
            outputs, entry = self.processor.take_noted(decoded.events)
        applied = Applied("0", 0, (0, 0), which, b"", [], entry)
        outgoing = self._wording.outgoing(outputs, decoded, records)
        return Done(outgoing, applied, decoded, outputs)
