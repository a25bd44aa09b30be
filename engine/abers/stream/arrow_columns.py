"""Arrow arrays and tables as raw columns, without an object for a value that needs none.

Arrow arrays from numpy arrays and back, by their buffers. The conversions of pyarrow import pandas
wherever it is installed, which takes about a second.

pyarrow is an optional library, which is imported when the first array comes.

Tables of Arrow as raw columns, which a schema reads. Only a table that cannot be meant, such as one
without a column of ids, is an error. What is wrong with a row is found by the readers of its
fields, and refuses this row alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from abers.arrays import require_pyarrow
from abers.exceptions import ParameterError
from abers.frames import arrow_table
from abers.stream.cells import (
    ALL,
    CONSTANT_PREFIX,
    ROW,
    BadRecordError,
    Cells,
    Fields,
    objects,
    root,
)
from abers.stream.raw_rows import RawRows
from abers.stream.readers import NameReader, PlainReader
from abers.stream.schema_columns import DEFAULT_MODEL, ColumnSchema, Readers
from abers.stream.times import TimeReader

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from abers.stream.cells import Column, RawColumns
    from abers.stream.readers import CellReader
    from abers.stream.schema_columns import SchemaColumns

__all__ = [
    "ArrowColumn",
    "FieldNames",
    "fields_of_arrow",
    "is_moment",
    "is_text",
    "models_and_times",
    "needed_columns",
    "new_array",
    "numbers",
    "numpy_column",
    "plain_array",
    "raw_columns",
    "repeated_array",
    "text_ends",
    "valid_rows",
    "value_type",
]

_SEPARATOR = "\0"


def valid_rows(array: pa.Array) -> NDArray[np.bool_] | None:
    """Return which rows have a value; None if all have.

    Examples
    --------
    >>> import pyarrow as pa
    >>> valid_rows(pa.array([1, None])), valid_rows(pa.array([1]))
    (array([ True, False]), None)
    """
    if not array.null_count:
        return None
    bits = array.buffers()[0]
    return _bits(array.is_valid(), 1) if bits is None else _bits(array, 0)


def numbers(array: pa.Array, kind: type[np.generic] | None = None) -> NDArray[Any]:
    """Return integers, floats or booleans, zero in place of nulls.

    Parameters
    ----------
    array
        Of numbers, or of a type of the same width if the kind is given, such as of times.
    kind
        What numpy calls the values, by default what it calls those of the type.

    Examples
    --------
    >>> import pyarrow as pa
    >>> numbers(pa.array([None, 3], pa.int16())), numbers(pa.array([True]))
    (array([0, 3], dtype=int16), array([ True]))
    """
    if require_pyarrow().types.is_boolean(array.type):
        found: NDArray[Any] = _bits(array, 1)
    else:
        found = _buffer(array, 1, kind or array.type.to_pandas_dtype())
        found = found[array.offset : array.offset + len(array)]
    valid = valid_rows(array)
    return found if valid is None else np.where(valid, found, found.dtype.type(0))


def text_ends(array: pa.Array) -> NDArray[Any]:
    """Return where the strings or bytes of an array begin, and where the last one ends."""
    types = require_pyarrow().types
    wide = types.is_large_string(array.type) or types.is_large_binary(array.type)
    ends = _buffer(array, 1, np.int64 if wide else np.int32)
    return ends[array.offset : array.offset + len(array) + 1]


def new_array(
    values: NDArray[Any], kind: pa.DataType, valid: NDArray[np.bool_] | None = None
) -> pa.Array:
    """Return an array of int64, float64, bool or string.

    Parameters
    ----------
    values
        One a row; None among objects is a null.
    kind
        The type of the array.
    valid
        Rows that are not null, if the values are numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> new_array(np.array(["a", None], object), pa.string()).to_pylist()
    ['a', None]
    """
    arrow = require_pyarrow()
    if not len(values):
        return arrow.nulls(0, kind)
    if arrow.types.is_string(kind):
        texts = values.tolist()
        try:
            joined = _SEPARATOR.join(texts)
        except TypeError:  # some are None
            valid = np.fromiter((one is not None for one in texts), bool, len(texts))
            texts = ["" if one is None else one for one in texts]
            joined = _SEPARATOR.join(texts)
        buffers = _text_buffers(texts, joined)
    else:
        if values.dtype == object:
            valid = np.not_equal(values, None).astype(bool)
            values = np.array([False if one is None else one for one in values.tolist()])
        buffers = [_number_buffer(values, kind)]
    mask = None if valid is None or valid.all() else _packed(valid)
    return arrow.Array.from_buffers(kind, len(values), [mask, *buffers])


def repeated_array(value: object, kind: pa.DataType, size: int) -> pa.Array:
    """Return an array of a value of int64, float64, bool or string, or of nulls."""
    arrow = require_pyarrow()
    if value is None:
        return arrow.nulls(size, kind)
    return arrow.repeat(new_array(np.array([value], object), kind)[0], size)


def _buffer(array: pa.Array, number: int, kind: type[np.generic]) -> NDArray[Any]:
    buffer = array.buffers()[number]
    return np.zeros(0, kind) if buffer is None else np.frombuffer(buffer, kind)


def _bits(array: pa.Array, number: int) -> NDArray[np.bool_]:
    """Return the bits of a buffer for the rows of an array."""
    end = array.offset + len(array)
    whole = _buffer(array, number, np.uint8)[: (end + 7) // 8]
    return np.unpackbits(whole, count=end, bitorder="little")[array.offset :].view(np.bool_)


def _packed(bits: NDArray[np.bool_]) -> Any:  # noqa: ANN401 - a buffer of pyarrow
    return require_pyarrow().py_buffer(np.packbits(bits, bitorder="little"))


def _number_buffer(values: NDArray[Any], kind: pa.DataType) -> Any:  # noqa: ANN401
    arrow = require_pyarrow()
    if arrow.types.is_boolean(kind):
        return _packed(values.astype(np.bool_, casting="safe", copy=False))
    dtype = kind.to_pandas_dtype()
    return arrow.py_buffer(np.ascontiguousarray(values.astype(dtype, casting="safe", copy=False)))


def _text_buffers(texts: Sequence[str], joined: str) -> list[Any]:
    """Return the offsets and the bytes of strings, which are joined by the separator."""
    arrow, data = require_pyarrow(), joined.encode()
    cuts = np.flatnonzero(np.frombuffer(data, np.uint8) == 0)
    if len(cuts) == len(texts) - 1:
        data = data.replace(_SEPARATOR.encode(), b"")
        ends = np.append(cuts - np.arange(len(cuts)), len(data))
    else:  # some have the separator in them
        parts = [text.encode() for text in texts]
        data, ends = b"".join(parts), np.cumsum([len(part) for part in parts], dtype=np.int64)
    if len(data) > np.iinfo(np.int32).max:
        most = np.iinfo(np.int32).max
        msg = f"a column of texts has {len(data):,} bytes, more than {most:,}; pass fewer rows"
        raise OverflowError(msg)
    offsets = np.zeros(len(texts) + 1, np.int32)
    offsets[1:] = ends
    return [arrow.py_buffer(offsets), arrow.py_buffer(data)]


_TICKS = {"s": 1, "ms": 1, "us": 1_000, "ns": 1_000_000}  # of a unit in a millisecond
_MOST_SECONDS = 2**53  # further from 1970 than any event: more would overflow as milliseconds
_INVALID = "a value of the row is not a valid string or time; write the file with valid values"
_SAMPLE_ROWS = 64
_MIN_REPEATS = 8  # average count of a string that is worth a dictionary


class ArrowColumn(NamedTuple):
    """Values of a column."""

    values: Column  # strings as objects, int64, float64, bool or datetime64[ms]
    valid: NDArray[np.bool_] | None = None  # rows that have a value; None if all have


def value_type(array: pa.Array) -> pa.DataType:
    """Return the type of the values of an array, which may be in a dictionary."""
    kind = array.type
    return kind.value_type if require_pyarrow().types.is_dictionary(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is one of strings, in a dictionary or not."""
    types = require_pyarrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_moment(kind: pa.DataType) -> bool:
    """Return whether a type is one of times with a time zone."""
    return bool(require_pyarrow().types.is_timestamp(kind) and kind.tz is not None)


def plain_array(array: pa.Array) -> pa.Array:
    """Return times with a time zone in milliseconds, decimals as floats, dictionaries as values.

    Times within a millisecond count as its beginning. Any other array is returned as it is.
    """
    arrow = require_pyarrow()
    kind = array.type
    if arrow.types.is_dictionary(kind):
        return plain_array(array.dictionary_decode())
    if is_moment(kind):
        return _milliseconds(array)
    if arrow.types.is_decimal(kind):  # a cast to float64 is not always the nearest one
        return array.cast(arrow.string()).cast(arrow.float64())
    if arrow.types.is_string_view(kind):
        return array.cast(arrow.large_string())
    return array


def numpy_column(array: pa.Array) -> ArrowColumn | None:
    """Return a column as a numpy array; None if numpy lacks its type, or a string is not UTF-8.

    Parameters
    ----------
    array
        Integers but those of 64 bits without a sign, floats, booleans, strings, times with a time
        zone, decimals, dictionaries of these, or nulls alone.

    Examples
    --------
    >>> import pyarrow as pa
    >>> numpy_column(pa.array([0.5, None], pa.float32()))
    ArrowColumn(values=array([0.5, 0. ]), valid=array([ True, False]))
    """
    arrow = require_pyarrow()
    types = arrow.types
    if not (types.is_dictionary(array.type) and is_text(array.type)) or array.dictionary.null_count:
        array = plain_array(array)
    kind = array.type
    if types.is_null(kind):
        return ArrowColumn(np.full(len(array), None), np.zeros(len(array), bool))
    if is_text(kind):
        try:
            return ArrowColumn(_texts(array), valid_rows(array))
        except UnicodeDecodeError:
            return None
    if is_moment(kind):
        return ArrowColumn(numbers(array, np.int64).view("datetime64[ms]"), valid_rows(array))
    if types.is_integer(kind) and kind != arrow.uint64():
        dtype: type[np.generic] = np.int64
    elif types.is_floating(kind):
        dtype = np.float64
    elif types.is_boolean(kind):
        dtype = np.bool_
    else:
        return None
    return ArrowColumn(numbers(array).astype(dtype, copy=False), valid_rows(array))


def raw_columns(
    table: pa.RecordBatch | pa.Table,
) -> tuple[dict[str, Cells], dict[int, BadRecordError]]:
    """Return the cells of all columns, and why rows are broken: Python cannot represent a value.

    A column of nulls is left out, as if there were no column.

    Examples
    --------
    >>> import pyarrow as pa
    >>> found, broken = raw_columns(pa.table({"score": [0.5, None], "note": [None, None]}))
    >>> found["score"].values, found["score"].valid, [*found], broken
    (array([0.5, 0. ]), array([ True, False]), ['score'], {})
    """
    found: dict[str, Cells] = {}
    broken: set[int] = set()
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if column.null_count < len(column):
            found[name], wrong = _cells(getattr(column, "chunks", [column]))
            broken.update(wrong)
    return found, {row: BadRecordError("not-utf8", _INVALID) for row in sorted(broken)}


def _cells(chunks: Sequence[pa.Array]) -> tuple[Cells, list[int]]:
    """Return the cells of chunks, and the rows in which there is no value that Python has."""
    parts: list[Cells] = []
    broken: list[int] = []
    start = 0
    for chunk in chunks:
        found = numpy_column(chunk)
        if found is None:
            listed, wrong = _objects(chunk)
            parts.append(Cells(objects(listed)))
            broken += [start + row for row in wrong]
        else:
            parts.append(Cells(*found, str if found.values.dtype == object else None))
        start += len(chunk)
    return _joined(parts), broken


def _objects(array: pa.Array) -> tuple[list[Any], list[int]]:
    try:
        return array.to_pylist(), []
    except (ValueError, OverflowError):  # such as invalid UTF-8, or a year after 9999
        if len(array) == 1:
            return [None], [0]
    parts = [_objects(array.slice(row, 1)) for row in range(len(array))]
    return [cell for (cell,), _ in parts], [row for row, (_, wrong) in enumerate(parts) if wrong]


def _joined(parts: Sequence[Cells]) -> Cells:
    if len(parts) == 1:
        return parts[0]
    values = np.concatenate([one.values for one in parts])
    kind = str if all(one.kind is str for one in parts) else None
    if all(one.valid is None for one in parts):
        return Cells(values, None, kind)
    masks = [np.ones(len(one.values), bool) if one.valid is None else one.valid for one in parts]
    return Cells(values, np.concatenate(masks), kind)


def _milliseconds(array: pa.Array) -> pa.Array:
    arrow = require_pyarrow()
    ticks = numbers(array, np.int64)
    if array.type.unit == "s":
        ticks = np.clip(ticks, -_MOST_SECONDS, _MOST_SECONDS) * 1_000
    found = ticks // _TICKS[array.type.unit]  # towards the past before 1970, too
    return new_array(found, arrow.int64(), valid_rows(array)).view(arrow.timestamp("ms", "UTC"))


def _texts(array: pa.Array) -> Column:
    """Return strings as objects, "" in place of nulls; a frequent one is one object."""
    arrow = require_pyarrow()
    if not arrow.types.is_dictionary(array.type):
        sample = array.slice(0, _SAMPLE_ROWS)
        if len({*sample.to_pylist()}) * _MIN_REPEATS > len(sample):
            found = objects(array.to_pylist())
            if (valid := valid_rows(array)) is not None:
                found[~valid] = ""
            return found
        array = array.dictionary_encode()
    words = objects([*array.dictionary.to_pylist(), ""])
    codes, valid = numbers(array.indices).astype(np.int64), valid_rows(array)
    return words[codes if valid is None else np.where(valid, codes, len(words) - 1)]


FieldNames: TypeAlias = Mapping[str, "str | Sequence[str] | Mapping[str, str] | None"]
"""Columns by field of an event; see `Events.from_arrow`."""

_USUAL: FieldNames = {
    **{name: name for name in ("id", "time", "model", "segment", "score", "label", "x")},
    "label_time": None,
    "extra": None,
    "recorded": None,
}
_REQUIRED = ("id", "time")
_TIMES = ("time", "label_time", "recorded")
_SEVERAL = {"score": Mapping, "x": Sequence, "extra": Sequence}  # what else may name columns
_NOTHING = CONSTANT_PREFIX  # a path at which no row has a value
_AS_THEY_ARE = Readers(label=PlainReader(), score=PlainReader())


def fields_of_arrow(
    data: object, fields: FieldNames | None = None, readers: Readers | None = None
) -> SchemaColumns:
    """Return the columns of the events of a table; see `Events.from_arrow`."""
    table = arrow_table(data, "Events.of(…)")
    paths = _paths(table, _named(fields))
    valued = chain.from_iterable(_listed(paths[field]) for field in ("score", "x", "label"))
    if not any(_is_there(path, table) for path in valued):
        msg = f"no column is a score, features or a label; the columns are {_shown(table)}; "
        msg += "name one of them in fields"
        raise ParameterError(msg)
    timed = paths["label_time"] is not None
    schema = ColumnSchema(
        _event_fields(paths), readers or _AS_THEY_ARE, "labelled" if timed else "log"
    )
    raw, broken = raw_columns(
        table.select([one for one in table.column_names if one in schema.reads])
    )
    return schema.whole(raw, range(1, table.num_rows + 1), broken)


def models_and_times(data: object, fields: FieldNames | None = None) -> tuple[Column, Column]:
    """Return the model and the time of each row of a table.

    A model that cannot be read is the default one, and a time None.
    """
    own = {name: of for name, of in _named(fields).items() if name in {"model", "time"}}
    table = arrow_table(data, "Events.of(…)")
    found = _event_fields(_paths(table, {**own, "id": ROW}))
    raw, _ = raw_columns(_selected(table, {*root(found.model), *root(found.time)}))
    models = _readable(raw, table.num_rows, found.model, NameReader("model"), DEFAULT_MODEL)
    return models, _readable(raw, table.num_rows, found.time, TimeReader())


def _readable(
    raw: RawColumns, size: int, path: str, reader: CellReader, default: str | None = None
) -> Column:
    rows = RawRows(raw, range(1, size + 1))
    found = rows.optional(path, reader, ALL, default)
    if refused := [one.row for one in rows.refused()]:
        found = found.astype(object)
        found[refused] = default
    return found


def needed_columns(
    names: Sequence[str], fields: FieldNames | None = None, of: Collection[str] | None = None
) -> list[str]:
    """Return which columns of a table, by their names, all or some fields of events are in.

    Examples
    --------
    >>> needed_columns(["key", "time", "note", "user"], {"id": "key", "segment": "user.country"})
    ['key', 'time', 'user']
    """
    wanted = {
        one if one in names else root(one)[-1]
        for field, given in {**_USUAL, **_named(fields)}.items()
        for one in _listed(given)
        if (of is None or field in of) and root(one)
    }
    return [name for name in names if name in wanted]


def _named(fields: FieldNames | None) -> FieldNames:
    """Return the columns by field, or raise a ParameterError if they are not in a dict."""
    if fields is None or isinstance(fields, Mapping):
        return fields or {}
    msg = f"fields={fields!r} must be a dict; name columns by field, such as {{'id': 'key'}}"
    raise ParameterError(msg)


def _selected(table: pa.Table, names: Collection[str]) -> pa.Table:
    return table.select([one for one in table.column_names if one in names])


def _paths(table: pa.Table, given: FieldNames) -> dict[str, Any]:
    """Return the path or the paths of each field, or raise a ParameterError if one is missing."""
    if unknown := given.keys() - _USUAL.keys():
        msg = f"fields has {', '.join(map(repr, sorted(unknown)))}, which no event has; "
        msg += f"name some of {', '.join(_USUAL)}"
        raise ParameterError(msg)
    usual = {name: of if of in table.column_names else None for name, of in _USUAL.items()}
    paths = {**usual, **{name: name for name in _REQUIRED}, **given}
    for field, path in paths.items():
        if field in given or field in _REQUIRED:
            _require_there(field, path, table)
        if field in _TIMES and path in table.column_names:
            _require_moments(field, str(path), value_type(table.column(path)))
    return paths


def _event_fields(paths: Mapping[str, Any]) -> Fields:
    found = {name: path for name, path in paths.items() if name != "extra"}
    for name in ("model", "score", "label"):
        found[name] = _NOTHING if found[name] is None else found[name]
    return Fields(**found, passthrough=_listed(paths["extra"]))


def _require_there(field: str, given: object, table: pa.Table) -> None:
    """Raise a ParameterError if a field is not in columns that there are."""
    one = isinstance(given, str) or (given is None and field not in _REQUIRED)
    several = isinstance(given, _SEVERAL.get(field, ()))
    if not one and not (several and all(isinstance(path, str) for path in _listed(given))):
        msg = f"fields has {given!r} for {field}; name one column"
        raise ParameterError(msg)
    for path in _listed(given):
        if not _is_there(path, table):
            msg = f"there is no column {path} for {field}; the columns are {_shown(table)}; "
            msg += "name the right one in fields"
            raise ParameterError(msg)


def _require_moments(field: str, name: str, kind: pa.DataType) -> None:
    """Raise a ParameterError if times are of a type that could be of any time zone."""
    types = require_pyarrow().types
    if types.is_date(kind) or (types.is_timestamp(kind) and kind.tz is None):
        msg = f"column {name} for {field} is of type {kind}; make it int64 in milliseconds since "
        msg += "1970, or a timestamp with a time zone, such as "
        msg += 'column.cast(pa.timestamp("ms", "UTC"))'
        raise ParameterError(msg)


def _listed(given: Any) -> list[Any]:  # noqa: ANN401 - what a field is given
    if given is None or isinstance(given, str):
        return [] if given is None else [given]
    return [*given.values()] if isinstance(given, Mapping) else [*given]


def _is_there(path: str, table: pa.Table) -> bool:
    roots = root(path)
    return not roots or not {*roots}.isdisjoint(table.column_names)


def _shown(table: pa.Table) -> str:
    return ", ".join(table.column_names)
