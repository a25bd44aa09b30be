"""The files of a data set by its name: plain files, a Delta Lake table, or an Iceberg table.

The columns of an Iceberg table in one of its files, found by their ids. A name may have belonged to
another column when the file was written. What a row has in the end is decided by PyIceberg.

The columns of a table in one of its files. A column may have another place in the file, or none:
the path of the file, or the log of the table, has the value of all rows then, or the column is
younger than the file.

The Parquet files of a folder, a pattern or a bucket, as they are when they are listed. Files that
are added later are not read. Names that begin with "_" or "." are those of files that are being
written, and of marks next to them, as in Spark and Hive.

A version of a table is pinned when its files are listed. A writer may go on meanwhile.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from glob import escape
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import unquote

import numpy as np

from abers.exceptions import MissingExtraError, ParameterError, RecordError
from abers.stream.arrow_columns import is_moment, is_text, new_array
from abers.stream.schema_columns import DEFAULT_MODEL
from abers_connectors.extras import extra
from abers_connectors.files import SUFFIXES, local_path, scheme_of
from abers_connectors.regular_files import irregular, open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from abers_connectors.sources.time_range import Part

__all__ = [
    "DataFile",
    "FileColumns",
    "FileList",
    "files_of_name",
    "is_folder",
    "is_table",
    "table_files",
]


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


_NULL = "__HIVE_DEFAULT_PARTITION__"
_LIBRARIES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}


class DataFile(NamedTuple):
    """A Parquet file."""

    name: str  # for messages
    open: Callable[[], Any]  # returns a file that can be read and sought in
    columns: Callable[[pa.Schema], FileColumns]  # of the table, by the columns of the file
    partition: Mapping[str, str | None] = {}  # values of columns by its path
    size: int = 0


class FileList(NamedTuple):
    """The files of a data set, and what identifies them."""

    files: list[DataFile]
    version: str  # of the table, or a digest of names and sizes


def files_of_name(name: str) -> FileList:
    """List the Parquet files that a path, a pattern or a URL names, in the order of their names.

    Raises
    ------
    ParameterError
        If there are no files.
    MissingExtraError
        If the library of a bucket is not installed.
    RecordError
        If the bucket cannot be read, or something else stands in the place of a file.
    """
    files, path = _filesystem(name)
    with _listing(name):
        found = _sizes(files, path)
    if not found:
        what = "is a directory without" if Path(name).is_dir() else "names no"
        msg = (
            f"{name} {what} Parquet file; name a folder, a pattern or a URL of .parquet files, or "
        )
        msg += "name a CSV or JSON Lines file in it"
        raise ParameterError(msg)
    local = local_path(name) is not None
    for one in found if local else ():
        if problem := irregular(one):
            msg = f"{one} {problem}"
            raise RecordError(msg)
    prefix = "" if local else f"{scheme_of(name)}://"
    listed = []
    for one, size in sorted(found.items()):
        opener = partial(open_regular, one) if local else _opener(files, one)
        partition = partition_of(one.split("/")[:-1])
        columns = partial(path_columns, partition=partition)
        listed.append(DataFile(f"{prefix}{one}", opener, columns, partition, size))
    return FileList(listed, _digest(f"{one} {size}" for one, size in sorted(found.items())))


def is_table(name: str) -> bool:
    """Return whether a name is that of a folder, or a pattern of files, on this machine.

    Examples
    --------
    >>> is_table("/"), is_table("history/*.parquet"), is_table("scores.csv")
    (True, True, False)
    """
    if scheme_of(name) is not None:
        return False
    path = Path(name)
    try:
        folder, there = path.is_dir(), path.exists()
    except OSError:  # such as a name that is too long
        return False
    if folder:
        return SUFFIXES.get(path.suffix.lower(), "parquet") == "parquet"
    return _has_magic(name) and not there


def is_folder(name: str, below: str) -> bool:
    """Return whether a path or URL has a folder of this name in it."""
    files, path = _filesystem(name)
    with _listing(name):
        return bool(files.isdir(f"{path.rstrip('/')}/{below}"))


def partition_of(folders: Iterable[str]) -> dict[str, str | None]:
    """Return the values of columns that folders such as "model=fraud" have.

    Two values of one column are a RecordError.

    Examples
    --------
    >>> partition_of(["data", "model=card%20fraud", "day=__HIVE_DEFAULT_PARTITION__"])
    {'model': 'card fraud', 'day': None}
    """
    found: dict[str, str | None] = {}
    for folder in folders:
        name, given, value = folder.partition("=")
        if (key := unquote(name)) in found and given:
            msg = f"two folders of a path have the name {key}, the second one {folder}; rename one"
            raise RecordError(msg)
        if given:
            found[key] = None if value == _NULL else unquote(value)
    return found


def _filesystem(name: str) -> tuple[Any, str]:
    if (local := local_path(name)) is not None:
        return extra("fsspec", "a data set", "files").filesystem("file"), str(
            Path(local).absolute()
        )
    core = extra("fsspec.core", "a data set", "files")
    scheme = scheme_of(name)
    try:
        files, path = core.url_to_fs(name)
    except ImportError as error:
        library = _LIBRARIES.get(scheme or "", "another library")
        msg = f"{name}: {scheme}:// needs {library}, which is not installed; run: "
        msg += f"pip install {library}"
        raise MissingExtraError(msg) from error
    except ValueError as error:
        msg = f"{name}: {error}"
        raise ParameterError(msg) from None
    files.invalidate_cache()
    return files, str(path)


@contextmanager
def _listing(name: str) -> Iterator[None]:
    """Turn any error of a storage, which may be of a library of its own, into a RecordError."""
    try:
        yield
    except Exception as error:
        msg = f"{name} cannot be listed ({error}); see that it is there and may be read"
        raise RecordError(msg) from error


def _sizes(files: Any, path: str) -> dict[str, int]:  # noqa: ANN401 - fsspec is untyped
    """Return the sizes of the data files below a path, or below those that match a pattern."""
    found: dict[str, int] = {}
    for folder in _named(files, path):
        alone = not files.isdir(folder)
        base = folder.rsplit("/", 1)[0] if alone else folder.rstrip("/")
        listed = {folder: files.info(folder)} if alone else files.find(folder, detail=True)
        for file, info in listed.items():
            if _is_data(file.removeprefix(base)):
                found[file] = int(info["size"] or 0)
    return found


def _named(files: Any, path: str) -> list[str]:  # noqa: ANN401
    """Return what a path or a pattern names; a part that exists under its name is no pattern."""
    parts = path.split("/")
    for number, part in enumerate(parts):
        if _has_magic(part) and not files.exists("/".join(parts[: number + 1])):
            found: list[str] = files.glob("/".join([*map(escape, parts[:number]), *parts[number:]]))
            return found
    return [path]


def _has_magic(path: str) -> bool:
    return any(mark in path for mark in "*?[")


def _is_data(below: str) -> bool:
    """Return whether a path below a folder is that of data: named .parquet, and not hidden."""
    parts = below.strip("/").split("/")
    hidden = any(part.startswith(("_", ".")) and "=" not in part for part in parts)
    return not hidden and below.lower().endswith((".parquet", ".parq"))


def _opener(files: Any, path: str) -> Callable[[], Any]:  # noqa: ANN401
    def opened() -> Any:  # noqa: ANN401
        try:
            return files.open(path, "rb")
        except OSError:
            raise
        except Exception as error:  # of a library of its own
            raise OSError(str(error)) from error

    return opened


def _digest(lines: Iterable[str]) -> str:
    return blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def table_files(
    name: str, part: Part, time: str, model: str, version: str | None = None
) -> FileList:
    """Return the files of a data set, without those that surely lie outside a part.

    Parameters
    ----------
    name
        A path, a pattern, a URL of files or of a Delta Lake table, or "iceberg://CATALOG/TABLE".
    part
        The part that is wanted.
    time, model
        Columns of event times and of models.
    version
        Version of a table, by default the newest.
    """
    if scheme_of(name) == "iceberg":
        return _iceberg(name, part, time, model, version)
    if is_folder(name, "_delta_log"):
        return _delta(name, part, time, model, version)
    files, found = files_of_name(name)
    wanted = [one for one in files if _in_path(one, part, model)]
    return FileList(wanted, found)


def _in_path(file: DataFile, part: Part, model: str) -> bool:
    """Return whether the path of a file does not exclude it."""
    if not part.models or model not in file.partition:
        return True
    return file.partition[model] in {*part.models} or not file.partition[model]


def _delta(name: str, part: Part, time: str, model: str, version: str | None) -> FileList:
    """List the files of a Delta Lake table by its log; its statistics exclude some."""
    root = local_path(name)
    for one in Path(root, "_delta_log").iterdir() if root is not None else ():
        _require_regular(str(one))
    lake = extra("deltalake", "Delta Lake", "delta")
    keys = extra("pyarrow.dataset", "Delta Lake").get_partition_keys
    try:
        table = lake.DeltaTable(root or name, version=None if version is None else int(version))
        dataset = table.to_pyarrow_dataset()
    except (lake.exceptions.DeltaError, OSError, ValueError) as error:
        msg = f"{name}: the Delta Lake table cannot be read ({error})"
        raise RecordError(msg) from error
    wanted = None
    for one in _delta_filters(dataset.schema, part, time, model):
        wanted = one if wanted is None else wanted & one
    files = []
    for one in dataset.get_fragments(filter=wanted):
        of = partial(_delta_columns, table=dataset.schema, values=keys(one.partition_expression))
        files.append(DataFile(f"{name.rstrip('/')}/{one.path}", _delta_opener(one, root), of))
    return FileList(sorted(files, key=lambda one: one.name), str(table.version()))


def _delta_columns(file: pa.Schema, table: pa.Schema, values: Mapping[str, Any]) -> NamedColumns:
    """Return the columns of a file: the log has some values, and other columns may be younger."""
    scalar, constants = extra("pyarrow", "Delta Lake").scalar, {}
    for field in table:
        if field.name in values or field.name not in file.names:
            constants[field.name] = scalar(values.get(field.name), field.type)
    return NamedColumns(file, constants)


def _delta_opener(fragment: Any, root: str | None) -> Callable[[], Any]:  # noqa: ANN401 - pyarrow is untyped
    def opened() -> Any:  # noqa: ANN401
        if root is not None:
            _require_regular(str(Path(root, fragment.path)))
        return fragment.filesystem.open_input_file(fragment.path)

    return opened


def _require_regular(path: str) -> None:
    """Raise a RecordError for what the library of a table would wait in."""
    if what := irregular(path):
        msg = f"{path} {what}"
        raise RecordError(msg)


def _delta_filters(schema: Any, part: Part, time: str, model: str) -> list[Any]:  # noqa: ANN401
    """Return the conditions of a part as expressions of pyarrow."""
    arrow, field = extra("pyarrow", "Delta Lake"), extra("pyarrow.dataset", "Delta Lake").field
    found = []
    if time in schema.names:
        kind = schema.field(time).type
        zoned = is_moment(kind)
        ends = (part.since, part.until) if zoned or arrow.types.is_integer(kind) else (None, None)
        since, until = [_moment(end) if zoned and end is not None else end for end in ends]
        found += [] if since is None else [field(time) >= since]
        found += [] if until is None else [field(time) < until]
    named = part.models and DEFAULT_MODEL not in part.models
    if named and model in schema.names and is_text(schema.field(model).type):
        found.append(field(model).isin([*part.models]))
    return found


def _iceberg(name: str, part: Part, time: str, model: str, version: str | None) -> FileList:
    """List the files of a snapshot of an Iceberg table, with statistics that exclude some."""
    catalogs = extra("pyiceberg.catalog", "Iceberg", "iceberg")
    catalog, _, table_name = name.removeprefix("iceberg://").partition("/")
    if not table_name:
        msg = f"{name}: write iceberg://CATALOG/NAMESPACE.TABLE, with a catalog of PyIceberg"
        raise ParameterError(msg)
    try:
        with closing(catalogs.load_catalog(catalog)) as opened:
            table = opened.load_table(table_name)
            pinned = _Pinned.of(table, version)
            wanted = _iceberg_filter(table.schema(), pinned.schema, part, time, model)
            tasks = [*table.scan(wanted, snapshot_id=pinned.snapshot).plan_files()]
    except Exception as error:  # a catalog may raise anything
        msg = f"{name}: the Iceberg table cannot be read ({error}); see that the catalog is "
        msg += "configured for PyIceberg, and the table is there"
        raise RecordError(msg) from error
    for task in tasks:
        if task.delete_files:
            msg = f"{name}: rows of {task.file.file_path} are deleted by files of their own, which "
            msg += "abers does not read; rewrite the data files of the table (rewrite_data_files)"
            raise RecordError(msg)
    of = IcebergTable(pinned.schema, table.name_mapping(), table.format_version)
    files = []
    for one in (task.file for task in tasks):
        columns = partial(IcebergColumns, table=of, constants=_iceberg_values(table, one))
        files.append(DataFile(one.file_path, _iceberg_opener(table, one.file_path), columns))
    return FileList(sorted(files, key=lambda one: one.name), pinned.version)


class _Pinned(NamedTuple):
    """What is read of an Iceberg table: renamed columns leave the snapshot as it is."""

    snapshot: int | None  # None if the table is empty
    schema: Any

    @classmethod
    def of(cls, table: Any, version: str | None) -> _Pinned:  # noqa: ANN401
        """Return what a version names, by default the newest."""
        if version is None:
            snapshot = table.current_snapshot()
            return cls(snapshot and snapshot.snapshot_id, table.schema())
        number, _, schema = version.partition("/")
        return cls(int(number) if number.isdigit() else None, table.schemas()[int(schema)])

    @property
    def version(self) -> str:
        """The version, by which a later run finds it again."""
        return f"{self.snapshot}/{self.schema.schema_id}"


def _iceberg_values(table: Any, file: Any) -> dict[int, Any]:  # noqa: ANN401
    """Return the values of columns that the table has for a file, by their ids."""
    same = extra("pyiceberg.transforms", "Iceberg").IdentityTransform
    fields = table.specs()[file.spec_id].fields
    return {
        field.source_id: file.partition[number]
        for number, field in enumerate(fields)
        if isinstance(field.transform, same)
    }


def _iceberg_opener(table: Any, path: str) -> Callable[[], Any]:  # noqa: ANN401
    def opened() -> Any:  # noqa: ANN401
        if scheme_of(path) in {None, "file"}:
            _require_regular(path.removeprefix("file://"))  # which PyIceberg does not quote
        return table.io.new_input(path).open()

    return opened


def _iceberg_filter(now: Any, schema: Any, part: Part, time: str, model: str) -> Any:  # noqa: ANN401
    """Return a part as an expression of PyIceberg, with the names that columns have now."""
    is_, types = extra("pyiceberg.expressions", "Iceberg"), extra("pyiceberg.types", "Iceberg")
    found = is_.AlwaysTrue()
    for one in schema.fields:
        if (name := now.find_column_name(one.field_id)) is None:
            continue  # it was dropped
        zoned = isinstance(one.field_type, types.TimestamptzType)
        if one.name == time and (zoned or isinstance(one.field_type, types.LongType)):
            ends = ((part.since, is_.GreaterThanOrEqual), (part.until, is_.LessThan))
            for end, condition in ends:
                if end is not None:
                    value = _moment(end).isoformat() if zoned else end
                    found = is_.And(found, condition(name, value))
        named = part.models and DEFAULT_MODEL not in part.models
        if one.name == model and named and isinstance(one.field_type, types.StringType):
            found = is_.And(found, is_.In(name, [*part.models]))
    return found


def _moment(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)
