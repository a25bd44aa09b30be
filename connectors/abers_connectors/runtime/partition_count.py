"""The number of partitions of an application, and the records that were deleted from them.

Producers choose the partition of a key by the number of partitions. If partitions are added, keys
lie in other partitions than their calibrators, and labels in others than their observations. The
state says how many there were.

Gaps are ranges of input records that were deleted before they were read. A task skips a gap only if
the configuration says so. It commits its next offsets like a batch, so that the changelog shows the
gap and no later process decides again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import ConfigError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from abers_connectors.config.sections import OffsetGapPolicy
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.task import StreamTask
    from abers_connectors.runtime.transport import Reader, TopicPartition

__all__ = [
    "offset_after_gap",
    "partition_count",
    "partition_counts",
    "require_copartitioned",
    "require_partitions",
    "require_same_partitions",
    "skip_gap",
]

_EQUAL = "the inputs and the changelog must have equally many partitions"
_ADDED = (
    "If partitions were added, keys have moved away from their calibrators and labels. Nothing is "
    "processed any more. Start a new application (kafka.application_id, kafka.changelog) on inputs "
    "with equally many partitions, with kafka.starting_offset after the change"
)


def partition_count(reader: Reader, application: Application) -> int:
    """Return the number of partitions of the inputs and the changelog, which must be equal."""
    counts = partition_counts(reader, [*application.inputs, application.changelog])
    count = counts[application.inputs[0]]
    require_partitions(application, counts, count)
    return count


def require_copartitioned(
    application: Application, counts: Mapping[str, int], expected: int
) -> None:
    """Raise a StateError if inputs that are joined by ids do not have `expected` partitions.

    Inputs that are not in `counts` are not known.
    """
    known = {topic: counts[topic] for topic in application.sources if topic in counts}
    if application.finds_models and not {*known.values()} <= {expected}:
        found = ", ".join(f"{topic} has {count}" for topic, count in known.items())
        before = f", and there were {expected}" if len({*known.values()}) == 1 else ""
        msg = (
            "the inputs must have equally many partitions, and keep their number, so that a label "
            f"is in the partition of its observation: {found} partitions{before}. "
            "Nothing is routed any more. Let the labels name their model "
            "(input.label_fields.model), or start a new application (kafka.application_id) on "
            "other inputs"
        )
        raise StateError(msg)


def require_same_partitions(reader: Reader, application: Application, expected: int) -> None:
    """Ask the brokers, and raise a StateError if there are more or fewer partitions.

    A topic that the broker does not know may be one that it does not know yet.
    """
    topics = [*application.inputs, application.changelog]
    counts = {topic: number for topic in topics if (number := reader.partition_count(topic))}
    require_partitions(application, counts, expected)


def partition_counts(reader: Reader, topics: Iterable[str]) -> dict[str, int]:
    """Return the number of partitions of topics; raises a ConfigError if one does not exist."""
    counts = {topic: reader.partition_count(topic) for topic in topics}
    if missing := [topic for topic, count in counts.items() if not count]:
        why = "or permission DESCRIBE on it is missing"
        lines = [f"there is no topic {topic}, {why}" for topic in missing]
        fix = "create it, or let `abers run --create-topics` create what is missing"
        raise ConfigError([*lines, fix])
    return counts


def require_partitions(application: Application, counts: Mapping[str, int], expected: int) -> None:
    """Raise a StateError if inputs or changelog do not have `expected` partitions."""
    if {*counts.values()} <= {expected}:
        return
    found = ", ".join(f"{topic} has {count}" for topic, count in counts.items())
    log = application.changelog
    if all(counts.get(topic, expected) == expected for topic in application.inputs):
        msg = (
            f"{_EQUAL}: {found}. Name another topic of {expected} partitions in kafka.changelog "
            f"instead of {log}, and run `abers state rebuild CONFIG --from-inputs` if there is a "
            "state"
        )
    elif len({*counts.values()}) > 1:
        msg = f"{_EQUAL}: {found}. Without a state, make them equal. {_ADDED}"
    else:
        msg = f"the state of {application.id} is of {expected} partitions, and {found}. {_ADDED}"
    raise StateError(msg)


def offset_after_gap(
    reader: Reader,
    policy: OffsetGapPolicy,
    warn: Callable[[str], None],
    partition: TopicPartition,
    offset: int,
) -> int:
    """Return the offset from which to read a partition: the given one, if the topic has it.

    The policy is `kafka.on_offset_out_of_range`; "stop" raises a StateError. `warn` is called with
    a sentence about a gap that is skipped.
    """
    start, end = reader.offset_range(partition)
    if start <= offset <= end:
        return offset
    gap = (
        f"{partition.at(offset)} is next, but the topic has only @{start} to @{end}: records "
        "were deleted before they were read, or it is another topic"
    )
    if policy == "stop":
        msg = (
            f'{gap}; set kafka.on_offset_out_of_range = "earliest" or "latest" to continue '
            "without them"
        )
        raise StateError(msg)
    found = reader.last_stable_offset(partition) if policy == "latest" else start
    warn(f"{gap}; continuing at @{found}, as kafka.on_offset_out_of_range says")
    return found


def skip_gap(
    application: Application,
    reader: Reader,
    policy: OffsetGapPolicy,
    warn: Callable[[str], None],
    task: StreamTask,
) -> bool:
    """Move a task past gaps of its inputs; return whether it moved and must be committed.

    The parameters are those of `offset_after_gap`.
    """
    checkpoint = task.checkpoint
    next_offsets = [*checkpoint.next_offsets]
    for which, partition in enumerate(application.input_partitions(checkpoint.partition)):
        offset = next_offsets[which]
        next_offsets[which] = offset_after_gap(reader, policy, warn, partition, offset)
    moved = (next_offsets[0], next_offsets[1])
    if moved == checkpoint.next_offsets:
        return False
    task.seek(moved)
    return True
