"""How far a task has come: its position in the inputs and in its changelog."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Self

import msgspec

from abers.exceptions import StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "NO_OFFSET",
    "TOMBSTONE",
    "Checkpoint",
    "RecordCounts",
    "initial_state_scope",
    "snapshot_scope",
]

NO_OFFSET = -1
"""The offset of an input that the application does not have."""
TOMBSTONE = "tombstone"
"""Instead of the reason of a dead letter: the record has no value, and is skipped."""


class RecordCounts(msgspec.Struct, frozen=True, array_like=True):
    """Records that a task has read since the beginning of its state, by input."""

    records: tuple[int, int] = (0, 0)  # of observations and labels
    undecodable: tuple[int, int] = (0, 0)  # dead letters that are no events
    tombstones: tuple[int, int] = (0, 0)

    @property
    def decoded(self) -> int:
        """Number of records that are events."""
        return sum(self.records) - sum(self.undecodable) - sum(self.tombstones)

    def plus(self, inputs: Sequence[int], dead: Iterable[tuple[int, str]]) -> Self:
        """Add records by their inputs; `dead` has row and reason of those that are no events."""
        found = Counter((inputs[row], reason == TOMBSTONE) for row, reason in dead)
        return type(self)(
            _sums(self.records, [inputs.count(which) for which in (0, 1)]),
            _sums(self.undecodable, [found[which, False] for which in (0, 1)]),
            _sums(self.tombstones, [found[which, True] for which in (0, 1)]),
        )

    def together(self, other: Self) -> Self:
        """Return the counts of two tasks."""
        fields = self.__struct_fields__
        return type(self)(*(_sums(getattr(self, one), getattr(other, one)) for one in fields))

    def numbers(self) -> dict[str, int]:
        """Return the sums over both inputs, as `abers.stream.accounts` names them."""
        return {name: sum(getattr(self, name)) for name in self.__struct_fields__}


def _sums(one: tuple[int, int], other: Sequence[int]) -> tuple[int, int]:
    return one[0] + other[0], one[1] + other[1]


class Checkpoint(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"application_id": "app", "changelog_offset": "changelog", "next_offsets": "following"},
):
    """How far a task has come; a snapshot stores it with the state."""

    application_id: str
    partition: int
    batch: int  # number of the next batch
    changelog_offset: int  # at which the changelog continues
    next_offsets: tuple[int, int]  # of observations and labels
    topic_ids: tuple[str, ...] = ()  # of the inputs, in the same order; none if they are unknown
    partitions: int = 0  # number of each input's; 0 if it is unknown
    counts: RecordCounts = RecordCounts()
    follows: str = ""  # id of the application that publishes instead; "" for none

    @classmethod
    def from_position(cls, position: Any) -> Checkpoint:  # noqa: ANN401 - anything a snapshot holds
        """Read the position of a snapshot; raises a StateError if it is not a checkpoint."""
        try:
            return msgspec.convert(position, cls)
        except msgspec.ValidationError:
            msg = "the snapshot is not one of a Kafka application: a run over files saved it"
            raise StateError(msg) from None

    def require(self, application_id: str, partition: int, changelog_offset: int) -> Self:
        """Return the checkpoint; raises a StateError if it is not of this task and offset."""
        expected = (application_id, partition, changelog_offset)
        if (self.application_id, self.partition, self.changelog_offset) != expected:
            mine = snapshot_scope(self.application_id, self.partition, self.changelog_offset)
            msg = f"the snapshot is of {mine}, not of {snapshot_scope(*expected)}"
            raise StateError(msg)
        return self


def snapshot_scope(application_id: str, partition: int, changelog_offset: int) -> str:
    """Return what a snapshot is sealed for: a task, and where its changelog continues."""
    return f"{application_id}[{partition}]@{changelog_offset}"


def initial_state_scope(application_id: str, partition: int) -> str:
    """Return what an initial state is sealed for: a task that has no state yet."""
    return f"the seed of {application_id}[{partition}]"
