"""Calibrate a history of many models on Dask, with two workers of this machine.

Needs `pip install 'abers[files]' 'dask[dataframe]' distributed`. It prints:

20,000 predictions, 20,000 outcomes, 0 dead letters
log loss of model-0: 0.498 raw, 0.417 calibrated
"""

import tempfile
from pathlib import Path

import dask.dataframe as dd
import pandas as pd
import pyarrow as pa
from dask.distributed import Client, LocalCluster
from log_losses import summary
from make_history import write_history

from abers.engines import one_table, process_history, table_schema
from abers.stream import Settings

# --8<-- [start:example]
SETTINGS = Settings(scores="any")


def calibrated(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the outputs of all events of some models."""
    schema = table_schema(SETTINGS)
    events = pa.Table.from_pandas(frame.sort_values(["time", "id"]), preserve_index=False)
    made = [one_table(one) for one in process_history([events], SETTINGS)]
    return pa.concat_tables([schema.empty_table(), *made]).to_pandas(types_mapper=pd.ArrowDtype)


def calibrate(data: Path, output: Path) -> None:
    """Calibrate the files of a folder into another folder."""
    models = dd.read_parquet(data, dtype_backend="pyarrow").shuffle("model", npartitions=8)
    meta = table_schema(SETTINGS).empty_table().to_pandas(types_mapper=pd.ArrowDtype)
    models.map_partitions(calibrated, meta=meta).to_parquet(output)


# --8<-- [end:example]


def main() -> None:
    """Make a history, calibrate it, and print what was written."""
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        data, output = Path(folder, "history"), Path(folder, "calibrated")
        write_history(data)
        calibrate(data, output)
        print(summary(output))


if __name__ == "__main__":  # Dask starts workers as new processes, which import this file
    main()
