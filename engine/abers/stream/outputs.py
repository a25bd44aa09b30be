"""Outputs of a batch, by columns, as rows and as Arrow tables with the schemas of Parquet files.

The columns of a type of rows. The type fixes the columns and their order. A value that is not a
string, number or boolean becomes JSON.

Each kind of output is a sequence of its own, in the order of the events that cause it. Outputs of
one event are in causal order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter, itemgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar, get_args, overload

import msgspec
import numpy as np

from abers.arrays import require_pyarrow
from abers.stream.arrow_columns import new_array, repeated_array
from abers.stream.cells import column, objects, repeated
from abers.stream.events import Alarm

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray

    from abers.arrays import Integers
    from abers.monitoring import ScoredRows
    from abers.stream.cells import Column
    from abers.stream.events import DeadLetter, Output

    ColumnGetter: TypeAlias = Callable[[Sequence[msgspec.Struct]], NDArray[Any]]

__all__ = [
    "REPEATED",
    "TIMED_OUT",
    "ArrowOutputs",
    "ArrowRows",
    "DeadLetterRecord",
    "ObjectRows",
    "Outputs",
    "RowColumn",
    "Rows",
    "SettledBatch",
    "alarm_table",
    "columns_of",
    "dead_letter_table",
    "in_causal_order",
    "rows_table",
]

T = TypeVar("T", bound=msgspec.Struct)


class Rows(Sequence[T], Generic[T]):
    """Outputs of one type.

    Parameters
    ----------
    kind
        Type of the outputs.
    columns
        Columns by name of the field, in the order of the fields. The last fields may be left out:
        they have their defaults.

    Examples
    --------
    >>> class Point(msgspec.Struct):
    ...     x: int
    ...     y: int = 0
    >>> rows = Rows(Point, {"x": np.array([3, 4])})
    >>> rows[1], len(rows[:1])
    (Point(x=4, y=0), 1)
    """

    def __init__(self, kind: type[T], columns: Mapping[str, Column]) -> None:
        self.kind = kind
        self._columns = columns
        self._size = len(next(iter(columns.values())))

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns by name of the field."""
        return self._columns

    @classmethod
    def joined(cls, parts: Sequence[Rows[T]]) -> Rows[T]:
        """Return rows of one type, at least one part, behind each other.

        Examples
        --------
        >>> class Point(msgspec.Struct):
        ...     x: int
        ...     y: int = 0
        >>> whole, short = {"x": np.array([1]), "y": np.array([2])}, {"x": np.array([3])}
        >>> [*Rows.joined([Rows(Point, whole), Rows(Point, short)])]
        [Point(x=1, y=2), Point(x=3, y=0)]
        """
        longest = max(parts, key=lambda one: len(one.columns))
        defaults = {one.name: one.default for one in msgspec.structs.fields(longest.kind)}

        def column_of(part: Rows[T], name: str) -> Column:
            found = part.columns.get(name)
            return repeated(defaults[name], len(part)) if found is None else found

        return cls(
            longest.kind,
            {
                name: np.concatenate([column_of(part, name) for part in parts])
                for name in longest.columns
            },
        )

    def take(self, rows: Any) -> Rows[T]:  # noqa: ANN401 - an index of arrays
        """Return some rows, by numbers, a mask or a slice."""
        return Rows(self.kind, {name: one[rows] for name, one in self.columns.items()})

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._size

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Rows[T]: ...
    def __getitem__(self, index: int | slice) -> T | Rows[T]:
        """Return one object, or consecutive rows as columns."""
        return self.take(index) if isinstance(index, slice) else next(iter(self.take([index])))

    def __iter__(self) -> Iterator[T]:
        """Yield the objects."""
        names = self.kind.__struct_fields__[: len(self.columns)]
        return map(self.kind, *(self.columns[name].tolist() for name in names))


class ObjectRows(Rows[T]):
    """Outputs of one type that are objects already; the columns are made on request.

    Parameters
    ----------
    kind
        Type of the outputs.
    outputs
        The objects.

    Examples
    --------
    >>> class Point(msgspec.Struct):
    ...     x: int
    >>> rows = ObjectRows(Point, [Point(3), Point(5)])
    >>> rows[1], rows.columns["x"].tolist()
    (Point(x=5), [3, 5])
    """

    def __init__(self, kind: type[T], outputs: Sequence[T]) -> None:
        self.kind, self._outputs, self._size = kind, outputs, len(outputs)

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns by name of the field."""
        names = self.kind.__struct_fields__
        return {name: column([getattr(one, name) for one in self._outputs]) for name in names}

    def __iter__(self) -> Iterator[T]:
        """Yield the objects."""
        return iter(self._outputs)


class RowColumn(NamedTuple):
    """A column of rows."""

    name: str  # in the output
    type: type | None  # str, int, float or bool; None if the values are nested
    values: ColumnGetter  # of some rows, nested values as JSON
    field: str = ""  # of the type; empty for the tag
    default: Any = None  # value of rows that lack the column

    def is_constant(self, rows: Sequence[msgspec.Struct]) -> bool:
        """Return whether all values are the default, because rows by columns lack the field."""
        return not self.field or (isinstance(rows, Rows) and self.field not in rows.columns)


def columns_of(kind: type[msgspec.Struct]) -> list[RowColumn]:
    """Return the columns of a type of rows, its tag first.

    Examples
    --------
    >>> class Row(msgspec.Struct, tag_field="v", tag=1):
    ...     id: str
    ...     extra: dict[str, int] | None = None
    >>> [(one.name, one.values([Row("a", {"b": 1})]).tolist()) for one in columns_of(Row)]
    [('v', [1]), ('id', ['a']), ('extra', ['{"b":1}'])]
    """
    config = kind.__struct_config__
    fields = [_column(field) for field in msgspec.structs.fields(kind)]
    if config.tag is None:
        return fields
    tag = config.tag
    name = config.tag_field or ""
    return [RowColumn(name, type(tag), lambda rows: np.full(len(rows), tag), default=tag), *fields]


def _getter(field: msgspec.structs.FieldInfo) -> ColumnGetter:
    get = attrgetter(field.name)

    def values(rows: Sequence[msgspec.Struct]) -> NDArray[Any]:
        if not isinstance(rows, Rows):
            return objects([*map(get, rows)])
        found = rows.columns.get(field.name)
        return repeated(field.default, len(rows)) if found is None else found

    return values


def _column(field: msgspec.structs.FieldInfo) -> RowColumn:
    get, name = _getter(field), field.encode_name
    kinds = {kind for kind in get_args(field.type) or [field.type] if kind is not NoneType}
    plain = kinds.pop() if len(kinds) == 1 else None
    if plain in (str, int, float, bool):
        return RowColumn(name, plain, get, field.name, field.default)
    return RowColumn(name, None, lambda rows: _as_json(get(rows)), field.name, field.default)


def _as_json(values: NDArray[Any]) -> NDArray[Any]:
    encode = msgspec.json.Encoder().encode
    return objects([None if one is None else encode(one).decode() for one in values.tolist()])


TIMED_OUT = "unmatched label (timed out)"
"""Location of a label without its observation: its own record is no longer known."""


class DeadLetterRecord(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="v", tag=1
):
    """A dead letter: a rejected record, or an output that is too large."""

    reason: str  # a short name
    detail: str  # a sentence that says how to fix it
    where: str  # location: "scores.jsonl line 17", "scores[3]@17"
    topic: str | None = None  # of the record, if it is in a topic
    partition: int | None = None
    offset: int | None = None
    raw: str | None = None  # the record, if it is text
    base64: str | None = None  # the record otherwise
    size: int | None = None  # bytes of the record, if it is cut


REPEATED = ("model", "segment", "reason")
"""Columns that often have one value in a whole batch."""


class ArrowOutputs(NamedTuple):
    """Outputs of a batch as Arrow tables; the schema of each is the same for every batch.

    Attributes
    ----------
    predictions, outcomes
        The fields of the task's `Prediction` and `Outcome` behind `v`, the version of the schema:
        `int64`, `double`, `bool`, and `string`. Nested fields, such as the scores of several
        classes and the extra fields, are JSON. Outcomes are None if they are switched off.
    dead_letters
        Fields of a dead letter as connectors write it: `reason`, `detail`, `where` ("row 3",
        counted from 1, or "unmatched label (timed out)"), and the event as JSON in `raw`. The
        fields of a record in a topic are null.
    alarms
        The fields of `Alarm`.
    """

    predictions: pa.Table
    outcomes: pa.Table | None
    dead_letters: pa.Table
    alarms: pa.Table


class ArrowRows:
    """Conversion of rows of one type to record batches of one schema.

    Examples
    --------
    >>> from abers.stream import Alarm
    >>> ArrowRows(Alarm).schema.names[:3]
    ['model', 'segment', 'view']
    """

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        self._arrow = arrow = require_pyarrow()
        self._columns = columns_of(kind)
        types: dict[type | None, Any] = {
            str: arrow.string(),
            int: arrow.int64(),
            float: arrow.float64(),
            bool: arrow.bool_(),
            None: arrow.string(),
        }
        self.schema: pa.Schema = arrow.schema(
            [(one.name, types[one.type]) for one in self._columns]
        )
        nothing = [arrow.nulls(0, field.type) for field in self.schema]
        self._empty = arrow.RecordBatch.from_arrays(nothing, schema=self.schema)

    def batch(self, rows: Sequence[msgspec.Struct]) -> pa.RecordBatch:
        """Return rows as a record batch."""
        if not rows:
            return self._empty
        arrays = [
            self._array(rows, column, field.type)
            for column, field in zip(self._columns, self.schema, strict=True)
        ]
        return self._arrow.RecordBatch.from_arrays(arrays, schema=self.schema)

    def table(self, rows: Sequence[msgspec.Struct]) -> pa.Table:
        """Return rows as a table."""
        return self._arrow.Table.from_batches([self.batch(rows)], self.schema)

    @staticmethod
    def _array(rows: Sequence[msgspec.Struct], column: RowColumn, kind: pa.DataType) -> pa.Array:
        if column.is_constant(rows):
            return repeated_array(column.default, kind, len(rows))
        values = column.values(rows)
        if column.name in REPEATED and len(only := {*values.tolist()}) == 1:
            return repeated_array(only.pop(), kind, len(values))
        return new_array(values, kind)


# Making one takes longer than a small batch.
_conversion: Callable[[type[msgspec.Struct]], ArrowRows] = cache(ArrowRows)


def rows_table(rows: Rows[Any]) -> pa.Table:
    """Return rows by columns as a table."""
    return _conversion(rows.kind).table(rows)


def alarm_table(alarms: Sequence[Alarm]) -> pa.Table:
    """Return alarms as a table."""
    return _conversion(Alarm).table(alarms)


def dead_letter_table(rejected: Sequence[DeadLetter]) -> pa.Table:
    """Return dead letters as a table."""
    return _conversion(DeadLetterRecord).table([*map(_record, rejected)])


def _record(letter: DeadLetter) -> DeadLetterRecord:
    where = TIMED_OUT if letter.row is None else f"row {letter.row + 1}"
    try:
        raw = msgspec.json.encode(letter.event, enc_hook=repr).decode()
    except (ValueError, RecursionError):  # such as a string that is not UTF-8
        raw = repr(letter.event)
    return DeadLetterRecord(letter.reason, letter.detail, where, raw=raw)


class SettledBatch(NamedTuple):
    """Predictions with labels of a batch: a row each, in the order of the labels.

    Attributes
    ----------
    keys
        Number of the calibrator: its index in `Processor.keys`.
    times
        Event times of the observations, in milliseconds.
    delays
        How much later than its observation the label is, in milliseconds of event time; a time
        further ahead than the clock of its model counts as the clock.
    scored
        Predictions as they were issued, and their labels: what monitors read.

    Examples
    --------
    >>> from abers.stream import Events, Label, Observation, Processor
    >>> events = Events.of([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
    >>> batch = Processor().process_batch(events).settled_batch
    >>> forecasts = batch.scored.forecasts["calibrated"]
    >>> forecasts.squares.tolist(), batch.scored.widths.tolist()
    ([0.25], [1.0])
    """

    keys: Integers
    times: Integers
    delays: Integers
    scored: ScoredRows

    def take(self, rows: Any) -> SettledBatch:  # noqa: ANN401 - a slice, or numbers
        """Return some of the rows."""
        return SettledBatch(
            self.keys[rows], self.times[rows], self.delays[rows], self.scored.take(rows)
        )


class Outputs(NamedTuple):
    """Predictions, outcomes, dead letters and alarms.

    Attributes
    ----------
    predictions, outcomes
        By columns, of the types of the task; outcomes are None if they are switched off.
    dead_letters
        Dead letters, each with the row of the event that causes it.
    predicted, settled
        Rows of the events that cause the predictions, and the outcomes.
    settled_batch
        Labelled predictions; None if there are neither monitors nor outcomes.
    alarms
        Alarms, one an incident, each with the row of the event that causes it.
    retired
        Names of the models that were retired before the batch.
    """

    predictions: Rows[Any]
    outcomes: Rows[Any] | None
    dead_letters: Sequence[tuple[int, DeadLetter]]
    predicted: Integers
    settled: Integers
    settled_batch: SettledBatch | None = None
    alarms: Sequence[tuple[int, Alarm]] = ()
    retired: Sequence[str] = ()

    def to_arrow(self) -> ArrowOutputs:
        """Return the outputs as Arrow tables, with schemas that do not depend on the batch.

        Returns
        -------
        ArrowOutputs
            Tables of predictions, outcomes, dead letters and alarms. The first three have the
            schemas of the Parquet files that `abers replay` writes.

        Raises
        ------
        MissingExtraError
            If pyarrow is not installed.

        Examples
        --------
        >>> from abers.stream import Events, Observation, Processor
        >>> events = Events.of([Observation("a", 1, score=0.5)])
        >>> tables = Processor().process_batch(events).to_arrow()
        >>> tables.predictions.select(["id", "time", "p"]).to_pylist()
        [{'id': 'a', 'time': 1, 'p': 0.5}]
        """
        return ArrowOutputs(
            rows_table(self.predictions),
            None if self.outcomes is None else rows_table(self.outcomes),
            dead_letter_table([letter for _, letter in self.dead_letters]),
            alarm_table([alarm for _, alarm in self.alarms]),
        )

    def in_order(self) -> list[Output]:
        """Return all outputs but the alarms as objects, in the order of the events.

        Of one event these are in causal order: outcomes of assumed labels, unmatched labels that
        timed out, its prediction, the outcome if its label came before it, and dead letters of a
        learner that failed.
        """
        ranked: list[tuple[int, int, Output]] = [
            (row, _rank(one), one) for row, one in self.dead_letters
        ]
        rows = self.predicted.tolist()
        ranked += [(row, 2, one) for row, one in zip(rows, self.predictions, strict=True)]
        rows = self.settled.tolist() if self.outcomes is not None else []
        for row, one in zip(rows, self.outcomes or (), strict=True):
            ranked.append((row, 0 if getattr(one, "assumed", False) else 3, one))
        return [output for _, _, output in sorted(ranked, key=itemgetter(0, 1))]


def in_causal_order(dead: Sequence[tuple[int, DeadLetter]]) -> list[tuple[int, DeadLetter]]:
    """Return dead letters in the order of the events that cause them."""
    return sorted(dead, key=lambda one: (one[0], _rank(one[1])))


def _rank(letter: DeadLetter) -> int:
    """Return the rank of a dead letter among the outputs of one event."""
    return 1 if letter.row is None else 4
