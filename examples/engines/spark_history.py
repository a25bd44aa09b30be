"""Calibrate a history of many models on Spark, with two executors of this machine.

Needs `pip install 'abers[spark]'` and Java 17. It prints:

20,000 predictions, 20,000 outcomes, 0 dead letters
log loss of model-0: 0.498 raw, 0.417 calibrated
"""

import os
import sys
import tempfile
from pathlib import Path

from make_history import write_history
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from abers.engines.spark import process_frame
from abers.stream import Settings

os.environ["PYSPARK_PYTHON"] = sys.executable  # executors need abers, too


# --8<-- [start:example]
def main() -> None:
    """Make a history, process it, and read the outcomes of a model."""
    with tempfile.TemporaryDirectory() as folder:
        data, output = Path(folder, "history"), str(Path(folder, "calibrated"))
        write_history(data)
        spark = (
            SparkSession.builder.master("local-cluster[2,1,1024]")
            # Files of all kinds are written side by side, so Spark need not sort by kind.
            .config("spark.sql.maxConcurrentOutputFileWriters", 4)
            .config("spark.ui.enabled", "false")
            .getOrCreate()
        )
        frame = spark.read.parquet(str(data))
        made = process_frame(frame, Settings(scores="any"), partitions=8)
        made.write.partitionBy("kind").parquet(output)

        written = spark.read.parquet(output)
        count = {row.kind: row["count"] for row in written.groupBy("kind").count().collect()}
        print(
            f"{count['prediction']:,} predictions, {count['outcome']:,} outcomes,"
            f" {count.get('dead_letter', 0)} dead letters"
        )
        outcomes = written.where("kind = 'outcome'").select("outcome.*")
        (row,) = (
            outcomes.where("model = 'model-0'")
            .select(
                *(
                    f.avg(-f.log(f.when(f.col("label") == 1, q).otherwise(1 - q))).alias(name)
                    for name, q in (("raw", f.col("score")), ("calibrated", f.col("p")))
                )
            )
            .collect()
        )
        print(f"log loss of model-0: {row.raw:.3f} raw, {row.calibrated:.3f} calibrated")
        spark.stop()


# --8<-- [end:example]


if __name__ == "__main__":
    main()
