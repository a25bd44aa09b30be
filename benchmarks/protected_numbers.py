"""Protected distributions on the development streams: how they compare with their base.

Usage: python -m benchmarks.protected_numbers FOLDER [STREAM...]

FOLDER has the data sets. The protocol is that of docs/evidence/streams.md: the base is the normal
prediction of a linear model of earlier labels. All CRPS are exact, with the mass beyond the support
at its ends. The coverage is that of intervals of 80 % of the protected distribution, given and
tracked, and in brackets that of the worst 500 labels in sequence. A row stops the study unless the
protected CRPS is below those of base and IVAPR, and the share that the served intervals cover is
within the bound of the tracker.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import norm

from abers.regression import IVAPR, CoverageTracker, ProtectedIVAPR, TrackedInterval
from abers.steps import interleaved
from benchmarks.papers.streams_data import numbers
from benchmarks.papers.streams_numbers import fitted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CASES = {
    "Trump approval": (0, 10, 100),
    "Chick weights": (0, 10, 100),
    "Bike sharing": (0, 100, 1_000),
}
MEMBERS = 50
LEVELS = (np.arange(MEMBERS) + 0.5) / MEMBERS
AT = np.array([NormalDist().inv_cdf(level) for level in LEVELS])
LEVEL = 0.8
SLACK = 100.0
WINDOW = 500
FINE = np.arange(1, 2_000) / 2_000.0


def write(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def of_normal(mean: Floats, std: Floats, y: Floats, support: tuple[float, float]) -> float:
    """Return the mean CRPS of normal distributions, clipped to the support."""
    total = 0.0
    for m, s, one in zip(mean, std, y, strict=True):
        quantiles = np.clip(norm.ppf(FINE, m, s), *support)
        total += 2.0 * float(np.mean((FINE - (one < quantiles)) * (one - quantiles)))
    return total / len(y)


def of_ivapr(mean: Floats, y: Floats, delay: int, support: tuple[float, float]) -> float:
    """Return the mean CRPS of inductive Venn-Abers distributions of all labels."""
    held, total = IVAPR(support=support), 0.0
    rows, kinds = interleaved(len(y), delay)
    for row, learns in zip(rows.tolist(), kinds.tolist(), strict=True):
        if learns:
            held.learn_one(float(mean[row]), float(y[row]))
        else:
            total += float(held.predict_one(float(mean[row])).crps(float(y[row])))
    return total / len(y)


class Protected(NamedTuple):
    """A stream that was run."""

    held: ProtectedIVAPR
    given: Floats  # 1 for each label that the given interval covers, in the order of labels
    served: Floats  # the same of the served intervals
    bound: float  # on the distance of their mean from the level


def protected(base: Floats, y: Floats, delay: int, support: tuple[float, float]) -> Protected:
    """Run a stream, and count what intervals cover; nothing is counted by the tracker."""
    held = ProtectedIVAPR(support, scores="quantiles", members=MEMBERS)
    tracker, most = CoverageTracker(LEVEL, support, slack=SLACK), 0
    waiting: dict[int, tuple[tuple[float, float], TrackedInterval]] = {}
    hits: list[tuple[bool, bool]] = []
    rows, kinds = interleaved(len(y), delay)
    for row, learns in zip(rows.tolist(), kinds.tolist(), strict=True):
        if learns:
            hits.append(tuple(low <= y[row] <= high for low, high in waiting.pop(row)))
            held.learn_one(base[row].tolist(), float(y[row]), number=row)
            tracker.learn_one(float(y[row]), number=row)
        else:
            given = held.predict_one(base[row].tolist(), number=row).interval(LEVEL)
            waiting[row] = given, tracker.predict_one(*given, number=row)
            most = max(most, len(waiting))
    given_hits, served_hits = np.array(hits, np.float64).T
    return Protected(held, given_hits, served_hits, (SLACK + most) / len(y))


def worst(hits: Floats) -> float:
    """Return the smallest share of hits among 500 labels that came one after the other."""
    window = min(WINDOW, len(hits))
    hits_of_windows: Floats = np.convolve(hits, np.ones(window), "valid")
    return float(np.min(hits_of_windows)) / window


def require(row: str, scores: dict[str, float], found: Protected) -> None:
    """Raise a RuntimeError unless the CRPS is the least, and the coverage within its bound."""
    if scores["protected"] >= min(scores["base"], scores["IVAPR"]):
        msg = f"the protected CRPS is not below the others: {row}"
        raise RuntimeError(msg)
    if abs(found.served.mean() - LEVEL) > found.bound:
        msg = f"the tracked coverage is not within its bound: {row}"
        raise RuntimeError(msg)


def main(folder: str, *streams: str) -> None:
    """Print a row a stream and delay."""
    crps, covered = "CRPS: base / IVAPR / protected", "covered / tracked (worst 500)"
    write(f"{'stream':15}{'delay':>6}   {crps}   {covered}   bound")
    for data in streams or CASES:
        stream = numbers(Path(folder), data)
        for delay in CASES[data]:
            mean, std, first = fitted(stream.x, stream.y, delay)
            y = stream.y[first:]
            base = mean[:, np.newaxis] + std[:, np.newaxis] * AT
            found = protected(base, y, delay, stream.support)
            scores = {
                "base": of_normal(mean, std, y, stream.support),
                "IVAPR": of_ivapr(mean, y, delay, stream.support),
                "protected": found.held.expert_losses()["protected"] / len(y),
            }
            shown = " / ".join(f"{one:.4f}" for one in scores.values())
            shares = (f"{one.mean():.4f} ({worst(one):.3f})" for one in (found.given, found.served))
            row = f"{data:15}{delay:>6,}   {shown}   {' / '.join(shares)}   {found.bound:.4f}"
            write(row)
            require(row, scores, found)
            weights = {name: round(one, 3) for name, one in found.held.expert_weights().items()}
            write(f"{'':21}   weights {weights}")


if __name__ == "__main__":
    main(*sys.argv[1:])
