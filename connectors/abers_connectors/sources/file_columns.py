"""The columns of a table in one of its files.

A column may have another place in the file, or none: the path of the file, or the log of the table,
has the value of all rows then, or the column is younger than the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from abers.stream.arrow_buffers import new_array
from abers_connectors.extras import extra

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa

__all__ = ["FileColumns", "NamedColumns", "path_columns"]


class FileColumns(Protocol):
    """The columns of a table in one of its files."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table, with their types in the rows that are read."""
        ...

    def stored(self, name: str) -> str | None:
        """Return the path of a column in the file; None if its values are not there."""
        ...

    def needed(self, names: Collection[str]) -> list[str]:
        """Return which columns of the file hold some columns of the table."""
        ...

    def rows(self, read: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """Return some columns of the table from those of the file that they need."""
        ...


class NamedColumns:
    """Columns that have the same name in the file, unless they have one value in all its rows."""

    def __init__(self, file: pa.Schema, constants: Mapping[str, pa.Scalar]) -> None:
        arrow = extra("pyarrow", "Parquet")
        self._constants = constants
        stored = [field for field in file if field.name not in constants]
        same = [arrow.field(name, value.type) for name, value in constants.items()]
        self._stored = [field.name for field in stored]
        self.schema: pa.Schema = arrow.schema([*stored, *same])

    def stored(self, name: str) -> str | None:
        """Return the path of a column in the file; None if its values are not there."""
        return None if name in self._constants else name

    def needed(self, names: Collection[str]) -> list[str]:
        """Return which columns of the file hold some columns of the table."""
        return [name for name in self._stored if name in names]

    def rows(self, read: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """Return some columns of the table from those of the file that they need."""
        arrow, found = extra("pyarrow", "Parquet"), []
        for name in names:
            if name in self._constants:
                found.append(arrow.repeat(self._constants[name], read.num_rows))
            else:
                found.append(read.column(name))
        return arrow.RecordBatch.from_arrays(found, [*names])


def path_columns(file: pa.Schema, partition: Mapping[str, str | None]) -> NamedColumns:
    """Return the columns of a file; what its path has a value of is not read from it."""
    texts = new_array(
        np.fromiter(partition.values(), object, len(partition)),
        extra("pyarrow", "Parquet").string(),
    )
    return NamedColumns(file, dict(zip(partition, texts, strict=True)))
