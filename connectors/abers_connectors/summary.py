"""What a run found, in numbers.

Governing rule: every prediction was judged once, as it was issued; here the
sums are only put together.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.running import Run

__all__ = ["Means", "Summary", "finite", "summarised"]


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


def summarised(run: Run, events: int, seconds: float) -> Summary:
    """Put together what a run and its processor know.

    Parameters
    ----------
    run
        At its end.
    events
        How many it took.
    seconds
        How long it took.

    Returns
    -------
    Summary
        Over all models and segments, since the beginning of the state.
    """
    processor = run.processor
    counters = processor.counters
    whole = processor.monitor
    views = {} if whole is None else whole.views()
    width = math.nan if whole is None else whole.mean_width
    return Summary(
        records=run.records,
        dead_letters=dict(run.dead.most_common()),
        observations=counters["predictions"],
        labels=counters["labels"],
        raw=finite(views.get("raw")),
        calibrated=finite(views.get("calibrated")),
        mean_width=width if math.isfinite(width) else None,
        events_per_second=events / seconds if seconds > 0 else 0.0,
        waiting=processor.waiting,
        counters={name: count for name, count in counters.items() if count},
    )


def finite(means: Mapping[str, float] | None) -> Means | None:
    """Give means with None in place of what is not finite; None if there are none at all."""
    if means is None:
        return None
    return {name: mean if math.isfinite(mean) else None for name, mean in means.items()}
