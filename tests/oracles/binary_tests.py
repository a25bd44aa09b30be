"""Tests of binary forecasts and verdicts on them, by view: a specification of the native core."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from tests.oracles.grid_bets import GridBets
from tests.oracles.reorder_buffer import Left, ReorderBuffer
from tests.oracles.sequential_tests import ViewTests
from tests.oracles.tally import LossDifference
from tests.oracles.verdict_sequence import VerdictSequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.oracles.sequential_tests import Incident, SequentialTest, Shift

    from abers.arrays import Floats

__all__ = ["BinaryTests", "Opened", "tolerated", "won"]

_PLACES = 4  # numbers of a row, by view: forecast, a bet of each memory, label
_LOSSES = 4  # numbers of losses that a label of several classes brings
_LAST = 3  # number of the test that raises alarms


class Opened(NamedTuple):
    """An incident that opened at a step, with the shift of an alarm."""

    view: int
    test: int
    step: int
    incident: Incident
    shift: Shift | None


class BinaryTests:
    """Bets against the forecasts of each view, four tests of each, and verdicts.

    If there are several classes, a label brings four numbers of losses. With verdicts on each it
    also brings the forecasts of all, view by view, and the number of its class.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - an option each
        self,
        tests: Sequence[SequentialTest],
        views: int,
        classes: int | None,
        tolerances: Floats,
        alpha: float,
        least: int,
    ) -> None:
        """Begin with so many views, and classes with verdicts; None of two classes."""
        self._more = 0 if classes is None else _LOSSES + (classes * views + 1 if classes else 0)
        classes = classes or 0
        self.queue = ReorderBuffer(self._more + _PLACES * views, least)
        self.bets = [GridBets() for _ in range(views)]
        self.tests = [ViewTests(tests, 1) for _ in range(views)]
        self.verdicts = [
            [VerdictSequence(alpha, tolerances) for _ in range(1 + classes)] for _ in range(views)
        ]
        self.losses = LossDifference()
        self._classes, self._tolerance = classes, float(tolerances[0])

    def run(
        self, steps: Sequence[tuple[int, int, int, Sequence[float]]], most: int | None = None
    ) -> list[Opened]:
        """Do steps of kind, number, time and values; return the incidents by view and test."""
        opened: list[Opened] = []
        for at, (kind, number, time, values) in enumerate(steps):
            known = partial(self._staked, values)
            for one in self.queue.step(
                at, kind, number, time, most, known, partial(self._learned, values)
            ):
                opened += self._settle(one)
        return sorted(opened, key=lambda one: one[:3])

    def _staked(self, forecasts: Sequence[float]) -> list[float]:
        row = [math.nan] * self._more
        for bets, p in zip(self.bets, forecasts, strict=False):
            row += [p + 0.0, *bets.bet(p), math.nan]
        return row

    def _learned(self, labels: Sequence[float], row: list[float]) -> list[float]:
        views = len(self.bets)
        learned = [*labels[views:], *row[self._more :]]
        for view, bets in enumerate(self.bets):
            at = self._more + _PLACES * view
            learned[at + _PLACES - 1] = labels[view]
            bets.learn(learned[at], int(labels[view]))
        return learned

    def _settle(self, left: Left) -> list[Opened]:
        opened, compared = [], []
        for view, tests in enumerate(self.tests):
            at = self._more + _PLACES * view
            p, *bets, y = left.values[at : at + _PLACES]
            factors = [won(bet, p, y) for bet in bets]
            factors += [won(bet, tolerated(bet, p, self._tolerance), y) for bet in bets]
            alarms = tests.alarms(factors[-1:], [[p]], [[y]], [left.time])
            over = self._decide(view, p, y, left, [shift[0] for *_, shift in alarms])
            for test, _, incident in tests.others([factors], [left.time], [0] if over else []):
                opened.append(Opened(view, test, left.step, incident, None))
            for _, incident, shift in alarms:
                opened.append(Opened(view, _LAST, left.step, incident, shift))
            compared.append((p, y))
        (p, y), (q, _) = compared[0], compared[-1]
        first, second, label = (np.array([one]) for one in (p, q, y))
        self.losses.add(first, second, label, np.array([left.time]))
        return opened

    def _decide(self, view: int, p: float, y: float, left: Left, alarms: list[int]) -> bool:
        """Add a row to the verdicts; return whether no incident is open any more."""
        k, of = self._classes, left.values[self._more - 1]
        shares = left.values[_LOSSES + k * view : _LOSSES + k * view + k]
        rows = [(p, y), *((share, float(of == at)) for at, share in enumerate(shares))]
        turned = False
        time, gap = np.array([left.time]), np.array([left.gap])
        for verdicts, (share, came) in zip(self.verdicts[view], rows, strict=True):
            turned |= bool(verdicts.add(np.array([share]), np.array([came]), time, gap))
            for began in alarms:
                verdicts.restart(left.time, began)
        return turned and not any(one.open for one in self.verdicts[view])


def tolerated(bet: float, p: float, tolerance: float) -> float:
    """Return the probability nearest to the bet among those whose odds are tolerated."""
    lower = p / (p + (1.0 - p) * tolerance)
    upper = p * tolerance / (p * tolerance + (1.0 - p))
    return min(max(bet, lower), upper)


def won(bet: float, forecast: float, label: float) -> float:
    """Return the factor of a bet."""
    won, due = (bet, forecast) if label else (1.0 - bet, 1.0 - forecast)
    return won / due if due else math.inf
