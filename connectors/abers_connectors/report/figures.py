"""The figures of a report, and beside each the same in a table.

Governing rule: what a figure shows can be read without seeing it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from abers.plots import drawings
from abers_connectors._means import called, number, worded
from abers_connectors.report.gathering import CHANGE, LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from abers.plots.drawings import Drawing
    from abers_connectors.report.content import Corp, Findings, Moment, Outcomes, Rows

__all__ = ["Drawn", "Table", "drawn", "scores", "tests"]

# The ECE is not told of a tenth of a stream: of so few labels it is mostly chance.
_UNITS = {
    "log_loss": "nats",
    "brier": "squared error",
    "accuracy": "share of labels",
    "crps": "unit of the label",
    "pinball": "unit of the label",
}
_LEAVING_OUT = {"over-crps", "over-pinball"}
_VIEWS = ("raw", "calibrated")
_HIGHEST = 30.0  # power of ten of evidence: beyond it nobody needs to know


class Table(NamedTuple):
    """Numbers in words: the names of the columns, and the rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class Drawn(NamedTuple):
    """A figure with its heading, a sentence that says how to read it, and its numbers."""

    name: str
    heading: str
    sentence: str
    figure: Drawing
    table: Table


def scores(found: Findings) -> Table:
    """Put the mean scores of both views side by side.

    Parameters
    ----------
    found
        What labels said.

    Returns
    -------
    Table
        Without a row if nothing was judged.
    """
    views = (found.raw, found.calibrated)
    rows = [
        [words, *(worded(one, name, found.labels) for one in views)]
        for name, words in called(found.calibrated or {}).items()
    ]
    if found.mean_width is not None and found.intervals is None:  # which have one a level
        rows.append(["mean interval width", "", number(found.mean_width)])
    for part in ("miscalibration", "discrimination", "uncertainty") if found.diagrams else ():
        parts = [(found.diagrams or {}).get(view) for view in _VIEWS]
        rows.append([part, *("-" if one is None else number(one.brier[part]) for one in parts)])
    return Table(["", "raw score", "calibrated"], rows)


def tests(found: Findings) -> Table:
    """List what each test has come to.

    Parameters
    ----------
    found
        What labels said.

    Returns
    -------
    Table
        Evidence and lines as powers of ten.
    """
    rows = [
        [
            one.name.replace("-", " "),
            _written(_power(one.log_wealth)),
            f"{_power(one.line):.2f}",
            "rings" if one.ringing else "quiet",
            f"{one.episodes:,}",
        ]
        for one in found.tests
    ]
    return Table(["test", "evidence", "line", "now", "episodes"], rows)


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
    return [*_whole(found), *_course(found), *_last(found)]


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
    heights = [_power(one["log_wealth"]) for one in found.evidence]
    rang = [(one.labels, _power(one.log_wealth)) for one in found.alarms]
    rows = [[f"{n:,}", f"{height:.2f}"] for n, height in zip(labels, heights, strict=True)]
    yield Drawn(
        "evidence",
        "Evidence of a change",
        change.guarantee,
        drawings.evidence(labels, heights, _power(change.line), rang, title="Evidence of a change"),
        Table(["labels so far", "evidence, powers of ten"], rows),
    )


def _written(power: float) -> str:
    return f"{power:.2f}" if power < _HIGHEST else f"{_HIGHEST:.0f} or more"


def _power(log_wealth: float) -> float:
    """Give the power of ten, at most one that can be drawn beside others."""
    return min(log_wealth / math.log(10.0), _HIGHEST)


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


def _course(found: Findings) -> Iterator[Drawn]:
    """Draw each score in the course of the stream."""
    moments = found.over_time
    if not moments:
        return
    for name, words in called(found.calibrated or {}).items():
        if name in _UNITS:
            views = {view: _means(moments, view, name) for view in _VIEWS}
            yield _moments(f"over-{name}", words, moments, views, _UNITS[name])
    widths: dict[str, list[float | None]] = {"calibrated": [one.mean_width for one in moments]}
    words, unit = "interval width", "difference of probabilities"
    if found.intervals:
        words = f"width of the {100 * found.intervals[0]['level']:.9g} % interval"
        unit = "unit of the label"
    yield _moments("over-width", words, moments, widths, unit)


def _means(moments: Iterable[Moment], view: str, name: str) -> list[float | None]:
    return [(getattr(one, view) or {}).get(name) for one in moments]


def _moments(
    name: str,
    words: str,
    moments: Sequence[Moment],
    views: dict[str, list[float | None]],
    unit: str,
) -> Drawn:
    known = {view: column for view, column in views.items() if any(map(_is_known, column))}
    labels = [one.labels for one in moments]
    columns = zip(*known.values(), strict=True) if known else [()] * len(moments)
    rows = [
        [f"{one.labels:,}", f"{one.over:,}", *map(number, column)]
        for one, column in zip(moments, columns, strict=True)
    ]
    most = max(one.over for one in moments)
    heading = f"{words[0].upper()}{words[1:]} over time"
    return Drawn(
        name,
        heading,
        f"Each point is the mean over the {most:,} labels before it, or as many as there were. "
        "Where the line is broken it is infinite or unknown."
        + (" Infinite losses are left out." if name in _LEAVING_OUT else ""),
        drawings.series(labels, known, title=heading, y_name=unit, x_name="labels so far"),
        Table(["labels so far", "over", *known], rows),
    )


def _is_known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _last(found: Findings) -> Iterator[Drawn]:
    """Draw the last predictions of numbers."""
    if (last := found.outcomes) is None:
        return
    heading = f"The last {len(last.labels):,} labels and their predictions"
    numbers = [*range(last.first, last.first + len(last.labels))]
    for name, words, at, x_name in (
        ("fan-by-score", f"{heading}, by score", last.scores, "raw score"),
        ("fan", heading, numbers, "number of the label"),
    ):
        yield Drawn(
            name,
            words,
            "Central intervals, the widest palest; one without an end reaches the edge.",
            drawings.fan_chart(
                at,
                last.quantiles,
                last.levels,
                labels=last.labels,
                scores=last.scores,
                title=words,
                x_name=x_name,
                y_name="label",
            ),
            _outcomes(last, numbers),
        )


def _outcomes(last: Outcomes, numbers: Sequence[int]) -> Table:
    rows = [
        [f"{n:,}", *(f"{one:.6g}" for one in (label, score, *quantiles))]
        for n, label, score, quantiles in zip(
            numbers, last.labels, last.scores, last.quantiles, strict=True
        )
    ]
    levels = (f"quantile {q:g}" for q in last.levels)
    return Table(["number", "label", "raw score", *levels], rows)
