"""What a report says.

Governing rule: everything stands here as numbers, so the page shows nothing that the JSON does not
have; and nothing here tells when, how fast, or on what machine it was found, so the same replay
gives the same report.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

import abers
from abers.monitoring import BinaryMonitor, RegressionMonitor
from abers.stream.settings import CALIBRATORS
from abers_connectors.summary import finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream.processor import Processor
    from abers_connectors.records import Source
    from abers_connectors.report.gathering import Gathered
    from abers_connectors.summary import Means, Summary

__all__ = ["Moment", "Outcomes", "Report", "Run", "reported"]

_PART = 10  # a moment tells of one part of the stream in so many

Rows: TypeAlias = list[dict[str, float]]


class Run(NamedTuple):
    """What is known of a replay at its end.

    Parameters
    ----------
    title
        The words that named it.
    delay
        How many observations late the labels were, if that was the rule.
    source
        What was read.
    processor
        What predicted.
    summary
        What came of it.
    gathered
        What passed.
    """

    title: str
    delay: int | None
    source: Source
    processor: Processor
    summary: Summary
    gathered: Gathered


class Moment(msgspec.Struct, frozen=True):
    """Mean scores of the predictions before a label.

    Parameters
    ----------
    labels
        How many labels had come.
    over
        How many predictions before that are meant.
    raw, calibrated, mean_width
        As of a `Summary`.
    """

    labels: int
    over: int
    raw: Means | None
    calibrated: Means | None
    mean_width: float


class Outcomes(msgspec.Struct, frozen=True):
    """Predictions of numbers, and their labels, a row each.

    Parameters
    ----------
    first
        How many labels had come with the first of them.
    levels
        Of the quantiles.
    quantiles
        A list a row; null in JSON where one is infinite.
    scores, labels
        One a row.
    """

    first: int
    levels: tuple[float, ...]
    quantiles: list[list[float]]
    scores: list[float]
    labels: list[float]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A report.

    Parameters
    ----------
    abers
        The version that made it.
    stream, inputs
        What was replayed, and the names of what was read.
    task, calibrator
        What was predicted, and by what.
    delay
        How many observations late the labels were, if that was the rule.
    settings
        Those of the processor.
    records, dead_letters, observations, labels, waiting, raw, calibrated, mean_width
        As of a `Summary`.
    counters
        All those of the processor.
    over_time
        Scores in the course of the stream, each over a tenth of it.
    reliability
        Of a binary task, by view: forecast, share and labels of each of ten bins.
    intervals
        Of a regression: level, coverage and width of each central interval.
    pit
        Of a regression with whole distributions: labels by bin of the CDF at them.
    outcomes
        Of a regression: the last ones.
    """

    abers: str
    stream: str
    inputs: str
    task: str
    calibrator: str
    delay: int | None
    settings: dict[str, Any]
    records: int
    dead_letters: dict[str, int]
    observations: int
    labels: int
    waiting: tuple[int, int]
    counters: dict[str, int]
    raw: Means | None
    calibrated: Means | None
    mean_width: float | None
    over_time: list[Moment]
    reliability: dict[str, Rows] | None = None
    intervals: Rows | None = None
    pit: list[float] | None = None
    outcomes: Outcomes | None = None


def reported(run: Run) -> Report:
    """Put together what a report says.

    Parameters
    ----------
    run
        At its end.

    Returns
    -------
    Report
        Names of files are without their directories.
    """
    settings, summary = run.processor.settings, run.summary
    told = msgspec.structs.asdict(summary)
    del told["events_per_second"], told["counters"]
    return Report(
        abers=abers.__version__,
        stream=Path(run.title).name,
        inputs=" and ".join(Path(name).name for name in run.source.name.split(" and ")),
        task=settings.task,
        calibrator=settings.calibrator or CALIBRATORS[settings.task][0],
        delay=run.delay,
        counters=run.processor.counters,
        settings=msgspec.to_builtins(settings),
        over_time=_over_time(run.gathered),
        **told,
        **_of_task(run),
    )


def _over_time(gathered: Gathered) -> list[Moment]:
    stretches = gathered.stretches
    span = -(-stretches.count // (_PART * stretches.size))
    return [
        Moment(
            passage.end,
            passage.labels,
            finite(passage.monitor.views().get("raw")),
            finite(passage.monitor.views()["calibrated"]),
            passage.monitor.mean_width,
        )
        for passage in stretches.passages(max(span, 1))
    ]


def _of_task(run: Run) -> dict[str, Any]:
    """Give what only the monitors of one task know."""
    monitor = run.processor.monitor
    if isinstance(monitor, BinaryMonitor):
        views = {"raw": monitor.raw, "calibrated": monitor.calibrated}
        bins = {name: _rows(view.bins()) for name, view in views.items() if view is not None}
        return {"reliability": bins}
    if isinstance(monitor, RegressionMonitor):
        pit = monitor.pit_histogram
        return {
            "intervals": _rows(monitor.intervals),
            "pit": None if pit is None else pit.tolist(),
            "outcomes": _outcomes(run),
        }
    return {}


def _rows(found: Sequence[Any]) -> Rows:
    return [one._asdict() for one in found]


def _outcomes(run: Run) -> Outcomes:
    gathered, levels = run.gathered, run.processor.settings.quantiles
    return Outcomes(
        gathered.stretches.count - len(gathered.labels) + 1,
        levels,
        gathered.rows[:, 1 : 1 + len(levels)].tolist(),
        gathered.rows[:, :1].ravel().tolist(),
        gathered.labels.tolist(),
    )
