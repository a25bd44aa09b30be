"""A look at the first record of a file, before it is decided how the file is read.

Governing rule: nothing is refused here; what is wrong with the file is told by
whoever reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers.exceptions import RecordError
from abers_connectors.fields import Mapper
from abers_connectors.files.extra import extra
from abers_connectors.files.naming import kind_of
from abers_connectors.files.text import TextSource

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["columns_of"]

_LIMIT = 1 << 20  # bytes of a record


def columns_of(path: str) -> Collection[str] | None:
    """Name the top-level fields of a file's first record.

    Parameters
    ----------
    path
        Of a CSV, JSON Lines or Parquet file.

    Returns
    -------
    collection of str or None
        The fields; None if there is no record, or the first cannot be read.
    """
    kind = kind_of(path)
    if kind.format == "parquet":
        parquet = extra("pyarrow.parquet", path)
        names: list[str] = parquet.read_schema(path).names
        return names
    as_it_is = Mapper[dict[str, Any]](
        lambda record, _number: dict(record), lambda _columns: None, None, frozenset(), ()
    )
    try:
        first = next(TextSource(path, kind, as_it_is, _LIMIT).batches(), None)
    except RecordError:
        return None
    return first.events[0] if first is not None and first.events else None
