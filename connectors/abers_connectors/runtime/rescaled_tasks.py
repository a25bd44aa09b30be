"""The states of tasks by other slots: each is split by model, and the parts are joined anew.

A partition owns a range of slots, before and after. So an old state goes to the few new partitions
that its range meets, and a new one is complete when the last old one that it meets was read.
"""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from abers.exceptions import StateError
from abers.stream.repartition import event_counts, join, require_few, split
from abers_connectors.runtime.checkpoint import RecordCounts
from abers_connectors.runtime.slots import owners_of, partition_of, slots_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from abers.stream.snapshot import Snapshot
    from abers_connectors.runtime.saved_task import SavedTask

__all__ = ["RescaledTask", "rescaled"]


class RescaledTask(NamedTuple):
    """The state of a new partition, or a part of it, and the records that it counts."""

    partition: int
    state: Snapshot
    counts: RecordCounts


def rescaled(
    saved: Iterable[SavedTask], before: int | None, after: int, inputs: int
) -> Iterator[RescaledTask]:
    """Yield the states of `after` partitions, ascending, each as soon as it is complete.

    Parameters
    ----------
    saved
        The old states, by partition, ascending; each is read when it is wanted.
    before
        Number of old partitions, which own ranges of slots; None if models may be in any.
    after
        Number of new partitions.
    inputs
        Number of topics of observations and labels, 1 or 2.

    Raises
    ------
    StateError
        If a model is in several old states, or in one that does not own its slot, or states do not
        fit together.
    SettingsError
        If a new partition would have more models than `limits.max_models`.
    """
    parts: dict[int, list[RescaledTask]] = defaultdict(list)
    following = 0
    for one in saved:
        met = range(after)
        if before is not None:
            met = owners_of(slots_of(one.checkpoint.partition, before), after)
        for part in _divided(one, met, after, inputs):
            parts[part.partition].append(part)
        if before is not None:
            yield from (_joined(parts.pop(number), after) for number in range(following, met[-1]))
            following = met[-1]
    yield from (_joined(parts.pop(number), after) for number in range(following, after))


def _divided(one: SavedTask, met: range, after: int, inputs: int) -> Iterator[RescaledTask]:
    """Yield what some of the new partitions get of an old state."""

    def owner(model: str) -> int:
        number = partition_of(model, after)
        if number not in met:
            raise _misplaced(model, one.checkpoint.partition)
        return number - met[0]

    states = split(one.state, len(met), owner)
    counts = _counts(one.checkpoint.counts, [event_counts(state) for state in states], inputs)
    return map(RescaledTask, met, states, counts)


def _counts(
    whole: RecordCounts, events: Sequence[tuple[int, int]], inputs: int
) -> list[RecordCounts]:
    """Return the records of each part, of so many observations and labels.

    Those that are no events are of the first part, as is all that has ended.
    """
    others = [one if inputs > 1 else (sum(one), 0) for one in events[1:]]
    moved = [sum(column) for column in zip((0, 0), *others, strict=True)]
    records = (whole.records[0] - moved[0], whole.records[1] - moved[1])
    return [msgspec.structs.replace(whole, records=records), *map(RecordCounts, others)]


def _joined(parts: Sequence[RescaledTask], after: int) -> RescaledTask:
    """Return a new partition from its parts."""
    number = parts[0].partition
    try:
        state = join([one.state for one in parts]) if len(parts) > 1 else parts[0].state
    except StateError as error:
        msg = (
            f"partition {number} of {after}: {error}; choose more partitions, or start another "
            "application (kafka.application_id) with kafka.route_by, which learns from the inputs"
        )
        raise StateError(msg) from error
    require_few(state, "toml")
    return RescaledTask(number, state, reduce(RecordCounts.together, [one.counts for one in parts]))


def _misplaced(model: str, partition: int) -> StateError:
    msg = (
        f"model {model} is in the state of partition {partition}, which does not own its slot: "
        "another program has written to the topic of routers. Forget it by `abers state reset "
        f"CONFIG --partition {partition} --model MODEL --accept-data-loss`, then repeat"
    )
    return StateError(msg)
