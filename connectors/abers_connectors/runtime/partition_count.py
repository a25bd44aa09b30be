"""The number of partitions of an application, which is fixed for its life.

Producers choose the partition of a key by their number. If partitions are added, keys lie in other
partitions than their calibrators, and labels in others than their observations. The state says
how many there were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import ConfigError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.transport import Reader

__all__ = [
    "partition_count",
    "partition_counts",
    "require_copartitioned",
    "require_partitions",
    "require_same_partitions",
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
    """Raise a StateError if labels are looked up by ids, and an input has not so many partitions.

    Inputs that are not in `counts` are not known.
    """
    known = {topic: counts[topic] for topic in application.sources if topic in counts}
    if application.finds_models and not {*known.values()} <= {expected}:
        found = ", ".join(f"{topic} has {count}" for topic, count in known.items())
        before = f", and there were {expected}" if len({*known.values()}) == 1 else ""
        msg = (
            "the inputs must have equally many partitions, and always as many, so that a label is "
            f"in the partition of its observation: {found} partitions{before}. "
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
    """Return the number of partitions of topics; all must exist."""
    counts = {topic: reader.partition_count(topic) for topic in topics}
    if missing := [topic for topic, count in counts.items() if not count]:
        why = "or permission DESCRIBE on it is missing"
        lines = [f"there is no topic {topic}, {why}" for topic in missing]
        fix = "create it, or let `abers run --create-topics` create what is missing"
        raise ConfigError([*lines, fix])
    return counts


def require_partitions(application: Application, counts: Mapping[str, int], expected: int) -> None:
    """Raise a StateError if the inputs or the changelog do not have so many partitions."""
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
