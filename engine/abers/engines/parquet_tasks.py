"""Tasks of a job on Parquet files: each may be killed and done again, by two workers at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from abers.arrow_values import require_pyarrow
from abers.engines.history import CHUNK_ROWS, chunks, grouped_rows, process_history
from abers.engines.history_files import file_system
from abers.engines.part_files import HistoryTotals, hidden_name, write_parts
from abers.exceptions import RecordError
from abers.stream.arrow_fields import models_and_times

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from abers.engines.history_files import FileContent, HistoryFile
    from abers.stream.arrow_fields import FieldNames
    from abers.stream.settings import Settings

__all__ = ["ContentTask", "ShardTask", "SplitTask"]


@dataclass(frozen=True)
class ContentTask:
    """Read which models and times are in a file."""

    file: HistoryFile
    fields: FieldNames | None

    def __call__(self) -> FileContent:
        """Return the content."""
        return self.file.content(self.fields)


@dataclass(frozen=True)
class SplitTask:
    """Split a file of models of several shards into a file for each shard."""

    file: HistoryFile
    shards: dict[str, int]  # by model
    folder: str
    fields: FieldNames | None

    def __call__(self) -> None:
        """Write the files, which appear when they are complete."""
        arrow = require_pyarrow()
        files, folder = file_system(self.folder)
        writers: dict[int, tuple[str, Any, Any]] = {}
        for table in chunks(self.file.batches(self.fields), CHUNK_ROWS):
            models, _ = models_and_times(table, self.fields)
            for shard, rows in grouped_rows(table, [self.shards.get(one) for one in models]):
                if shard is None:
                    raise _changed(self.file.path)
                if shard not in writers:
                    path = f"{folder}/{hidden_name(f'shard-{shard:05}')}"
                    raw = files.open(path, "wb")
                    writers[shard] = path, raw, arrow.ipc.new_stream(raw, rows.schema)
                writers[shard][2].write_table(rows)
        for shard, (path, raw, writer) in writers.items():
            writer.close()
            raw.close()
            files.mv(path, _split_name(folder, shard))


@dataclass(frozen=True)
class ShardTask:
    """Process the models of a shard, and write their outputs."""

    shard: int
    sources: list[HistoryFile | str]  # files of this shard alone, and folders of split files
    rows: int
    settings: Settings
    fields: FieldNames | None
    outcomes: bool
    output: str

    def __call__(self) -> HistoryTotals:
        """Return what was read and written."""
        files, folder = file_system(self.output)
        outputs = process_history(
            self._batches(), self.settings, self.fields, outcomes=self.outcomes
        )
        written = write_parts(outputs, files, folder, f"part-{self.shard:05}.parquet")
        return written._replace(rows=self.rows)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        rows = 0
        for source in self.sources:
            batches = (
                self._split(source) if isinstance(source, str) else source.batches(self.fields)
            )
            for batch in batches:
                rows += len(batch)
                yield batch
        if rows != self.rows:
            named = f"shard {self.shard}, with {rows} instead of {self.rows} rows,"
            raise _changed(named)

    def _split(self, folder: str) -> Iterator[pa.RecordBatch]:
        files, path = file_system(folder)
        with files.open(_split_name(path, self.shard), "rb") as raw:
            yield from require_pyarrow().ipc.open_stream(raw)


def _split_name(folder: str, shard: int) -> str:
    return f"{folder}/shard-{shard:05}.arrows"


def _changed(what: str) -> RecordError:
    msg = f"{what} changed while it was read; start again when nothing writes the history"
    return RecordError(msg)
