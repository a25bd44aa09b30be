"""Calibrate a history of many models on Ray, with two workers of this machine.

Needs `pip install 'abers[ray]'`. It prints:

20,000 predictions, 20,000 outcomes, 0 dead letters
log loss of model-0: 0.498 raw, 0.417 calibrated
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import ray
from make_history import write_history

from abers.engines.ray import process_parquet
from abers.stream import Settings


def main() -> None:
    """Make a history, process it, and read the outcomes of a model."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
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


if __name__ == "__main__":
    main()
    ray.shutdown()
