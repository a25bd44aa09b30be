"""Calibrate a history of many models on Dask, with two workers of this machine.

Needs `pip install 'abers[dask]'`. It prints:

20,000 predictions, 20,000 outcomes, 0 dead letters
log loss of model-0: 0.498 raw, 0.417 calibrated
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from dask.distributed import Client, LocalCluster
from make_history import write_history

from abers.engines.dask import process_parquet
from abers.stream import Settings


# --8<-- [start:example]
def main() -> None:
    """Make a history, process it, and read the outcomes of a model."""
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        data, output = Path(folder, "history"), Path(folder, "calibrated")
        write_history(data)
        totals = process_parquet(data, output, Settings(scores="any"), shards=8)
        print(
            f"{totals.predictions:,} predictions, {totals.outcomes:,} outcomes,"
            f" {totals.dead_letters} dead letters"
        )
        rows = pq.read_table(output / "outcomes", filters=[("model", "=", "model-0")])
        label, score, p = (rows.column(name).to_numpy() for name in ("label", "score", "p"))
        raw, calibrated = (-np.log(np.where(label, q, 1 - q)).mean() for q in (score, p))
        print(f"log loss of model-0: {raw:.3f} raw, {calibrated:.3f} calibrated")


# --8<-- [end:example]


if __name__ == "__main__":  # Dask starts workers as new processes, which import this file
    main()
