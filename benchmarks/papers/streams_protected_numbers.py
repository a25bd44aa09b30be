"""Protected distributions on streams of numbers, compared with their parts.

The base and its delays are those of `streams_numbers`. All CRPS are exact, that of the base by
1,999 quantiles, with the mass beyond the support at its ends. Coverage is that of central
intervals, which are clipped to the support.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import norm

from abers.regression import IVAPR, CoverageTracker, ProtectedIVAPR
from abers.steps import interleaved
from benchmarks.papers.streams_data import numbers
from benchmarks.papers.streams_numbers import fitted

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.papers.runner import Spec

    Floats = NDArray[np.float64]

__all__ = ["LEVEL", "protected_numbers"]

LEVEL = 0.8
"""Probability of the intervals."""

_MEMBERS = 50
_LEVELS = (np.arange(_MEMBERS) + 0.5) / _MEMBERS
_AT = np.array([NormalDist().inv_cdf(level) for level in _LEVELS])
_SLACK = 100.0
_WINDOW = 500  # labels
_FINE = np.arange(1, 2_000) / 2_000.0


def protected_numbers(folder: Path, spec: Spec) -> dict[str, Any]:
    """Score the methods on a stream; losses of methods and the price are per label.

    The base is a normal distribution, and then its mean alone, as a point prediction.
    """
    stream, delay = numbers(folder, spec["data"]), spec["delay"]
    mean, std, first = fitted(stream.x, stream.y, delay)
    y = stream.y[first:]
    found = run(quantiles(mean, std), y, delay, stream.support)
    ivapr = of_ivapr(mean, y, delay, stream.support)
    losses = {name: loss / len(y) for name, loss in found.held.expert_losses().items()}
    crps = {
        "base": of_normal(mean, std, y, stream.support),
        "IVAPR": ivapr.crps,
        "protected": losses.pop("protected"),
    }
    normal = np.column_stack(norm.interval(LEVEL, mean, std))
    ends = {"base": normal, "IVAPR": ivapr.ends, **found.ends()}
    return {
        "labels": len(y),
        "CRPS": crps,
        "experts": losses,
        "points": of_points(mean, y, delay, stream.support),
        "price": found.held.price / len(y),
        "coverage": {n: coverage(np.clip(each, *stream.support), y) for n, each in ends.items()},
        "bound": (_SLACK + found.waited) / len(y),
    }


def quantiles(mean: Floats, std: Floats) -> Floats:
    """Return the quantiles of normal distributions, a row each, that stand for the base."""
    found: Floats = mean[:, np.newaxis] + std[:, np.newaxis] * _AT
    return found


class Run(NamedTuple):
    """The protected calibrator at the end of a stream, and forecasts of each observation."""

    held: ProtectedIVAPR
    given: Floats  # ends of its intervals
    tracked: Floats
    waited: int  # the most observations that awaited their labels

    def ends(self) -> dict[str, Floats]:
        """Return the ends of intervals by method."""
        return {"protected": self.given, "tracked": self.tracked}


def run(base: Floats, y: Floats, delay: int, support: tuple[float, float]) -> Run:
    """Run the protected calibrator, and the tracker of its intervals."""
    held = ProtectedIVAPR(support, scores="quantiles", members=_MEMBERS)
    tracker = CoverageTracker(LEVEL, support, slack=_SLACK)
    given, tracked = np.empty((2, len(y), 2))
    waiting, most = 0, 0
    rows, kinds = interleaved(len(y), delay)
    for row, learns in zip(rows.tolist(), kinds.tolist(), strict=True):
        if learns:
            held.learn_one(base[row].tolist(), float(y[row]), number=row)
            tracker.learn_one(float(y[row]), number=row)
            waiting -= 1
        else:
            low, high = held.predict_one(base[row].tolist(), number=row).interval(LEVEL)
            given[row] = low, high
            tracked[row] = tracker.predict_one(low, high, number=row)
            waiting += 1
            most = max(most, waiting)
    return Run(held, given, tracked, most)


def of_points(
    mean: Floats, y: Floats, delay: int, support: tuple[float, float]
) -> dict[str, float]:
    """Return the CRPS of the methods of a point prediction, and of their pool."""
    held = ProtectedIVAPR(support, members=_MEMBERS)
    held.prequential(mean, y, delay=delay)
    return {name: loss / len(y) for name, loss in held.expert_losses().items()}


def of_normal(mean: Floats, std: Floats, y: Floats, support: tuple[float, float]) -> float:
    """Return the mean CRPS of normal distributions, clipped to the support."""
    total = 0.0
    for m, s, one in zip(mean, std, y, strict=True):
        at = np.clip(norm.ppf(_FINE, m, s), *support)
        total += 2.0 * float(np.mean((_FINE - (one < at)) * (one - at)))
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
