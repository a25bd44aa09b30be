"""The columns of an Iceberg table in one of its files, found by their ids.

A name may have belonged to another column when the file was written. What a row has in the end is
decided by PyIceberg.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.exceptions import RecordError
from abers_connectors.extras import extra

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pyarrow as pa

__all__ = ["IcebergColumns", "IcebergTable"]


class IcebergTable(NamedTuple):
    """What is pinned of a table, in types of PyIceberg."""

    schema: Any
    names: Any  # mapping of names to ids, for files without ids, or None
    version: int  # of the format

    @property
    def shortens(self) -> bool:
        """Whether nanoseconds become microseconds, since the format lacks them."""
        return self.version < 3  # noqa: PLR2004


class IcebergColumns:
    """Columns that have the same id in the file."""

    def __init__(self, file: pa.Schema, table: IcebergTable, constants: Mapping[int, Any]) -> None:
        self._io = extra("pyiceberg.io.pyarrow", "Iceberg", "iceberg")
        self._table, self._constants = table, constants
        with _resolving():
            self._file = self._io.pyarrow_to_schema(
                file, table.names, table.shortens, format_version=table.version
            )
        self.schema: pa.Schema = self._io.schema_to_pyarrow(table.schema, include_field_ids=False)

    def stored(self, name: str) -> str | None:
        """Return the path of a column in the file; None if its values are not there."""
        try:
            number = self._table.schema.find_field(name).field_id
        except ValueError:
            return None
        found: str | None = self._file.find_column_name(number)
        return found

    def needed(self, names: Collection[str]) -> list[str]:
        """Return which columns of the file hold some columns of the table."""
        wanted = {one.field_id for one in self._table.schema.fields if one.name in names}
        return [one.name for one in self._file.fields if one.field_id in wanted]

    def rows(self, read: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """Return some columns of the table from those of the file that they need."""
        schemas = extra("pyiceberg.schema", "Iceberg", "iceberg")
        projection = self._io.ArrowProjectionVisitor(
            self._file,
            self._table.shortens,
            projected_missing_fields=self._constants,
            allow_timestamp_tz_mismatch=True,
        )
        with _resolving():
            found = schemas.visit_with_partner(
                self._table.schema.select(*names),
                read,
                projection,
                self._io.ArrowAccessor(self._file),
            )
        rows: pa.RecordBatch = extra("pyarrow", "Iceberg").RecordBatch.from_struct_array(found)
        return rows


@contextmanager
def _resolving() -> Iterator[None]:
    """Turn what PyIceberg raises for a file that does not fit the table into a RecordError."""
    errors = extra("pyiceberg.exceptions", "Iceberg", "iceberg")
    try:
        yield
    except (ValueError, TypeError, errors.ResolveError) as error:
        msg = f"the file does not fit the schema of its Iceberg table ({error}); rewrite it"
        raise RecordError(msg) from error
