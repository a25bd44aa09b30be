"""Verdict: whether forecasts can be trusted, in one sentence with sizes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.monitoring.event_time import event_time
from abers.monitoring.findings import (
    FIRST_BIN,
    LOWER,
    NOT_FOUND,
    STATUSES,
    TOO_HIGH,
    TOO_LOW,
    TRUSTWORTHY,
    UPPER,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["WORDS", "Estimate", "Verdict", "Words", "period", "verdict_of"]

_ALL_CAME = 0.9995  # shown as a percentage with a decimal, it is less than 100


class Words(NamedTuple):
    """What sentences call forecasts, the outcomes that are counted, and how both differ.

    Attributes
    ----------
    subject
        What the forecasts are, a plural, such as "raw scores".
    outcome
        What is counted where the label of a forecast is 1, a plural.
    high, low
        What the subject is where outcomes are rarer, and more frequent, than forecast.
    above, below
        What follows the number of points by which outcomes are rarer, and more frequent.
    part, parts
        Which of several parts this is, such as the name of a class, and what they all are, such as
        "classes"; empty for a verdict that stands by itself. See `VerdictParts`.
    """

    subject: str
    outcome: str = "labels 1"
    high: str = "too high"
    low: str = "too low"
    above: str = "points too high"
    below: str = "points too low"
    part: str = ""
    parts: str = ""

    @property
    def named(self) -> str:
        """The subject, with the part if it is one."""
        return f"{self.subject} ({self.part})" if self.part else self.subject


WORDS = {"raw": Words("raw scores"), "calibrated": Words("served probabilities")}
"""Words of each view of the forecasts of two classes."""


class Estimate(NamedTuple):
    """A value, and its range."""

    value: float
    lower: float
    upper: float


class Verdict(NamedTuple):
    """Whether forecasts can be trusted.

    Attributes
    ----------
    status
        "trustworthy", "too high", "too low", "over-confident", "under-confident" or "no
        miscalibration found".
    view
        "raw" or "calibrated".
    words
        What sentences call the forecasts; see `Words`.
    where
        The range of the scores that the numbers are about; "" for all.
    since
        Event time of the first label of the first block with this status.
    start, until
        Event times of the first and the last label that were counted.
    confirmed
        Latest event time at which the status was found.
    labels
        Number of labels that were counted.
    came
        Share of the observations up to the last label that got one in time.
    counted
        Number of labels in the range.
    observed
        Number of labels that are 1 in the range.
    expected
        Sum of the forecasts in the range.
    margin
        What the number of labels that are 1 may be from the sum of their true probabilities.
    tolerance
        Ratio of odds within which forecasts are right.
    established
        The smallest tolerance of the grid within which all main groups are; or None.

    Notes
    -----
    **Guarantee.** `status` and all ends of `ratio` and `difference` are statements about averages
    over the labels of the range, not about single forecasts. See `VerdictSequence`.
    """

    status: str
    view: str
    words: Words
    where: str
    since: int
    start: int
    until: int
    confirmed: int
    labels: int
    came: float
    counted: int
    observed: int
    expected: float
    margin: float
    tolerance: float
    established: float | None

    @property
    def outside(self) -> bool:
        """Whether forecasts are off by more than the tolerance on average."""
        return self.status not in {TRUSTWORTHY, NOT_FOUND}

    @property
    def ratio(self) -> Estimate:
        """Labels that are 1, and their range, divided by the expected number; NaN if that is 0."""
        return Estimate(*(n / self.expected if self.expected else math.nan for n in self._ones()))

    @property
    def difference(self) -> Estimate:
        """Mean of label minus forecast, and its range; NaN if no label was counted."""
        n = self.counted
        return Estimate(*((one - self.expected) / n if n else math.nan for one in self._ones()))

    @property
    def sentence(self) -> str:
        """What the verdict says, in one or two plain sentences."""
        subject = self.words.named
        if not self.counted:
            return f"No fault of the {subject} found: no label is counted yet."
        came = (
            ""
            if self.came >= _ALL_CAME
            else f" {100.0 * self.came:.3g} % of the labels came in time."
        )
        later = self.confirmed != self.until
        confirmed = f" Still so on {event_time(self.confirmed)}." if later else ""
        return f"{self._claim()}{confirmed}{came}"

    @property
    def claim(self) -> str:
        """What the verdict says of the forecasts, in their own words, and where."""
        words = {TOO_HIGH: self.words.high, TOO_LOW: self.words.low}
        return f"{words.get(self.status, self.status)} {self.where}".rstrip()

    def _claim(self) -> str:
        shares = (100.0 * one / self.counted for one in (self.expected, self.observed))
        promised, came = (f"{one:.3g} %" for one in shares)
        outcome = "" if self.words.outcome == Words("").outcome else f" ({self.words.outcome})"
        counts = f"promised {promised}, came {came}{outcome}: {self.sizes}, {self._counted()}"
        subject = self.words.named
        if self.status == NOT_FOUND:
            found = f"No fault of the {subject} beyond the tolerance found"
            return f"{found}: {counts}. {self._largest_gap()}"
        since = f"since {event_time(self.since)}"
        if self.status == TRUSTWORTHY:
            better = self.established is not None and self.established < self.tolerance
            more = f" Also within {self.established:g} times the odds." if better else ""
            return f"The {subject} are right within the tolerance, {since}: {counts}.{more}"
        return f"The {subject} are {self.claim}, {since}: {counts}."

    @property
    def sizes(self) -> str:
        """The gap in points, and its range, rounded to the cautious side."""
        gap, low, high = (100.0 * one for one in self.difference)
        digits = _decimals(high - low)
        if low <= 0.0 <= high:
            return f"range {_signed(low, digits)} to {_signed(high, digits)} points"
        near, far = sorted((abs(low), abs(high)))
        size = f"{abs(gap):.{digits}f} {self._points(gap)}"
        return f"{size} (range {_down(near, digits)} to {_up(far, digits)})"

    def _largest_gap(self) -> str:
        points = self.difference
        end = points.lower if -points.lower >= points.upper else points.upper
        size = _up(100.0 * abs(end), _decimals(100.0 * (points.upper - points.lower)))
        return f"Up to {size} {self._points(end)} is possible."

    def _points(self, difference: float) -> str:
        return self.words.below if difference > 0.0 else self.words.above

    def _counted(self) -> str:
        labels = f"{self.counted:,} labels"
        if self.counted < self.labels:
            labels = f"{self.counted:,} of {self.labels:,} labels"
        return f"in {labels} {period(self.start, self.until, self.since)}"

    def _ones(self) -> tuple[float, float, float]:
        """Return the number of labels that are 1, and its range."""
        lower, upper = self.observed - self.margin, self.observed + self.margin
        return self.observed, max(lower, 0.0), min(upper, float(self.counted))


def verdict_of(record: Sequence[Any], view: str, words: Words) -> Verdict:
    """Return the verdict that the core found, in the words of a view."""
    status, group, cut, *times, labels, came, counted, observed = record[:11]
    share = math.nan if came is None else came
    numbers = (*times, labels, share, counted, observed, *record[11:])
    return Verdict(STATUSES[status], view, words, _where(group, cut), *numbers)


def _where(group: int, cut: float) -> str:
    if group == LOWER:
        return f"for p < {cut:.2g}"
    if group == UPPER:
        return f"for p ≥ {cut:.2g}"
    bin_ = group - FIRST_BIN
    return f"for p from {bin_ / 10} to {(bin_ + 1) / 10}" if bin_ >= 0 else ""


def period(start: int, until: int, since: int | None = None) -> str:
    """Return from when to when, without the start if a sentence says that as `since`."""
    if start == since:
        return f"until {event_time(until)}"
    return f"from {event_time(start)} until {event_time(until)}"


def _decimals(width: float) -> int:
    """Return the decimals of a number with a range of this width: no more than are known."""
    return min(max(0, 1 - math.floor(math.log10(width))), 6) if width > 0.0 else 2


def _signed(number: float, decimals: int) -> str:
    """Return a number with its sign, rounded away from 0."""
    return f"{'−' if number < 0.0 else '+'}{_up(abs(number), decimals)}"


def _up(number: float, decimals: int) -> str:
    return f"{math.ceil(number * 10**decimals - 1e-9) / 10**decimals:.{decimals}f}"


def _down(number: float, decimals: int) -> str:
    return f"{math.floor(number * 10**decimals + 1e-9) / 10**decimals:.{decimals}f}"
