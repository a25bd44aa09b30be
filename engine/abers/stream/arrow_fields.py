"""Tables of Arrow as raw columns, which a schema reads.

Only a table that cannot be meant, such as one without a column of ids, is an error. What is wrong
with a row is found by the readers of its fields, and refuses this row alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from abers.arrow_values import require_pyarrow
from abers.exceptions import ParameterError
from abers.frames import arrow_table
from abers.stream.arrow_columns import raw_columns, value_type
from abers.stream.fields import CONSTANT_PREFIX, ROW, Fields, root
from abers.stream.masks import ALL
from abers.stream.raw_rows import RawRows
from abers.stream.readers import NameReader, PlainReader
from abers.stream.schema_columns import DEFAULT_MODEL, ColumnSchema, Readers
from abers.stream.times import TimeReader

if TYPE_CHECKING:
    import pyarrow as pa

    from abers.stream.cells import RawColumns
    from abers.stream.column_types import Column
    from abers.stream.readers import CellReader
    from abers.stream.schema_columns import SchemaColumns

__all__ = ["FieldNames", "fields_of_arrow", "models_and_times", "needed_columns"]

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
        _event_fields(paths), readers or _AS_THEY_ARE, "labelled" if timed else "mixed"
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
