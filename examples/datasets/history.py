"""Write a history of two models as datasets, into the new folder `history`.

It gets `days` (a Parquet file a day), `hive` (partitioned by model) and `delta` (a table of
Delta Lake).
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

DAYS, PER_DAY = 6, 1_000
START = 1_704_067_200_000  # 2024-01-01
STEP = 86_400_000 // PER_DAY


def history() -> pa.Table:
    """Return observations with labels, the label 1 less often than the score says."""
    rng = np.random.default_rng(1)
    rows = DAYS * PER_DAY
    scores = rng.random(rows)
    return pa.table(
        {
            "id": [f"a{row}" for row in range(rows)],
            "time": pa.array(START + STEP * np.arange(rows)).cast(pa.timestamp("ms", "UTC")),
            "model": [("fraud", "churn")[row % 2] for row in range(rows)],
            "score": scores,
            "label": (rng.random(rows) < scores**2).astype(int),
        }
    )


folder, table = Path("history"), history()
(folder / "days").mkdir(parents=True)
for day in range(DAYS):
    pq.write_table(table.slice(day * PER_DAY, PER_DAY), folder / "days" / f"day-{day}.parquet")
pq.write_to_dataset(table, folder / "hive", partition_cols=["model"])
write_deltalake(folder / "delta", table, partition_by=["model"])
