"""What a run found, in numbers.

Governing rule: every prediction was judged once, as it was issued; here the
sums are only put together.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers.stream import Processor
    from abers_connectors.alarms import AlarmRecord
    from abers_connectors.running import Run

__all__ = ["Means", "Summary", "finite", "put_together", "summarised"]


Means: TypeAlias = dict[str, float | None]
"""Mean scores of one view of the forecasts; None where there is nothing finite to say."""


class Summary(msgspec.Struct, frozen=True):
    """What a run found.

    Parameters
    ----------
    records, dead_letters
        How many records this run read, and how many dead letters it made, by reason.
    observations, labels
        How many were predicted, and learned, since the beginning of the state.
    raw, calibrated, mean_width
        What the predictions are worth; `raw` is None where the scores are no numbers, and not
        declared probabilities.
    events_per_second
        The speed of this run.
    waiting
        How many observations wait for labels, and labels for observations.
    counters
        Those of the processor that are not 0.
    alarms
        Those of this run.
    """

    records: int
    dead_letters: dict[str, int]
    observations: int
    labels: int
    raw: Means | None
    calibrated: Means | None
    mean_width: float | None
    events_per_second: float
    waiting: tuple[int, int]
    counters: dict[str, int]
    alarms: list[AlarmRecord] = []


def summarised(run: Run, events: int, seconds: float) -> Summary:
    """Put together what a run and its processor know; as `put_together`."""
    summary = put_together([run.processor], run.records, run.dead, events, seconds)
    return msgspec.structs.replace(summary, alarms=run.alarms)


def put_together(
    processors: Sequence[Processor],
    records: int,
    dead: Mapping[str, int],
    events: int,
    seconds: float,
) -> Summary:
    """Put together what processors know.

    Parameters
    ----------
    processors
        Of equal settings, at the end.
    records, dead
        How many records were read, and how many dead letters there are, by reason.
    events
        How many were taken.
    seconds
        How long it took.

    Returns
    -------
    Summary
        Over all models and segments, since the beginning of the state.
    """
    counters = Counter[str]()
    for processor in processors:
        counters.update(processor.counters)
    monitors = [monitor for processor in processors for monitor in processor.monitors]
    whole = type(monitors[0]).total(monitors) if monitors else None
    views = {} if whole is None else whole.views()
    width = math.nan if whole is None else whole.mean_width
    seen, told = zip(*(processor.waiting for processor in processors), strict=True)
    return Summary(
        records=records,
        dead_letters=dict(Counter(dead).most_common()),
        observations=counters["predictions"],
        labels=counters["labels"],
        raw=finite(views.get("raw")),
        calibrated=finite(views.get("calibrated")),
        mean_width=width if math.isfinite(width) else None,
        events_per_second=events / seconds if seconds > 0 else 0.0,
        waiting=(sum(seen), sum(told)),
        counters={name: count for name, count in counters.items() if count},
    )


def finite(means: Mapping[str, float] | None) -> Means | None:
    """Give means with None in place of what is not finite; None if there are none at all."""
    if means is None:
        return None
    return {name: mean if math.isfinite(mean) else None for name, mean in means.items()}
