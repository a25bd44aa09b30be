"""The files of a data set by its name: plain files, a Delta Lake table, or an Iceberg table.

A version of a table is pinned when its files are listed. A writer may go on meanwhile.
"""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.exceptions import ParameterError, RecordError
from abers.stream.arrow_columns import is_moment, is_text
from abers.stream.schema_columns import DEFAULT_MODEL
from abers_connectors.extras import extra
from abers_connectors.files.formats import local_path, scheme_of
from abers_connectors.regular_files import irregular
from abers_connectors.sources.data_files import DataFile, FileList, files_of_name, is_folder
from abers_connectors.sources.file_columns import NamedColumns
from abers_connectors.sources.iceberg_columns import IcebergColumns, IcebergTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from abers_connectors.sources.row_groups import Part

__all__ = ["table_files"]

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
