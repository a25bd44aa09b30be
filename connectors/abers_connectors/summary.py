"""What a run found, in numbers.

Governing rule: every prediction was judged once, as it was issued; here the
sums are only put together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from abers.monitoring import BinaryMonitor

if TYPE_CHECKING:
    from abers.monitoring import PrequentialScores
    from abers_connectors.running import Run

__all__ = ["Means", "Summary", "summarised"]


class Means(msgspec.Struct, frozen=True):
    """Mean scores of one view of the forecasts; None where there is nothing finite to say."""

    log_loss: float | None
    log_loss_infinite: int
    brier: float | None
    ece: float | None


class Summary(msgspec.Struct, frozen=True):
    """What a run found.

    Parameters
    ----------
    records, dead_letters
        How many records this run read, and how many dead letters it made, by reason.
    observations, labels
        How many were predicted, and learned, since the beginning of the state.
    raw, calibrated, mean_width
        What the predictions are worth; `raw` is None where the scores are not declared
        probabilities.
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
    monitors = [one for one in processor.monitors if isinstance(one, BinaryMonitor)]
    whole = BinaryMonitor.total(monitors) if monitors else None
    return Summary(
        records=run.records,
        dead_letters=dict(run.dead.most_common()),
        observations=counters["predictions"],
        labels=counters["labels"],
        raw=_means(whole.raw) if whole is not None and whole.raw is not None else None,
        calibrated=None if whole is None else _means(whole.calibrated),
        mean_width=whole.mean_width if whole is not None and whole.calibrated.count else None,
        events_per_second=events / seconds if seconds > 0 else 0.0,
        waiting=processor.waiting,
        counters={name: count for name, count in counters.items() if count},
    )


def _means(scores: PrequentialScores) -> Means:
    if not scores.count:
        return Means(None, 0, None, None)
    log_loss = None if scores.infinite else scores.log_loss
    return Means(log_loss, scores.infinite, scores.brier, scores.ece)
