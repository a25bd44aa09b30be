"""Calibrate a history of many models on Spark, with two executors of this machine.

Needs `pip install 'abers[files]' pyspark` and Java 17. It prints:

20,000 predictions, 20,000 outcomes, 0 dead letters
log loss of model-0: 0.498 raw, 0.417 calibrated
"""

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from log_losses import summary
from make_history import write_history
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from abers.engines import one_table, process_history, table_schema
from abers.stream import Settings

# --8<-- [start:example]
SETTINGS = Settings(scores="any")


def calibrated(events: DataFrame, settings: Settings = SETTINGS) -> DataFrame:
    """Return the outputs of all events, which Spark computes whenever they are used."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for one in process_history(batches, settings, consecutive=True):
            yield from one_table(one).to_batches(65_536)

    ordered = events.repartition("model").sortWithinPartitions(
        "model", "time", f.col("score").isNotNull(), "id"
    )
    return ordered.mapInArrow(run, from_arrow_schema(table_schema(settings)))


# --8<-- [end:example]


def main() -> None:
    """Make a history, calibrate it, and print what was written."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # executors need abers, too
    spark = SparkSession.builder.master("local-cluster[2,1,1024]")
    session = spark.config("spark.ui.enabled", "false").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        data, output = Path(folder, "history"), Path(folder, "calibrated")
        write_history(data)
        calibrated(session.read.parquet(str(data))).write.parquet(str(output))
        print(summary(output))
    session.stop()


if __name__ == "__main__":
    main()
