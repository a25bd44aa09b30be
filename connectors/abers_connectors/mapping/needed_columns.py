"""The columns that a table must have before its rows are read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from abers.exceptions import ParameterError
from abers.stream.fields import FIELDS, LABEL_FIELDS, root
from abers.stream.option import said
from abers.stream.readers import number
from abers.suggestions import closest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abers.stream.schema import Schema

__all__ = ["require_columns"]


def require_columns(schema: Schema, name: str, columns: Sequence[str]) -> None:
    """Raise a ParameterError with all columns that an input lacks and its schema needs.

    A model or a segment may be missing, but not be there under a name in another case.
    """
    where = said((LABEL_FIELDS if schema.kind == "labels" else FIELDS,), schema.readers.front)
    if lacking := [paths for paths in schema.needs if not _has_any(columns, paths)]:
        *others, last = (f"no column {' or '.join(paths)}" for paths in lacking)
        what = " and ".join(filter(None, (", ".join(others), last)))
        msg = (
            f"{name} has {what}; its columns are {', '.join(columns)}; name the right "
            f"{'ones' if others else 'one'} {where}{_hint(lacking, columns)}"
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


def _has_any(columns: Sequence[str], paths: Iterable[str]) -> bool:
    roots = [root(path) for path in paths]
    return any(not names or not set(names).isdisjoint(columns) for names in roots)


def _hint(lacking: Sequence[Sequence[str]], columns: Sequence[str]) -> str:
    """Return the end of a message about missing columns: guesses, or the empty string."""
    near = {path: closest(path, columns) for paths in lacking for path in paths}
    if guesses := {path: one for path, one in near.items() if one is not None}:
        pairs = [one if len(lacking) == 1 else f"{one} for {path}" for path, one in guesses.items()]
        return f"; did you mean {', '.join(pairs)}?"
    if any(math.isfinite(number(one)) for one in columns):
        return "; is the first line a record? Then write the names of the columns above it"
    return ""
