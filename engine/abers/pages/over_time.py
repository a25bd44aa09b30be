"""Promised and came over time, by halves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring.answers import formats
from abers.monitoring.event_time import is_date
from abers.pages.blocks import (
    Column,
    FigureBlock,
    LegendEntry,
    Picture,
    SectionBlock,
    Span,
    TableBlock,
    TableRow,
    Trace,
    Traces,
)
from abers.pages.spark_lines import moments

if TYPE_CHECKING:
    from abers.monitoring.answers import Dot
    from abers.pages.figures.data import OverTimeData
    from abers.pages.model_findings import ModelFindings, ReferenceShares

__all__ = ["over_time_section"]


def over_time_section(found: ModelFindings) -> tuple[SectionBlock, ...]:
    """Return the figures of promised and came over time, and what a text draws of them.

    Without promises there are no figures.
    """
    points = found.answers.over_time
    if not any(one.groups for one in points):
        return ()
    most = max(one.labels for one in points)
    fault = "intervals were too narrow" if found.of_numbers else "too much was promised"
    figure = FigureBlock(
        key=found.key("over-time-figure"),
        legend=_legend(found),
        pictures=tuple(_picture(found, key) for key in _groups(found)),
        traces=_traces(found),
    )
    section = SectionBlock(
        key=found.key("over-time"),
        title="Promised and came over time",
        why=(
            f"Each dot is up to {formats.count(most)} labels. Where a line runs above the dots, "
            f"{fault}. The shaded range is of each dot alone."
        ),
        why_text=(
            f"Each block is up to {formats.count(most)} labels. Where promised is above "
            f"{found.came}, {fault}."
        ),
        blocks=(figure, *_compared(found)),
        record={"points": found.record["over_time"]},
    )
    return (section,)


def _compared(found: ModelFindings) -> tuple[TableBlock, ...]:
    """Return the reference period and now, a row each; nothing without a reference."""
    reference, now = found.details.reference, found.answers.now
    if reference is None or now is None:
        return ()
    views = [view for view in reference.promised if view in now.views and now.views[view].main]
    if not views:
        return ()
    main = {view: now.views[view].main[0] for view in views}
    rows = [
        ("reference", *reference),
        (
            "now",
            now.start,
            now.until,
            now.labels,
            {view: one.promised or 0.0 for view, one in main.items()},
            {view: one.came or 0.0 for view, one in main.items()},
        ),
    ]
    table = TableBlock(
        key=found.key("reference"),
        caption=f"What was promised and {found.came} in the reference period, and now",
        columns=(
            Column(head="period", align="left"),
            Column(head="time", align="left", room="much"),
            Column(head="labels", room="some"),
            *(Column(head=f"{view}, promised", unit="%") for view in views),
            Column(head=found.came, unit="%"),
        ),
        rows=tuple(
            TableRow(
                (
                    name,
                    formats.period(start, end, found.zone),
                    formats.count(labels),
                    *(formats.number(100.0 * promised[view], 1) for view in views),
                    formats.number(100.0 * came[views[-1]], 1),
                )
            )
            for name, start, end, labels, promised, came in rows
        ),
        record={"reference": reference._asdict()},
    )
    return (table,)


def _times(reference: ReferenceShares) -> tuple[float, float]:
    return float(reference.start), float(reference.end)


def _groups(found: ModelFindings) -> list[str]:
    """Return the keys of the groups that are drawn: both halves if there are two."""
    known = {key for one in found.answers.over_time for key in one.groups}
    if {"lower", "upper"} <= known:
        return ["upper", "lower"]
    return ["all"] if "all" in known else [_main_level(found)]


def _main_level(found: ModelFindings) -> str:
    whole = found.answers.whole
    return "all" if whole is None else whole.views[found.served].main[0].key


def _title(found: ModelFindings, key: str) -> str:
    """Return what the cases of a group are."""
    whole = found.answers.whole
    if key == "all" or whole is None:
        return "All"
    view = whole.views["raw" if "raw" in whole.views else found.served]
    name = next((row.name for row in view.rows if row.key == key), key)
    return f"{name} intervals" if found.of_numbers else name


def _legend(found: ModelFindings) -> tuple[LegendEntry, ...]:
    entries = [LegendEntry("came", f"{found.came}, with its 95{formats.NO_BREAK}% range")]
    if "raw" in _views(found):
        entries.append(LegendEntry("raw", (Span("raw", "raw"), " promised")))
    if "calibrated" in _views(found):
        entries.append(LegendEntry("calibrated", (Span("calibrated", "calibrated"), " promised")))
    if found.details.alarms:
        entries.append(LegendEntry("alarm", "alarm"))
    return tuple(entries)


def _views(found: ModelFindings) -> list[str]:
    whole = found.answers.whole
    return [] if whole is None else [*whole.views]


def _picture(found: ModelFindings, key: str) -> Picture:
    of = "First choice" if found.several else "" if found.of_numbers else "Probability"
    words = f"{'' if key == 'all' else of} {_title(found, key)}".strip()
    label = f"{words}: promised and {found.came} over time; the tables have the numbers"
    return Picture("over_time", _data(found, key), label, title=words)


def _data(found: ModelFindings, key: str) -> OverTimeData:
    """Return the columns of a group; a point without its labels is a gap."""
    points, whole, now = found.answers.over_time, found.answers.whole, found.answers.now
    dots = [one.groups.get(key) for one in points]
    start, until = (points[0].start, points[-1].until) if whole is None else _ends(found)
    split = now is not None and whole is not None and now.labels < whole.labels
    return {
        "x": moments(found.answers),
        "zone": found.zone if is_date(until) else None,
        "ends": (float(start), float(until)),
        "labels": [0 if one is None else one.labels for one in dots],
        "came": [_share(one, "came", found.served) for one in dots],
        "low": [_share(one, "low", found.served) for one in dots],
        "high": [_share(one, "high", found.served) for one in dots],
        "raw": [_share(one, "promised", "raw") for one in dots],
        "calibrated": [_share(one, "promised", "calibrated") for one in dots],
        "alarms": [float(alarm.time) for _, alarm in found.details.alarms],
        "now": float(now.start) if now is not None and split else None,
        "reference": None if found.details.reference is None else _times(found.details.reference),
        "open": len(points) > 1 and points[-1].labels < points[0].labels,
        "missing": 0,
    }


def _ends(found: ModelFindings) -> tuple[int, int]:
    points = found.answers.over_time
    return min(one.start for one in points), max(one.until for one in points)


def _share(dot: Dot | None, column: str, view: str) -> float | None:
    """Return a share of a dot, from 0 to 1."""
    if dot is None:
        return None
    share = getattr(dot, column).get(view)
    return None if share is None else min(max(float(share), 0.0), 1.0)


def _traces(found: ModelFindings) -> Traces | None:
    """Return the lines of the first group in a text."""
    key, view = _groups(found)[0], "raw" if "raw" in _views(found) else found.served
    dots = [one.groups.get(key) for one in found.answers.over_time]
    promised = tuple(_share(one, "promised", view) for one in dots)
    came = tuple(_share(one, "came", found.served) for one in dots)
    shares = [one for one in (*promised, *came) if one is not None]
    if not shares:
        return None
    name = "model promised" if view == "raw" else "promised"
    places = formats.decimals(100.0 * min(shares), 100.0 * max(shares))
    return Traces(
        title=f"{_title(found, key)} over time",
        low=formats.per_cent(min(shares), places),
        high=formats.per_cent(max(shares), places),
        traces=(
            Trace(name, promised, "raw" if view == "raw" else "calibrated"),
            Trace(found.came, came),
        ),
    )
