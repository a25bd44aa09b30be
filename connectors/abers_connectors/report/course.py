"""The figures of a report that go on with the stream.

Governing rule: what a figure shows can be read without seeing it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from abers.plots import drawings
from abers_connectors._means import called, number
from abers_connectors.report.tables import VIEWS, Drawn, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from abers_connectors.report.findings import Findings, Moment, Outcomes

__all__ = ["course", "last"]

# The ECE is not told of a tenth of a stream: of so few labels it is mostly chance.
_UNITS = {
    "log_loss": "nats",
    "brier": "squared error",
    "accuracy": "share of labels",
    "crps": "unit of the label",
    "pinball": "unit of the label",
}
_LEAVING_OUT = {"over-crps", "over-pinball"}


def course(found: Findings) -> Iterator[Drawn]:
    """Draw each score, and the width of the intervals, over the labels so far."""
    moments = found.over_time
    if not moments:
        return
    for name, words in called(found.calibrated or {}).items():
        if name in _UNITS:
            views = {view: _means(moments, view, name) for view in VIEWS}
            yield from _moments(f"over-{name}", words, moments, views, _UNITS[name])
    widths: dict[str, list[float | None]] = {"calibrated": [one.mean_width for one in moments]}
    words, unit = "interval width", "difference of probabilities"
    if found.intervals:
        words = f"width of the {100 * found.intervals[0]['level']:.9g} % interval"
        unit = "unit of the label"
    yield from _moments("over-width", words, moments, widths, unit)


def _means(moments: Iterable[Moment], view: str, name: str) -> list[float | None]:
    return [(getattr(one, view) or {}).get(name) for one in moments]


def _moments(
    name: str,
    words: str,
    moments: Sequence[Moment],
    views: dict[str, list[float | None]],
    unit: str,
) -> Iterator[Drawn]:
    known = {view: column for view, column in views.items() if any(map(_is_known, column))}
    if not known:
        return
    labels = [one.labels for one in moments]
    columns = zip(*known.values(), strict=True)
    rows = [
        [f"{one.labels:,}", f"{one.over:,}", *map(number, column)]
        for one, column in zip(moments, columns, strict=True)
    ]
    most = max(one.over for one in moments)
    heading = f"{words[0].upper()}{words[1:]} over time"
    yield Drawn(
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


def last(found: Findings) -> Iterator[Drawn]:
    """Draw the last predictions of numbers, by score and by their order."""
    if (told := found.outcomes) is None:
        return
    heading = f"The last {len(told.labels):,} labels and their predictions"
    numbers = [*range(told.first, told.first + len(told.labels))]
    for name, words, at, x_name in (
        ("fan-by-score", f"{heading}, by score", told.scores, "raw score"),
        ("fan", heading, numbers, "number of the label"),
    ):
        yield Drawn(
            name,
            words,
            "Central intervals, the widest palest; one without an end reaches the edge.",
            drawings.fan_chart(
                at,
                told.quantiles,
                told.levels,
                labels=told.labels,
                scores=told.scores,
                title=words,
                x_name=x_name,
                y_name="label",
            ),
            _outcomes(told, numbers),
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
