"""Calibrate a history of many models on Ray, with two workers of this machine.

Needs `pip install 'abers[files]' 'ray[data]'`. It prints:

20,000 predictions, 20,000 outcomes, 0 dead letters
log loss of model-0: 0.498 raw, 0.417 calibrated
"""

import tempfile
from pathlib import Path

import pyarrow as pa
import ray
from log_losses import summary
from make_history import write_history

from abers.engines import one_table, process_history
from abers.stream import Settings

# --8<-- [start:example]
SETTINGS = Settings(scores="any")


def calibrated(events: pa.Table) -> pa.Table:
    """Return the outputs of all events of a model."""
    ordered = events.sort_by([("time", "ascending"), ("id", "ascending")])
    return pa.concat_tables(one_table(one) for one in process_history([ordered], SETTINGS))


def calibrate(data: Path, output: Path) -> None:
    """Calibrate the files of a folder into another folder."""
    models = ray.data.read_parquet(str(data)).groupby("model")
    models.map_groups(calibrated, batch_format="pyarrow").write_parquet(str(output))


# --8<-- [end:example]


def main() -> None:
    """Make a history, calibrate it, and print what was written."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        data, output = Path(folder, "history"), Path(folder, "calibrated")
        write_history(data)
        calibrate(data, output)
        print(summary(output))


if __name__ == "__main__":
    main()
    ray.shutdown()
