"""The picture of docs/protection.md: a scorer that breaks, and recovers.

Usage: python -m benchmarks.broken

In the middle third of the stream the scores are 1 less the probability of label 1, otherwise they
are that probability. The picture shows total log losses less that of the raw score.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from abers import ProtectedVennAbers, VennAbers
from benchmarks.papers.figure import Axis, draw

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "broken.svg"
THIRD, DELAY, POINTS = 3_000, 100, 200
ROUND = 5.0  # hundreds of nats: the axis ends at multiples


def stream() -> tuple[Floats, Floats]:
    """Return scores and labels."""
    rng = np.random.default_rng(1)
    truth = rng.beta(1.2, 1.2, 3 * THIRD).clip(0.02, 0.98)
    labels = (rng.random(3 * THIRD) < truth).astype(np.float64)
    scores = truth.copy()
    scores[THIRD : 2 * THIRD] = 1.0 - truth[THIRD : 2 * THIRD]
    return scores, labels


def above_raw() -> dict[str, Floats]:
    """Return the total log loss of each method so far, less that of the raw score."""
    scores, labels = stream()
    protected = ProtectedVennAbers().prequential(scores, labels, delay=DELAY).probability
    ivap = VennAbers().prequential(scores, labels, delay=DELAY).merged
    raw = _total(scores, labels)
    return {"IVAP": _total(ivap, labels) - raw, "protected": _total(protected, labels) - raw}


def _total(p: Floats, labels: Floats) -> Floats:
    return np.cumsum(-np.log(np.where(labels == 1.0, p, 1.0 - p)))


def main() -> None:
    """Write the picture."""
    found = above_raw()
    every = 3 * THIRD // POINTS
    points = {
        name: [(n / 1_000, float(total[n - 1]) / 100) for n in range(every, len(total) + 1, every)]
        for name, total in found.items()
    }
    ends = [y for line in points.values() for _, y in line]
    low, high = ROUND * np.floor(min(ends) / ROUND), ROUND * np.ceil(max(ends) / ROUND)
    across = Axis("thousands of observations", 0.0, 10.0)
    axes = across, Axis("log loss above raw, hundreds of nats", float(low), float(high))
    PICTURE.write_text(draw("The scorer breaks at 3,000 and recovers at 6,000", *axes, points))


if __name__ == "__main__":
    main()
