"""The figures of a report, in the order in which they are to be read.

Governing rule: what a figure shows can be read without seeing it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.plots import drawings
from abers_connectors._means import number
from abers_connectors.models import CHANGE
from abers_connectors.report.course import course, last
from abers_connectors.report.gathering import LEVEL
from abers_connectors.report.tables import Drawn, Table, power

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers_connectors.report.findings import Corp, Findings, Rows

__all__ = ["drawn"]


def drawn(found: Findings) -> list[Drawn]:
    """Draw what a report says.

    Parameters
    ----------
    found
        At least one label came.

    Returns
    -------
    list of Drawn
        In the order in which they are to be read.
    """
    return [*_whole(found), *course(found), *last(found)]


def _whole(found: Findings) -> Iterator[Drawn]:
    """Draw what all predictions together were worth."""
    if found.diagrams:
        yield _reliability(found.diagrams)
    yield from _evidence(found)
    if found.intervals:
        yield _coverage(found.intervals, found.labels)
    if found.pit is not None:
        yield _pit(found.pit)


def _reliability(views: dict[str, Corp]) -> Drawn:
    points = {
        name: (
            [one[end] for one in corp.blocks for end in ("lower", "upper")],
            [one["share"] for one in corp.blocks for _ in range(2)],
        )
        for name, corp in views.items()
    }
    bands = {
        name: tuple([one[column] for one in corp.band] for column in ("forecast", "lower", "upper"))
        for name, corp in views.items()
    }
    rows = [
        [
            name,
            number(one["lower"]),
            number(one["upper"]),
            number(one["share"]),
            f"{one['labels']:,}",
        ]
        for name, corp in views.items()
        for one in corp.blocks
    ]
    return Drawn(
        "reliability",
        "Reliability",
        "Of the observations that were given a probability of 0.8, eight in ten should have the "
        f"label 1. Calibrated forecasts stay in their band in {10 * LEVEL:.0f} of 10 cases.",
        drawings.corp(points, bands, title="Reliability"),  # type: ignore[arg-type] # of three
        Table(["view", "forecast from", "to", "share of labels 1", "labels"], rows),
    )


def _evidence(found: Findings) -> Iterator[Drawn]:
    """Draw the evidence of a change, whose line is that of the alarms."""
    change = next((one for one in found.tests if one.name == CHANGE), None)
    if change is None or not found.evidence:
        return
    labels = [int(one["labels"]) for one in found.evidence]
    heights = [power(one["log_wealth"]) for one in found.evidence]
    rang = [(one.labels, power(one.log_wealth)) for one in found.alarms]
    rows = [[f"{n:,}", f"{height:.2f}"] for n, height in zip(labels, heights, strict=True)]
    yield Drawn(
        "evidence",
        "Evidence of a change",
        change.guarantee,
        drawings.evidence(labels, heights, power(change.line), rang, title="Evidence of a change"),
        Table(["labels so far", "evidence, powers of ten"], rows),
    )


def _coverage(intervals: Rows, labels: int) -> Drawn:
    levels = [one["level"] for one in intervals]
    inside = [one["coverage"] for one in intervals]
    rows = [
        [f"{one['level']:.9g}", number(one["coverage"]), number(one["width"])] for one in intervals
    ]
    return Drawn(
        "coverage",
        "Coverage",
        "Of the labels, nine in ten should lie inside the central 90 % intervals. Widths are means "
        "over the intervals that have an end on both sides.",
        drawings.coverage(levels, {"calibrated": inside}, labels, title="Coverage"),
        Table(["nominal coverage", "share of labels inside", "mean width"], rows),
    )


def _pit(counts: Sequence[float]) -> Drawn:
    rows = [
        [f"{row / len(counts):.2f} to {(row + 1) / len(counts):.2f}", f"{count:,.1f}"]
        for row, count in enumerate(counts)
    ]
    return Drawn(
        "pit",
        "PIT histogram",
        "Where labels fell in their predictive distributions. Level bars are right; high ends mean "
        "distributions that are too narrow, a hump in the middle ones that are too wide.",
        drawings.pit_histogram(counts, title="PIT histogram"),
        Table(["predictive CDF at the label", "labels"], rows),
    )
