"""What the examples of histories print."""

from pathlib import Path

import numpy as np
import pyarrow.dataset as ds


def summary(folder: Path) -> str:
    """Return how many outputs of each kind a folder has, and the log losses of a model."""
    written = ds.dataset(folder, format="parquet")
    kinds = written.to_table(["kind"]).column("kind").value_counts().to_pylist()
    count = {one["values"]: one["counts"] for one in kinds}
    of = (ds.field("kind") == "outcome") & (ds.field("model") == "model-0")
    rows = written.to_table(["label", "score", "p"], filter=of)
    label, score, p = (rows.column(name).to_numpy() for name in rows.column_names)
    raw, calibrated = (-np.log(np.where(label, q, 1 - q)).mean() for q in (score, p))
    return (
        f"{count['prediction']:,} predictions, {count['outcome']:,} outcomes,"
        f" {count.get('dead_letter', 0)} dead letters\n"
        f"log loss of model-0: {raw:.3f} raw, {calibrated:.3f} calibrated"
    )
