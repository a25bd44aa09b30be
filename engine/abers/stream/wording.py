"""What predictions and outcomes repeat of their events, whatever the task.

Governing rule: a task says what was predicted; whose prediction it is, is said here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from abers.stream.columns import Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers.stream.columns import Column, Events
    from abers.stream.tasks import Settled

__all__ = ["outcomes", "predictions"]

T = TypeVar("T", bound=msgspec.Struct)


def predictions(
    kind: type[T],
    events: Events,
    said: Mapping[str, Column],
    held: Column,
    more: Mapping[str, Column] | None = None,
) -> Rows[T]:
    """Make predictions of what is said of observations, with the labels that were held.

    What is said only at times comes last.
    """
    columns = {
        "id": events.ids,
        "time": events.times,
        "model": events.models,
        **said,
        "n": held,
        "segment": events.segments,
    }
    if events.extra is not None:
        columns["extra"] = events.extra
    elif more:
        columns["extra"] = np.full(len(events), None)
    return Rows(kind, {**columns, **(more or {})})


def outcomes(
    kind: type[T],
    settled: Settled,
    labels: Column,
    said: Mapping[str, Column],
    more: Mapping[str, Column] | None = None,
) -> Rows[T]:
    """Make outcomes of labels, and of what was said before they came; as `predictions`."""
    return Rows(
        kind,
        {
            "id": settled.events.ids,
            "time": settled.told,
            "model": settled.events.models,
            "predicted": settled.times,
            "label": labels,
            **said,
            "segment": settled.segments,
            **(more or {}),
        },
    )
