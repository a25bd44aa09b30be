"""Protected prediction on the development streams: how it compares with the raw score.

Usage: python -m benchmarks.protection FOLDER [DELAY...]

FOLDER has the data sets. Delays are 0, 100 and 1,000 unless given. The protocol is that of
docs/evidence/streams.md: an online logistic regression scores each observation from the labels that
came before it, and all calibrators see the same scores.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from abers.monitoring import PrequentialScores
from benchmarks.papers.streams_classes import scored
from benchmarks.papers.streams_data import two
from benchmarks.papers.streams_protection import ROWS, forecasts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

STREAMS = ["Elec2", "Bike sharing", "Insects", "Phishing", "Banana", "MNIST"]
DELAYS = (0, 100, 1_000)


def write(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def measured(p: Floats, y: Integers) -> PrequentialScores:
    """Score forecasts."""
    scores = PrequentialScores()
    scores.update_many(p, y)
    return scores


def main(folder: str, *given: str) -> None:
    """Print a row a stream and delay, then what was counted."""
    delays = tuple(map(int, given)) or DELAYS
    write(f"{'stream':14}{'delay':>7}   raw / IVAP / shrunk / protected: log loss, Brier, ECE")
    rows = []
    for data in STREAMS:
        x, y = two(Path(folder), data)
        x, y = x[: ROWS.get(data)], y[: ROWS.get(data)]
        for delay in delays:
            scores = scored(x, y, delay, np.ones(len(y), bool))
            found = forecasts(scores, y, delay)
            price = found.calibrator.price / len(y)
            row = {name: measured(p, y) for name, p in found.of.items()}
            rows.append((delay, row))
            shown = [
                " / ".join(f"{getattr(one, name):.4f}" for one in row.values())
                for name in ("log_loss", "brier", "ece")
            ]
            write(f"{data:14}{delay:>7,}   {'   '.join(shown)}   price {price:.4f}")
    excess = [row["protected"].log_loss - row["raw"].log_loss for _, row in rows]
    over_ivap = [row["protected"].log_loss - row["IVAP"].log_loss for _, row in rows]
    brier = [row["protected"].brier - row["raw"].brier for _, row in rows]
    below, better = sum(one < 0 for one in excess), sum(one < 0 for one in over_ivap)
    write(f"log loss: at most raw + {max(excess):.4f}")
    write(f"below raw in {below} and below IVAP in {better} of {len(rows)} cases")
    write(f"Brier score: at most raw + {max(brier):.4f}")
    for delay in delays:
        means = [
            np.mean([row[name].ece for at, row in rows if at == delay])
            for name in ("raw", "protected")
        ]
        write(f"mean ECE at delay {delay:,}: raw {means[0]:.4f}, protected {means[1]:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
