"""What predictions and outcomes repeat of their events, whatever the task.

Governing rule: a task says what was predicted; whose prediction it is, is said here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from abers.stream.columns import Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers.stream.columns import Column, Events
    from abers.stream.tasks import Settled

__all__ = ["outcomes", "predictions"]

T = TypeVar("T", bound=msgspec.Struct)


def predictions(kind: type[T], events: Events, said: Mapping[str, Column], held: Column) -> Rows[T]:
    """Make predictions of what is said of observations, with the labels that were held."""
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
    return Rows(kind, columns)


def outcomes(
    kind: type[T], settled: Settled, labels: Column, said: Mapping[str, Column]
) -> Rows[T]:
    """Make outcomes of labels, and of what was said before they came."""
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
        },
    )
