"""The columns that a table must have before its rows are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import ParameterError
from abers.stream.fields import root
from abers_connectors.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream.schema import Schema

__all__ = ["require_columns"]


def require_columns(schema: Schema, name: str, columns: Sequence[str]) -> None:
    """Raise a ParameterError for an input without a column that its schema needs.

    A model or a segment may be missing, but not be there under a name in another case.
    """
    for paths in schema.needs:
        roots = [root(path) for path in paths]
        if any(not names or not set(names).isdisjoint(columns) for names in roots):
            continue
        hint = next(filter(None, (did_you_mean(path, columns) for path in paths)), "")
        msg = (
            f"{name} has no column {' or '.join(paths)}; its columns are "
            f"{', '.join(columns)}; name the right one in [input.fields]{hint}"
        )
        raise ParameterError(msg)
    for path in schema.names:
        same = [one for one in columns if one.casefold() == path.casefold()]
        if same and path not in same:
            msg = (
                f"{name} has no column {path}, but {' and '.join(same)}; name the right one in "
                "[input.fields], or rename it"
            )
            raise ParameterError(msg)
