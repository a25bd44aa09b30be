"""Numbers and figures of one model at one moment, for a page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from abers.monitoring import ALARM_TEST, Figure, figures_over_time
from abers_connectors.replay.summary import finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers.monitoring import Bands, Decomposition, Diagram, Evidence, TaskMonitor
    from abers.stream import Alarm
    from abers_connectors.dashboard.history import EvidenceTrail, ModelHistory
    from abers_connectors.replay.summary import Means

__all__ = ["HIGHEST", "ModelView", "power"]

HIGHEST = 30.0
"""Largest power of ten of evidence that is shown."""


class ModelView(NamedTuple):
    """Numbers and figures of one model; they do not change with the stream.

    Means and mean width are those of `Summary`. The parts of the Brier score are by view, where
    there is a reliability diagram. Each alarm is behind the number of labels so far. The figures of
    the monitor come before those of its history.
    """

    labels: int
    raw: Means | None
    calibrated: Means | None
    mean_width: float | None
    brier: dict[str, Decomposition]
    tests: Sequence[Evidence]
    alarms: Sequence[tuple[int, Alarm]]
    figures: Sequence[Figure]

    @classmethod
    def of(cls, monitor: TaskMonitor, history: ModelHistory) -> ModelView:
        """Return the view of a monitor and its history."""
        brier: dict[str, Decomposition] = {}

        def bands(view: str, diagram: Diagram) -> Bands:
            brier[view] = diagram.decomposition()
            return history.bands(view, diagram)

        views, width, tests = monitor.views(), monitor.mean_width, monitor.tests
        figures = [*monitor.figures(bands), *_history_figures(history, tests)]
        return cls(
            labels=monitor.count,
            raw=finite(views.get("raw")),
            calibrated=finite(views["calibrated"]),
            mean_width=width if math.isfinite(width) else None,
            brier=brier,
            tests=tests,
            alarms=[*history.trail.alarms],
            figures=figures,
        )


def power(log_wealth: float) -> float:
    """Return the power of ten, up to the largest that is shown."""
    return min(log_wealth / math.log(10.0), HIGHEST)


def _history_figures(history: ModelHistory, tests: Sequence[Evidence]) -> Iterator[Figure]:
    """Yield the figures of a history, in the order in which to read them."""
    changes = [one for one in tests if one.name == ALARM_TEST]
    if changes and history.trail.points:
        yield _evidence(history.trail, changes)
    yield from history.experts.figures()
    yield from figures_over_time([*history.windowed.recent()])
    if len(history.labels):
        yield from _last_predictions(history)


def _evidence(trail: EvidenceTrail, changes: Sequence[Evidence]) -> Figure:
    """Return the figure of the evidence of a change, in the view that has the most."""
    change, several = changes[0], len(changes) > 1
    labels = [n for n, _ in trail.points]
    heights = [power(height) for _, height in trail.points]
    return Figure(
        "evidence",
        "Evidence of a change",
        "evidence",
        {
            "labels": labels,
            "heights": heights,
            "threshold": power(change.log_threshold),
            "alarms": [(n, power(alarm.log_wealth)) for n, alarm in trail.alarms],
        },
        ("At each moment that of the view with the most evidence. " if several else "")
        + change.guarantee,
        ["labels so far", "evidence, powers of ten"],
        [[n, f"{height:.2f}"] for n, height in zip(labels, heights, strict=True)],
    )


def _last_predictions(history: ModelHistory) -> Iterator[Figure]:
    """Yield the last predictions of a regression, by score and in their order."""
    count = len(history.labels)
    numbers = [*range(history.first, history.first + count)]
    labels, scores = history.labels.tolist(), history.scores.tolist()
    quantiles, levels = history.quantiles.tolist(), history.levels
    rows = [
        [n, *(f"{one:.6g}" for one in (label, score, *row))]
        for n, label, score, row in zip(numbers, labels, scores, quantiles, strict=True)
    ]
    shared = {"quantiles": quantiles, "levels": levels, "labels": labels, "scores": scores}
    heading = f"Last {count:,} labels and their predictions"
    for name, title, x, x_name in (
        ("fan-by-score", f"{heading}, by score", scores, "raw score"),
        ("fan", heading, numbers, "number of the label"),
    ):
        yield Figure(
            name,
            title,
            "fan_chart",
            {"x": x, "x_name": x_name, "y_name": "label", **shared},
            "Central intervals, the widest palest; one without an end reaches the edge.",
            ["number", "label", "raw score", *(f"quantile {q:g}" for q in levels)],
            rows,
        )
