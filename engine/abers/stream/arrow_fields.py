"""The columns of events in tables of Arrow.

Each row becomes one event, whatever it holds: a null or a value that is no id, time, score or label
is left to the processor, which makes a dead letter of it. Only a table that cannot be meant, such
as one without a column of ids, is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from abers.exceptions import ParameterError
from abers.stream.arrow_buffers import require_pyarrow
from abers.stream.arrow_columns import ArrowColumn, is_text, numpy_column, plain_array, value_type
from abers.stream.column_types import objects, repeated
from abers.stream.schema_columns import DEFAULT_MODEL, SchemaColumns

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from abers.stream.column_types import Column

    Mask = NDArray[np.bool_]

__all__ = ["FieldNames", "fields_of_arrow", "models_and_times", "needed_columns"]

FieldNames: TypeAlias = Mapping[str, "str | Sequence[str] | Mapping[str, str] | None"]
"""Columns by field of an event; see `Events.from_arrow`."""

_USUAL: FieldNames = {
    **{name: name for name in ("id", "time", "model", "segment", "score", "label", "x")},
    "label_time": None,
    "extra": None,
    "recorded": None,
}


def fields_of_arrow(data: object, fields: FieldNames | None = None) -> SchemaColumns:
    """Return the columns of the events of a table; see `Events.from_arrow`."""
    table = _Table(data, fields or {})
    scores, x, values = table.scores(), table.features(), _without_nan(table.column("label"))
    if scores is None and x is None and values is None:
        msg = f"no column is a score, features or a label; the columns are {table.listed}; "
        msg += "name one of them in fields"
        raise ParameterError(msg)
    observed = _given(scores, table.rows) | _given(x, table.rows)
    labelled = _given(values, table.rows)
    labels = labelled & ~observed
    ids, times = table.texts("id"), table.times("time")
    due = table.optional_times("label_time")
    awaited = None if due is None else _column(values, ~labels)
    if due is not None:
        _require_order(times, due, labelled & ~labels)
    return SchemaColumns(
        labels,
        ids,
        times,
        table.texts("model", DEFAULT_MODEL),
        table.texts("segment", ""),
        None if labels.all() and table.rows else _column(scores, ~labels),
        _column(values, labels) if labels.any() else None,
        None if x is None else _column(x, ~labels),
        table.extra(),
        table.optional_times("recorded"),
        awaited,
        due,
    )


def models_and_times(data: object, fields: FieldNames | None = None) -> tuple[Column, Column]:
    """Return the model and the time of each row of a table; None is no time."""
    own = {name: of for name, of in (fields or {}).items() if name in {"model", "time"}}
    table = _Table(data, own)
    return table.texts("model", DEFAULT_MODEL), table.times("time")


def needed_columns(
    names: Sequence[str], fields: FieldNames | None = None, of: Collection[str] | None = None
) -> list[str]:
    """Return which columns of a table, by their names, all or some fields of events are in.

    Examples
    --------
    >>> needed_columns(["key", "time", "note", "user"], {"id": "key", "segment": "user.country"})
    ['key', 'time', 'user']
    """
    wanted: set[str] = set()
    for field, given in {**_USUAL, **(fields or {})}.items():
        if of is None or field in of:
            columns = [given] if isinstance(given, str) else given or ()
            columns = [*columns.values()] if isinstance(columns, Mapping) else columns
            wanted.update(one if one in names else one.partition(".")[0] for one in columns)
    return [name for name in names if name in wanted]


def _without_nan(labels: ArrowColumn | None) -> ArrowColumn | None:
    """Return labels without those that are NaN: these are not known yet, as in a data frame."""
    if labels is None or labels.values.dtype != np.float64:
        return labels
    known = _given(labels, len(labels.values)) & ~np.isnan(labels.values)
    return labels if known.all() else labels._replace(valid=known)


def _given(one: ArrowColumn | None, rows: int) -> Mask:
    if one is None:
        return np.zeros(rows, bool)
    return np.ones(rows, bool) if one.valid is None else one.valid


def _column(one: ArrowColumn | None, rows: Mask) -> Column:
    """Return the values of some rows, None where one of these has none, and zeros in the others."""
    if one is None:
        return np.where(rows, None, 0)
    if one.valid is None or one.valid[rows].all():
        return one.values
    return np.where(one.valid, one.values.astype(object), np.where(rows, None, 0))


def _require_order(times: Column, due: Column, rows: Mask) -> None:
    """Raise a ParameterError if the labels of some rows have no times, or are before their rows."""
    for name, column, needed in (("time", times, True), ("label_time", due, rows)):
        missing = np.flatnonzero(np.equal(column, None) & needed)
        if missing.size:
            msg = f"row {missing[0]} has no {name}, so the events cannot be ordered; fill it in, "
            msg += "or drop the row"
            raise ParameterError(msg)
    early = np.flatnonzero(rows)[due[rows] < times[rows]]
    if early.size:
        row = early[0]
        msg = f"row {row}: label_time {due[row]} is before time {times[row]}; repair one of them"
        raise ParameterError(msg)


class _Table:
    """An Arrow table, with the columns that the fields of events are in."""

    def __init__(self, data: object, fields: FieldNames) -> None:
        arrow = require_pyarrow()
        _require_distinct([one for one in getattr(data, "columns", ()) if isinstance(one, str)])
        try:
            self._table = _table(data)
        except (TypeError, ValueError, arrow.ArrowException) as error:
            msg = (
                f"{type(data).__name__} is not a table of Arrow ({error}); pass a record batch, a "
            )
            msg += "table, a data frame that has __arrow_c_stream__, or Events.of(…)"
            raise ParameterError(msg) from None
        _require_distinct(self._table.column_names)
        self.listed = ", ".join(self._table.column_names)
        self.rows: int = self._table.num_rows
        if unknown := fields.keys() - _USUAL.keys():
            msg = f"fields has {', '.join(map(repr, sorted(unknown)))}, which no event has; "
            msg += f"name some of {', '.join(_USUAL)}"
            raise ParameterError(msg)
        self._fields = {**_USUAL, **fields}
        for field, name in fields.items():
            if isinstance(name, str):
                self._required(field, name)

    def column(self, field: str) -> ArrowColumn | None:
        """Return the column of a field; None if there is none, unless the field was named."""
        chunks = self._chunks(field, self._fields[field])
        return None if chunks is None else _joined([_values(chunk) for chunk in chunks])

    def optional_times(self, field: str) -> Column | None:
        """Return a column of times; None if there is none."""
        there = self._chunks(field, self._fields[field]) is not None
        return self.times(field) if there else None

    def times(self, field: str) -> Column:
        """Return a column of times in milliseconds, of objects if one is missing."""
        chunks = self._required(field)
        types = require_pyarrow().types
        kind = value_type(chunks[0])
        zoned = types.is_timestamp(kind) and kind.tz is not None
        if not (zoned or types.is_integer(kind) or types.is_null(kind)):
            msg = f"column {self._fields[field]} for {field} is of type {kind}; make it int64 in "
            msg += "milliseconds since 1970, or a timestamp with a time zone, such as "
            msg += 'column.cast(pa.timestamp("ms", "UTC"))'
            raise ParameterError(msg)
        return _nulled(_joined([_values(chunk) for chunk in chunks]), None)

    def texts(self, field: str, default: str | None = None) -> Column:
        """Return a column of strings; integers become their digits, and nulls the default."""
        name = self._fields[field]
        chunks = self._required(field) if default is None else self._chunks(field, name)
        if chunks is None:
            return repeated(default, self.rows)
        arrow = require_pyarrow()
        kind = value_type(chunks[0])
        if arrow.types.is_integer(kind):
            chunks = [plain_array(chunk).cast(arrow.string()) for chunk in chunks]
        elif not (is_text(kind) or arrow.types.is_null(kind)):
            msg = f"column {name} for {field} is of type {kind}; make it strings or integers"
            raise ParameterError(msg)
        return _nulled(_joined([_values(chunk) for chunk in chunks]), default)

    def scores(self) -> ArrowColumn | None:
        """Return the column of scores, as floats where they are numbers."""
        name = self._fields["score"]
        if isinstance(name, Mapping):
            return self._dicts(name)
        found = self.column("score")
        if found is None or found.values.dtype.kind not in "iu":
            return found
        return found._replace(values=found.values.astype(np.float64))

    def features(self) -> ArrowColumn | None:
        """Return the column of features, each a dict."""
        name = self._fields["x"]
        if isinstance(name, str) or name is None:
            return self.column("x")
        return self._dicts({one: one for one in name})

    def extra(self) -> Column | None:
        """Return the column of fields that predictions repeat, each a dict or None."""
        name = self._fields["extra"]
        if name is None:
            return None
        names = [name] if isinstance(name, str) else [*name]
        found = self._dicts({one: one for one in names})
        return found.values if found.valid is None else np.where(found.valid, found.values, None)

    def _dicts(self, names: Mapping[str, str]) -> ArrowColumn:
        """Return dicts of the values in several columns, without those that are null."""
        given = {
            key: [value for chunk in self._required(key, name) for value in chunk.to_pylist()]
            for key, name in names.items()
        }
        rows = [
            {key: value for key, value in zip(given, row, strict=True) if value is not None}
            for row in zip(*given.values(), strict=True)
        ]
        valid = np.fromiter(map(bool, rows), bool, len(rows))
        return ArrowColumn(objects(rows), None if valid.all() else valid)

    def _required(self, field: str, name: object = None) -> Sequence[pa.Array]:
        """Return the chunks of a column, or raise a ParameterError if there is none."""
        name = name or self._fields[field]
        if (chunks := self._chunks(field, name)) is None:
            msg = f"there is no column {name} for {field}; the columns are {self.listed}; "
            msg += "name the right one in fields"
            raise ParameterError(msg)
        return chunks

    def _chunks(self, field: str, name: object) -> Sequence[pa.Array] | None:
        """Return the chunks of a column, at least one; a dotted name is of a field in structs."""
        if name is None:
            return None
        if not isinstance(name, str):
            msg = f"fields has {name!r} for {field}; name one column"
            raise ParameterError(msg)
        there = name in self._table.column_names
        column = self._table.column(name) if there else self._nested(name)
        if column is None:
            return None
        return column.chunks or [require_pyarrow().nulls(0, column.type)]

    def _nested(self, name: str) -> Any:  # noqa: ANN401 - a chunked array, or None
        compute = require_pyarrow("pyarrow.compute")
        first, *rest = name.split(".")
        if not rest or first not in self._table.column_names:
            return None
        try:
            return compute.struct_field(self._table.column(first), rest)
        except require_pyarrow().ArrowException:  # no struct, or one without this field
            return None


def _require_distinct(names: Sequence[str]) -> None:
    """Raise a ParameterError for two columns of one name."""
    if repeated_ := [name for name, count in Counter(names).items() if count > 1]:
        msg = f"two columns have the name {repeated_[0]}; rename one of them"
        raise ParameterError(msg)


def _table(data: Any) -> pa.Table:  # noqa: ANN401
    """Return a table of what is one; pyarrow's other conversions would import pandas."""
    arrow = require_pyarrow()
    if isinstance(data, arrow.RecordBatch):
        return arrow.Table.from_batches([data])
    if isinstance(data, arrow.Table):
        return data
    return arrow.RecordBatchReader.from_stream(data).read_all()


def _values(array: pa.Array) -> ArrowColumn:
    """Return an array as a column, of objects where numpy has no type for it."""
    if (found := numpy_column(array)) is not None:
        return found
    if is_text(array.type):
        return _decoded(array)
    values = objects(array.to_pylist())
    return ArrowColumn(
        values, np.not_equal(values, None).astype(bool) if array.null_count else None
    )


def _decoded(array: pa.Array) -> ArrowColumn:
    """Return strings of which some are not UTF-8; these stay bytes, which nothing accepts."""
    texts = []
    for raw in array.cast(require_pyarrow().large_binary()).to_pylist():
        try:
            texts.append(None if raw is None else raw.decode())
        except UnicodeDecodeError:
            texts.append(raw)
    valid = np.array([one is not None for one in texts])
    return ArrowColumn(objects(texts), valid)


def _joined(parts: Sequence[ArrowColumn]) -> ArrowColumn:
    if len(parts) == 1:
        return parts[0]
    values = np.concatenate([one.values for one in parts])
    if all(one.valid is None for one in parts):
        return ArrowColumn(values)
    return ArrowColumn(values, np.concatenate([_given(one, len(one.values)) for one in parts]))


def _nulled(found: ArrowColumn, default: str | None) -> Column:
    """Return the values, with a default in place of nulls."""
    if found.valid is None:
        return found.values
    return np.where(found.valid, found.values.astype(object), default)
