"""A river pipeline that learns from late labels, calibrated by one line.

Usage: python examples/river_pipeline.py         (needs pip install "abers[river]")

Naive Bayes forecasts which deliveries will be late. Distance, stops and estimated minutes say
nearly the same thing, and naive Bayes believes it three times. docs/gallery/river_pipeline.md shows
the output.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import numpy as np
from river import naive_bayes, preprocessing, stream

from abers.river import VennAbersClassifier

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

DELIVERIES, LATE = 4_000, 200  # a label comes 200 deliveries after its forecast


def deliveries() -> Iterator[tuple[dict[Hashable, float], bool]]:
    """Make up deliveries and whether each was late."""
    rng = random.Random(1)  # noqa: S311 - a simulation
    for _ in range(DELIVERIES):
        km, rain, rush = rng.expovariate(1 / 4), rng.random() < 0.3, rng.random() < 0.4
        x: dict[Hashable, float] = {
            "km": km,
            "stops": 1 + int(km / 2 + 2 * rng.random()),
            "minutes": 8 + 3 * km + 6 * rain + rng.gauss(0, 3),
            "rain": float(rain),
            "rush_hour": float(rush),
        }
        log_odds = -2.2 + 0.25 * km + 0.9 * rain + 0.8 * rush
        yield x, rng.random() < 1 / (1 + math.exp(-log_odds))


def forecasts(model: Any, *, with_ids: bool) -> tuple[list[float], list[bool]]:  # noqa: ANN401 - of river
    """Forecast each delivery when it starts, and learn from it when its label comes."""
    found, labels = [0.0] * DELIVERIES, [False] * DELIVERIES
    for n, x, y in stream.simulate_qa(deliveries(), moment=None, delay=LATE, copy=False):
        ids = {"id": n} if with_ids else {}  # joins a label with its forecast
        if y is None:
            found[n] = model.predict_proba_one(x, **ids).get(True, 0.5)
        else:
            model.learn_one(x, y, **ids)
            labels[n] = y
    return found, labels


def main() -> None:
    """Print log losses, and how often came true what each pipeline said."""
    bayes: Any = naive_bayes.GaussianNB  # river ships no types
    raw, labels = forecasts(preprocessing.StandardScaler() | bayes(), with_ids=False)
    calibrated, _ = forecasts(
        preprocessing.StandardScaler() | VennAbersClassifier(bayes()), with_ids=True
    )
    late = np.array(labels)
    print("forecast          naive Bayes             VennAbersClassifier")
    print("                  n     says   late            n     says   late")
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 1.0)):
        cells = []
        for p in (np.array(raw), np.array(calibrated)):
            rows = (p >= low) & ((p < high) | (high == 1))
            said, came = (f"{one[rows].mean():.2f}" if rows.any() else "-" for one in (p, late))
            cells.append(f"{rows.sum():>7,} {said:>8} {came:>6}")
        print(f"{low:.2f} - {high:.2f}  {'     '.join(cells)}")
    for name, p in (("naive Bayes", np.array(raw)), ("VennAbersClassifier", np.array(calibrated))):
        safe = np.clip(p, 1e-6, 1 - 1e-6)
        print(f"log loss of {name}: {-np.log(np.where(late, safe, 1 - safe)).mean():.3f}")


if __name__ == "__main__":
    main()
