"""Protected prediction of several classes: how it compares with the raw class probabilities.

Usage: python -m benchmarks.protection_classes FOLDER [DELAY...]

As benchmarks/protection.py, on the development streams of several classes. One online logistic
regression a class scores against the rest, and the raw probabilities are divided by their sum.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from abers import OneVsRest, ProtectedMultiClass
from abers.monitoring.multiclass import MultiClassScores
from benchmarks.papers.streams_data import several
from benchmarks.papers.streams_several import scored, shared

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

STREAMS = ["Insects", "MNIST"]
ROWS = {"MNIST": 20_000}
DELAYS = (0, 100, 1_000)
CLIP = 1e-6


def write(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def forecasts(odds: Floats, y: Integers, delay: int) -> tuple[dict[str, Floats], float]:
    """Forecast by each method; also return the bound on the excess over raw, in nats an event."""
    classes, scores = range(odds.shape[1]), shared(expit(odds))
    protected = ProtectedMultiClass(classes)
    p = protected.prequential(scores, y, delay=delay).p
    clipped = np.clip(scores, CLIP, 1.0 - CLIP)
    ivap = OneVsRest(classes).prequential(odds, y, delay=delay).p
    found = {"raw": shared(clipped), "one-vs-rest": ivap, "protected": p}
    return found, protected.price / len(y)


def measured(p: Floats, y: Integers) -> MultiClassScores:
    """Score forecasts."""
    scores = MultiClassScores()
    scores.update_many(p, y)
    return scores


def main(folder: str, *given: str) -> None:
    """Print a row a stream and delay."""
    delays = tuple(map(int, given)) or DELAYS
    write(f"{'stream':10}{'delay':>7}   log loss: raw / one-vs-rest / protected   Brier")
    for data in STREAMS:
        x, y = several(Path(folder), data)
        x, y = x[: ROWS.get(data)], y[: ROWS.get(data)]
        for delay in delays:
            found, price = forecasts(scored(x, y, delay), y, delay)
            rows = {name: measured(p, y) for name, p in found.items()}
            shown = [
                " / ".join(f"{getattr(one, name):.4f}" for one in rows.values())
                for name in ("log_loss", "brier")
            ]
            write(f"{data:10}{delay:>7,}   {'   '.join(shown)}   price {price:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
