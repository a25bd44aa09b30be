"""The numbers of the answers, made anew from predictions and labels in plain numpy."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tests.oracles.confidence_sequence import ConfidenceSequence

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = ["Part", "counted", "gap_range", "groups", "now_start", "saved"]

MARK, FEWEST, RANGE = 1_000.0, 25.0, 6.0
LEVEL = 0.05
MAIN = LEVEL * 3 / 4 / 3 / 2  # of a side of all and of each half
TENTH = LEVEL * 1 / 4 / 10 / 2
GAPS = ConfidenceSequence(500.0, MAIN / 2, 1.0)  # where it is tightest is chosen once for all
LOSSES = ConfidenceSequence(120.0, LEVEL / 2, RANGE)


class Part(NamedTuple):
    """A group: labels, ones, sum of probabilities, gap, range and tolerance in points."""

    labels: int
    came: float
    promised: float
    gap: float
    low: float
    high: float
    tolerance_low: float
    tolerance_high: float


def counted(p: Floats, y: Floats, tolerance: float, level: float) -> Part:
    """Return the numbers of a group by their definitions."""
    n, gap = len(p), 100.0 * (y - p).mean()
    low, high = gap_range(p, y, level)
    odds = p / (1.0 - p)
    up, down = odds * tolerance, odds / tolerance
    ends = [100.0 * (one / (1.0 + one) - p).mean() for one in (down, up)]
    return Part(n, y.sum(), p.sum(), gap, low, high, *ends)


def gap_range(p: Floats, y: Floats, level: float) -> tuple[float, float]:
    """Return the range of the gap, in points: b is the boundary at the sum of squares.

    What came is a share from 0 to 1.
    """
    gap = 100.0 * (y - p).mean()
    b = 100.0 * GAPS.boundary(float(((y - p) ** 2).sum()), level) / len(p)
    return max(gap - b, -100.0 * p.mean()), min(gap + b, 100.0 * (1.0 - p.mean()))


def now_start(units: Floats) -> tuple[int, int]:
    """Return where now begins, and where the window before it began."""
    marks, total = [0], 0.0
    for row, one in enumerate(units.tolist(), 1):
        total += one
        if total >= MARK:
            total -= MARK
            marks.append(row)
    at = max(len(marks) - 2, 0)
    return marks[at], marks[at - 1] if at else -1


def groups(before: Floats, *, merged: bool) -> tuple[float, list[tuple[float, float]]]:
    """Return the cut, and the ends of each group of tenths, from the probabilities before."""
    weights = before * (1.0 - before)
    middle = (weights * np.log(before / (1.0 - before))).sum() / weights.sum()
    cut = round(float(1.0 / (1.0 + np.exp(-middle))), 2)
    edges = np.arange(11) / 10
    of_tenth = [weights[(before >= a) & (before < b)].sum() for a, b in pairwise(edges)]
    starts, mine = [0], 0.0
    for k, one in enumerate(of_tenth):
        mine += one
        if not merged or (mine >= FEWEST and sum(of_tenth[k + 1 :]) >= FEWEST):
            starts.append(k + 1)
            mine = 0.0
    starts = [one for one in starts if one < 10]
    return cut, [(a / 10, b / 10) for a, b in zip(starts, [*starts[1:], 10], strict=True)]


def saved(raw: Floats, served: Floats, came: Any) -> dict[str, float]:  # noqa: ANN401 - numbers
    """Return mean losses, and the saving with its range; a row has probabilities of all classes."""
    rows = np.arange(len(came))
    before, after = -np.log(raw[rows, came]), -np.log(served[rows, came])
    ratios = np.log(served) - np.log(raw)
    d, m, most = before - after, ratios.min(axis=1), ratios.max(axis=1)
    ends = []
    for x, low, high, sign in (
        (np.minimum(d, m + RANGE), m, m + RANGE, -1.0),
        (np.maximum(d, most - RANGE), most - RANGE, most, 1.0),
    ):
        squares = float(((x - np.clip(0.0, low, high)) ** 2).sum())
        ends.append((x.sum() + sign * LOSSES.boundary(squares, LEVEL / 2)) / len(d))
    ends[1] = min(ends[1], before.mean())
    found = {"raw": before.mean(), "calibrated": after.mean(), "nats": d.mean()}
    found |= {
        "nats_low": ends[0],
        "nats_high": ends[1],
        "saved": 1.0 - after.mean() / before.mean(),
    }
    return found | {"low": ends[0] / before.mean(), "high": ends[1] / before.mean()}
