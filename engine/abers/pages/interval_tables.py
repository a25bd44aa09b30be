"""Are the intervals right? Tables of a period, and the latest labels with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring.answers import IntervalRow, formats
from abers.monitoring.regression import central_pairs
from abers.pages.blocks import (
    Column,
    FigureBlock,
    Mark,
    Picture,
    SectionBlock,
    TableBlock,
    TableRow,
)
from abers.pages.model_findings import state_of_status
from abers.pages.period_groups import gap_bar, gap_cells, gap_limit

if TYPE_CHECKING:
    from abers.monitoring.answers import Period
    from abers.pages.figures.data import IntervalBand, IntervalsData
    from abers.pages.model_findings import LatestOutcomes, ModelFindings

__all__ = ["interval_sections", "latest_section"]


def interval_sections(found: ModelFindings, period: Period, name: str) -> tuple[SectionBlock, ...]:
    """Return the table of all levels in a period; the period has a name."""
    rows = [row for row in period.views[found.served].rows if isinstance(row, IntervalRow)]
    if not rows:
        return ()
    limit = gap_limit(rows)
    unit = found.details.outcomes.unit.strip() if found.details.outcomes else ""
    dates = formats.period(period.start, period.until, found.zone)
    table = TableBlock(
        key=found.key(f"intervals-{name}-table"),
        caption=f"Intervals by level, {formats.count(period.labels)} labels, {dates}",
        columns=(
            Column(head="interval", align="left"),
            Column(head="labels", room="some"),
            Column(head="inside", unit="%"),
            Column(head="gap"),
            Column(head="range"),
            Column(head="below / above", unit="%", room="much"),
            Column(head="width", unit=unit),
            Column(head="narrow ← gap → wide", align="centre", room="much"),
            Column(head="so", align="left"),
        ),
        rows=tuple(TableRow(_cells(row, limit), main=row.main) for row in rows),
        note=_endless(rows),
    )
    return (
        SectionBlock(
            key=found.key(f"intervals-{name}"),
            title="Are the intervals right?",
            why="The gap is inside − promised, in points: below zero too narrow, above too wide. "
            f"All ranges hold together with 95{formats.NO_BREAK}%, however often you look.",
            blocks=(table,),
        ),
    )


def _cells(row: IntervalRow, limit: float) -> tuple[str | Mark | Picture, ...]:
    shares = [
        formats.number(100.0 * one / row.labels, 1) if row.labels else ""
        for one in (row.came_count, row.below_count, row.above_count)
    ]
    return (
        row.name,
        formats.count(row.labels),
        shares[0],
        *gap_cells(row),
        f"{shares[1]} / {shares[2]}",
        "" if row.width is None else formats.significant(row.width),
        gap_bar(row, "calibrated", limit),
        Mark(state_of_status(row.status), row.status),
    )


def _endless(rows: list[IntervalRow]) -> str:
    """Return how many intervals have no limit."""
    labels, finite = rows[0].labels, min(row.finite for row in rows)
    if finite == labels:
        return ""
    without = formats.count(labels - finite)
    return (
        f"{without} of {formats.count(labels)} predictions had an interval without a limit. They "
        "are in no mean width."
    )


def latest_section(found: ModelFindings) -> tuple[SectionBlock, ...]:
    """Return the figure of the latest labels; nothing if they are unknown."""
    latest = found.details.outcomes
    if latest is None or not len(latest.rows):
        return ()
    n = len(latest.rows)
    shown = central_pairs(latest.levels)
    names = [f"{100.0 * share:.9g}" for *_, share in reversed(shown)]
    levels = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
    outside = f", large and red where it fell outside the {names[-1]} % interval" if names else ""
    figure = FigureBlock(
        key=found.key("latest-figure"),
        pictures=(
            Picture("intervals", _data(latest), f"The latest {n} labels with their intervals"),
        ),
    )
    return (
        SectionBlock(
            key=found.key("latest"),
            title=f"The last {n} labels",
            why=f"Bars are the {levels} % intervals; a dot is the label{outside}.".replace(
                " %", f"{formats.NO_BREAK}%"
            ),
            blocks=(figure,),
            record={"labels": latest.rows[:, 0].tolist(), "quantiles": latest.rows[:, 2:].tolist()},
            detail="more",
        ),
    )


def _data(latest: LatestOutcomes) -> IntervalsData:
    bands: list[IntervalBand] = [
        {
            "level": round(100.0 * share),
            "low": latest.rows[:, 2 + low].tolist(),
            "high": latest.rows[:, 2 + high].tolist(),
        }
        for low, high, share in central_pairs(latest.levels)
    ]
    return {
        "x": [float(row) for row in range(1, len(latest.rows) + 1)],
        "zone": None,
        "unit": latest.unit,
        "label": latest.rows[:, 0].tolist(),
        "bands": bands,
        "missing": 0,
    }
