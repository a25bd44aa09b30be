"""Models of a stream, with their segments: how they are found, ordered and named.

Wherever models are listed, those with an active alarm are first, then those with the strongest
evidence against their predictions. Each has the same name, however many processors share the
stream.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import msgspec

from abers_connectors.dashboard.power import evidence_text
from abers_connectors.replay.score_text import score_cell, score_labels
from abers_connectors.replay.summary import finite
from abers_connectors.runtime.model_index import Key, ModelStatus, model_status, worst_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from abers.monitoring import TaskMonitor
    from abers.stream import Processor
    from abers_connectors.replay.summary import Means

__all__ = [
    "Key",
    "ModelStatus",
    "calibrated_means",
    "described",
    "evidence_cell",
    "key_id",
    "key_name",
    "listed_name",
    "model_monitors",
    "model_statuses",
    "model_table",
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


def calibrated_means(monitors: Sequence[TaskMonitor]) -> Means | None:
    """Return the mean scores of the calibrated predictions of a model."""
    return finite(type(monitors[0]).total(monitors).views()["calibrated"])


def key_id(key: Key) -> str:
    """Return a key as an address has it."""
    return msgspec.json.encode(key).decode()


def key_name(key: Key) -> str:
    """Return the name of a key; the only model of a stream may have an empty one."""
    model, segment = key
    return f"{model} · {segment}" if segment else model


def listed_name(key: Key, *, active: bool) -> str:
    """Return the name of a key in a list, with a mark if its alarm is active."""
    return (key_name(key) or "default") + (" (alarm)" if active else "")


def described(one: ModelStatus) -> str:
    """Return the name of a model in a long list, with its strongest evidence and its labels."""
    evidence = evidence_cell(one)
    noun = "label" if one.labels == 1 else "labels"
    beside = [f"evidence {evidence}"] if evidence else []
    return ", ".join((listed_name(one.key, active=one.active), *beside, f"{one.labels:,} {noun}"))


def evidence_cell(one: ModelStatus) -> str:
    """Return the strongest evidence against a model, and its threshold; empty without tests."""
    return evidence_text(one.log_wealth, one.log_threshold) if one.test else ""


def model_table(
    models: Sequence[tuple[str, int, Means | None]], evidence: Sequence[str] = ()
) -> tuple[list[str], list[list[str]]]:
    """Return the column names and the rows of a table of models.

    Each has a name, the number of predictions scored, and calibrated means. If there is evidence of
    any, it has a column.

    Examples
    --------
    >>> model_table([("fraud", 1200, {"brier": 0.25}), ("spam", 0, None)])
    (['model', 'labels', 'Brier score'], [['fraud', '1,200', '0.2500'], ['spam', '0', '-']])
    """
    names = score_labels(
        {name: None for _, _, means in models for name in means or ()}, briefly=True
    )
    rows = [
        [title, f"{labels:,}", *(score_cell(means, name, labels) for name in names)]
        for title, labels, means in models
    ]
    columns = ["model", "labels", *names.values()]
    if any(evidence):
        columns.insert(2, "evidence")
        for row, one in zip(rows, evidence, strict=True):
            row.insert(2, one)
    return columns, rows
