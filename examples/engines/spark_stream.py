"""Calibrate a stream of Spark, a file a micro-batch, and go on after a failure where it stopped.

Needs `pip install 'abers[spark]'` and Java 17. It prints:

5 micro-batches, 20,000 predictions, the last with 1,979 labels
"""

import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from make_history import write_history
from pyspark.sql import DataFrame, SparkSession

from abers.stream import Events, Processor, Settings


# --8<-- [start:example]
class Calibration:
    """Calibrates micro-batches on the driver, with the state after each in a file.

    A micro-batch that Spark does again begins with the state before it, and replaces its outputs.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder, self._settings = folder, settings
        self._processor = Processor(settings)
        self._next = 0  # number of the micro-batch that the state is for
        for name in ("predictions", "dead_letters", "state"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Process the rows of a micro-batch."""
        if number != self._next:
            self._processor = self._restored(number - 1)
        self._next = -1  # unless all of this succeeds
        events = Events.from_arrow(frame.toArrow()).by_time()
        if len(events):
            outputs = self._processor.process_batch(events).to_arrow()
            for name in ("predictions", "dead_letters"):
                file = self._folder / name / f"{number:09}.parquet"
                pq.write_table(getattr(outputs, name), file)
        hidden = self._folder / "state" / ".next"
        hidden.write_bytes(self._processor.snapshot(number))
        hidden.rename(self._state(number))  # it appears whole
        self._state(number - 2).unlink(missing_ok=True)
        self._next = number + 1

    def _restored(self, number: int) -> Processor:
        if number < 0:
            return Processor(self._settings)
        return Processor.restore(self._state(number).read_bytes(), self._settings)

    def _state(self, number: int) -> Path:
        return self._folder / "state" / f"{number:09}.abers"


# --8<-- [end:example]


def main() -> None:
    """Make a history and stream it."""
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = spark.getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        data, output = Path(folder, "history"), Path(folder, "calibrated")
        write_history(data)
        schema = session.read.parquet(str(data)).schema
        files = session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        query = (
            files.parquet(str(data))
            .writeStream.foreachBatch(Calibration(output, Settings(scores="any")))
            .option("checkpointLocation", str(output / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        for one in query.recentProgress:
            print(one.numInputRows, one.durationMs, file=sys.stderr)
        made = pq.read_table(output / "predictions")
        count = len([*(output / "predictions").glob("*.parquet")])
        labels = max(made.column("n_labels").to_pylist())
        print(f"{count} micro-batches, {len(made):,} predictions, the last with {labels:,} labels")
    session.stop()


if __name__ == "__main__":
    main()
