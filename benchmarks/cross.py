"""Cross Venn-Abers prediction of a batch, compared with the package venn-abers.

Both take K arrays of scores and labels and K arrays of queries, and return one merged probability
per query, equal up to rounding. Fitting is part of the time.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from venn_abers.venn_abers import calc_p0p1, calc_probs, geo_mean

from abers.batch import cvap
from abers.calibration import cross_log_merge
from benchmarks.agreement import TOLERANCE, DisagreementError
from benchmarks.contenders import NATIVE, PACKAGE
from benchmarks.page import Key, Section, size, table
from benchmarks.streams import SEED, ordinary
from benchmarks.timing import Spread, digits, in_turns, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.plan import Plan
    from benchmarks.streams import Floats, Labels

FOLDS = 5

BATCH = "CVAP"


class Folds(NamedTuple):
    """A calibration set and the scores of the same queries, a fold each."""

    scores: list[Floats]
    labels: list[Labels]
    queries: list[Floats]


def folds(n: int) -> Folds:
    """Make n calibration scores in all, and as many queries for each fold."""
    streams = [ordinary(n // FOLDS, SEED + k) for k in range(FOLDS)]
    queries = [ordinary(n, SEED + FOLDS + k).scores for k in range(FOLDS)]
    return Folds([s.scores for s in streams], [s.labels for s in streams], queries)


def ours(case: Folds) -> Floats:
    """Predict and merge by abers."""
    return cross_log_merge(*cvap(*case))


def theirs(case: Folds) -> Floats:
    """Predict and merge by the inner functions of venn-abers, as its class for folds does."""
    pairs = []
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # 0 / 0 in its fit
        for scores, labels, queries in zip(*case, strict=True):
            fitted = calc_p0p1(np.column_stack([1 - scores, scores]), labels.astype(np.float64))
            pairs.append(calc_probs(*fitted, np.column_stack([1 - queries, queries]))[1])
    p0, p1 = (np.column_stack([pair[:, side] for pair in pairs]) for side in (0, 1))
    merged: Floats = geo_mean(p1) / (geo_mean(1 - p0) + geo_mean(p1))
    return merged


CONTENDERS: dict[str, Callable[[Folds], Floats]] = {NATIVE: ours, PACKAGE: theirs}


def cross(plan: Plan) -> Section:
    """Measure a whole batch; a DisagreementError where the two differ by more than rounding."""
    n = plan.large // 10
    case = folds(n)
    difference = float(np.abs(ours(case) - theirs(case)).max())
    if not difference <= TOLERANCE:
        msg = f"merged probabilities differ by {difference}"
        raise DisagreementError(msg)
    spreads = in_turns(
        plan.rounds, {name: partial(_timed, call, case) for name, call in CONTENDERS.items()}
    )
    values: dict[Key, Spread] = {(BATCH, name, n): each for name, each in spreads.items()}
    times = spreads[PACKAGE].median / spreads[NATIVE].median
    body = (
        f"{size(n)} calibration scores in {FOLDS} folds, {FOLDS} arrays of {size(n)} scores to be"
        " predicted, uniform scores without ties; milliseconds for all of it, fitting and the log"
        f" merge included, on one thread. The largest difference is {difference:.0e}; by the"
        f" medians abers is {digits(times)} times as fast.\n\n"
        + table(["contender", "ms"], [[name, each] for name, each in spreads.items()])
    )
    return Section("Cross Venn–Abers, a batch", body, values)


def _timed(call: Callable[[Folds], Floats], case: Folds) -> float:
    return seconds(partial(call, case)) * 1e3
