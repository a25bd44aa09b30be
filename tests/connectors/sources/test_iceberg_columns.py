"""Columns of Iceberg tables whose schema changed; PyIceberg's own scan is the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.connectors.sources.lakes import START, history, local_catalog

from abers import RecordError
from abers.stream.cells import Fields
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.registry import open_source
from abers_connectors.sources.time_range import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

types: Any = pytest.importorskip("pyiceberg.types")

NAME = "iceberg://local/risk.history"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a catalog in a file, which the environment configures."""
    with local_catalog(tmp_path, monkeypatch) as found:
        yield found


def nested(table: pa.Table) -> pa.Table:
    """Return a table with the score, and another number, in a struct."""
    inner = pa.StructArray.from_arrays(
        [table["score"].combine_chunks(), pa.array([0.75] * len(table))], ["score", "other"]
    )
    return table.drop_columns("score").append_column("payload", inner)


def read(fields: Fields | None = None, part: Part | None = None) -> dict[str, Any]:
    """Return the score and the model of each id, as abers reads them."""
    source: Any = open_source(NAME, SourceOptions(fields=fields or Fields()))
    if part is not None:
        source = source.within(part)
    events = [event for batch in source.batches() for event in batch.events]
    return {event.id: (event.score, event.model) for event in events}


def scanned(made: Any, score: str = "score") -> dict[str, Any]:  # noqa: ANN401
    """Return the score and the model of each id, as PyIceberg reads them."""
    found = {}
    for row in made.scan().to_arrow().to_pylist():
        value: Any = row
        for name in score.split("."):
            value = value[name]
        found[row["id"]] = (value, row["model"] or "default")
    return found


def swap(made: Any, one: str, other: str) -> None:  # noqa: ANN401
    """Rename two columns into each other."""
    for before, after in ((one, "spare"), (other, one), ("spare", other)):
        with made.update_schema() as update:
            update.rename_column(before, after.rpartition(".")[2])


def renamed(made: Any) -> None:  # noqa: ANN401
    """Rename the column of a number to that of the score."""
    with made.update_schema() as update:
        update.delete_column("score")
    with made.update_schema() as update:
        update.rename_column("other", "score")


def dropped_and_added(made: Any) -> None:  # noqa: ANN401
    """Drop the column of models and add one of that name, which older files do not have."""
    with made.update_schema() as update:
        update.delete_column("model")
    with made.update_schema() as update:
        update.add_column("model", types.StringType())


def promoted(made: Any) -> None:  # noqa: ANN401
    """Make the score, a float, a double."""
    with made.update_schema() as update:
        update.update_column("small", types.DoubleType())
    with made.update_schema() as update:
        update.delete_column("score")
    with made.update_schema() as update:
        update.rename_column("small", "score")


@pytest.mark.parametrize(
    "change", [lambda made: swap(made, "score", "other"), renamed, dropped_and_added, promoted]
)
def test_columns_are_found_by_id(catalog: Any, change: Callable[[Any], None]) -> None:  # noqa: ANN401
    """Whatever names columns had when a file was written, its rows are those of PyIceberg."""
    table = history(20).append_column("other", pa.array([0.75] * 20))
    table = table.append_column("small", table["score"].cast(pa.float32()))
    made = catalog.create_table("risk.history", table.schema)
    made.append(table.slice(0, 10))
    change(made)
    later = {field.name for field in made.schema().fields}
    made.append(table.slice(10).select([name for name in table.column_names if name in later]))
    assert read() == scanned(made)
    assert len(read()) == 20


def test_nested_columns_are_found_by_id(catalog: Any) -> None:  # noqa: ANN401
    """Two fields of a struct may be renamed into each other."""
    table = nested(history(20))
    made = catalog.create_table("risk.history", table.schema)
    made.append(table)
    for before, after in (("score", "spare"), ("other", "score"), ("spare", "other")):
        with made.update_schema() as update:
            update.rename_column(f"payload.{before}", after)
    found = read(Fields(score="payload.score"))
    assert found == scanned(made, "payload.score")
    assert {score for score, _ in found.values()} == {0.75}


def test_times_and_models_that_were_renamed_bound_a_part(catalog: Any) -> None:  # noqa: ANN401
    """What lies outside a part is left out by the columns of the file, whatever their names."""
    table = history(60).append_column(
        "other", pa.array(START + 10**9 + 1000 * pa.array(range(60)).to_numpy())
    )
    made = catalog.create_table("risk.history", table.schema)
    made.append(table)
    swap(made, "time", "other")
    swap(made, "model", "id")
    part = Part(START + 10**9, START + 10**9 + 5_000)
    assert len(read(part=part)) == 3  # the ids are those of three models now
    assert read(part=Part(START, START + 60_000)) == {}
    assert {*read(part=Part(models=("a7",)))} >= {"m1"}


def test_a_schema_is_pinned(catalog: Any) -> None:  # noqa: ANN401
    """A position goes on with the names that columns had, which no snapshot knows."""
    table = history(20).append_column("other", pa.array([0.75] * 20))
    made = catalog.create_table("risk.history", table.schema)
    made.append(table)
    first = next(iter(open_source(NAME, SourceOptions()).batches()))
    swap(made, "score", "other")
    start = {"records": 0, "version": first.position["version"]}
    (again,) = open_source(NAME, SourceOptions()).batches(start)
    assert [one.score for one in again.events] == table["score"].to_pylist()  # type: ignore[union-attr]


def test_files_without_ids(catalog: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """Files that were added to a table have no ids; its mapping of names says which they are."""
    made = catalog.create_table("risk.history", history(20).schema)
    pq.write_table(history(20), tmp_path / "added.parquet")
    made.add_files([f"file://{tmp_path}/added.parquet"])
    with made.update_schema() as update:
        update.rename_column("score", "prob")
    assert read(Fields(score="prob")) == scanned(made, "prob")


def test_a_value_of_the_partition(catalog: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """A column that a file does not have has the value of its partition, as the format says."""
    manifest = pytest.importorskip("pyiceberg.manifest")
    typedef = pytest.importorskip("pyiceberg.typedef")
    table = history(3).drop_columns("model")
    made = catalog.create_table("risk.history", history().schema)
    with made.update_spec() as update:
        update.add_identity("model")
    with made.transaction() as transaction:
        mapping = made.schema().name_mapping.model_dump_json()
        transaction.set_properties({"schema.name-mapping.default": mapping})
    path = tmp_path / "migrated.parquet"
    pq.write_table(table, path)
    file = manifest.DataFile.from_args(
        content=manifest.DataFileContent.DATA,
        file_path=f"file://{path}",
        file_format=manifest.FileFormat.PARQUET,
        partition=typedef.Record("fraud"),
        record_count=3,
        file_size_in_bytes=path.stat().st_size,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
        split_offsets=None,
        sort_order_id=None,
        spec_id=made.spec().spec_id,
        equality_ids=None,
        key_metadata=None,
    )
    with made.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        append.append_data_file(file)
    assert read() == scanned(made)
    assert {model for _, model in read().values()} == {"fraud"}
    assert len(read(part=Part(models=("fraud",)))) == 3


def test_a_file_that_does_not_fit(catalog: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """A file whose columns cannot be found is an error with its name."""
    made = catalog.create_table("risk.history", history(20).schema)
    pq.write_table(history(20), tmp_path / "added.parquet")
    made.add_files([f"file://{tmp_path}/added.parquet"])
    with made.transaction() as transaction:
        transaction.remove_properties("schema.name-mapping.default")
    with pytest.raises(RecordError, match=r"added.parquet: the file does not fit the schema"):
        read()
