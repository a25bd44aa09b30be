"""Each of several classes: what it promised, what came, and where its fault is largest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring.answers import formats
from abers.monitoring.answers.rows import distance
from abers.pages.blocks import Column, Mark, SectionBlock, Span, TableBlock, TableRow
from abers.pages.model_findings import state_of_status, tone
from abers.pages.period_groups import gap_cells

if TYPE_CHECKING:
    from abers.monitoring.answers import ClassViews, Row, View
    from abers.pages.model_findings import ModelFindings

__all__ = ["class_section"]


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
