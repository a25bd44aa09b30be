"""Protected distributions on streams of numbers, beside what they are made of.

The base and its delays are those of `streams_numbers`. All CRPS are exact, with the mass beyond the
support at its ends. Coverage is that of central intervals, which are clipped to the support.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import norm

from abers.regression import IVAPR, CoverageTracker, ProtectedIVAPR
from abers.regression.distribution import PredictiveDistribution
from abers.regression.distribution_experts import EXPERTS, DistributionExperts
from abers.steps import interleaved
from benchmarks.papers.streams_data import numbers
from benchmarks.papers.streams_numbers import fitted

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.papers.runner import Spec

    Floats = NDArray[np.float64]

__all__ = ["LEVEL", "SHRUNK", "protected_numbers"]

LEVEL = 0.8
"""Probability of the intervals."""
SHRUNK = "ivapr_1000"
"""Expert that is shrunk, and no mixture."""

_MEMBERS = 50
_LEVELS = (np.arange(_MEMBERS) + 0.5) / _MEMBERS
_AT = np.array([NormalDist().inv_cdf(level) for level in _LEVELS])
_SLACK = 100.0
_WINDOW = 500  # labels
_FINE = np.arange(1, 2_000) / 2_000.0


def protected_numbers(folder: Path, spec: Spec) -> dict[str, Any]:
    """Score the methods on a stream; losses of experts and the price are per label."""
    stream, delay = numbers(folder, spec["data"]), spec["delay"]
    mean, std, first = fitted(stream.x, stream.y, delay)
    y = stream.y[first:]
    found = run(mean[:, np.newaxis] + std[:, np.newaxis] * _AT, y, delay, stream.support)
    ivapr = of_ivapr(mean, y, delay, stream.support)
    losses = {name: loss / len(y) for name, loss in found.held.expert_losses().items()}
    crps = {
        "base": of_normal(mean, std, y, stream.support),
        "IVAPR": ivapr.crps,
        "shrunk": losses[SHRUNK],
        "protected": losses.pop("protected"),
    }
    normal = np.column_stack(norm.interval(LEVEL, mean, std))
    ends = {"base": normal, "IVAPR": ivapr.ends, **found.ends}
    return {
        "labels": len(y),
        "CRPS": crps,
        "experts": losses,
        "price": found.held.price / len(y),
        "coverage": {n: coverage(np.clip(each, *stream.support), y) for n, each in ends.items()},
        "bound": (_SLACK + found.waited) / len(y),
    }


class Run(NamedTuple):
    """The protected calibrator at the end of a stream, and the intervals of each observation."""

    held: ProtectedIVAPR
    ends: dict[str, Floats]
    waited: int  # the most observations that awaited their labels


def run(base: Floats, y: Floats, delay: int, support: tuple[float, float]) -> Run:
    """Run the protected calibrator, its shrunk expert alone, and the tracker of its intervals."""
    held = ProtectedIVAPR(support, scores="quantiles", members=_MEMBERS)
    alone = DistributionExperts(support, _MEMBERS, pointwise=False)
    tracker = CoverageTracker(LEVEL, support, slack=_SLACK)
    ends = {name: np.empty((len(y), 2)) for name in ("shrunk", "protected", "tracked")}
    waiting, most = 0, 0
    rows, kinds = interleaved(len(y), delay)
    for row, learns in zip(rows.tolist(), kinds.tolist(), strict=True):
        if learns:
            alone.learn(base[row], y[row], np.clip(base[row], *support))
            held.learn_one(base[row].tolist(), float(y[row]), number=row)
            tracker.learn_one(float(y[row]), number=row)
            waiting -= 1
        else:
            shrunk = alone.forecasts(base[row])[EXPERTS.index(SHRUNK)]
            given = held.predict_one(base[row].tolist(), number=row).interval(LEVEL)
            ends["shrunk"][row] = even(shrunk, support).interval(LEVEL)
            ends["protected"][row] = given
            ends["tracked"][row] = tracker.predict_one(*given, number=row)
            waiting += 1
            most = max(most, waiting)
    return Run(held, ends, most)


def even(quantiles: Floats, support: tuple[float, float]) -> PredictiveDistribution:
    """Return the distribution of equally likely numbers, in order."""
    points, counts = np.unique(quantiles, return_counts=True)
    cdf = np.concatenate(([0.0], np.cumsum(counts) / len(quantiles)))
    return PredictiveDistribution(points, cdf, support=support)


def of_normal(mean: Floats, std: Floats, y: Floats, support: tuple[float, float]) -> float:
    """Return the mean CRPS of normal distributions, clipped to the support."""
    total = 0.0
    for m, s, one in zip(mean, std, y, strict=True):
        quantiles = np.clip(norm.ppf(_FINE, m, s), *support)
        total += 2.0 * float(np.mean((_FINE - (one < quantiles)) * (one - quantiles)))
    return total / len(y)


class Scored(NamedTuple):
    """Mean CRPS of distributions, and their intervals."""

    crps: float
    ends: Floats


def of_ivapr(mean: Floats, y: Floats, delay: int, support: tuple[float, float]) -> Scored:
    """Score inductive Venn-Abers distributions of all labels."""
    held, total, ends = IVAPR(support=support), 0.0, np.empty((len(y), 2))
    rows, kinds = interleaved(len(y), delay)
    for row, learns in zip(rows.tolist(), kinds.tolist(), strict=True):
        if learns:
            held.learn_one(float(mean[row]), float(y[row]))
        else:
            found = held.predict_one(float(mean[row]))
            total += float(found.crps(float(y[row])))
            ends[row] = found.interval(LEVEL)
    return Scored(total / len(y), ends)


def coverage(ends: Floats, y: Floats) -> dict[str, float]:
    """Return the share of labels that intervals cover, that of the worst 500, and the mean width.

    The lower end of an empty interval is above its upper one; its width is 0.
    """
    low, high = ends.T
    hits = ((low <= y) & (y <= high)).astype(np.float64)
    width = np.maximum(high - low, 0.0)
    return {"share": float(hits.mean()), "worst": worst(hits), "width": float(width.mean())}


def worst(hits: Floats) -> float:
    """Return the smallest share of hits among 500 labels that came one after the other."""
    window = min(_WINDOW, len(hits))
    hits_of_windows: Floats = np.convolve(hits, np.ones(window), "valid")
    return float(np.min(hits_of_windows)) / window
