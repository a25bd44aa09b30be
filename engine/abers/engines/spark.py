"""A history in a data frame of Spark: models by partition, their rows sorted by time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers.arrow_values import require_pyarrow
from abers.engines.history import process_history, require_fields
from abers.engines.libraries import require_library
from abers.stream.arrow_fields import needed_columns
from abers.stream.arrow_tables import ArrowRows
from abers.stream.dead_letter_record import DeadLetterRecord
from abers.stream.events import Alarm
from abers.stream.settings import Settings
from abers.stream.tasks import make_task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from msgspec import Struct
    from pyspark.sql import Column, DataFrame

    from abers.stream.arrow_fields import FieldNames
    from abers.stream.arrow_tables import ArrowOutputs

__all__ = ["process_frame"]

_BATCH_ROWS = 65_536  # of what returns to Spark at once
_KINDS = {
    "prediction": "predictions",
    "outcome": "outcomes",
    "dead_letter": "dead_letters",
    "alarm": "alarms",
}


def process_frame(
    frame: DataFrame,
    settings: Settings | None = None,
    *,
    fields: FieldNames | None = None,
    partitions: int | None = None,
    outcomes: bool = True,
) -> DataFrame:
    """Return the outputs of a history as a data frame, which Spark computes when it is used.

    Parameters
    ----------
    frame
        The events in any order, one a row; see `Events.from_arrow`.
    settings
        The task, the calibrators and the limits, which hold for each model by itself.
    fields
        Columns by field, as of `Events.from_arrow`.
    partitions
        Number of partitions, each of some models; by default as many as Spark shuffles into.
    outcomes
        Whether a label that settles a prediction gives an outcome.

    Returns
    -------
    DataFrame
        A row for each output. `kind` is "prediction", "outcome", "dead_letter" or "alarm", and the
        column of this name has the fields of the output; the others are null. Write it, or keep it
        with `persist`, before it is read several times: each time computes it.

    Raises
    ------
    ParameterError
        If a column is missing or has an unusable type, or the learner is an object. A wrong row is
        found when Spark computes: its error then has the text of ours.
    MissingExtraError
        If pyspark is not installed.

    Notes
    -----
    **Guarantee.** The outputs of a model are those of a `Processor` that takes its events alone,
    bit for bit, by time, labels first at equal times, otherwise in the order of their ids and other
    columns. They do not depend on the partitions, and a repeated task makes the same outputs.
    """
    functions = require_library("pyspark.sql.functions", "spark")
    types = require_library("pyspark.sql.pandas.types", "spark")
    settings = settings or Settings()
    frame = frame.select(*needed_columns(frame.columns, fields))
    require_fields(types.to_arrow_schema(frame.schema), fields)
    model = _model(functions, frame, fields)
    by_model = (model,) if partitions is None else (partitions, model)
    spread = frame.repartition(*by_model)
    ordered = spread.sortWithinPartitions(model, *_order(functions, frame, fields))
    schema = _output_schema(settings, outcomes=outcomes)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for one in process_history(batches, settings, fields, outcomes=outcomes, consecutive=True):
            yield from _rows(one, schema)

    return ordered.mapInArrow(run, types.from_arrow_schema(schema))


def _model(functions: Any, frame: DataFrame, fields: FieldNames | None) -> Column:  # noqa: ANN401
    """Return the model of a row, as `Events.from_arrow` has it."""
    given = (fields or {}).get("model", "model")
    default = functions.lit("default")
    if given is None or (given not in frame.columns and "model" not in (fields or {})):
        return default
    return functions.coalesce(functions.col(given).cast("string"), default)


def _order(functions: Any, frame: DataFrame, fields: FieldNames | None) -> list[Column]:  # noqa: ANN401
    """Return what sorts the rows of a model, in the same order whenever Spark does it."""
    of = {name: needed_columns(frame.columns, fields, (name,)) for name in ("score", "x", "id")}
    observed = functions.lit(0) == 1
    for name in (*of["score"], *of["x"]):
        observed |= functions.col(name).isNotNull()
    # Maps alone have no order.
    rest = [name for name, kind in frame.dtypes if name not in of["id"] and "map<" not in kind]
    time = functions.col((fields or {}).get("time", "time"))
    return [time, observed, *map(functions.col, [*of["id"], *rest])]


def _output_schema(settings: Settings, *, outcomes: bool) -> pa.Schema:
    arrow, task = require_pyarrow(), make_task(settings)
    rows: list[type[Struct]] = [task.prediction, task.outcome, DeadLetterRecord, Alarm]
    structs = [
        (kind, arrow.struct(ArrowRows(row).schema))
        for kind, row in zip(_KINDS, rows, strict=True)
        if outcomes or kind != "outcome"
    ]
    return arrow.schema([("kind", arrow.string()), *structs])


def _rows(outputs: ArrowOutputs, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield outputs in one schema: each in the column of its kind."""
    arrow = require_pyarrow()
    for kind, name in _KINDS.items():
        table = getattr(outputs, name)
        for batch in [] if table is None else table.to_batches(_BATCH_ROWS):
            columns = [arrow.repeat(kind, len(batch))] + [
                batch.to_struct_array()
                if field.name == kind
                else arrow.nulls(len(batch), field.type)
                for field in [*schema][1:]
            ]
            yield arrow.record_batch(columns, schema=schema)
