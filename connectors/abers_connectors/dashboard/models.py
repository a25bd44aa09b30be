"""Models of a stream, with their segments: how they are found, ordered and named.

Wherever models are listed, those with an active alarm are first, then those with the strongest
evidence against their predictions. Each has the same name, however many processors share the
stream.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import msgspec

from abers_connectors.runtime.model_index import Key, ModelStatus, model_status, worst_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from abers.monitoring import TaskMonitor
    from abers.stream import Processor

__all__ = [
    "Key",
    "ModelStatus",
    "key_id",
    "key_name",
    "model_monitors",
    "model_statuses",
]


def model_monitors(processors: Iterable[Processor]) -> dict[Key, list[TaskMonitor]]:
    """Return the monitors of each model and segment, one a processor that has it."""
    found: dict[Key, list[TaskMonitor]] = {}
    for processor in processors:
        for key, monitor in zip(processor.keys, processor.monitors, strict=False):
            found.setdefault(key, []).append(monitor)
    return found


def model_statuses(models: Mapping[Key, Sequence[TaskMonitor]]) -> list[ModelStatus]:
    """Return the status of each model, the worst first."""
    return worst_first(
        reduce(ModelStatus.joined, [model_status(key, one) for one in monitors])
        for key, monitors in models.items()
    )


def key_id(key: Key) -> str:
    """Return a key as an address has it."""
    return msgspec.json.encode(key).decode()


def key_name(key: Key) -> str:
    """Return the name of a key; the only model of a stream may have an empty one."""
    model, segment = key
    return f"{model} · {segment}" if segment else model
