"""From a monitor, and from what was gathered beside it, to findings.

Governing rule: findings are copies, and tell the same whoever asks for them: a report, or the live
page.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from abers.monitoring import BinaryMonitor, RegressionMonitor
from abers_connectors.models import judged
from abers_connectors.report.findings import Corp, Findings, Moment, Outcomes, Raised, Tested
from abers_connectors.summary import finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.monitoring import Evidence, Reliability
    from abers.stream import Settings
    from abers.stream.tasks import Monitor
    from abers_connectors.report.findings import Rows
    from abers_connectors.report.gathering import Gathered

__all__ = ["found"]

_PART = 10  # a moment tells of one part of the stream in so many


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
