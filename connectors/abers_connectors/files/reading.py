"""Opening a file as a source, whatever its format.

Governing rule: the name tells how the bytes are read, the mapping what they mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers_connectors.files.naming import kind_of
from abers_connectors.files.parquet import ParquetSource
from abers_connectors.files.text import TextSource

if TYPE_CHECKING:
    from abers_connectors.fields import Fields, Kind
    from abers_connectors.reads import Reads
    from abers_connectors.records import Source

__all__ = ["open_source"]


def open_source(  # noqa: PLR0913 - what the configuration says of an input
    path: str,
    kind: Kind,
    fields: Fields,
    reads: Reads | None = None,
    *,
    format: str | None = None,  # noqa: A002 - what the configuration calls it
    max_record_bytes: int = 1 << 20,
    growing: bool = False,
) -> Source:
    """Open a file, or standard input, as a source.

    Parameters
    ----------
    path
        The file, or "-"; its suffix tells format and compression.
    kind
        What its records are: `fields.mixed`, `fields.labels` or `fields.labelled`.
    fields
        Which field is what.
    reads
        How scores and labels are read, by default those of a binary task.
    format
        "csv", "jsonl" or "parquet", if the suffix does not tell.
    max_record_bytes
        A longer record is a bad one; of Parquet, a row whose columns that are read have more.
    growing
        Whether the file is read on later: a last line that may be half-written is left then.

    Returns
    -------
    Source
        It reads the file anew for each call of `batches`. To go on from a position on standard
        input, the same stream must be fed again from its beginning.

    Raises
    ------
    ParameterError
        If the format is unknown, or Parquet as a stream.
    MissingExtraError
        If the format needs a library that is not installed.
    """
    found = kind_of(path, format)
    text = found.format == "csv"
    mapper = kind(fields, reads, text=text)
    if found.format == "parquet":
        return ParquetSource(path, mapper, max_record_bytes)
    return TextSource(path, found, mapper, max_record_bytes, growing=growing)
