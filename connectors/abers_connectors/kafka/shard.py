"""One partition of the inputs, and the state that all records before it made.

Governing rule: the state of a shard, the offsets that it has applied, and the
number of its batches move together, by a batch that is applied or redone, and
are valid only while every batch applied is committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec
import numpy as np

import abers
from abers.exceptions import StateError
from abers_connectors.kafka.changelog import NONE, Applied

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream import Outputs, Processor
    from abers_connectors.kafka.decoding import Decoded, Decoder
    from abers_connectors.kafka.merging import Taken
    from abers_connectors.kafka.wording import Outgoing, Wording

__all__ = ["NONE", "Place", "Shard", "Work"]


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a shard stands: what a snapshot says beside the state.

    Parameters
    ----------
    app, partition
        Whose it is.
    batch
        The number of the next batch.
    changelog
        Where the changelog goes on behind it.
    following
        The offsets of observations and labels that are applied next.
    """

    app: str
    partition: int
    batch: int
    changelog: int
    following: tuple[int, int]

    @classmethod
    def of(cls, position: Any) -> Place:  # noqa: ANN401 - whatever a snapshot holds
        """Read the position of a snapshot; a StateError if it is that of something else."""
        try:
            return msgspec.convert(position, cls)
        except msgspec.ValidationError:
            msg = "the snapshot is of no shard of Kafka: it was saved by a run over files"
            raise StateError(msg) from None

    def expected(self, app: str, partition: int, changelog: int) -> Self:
        """Give it, if it is this one; a StateError if a snapshot lies where another belongs."""
        if (self.app, self.partition, self.changelog) != (app, partition, changelog):
            msg = (
                f"it is of {self.app}[{self.partition}]@{self.changelog}, not of "
                f"{app}[{partition}]@{changelog}"
            )
            raise StateError(msg)
        return self


class Work(NamedTuple):
    """What a batch did, to be written in one transaction.

    Parameters
    ----------
    outgoing
        Predictions, outcomes and dead letters.
    applied
        What the changelog is told.
    decoded, outputs
        What the counters go by; no outputs if no record was an event.
    """

    outgoing: Sequence[Outgoing]
    applied: Applied
    decoded: Decoded
    outputs: Outputs | None


class Shard:
    """A processor, and where it stands.

    Parameters
    ----------
    processor
        It.
    place
        Where it stands.

    Attributes
    ----------
    processor, place
        As given, and moved by what is applied.
    unsaved
        Records that were applied or redone since it was made or a snapshot of it was begun.
    """

    def __init__(self, processor: Processor, place: Place) -> None:
        self.processor, self.place = processor, place
        self.unsaved = 0

    def apply(self, taken: Taken, decoder: Decoder, wording: Wording) -> Work:
        """Apply records, which must be those that follow."""
        decoded = decoder.decode(taken.records, taken.inputs)
        outputs = entry = None
        if len(decoded.events):
            outputs, entry = self.processor.take_noted(decoded.events)
        dead = [(row, reason) for row, reason, _ in decoded.dead]
        dead += [(row, "tombstone") for row in decoded.tombstones]
        applied = Applied(
            abers.__version__,
            self.place.batch,
            self._after(taken),
            bytes(taken.inputs),
            np.array([one.offset for one in taken.records], "<i8").tobytes(),
            sorted(dead),
            entry,
        )
        self._move(applied)
        return Work(wording.outgoing(outputs, decoded, taken.records), applied, decoded, outputs)

    def opening(self) -> Applied:
        """Give a batch that holds nothing but where the shard starts, or goes on after a loss."""
        place = self.place
        applied = Applied(abers.__version__, place.batch, place.following, b"", b"", [], None)
        self._move(applied)
        return applied

    def skip(self, following: tuple[int, int]) -> None:
        """Go on elsewhere in the inputs; `opening` makes the batch that says so."""
        self.place = msgspec.structs.replace(self.place, following=following)

    def redo(self, applied: Applied) -> Outputs | None:
        """Apply the next batch of the changelog; a StateError if it does not fit."""
        outputs = None if applied.entry is None else self.processor.redo(applied.entry)
        self._move(applied)
        return outputs

    def _after(self, taken: Taken) -> tuple[int, int]:
        following = list(self.place.following)
        for which in {*taken.inputs}:
            last = len(taken.inputs) - 1 - taken.inputs[::-1].index(which)
            following[which] = taken.records[last].offset + 1
        return following[0], following[1]

    def _move(self, applied: Applied) -> None:
        following = applied.following
        self.unsaved += len(applied.inputs)
        self.place = msgspec.structs.replace(
            self.place, batch=applied.number + 1, following=following
        )

    def written(self, changelog: int) -> None:
        """Note where the changelog goes on after the last batch, which is committed."""
        self.place = msgspec.structs.replace(self.place, changelog=changelog)
