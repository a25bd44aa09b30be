"""Format and compression of a file, by its name.

The last suffix names the format, after a suffix of compression; "-" is standard input or output:
then the format must be given.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "FORMATS",
    "PARTS",
    "STANDARD",
    "SUFFIXES",
    "FileFormat",
    "default_format",
    "file_format",
    "is_stream",
    "local_path",
    "scheme_of",
    "suffix_of",
]

STANDARD = "-"
"""Names standard input or output."""

PARTS = "part-*.parquet"
"""Names of the files in a directory of Parquet parts."""

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
"""Formats by their suffixes."""

FORMATS = frozenset(SUFFIXES.values())
_TABBED = (".tsv", ".tab")
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_URL = re.compile(r"([a-z][a-z0-9+.-]+)://", re.ASCII)


class FileFormat(NamedTuple):
    """Format and compression of a file."""

    format: str  # "csv", "jsonl" or "parquet"
    compression: str | None  # "gzip" or "zstd"
    separator: str = ","  # of the fields of "csv"


def file_format(path: str, given: str | None = None, others: Iterable[str] = ()) -> FileFormat:
    r"""Return the format and the compression of a file, or of "-".

    `given` is the format if the suffix does not name it. Raises a ParameterError if the format is
    unknown (the message also names `others`: further suffixes and schemes), or Parquet as a stream.

    Examples
    --------
    >>> file_format("scores.jsonl.gz")
    FileFormat(format='jsonl', compression='gzip', separator=',')
    >>> file_format("scores.tsv")
    FileFormat(format='csv', compression=None, separator='\t')
    """
    compression = _COMPRESSIONS.get(Path(path).suffix.lower())
    found = given or SUFFIXES.get(suffix_of(path))
    if found is None or found not in FORMATS:
        more = f", and {', '.join(others)}" if (others := [*others]) else ""
        msg = (
            f"{path}: unknown kind of file; abers knows {', '.join(SUFFIXES)}, all but "
            f"the last also with .gz or .zst{more}; save it as one of these, or name the "
            "format in input.format of a configuration"
        )
        raise ParameterError(msg)
    if found == "parquet" and (compression or path == STANDARD):
        msg = (
            f"{path}: a Parquet file is read from its end, and compressed inside; name a plain "
            ".parquet file, or use JSON Lines"
        )
        raise ParameterError(msg)
    return FileFormat(found, compression, "\t" if suffix_of(path) in _TABBED else ",")


def suffix_of(path: str) -> str:
    """Return the suffix that names the format, in lower case.

    Examples
    --------
    >>> suffix_of("scores.JSONL.gz"), suffix_of("scores")
    ('.jsonl', '')
    """
    name = Path(path)
    compressed = name.suffix.lower() in _COMPRESSIONS
    return (name.with_suffix("") if compressed else name).suffix.lower()


def default_format(path: str) -> str | None:
    """Return the format of a stream without a suffix, which is JSON Lines; None for all else.

    Examples
    --------
    >>> default_format("-"), default_format("scores.csv")
    ('jsonl', None)
    """
    return "jsonl" if is_stream(path) and not suffix_of(path) else None


def scheme_of(name: str) -> str | None:
    """Return the scheme of a URL; None for a path.

    Examples
    --------
    >>> scheme_of("redis://localhost/scores"), scheme_of("scores.csv")
    ('redis', None)
    """
    found = _URL.match(name)
    return None if found is None else found[1]


def local_path(name: str) -> str | None:
    """Return the path of a name or file URL, in which %20 is a space; None if it is elsewhere.

    Examples
    --------
    >>> local_path("file:///data/my%20folder"), local_path("my%20folder"), local_path("s3://bucket")
    ('/data/my folder', 'my%20folder', None)
    """
    scheme = scheme_of(name)
    if scheme == "file":
        return unquote(name.removeprefix("file://").removeprefix("localhost"))
    return name if scheme is None else None


def is_stream(path: str) -> bool:
    """Return whether a path is standard output, a pipe or a device."""
    file = Path(path)
    return path == STANDARD or (file.exists() and not (file.is_file() or file.is_dir()))
