"""Figures of the history of a model: evidence, experts and scores over time, and the last labels.

Where events have dates, these are the axis, and labels are counted in hover texts and tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring import (
    ALARM_TEST,
    Figure,
    MixtureMonitor,
    axis_dates,
    event_time,
    figures_over_time,
    missing_labels,
    recent_windows,
)
from abers_connectors.dashboard.power import power

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers.monitoring import TaskMonitor
    from abers.monitoring.evidence import Evidence
    from abers.monitoring.mixture_monitor import LossWords
    from abers_connectors.dashboard.model_history import ExpertsAt, JoinedHistory

__all__ = ["history_figures"]

_EVIDENCE = (
    "The height is evidence against the predictions, as a power of ten: 2 means 100 to 1. "
    "A low line is good: the test is quiet below the threshold. Each star is an alarm. "
)


def history_figures(history: JoinedHistory, monitor: TaskMonitor) -> Iterator[Figure]:
    """Yield the figures of a history, in the order in which to read them."""
    change = next((one for one in monitor.tests if one.name == ALARM_TEST), None)
    if change is not None and history.evidence:
        yield _evidence(history, change)
    for one in monitor.others:
        if isinstance(one, MixtureMonitor) and history.experts:
            yield from _experts(history.experts, one.words)
    yield from figures_over_time([*recent_windows(history.windows)])
    if len(history.last):
        yield from _last_labels(history, monitor.count)


def _evidence(history: JoinedHistory, change: Evidence) -> Figure:
    """Return the figure of the evidence of a change."""
    labels = [one.labels for one in history.evidence]
    heights = [power(one.log_wealth) for one in history.evidence]
    times = [one.time for one in history.evidence]
    dates = axis_dates(times)
    alarms = [(alarm.time if dates else n, power(alarm.log_wealth)) for n, alarm in history.alarms]
    return Figure(
        "evidence",
        "Evidence of a change",
        "evidence",
        {
            "labels": labels,
            "heights": heights,
            "threshold": power(change.log_threshold),
            "alarms": alarms,
            "dates": dates,
        },
        _EVIDENCE + change.guarantee,
        ["labels so far", "until", "evidence, powers of ten"],
        [
            [n, event_time(time), f"{height:z.2f}"]
            for n, time, height in zip(labels, times, heights, strict=True)
        ],
        missing_labels(labels),
    )


def _experts(points: Sequence[ExpertsAt], words: LossWords) -> Iterator[Figure]:
    """Yield the weights over time, and the losses above that of the base."""
    base, *others = points[-1].experts
    weighted = [name for name, one in points[-1].experts.items() if one.weight is not None]
    yield _over_time(
        "experts-over-time",
        "Trusted experts over time",
        points,
        {name: [one.experts[name].weight for one in points] for name in weighted},
        "weight",
        caption=f"{words.mixing} by these weights.",
    )
    yield _over_time(
        "losses-over-time",
        f"{words.loss[0].upper()}{words.loss[1:]} above that of {words.of_base}",
        points,
        {
            name: [one.experts[name].loss - one.experts[base].loss for one in points]
            for name in others
        },
        f"{words.unit}, in all",
        caption=f"Total {words.loss} so far, less that of {words.of_base}, which is the zero line. "
        f"Below zero is better than {words.of_base}; {words.mixture} never rises above the bound.",
    )


def _over_time(  # noqa: PLR0913 - the parts of a figure
    name: str,
    title: str,
    points: Sequence[ExpertsAt],
    lines: Mapping[str, Sequence[float | None]],
    unit: str,
    *,
    caption: str,
) -> Figure:
    labels, times = [one.labels for one in points], [one.time for one in points]
    return Figure(
        name,
        title,
        "series",
        {"x": labels, "views": lines, "y_name": unit, "dates": axis_dates(times)},
        caption,
        ["labels so far", "until", *lines],
        [
            [n, event_time(time), *row]
            for n, time, *row in zip(labels, times, *lines.values(), strict=True)
        ],
        missing_labels(labels),
    )


def _last_labels(history: JoinedHistory, labels: int) -> Iterator[Figure]:
    """Yield the last predictions of a regression, by score and in their order."""
    count, levels = len(history.last), history.levels
    numbers = [*range(labels - count + 1, labels + 1)]
    rows = [
        [n, *(f"{one:.6g}" for one in row)]
        for n, row in zip(numbers, history.last.tolist(), strict=True)
    ]
    shared = {
        "quantiles": history.last[:, 2:].tolist(),
        "levels": levels,
        "labels": history.last[:, 0].tolist(),
    }
    scores = history.last[:, 1].tolist()
    heading = f"Last {count:,} labels and their predictions"
    caption = (
        "Points are labels. The blue areas are the central intervals that were predicted, the "
        "widest palest; one without an end reaches the edge."
    )
    by_score = {"x": scores, "x_name": "raw score", "scores": scores}
    in_order = {"x": numbers, "x_name": "number of the label"}
    for name, title, kind, data in (
        ("fan-by-score", f"{heading}, by score", "fan_chart", by_score),
        ("fan", heading, "interval_bars", in_order),
    ):
        yield Figure(
            name,
            title,
            kind,
            {**data, "y_name": "label", **shared},
            caption,
            ["number", "label", "raw score", *(f"quantile {q:g}" for q in levels)],
            rows,
        )
