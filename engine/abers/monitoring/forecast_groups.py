"""Groups of forecasts that are chosen before the label: sums, gaps, and the labels they need."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from abers import validation
from abers.arrays import raw, unmasked
from abers.backends import core
from abers.monitoring.answers.rows import CalibrationError, calibration_error
from abers.monitoring.corp import probabilities
from abers.serialization import column, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike

    from abers._core import GroupSums
    from abers._core import LevelSums as CoreLevelSums
    from abers.arrays import Floats

__all__ = [
    "ALL",
    "BINS",
    "FIRST_BIN",
    "GRID",
    "LOWER",
    "NOT_FOUND",
    "OVER_CONFIDENT",
    "STATUSES",
    "TOO_HIGH",
    "TOO_LOW",
    "TRUSTWORTHY",
    "UNDER_CONFIDENT",
    "UPPER",
    "CalibrationError",
    "CalibrationErrorSequence",
    "ForecastGroup",
    "ForecastGroups",
    "LabelNeed",
    "LevelSums",
    "checked_rows",
    "label_needs",
    "tolerances",
]

TRUSTWORTHY = "trustworthy"
TOO_HIGH, TOO_LOW = "too high", "too low"
OVER_CONFIDENT, UNDER_CONFIDENT = "over-confident", "under-confident"
NOT_FOUND = "no miscalibration found"
STATUSES = (TRUSTWORTHY, TOO_HIGH, TOO_LOW, OVER_CONFIDENT, UNDER_CONFIDENT, NOT_FOUND)
"""In the order in which the core numbers them."""
ALL, LOWER, UPPER, FIRST_BIN = range(4)
"""Indices of groups; the bins are the last."""


GRID = (1.05, 1.1, 1.15, 1.2, 1.25, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0)
"""The smallest of these tolerances that holds is shown; more of them cost no evidence."""
BINS = 10
"""Number of bins of equal width; each but the last is open above."""


class ForecastGroup(NamedTuple):
    """Sums over labelled forecasts of a group.

    Attributes
    ----------
    labels
        Number of labels.
    observed
        Number of labels that are 1.
    expected
        Sum of the forecasts.
    squares
        Sum of the squared distances of label and forecast.
    least, most
        Sums of the lower and the upper ends of what the forecasts may stand for by the tolerance.
    """

    labels: float
    observed: float
    expected: float
    squares: float
    least: float
    most: float


class ForecastGroups:
    """Sums over all forecasts, their lower and their upper half, and ten bins.

    Parameters
    ----------
    tolerance
        Ratio of odds, at least 1. A forecast p may stand for each probability from l to u: their
        odds are those of p divided and multiplied by it.

    Raises
    ------
    ParameterError
        If the tolerance is not a finite number of at least 1.

    Notes
    -----
    The halves meet at the mean of the log odds of earlier forecasts, clipped to 15 and weighted
    with p (1 - p): about half of what can be learned from labels is in each. Equal forecasts are
    all in the upper half. The bins are [k/10, (k + 1)/10), and the last has the forecast 1.

    **Guarantee.** The group of a forecast depends on it and on the forecasts before it, and on no
    label. Sums are added row by row, so that batches make no difference, and need about 1 KB.

    Examples
    --------
    >>> groups = ForecastGroups(1.25)
    >>> groups.update([0.2, 0.8, 0.3, 0.7], [0, 1, 1, 1])
    >>> [(one.labels, one.observed) for one in groups.groups()[:3]]  # all, lower, upper
    [(4.0, 3.0), (1.0, 1.0), (3.0, 2.0)]
    >>> one = groups.groups()[0]
    >>> round(one.least, 3), one.expected, round(one.most, 3)
    (1.835, 2.0, 2.165)
    """

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self._core = core.GroupSums(tolerances(tolerance))

    @classmethod
    def of(cls, sums: GroupSums, tolerance: float) -> Self:
        """Return the groups of sums of the core."""
        groups = cls(tolerance)
        groups._core = sums
        return groups

    def update(self, forecasts: ArrayLike, labels: ArrayLike) -> None:
        """Add labelled forecasts, in the order of the observations.

        Parameters
        ----------
        forecasts, labels
            Arrays of shape (n,), as for `corp`.

        Raises
        ------
        ScoreError, LabelError, ParameterError
            As `corp`; nothing is added then.
        """
        self.add(*checked_rows(forecasts, labels))

    def add(self, forecasts: Floats, labels: Floats) -> None:
        """Add forecasts and labels that were checked; see `update`."""
        self._core.add(forecasts, labels)

    @property
    def core(self) -> GroupSums:
        """The sums in the core."""
        sums: GroupSums = self._core
        return sums

    @property
    def labels(self) -> int:
        """Number of labels."""
        return int(self._core.labels)

    @property
    def cut(self) -> float:
        """Forecast at which the halves meet now."""
        return float(self._core.cut)

    def groups(self) -> list[ForecastGroup]:
        """Return the sums of all forecasts, the lower half, the upper half, and each bin."""
        return [ForecastGroup(*row) for row in self._core.groups()]

    def main_groups(self, tolerance: float) -> list[ForecastGroup]:
        """Return the sums of all forecasts, the lower and the upper half, at one of the `GRID`."""
        rows = self._core.main_groups(1 + GRID.index(tolerance))
        return [ForecastGroup(*row) for row in rows]

    def state(self) -> tuple[float, memoryview]:
        """Return the state: what `restore` takes."""
        return self.tolerance, raw(self.sums())

    @classmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the groups with this state; a ValueError if it cannot be one."""
        tolerance, sums = state
        groups = cls(number(tolerance, "tolerance", 1.0))
        values = column(sums, "<f8", "sums of groups", groups._core.size())
        groups._core.load(values)
        return groups

    def __reduce__(self) -> tuple[object, tuple[tuple[float, bytes]]]:
        """Pickle and copy the state."""
        tolerance, sums = self.state()
        return type(self).restore, ((tolerance, bytes(sums)),)

    @classmethod
    def total(cls, many: Iterable[Self]) -> Self:
        """Add up the sums of different forecasts of one tolerance; their cut is the mean."""
        parts = [*many]
        whole = cls(parts[0].tolerance)
        for one in parts:
            whole.core.add_sums(one.core)
        return whole

    def sums(self) -> Floats:
        """Return weight and cut, then the sums of both halves, then those of the bins."""
        sums = np.empty(self._core.size())
        self._core.sums(sums)
        return sums


def tolerances(tolerance: float) -> Floats:
    """Return a tolerance and the grid, or raise a ParameterError that names it."""
    return _tolerances(validation.tolerance(tolerance))


@cache
def _tolerances(tolerance: float) -> Floats:
    made = np.array([tolerance, *GRID])
    made.flags.writeable = False  # all verdicts of this tolerance read it
    return made


def checked_rows(forecasts: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    """Return forecasts and labels as arrays of floats, or raise the error that names a value."""
    issued = np.ascontiguousarray(unmasked(forecasts), np.float64)
    if type(labels) is np.ndarray and labels.dtype == np.float64 and labels.shape == issued.shape:
        truth: Floats = np.ascontiguousarray(labels)
    else:
        truth = validation.labels(labels, len(issued)).astype(np.float64)
    if core.first_unscored(issued, truth) < len(issued):
        probabilities(issued)
        validation.labels(truth, len(issued))
    return issued, truth


class LevelSums:
    """Sums over labels that should be counted as often as a level says.

    Parameters
    ----------
    level
        Share of the labels that should be counted, between 0 and 1.
    tolerance
        Ratio of odds, at least 1; see `ForecastGroups`.
    sums
        Those of the core; none unless given.

    Notes
    -----
    Of each label there are two numbers from 0 to 1: how far it is counted at least, and at most.
    They differ if a label equals a quantile: P(Y < q) may be below the level of a right quantile
    and P(Y <= q) above it. Too many labels are counted only if even the least are too many, too few
    only if even the most are too few.

    Examples
    --------
    >>> import numpy as np
    >>> sums = LevelSums(0.25, 1.0)
    >>> sums.add(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0]))  # the second is a tie
    >>> one = sums.groups()[0]
    >>> one.labels, one.observed, one.least, one.most
    (3.0, 2.0, 0.75, 1.75)
    """

    def __init__(self, level: float, tolerance: float, sums: CoreLevelSums | None = None) -> None:
        self.level, self.tolerance = level, tolerance
        self._core = core.LevelSums(level, tolerances(tolerance)) if sums is None else sums

    def add(self, least: Floats, most: Floats) -> None:
        """Add labels, in the order of the observations."""
        self._core.add(least, most)

    @property
    def labels(self) -> int:
        """Number of labels."""
        return int(self._core.labels)

    def groups(self) -> list[ForecastGroup]:
        """Return the sums of all labels, of an empty lower half, and of the upper half."""
        return [ForecastGroup(*row) for row in self._core.groups()]

    def main_groups(self, tolerance: float) -> list[ForecastGroup]:
        """Return the same at one of the `GRID`."""
        rows = self._core.main_groups(1 + GRID.index(tolerance))
        return [ForecastGroup(*row) for row in rows]


_POWER = 2.326347874  # standard errors: 99 % of a normal distribution lie below
_WRONG = 1.2  # the odds of wrong forecasts are off by the tolerance times this, or a little more
_MOST = 1e12  # labels; no stream has more
_PRECISION = 1e-3  # relative, of the number of labels
_LONG = 5  # digits of a number that is shown with three of them


class LabelNeed(NamedTuple):
    """Number of labels at which a statement about forecasts can be made, probably.

    Attributes
    ----------
    statement
        What is true then, such as "the forecasts are right".
    labels
        Total number of labels, to two digits or three.
    more
        Number of labels beyond those that came; 0 if there are enough.
    """

    statement: str
    labels: int
    more: int

    @property
    def sentence(self) -> str:
        """The number and the statement, in words."""
        more = f"about {self.more:,} more labels decide" if self.more else "the labels are enough"
        return f"If {self.statement}, {more}."


def label_needs(groups: ForecastGroups | LevelSums, alpha: float) -> list[LabelNeed]:
    """Return how many labels the verdict "trustworthy" needs, and how many "too high".

    Parameters
    ----------
    groups
        Sums over labelled forecasts.
    alpha
        Level of all claims together, half of it each side.

    Returns
    -------
    list of LabelNeed
        Empty before the first label. A statement that no number of labels allows is left out.

    Notes
    -----
    Labels are assumed to go on as before: the forecasts have the same distribution, and the squared
    distances V of label and forecast have the same mean. The deviation of the labels from an end of
    the tolerance grows with their number n; the boundary that it must reach grows about with the
    root of n. By normal theory, the deviation reaches the boundary at the returned number with a
    probability of 99 %, if the forecasts are right, or if their odds are too high by the named
    factor. This is a guide, not a guarantee: with twenty labels it may be off by a half, and the
    claim is often found at half the number.

    Examples
    --------
    >>> import numpy as np
    >>> from abers.monitoring import ForecastGroups
    >>> rng = np.random.default_rng(1)
    >>> p = rng.beta(2, 5, 3_000)
    >>> groups = ForecastGroups(1.25)
    >>> groups.update(p, rng.random(3_000) < p)
    >>> for need in label_needs(groups, 0.025):
    ...     print(need.sentence)
    If the forecasts are right, about 7,700 more labels decide.
    If their odds are 1.5 times too high, about 5,400 more labels decide.
    """
    n = groups.labels
    if not n:
        return []
    right = max(_labels(one, n, _gap(one), alpha) for one in _main(groups))
    needs = [("the forecasts are right", right)]
    factor = next((one for one in GRID if one >= _WRONG * groups.tolerance), None)
    if factor is not None:
        inner, outer = groups.groups()[ALL], groups.main_groups(factor)[ALL]
        wrong = _labels(inner, n, inner.least - outer.least, alpha)
        needs.append((f"their odds are {factor:g} times too high", wrong))
    return [
        LabelNeed(words, _rounded(one), _rounded(max(one - n, 0.0)))
        for words, one in needs
        if one < _MOST
    ]


def _main(groups: ForecastGroups | LevelSums) -> Iterable[ForecastGroup]:
    """Yield the main groups that are not empty."""
    return (one for one in groups.groups()[: ALL + 3] if one.labels)


def _gap(one: ForecastGroup) -> float:
    """Return the deviation from the nearer end of the tolerance if the forecasts are right."""
    return min(one.most - one.expected, one.expected - one.least)


def _labels(one: ForecastGroup, n: int, gap: float, alpha: float) -> float:
    """Return the number of labels at which a deviation, `gap` after n, reaches the boundary."""

    def reached(labels: float) -> bool:
        times = labels / n
        squares = one.squares * times
        chance = _POWER * math.sqrt(squares)
        return bool(gap * times - chance >= core.margin(squares, ALL, alpha))

    low, high = 0.0, 1.0
    while not reached(high):
        low, high = high, 2.0 * high
        if high > _MOST:
            return math.inf
    while high - low > _PRECISION * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _rounded(labels: float) -> int:
    """Return a number to two digits, or to three if it has five or more."""
    digits = len(str(int(labels)))
    step: int = 10 ** max(digits - (3 if digits >= _LONG else 2), 0)
    return round(labels / step) * step


class CalibrationErrorSequence:
    """Ranges of the calibration error in ten bins, of forecasts with labels in their order.

    Parameters
    ----------
    alpha
        Bound on the probability that any range ever misses the error, between 0 and 1.

    Attributes
    ----------
    groups
        Sums of the labelled forecasts; see `ForecastGroups`.

    Raises
    ------
    ParameterError
        If `alpha` is out of its range.

    Notes
    -----
    Let π be the probability that a label is 1, given all forecasts up to its own and the labels of
    all forecasts before it. In each bin [k/10, (k + 1)/10), the last with 1, G is the sum of π less
    forecasts. The calibration error after T labels is the sum of abs(G) over bins, divided by T.
    Forecasts and probabilities may drift.

    **Guarantee.** The probability that any `error()` ever has a range without the calibration error
    of its labels is at most `alpha`, however often you read it, if a forecast is made before its
    label is known and labels come in the order of the forecasts. Forecasts without a label are left
    out, which is valid only if the lack of a label does not depend on its value. Errors that cancel
    inside a bin do not count: the error in bins is a lower bound of that without bins.

    Let D be the ones of a bin less its forecasts, V the sum of (label - forecast)**2, and L(S, V)
    the mean of the two mixtures of `ConfidenceSequence`, at S and at -S. A label moves the sums of
    one bin. So the product of L(D - G, V) over bins is at most a martingale that begins with 1, and
    by Ville's inequality it ever reaches 1/alpha with probability at most alpha. The range has all
    sums of abs(G) for which the product is below and true probabilities are from 0 to 1, or a few
    more. A union over bins is about twice as wide. The mixture is tuned
    for a bin with a V of about 90, before any data.

    References
    ----------
    Howard, Ramdas, McAuliffe & Sekhon (2021), Time-uniform, nonparametric, nonasymptotic
    confidence sequences: proposition 9, for one bin.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> p = rng.beta(2, 5, 20_000)
    >>> sequence, labels = CalibrationErrorSequence(), rng.random(20_000) < p
    >>> sequence.update(p, labels)
    >>> sequence.error().sentence
    'The calibration error is at most 2.3 points.'
    """

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = validation.fraction(alpha, "alpha")
        self.groups = ForecastGroups(1.0)

    def update(self, forecasts: ArrayLike, labels: ArrayLike) -> None:
        """Add labelled forecasts, in their order, as `ForecastGroups.update` does."""
        self.groups.update(forecasts, labels)

    def error(self) -> CalibrationError:
        """Return the calibration error of the labels so far, with its range."""
        return calibration_error(self.groups.groups()[FIRST_BIN:], self.alpha)

    @classmethod
    def total(cls, many: Iterable[CalibrationErrorSequence]) -> CalibrationErrorSequence:
        """Add up sequences of different forecasts, which have the alpha of the first.

        The guarantee holds for the total if labels of different sequences do not depend on each
        other, given what was known when they were predicted.
        """
        parts = [*many]
        whole = cls(parts[0].alpha)
        whole.groups = ForecastGroups.total(one.groups for one in parts)
        return whole
