"""How soon answers about now find what is true, and how often they say it.

The first part compares them with verdicts. The second shows what a length of now finds, and what it
says of right forecasts, on streams with a known mean forecast and a known fault.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.backends import core
from abers.monitoring import VerdictSequence
from abers.monitoring.answers.answers import NO, YES, state_of
from abers.monitoring.answers.rows import groups_of, view_of
from abers.monitoring.forecast_groups import FIRST_BIN, NOT_FOUND, TRUSTWORTHY
from benchmarks.answer_streams import TOLERANCE, WARM, odds_times
from benchmarks.verdict_streams import powerful

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.answer_streams import Floats
    from benchmarks.verdict_streams import Case

__all__ = ["FAULTS", "RATES", "Length", "cases", "lengths", "seen", "soon"]

RATES = {0.5: 0.0, 0.17: -1.9, 0.05: -3.4}  # mean log odds
LASTING, CHANGES = (1.35, 1.4, 1.5), (1.5, 2.0, 3.0)
FAULTS = (1.0, *LASTING)
STEP = 100.0, 50.0  # units from one reading to the next: of lasting faults, and of changes
BEFORE, AFTER = 2_000.0, 4_000.0  # units before readings count or odds change, and then


def _states(p: Floats, labels: Floats, ends: list[int]) -> Iterator[str]:
    """Yield the answer about forecasts after each of these numbers of labels."""
    sums, numbers, at = core.AnswerSums(TOLERANCE, 1), np.arange(len(p)), WARM
    sums.skip(p[:WARM], p[:WARM])
    for end in ends:
        part = slice(at, WARM + end)
        sums.add(p[part], p[part], labels[part], numbers[part], numbers[part])
        at = part.stop
        yield state_of(view_of(groups_of([sums.now()[2][0][0]])))[0]


# Verdicts and answers


@cache
def cases() -> list[Case]:
    """Return the streams for which the power of verdicts is known, but those of intervals."""
    return [one for one in powerful() if "interval" not in one.name and "late" not in one.name]


def soon(task: tuple[int, int]) -> tuple[float, float, float]:
    """Return when the verdict is found, when the answer is, and how often it is said later.

    Of right forecasts these are "trustworthy" and Yes. Of faults they are No, and a verdict by
    which all, or a half, are outside the tolerance: the groups that No is about.
    """
    index, seed = task
    case = cases()[index]
    rng = np.random.default_rng([11, index, seed])
    n = 2 * case.labels
    (view,) = case.draw(rng, n + WARM)
    labels = (rng.random(n + WARM) < view.truth).astype(float)
    wanted = YES if case.right == TRUSTWORTHY else NO
    ends = [*range(n // 200, n + 1, n // 200)]
    right = [one == wanted for one in _states(view.p, labels, ends)]
    first = right.index(True) if any(right) else len(ends)
    later = right[first + 1 :]
    return (
        _verdict(view.p[WARM:], labels[WARM:], ends, wanted),
        float(ends[first]) if first < len(ends) else math.inf,
        float(np.mean(later)) if later else math.nan,
    )


def _verdict(p: Floats, labels: Floats, ends: list[int], wanted: str) -> float:
    """Return after how many labels the verdict is first what is wanted."""
    verdicts, at, numbers = VerdictSequence("raw", TOLERANCE), 0, np.arange(len(p))
    for end in ends:
        part = slice(at, end)
        verdicts.add(p[part], labels[part], numbers[part])
        at, status = end, verdicts.brief()[0]
        if status == TRUSTWORTHY if wanted == YES else _outside(verdicts, status):
            return float(end)
    return math.inf


def _outside(verdicts: VerdictSequence, status: str) -> bool:
    """Return whether the verdict is that all, or a half, are outside."""
    if status in {TRUSTWORTHY, NOT_FOUND}:
        return False
    _, group, *_ = verdicts.core.verdict()
    return group < FIRST_BIN


# The length of now


class Length(NamedTuple):
    """A mean forecast, by how many times odds are too high, and whether only after a change."""

    rate: float
    odds: float
    changes: bool

    @property
    def name(self) -> str:
        """Name of the streams."""
        odds = f"odds {self.odds:g} times too high" if self.odds > 1.0 else "right"
        return f"{self.rate:g}, {odds}{' after a change' if self.changes else ''}"


def lengths() -> list[Length]:
    """Return all streams that a length of now is measured on."""
    lasting = [Length(*one, changes=False) for one in product(RATES, FAULTS)]
    return lasting + [Length(*one, changes=True) for one in product(RATES, CHANGES)]


def seen(task: tuple[int, int]) -> tuple[float, ...]:
    """Return 1 and the shares of readings with Yes and No, or the labels from a change to No."""
    index, seed = task
    rate, odds, changes = lengths()[index]
    rng = np.random.default_rng([13, index, seed])
    units = float(_truth(rate, rng, 10_000)[1].mean())
    before = BEFORE + (rng.random() * core.UNITS_OF_A_MARK if changes else 0.0)
    n, start = (math.ceil(one / units) for one in (before + AFTER, before))
    truth = _truth(rate, rng, n + WARM)[0]
    off = np.arange(n + WARM) >= (WARM + start if changes else 0)
    p = np.where(off, odds_times(truth, odds), truth)
    labels = (rng.random(n + WARM) < truth).astype(float)
    ends = [*range(start, n + 1, math.ceil(STEP[changes] / units))]
    states = _states(p, labels, ends)
    if changes:
        found = (end - start for end, one in zip(ends, states, strict=True) if one == NO)
        return (float(next(found, math.inf)),)
    every = [*states]
    return 1.0, every.count(YES) / len(every), every.count(NO) / len(every)


def _truth(rate: float, rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Draw right forecasts, and their units."""
    p = 1.0 / (1.0 + np.exp(-rng.normal(RATES[rate], 1.0, n)))
    return p, p * (1.0 - p)
