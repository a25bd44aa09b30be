"""Which events of models that nobody knows were refused, because there were too many models."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.connectors.kafka.chaos.routed_judge import SLOTS, Place, decoded, slot_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kafka.consumer.fetcher import ConsumerRecord
    from tests.connectors.day.application import DayApplication

__all__ = ["crowded"]


def crowded(
    application: DayApplication,
    tapped: Mapping[int, Sequence[ConsumerRecord]],
    refused: Iterable[Place],
    most: int,
    read: Callable[[bytes], Any],
) -> set[Place]:
    """Return the places of the events of new models that come when a partition has its models.

    Parameters
    ----------
    application
        The application.
    tapped
        Routed records by generation, each by partition and offset.
    refused
        Places of records that are refused for another reason.
    most
        Number of models that a partition may have.
    read
        Reads a record of the inputs.
    """
    known: dict[str, int] = {}  # slots of the models, which move with their slots
    found: set[Place] = set()
    bad, counts = {*refused}, application.counts
    by_generation: dict[int, list[tuple[Place, dict[str, Any]]]] = defaultdict(list)
    for one in decoded(application, tapped):
        if one.origin not in bad:
            by_generation[one.generation].append((one.origin, read(one.record.value or b"")))
    for generation, events in sorted(by_generation.items()):
        here: dict[int, int] = defaultdict(int)
        for slot in known.values():
            here[slot * counts[generation] // SLOTS] += 1
        for origin, event in events:
            model = event["model"]
            if model in known:
                continue
            slot = slot_of(model)
            partition = slot * counts[generation] // SLOTS
            if here[partition] >= most:
                found.add(origin)
                continue
            known[model] = slot
            here[partition] += 1
    return found
