"""The columns that a table must have before its rows are read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from abers.exceptions import ParameterError
from abers.stream.fields import FIELDS, root
from abers.stream.option import said
from abers.stream.readers import number
from abers.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream.schema import Schema

__all__ = ["column_meant", "require_columns"]


def require_columns(schema: Schema, name: str, columns: Sequence[str]) -> None:
    """Raise a ParameterError for an input without a column that its schema needs.

    A model or a segment may be missing, but not be there under a name in another case.
    """
    where = said((FIELDS,), schema.readers.front)
    for paths in schema.needs:
        roots = [root(path) for path in paths]
        if any(not names or not set(names).isdisjoint(columns) for names in roots):
            continue
        hint = next(filter(None, (column_meant(path, columns) for path in paths)), "")
        msg = (
            f"{name} has no column {' or '.join(paths)}; its columns are "
            f"{', '.join(columns)}; name the right one {where}{hint}"
        )
        raise ParameterError(msg)
    for path in schema.names:
        same = [one for one in columns if one.casefold() == path.casefold()]
        if same and path not in same:
            msg = (
                f"{name} has no column {path}, but {' and '.join(same)}; name the right one "
                f"{where}, or rename it"
            )
            raise ParameterError(msg)


def column_meant(path: str, columns: Sequence[str]) -> str:
    """Return the end of a message about a missing column: a guess, or the empty string.

    Examples
    --------
    >>> column_meant("score", ["id", "scores"]), column_meant("score", ["id", "p"])
    ('; did you mean scores?', '')
    >>> column_meant("score", ["0.25", "1"])
    '; is the first line a record? Then write the names of the columns above it'
    """
    hint = did_you_mean(path, columns)
    if hint or not any(math.isfinite(number(one)) for one in columns):
        return hint
    return "; is the first line a record? Then write the names of the columns above it"
