"""Rows into Parquet: one file, or a directory of numbered ones.

Governing rule: a Parquet file is complete or not there, so a run that can be
resumed writes one file for each commit, and a position is how many of them
count.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abers.exceptions import ParameterError, StateError
from abers_connectors.extras import extra
from abers_connectors.files.base import FileSink
from abers_connectors.files.naming import PARTS
from abers_connectors.files.places import (
    Whole,
    last_block,
    naming,
    require_directory,
    sync_directory,
)
from abers_connectors.files.rows import columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import msgspec
    import pyarrow as pa
    from numpy.typing import NDArray

    from abers_connectors.records import Position

__all__ = ["ParquetParts", "WholeParquet"]

_GROUP = 100_000  # rows that are looked up together
_REPEATED = ("model", "segment", "reason")  # worth a dictionary; trying one on numbers costs most
_SOUGHT = ("time", *_REPEATED)  # by whose least and largest value a reader skips row groups


class WholeParquet(FileSink):
    """One file, which stands under its name when it is complete.

    Parameters
    ----------
    path
        Of the file.
    kind
        The type of the rows; nested values are written as texts of JSON.
    derived
        As of `places.Whole`.
    """

    def __init__(self, path: str, kind: type[msgspec.Struct], *, derived: bool = False) -> None:
        self._arrow = extra("pyarrow", "Parquet")
        self._columns = columns_of(kind)
        types: dict[type | None, Any] = {
            str: self._arrow.string(),
            int: self._arrow.int64(),
            float: self._arrow.float64(),
            bool: self._arrow.bool_(),
            None: self._arrow.string(),
        }
        self._schema = self._arrow.schema([(one.name, types[one.type]) for one in self._columns])
        self._place, self._name = Whole(path, derived=derived), path
        self._writer = extra("pyarrow.parquet", "Parquet").ParquetWriter(
            self._place.file,
            self._schema,
            use_dictionary=[name for name in self._schema.names if name in _REPEATED],
            write_statistics=[name for name in self._schema.names if name in _SOUGHT],
        )
        self._waiting: list[Any] = []  # record batches of a row group to be
        self._rows = 0

    def write(self, rows: Sequence[msgspec.Struct]) -> None:
        """Take some rows."""
        arrays = [
            self._array(column.values(rows), field)
            for column, field in zip(self._columns, self._schema, strict=True)
        ]
        self._waiting.append(self._arrow.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._rows += len(rows)
        if self._rows >= _GROUP:
            self._write_group()

    def commit(self) -> Position:
        """Do nothing: until the end there is no file."""
        return {}

    def close(self) -> None:
        """Put the file under its name."""
        if self._waiting:
            self._write_group()
        with naming(self._name):
            self._writer.close()
        self._place.close()

    def discard(self) -> None:
        """Remove what was written."""
        with suppress(OSError):  # the writer finishes the file in any case
            self._writer.close()
        self._place.discard()

    def _array(self, values: NDArray[Any], field: pa.Field) -> pa.Array:
        if field.name in _REPEATED and len(only := {*values.tolist()}) == 1:
            return self._arrow.repeat(self._arrow.scalar(only.pop(), field.type), len(values))
        return self._arrow.array(values, field.type)

    def _write_group(self) -> None:
        table = self._arrow.Table.from_batches(self._waiting, self._schema)
        with naming(self._name):
            self._writer.write_table(table, row_group_size=_GROUP)
        self._waiting, self._rows = [], 0


class ParquetParts(FileSink):
    """A directory of Parquet files, one for each commit that had rows.

    Parameters
    ----------
    path
        Of the directory, which is made if it is not there.
    kind
        The type of the rows.
    position
        What the last commit gave: later files are removed. Without one all are.

    Raises
    ------
    ParameterError
        If a file stands under the name, or the directory cannot be made.
    StateError
        If there are fewer files than the position says, or the last one is another.
    """

    def __init__(self, path: str, kind: type[msgspec.Struct], position: Position | None) -> None:
        self._path, self._kind = Path(path), kind
        self._parts = position["parts"] if position else 0
        self._part: WholeParquet | None = None
        if self._path.is_file():
            msg = f"output {path} is a file, and a run that can be resumed writes a directory of "
            msg += "Parquet files; name another, or a .jsonl file"
            raise ParameterError(msg)
        require_directory(path, self._path.parent)
        self._path.mkdir(exist_ok=True)
        there = sorted(self._path.glob(PARTS))
        if [part.name for part in there[: self._parts]] != [*map(_name, range(self._parts))]:
            msg = f"output {path} lacks some of the {self._parts} files that were committed; "
            msg += "put them back, or remove state and outputs to start anew"
            raise StateError(msg)
        self._last = self._footer()
        if position and self._last != position["last"]:
            msg = f"output {path}: {_name(self._parts - 1)} is not what was written before; "
            msg += "put the file back, or remove state and outputs to start anew"
            raise StateError(msg)
        for part in there[self._parts :]:
            part.unlink()
        sync_directory(self._path)

    def write(self, rows: Sequence[msgspec.Struct]) -> None:
        """Take some rows."""
        if self._part is None and rows:
            self._part = WholeParquet(
                str(self._path / _name(self._parts)), self._kind, derived=True
            )
        if self._part is not None:
            self._part.write(rows)

    def commit(self) -> Position:
        """Complete a file of all rows since the last one, and say how many there are."""
        if self._part is not None:
            self._part.close()
            self._part = None
            self._parts += 1
            self._last = self._footer()
        return {"parts": self._parts, "last": self._last}

    def _footer(self) -> str:
        """Give the hash of the end of the last file, which says where all its values are."""
        if not self._parts:
            return ""
        part = self._path / _name(self._parts - 1)
        return last_block(part, part.stat().st_size)

    def close(self) -> None:
        """Commit, and take no more."""
        self.commit()

    def discard(self) -> None:
        """Remove the file that is not complete."""
        if self._part is not None:
            self._part.discard()


def _name(part: int) -> str:
    return f"part-{part:08d}.parquet"
