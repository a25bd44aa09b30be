"""What a report says.

Governing rule: everything stands here as numbers, so the page shows nothing that the JSON does not
have; and nothing here tells when, how fast, or on what machine it was found, so the same replay
gives the same report.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

import abers
from abers.monitoring import BinaryMonitor, RegressionMonitor
from abers.stream.settings import CALIBRATORS
from abers_connectors.summary import finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.monitoring import Evidence, Reliability
    from abers.stream import Settings
    from abers.stream.processor import Processor
    from abers.stream.tasks import Monitor
    from abers_connectors.records import Source
    from abers_connectors.report.gathering import Gathered
    from abers_connectors.summary import Means, Summary

__all__ = ["Ended", "Findings", "Moment", "Outcomes", "Report", "found", "judged", "reported"]

_PART = 10  # a moment tells of one part of the stream in so many

Rows: TypeAlias = list[dict[str, float]]


class Ended(NamedTuple):
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


class Corp(msgspec.Struct, frozen=True):
    """A reliability diagram.

    Parameters
    ----------
    blocks
        Lowest and highest forecast, share of labels 1, and labels of each block.
    band
        At some forecasts, between what the shares lie in nine of ten cases if forecasts are right.
    brier
        The parts of the Brier score: score, miscalibration, discrimination, uncertainty.
    """

    blocks: Rows
    band: Rows
    brier: dict[str, float]


class Tested(msgspec.Struct, frozen=True):
    """What a test has come to; see `abers.monitoring.Evidence`.

    Parameters
    ----------
    name, log_wealth, line, ringing, episodes, guarantee, skipped
        As there.
    since
        Event time at which the last episode opened; None before the first.
    """

    name: str
    log_wealth: float
    line: float
    ringing: bool
    episodes: int
    since: int | None
    guarantee: str
    skipped: int


class Raised(msgspec.Struct, frozen=True):
    """An alarm, and how many labels had come.

    Parameters
    ----------
    labels
        How many; a batch may have brought some more.
    number, time, log_wealth, sentence
        As of `abers.stream.Alarm`.
    """

    labels: int
    number: int
    time: int
    log_wealth: float
    sentence: str


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What labels said of some predictions.

    Parameters
    ----------
    labels
        How many came.
    raw, calibrated, mean_width
        As of a `Summary`.
    over_time
        Scores in the course of the stream, each over a tenth of it.
    reliability
        Of a binary task, by view: forecast, share and labels of each of ten bins.
    diagrams
        Of a binary task, by view: the CORP reliability diagram.
    tests
        What each test that bets against the predictions has come to.
    evidence
        Of a change, over time: labels so far, and natural logarithm of the evidence.
    alarms
        The last ones.
    intervals
        Of a regression: level, coverage and width of each central interval.
    pit
        Of a regression with whole distributions: labels by bin of the CDF at them.
    outcomes
        Of a regression: the last ones.
    """

    labels: int
    raw: Means | None
    calibrated: Means | None
    mean_width: float | None
    over_time: list[Moment]
    reliability: dict[str, Rows] | None = None
    diagrams: dict[str, Corp] | None = None
    tests: list[Tested] = []
    evidence: Rows = []
    alarms: list[Raised] = []
    intervals: Rows | None = None
    pit: list[float] | None = None
    outcomes: Outcomes | None = None


class Report(Findings, frozen=True, kw_only=True):
    """A report: the findings of all predictions together, and where they are from.

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
    records, dead_letters, observations, waiting
        As of a `Summary`.
    counters
        All those of the processor.
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
    waiting: tuple[int, int]
    counters: dict[str, int]


def reported(run: Ended) -> Report:
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
    settings, summary, monitor = run.processor.settings, run.summary, run.processor.monitor
    findings = _NOTHING if monitor is None else found(monitor, run.gathered, settings)
    return Report(
        abers=abers.__version__,
        stream=Path(run.title).name,
        inputs=" and ".join(Path(name).name for name in run.source.name.split(" and ")),
        task=settings.task,
        calibrator=settings.calibrator or CALIBRATORS[settings.task][0],
        delay=run.delay,
        settings=msgspec.to_builtins(settings),
        records=summary.records,
        dead_letters=summary.dead_letters,
        observations=summary.observations,
        waiting=summary.waiting,
        counters=run.processor.counters,
        **msgspec.structs.asdict(findings) | {"labels": summary.labels},
    )


_NOTHING = Findings(labels=0, raw=None, calibrated=None, mean_width=None, over_time=[])


def found(monitor: Monitor, gathered: Gathered, settings: Settings) -> Findings:
    """Put together what is known of some predictions.

    Parameters
    ----------
    monitor
        What judged them.
    gathered
        Those that passed while somebody gathered.
    settings
        Of what predicted.

    Returns
    -------
    Findings
        They stay as they are when the monitor goes on.
    """
    views, width = monitor.views(), monitor.mean_width
    return Findings(
        labels=judged(monitor),
        raw=finite(views.get("raw")),
        calibrated=finite(views["calibrated"]),
        mean_width=width if math.isfinite(width) else None,
        over_time=_over_time(gathered),
        tests=[_tested(one) for one in monitor.tests],
        evidence=[{"labels": n, "log_wealth": height} for n, height in gathered.trail.points],
        alarms=[
            Raised(labels, one.number, one.time, one.log_wealth, one.sentence)
            for labels, one in gathered.trail.alarms
        ],
        **_of_task(monitor, gathered, settings),
    )


def judged(monitor: Any) -> int:  # noqa: ANN401 - of any task
    """Count the predictions that a monitor judged."""
    one = monitor if isinstance(monitor, RegressionMonitor) else monitor.calibrated
    return int(one.count)


def _tested(one: Evidence) -> Tested:
    since = None if one.last is None else one.last.first
    return Tested(
        one.name,
        one.log_wealth,
        one.line,
        one.ringing,
        one.episodes,
        since,
        one.guarantee,
        one.skipped,
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


def _of_task(monitor: Monitor, gathered: Gathered, settings: Settings) -> dict[str, Any]:
    """Give what only the monitors of one task know."""
    if isinstance(monitor, BinaryMonitor):
        views = {"raw": monitor.raw, "calibrated": monitor.calibrated}
        bins = {name: _rows(view.bins()) for name, view in views.items() if view is not None}
        diagrams = {
            name: _corp(name, view.reliability, gathered)
            for name, view in views.items()
            if view is not None and view.reliability is not None
        }
        return {"reliability": bins, "diagrams": diagrams}
    if isinstance(monitor, RegressionMonitor):
        pit = monitor.pit_histogram
        return {
            "intervals": _rows(monitor.intervals),
            "pit": None if pit is None else pit.tolist(),
            "outcomes": _outcomes(gathered, settings.quantiles),
        }
    return {}


def _corp(name: str, reliability: Reliability, gathered: Gathered) -> Corp:
    diagram = reliability.diagram()
    band = gathered.bands(name, diagram)
    blocks = (diagram.lower, diagram.upper, diagram.probability, diagram.count)
    return Corp(
        _columns(("lower", "upper", "share", "labels"), blocks),
        _columns(("forecast", "lower", "upper"), band),
        diagram.decomposition()._asdict(),
    )


def _columns(names: Sequence[str], columns: Sequence[NDArray[Any]]) -> Rows:
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _rows(found: Sequence[Any]) -> Rows:
    return [one._asdict() for one in found]


def _outcomes(gathered: Gathered, levels: tuple[float, ...]) -> Outcomes:
    return Outcomes(
        gathered.stretches.count - len(gathered.labels) + 1,
        levels,
        gathered.rows[:, 1 : 1 + len(levels)].tolist(),
        gathered.rows[:, :1].ravel().tolist(),
        gathered.labels.tolist(),
    )
