"""Files of one part of a result, which appear under their names when all are complete.

A task that is killed leaves only hidden files, and one that is done again replaces equal files.
"""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.arrow_values import require_pyarrow
from abers.stream.arrow_tables import REPEATED, ArrowOutputs

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["HistoryTotals", "hidden_name", "write_parts"]


class HistoryTotals(NamedTuple):
    """Numbers of rows of a history that were read, and of its outputs that were written."""

    rows: int = 0
    predictions: int = 0
    outcomes: int = 0
    dead_letters: int = 0
    alarms: int = 0

    @classmethod
    def total(cls, many: Iterable[HistoryTotals]) -> HistoryTotals:
        """Add up those of several parts.

        Examples
        --------
        >>> HistoryTotals.total([HistoryTotals(5, 3), HistoryTotals(2, 1)]).predictions
        4
        """
        return cls(*map(sum, zip(cls(), *many, strict=True)))


def hidden_name(name: str) -> str:
    """Return a name that readers skip and no other attempt has, with the number of the process."""
    return f".{name}.{os.getpid()}.{uuid.uuid4().hex}"


def write_parts(
    outputs: Iterable[ArrowOutputs],
    files: Any,  # noqa: ANN401 - of fsspec
    folder: str,
    name: str,
) -> HistoryTotals:
    """Write outputs, at least one, into a file for each kind: `folder/predictions/name`, ….

    Parameters
    ----------
    outputs
        Tables of one schema a kind.
    files
        The file system of fsspec.
    folder
        The folder of the result, with one for each kind in it.
    name
        Name of the files.

    Returns
    -------
    HistoryTotals
        Rows that were written.
    """
    writers: dict[str, Any] = {}
    hidden = hidden_name(name)
    numbers = HistoryTotals()
    try:
        for one in outputs:
            tables = {kind: table for kind, table in one._asdict().items() if table is not None}
            for kind, table in tables.items():
                if kind not in writers:
                    path = f"{folder}/{kind}/{hidden}"
                    writers[kind] = _PartFile(files.open(path, "wb"), path, table.schema)
                writers[kind].write(table)
            rows = {kind: table.num_rows for kind, table in tables.items()}
            numbers = HistoryTotals.total([numbers, HistoryTotals(**rows)])
        for writer in writers.values():
            writer.close()
    except BaseException:
        for writer in writers.values():
            writer.discard(files)
        raise
    for kind, writer in writers.items():
        files.mv(writer.path, f"{folder}/{kind}/{name}")
    return numbers


class _PartFile:
    """A hidden Parquet file."""

    def __init__(self, file: Any, path: str, schema: Any) -> None:  # noqa: ANN401
        self.path, self._file = path, file
        self._parquet = require_pyarrow("pyarrow.parquet").ParquetWriter(
            file,
            schema,
            # Trying dictionaries on numbers and ids costs most.
            use_dictionary=[name for name in schema.names if name in REPEATED],
            write_statistics=[name for name in schema.names if name in {"time", *REPEATED}],
        )

    def write(self, table: Any) -> None:  # noqa: ANN401
        if table.num_rows:
            self._parquet.write_table(table)

    def close(self) -> None:
        self._parquet.close()
        self._file.close()

    def discard(self, files: Any) -> None:  # noqa: ANN401
        self._file.close()
        if files.exists(self.path):
            files.rm(self.path)
