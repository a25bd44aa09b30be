"""From rows to bytes: JSON Lines, and CSV with a header.

Governing rule: the type of the rows fixes the columns and their order; a value
that is neither text nor number nor boolean stands in a CSV cell as JSON.
"""

from __future__ import annotations

import csv
import io
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, get_args

import msgspec
import numpy as np

from abers.stream import Rows
from abers.stream.columns import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

Values: TypeAlias = "Callable[[Sequence[msgspec.Struct]], NDArray[Any]]"

__all__ = ["Column", "CsvRows", "Encoder", "JsonRows", "columns_of", "encoder"]


class Column(NamedTuple):
    """A column of a table of rows.

    Parameters
    ----------
    name
        As on the wire.
    type
        str, int, float or bool; None if the values are nested.
    values
        From rows to the values of the column, the nested ones as JSON.
    """

    name: str
    type: type | None
    values: Values


def columns_of(kind: type[msgspec.Struct]) -> list[Column]:
    """Give the columns of a type of rows, its tag first.

    Examples
    --------
    >>> class Row(msgspec.Struct, tag_field="v", tag=1):
    ...     id: str
    ...     extra: dict[str, int] | None = None
    >>> [(name, values([Row("a", {"b": 1})]).tolist()) for name, _, values in columns_of(Row)]
    [('v', [1]), ('id', ['a']), ('extra', ['{"b":1}'])]
    """
    config = kind.__struct_config__
    fields = [_column(field) for field in msgspec.structs.fields(kind)]
    if config.tag is None:
        return fields
    return [Column(config.tag_field or "", type(config.tag), _constant(config.tag)), *fields]


def _constant(value: object) -> Values:
    return lambda rows: np.full(len(rows), value)


def _getter(field: msgspec.structs.FieldInfo) -> Values:
    get = attrgetter(field.name)

    def values(rows: Sequence[msgspec.Struct]) -> NDArray[Any]:
        if not isinstance(rows, Rows):
            return objects([*map(get, rows)])
        found = rows.columns.get(field.name)
        return np.full(len(rows), field.default, object) if found is None else found

    return values


def _column(field: msgspec.structs.FieldInfo) -> Column:
    get = _getter(field)
    kinds = {kind for kind in get_args(field.type) or [field.type] if kind is not NoneType}
    plain = kinds.pop() if len(kinds) == 1 else None
    if plain in (str, int, float, bool):
        return Column(field.encode_name, plain, get)
    return Column(field.encode_name, None, lambda rows: _as_json(get(rows)))


def _as_json(values: NDArray[Any]) -> NDArray[Any]:
    encode = msgspec.json.Encoder().encode
    return objects([None if one is None else encode(one).decode() for one in values.tolist()])


class Encoder(Protocol):
    """Makes bytes of rows; `header` stands at the beginning of a file."""

    header: bytes

    def encode(self, rows: Sequence[msgspec.Struct]) -> bytes:
        """Encode some rows."""
        ...


class JsonRows:
    """One JSON object a line."""

    header = b""

    def __init__(self) -> None:
        self._encode = msgspec.json.Encoder().encode_lines

    def encode(self, rows: Sequence[msgspec.Struct]) -> bytes:
        """Encode some rows."""
        return self._encode([*rows])


class CsvRows:
    """One row a line, below a header."""

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        self._columns = columns_of(kind)
        self.header = _written([[column.name for column in self._columns]])

    def encode(self, rows: Sequence[msgspec.Struct]) -> bytes:
        """Encode some rows."""
        columns = [column.values(rows).tolist() for column in self._columns]
        return _written(list(zip(*columns, strict=True)))


def _written(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def encoder(kind: type[msgspec.Struct], format_: str) -> Encoder:
    """Make the encoder of a format of lines."""
    return CsvRows(kind) if format_ == "csv" else JsonRows()
