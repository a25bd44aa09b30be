"""A stream of Spark by its recipe, killed before it writes a micro-batch: FOLDER NUMBER."""

import os
import signal
import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from spark_stream import calibrated, session

from abers.stream import Settings


def main(folder: Path, kill: int) -> None:
    """Stream the files of a folder."""
    output = folder / "output"
    output.mkdir(exist_ok=True)

    def write(frame: DataFrame, number: int) -> None:
        """Write a micro-batch, or be killed."""
        made = frame.toArrow()
        if number == kill:
            os.killpg(0, signal.SIGKILL)
        pq.write_table(made, output / f"{number:09}.parquet")

    spark = session()
    schema = spark.read.parquet(str(folder / "data")).schema
    files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    stream = calibrated(files.parquet(str(folder / "data")), Settings(scores="any"))
    sink = stream.writeStream.foreachBatch(write).trigger(availableNow=True)
    sink.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
