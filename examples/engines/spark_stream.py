"""Calibrate a stream of Spark, each model in the state of the query.

Needs `pip install 'abers[files]' 'pyspark>=4.1'` and Java 17. It prints:

5 micro-batches, 20,000 predictions, the last with 1,979 labels
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from make_history import write_history
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming import StatefulProcessor

from abers.engines import KeyedModel, one_table, table_schema
from abers.stream import Events, Settings


# --8<-- [start:example]
class SparkState:
    """The state of a model in Spark, as `KeyedModel` asks for it."""

    def __init__(self, values: Any) -> None:  # noqa: ANN401 - of Spark
        self._values = values

    def get(self, name: str) -> bytes | None:
        """Return what has a name."""
        found = self._values.getValue((name,)) if self._values.containsKey((name,)) else None
        return None if found is None else bytes(found[0])

    def put(self, name: str, value: bytes) -> None:
        """Write bytes under a name."""
        self._values.updateValue((name,), (value,))

    def remove(self, name: str) -> None:
        """Remove what has a name."""
        self._values.removeKey((name,))


class Calibration(StatefulProcessor):  # type: ignore[misc, unused-ignore]
    """Calibrates the rows of each model of a micro-batch by time, labels first."""

    def __init__(self, settings: Settings) -> None:
        self._models = KeyedModel(settings)

    def init(self, handle: Any) -> None:  # noqa: ANN401 - of Spark
        """Open the state."""
        self._state = SparkState(handle.getMapState("abers", "name string", "value binary"))

    def handleInputRows(  # noqa: N802 - of Spark
        self,
        key: tuple[str],
        rows: Iterator[pd.DataFrame],
        timerValues: object,  # noqa: N803, ARG002
    ) -> Iterator[pd.DataFrame]:
        """Yield the outputs of a model, of all kinds."""
        table = pa.Table.from_pandas(pd.concat(rows), preserve_index=False)
        outputs = self._models.step(key[0], self._state, Events.from_arrow(table).by_time())
        # As objects, since Spark does not read all strings and missing integers of pandas.
        yield one_table(outputs.to_arrow()).to_pandas(integer_object_nulls=True).astype(object)

    def close(self) -> None:
        """Do nothing: the state is Spark's."""


def session() -> SparkSession:
    """Return a session with states on disk, as `transformWithState` needs them."""
    rocks = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = spark.config("spark.sql.streaming.stateStore.providerClass", rocks)
    return spark.config("spark.sql.shuffle.partitions", "2").getOrCreate()


def calibrated(stream: DataFrame, settings: Settings) -> DataFrame:
    """Return the outputs of a stream of observations and labels."""
    result = from_arrow_schema(table_schema(settings))
    models = stream.groupBy("model")
    return models.transformWithStateInPandas(Calibration(settings), result, "Append", "None")


# --8<-- [end:example]


def main() -> None:
    """Make a history and stream it, a file a micro-batch."""
    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        data, output = Path(folder, "history"), Path(folder, "calibrated")
        write_history(data)
        output.mkdir()

        def write(frame: DataFrame, number: int) -> None:
            """Write a micro-batch; if Spark repeats it, its file is replaced by an equal one."""
            hidden = output / f".{number:09}.parquet"
            pq.write_table(frame.toArrow(), hidden)
            hidden.rename(output / f"{number:09}.parquet")

        schema = spark.read.parquet(str(data)).schema
        files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        query = (
            calibrated(files.parquet(str(data)), Settings(scores="any"))
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", str(Path(folder, "checkpoint")))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        made = ds.dataset(output).to_table(filter=ds.field("kind") == "prediction")
        labels = max(made.column("n_labels").to_pylist())
        count = len([*output.iterdir()])
        print(f"{count} micro-batches, {len(made):,} predictions, the last with {labels:,} labels")
    spark.stop()


if __name__ == "__main__":
    main()
