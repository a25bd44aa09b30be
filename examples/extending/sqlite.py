"""A table of SQLite as a source."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from abers_connectors.mapping.bad_record import BadRecordError
from abers_connectors.mapping.rows import events_of
from abers_connectors.sources.base import BadRecord, Batch, Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.mapping.rows import Row
    from abers_connectors.sources.base import Position, SourceOptions

__all__ = ["SqliteSource"]

SIZE = 5000


class SqliteSource:
    """The rows of a table, by rowid: "sqlite://FILE/TABLE"."""

    def __init__(self, name: str, options: SourceOptions) -> None:
        self.name = name
        self._path, _, self._table = name.removeprefix("sqlite://").rpartition("/")
        self._mapper = options.mapper()

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
        rows: list[Row] = []
        bad, origins = [], []
        for record in records:
            origin = Origin(f"{self.name} row {record['rowid']}", json.dumps(record, default=repr))
            try:
                rows.append(self._mapper.row(record, record["rowid"]))
                origins.append(origin)
            except BadRecordError as error:
                bad.append(BadRecord.of(len(rows), error, origin))
        position = {"rowid": records[-1]["rowid"]}
        return Batch(events_of(rows), bad, position, len(records), origins.__getitem__)
