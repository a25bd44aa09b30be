"""The registry of sources, by name.

A source is named by a path with a suffix (".jsonl", ".csv", ".parquet", the first two also with
".gz" or ".zst"), by "-" for standard input, by a URL whose scheme is registered, or by the name of
a data set that river includes. A new source is a module and one line in `SOURCES`; a user's package
calls `SOURCES.register`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from abers_connectors.files.formats import STANDARD, scheme_of
from abers_connectors.files.openers import Openers

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers_connectors.sources.base import Source, SourceOptions

    SourceOpener: TypeAlias = Callable[[str, SourceOptions], Source]

__all__ = ["SOURCES", "is_dataset", "open_source"]

SOURCES: Openers[SourceOpener] = Openers(
    {
        "csv": "abers_connectors.sources.text:TextSource",
        "jsonl": "abers_connectors.sources.text:TextSource",
        "parquet": "abers_connectors.sources.parquet:ParquetSource",
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
    return not (path.suffix or len(path.parts) > 1 or name == STANDARD or scheme_of(name))
