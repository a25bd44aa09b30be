"""Batches of predictions of a calibrator that learns nothing meanwhile.

The rivals look up what was computed before: numpy the steps of both probabilities, venn-abers its
own, and scikit-learn the interpolated fit of one isotonic regression, which is another prediction.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from sklearn.isotonic import IsotonicRegression
from venn_abers.venn_abers import calc_p0p1, calc_probs

from abers import VennAbers
from benchmarks.contenders import PACKAGE
from benchmarks.page import Key, Section, size, table
from benchmarks.streams import SEED, ordinary
from benchmarks.timing import Spread, cpu_seconds, in_turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.plan import Plan
    from benchmarks.streams import Floats, Stream

    Lookup = Callable[[Floats], object]

FIRST, LATER = "abers, the first since a label", "abers, once it has its table"
STEPS, ISOTONIC = "`numpy.searchsorted` in the steps", "`IsotonicRegression.predict`"
_BATCHES = 20  # of a turn: at least n/5 scores, more than the n/8 that pay for a table


def batch_of(n: int) -> int:
    """Return the size of a batch: far below the eighth that pays for a table by itself."""
    return max(100, n // 100)


class _Asked:
    """A calibrator that is asked in batches; each turn returns nanoseconds a query."""

    def __init__(self, n: int) -> None:
        self.learned = ordinary(n)
        self._calibrator = VennAbers()
        self._calibrator.learn_many(self.learned.scores, self.learned.labels)
        self._queries = np.random.default_rng(SEED + 5).random((_BATCHES, batch_of(n)))
        self._label = 0

    def first(self) -> float:
        self._label = 1 - self._label
        self._calibrator.learn_one(0.5, self._label)
        return self._nanoseconds(self._calibrator.predict_many, 1)

    def later(self) -> float:
        for queries in self._queries:
            self._calibrator.predict_many(queries)
        return self._nanoseconds(self._calibrator.predict_many, _BATCHES)

    def rivals(self) -> dict[str, Callable[[], float]]:
        """Return the measurements of what others compute before, and look up."""
        lookups = {
            STEPS: steps(self._calibrator, self.learned.scores),
            PACKAGE: package(self.learned),
            ISOTONIC: isotonic(self.learned),
        }
        return {
            name: partial(self._nanoseconds, lookup, _BATCHES) for name, lookup in lookups.items()
        }

    def _nanoseconds(self, lookup: Lookup, batches: int) -> float:
        """Measure the processor time of some batches; nanoseconds a query."""

        def work() -> None:
            for queries in self._queries[:batches]:
                lookup(queries)

        return 1e9 * cpu_seconds(work) / self._queries[:batches].size


def steps(calibrator: VennAbers, scores: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Return a search in the steps of both probabilities, which it computes before.

    They are constant at each learned score and between two of them, so each of these places is
    asked once, and a step begins where one of the two changes.
    """
    known = np.unique(scores)
    begins = np.concatenate(
        ([known[0] - 1], np.stack([known, np.nextafter(known, np.inf)], 1).flat)
    )
    p0, p1 = calibrator.predict_many(begins)
    new = np.concatenate(([True], (p0[1:] != p0[:-1]) | (p1[1:] != p1[:-1])))
    begins, p0, p1 = begins[new][1:], p0[new], p1[new]

    def lookup(queries: Floats) -> tuple[Floats, Floats]:
        at = np.searchsorted(begins, queries, "right")
        return p0[at], p1[at]

    return lookup


def package(learned: Stream) -> Lookup:
    """Return the search of venn-abers in what it fitted."""
    rows = np.column_stack([1 - learned.scores, learned.scores])
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):  # 0 / 0 in its fit
        fitted = calc_p0p1(rows, learned.labels.astype(np.float64))
    return lambda queries: calc_probs(*fitted, np.column_stack([1 - queries, queries]))


def isotonic(learned: Stream) -> Lookup:
    """Return the interpolation of scikit-learn in what it fitted."""
    fitted = IsotonicRegression(out_of_bounds="clip").fit(learned.scores, learned.labels)
    return fitted.predict  # type: ignore[no-any-return]


def unchanged(plan: Plan) -> Section:
    """Measure `predict_many` of a calibrator that learns nothing meanwhile."""
    values: dict[Key, Spread] = {}
    names = (FIRST, LATER, STEPS, PACKAGE, ISOTONIC)
    for n in plan.sizes:
        asked = _Asked(n)
        turns = {FIRST: asked.first, LATER: asked.later, **asked.rivals()}
        found = in_turns(plan.rounds, turns)
        values |= {("unchanged", name, n): spread for name, spread in found.items()}
    rows = [[name, *(values["unchanged", name, n] for n in plan.sizes)] for name in names]
    body = (
        "Batches of n/100 scores, at least 100: nanoseconds of processor time a query. The first"
        " batch since a label searches. When n/8 scores were asked, abers makes a table of all"
        " steps, and the batches that follow look up. The others are fitted before the clock"
        " starts, and must be fitted anew after each label: numpy searches in the steps that abers"
        " has shown it. scikit-learn has one fit, no interval.\n\n"
        + table(["ns a query, batch", *map(size, plan.sizes)], rows)
    )
    return Section("Batches between two labels", body, values)
