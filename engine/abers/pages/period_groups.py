"""Where is it off? Promised and came in a period: by group, by class, and over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.monitoring import BinaryMonitor, MultiClassMonitor, formats
from abers.monitoring.answers.rows import distance
from abers.monitoring.formats import is_date
from abers.pages.answer_cards import moments
from abers.pages.blocks import (
    Column,
    FigureBlock,
    LegendEntry,
    Mark,
    Picture,
    SectionBlock,
    Span,
    TableBlock,
    TableRow,
    Trace,
    Traces,
)
from abers.pages.model_findings import state_of_status, tone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.answers import ClassViews, Dot, Period, Row, View
    from abers.monitoring.corp import Reliability
    from abers.pages.figures.data import GapData, OverTimeData, ReliabilityData, Which
    from abers.pages.model_findings import ModelFindings, ReferenceShares

__all__ = [
    "class_section",
    "gap_bar",
    "gap_cells",
    "gap_limit",
    "group_sections",
    "over_time_section",
    "reliability_data",
    "reliability_of",
    "which",
]


def reliability_data(
    found: ModelFindings, view: View, name: str, *, whole: bool
) -> ReliabilityData:
    """Return the groups of a view; of the whole stream with the isotonic line and all tenths."""
    tenths = [row for row in view.rows if not row.main and row.labels]
    rows = tenths or view.main
    kept = reliability_of(found, name) if whole else None
    xs, ys = ([], []) if kept is None else _lines(kept)
    return {
        "which": "raw" if name == "raw" else "calibrated",
        "names": [row.name for row in rows],
        "promised": [row.promised for row in rows],
        "came": [row.came for row in rows],
        "low": [_end(row, row.low) for row in rows],
        "high": [_end(row, row.high) for row in rows],
        "cases": [row.labels for row in rows],
        "tolerance": found.tolerance,
        "isotonic_x": xs,
        "isotonic_y": ys,
        "tenths": _cases(tenths) if whole else [],
        "missing": 0,
    }


def reliability_of(found: ModelFindings, view: str) -> Reliability | None:
    """Return the counts of all forecasts of a view, warm-up included; None of numbers."""
    monitor: Any = found.monitor
    if not isinstance(monitor, BinaryMonitor | MultiClassMonitor):
        return None
    scores = monitor.scores().get(view)
    return None if scores is None else scores.reliability


def _end(row: Row, end: float | None) -> float | None:
    """Return where an end of the range is above the promise, as a share."""
    if end is None or row.promised is None:
        return None
    return min(max(row.promised + end / 100.0, 0.0), 1.0)


def _lines(kept: Reliability) -> tuple[list[float], list[float]]:
    """Return the isotonic line."""
    diagram = kept.diagram()
    xs = np.column_stack((diagram.lower, diagram.upper)).ravel().tolist()
    return xs, np.repeat(diagram.probability, 2).tolist()


def _cases(tenths: list[Row]) -> list[int]:
    """Return the labels of each tenth, of a view with tenths that were never merged."""
    labels = {row.key: row.labels for row in tenths}
    return [labels.get(f"tenth-{first}", 0) for first in range(10)] if labels else []


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


_MOST = 10  # classes in a text


def class_section(found: ModelFindings) -> tuple[SectionBlock, ...]:
    """Return the table of the classes now; nothing if they have no numbers of their own."""
    now = found.answers.now
    if now is None or not now.classes:
        return ()
    section = SectionBlock(
        key=found.key("classes"),
        title="Each class",
        why="Promised and came of each class, and in which group its fault is largest.",
        blocks=(_for_pages(found, now.classes), _for_text(found, now.classes)),
        record={"classes": found.record["now"]["classes"]},
    )
    return (section,)


def _for_pages(found: ModelFindings, classes: list[ClassViews]) -> TableBlock:
    """Return a row for each class and view."""
    return TableBlock(
        key=found.key("classes-table"),
        caption="Promised and came of each class",
        columns=(
            Column(head="class", align="left"),
            Column(head="labels", room="much"),
            Column(head="promised", unit="%"),
            Column(head="came", unit="%"),
            Column(head="gap"),
            Column(head="range"),
            Column(head="largest fault", align="left"),
        ),
        rows=tuple(
            TableRow(
                (
                    (f"{one.name}, ", Span(view, tone(view))),
                    formats.count(rows.rows[0].came_count),
                    *_shares(rows.rows[0]),
                    *gap_cells(rows.rows[0]),
                    _fault(rows),
                )
            )
            for one in classes
            for view, rows in one.views.items()
        ),
        place="page",
    )


def _for_text(found: ModelFindings, classes: list[ClassViews]) -> TableBlock:
    """Return a row for each class; of many the worst."""
    views, more = [*classes[0].views], len(classes) - _MOST
    shown = sorted(classes, key=_wrong, reverse=True)[:_MOST] if more > 0 else classes
    heads = {"raw": "model", "calibrated": "calibrated"}
    return TableBlock(
        key=found.key("classes-text"),
        caption="Classes",
        columns=(
            Column(head="class", align="left"),
            Column(head="labels", room="some"),
            Column(head="promised", unit="%"),
            Column(head="came", unit="%"),
            *(Column(head=heads[view], align="left") for view in views),
        ),
        rows=tuple(
            TableRow(
                (
                    one.name,
                    formats.count(one.views[views[-1]].rows[0].came_count),
                    *_shares(one.views[views[-1]].rows[0]),
                    *(_fault(one.views[view]) for view in views),
                )
            )
            for one in shown
        ),
        note=f"… {formats.count(more)} more classes" if more > 0 else "",
        place="text",
    )


def _wrong(one: ClassViews) -> float:
    """Return by how many labels a class is off at least, in the view where that is more."""
    return max(view.wrong_by for view in one.views.values())


def _shares(row: Row) -> tuple[str, str]:
    promised, came = (
        "" if share is None else formats.number(100.0 * share, 1)
        for share in (row.promised, row.came)
    )
    return promised, came


def _fault(view: View) -> Mark:
    """Return the row that is farthest off, with its gap."""
    row = max(view.rows, key=lambda one: (one.status.startswith("too"), distance(one)))
    if not row.status.startswith(("too", "leans")):
        right = all(one.status == "right" for one in view.main)
        return Mark("yes", "right") if right else Mark("undecided", "no fault found")
    return Mark(state_of_status(row.status), row.status, f"{row.name}: {gap_cells(row)[0]}")


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
