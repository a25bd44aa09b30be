"""The registry of sources, by name, and commands that sort what they read.

A source is named by a path with a suffix (".jsonl", ".csv", ".parquet", the first two also with
".gz" or ".zst"), by "-" for standard input, by a folder or a pattern of Parquet files, by a URL
with a registered scheme, or by the name of a data set that river includes. A new source is a module
and one line in `SOURCES`; a user's package calls `SOURCES.register`.
"""

from __future__ import annotations

import csv
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from abers.exceptions import ParameterError
from abers_connectors.files import STANDARD, Openers, file_format, scheme_of
from abers_connectors.sources.base import HasFields
from abers_connectors.sources.table_files import is_folder, is_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers_connectors.sources.base import Source, SourceOptions

    SourceOpener: TypeAlias = Callable[[str, SourceOptions], Source]

__all__ = ["SOURCES", "is_dataset", "is_read_once", "is_rereadable", "open_source", "sort_remedy"]

_DATASET = "abers_connectors.sources.dataset:DatasetSource"
_DATASETS = ("file", "s3", "gs", "gcs", "az", "abfs", "abfss", "iceberg")


class _SourceOpeners(Openers["SourceOpener"]):
    """Openers of sources: a folder or a pattern on this machine is opened as its URL would be."""

    def key(self, name: str, given: str | None = None) -> str:
        """Return the key of a name; see `Openers.key`."""
        return "file" if is_table(name) else super().key(name, given)


SOURCES = _SourceOpeners(
    {
        "csv": "abers_connectors.sources.text:TextSource",
        "jsonl": "abers_connectors.sources.text:TextSource",
        "parquet": "abers_connectors.sources.parquet:ParquetSource",
        **dict.fromkeys(_DATASETS, _DATASET),
    }
)


def open_source(name: str, options: SourceOptions) -> Source:
    """Return the source of a name; an unknown one, or Parquet as a stream, is a ParameterError.

    Each call of `batches` reads the source anew. To continue from a position on standard input, the
    same stream must be fed again from its beginning.
    """
    if options.format is None and is_dataset(name):
        from abers_connectors.sources.river_datasets import (  # noqa: PLC0415 - imports the learners
            RiverDataset,
        )

        return RiverDataset(name)
    return SOURCES.find(name, options.format)(name, options)


def is_dataset(name: str) -> bool:
    """Return whether a name is that of a data set: it has neither suffix, directory nor scheme.

    >>> is_dataset("Phishing"), is_dataset("scores.csv"), is_dataset("-")
    (True, False, False)
    """
    path = Path(name)
    named = not (path.suffix or len(path.parts) > 1 or name == STANDARD or scheme_of(name))
    return named and not is_table(name)


def is_read_once(source: Source) -> bool:
    """Return whether a source reads standard input or a pipe, alone or with others."""
    names = source.name.split(" and ")
    return any(one == "standard input" or Path(one).is_fifo() for one in names)


def is_rereadable(name: str) -> bool:
    """Return whether an input can be read in advance and again: all but streams and data sets.

    >>> is_rereadable("-"), is_rereadable("s3://bucket/history")
    (False, True)
    """
    return Path(name).is_file() or is_table(name) or scheme_of(name) in _DATASETS


_JSON = (
    "import json, sys; "
    "sys.stdout.writelines(sorted(sys.stdin, key=lambda row: json.loads(row)[{!r}]))"
)
_DECOMPRESS = {None: "cat", "gzip": "gzip -dc", "zstd": "zstd -dc"}


def sort_remedy(source: Source, time: str, form: str | None, raw: str) -> str:
    """Return how to sort an input by a field, and the command where one command does it.

    Parameters
    ----------
    source
        The input; a file has its path as the name.
    time
        Path of the field of time.
    form
        Format of the input, if its name does not say it.
    raw
        Text of one of its rows.
    """
    command = None if source.name == "standard input" else _command(source, time, form, raw)
    if command is None:
        return f"Sort the input by {time} first, and pass it again."
    return f"It is too large to be sorted here; sort it first: {command}"


def _command(source: Source, time: str, form: str | None, raw: str) -> str | None:
    path = source.name
    if scheme_of(path) is not None or (is_table(path) and not _is_plain_folder(path)):
        return None
    try:
        found = file_format(path, form)
    except ParameterError:  # a folder of Parquet files
        return _parquet(path, time)
    if found.format == "parquet":
        return _parquet(path, time)
    read = f"{_DECOMPRESS[found.compression]} {shlex.quote(path)}"
    if found.format == "jsonl":
        return None if "." in time else f"{read} | {_python(_JSON.format(time))} > sorted.jsonl"
    return _csv(source, read, time, raw)


def _is_plain_folder(path: str) -> bool:
    return Path(path).is_dir() and not is_folder(path, "_delta_log")


def _csv(source: Source, read: str, time: str, raw: str) -> str | None:
    """Return the command for lines without quotes or commas in fields."""
    columns = source.first_fields() if isinstance(source, HasFields) else None
    cells = next(csv.reader([raw]), [])
    if '"' in raw or not columns or time not in columns or len(cells) != len(columns):
        return None
    number = [*columns].index(time) + 1
    whole = "n" if cells[number - 1].lstrip("-").isdecimal() else ""
    sort = f"LC_ALL=C sort -s -t , -k {number},{number}{whole}"
    head = "IFS= read -r head; printf '%s\\n' \"$head\""
    return f"{read} | ({head}; {sort}) > sorted.csv"


def _parquet(path: str, time: str) -> str:
    return _python(
        "import pyarrow.parquet as pq; "
        f"pq.write_table(pq.read_table({path!r}).sort_by({time!r}), 'sorted.parquet')"
    )


def _python(program: str) -> str:
    return f"{shlex.quote(sys.executable or 'python3')} -c {shlex.quote(program)}"
