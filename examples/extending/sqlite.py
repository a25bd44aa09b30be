"""A table of SQLite as a source."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from abers_connectors.mapping import columns_of
from abers_connectors.sources.base import Origin, batch_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.sources.base import Batch, Position, SourceOptions

__all__ = ["SqliteSource"]

SIZE = 5000


class SqliteSource:
    """The rows of a table, by rowid: "sqlite://FILE/TABLE"."""

    def __init__(self, name: str, options: SourceOptions) -> None:
        self.name = name
        self._path, _, self._table = name.removeprefix("sqlite://").rpartition("/")
        self._schema = options.schema()

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches after a position, which is a rowid."""
        last = position["rowid"] if position else 0
        quoted = self._table.replace('"', '""')
        query = f'SELECT rowid, * FROM "{quoted}" WHERE rowid > ? ORDER BY rowid'  # noqa: S608 - quoted
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            found = database.execute(query, (last,))
            while records := [dict(row) for row in found.fetchmany(SIZE)]:
                yield self._batch(records)

    def fraction(self) -> float | None:
        """Return None: the number of rows is not known."""
        return None

    def _batch(self, records: list[dict[str, Any]]) -> Batch:
        def origin(row: int) -> Origin:
            raw = json.dumps(records[row], default=repr)
            return Origin(f"{self.name} row {records[row]['rowid']}", raw)

        numbers = [record["rowid"] for record in records]
        reading = self._schema.read(columns_of(records, self._schema.reads), numbers)
        return batch_of(reading, range(len(records)), {}, origin, {"rowid": numbers[-1]})
