"""Batches of predictions between two labels: the first since a label, and those that follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers import VennAbers
from benchmarks.page import Key, Section, size, table
from benchmarks.streams import SEED, ordinary
from benchmarks.timing import Spread, cpu_seconds, digits, in_turns

if TYPE_CHECKING:
    from benchmarks.plan import Plan

FIRST, LATER = "the first since a label", "from the third on"
_BATCHES = 20  # of the later ones in a turn


def batch_of(n: int) -> int:
    """Return the size of a batch: far below the eighth that pays for a table by itself."""
    return max(100, n // 100)


class _Asked:
    """A calibrator that is asked in batches; each turn returns nanoseconds a query."""

    def __init__(self, n: int) -> None:
        learned = ordinary(n)
        self._calibrator = VennAbers()
        self._calibrator.learn_many(learned.scores, learned.labels)
        self._queries = np.random.default_rng(SEED + 5).random((_BATCHES, batch_of(n)))
        self._label = 0

    def first(self) -> float:
        self._label = 1 - self._label
        self._calibrator.learn_one(0.5, self._label)
        return self._seconds(1) * 1e9

    def later(self) -> float:
        for queries in self._queries[:2]:
            self._calibrator.predict_many(queries)
        return self._seconds(_BATCHES) * 1e9

    def _seconds(self, batches: int) -> float:
        """Measure the processor time of some batches; seconds a query."""

        def work() -> None:
            for queries in self._queries[:batches]:
                self._calibrator.predict_many(queries)

        return cpu_seconds(work) / self._queries[:batches].size


def unchanged(plan: Plan) -> Section:
    """Measure `predict_many` of a calibrator that learns nothing meanwhile."""
    values: dict[Key, Spread] = {}
    for n in plan.sizes:
        asked = _Asked(n)
        turns = {FIRST: asked.first, LATER: asked.later}
        found = in_turns(plan.rounds, turns)
        values |= {("unchanged", name, n): spread for name, spread in found.items()}
    rows = [[name, *(values["unchanged", name, n] for n in plan.sizes)] for name in (FIRST, LATER)]
    ratios = [
        digits(values["unchanged", FIRST, n].median / values["unchanged", LATER, n].median)
        for n in plan.sizes
    ]
    body = (
        "`predict_many` for batches of n/100 scores, at least 100: nanoseconds of processor time a"
        " query. The first batch since a label searches; the second makes a table of all steps if"
        " that is paid for, and those that follow look up.\n\n"
        + table(["ns a query, batch", *map(size, plan.sizes)], [*rows, ["times faster", *ratios]])
    )
    return Section("Batches between two labels", body, values)
