"""Predictive distributions: cost of a query, a label and a batch of queries.

Contenders get the same observations in turns. One that refits after each label is charged a fit and
a prediction; one that shares a fit between queries is measured on a batch of them.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING

import numpy as np

from abers import VennAbers
from abers.regression import IVAPR
from benchmarks.page import Key, Section, size, table
from benchmarks.streams import SEED
from benchmarks.timing import Spread, in_turns, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from benchmarks.plan import Plan

    Floats = NDArray[np.float64]
    Measures = dict[str, Callable[[], float]]

BAND, QUANTILE, FIVE, LABEL = "band, both CDFs", "one quantile", "five quantiles", "a label"
GRID, GRID_LABEL = "99 thresholds, a prediction", "99 thresholds, a label"
GRID_RUN = "99 thresholds, predict and learn, in batches"
IDR, CREPES = "isodistrreg, fit and query", "crepes, fit and query"
PETEJ, BATCH = "Petej's precomputation", "abers, `predict_many`"
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
_MOST_GRID = 10**5  # observations, in each of 99 calibrators
_MOST_DENSE = 3_000  # observations: isodistrreg takes n by n
_SHARED = 10_000  # observations of the batch, for a tenth as many queries
_SHARED_ROUNDS = 3  # the precomputation takes half a minute


def observations(n: int, seed: int = SEED) -> tuple[Floats, Floats]:
    """Make scores, and labels that scatter about them, more where the score is large."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    return scores, scores + (0.3 + 0.2 * np.abs(scores)) * rng.normal(size=n)


def petej(scores: Floats, labels: Floats, queries: Floats) -> tuple[Floats, Floats]:
    """Return both CDFs of all queries, a row a threshold: a fit for each, shared by the queries."""
    lower, upper = np.empty((2, len(labels), len(queries)))
    for i, t in enumerate(np.sort(labels).tolist()):
        at_most = VennAbers()
        at_most.learn_many(-scores, labels <= t)
        lower[i], upper[i] = at_most.predict_many(-queries)
    return lower, upper


def _taught(n: int, grid: Floats | None = None) -> IVAPR:
    calibrator = IVAPR(grid=grid)
    calibrator.learn_many(*observations(n))
    return calibrator


def _each(queries: Floats, call: Callable[[float], object]) -> float:
    """Time a call for each query; microseconds a query."""

    def work() -> None:
        for query in queries.tolist():
            call(query)

    return seconds(work) / len(queries) * 1e6


def _in_batches(calibrator: IVAPR) -> float:
    """Time predict and learn in one batch; microseconds a pair."""
    scores, labels = observations(1_000, SEED + 4)
    steps = np.tile([0, 1], 1_000)
    rows = np.repeat(np.arange(1_000), 2)
    taken = seconds(lambda: calibrator.run(steps, scores[rows], labels[rows], levels=_LEVELS))
    return taken / 1_000 * 1e6


def _ours(n: int, queries: Floats) -> Measures:
    exact = _taught(n)
    labels = iter(observations(10 * len(queries) * 50, SEED + 2)[1].tolist())

    def learn(calibrator: IVAPR, query: float) -> None:
        label = next(labels)
        calibrator.learn_one(query, label)

    found: Measures = {
        BAND: partial(_each, queries, exact.predict_one),
        QUANTILE: partial(_each, queries, lambda q: exact.quantile_one(q, 0.5)),
        FIVE: partial(_each, queries, lambda q: exact.quantiles_many([q], _LEVELS)),
        LABEL: partial(_each, queries, partial(learn, exact)),
    }
    if n > _MOST_GRID:
        return found
    grid = _taught(n, np.linspace(-2.0, 2.0, 99))
    return found | {
        GRID: partial(_each, queries, grid.predict_one),
        GRID_LABEL: partial(_each, queries, partial(learn, grid)),
        GRID_RUN: partial(_in_batches, grid),
    }


def _theirs(n: int, queries: Floats) -> Measures:
    scores, labels = observations(n)
    measures: Measures = {}
    if find_spec("isodistrreg") and n <= _MOST_DENSE:
        idr = import_module("isodistrreg").IDR
        measures[IDR] = partial(
            _each, queries[:2], lambda q: idr(labels, scores).predict(np.array([q]))
        )
    if find_spec("crepes"):
        system = import_module("crepes").ConformalPredictiveSystem

        def conformal(query: float) -> object:
            fitted = system().fit(residuals=labels - scores)
            return fitted.predict_cpds(y_hat=np.array([query]))

        measures[CREPES] = partial(_each, queries, conformal)
    return measures


def _shared(plan: Plan) -> tuple[int, dict[str, Spread]]:
    """Measure a batch of queries on one bag; microseconds a query, all costs shared."""
    n = min(max(plan.sizes), _SHARED)
    scores, labels = observations(n)
    queries, calibrator = observations(n // 10, SEED + 3)[0], _taught(n)

    def a_query(batch: Callable[[], object]) -> float:
        return seconds(batch) / len(queries) * 1e6

    measures: Measures = {
        BATCH: lambda: a_query(lambda: calibrator.predict_many(queries)),
        PETEJ: lambda: a_query(lambda: petej(scores, labels, queries)),
    }
    return n, in_turns(min(plan.rounds, _SHARED_ROUNDS), measures)


def exponents(values: dict[Key, Spread], name: str, sizes: Sequence[int]) -> list[str]:
    """Return the powers of n with which a cost grows from each size to the next."""
    costs = [values["predictive", name, n].median for n in sizes]
    pairs = zip(pairwise(costs), pairwise(sizes), strict=True)
    return ["", *(f"{log(b / a) / log(m / n):.2f}" for (a, b), (n, m) in pairs)]


def predictive(plan: Plan) -> Section:
    """Measure a query, a label, and a batch of queries."""
    values: dict[Key, Spread] = {}
    sizes = plan.sizes
    for n in sizes:
        queries = observations(max(3, 10**5 // n if n > 10**3 else 50), SEED + 1)[0]
        measures = _ours(n, queries) | _theirs(n, queries)
        found = in_turns(plan.rounds, measures)
        values |= {("predictive", name, n): spread for name, spread in found.items()}
    names = dict.fromkeys(key[1] for key in values)
    rows = [[name, *(values.get(("predictive", name, n), "—") for n in sizes)] for name in names]
    growth = [[name, *exponents(values, name, sizes)] for name in (BAND, QUANTILE, LABEL)]
    n, shared = _shared(plan)
    values |= {("predictive batch", name, n): spread for name, spread in shared.items()}
    body = (
        "`IVAPR`, exact at every label, and with a grid of 99 thresholds; one call a query"
        " from Python, or batches of 2 000 steps through `run`. isodistrreg fits isotonic"
        " distributional regression, n by n; crepes a conformal predictive system with one shape"
        " of distributions for all queries. Both fit anew after each label; they are measured"
        " where they are installed.\n\n"
        + table(["µs", *map(size, sizes)], rows)
        + "From each size to the next the cost grows like n to this power; above 1 it grows faster"
        " than n.\n\n"
        + table(["power of n", *map(size, sizes)], growth)
        + f"A batch of {size(n // 10)} queries on {size(n)} observations. Petej's precomputation, a"
        " binary calibrator a threshold with the native core, shares its quadratic work between"
        " them; abers starts afresh for each query, and has nothing to do anew after a label.\n\n"
        + table(["µs a query", size(n)], [[name, spread] for name, spread in shared.items()])
    )
    return Section("Predictive distributions", body, values)
