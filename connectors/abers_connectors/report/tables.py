"""The tables of a report, and what stands beside a figure.

Governing rule: a table has its numbers in words, as they are to be read.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from abers_connectors._means import called, number, worded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abers.plots.drawings import Drawing
    from abers_connectors.report.findings import Findings, Raised, Tested

__all__ = ["TESTS", "VIEWS", "Drawn", "Table", "power", "rang", "scores", "tests"]

VIEWS = ("raw", "calibrated")
"""In the order in which they are told."""

_EVIDENCE = (
    "Evidence is what a bet against the predictions would have won, as a power of ten. The line is "
    "where it rings; what that means is guaranteed however often one looks."
)
TESTS = ("Tests that may be looked at any time", _EVIDENCE)
"""Heading and sentence of their table."""

_REAL = 100_000_000_000  # milliseconds: event times below are no dates
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
        parts = [(found.diagrams or {}).get(view) for view in VIEWS]
        rows.append([part, *("-" if one is None else number(one.brier[part]) for one in parts)])
    return Table(["", "raw score", "calibrated"], rows)


def tests(many: Iterable[Tested]) -> Table:
    """List what each test has come to.

    Parameters
    ----------
    many
        Those of some findings.

    Returns
    -------
    Table
        Evidence and lines as powers of ten.
    """
    rows = [
        [
            one.name.replace("-", " "),
            _written(power(one.log_wealth)),
            f"{power(one.line):.2f}",
            "rings" if one.ringing else "quiet",
            f"{one.episodes:,}",
        ]
        for one in many
    ]
    return Table(["test", "evidence", "line", "now", "episodes"], rows)


def rang(one: Raised) -> str:
    """Say when an alarm was raised, and what it says.

    Parameters
    ----------
    one
        The alarm.

    Returns
    -------
    str
        Sentences.
    """
    return f"{_moment(one.time)}, after about {one.labels:,} labels: {one.sentence}"


def _moment(milliseconds: int) -> str:
    """Write an event time; small ones are numbers of rows."""
    if milliseconds < _REAL:
        return f"At event time {milliseconds:,}"
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _written(height: float) -> str:
    return f"{height:.2f}" if height < _HIGHEST else f"{_HIGHEST:.0f} or more"


def power(log_wealth: float) -> float:
    """Give the power of ten, at most one that can be drawn beside others."""
    return min(log_wealth / math.log(10.0), _HIGHEST)
