"""Tables of Delta Lake and Iceberg, written by their own libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.sources.lakes import START, events_of, history

from abers import ParameterError, RecordError
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.registry import open_source
from abers_connectors.sources.row_groups import Part
from abers_connectors.sources.table_files import table_files

if TYPE_CHECKING:
    from pathlib import Path

deltalake: Any = pytest.importorskip("deltalake")
catalogs: Any = pytest.importorskip("pyiceberg.catalog")

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
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
    """Return a catalog in a file, which the environment configures."""
    settings = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}",
    }
    for key, value in settings.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LOCAL__{key.upper()}", value)
    # PyIceberg reads the environment once, when it is imported.
    config = pytest.importorskip("pyiceberg.utils.config")
    monkeypatch.setattr(catalogs, "_ENV_CONFIG", config.Config())
    found = catalogs.load_catalog("local", **settings)
    found.create_namespace("risk")
    yield found
    found.close()


def test_delta(tmp_path: Path, table: Any) -> None:  # noqa: ANN401
    """A Delta Lake table is read in the order of time, and only its files with the part."""
    for start in range(0, 60, 20):
        part = table.slice(start, 20)
        deltalake.write_deltalake(tmp_path, part, mode="append", partition_by=["model"])
    for name in (str(tmp_path), f"file://{tmp_path}"):
        assert [event.id for event in events_of(name)] == table["id"].to_pylist()
        assert wanted(name) == WANTED
    assert len(table_files(str(tmp_path), PART, "time", "model").files) == 2


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
