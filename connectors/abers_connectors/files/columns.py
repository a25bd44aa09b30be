"""Columns of a file that are asked for and not there.

Governing rule: where a file says what columns it has, a mapping that none of
its records can fulfil is a mistake of the configuration, and a clear stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import ParameterError
from abers_connectors._paths import root
from abers_connectors._suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers_connectors.fields import Mapper

__all__ = ["require_columns"]


def require_columns(name: str, columns: Sequence[str], mapper: Mapper) -> None:
    """Check that every field that is needed has a column.

    Parameters
    ----------
    name
        Of the file.
    columns
        That it has.
    mapper
        That tells what is needed.

    Raises
    ------
    ParameterError
        Naming the first field that has none.
    """
    for paths in mapper.needs:
        roots = [root(path) for path in paths]
        if any(not names or not set(names).isdisjoint(columns) for names in roots):
            continue
        wanted = " or ".join(paths)
        hint = next(filter(None, (did_you_mean(path, columns) for path in paths)), "")
        msg = (
            f"{name} has no column {wanted}; its columns are {', '.join(columns)}; "
            f"name the right one in [input.fields]{hint}"
        )
        raise ParameterError(msg)
