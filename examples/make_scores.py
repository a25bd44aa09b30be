"""Write scores.csv, next to this program: simulated scores of a model, and labels hours later.

The odds of the scores are twice too high, so the first verdict has something to say. It prints:

scores.csv has 3,000 rows.
"""

from __future__ import annotations

import csv
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROWS = 3_000
START = datetime(2026, 1, 5, tzinfo=UTC)


def main() -> None:
    """Write the file next to this program."""
    rng = random.Random(1)  # noqa: S311 - a simulation
    with Path(__file__).with_name("scores.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "time", "prob", "label_time", "label"])
        for number in range(ROWS):
            true = rng.betavariate(2.0, 5.0)
            score = 2.0 * true / (1.0 + true)
            time = START + timedelta(minutes=10 * number)
            known = time + timedelta(hours=rng.choice((1, 6, 24)))
            label = int(rng.random() < true)
            rows.writerow([number, time.isoformat(), f"{score:.3f}", known.isoformat(), label])
    print(f"scores.csv has {ROWS:,} rows.")


if __name__ == "__main__":
    main()
