"""Where is it off? The rows of a period, as tables and as figures of reliability."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring.answers import formats
from abers.pages.blocks import (
    Column,
    FigureBlock,
    Mark,
    Picture,
    SectionBlock,
    Span,
    TableBlock,
    TableRow,
)
from abers.pages.model_findings import state_of_status, tone
from abers.pages.reliability_data import reliability_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.answers import Period, Row, View
    from abers.pages.figures.data import GapData, Which
    from abers.pages.model_findings import ModelFindings

__all__ = ["gap_bar", "gap_cells", "gap_limit", "group_sections", "which"]

_TITLES = {"raw": "what the model said", "calibrated": "what is served"}
_LIMITS = (5.0, 10.0, 25.0, 50.0, 100.0)  # points at the ends of bars


def group_sections(found: ModelFindings, period: Period, name: str) -> tuple[SectionBlock, ...]:
    """Return the tables of all views, and promised against came; the period has a name."""
    tables = tuple(_table(found, period, view, name) for view in period.views)
    of = " of the first choice" if found.several else ""
    gap = f"The gap is {found.came} − promised{of}, in points."
    ranges = (
        f"All ranges of a table hold together with 95{formats.NO_BREAK}%, however often you look."
    )
    return (
        SectionBlock(
            key=found.key(f"groups-{name}"),
            title="First choice: where is it off?" if found.several else "Where is it off?",
            why=f"{gap} A bar within the green is right, outside it wrong; a bar that only clears "
            f"the middle line leans. {ranges}",
            why_text=f"{gap} {ranges}",
            blocks=tables,
            detail="more",
        ),
        _against(found, period, name),
    )


def gap_limit(rows: Sequence[Row]) -> float:
    """Return the points at the ends of the bars of a table: all gaps and tolerances are within."""
    sizes = [
        abs(one)
        for row in rows
        for one in (row.gap, row.tolerance_low, row.tolerance_high)
        if one is not None
    ]
    return next((one for one in _LIMITS if one >= max(sizes, default=0.0)), _LIMITS[-1])


def which(view: str) -> Which:
    """Return the colour of a view in figures."""
    return "raw" if view == "raw" else "calibrated"


def gap_cells(row: Row) -> tuple[str, str]:
    """Return gap and range as cells."""
    if row.gap is None or row.low is None or row.high is None:
        return "", ""
    places = formats.decimals(row.low, row.high)
    gap = formats.signed(row.gap, places)
    return gap, formats.span((row.low, row.high), places, signs=True)


def gap_bar(row: Row, view: str, limit: float) -> Picture | str:
    """Return the bar of a gap; nothing without labels."""
    ends = (row.low, row.high, row.tolerance_low, row.tolerance_high)
    low, high, least, most = ends
    if row.gap is None or low is None or high is None or least is None or most is None:
        return ""
    data: GapData = {
        "which": which(view),
        "gap": row.gap,
        "low": low,
        "high": high,
        "tolerance": (least, most),
        "limit": limit,
        "missing": 0,
    }
    gap, range_ = gap_cells(row)
    tolerance = formats.span((least, most), 1, signs=True)
    return Picture("gap", data, f"gap {gap} points, range {range_}; tolerance {tolerance}")


def _table(found: ModelFindings, period: Period, view: str, name: str) -> TableBlock:
    """Return the table of a view."""
    fewer, more = found.faults
    rows = period.views[view].rows
    limit = gap_limit(rows)
    first = next((place for place, row in enumerate(rows) if not row.main), len(rows))
    return TableBlock(
        key=found.key(f"groups-{view}-{name}"),
        title=(Span(f"{view.capitalize()}: {_TITLES[view]}", tone(view)),),
        caption=f"{view.capitalize()} probabilities by group, {_of(found, period, name)}",
        columns=(
            Column(head="group", align="left"),
            Column(head="cases", room="some"),
            Column(head="promised", unit="%"),
            Column(head=found.came, unit="%"),
            Column(head="gap", unit="points"),
            Column(head="range"),
            Column(head=f"{fewer} ← gap → {more}", align="centre", room="much"),
            Column(head="so", align="left"),
        ),
        rows=tuple(
            TableRow(_cells(row, view, limit), main=row.main, separated=place == first)
            for place, row in enumerate(rows)
        ),
        detail="more",
    )


def _cells(row: Row, view: str, limit: float) -> tuple[str | Mark | Picture, ...]:
    promised, came = (
        "" if share is None else formats.number(100.0 * share, 1)
        for share in (row.promised, row.came)
    )
    return (
        row.name,
        formats.count(row.labels),
        promised,
        came,
        *gap_cells(row),
        gap_bar(row, view, limit),
        Mark(state_of_status(row.status), row.status),
    )


def _of(found: ModelFindings, period: Period, name: str) -> str:
    """Return which labels a table is of."""
    which_ones = "the latest" if name == "now" else "all"
    dates = formats.period(period.start, period.until, found.zone)
    return f"{which_ones} {formats.count(period.labels)} labels, {dates}"


def _against(found: ModelFindings, period: Period, name: str) -> SectionBlock:
    """Return the figures of promised against came."""
    lines = name == "whole"
    isotonic = (
        "; the thin line needs no groups (isotonic regression, warm-up included)" if lines else ""
    )
    below = " Below: cases in each tenth." if lines else ""
    return SectionBlock(
        key=found.key(f"against-{name}"),
        title=f"Promised against {found.came}",
        why=(
            "On the dotted line promise and outcome agree. Dots are the groups of the table above, "
            f"with their ranges{isotonic}. Green is the tolerance.{below}"
        ),
        detail="more",
        blocks=(
            FigureBlock(
                key=found.key(f"reliability-{name}"),
                pictures=tuple(
                    _reliability(found, period.views[view], view, whole=lines)
                    for view in period.views
                ),
            ),
        ),
    )


def _reliability(found: ModelFindings, view: View, name: str, *, whole: bool) -> Picture:
    data = reliability_data(found, view, name, whole=whole)
    label = f"{name}: {found.came} against promised; the table has the numbers"
    return Picture("reliability", data, label, title=(Span(name.capitalize(), tone(name)),))
