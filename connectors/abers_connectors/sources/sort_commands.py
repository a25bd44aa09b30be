"""Commands that sort a file by time, for messages; rows of equal time keep their order."""

from __future__ import annotations

import csv
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from abers.exceptions import ParameterError
from abers_connectors.files.formats import file_format, scheme_of
from abers_connectors.sources.base import HasFields
from abers_connectors.sources.data_files import is_folder, is_table

if TYPE_CHECKING:
    from abers_connectors.sources.base import Source

__all__ = ["sort_remedy"]

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
