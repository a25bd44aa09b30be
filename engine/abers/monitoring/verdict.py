"""Verdict: whether forecasts can be trusted, in one sentence, and what calibration saved."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from abers import validation
from abers.backends import core
from abers.exceptions import ParameterError
from abers.monitoring.forecast_groups import (
    FIRST_BIN,
    LOWER,
    NOT_FOUND,
    STATUSES,
    TOO_HIGH,
    TOO_LOW,
    TRUSTWORTHY,
    UPPER,
    checked_rows,
)
from abers.monitoring.formats import event_time
from abers.monitoring.tests import ConfidenceSequence
from abers.serialization import CopiedWhole, count, number, require, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from abers._core import LossDifference as CoreLossDifference
    from abers.arrays import Floats, Integers

__all__ = [
    "WORDS",
    "Estimate",
    "LossDifference",
    "Verdict",
    "VerdictParts",
    "Words",
    "period",
    "verdict_of",
    "verdict_parts",
]

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


_MOST = 5  # parts that a sentence names


class VerdictParts(NamedTuple):
    """Verdicts on all parts of one kind, such as the classes, in one view.

    Attributes
    ----------
    view
        "raw" or "calibrated".
    subject
        What the forecasts are, a plural.
    parts
        What the parts are, a plural.
    verdicts
        The verdict on each part.
    """

    view: str
    subject: str
    parts: str
    verdicts: Sequence[Verdict]

    @property
    def name(self) -> str:
        """Name among all verdicts of a model."""
        return f"{self.subject}, {self.parts}"

    @property
    def outside(self) -> list[Verdict]:
        """Verdicts that a part is outside the tolerance, the largest difference first."""
        found = [one for one in self.verdicts if one.outside]
        return sorted(found, key=lambda one: -abs(one.difference.value))

    @property
    def trustworthy(self) -> int:
        """Number of parts that are trustworthy."""
        return sum(one.status == TRUSTWORTHY for one in self.verdicts)

    @property
    def sentence(self) -> str:
        """How many parts are right, off and undecided, and which are off."""
        outside = self.outside
        undecided = len(self.verdicts) - len(outside) - self.trustworthy
        counts = (
            f"{self.parts.capitalize()} of the {self.subject}: {self.trustworthy} right, "
            f"{len(outside) or 'none'} off, {undecided} undecided"
        )
        if not outside:
            return f"{counts}."
        named = [f"{one.words.part} {one.claim}: {one.sizes}" for one in outside[:_MOST]]
        if len(outside) > _MOST:
            named.append(f"{len(outside) - _MOST} more")
        return f"{counts}: {'; '.join(named)}."


def verdict_parts(verdicts: Sequence[Verdict]) -> list[VerdictParts]:
    """Return verdicts on parts by their view, subject and kind, in the order of the first."""
    found: dict[tuple[str, str, str], list[Verdict]] = {}
    for one in verdicts:
        found.setdefault((one.view, one.words.subject, one.words.parts), []).append(one)
    return [VerdictParts(*key, many) for key, many in found.items()]


_LARGEST = 3.0  # nats that a label counts at most: its probability was changed by a factor of 20
# Differences with a mean square of 0.03 have this sum after some 4,000 labels, when a saving
# of a hundredth of a nat is about to be found.
_TIGHTEST = 120.0
_ROUNDED = 1.0 + 1e-9
_LARGEST_TIME = (1 << 63) - 1


class LossDifference(CopiedWhole):
    """What calibration saved: the mean log loss of raw scores minus that of served probabilities.

    Parameters
    ----------
    alpha
        Bound on the probability that the interval ever misses the mean, between 0 and 1.

    Raises
    ------
    ParameterError
        If alpha is out of its range.

    Notes
    -----
    The difference of a label is clipped to 3 nats: a label counts no more if calibration changed
    its probability by a factor above 20. So each difference lies in a known range, and a saving of
    a hundredth of a nat is found after some thousands of labels. With probabilities clipped to
    [1e-6, 1 - 1e-6] alone, the range would be nine times as wide, and that would take some ten
    thousand labels more. `clipped` counts the labels for which it matters.

    **Guarantee.** The probability that `difference` ever misses the mean of the true expected
    differences so far is at most `alpha`, for any labels and forecasts, even if they drift. It is a
    statement about the average since the start, not about single events.

    References
    ----------
    Choe & Ramdas (2024), Comparing sequential forecasters; Howard, Ramdas, McAuliffe & Sekhon
    (2021), Time-uniform, nonparametric, nonasymptotic confidence sequences.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> p = rng.beta(2, 5, 10_000)
    >>> labels = rng.random(10_000) < p
    >>> raw = p / (p + (1 - p) / 2)  # odds that are twice too high
    >>> losses = LossDifference()
    >>> losses.update(raw, p, labels, np.arange(10_000))
    >>> print(losses.sentence)  # doctest: +NORMALIZE_WHITESPACE
    Calibration saved 0.045 nats a label (at least 0.033), over 10,000 labels
    from event time 0 until event time 9,999.
    """

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = validation.fraction(alpha, "alpha")
        self._sequence = ConfidenceSequence(_TIGHTEST, alpha / 2, 2.0 * _LARGEST)
        self.core: CoreLossDifference = core.LossDifference()

    @property
    def count(self) -> int:
        """Number of labels."""
        return int(self.core.count)

    @property
    def clipped(self) -> int:
        """Number of labels with a difference of more than 3 nats."""
        return int(self.core.clipped)

    @property
    def start(self) -> int:
        """Event time of the first label."""
        return int(self.core.start)

    @property
    def until(self) -> int:
        """Latest event time of a label."""
        return int(self.core.until)

    def update(self, raw: ArrayLike, served: ArrayLike, labels: ArrayLike, times: Integers) -> None:
        """Take labelled forecasts of both kinds, in the order of the observations.

        Parameters
        ----------
        raw, served
            Arrays of shape (n,): probabilities of label 1.
        labels
            Array of shape (n,): 0 or 1.
        times
            Array of shape (n,): event times, in milliseconds where they are dates.

        Raises
        ------
        ScoreError, LabelError, ParameterError
            As `corp`; nothing is taken then.
        """
        first, truth = checked_rows(raw, labels)
        second, _ = checked_rows(served, truth)
        if len(times) != len(first):
            msg = f"{len(first)} forecasts need as many event times, not {len(times)}"
            raise ParameterError(msg)
        self.add(first, second, truth, times)

    def add(self, raw: Floats, served: Floats, labels: Floats, times: Integers) -> None:
        """Take columns that were checked; see `update`."""
        self.core.add(raw, served, labels, np.ascontiguousarray(times, np.int64))

    @property
    def mean(self) -> float:
        """Nats that a label saved on average; NaN before the first."""
        return float(self.core.total) / self.count if self.count else math.nan

    @property
    def difference(self) -> Estimate:
        """Nats that a label saved on average, with its range; NaN before the first."""
        if not self.count:
            return Estimate(math.nan, math.nan, math.nan)
        total, squares = self.core.total, self.core.squares
        margin = self._sequence.boundary(squares, self.alpha / 2)
        ends = (total, total - margin, total + margin)
        return Estimate(*(one / self.count for one in ends))

    @property
    def sentence(self) -> str:
        """What calibration saved or cost, and what to do if it cost."""
        if not self.count:
            return "No difference by calibration found: no label is counted yet."
        mean, lower, upper = self.difference
        counted = f"over {self.count:,} labels {period(self.start, self.until)}"
        digits = max(2, 1 - math.floor(math.log10(max(upper - lower, 1e-6))))
        if lower > 0.0:
            sizes = f"{mean:.{digits}f} nats a label (at least {lower:.{digits}f})"
            return f"Calibration saved {sizes}, {counted}."
        if upper < 0.0:
            sizes = f"{-mean:.{digits}f} nats a label (at least {-upper:.{digits}f})"
            return (
                f"Calibration cost {sizes}, {counted}. To serve better probabilities, let it "
                "forget old labels (calibrator.window), serve protected probabilities "
                '(calibrator.probability = "protected"), or only monitor '
                '(calibrator.kind = "none").'
            )
        between = f"from {-lower:.{digits}f} lost to {upper:.{digits}f} saved"
        return (
            f"No difference by calibration found: {between} nats a label are possible, {counted}."
        )

    def state(self) -> tuple[Any, ...]:
        """Return the state: what `load` takes."""
        one = self.core
        return (one.count, one.total, one.squares, one.clipped, one.start, one.until)

    def load(self, state: Sequence[Any]) -> None:
        """Restore a state; a ValueError if it cannot be one."""
        counted, total, squares, clipped, start, until = state
        one, n = self.core, count(counted, "labels")
        most = n * _LARGEST * _ROUNDED
        one.count = n
        one.total = number(total, "differences of losses", -most, most)
        one.squares = number(squares, "squares of differences", 0.0, most * _LARGEST)
        one.clipped = count(clipped, "clipped differences", n)
        one.start, one.until = (
            whole(time, "times", -_LARGEST_TIME - 1, _LARGEST_TIME) for time in (start, until)
        )

    def __getstate__(self) -> dict[str, Any]:
        """Pickle and copy the level and the state."""
        return {"alpha": self.alpha, "state": self.state()}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Restore the level and the state."""
        vars(self).update(vars(type(self)(saved["alpha"])))
        self.load(saved["state"])

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Add up different forecasts of one model; the guarantee holds if they are independent."""
        combined = cls(many[0].alpha)
        sums = combined.core
        for one in many:
            require(one.alpha == combined.alpha, "levels differ")
            count_, total, squares, clipped, *_ = one.state()
            sums.count += count_
            sums.total += total
            sums.squares += squares
            sums.clipped += clipped
        begun = [one for one in many if one.count] or many
        sums.start = min(one.start for one in begun)
        sums.until = max(one.until for one in begun)
        return combined
