"""A look at the first record of a file, before it is decided how the file is read.

Governing rule: nothing is refused here; what is wrong with the file is told by
whoever reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import RecordError
from abers.stream import Observation
from abers_connectors.extras import extra
from abers_connectors.fields import Mapper
from abers_connectors.files.naming import kind_of
from abers_connectors.files.parquet_bounds import opened
from abers_connectors.files.text import TextSource

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["first_fields"]

_LIMIT = 1 << 20  # bytes of a record


def first_fields(path: str) -> Sequence[str] | None:
    """Name the top-level fields of a file's first record.

    Parameters
    ----------
    path
        Of a CSV, JSON Lines or Parquet file, no pipe: what is read of one is gone.

    Returns
    -------
    sequence of str or None
        The fields, none if the first record cannot be read; None if there is no record.
    """
    kind = kind_of(path)
    if kind.format == "parquet":
        return _columns(path)
    as_it_is = Mapper(
        row=lambda record, number: Observation("", number, x=dict(record)),
        columns=lambda _columns: None,
        typed=None,
        reads=frozenset(),
        needs=(),
    )
    try:
        for batch in TextSource(path, kind, as_it_is, _LIMIT).batches():
            if batch.records:
                return list(batch.events.x[0]) if batch.events.x is not None else ()
    except RecordError:
        return ()
    return None


def _columns(path: str) -> Sequence[str] | None:
    arrow = extra("pyarrow", path)
    try:
        with opened(path) as file:
            names: list[str] = file.schema_arrow.names
            return names if file.metadata.num_rows else None
    except (arrow.ArrowException, OSError, RecordError, UnicodeDecodeError):
        return ()
