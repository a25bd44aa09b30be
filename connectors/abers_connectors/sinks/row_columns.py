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

from abers.stream import Rows
from abers.stream.columns import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    ColumnGetter: TypeAlias = Callable[[Sequence[msgspec.Struct]], NDArray[Any]]

__all__ = ["RowColumn", "columns_of"]


class RowColumn(NamedTuple):
    """A column of rows."""

    name: str  # in the output
    type: type | None  # str, int, float or bool; None if the values are nested
    values: ColumnGetter  # of some rows, nested ones as JSON


def columns_of(kind: type[msgspec.Struct]) -> list[RowColumn]:
    """Return the columns of a type of rows, its tag first.

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
    return [RowColumn(config.tag_field or "", type(config.tag), _constant(config.tag)), *fields]


def _constant(value: object) -> ColumnGetter:
    return lambda rows: np.full(len(rows), value)


def _getter(field: msgspec.structs.FieldInfo) -> ColumnGetter:
    get = attrgetter(field.name)

    def values(rows: Sequence[msgspec.Struct]) -> NDArray[Any]:
        if not isinstance(rows, Rows):
            return objects([*map(get, rows)])
        found = rows.columns.get(field.name)
        return np.full(len(rows), field.default, object) if found is None else found

    return values


def _column(field: msgspec.structs.FieldInfo) -> RowColumn:
    get = _getter(field)
    kinds = {kind for kind in get_args(field.type) or [field.type] if kind is not NoneType}
    plain = kinds.pop() if len(kinds) == 1 else None
    if plain in (str, int, float, bool):
        return RowColumn(field.encode_name, plain, get)
    return RowColumn(field.encode_name, None, lambda rows: _as_json(get(rows)))


def _as_json(values: NDArray[Any]) -> NDArray[Any]:
    encode = msgspec.json.Encoder().encode
    return objects([None if one is None else encode(one).decode() for one in values.tolist()])
