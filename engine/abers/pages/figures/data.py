"""The data of each figure: plain dictionaries of numbers, texts and lists.

The columns of a figure have one length. None and NaN are gaps. ``missing`` is the number of labels
until there is something to draw; the figure of empty columns shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

__all__ = [
    "Column",
    "GapData",
    "IntervalBand",
    "IntervalsData",
    "OverTimeData",
    "ReliabilityData",
    "SharesData",
    "SparkData",
    "Which",
]

Column = Sequence[float | None]
Which = Literal["raw", "calibrated"]


class OverTimeData(TypedDict):
    """Promised and came, window by window, as shares from 0 to 1."""

    x: list[float]
    """Milliseconds since 1970, or row numbers, in increasing order."""
    zone: str | None
    """IANA zone of the times; None if x has row numbers."""
    ends: tuple[float, float]
    """First and last time or row of the stream, which figures side by side share."""
    labels: list[int]
    """Labels of each window."""
    came: Column
    low: Column
    """Lower end of the 95 % band of `came`."""
    high: Column
    raw: Column
    calibrated: Column
    alarms: list[float]
    now: float | None
    """Where the latest labels begin."""
    reference: tuple[float, float] | None
    """Where a period begins and ends that a reader compares with; None without."""
    open: bool
    """Whether the last window still grows; its dot is hollow."""
    missing: int


class ReliabilityData(TypedDict):
    """Came against promised, group by group, as shares from 0 to 1."""

    which: Which
    names: list[str]
    """Names of the groups, such as "0.1 to 0.2"."""
    promised: Column
    came: Column
    low: Column
    """Lower end of the range of `came`."""
    high: Column
    cases: list[int]
    """Cases of each group."""
    tolerance: float
    """Factor in odds, at least 1."""
    isotonic_x: list[float]
    """Probabilities in increasing order."""
    isotonic_y: list[float]
    """The isotonic fit at each of them."""
    tenths: list[int]
    """Cases with a probability below 0.1, 0.2, ... 1; empty if they are not known."""
    missing: int


class GapData(TypedDict):
    """A gap with its range, in points, on a scale that the rows of a table share."""

    which: Which
    gap: float | None
    low: float
    high: float
    tolerance: tuple[float, float]
    limit: float
    """The scale ends at plus and minus this."""
    missing: int


class SparkData(TypedDict):
    """A gap in points, or what is saved in per cent, over time."""

    which: Which
    x: list[float]
    """Times or row numbers, in increasing order."""
    y: Column
    tolerance: tuple[float, float] | None
    """None where 0 alone matters, as with what is saved."""
    alarms: list[float]
    now: float | None
    missing: int


class IntervalBand(TypedDict):
    """The intervals of one level; an infinite end is drawn to the edge."""

    level: int
    """In per cent."""
    low: Column
    high: Column


class IntervalsData(TypedDict):
    """The latest labels with their intervals."""

    x: list[float]
    """Milliseconds since 1970, or row numbers."""
    zone: str | None
    """IANA zone of the times; None if x has row numbers."""
    unit: str
    """Unit after the numbers, such as " °C"."""
    label: Column
    bands: list[IntervalBand]
    missing: int


class SharesData(TypedDict):
    """Weights of methods over time, as shares from 0 to 1."""

    x: list[float]
    """Milliseconds since 1970, or row numbers, in increasing order."""
    zone: str | None
    """IANA zone of the times; None if x has row numbers."""
    names: list[str]
    shares: list[Column]
    """One column for each name."""
    missing: int
