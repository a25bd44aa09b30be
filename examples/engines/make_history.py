"""Write a history of ten models as Parquet files of a day each, into the folder `history`."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DAYS, PER_DAY = 4, 5_000
DAY, HOUR = 86_400_000, 3_600_000
START = 1_704_067_200_000  # 2024-01-01


def write_history(folder: Path) -> None:
    """Write observations and, an hour later, their labels, in the order of time."""
    rng = np.random.default_rng(1)
    rows = DAYS * PER_DAY
    scores, times = rng.random(rows), START + (DAY // PER_DAY) * np.arange(rows)
    labels = (rng.random(rows) < scores**2).astype(int)
    observed = np.repeat([True, False], rows)
    history = pa.table(
        {
            "id": 2 * [f"a{row}" for row in range(rows)],
            "time": np.concatenate([times, times + HOUR]),
            "model": 2 * [f"model-{row % 10}" for row in range(rows)],
            "score": pa.array(np.tile(scores, 2), mask=~observed),
            "label": pa.array(np.tile(labels, 2), mask=observed),
        }
    ).sort_by("time")
    folder.mkdir()
    days = (history.column("time").to_numpy() - START) // DAY
    for day in np.unique(days):
        pq.write_table(history.filter(days == day), folder / f"day-{day}.parquet")


if __name__ == "__main__":
    write_history(Path("history"))
