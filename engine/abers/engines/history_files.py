"""Parquet files of a history: which there are, what is in each, and their rows."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from abers.arrow_values import require_pyarrow
from abers.engines.history import grouped_rows, require_fields
from abers.exceptions import MissingExtraError, ParameterError, RecordError
from abers.stream.arrow_columns import is_text
from abers.stream.arrow_fields import models_and_times, needed_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from abers.arrays import Integers
    from abers.stream.arrow_fields import FieldNames
    from abers.stream.column_types import Column

__all__ = ["FileContent", "HistoryFile", "ModelRows", "file_system", "list_files"]

_BATCH_ROWS = 65_536
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class ModelRows(NamedTuple):
    """The rows of a model in a file."""

    rows: int
    first: int | None  # event time; None if no row has one
    last: int | None


class FileContent(NamedTuple):
    """What is in a file: types of the columns that are read, and the rows of each model."""

    types: dict[str, str]
    models: dict[str, ModelRows]


def file_system(path: str | Path) -> tuple[Any, str]:
    """Return the file system of a path or URL, of fsspec, and the path in it."""
    try:
        core = import_module("fsspec.core")
        found: tuple[Any, str] = core.url_to_fs(str(path))
    except ImportError as error:
        msg = f"{path} needs a library: {error}; pip install it, or abers[files]"
        raise MissingExtraError(msg) from error
    return found


def list_files(data: str | Path | Sequence[str | Path]) -> list[HistoryFile]:
    """Return the Parquet files of a folder, a pattern, or a list of files, by path.

    Raises
    ------
    ParameterError
        If there are no files.
    """
    found = []
    for name in [data] if isinstance(data, (str, Path)) else data:
        files, path = file_system(name)
        for root in sorted(files.glob(path)) if "*" in path else [path.rstrip("/")]:
            inside = sorted(files.find(root)) if files.isdir(root) else [root]
            kept = [one for one in inside if one == root or _is_read(one.removeprefix(root))]
            found += [HistoryFile(files.unstrip_protocol(one), _partition(one)) for one in kept]
    if not found:
        msg = f"{data} has no files that end in .parquet; name a folder or files that do"
        raise ParameterError(msg)
    return found


def _is_read(path: str) -> bool:
    """Return whether a path is of a Parquet file that is neither hidden nor a mark."""
    return path.endswith(".parquet") and not any(
        part.startswith((".", "_")) for part in path.split("/")
    )


def _partition(path: str) -> dict[str, str | None]:
    """Return the columns that the folders of a path name, as Hive writes them."""
    pairs = [part.partition("=") for part in path.split("/")[:-1] if "=" in part]
    return {name: None if value == _NO_VALUE else unquote(value) for name, _, value in pairs}


@dataclass(frozen=True)
class HistoryFile:
    """A Parquet file, and the columns that its folders name."""

    path: str
    partition: Mapping[str, str | None] = field(hash=False)

    def content(self, fields: FieldNames | None) -> FileContent:
        """Read models and times of all rows.

        Raises
        ------
        RecordError
            If the file cannot be read, lies in the folder of another model, or a row is before
            another of its model.
        ParameterError
            If a column is missing, or of a type that cannot be meant.
        """
        with self._opened(fields) as file:
            names = needed_columns(self._names(file), fields)
            table = require_pyarrow().Table.from_batches(
                [*self._rows(file, needed_columns(names, fields, ("model", "time")))]
            )
            schema = file.schema_arrow
        for name in names:
            if name not in schema.names:
                schema = schema.append(require_pyarrow().field(name, "string"))
        try:
            require_fields(schema, fields)
            models, times = models_and_times(table, fields)
        except ParameterError as error:
            msg = f"{self.path}: {error}"
            raise ParameterError(msg) from None
        types = {name: _type_name(schema.field(name).type) for name in names}
        numbered = require_pyarrow().table({"row": np.arange(len(models))})
        found = {
            model: self._model_rows(model, times, rows.column("row").to_numpy())
            for model, rows in grouped_rows(numbered, models)
        }
        self._require_place(found, (fields or {}).get("model", "model"))
        return FileContent(types, found)

    def batches(self, fields: FieldNames | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows in record batches, with the columns that the fields are in."""
        with self._opened(fields) as file:
            yield from self._rows(file, needed_columns(self._names(file), fields))

    def _names(self, file: Any) -> list[str]:  # noqa: ANN401 - of pyarrow
        return [*dict.fromkeys([*file.schema_arrow.names, *self.partition])]

    def _rows(self, file: Any, names: Sequence[str]) -> Iterator[pa.RecordBatch]:  # noqa: ANN401
        arrow = require_pyarrow()
        own = [name for name in names if name in file.schema_arrow.names]
        added = {name: self.partition[name] for name in names if name not in own}
        # One core is that of the task.
        for batch in file.iter_batches(_BATCH_ROWS, columns=own, use_threads=False):
            for name, value in added.items():
                texts = arrow.repeat(arrow.scalar(value, arrow.string()), len(batch))
                batch = batch.append_column(name, texts)  # noqa: PLW2901
            yield batch

    def _model_rows(self, model: str, times: Column, rows: Integers) -> ModelRows:
        size, own = len(rows), times[rows]
        if own.dtype.kind == "O":
            rows = rows[np.not_equal(own, None)]
            own = times[rows].astype(np.int64)
        if (back := np.flatnonzero(own[1:] < own[:-1])).size:
            row = int(back[0]) + 1
            msg = f"{self.path} row {rows[row] + 1}: model {model!r} is at {own[row]}, after its "
            msg += f"row at {own[row - 1]}; sort the rows of the file by time"
            raise RecordError(msg)
        ends = (int(own[0]), int(own[-1])) if len(own) else (None, None)
        return ModelRows(size, *ends)

    def _require_place(self, models: Iterable[str], name: object) -> None:
        """Raise a RecordError if rows are of another model than the folder says."""
        folder = self.partition.get(str(name))
        for model in models:
            if folder is not None and model != folder:
                msg = f"{self.path} has rows of model {model!r}, but its folder is of {folder!r}; "
                msg += "move them to the folder of their model"
                raise RecordError(msg)

    @contextmanager
    def _opened(self, fields: FieldNames | None) -> Iterator[Any]:
        """Open the file; errors of reading name it."""
        arrow = require_pyarrow()
        files, path = file_system(self.path)
        try:
            with files.open(path, "rb") as raw:
                file = require_pyarrow("pyarrow.parquet").ParquetFile(raw)
                name = (fields or {}).get("model", "model")
                if name in file.schema_arrow.names and is_text(file.schema_arrow.field(name).type):
                    # Models are few: read as a dictionary they take a fraction of the time.
                    file = require_pyarrow("pyarrow.parquet").ParquetFile(
                        raw, metadata=file.metadata, read_dictionary=[name]
                    )
                yield file
        except FileNotFoundError as error:
            msg = f"{self.path} is not there any more; start again when nothing changes the history"
            raise RecordError(msg) from error
        except arrow.ArrowException as error:
            msg = f"{self.path} cannot be read as Parquet ({error}); write it again, or move it"
            raise RecordError(msg) from error


def _type_name(kind: pa.DataType) -> str:
    """Return the type of a column as it counts: a dictionary is one of its values."""
    return str(kind.value_type if require_pyarrow().types.is_dictionary(kind) else kind)
