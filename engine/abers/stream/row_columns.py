"""The columns of a type of rows.

The type fixes the columns and their order. A value that is not a string, number or boolean becomes
JSON.
"""

from __future__ import annotations

from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args

import msgspec
import numpy as np

from abers.stream.column_types import objects, repeated
from abers.stream.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    ColumnGetter: TypeAlias = Callable[[Sequence[msgspec.Struct]], NDArray[Any]]

__all__ = ["RowColumn", "columns_of"]


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
