"""Intervals of one level: of the band of IVAPR, around a prediction, and self-calibrating.

The yardstick is a sort of as many numbers in the same round, so that figures of other machines and
busy minutes can be compared.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from abers.batch import ConformalInterval, SelfCalibratingInterval
from abers.regression import IVAPR
from benchmarks.page import Key, Section, size, table
from benchmarks.streams import SEED
from benchmarks.timing import Spread, cpu_seconds, in_turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from benchmarks.plan import Plan

    Floats = NDArray[np.float64]

__all__ = ["conformal"]

BAND, AROUND, OWN = (
    "ends of the band of `IVAPR`",
    "`ConformalInterval`",
    "`SelfCalibratingInterval`",
)
SORT = "a sort of n numbers"
_SIZES = (10_000, 100_000)
_QUERIES = 20


def conformal(plan: Plan) -> Section:
    """Time a prediction, the mean over queries at random scores."""
    values: dict[Key, Spread] = {}
    rows = []
    for n in _SIZES:
        found = in_turns(plan.passes, _measures(n))
        values |= {("conformal", name, n): each for name, each in found.items()}
        for name, each in found.items():
            ratio = each.median / found[SORT].median
            rows.append([f"{name}, n = {size(n)}", each, f"{ratio:.2g}"])
    body = (
        f"A prediction at the level 90 %, the mean of {_QUERIES} at random scores, in milliseconds"
        " of processor time. Scores tell labels apart, and errors grow with the score.\n\n"
        + table(["", "ms", "times the sort"], rows)
    )
    return Section("Intervals of one level", body, values)


def _measures(n: int) -> dict[str, Callable[[], float]]:
    rng = np.random.default_rng(SEED)
    score = rng.random(n)
    labels = 10.0 * score + (0.5 + 2.5 * score) * rng.normal(size=n)
    asked = rng.random(_QUERIES)
    ivapr, around, own = IVAPR(), ConformalInterval(0.9), SelfCalibratingInterval(0.9)
    ivapr.learn_many(score, labels)
    around.learn_many(np.stack([10.0 * score, score], axis=1), labels)
    own.learn_many(score, labels)
    pairs = np.stack([10.0 * asked, asked], axis=1)
    calls: dict[str, Callable[[], object]] = {
        BAND: partial(ivapr.quantiles_many, asked, [0.05, 0.95]),
        AROUND: partial(around.predict_many, pairs),
        OWN: partial(own.predict_many, asked),
        SORT: lambda: [np.sort(labels) for _ in range(_QUERIES)],
    }
    return {name: partial(_milliseconds, call) for name, call in calls.items()}


def _milliseconds(call: Callable[[], object]) -> float:
    return cpu_seconds(call) * 1e3 / _QUERIES
