"""Protected distributions on the development streams: how they compare with their base.

Usage: python -m benchmarks.protected_numbers FOLDER [STREAM...]

FOLDER has the data sets. The protocol is that of docs/evidence/streams.md: the base is the normal
prediction of a linear model of earlier labels. All CRPS are exact, with the mass beyond the support
at its ends. The coverage is that of intervals of 80 % of the protected distribution, given and
tracked.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from abers.regression import IVAPR, CoverageTracker, ProtectedIVAPR
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


def protected(
    base: Floats, y: Floats, delay: int, support: tuple[float, float]
) -> tuple[ProtectedIVAPR, CoverageTracker, float]:
    """Run a stream; also return the tracker, and the share that the given intervals cover."""
    held = ProtectedIVAPR(support, scores="quantiles", members=MEMBERS)
    tracker, covered = CoverageTracker(LEVEL, support), 0
    given: dict[int, tuple[float, float]] = {}
    rows, kinds = interleaved(len(y), delay)
    for row, learns in zip(rows.tolist(), kinds.tolist(), strict=True):
        if learns:
            low, high = given.pop(row)
            covered += low <= y[row] <= high
            held.learn_one(base[row].tolist(), float(y[row]), number=row)
            tracker.learn_one(float(y[row]), number=row)
        else:
            given[row] = held.predict_one(base[row].tolist(), number=row).interval(LEVEL)
            tracker.predict_one(*given[row], number=row)
    return held, tracker, covered / len(y)


def main(folder: str, *streams: str) -> None:
    """Print a row a stream and delay."""
    write(f"{'stream':15}{'delay':>6}   CRPS: base / IVAPR / protected   covered / tracked   bound")
    for data in streams or CASES:
        stream = numbers(Path(folder), data)
        for delay in CASES[data]:
            mean, std, first = fitted(stream.x, stream.y, delay)
            y = stream.y[first:]
            base = mean[:, np.newaxis] + std[:, np.newaxis] * AT
            held, tracker, covered = protected(base, y, delay, stream.support)
            scores = {
                "base": of_normal(mean, std, y, stream.support),
                "IVAPR": of_ivapr(mean, y, delay, stream.support),
                "protected": held.expert_losses()["protected"] / len(y),
            }
            shown = " / ".join(f"{one:.4f}" for one in scores.values())
            write(
                f"{data:15}{delay:>6,}   {shown}   {covered:.4f} / {tracker.coverage:.4f}   "
                f"{tracker.bound:.4f}"
            )
            weights = {name: round(one, 3) for name, one in held.expert_weights().items()}
            write(f"{'':21}   weights {weights}")


if __name__ == "__main__":
    main(*sys.argv[1:])
