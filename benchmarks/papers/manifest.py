"""The data sets of the papers, with checks of their contents.

The project names the data, by digest, licence and source, and never holds it; a set
that is missing or another one costs one line, and whatever does not need it goes on.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["HERE", "MANIFEST", "DataSet", "Table", "excuse", "read", "records"]

HERE = Path(__file__).parent


class DataSet(NamedTuple):
    """A line of the manifest."""

    file: str
    rows: int
    features: int
    sha256: str
    source: str
    licence: str


class Table(NamedTuple):
    """A data set as it was read: words, empty where a value is missing."""

    names: list[str]
    columns: list[list[str]]
    target: list[str]


def records(path: Path) -> list[dict[str, str]]:
    """Read a file of tab-separated values with a line of names."""
    with path.open(encoding="utf-8") as file:
        return [*csv.DictReader(file, delimiter="\t")]


def _manifest() -> dict[str, DataSet]:
    found = {}
    for line in records(HERE / "manifest.tsv"):
        rows, features = int(line["rows"]), int(line["features"])
        rest = line["sha256"], line["source"], line["licence"]
        found[line["file"].split(".")[0]] = DataSet(line["file"], rows, features, *rest)
    return found


MANIFEST = _manifest()


def excuse(folder: Path | None, name: str) -> str | None:
    """Return in a line why a set cannot be used, or None if it can."""
    wanted = MANIFEST[name]
    if folder is None:
        return f"{name}: no folder of data; give --data or set ABERS_DATA"
    path = folder / wanted.file
    if not path.is_file():
        return f"{name}: {path} is missing; it comes from {wanted.source}"
    if hashlib.sha256(path.read_bytes()).hexdigest() != wanted.sha256:
        return f"{name}: {path} is another file than that of the manifest"
    return None


@cache
def read(folder: Path, name: str) -> Table:
    """Read a set with the target in its last column."""
    path = folder / MANIFEST[name].file
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        names, *rows = csv.reader(file)
    *columns, target = (list(column) for column in zip(*rows, strict=True))
    return Table(names[:-1], columns, target)
