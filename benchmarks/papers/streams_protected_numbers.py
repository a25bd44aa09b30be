"""Protected distributions on streams of numbers, and what else is to be had.

The base is that of `streams_numbers`. All CRPS are exact, with the mass beyond the support at its
ends; the quantiles that stand for the base have a CRPS of their own, which the promise is about.
Intervals are central ones, clipped to the support.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.regression import IVAPR, CoverageTracker, ProtectedIVAPR
from abers.regression.scores import interval_score
from benchmarks.papers.streams_data import numbers
from benchmarks.papers.streams_numbers import fitted
from benchmarks.papers.streams_rivals import ran
from benchmarks.papers.streams_rivals_intervals import interval_rivals
from benchmarks.papers.streams_rivals_numbers import (
    LEVEL,
    Base,
    Scored,
    distribution_rivals,
    scored,
)
from benchmarks.papers.streams_steps import LAWS_OF_NUMBERS, MOST, steps
from benchmarks.papers.streams_worst import worst

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from abers.regression import PredictiveDistribution
    from benchmarks.papers.runner import Spec
    from benchmarks.papers.streams_steps import Steps

    Floats = NDArray[np.float64]

__all__ = ["LATEST", "protected_numbers"]

LATEST = {"Bike sharing": MOST, "Trump approval": MOST // 10, "Chick weights": MOST // 10}
"""The longest delays; two streams have 1,001 and 578 rows."""

_MEMBERS = 50
_LEVELS = (np.arange(_MEMBERS) + 0.5) / _MEMBERS
_AT = np.array([NormalDist().inv_cdf(level) for level in _LEVELS])
_SLACK = 100.0


def protected_numbers(folder: Path, spec: Spec) -> dict[str, Any]:
    """Score the methods on a stream; losses of methods and the price are per label.

    The base is a normal distribution, and then its mean alone, as a point prediction.
    """
    stream, law = numbers(folder, spec["data"]), LAWS_OF_NUMBERS[spec["law"]]
    whole = steps(law(LATEST[spec["data"]]), stream.y)
    mean, std, first = fitted(stream.x, stream.y, whole)
    base, y, order = Base(mean, std, stream.support), stream.y[first:], whole.since(first)
    mixture = ProtectedIVAPR(stream.support, scores="quantiles", members=_MEMBERS)
    found = {
        "base": scored(base, y, order),
        "IVAPR": scored(Ivapr(base), y, order),
        **{name: scored(one, y, order) for name, one in distribution_rivals(base).items()},
        "protected": scored(Protected(mixture, quantiles(mean, std)), y, order),
    }
    tracker = CoverageTracker(LEVEL, stream.support, slack=_SLACK)
    ends = {name: one.ends for name, one in found.items()}
    ends["tracked"] = ran(Tracked(tracker, ends["protected"]), y, order)
    ends |= {name: ran(one, y, order) for name, one in interval_rivals(base).items()}
    losses = {name: loss / len(y) for name, loss in mixture.expert_losses().items()}
    del losses["protected"]
    return {
        "labels": len(y),
        "methods": measured(found, ends, y, stream.support),
        "experts": losses,
        "points": of_points(mean, y, order, stream.support),
        "price": mixture.price / len(y),
        "bound": (_SLACK + tracker.waited) / len(y),
    }


def quantiles(mean: Floats, std: Floats) -> Floats:
    """Return the quantiles of normal distributions, a row each, that stand for the base."""
    found: Floats = mean[:, np.newaxis] + std[:, np.newaxis] * _AT
    return found


class Ivapr:
    """Inductive Venn-Abers distributions of all labels."""

    def __init__(self, base: Base) -> None:
        """Begin without labels."""
        self._scores, self._held = base.mean.tolist(), IVAPR(support=base.support)

    def forecast(self, row: int) -> PredictiveDistribution:
        """Return the distribution."""
        return self._held.predict_one(self._scores[row])

    def learn(self, row: int, label: float) -> None:
        """Learn a label."""
        self._held.learn_one(self._scores[row], label)


class Protected:
    """The protected calibrator, by the numbers of the rows."""

    def __init__(self, held: ProtectedIVAPR, scores: Floats) -> None:
        """Begin with the scores of all rows."""
        self._held, self._scores = held, scores

    def forecast(self, row: int) -> PredictiveDistribution:
        """Return the distribution."""
        return self._held.predict_one(self._scores[row].tolist(), number=row)

    def learn(self, row: int, label: float) -> None:
        """Learn a label."""
        self._held.learn_one(self._scores[row].tolist(), label, number=row)


class Tracked:
    """The tracker of the coverage of given intervals."""

    def __init__(self, tracker: CoverageTracker, given: Floats) -> None:
        """Begin with the intervals of all rows."""
        self._tracker, self._given = tracker, given.tolist()

    def forecast(self, row: int) -> tuple[float, float]:
        """Return the interval."""
        return self._tracker.predict_one(*self._given[row], number=row)

    def learn(self, row: int, label: float) -> None:
        """Learn a label."""
        self._tracker.learn_one(label, number=row)


def of_points(
    mean: Floats, y: Floats, order: Steps, support: tuple[float, float]
) -> dict[str, float]:
    """Return the CRPS of the methods of a point prediction, and of their pool."""
    held, row = ProtectedIVAPR(support, members=_MEMBERS), order.rows
    held.run(order.kinds, mean[row], y[row], numbers=row)
    return {name: loss / len(y) for name, loss in held.expert_losses().items()}


def measured(
    found: Mapping[str, Scored],
    ends: Mapping[str, Floats],
    y: Floats,
    support: tuple[float, float],
) -> dict[str, dict[str, float]]:
    """Score the distributions and the intervals of each method."""
    base = found["base"].crps
    rows = {name: of_interval(each, y, support) for name, each in ends.items()}
    for name, one in found.items():
        rows[name] |= {"CRPS": float(one.crps.mean()), "worst": worst(one.crps - base)}
    return rows


def of_interval(ends: Floats, y: Floats, support: tuple[float, float]) -> dict[str, float]:
    """Return what intervals cover, all and of the worst labels, and their mean width and score.

    The lower end of an empty interval is above its upper one. It covers nothing, its width is 0,
    and it is scored as the point in the middle of these ends, or of the support where they are
    infinite. The score is the sum of the pinball losses of both ends.
    """
    low, high = np.clip(ends, *support).T
    hits = ((low <= y) & (y <= high)).astype(np.float64)
    middle = (low + high) / 2.0
    lower, upper = (np.where(low > high, middle, end) for end in (low, high))
    scores = interval_score(lower, upper, y, LEVEL)
    return {
        "score": float(scores.mean()) * (1.0 - LEVEL) / 2.0,
        "share": float(hits.mean()),
        "least": 1.0 - worst(1.0 - hits),
        "width": float(np.maximum(high - low, 0.0).mean()),
    }
