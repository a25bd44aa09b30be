"""Rough guide to how many labels a verdict needs, from the sums of the labels so far."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from abers.backends import core
from abers.monitoring.findings import ALL
from abers.monitoring.forecast_groups import GRID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers.monitoring.forecast_groups import ForecastGroup, ForecastGroups
    from abers.monitoring.level_sums import LevelSums

__all__ = ["LabelNeed", "label_needs"]

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
