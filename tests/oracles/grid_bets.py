"""Bets on binary labels from sums on a fixed grid of log odds: a specification of the native core.

Five forecasters say a probability of the label 1: the forecast p itself; three that count labels in
cells of log odds, all of them, 16 cells of 1.0 and 32 cells of 0.5; and a line that moves log odds.
The bet is their mean by weight. All of it is there twice: with a memory of all labels, and with one
that forgets a five hundredth with each label.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.oracles.elementary import logistic, logit

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["GridBets", "inside"]

_LEAST = 2.0**-53  # bets stay this far from 0 and 1, so no factor is 0
_WIDTHS = (1, 16, 32)  # numbers of cells, from the widest
_EDGE = 8.0  # log odds, beyond which cells are the outermost
_DOUBT = 10.0  # labels that speak for a cell to be as the wider one
_RIDGE = 10.0  # curvature that speaks for the forecast itself
_FADE = 0.0025  # of the level of recent labels, by curvature
_MOST_SPREAD = 1000.0  # weight of the centre
_LIFE = 500.0  # labels that the second memory has
_MOST_UNIT = 1e100
_FORECASTERS = 2 + len(_WIDTHS)


def inside(p: float) -> float:
    """Return a probability that is neither 0 nor 1."""
    return min(max(p, _LEAST), 1.0 - _LEAST)


@dataclass(slots=True)
class _Cell:
    labels: float = 0.0
    forecasts: float = 0.0
    ones: float = 0.0


@dataclass(slots=True)
class _Memory:
    decay: float
    share: float  # of a weight that all receive at each label
    fade: float
    unit: float = 1.0  # of a label
    cells: list[list[_Cell]] = field(
        default_factory=lambda: [[_Cell() for _ in range(width)] for width in _WIDTHS]
    )
    weights: list[float] = field(default_factory=lambda: [1.0 / _FORECASTERS] * _FORECASTERS)
    level: float = 0.0
    slope: float = 0.0
    h00: float = 0.0
    h01: float = 0.0
    h11: float = 0.0

    def forecasts(self, p: float, x: float, centre: float) -> list[float]:
        """Return what each forecaster says."""
        found, ones, zeros, doubt = [p], 1.0, 1.0, _DOUBT * self.unit
        for cell in self.of(x):
            ones = (cell.ones + doubt * ones) / (cell.forecasts + doubt)
            zeros = (cell.labels - cell.ones + doubt * zeros) / (
                cell.labels - cell.forecasts + doubt
            )
            scaled = p * ones
            found.append(scaled / (scaled + (1.0 - p) * zeros))
        return [*found, logistic(x + self.level + self.slope * (x - centre))]

    def of(self, x: float) -> Iterator[_Cell]:
        """Yield the cells of log odds, from the widest."""
        for cells in self.cells:
            at = math.floor((x + _EDGE) * (_WIDTHS[-1] / (2.0 * _EDGE)))
            finest = min(max(at, 0), _WIDTHS[-1] - 1)
            yield cells[finest * len(cells) // _WIDTHS[-1]]

    def bet(self, found: list[float]) -> float:
        """Return the mean of what forecasters say."""
        total = ones = 0.0
        for weight, q in zip(self.weights, found, strict=True):
            total += weight
            ones += weight * q
        return inside(ones / total)

    def learn(self, p: float, x: float, centre: float, label: int) -> None:
        """Weigh the forecasters by a label, and move the line; not yet count it."""
        found = self.forecasts(p, x, centre)
        total = 0.0
        for i, q in enumerate(found):
            self.weights[i] *= q if label else 1.0 - q
            total += self.weights[i]
        kept, share = (1.0 - self.share) / total, self.share / _FORECASTERS
        self.weights = [kept * weight + share for weight in self.weights]
        u, q = x - centre, found[-1]
        v = q * (1.0 - q)
        self.h00 = self.decay * self.h00 + v
        self.h01 = self.decay * self.h01 + v * u
        self.h11 = self.decay * self.h11 + v * u * u
        a, b, c = self.h00 + _RIDGE, self.h01, self.h11 + _RIDGE
        step = (label - q) / (a * c - b * b)
        self.level += (c - b * u) * step
        self.slope += (a * u - b) * step
        self.level *= 1.0 - self.fade / a

    def count(self, p: float, x: float, label: int) -> None:
        """Count a label, in a unit that grows as older ones are to count less."""
        if self.decay < 1.0:
            self.unit *= _LIFE / (_LIFE - 1.0)
        for cell in self.of(x):
            cell.labels += self.unit
            cell.forecasts += self.unit * p
            cell.ones += self.unit * label
        if self.unit > _MOST_UNIT:
            for one in (one for cells in self.cells for one in cells):
                one.labels /= self.unit
                one.forecasts /= self.unit
                one.ones /= self.unit
            self.unit = 1.0

    def numbers(self) -> list[float]:
        """Return weights and line."""
        return [*self.weights, self.level, self.slope, self.h00, self.h01, self.h11]


class GridBets:
    """Bets on labels, by memory.

    Examples
    --------
    >>> bets = GridBets()
    >>> bets.bet(0.5)
    (0.5, 0.5)
    >>> for _ in range(30):
    ...     bets.learn(0.5, 1)
    >>> tuple(round(bet, 2) for bet in bets.bet(0.5))
    (0.93, 0.93)
    """

    def __init__(self) -> None:
        """Begin without a label."""
        self._memories = (
            _Memory(1.0, 1e-5, 0.0),
            _Memory((_LIFE - 1.0) / _LIFE, 3e-4, _FADE),
        )
        self._centre = self._spread = 0.0

    def bet(self, forecast: float) -> tuple[float, float]:
        """Return the bets on a label that was forecast with this probability."""
        p = inside(forecast)
        x = logit(p)
        first, second = (one.bet(one.forecasts(p, x, self._centre)) for one in self._memories)
        return first, second

    def learn(self, forecast: float, label: int) -> None:
        """Learn the label of a forecast."""
        p = inside(forecast)
        x = logit(p)
        before, v = self._centre, p * (1.0 - p)
        for one in self._memories:
            one.learn(p, x, before, label)
        self._spread += v
        self._centre += (x - before) * v / min(self._spread, _MOST_SPREAD)
        for one in self._memories:
            one.level += one.slope * (self._centre - before)  # the line stays where it is
            one.count(p, x, label)

    def save(self) -> bytes:
        """Return the state: nothing before the first label; else the cells that have labels."""
        whole, recent = self._memories
        if not whole.cells[0][0].labels:
            return b""
        numbers = [recent.unit, self._centre, self._spread, *whole.numbers(), *recent.numbers()]
        present, cells = 0, []
        for width, pairs in zip(_WIDTHS, zip(whole.cells, recent.cells, strict=True), strict=True):
            for at, (one, other) in enumerate(zip(*pairs, strict=True)):
                if one.labels:
                    present |= (1 << at) * (width == _WIDTHS[-1])
                    cells += [one.labels, other.labels, one.forecasts, other.forecasts]
                    cells += [one.ones, other.ones]
        return struct.pack(f"<{len(numbers)}dI{len(cells)}d", *numbers, present, *cells)
