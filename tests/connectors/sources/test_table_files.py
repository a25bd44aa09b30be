"""Tables of Delta Lake and Iceberg, written by their own libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from tests.connectors.sources.lakes import START, events_of, history, local_catalog

from abers import ParameterError, RecordError
from abers.stream.cells import Fields
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.registry import open_source
from abers_connectors.sources.table_files import table_files
from abers_connectors.sources.time_range import Part

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

deltalake: Any = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg.catalog")

PART = Part(START + 10_000, START + 25_000, ("m1",))
WANTED = [f"a{row}" for row in range(10, 25) if row % 3 == 1]


def wanted(name: str) -> list[str]:
    """Return the ids of the part, of which no file outside was read."""
    found = events_of(name, PART)
    assert len(found) < 60
    ends = START + 10_000, START + 25_000
    return [one.id for one in found if ends[0] <= one.time < ends[1] and one.model == "m1"]


@pytest.fixture(params=[False, True])
def table(request: pytest.FixtureRequest) -> Any:  # noqa: ANN401 - pyarrow is untyped
    """Return a history whose times are integers, or timestamps."""
    return history(zoned=request.param)


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a catalog in a file, which the environment configures."""
    with local_catalog(tmp_path, monkeypatch) as found:
        yield found


def test_delta(tmp_path: Path, table: Any) -> None:  # noqa: ANN401
    """A Delta Lake table is read in the order of time, and only its files with the part."""
    for start in range(0, 60, 20):
        part = table.slice(start, 20)
        deltalake.write_deltalake(tmp_path, part, mode="append", partition_by=["model"])
    for name in (str(tmp_path), f"file://{tmp_path}"):
        assert [event.id for event in events_of(name)] == table["id"].to_pylist()
        assert wanted(name) == WANTED
    assert len(table_files(str(tmp_path), PART, "time", "model").files) == 2


def test_delta_in_a_folder_of_any_name(tmp_path: Path) -> None:
    """A table is found in a folder with brackets, spaces and other signs, also by its URL."""
    folder = tmp_path / "run [1] 100 %"
    deltalake.write_deltalake(tmp_path / "plain", history(), partition_by=["model"])
    (tmp_path / "plain").rename(folder)
    for name in (str(folder), f"file://{quote(str(folder))}"):
        assert [event.id for event in events_of(name)] == history()["id"].to_pylist()


def test_delta_is_pinned(tmp_path: Path) -> None:
    """What is written meanwhile is not read, and a position goes on in its version."""
    deltalake.write_deltalake(tmp_path, history())
    source = open_source(str(tmp_path), SourceOptions())
    batches = source.batches()
    first = next(batches)
    deltalake.write_deltalake(tmp_path, history(), mode="append")
    assert len(first.events) + sum(len(batch.events) for batch in batches) == 60
    assert first.position["version"] == "0"
    start = {"records": 0, "version": "0"}
    again = open_source(str(tmp_path), SourceOptions()).batches(start)
    assert sum(len(batch.events) for batch in again) == 60
    assert len(events_of(str(tmp_path))) == 120


def test_delta_that_is_damaged(tmp_path: Path) -> None:
    """A table whose log cannot be read is an error with its name."""
    deltalake.write_deltalake(tmp_path, history())
    for one in (tmp_path / "_delta_log").iterdir():
        one.unlink()
    with pytest.raises(RecordError, match="the Delta Lake table cannot be read"):
        events_of(str(tmp_path))


@pytest.mark.parametrize("kind", [pa.int64(), pa.date32(), pa.bool_(), pa.string()])
def test_values_of_delta_partitions(tmp_path: Path, kind: Any) -> None:  # noqa: ANN401
    """A column that the log has is one of its type in the table, as if the files had it."""
    pieces = [pa.array([None, 1, 0][row % 3] for row in range(60))]
    column = pieces[0].cast(pa.int32()).cast(kind) if kind != pa.string() else pieces[0].cast(kind)
    table = history().append_column("group", column)
    deltalake.write_deltalake(tmp_path / "whole", table)
    deltalake.write_deltalake(tmp_path / "parts", table, partition_by=["group"])
    found = []
    for name in ("whole", "parts"):
        source = open_source(
            str(tmp_path / name), SourceOptions(fields=Fields(passthrough=["group"]))
        )
        events = [event for batch in source.batches() for event in batch.events]
        found.append({event.id: event.extra for event in events})  # type: ignore[union-attr]
    assert found[0] == found[1]
    assert len(found[0]) == 60


def test_columns_that_are_younger_than_a_delta_file(tmp_path: Path) -> None:
    """Rows of a file without a column of the table have no value, as Delta Lake reads them."""
    table = history()
    deltalake.write_deltalake(tmp_path, table.slice(0, 20).drop_columns("model"))
    deltalake.write_deltalake(tmp_path, table.slice(20), mode="append", schema_mode="merge")
    models = [event.model for event in events_of(str(tmp_path))]
    assert models == ["default"] * 20 + table["model"].to_pylist()[20:]


def test_models_of_delta_that_are_numbers(tmp_path: Path) -> None:
    """A part names models by their digits where the table has whole numbers."""
    numbers = pa.array(row % 3 for row in range(60))
    table = history().set_column(2, "model", numbers)
    deltalake.write_deltalake(tmp_path, table, partition_by=["model"])
    part = [one for one in events_of(str(tmp_path), Part(models=("1",))) if one.model == "1"]
    assert len(part) == 20


def test_iceberg(catalog: Any, table: Any) -> None:  # noqa: ANN401
    """An Iceberg table is read in the order of time, and only its files with the part."""
    made = catalog.create_table("risk.history", table.schema)
    for start in range(0, 60, 20):
        made.append(table.slice(start, 20))
    name = "iceberg://local/risk.history"
    assert [event.id for event in events_of(name)] == table["id"].to_pylist()
    assert wanted(name) == WANTED
    assert len(table_files(name, PART, "time", "model").files) == 2


def test_iceberg_is_pinned(catalog: Any) -> None:  # noqa: ANN401
    """What is written while the table is read is not read."""
    made = catalog.create_table("risk.history", history().schema)
    made.append(history())
    batches = open_source("iceberg://local/risk.history", SourceOptions()).batches()
    first = next(batches)
    made.append(history())
    assert len(first.events) + sum(len(batch.events) for batch in batches) == 60
    assert first.position["version"] != str(made.current_snapshot().snapshot_id)


def test_iceberg_that_is_not_there(catalog: Any) -> None:  # noqa: ANN401
    """A missing table, an empty one and a name without one are errors."""
    with pytest.raises(RecordError, match="the Iceberg table cannot be read"):
        events_of("iceberg://local/risk.history")
    with pytest.raises(ParameterError, match=r"write iceberg://CATALOG/NAMESPACE\.TABLE"):
        events_of("iceberg://local")
    catalog.create_table("risk.history", history().schema)
    assert events_of("iceberg://local/risk.history") == []
