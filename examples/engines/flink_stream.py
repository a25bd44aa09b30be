"""Calibrate a stream of Flink, each model in the state of the job: FOLDER [CHECKPOINT].

It reads JSON lines from FOLDER/history, and writes to FOLDER/calibrated. Needs Python 3.12, Java 17
and `apache-flink`; docs/engines.md says how to install it.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyflink.common import Configuration, Duration, Encoder, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import (
    FileSink,
    FileSource,
    RollingPolicy,
    StreamFormat,
)
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor

from abers.engines import KeyedModel, one_table
from abers.stream import Events, Settings

# --8<-- [start:example]
NAMES = ["id", "model", "time", "score", "label"]
ROW = pa.schema(zip(NAMES, ["string", "string", "int64", "double", "int64"], strict=True))
MINUTE = 60_000  # milliseconds


class FlinkState:
    """The state of a model in Flink, as `KeyedModel` asks for it."""

    def __init__(self, values: Any) -> None:  # noqa: ANN401 - of Flink
        self._values = values
        self.put, self.remove = values.put, values.remove

    def get(self, name: str) -> bytes | None:
        """Return what has a name."""
        return self._values.get(name) if self._values.contains(name) else None


class Calibration(KeyedProcessFunction):  # type: ignore[misc, unused-ignore]
    """Calibrates the rows of a model, a minute of them at once, by time, labels first."""

    def __init__(self, settings: Settings) -> None:
        self._models = KeyedModel(settings)

    def open(self, runtime_context: Any) -> None:  # noqa: ANN401 - of Flink
        """Open the states."""
        kind = Types.PICKLED_BYTE_ARRAY()
        values = MapStateDescriptor("abers", Types.STRING(), kind)
        self._state = FlinkState(runtime_context.get_map_state(values))
        self._waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", kind))

    def process_element(self, value: str, ctx: Any) -> None:  # noqa: ANN401 - of Flink
        """Let a row wait for the end of its minute; a late one is taken at once."""
        timers, minute = ctx.timer_service(), ctx.timestamp() // MINUTE
        self._waiting.add(value)
        end = (minute + 1) * MINUTE - 1
        timers.register_event_time_timer(max(end, timers.current_watermark() + 1))

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[str]:  # noqa: ANN401 - of Flink
        """Yield the outputs of the rows up to a time, which the watermark has passed."""
        rows = [json.loads(value) for value in self._waiting.get()]
        due = [row for row in rows if row["time"] <= timestamp]
        self._waiting.update([json.dumps(row) for row in rows if row["time"] > timestamp])
        events = Events.from_arrow(pa.Table.from_pylist(due, ROW)).by_time()
        outputs = self._models.step(ctx.get_current_key(), self._state, events)
        for row in one_table(outputs.to_arrow()).to_pylist():
            yield json.dumps({name: value for name, value in row.items() if value is not None})


class RowTime(TimestampAssigner):  # type: ignore[misc, unused-ignore]
    """The time of a row."""

    def extract_timestamp(self, value: str, record_timestamp: int) -> int:  # noqa: ARG002
        """Return the time."""
        return int(json.loads(value)["time"])


def calibrated(lines: DataStream, settings: Settings) -> DataStream:
    """Return the outputs of a stream of observations and labels, a JSON object each."""
    models = lines.key_by(lambda line: json.loads(line)["model"], Types.STRING())
    return models.process(Calibration(settings), Types.STRING())


# --8<-- [end:example]

OPTIONS = {
    "execution.checkpointing.interval": "1s",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "rest.bind-address": "127.0.0.1",
}


def main(folder: Path, checkpoint: str | None = None) -> None:
    """Stream a folder."""
    given = OPTIONS | {
        "execution.checkpointing.dir": f"file://{folder}/checkpoints",
        "python.executable": sys.executable,
    }
    if checkpoint is not None:
        given["execution.state-recovery.path"] = checkpoint
    options = Configuration()
    for name, value in given.items():
        options.set_string(name, value)
    job = StreamExecutionEnvironment.get_execution_environment(options)
    job.set_parallelism(2)
    kind = StreamFormat.text_line_format()
    lines = FileSource.for_record_stream_format(kind, f"{folder}/history").build()
    stream = job.from_source(lines, WatermarkStrategy.no_watermarks(), "history")
    late = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(15))
    stream = stream.assign_timestamps_and_watermarks(late.with_timestamp_assigner(RowTime()))
    whole = FileSink.for_row_format(f"{folder}/calibrated", Encoder.simple_string_encoder())
    sink = whole.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()
    calibrated(stream, Settings(scores="any")).sink_to(sink)
    job.execute("abers")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), *sys.argv[2:])
