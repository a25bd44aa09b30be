"""What the name of a file says: its format and its compression.

Governing rule: the last suffix tells the format, after one of compression was
taken off; "-" has none, so its format must be given.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from abers.exceptions import ParameterError

__all__ = ["PARTS", "STANDARD", "Kind", "kind_of"]

STANDARD = "-"
"""Stands for standard input or output."""

PARTS = "part-*.parquet"
"""What the files in a directory of Parquet are called."""

_FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


class Kind(NamedTuple):
    """How the bytes of a file are to be understood.

    Parameters
    ----------
    format
        "csv", "jsonl" or "parquet".
    compression
        "gzip", "zstd", or None.
    """

    format: str
    compression: str | None


def kind_of(path: str, given: str | None = None) -> Kind:
    """Tell what kind of file a path names.

    Parameters
    ----------
    path
        Of the file, or "-".
    given
        The format, if it does not stand in the suffix.

    Returns
    -------
    Kind
        Format and compression.

    Raises
    ------
    ParameterError
        If the format is unknown, or Parquet as a stream.

    Examples
    --------
    >>> kind_of("scores.jsonl.gz")
    Kind(format='jsonl', compression='gzip')
    >>> kind_of("-", "csv")
    Kind(format='csv', compression=None)
    """
    name = Path(path)
    compression = _COMPRESSIONS.get(name.suffix.lower())
    suffix = (name.with_suffix("") if compression else name).suffix.lower()
    found = given or _FORMATS.get(suffix)
    if found is None or found not in _FORMATS.values():
        msg = f"{path}: unknown kind of file; abers knows {', '.join(_FORMATS)}, and each of the "
        msg += "first three with .gz or .zst behind; for other names, and for -, give the format"
        raise ParameterError(msg)
    if found == "parquet" and (compression or path == STANDARD):
        msg = f"{path}: a Parquet file is read from its end, and compressed inside; name a plain "
        msg += ".parquet file, or use JSON Lines"
        raise ParameterError(msg)
    return Kind(found, compression)
