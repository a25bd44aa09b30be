"""The registry of sources, by name.

A source is named by a path with a suffix (".jsonl", ".csv", ".parquet", the first two also with
".gz" or ".zst"), by "-" for standard input, by a folder or a pattern of Parquet files, by a URL
with a registered scheme, or by the name of a data set that river includes. A new source is a
module and one line in `SOURCES`; a user's package calls `SOURCES.register`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from abers_connectors.files.formats import STANDARD, scheme_of
from abers_connectors.files.openers import Openers
from abers_connectors.sources.data_files import is_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers_connectors.sources.base import Source, SourceOptions

    SourceOpener: TypeAlias = Callable[[str, SourceOptions], Source]

__all__ = ["SOURCES", "is_dataset", "is_read_once", "is_rereadable", "open_source"]

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
