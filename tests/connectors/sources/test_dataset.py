"""Data sets of many Parquet files: order, parts, and what is wrong with them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.sources.lakes import START, events_of, history, write_parts

from abers import ParameterError, RecordError, StateError
from abers.stream import Processor
from abers_connectors.sources import merge
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.dataset import DataFileSource
from abers_connectors.sources.merge import MergedSource
from abers_connectors.sources.registry import open_source
from abers_connectors.sources.time_range import Part, TimeRange

if TYPE_CHECKING:
    from pathlib import Path


def ids(name: str, part: Part | None = None) -> list[str]:
    """Return the ids of a data set in the order in which they are read."""
    return [event.id for event in events_of(name, part)]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_files_are_merged_by_time(
    tmp_path_factory: pytest.TempPathFactory, owners: list[int]
) -> None:
    """However the rows are divided among files, they are read in the order of time."""
    table, of = history(len(owners)), np.array(owners)
    parts = [table.filter(pa.array(of == owner)) for owner in range(5)]
    name = write_parts(tmp_path_factory.mktemp("parts"), [part for part in parts if len(part)])
    assert ids(name) == table["id"].to_pylist()


@pytest.mark.parametrize("zoned", [False, True])
def test_hive_partitions(tmp_path: Path, zoned: bool) -> None:  # noqa: FBT001
    """The model is in the path, and the files of other models and times are not read."""
    table = history(zoned=zoned)
    pq.write_to_dataset(table, tmp_path, partition_cols=["model"])
    assert [event.model for event in events_of(str(tmp_path))] == table["model"].to_pylist()
    part = Part(START + 10_000, START + 20_000, ("m1",))
    assert {*ids(str(tmp_path), part)} == {f"a{row}" for row in range(60) if row % 3 == 1}


def test_the_path_has_the_values_of_its_columns(tmp_path: Path) -> None:
    """A column that is in the path and in the files is that of the path, in every part."""
    table = history().drop_columns("model")
    for name, model in (("m1", "other"), ("m2", "m1"), ("__HIVE_DEFAULT_PARTITION__", "m1")):
        one = table.append_column("model", pa.array([model] * 60))
        write_parts(tmp_path / f"model={name}", [one])
    models = [event.model for event in events_of(str(tmp_path))]
    assert {name: models.count(name) for name in models} == {"m1": 60, "m2": 60, "default": 60}
    for name, there in (("m1", 60), ("other", 0), ("default", 60)):
        part = TimeRange(open_source(str(tmp_path), SourceOptions()), models=(name,))
        assert sum(len(batch.events) for batch in part.batches()) == there
    within = events_of(str(tmp_path), Part(START, START + 5_000))
    assert len(within) == 3 * 5  # the statistics of times hold as without the path


def test_a_path_that_names_a_column_twice(tmp_path: Path) -> None:
    """Two values of a column in one path are an error, which names it."""
    name = write_parts(tmp_path / "model=a" / "day=1" / "model=b", [history()])
    with pytest.raises(RecordError, match="two folders of a path have the name model"):
        ids(name)


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    """Two columns of one name in a file are an error that names both, read or not."""
    table = history()
    double = pa.table([*table.columns, table["id"]], names=[*table.column_names, "note"])
    name = write_parts(tmp_path, [double, double.rename_columns([*table.column_names, "score"])])
    with pytest.raises(
        RecordError, match=r"part-1.parquet: two columns have the name score; rename"
    ):
        ids(name)


def test_row_groups_outside_are_not_read(tmp_path: Path) -> None:
    """Of files that are sorted by time only the row groups within the part are read."""
    name = write_parts(tmp_path, [history().slice(0, 30), history().slice(30)])
    found = ids(name, Part(START + 12_000, START + 36_000))
    assert found == [f"a{row}" for row in range(10, 40)]  # row groups of five


def test_merged_data_sets_are_narrowed(tmp_path: Path) -> None:
    """Two inputs that are merged both leave out what lies outside a part."""
    table = history()
    names = [
        write_parts(tmp_path / "scores", [table.drop_columns("label")]),
        write_parts(tmp_path / "labels", [table.drop_columns("score")]),
    ]
    sources = [open_source(name, SourceOptions()) for name in names]
    part = TimeRange(MergedSource(sources), START + 12_000, START + 36_000)
    found = [event.id for batch in part.batches() for event in batch.events]
    assert found == [f"a{row}" for row in range(12, 36) for _ in range(2)]
    assert part.dropped == 2 * (2 + 4)  # of row groups of five at both ends


def test_patterns_and_urls(tmp_path: Path) -> None:
    """A pattern, a URL and a folder name the same files, without those that are being written."""
    name = write_parts(tmp_path / "day", [history().slice(0, 30), history().slice(30)])
    for hidden in ("_temporary/part-0.parquet", ".part-9.parquet", "_part.parquet"):
        (tmp_path / "day" / hidden).parent.mkdir(exist_ok=True)
        (tmp_path / "day" / hidden).write_bytes(b"half")
    (tmp_path / "day" / "_SUCCESS").touch()
    for one in (name, f"{name}/part-*.parquet", f"file://{name}", f"{tmp_path}/d*"):
        assert ids(one) == history()["id"].to_pylist()


@pytest.mark.parametrize("folder", ["run [1]", "a*b", "what?", "100 %", "x::y"])
def test_a_name_that_exists_is_no_pattern(tmp_path: Path, folder: str) -> None:
    """Folders and files have the names that they have, alone, in a pattern and in a URL."""
    name = write_parts(tmp_path / folder, [history().slice(0, 30), history().slice(30)])
    (tmp_path / "run 1").mkdir()  # what the pattern would name
    for one in (name, f"{name}/*-*.parquet", f"file://{quote(name)}", f"{name}/"):
        assert ids(one) == history()["id"].to_pylist()
    (tmp_path / folder / "part-[0].parquet").write_bytes(
        (tmp_path / folder / "part-0.parquet").read_bytes()
    )
    for one in (f"{name}/part-[0].parquet", f"file://{quote(name)}/part-[0].parquet"):
        assert len(ids(one)) == 30


def test_the_same_id_in_two_files_is_a_duplicate(tmp_path: Path) -> None:
    """A second observation with an id is ignored and counted, as within one file."""
    one = history(10).select(["id", "time", "model", "score"])
    again = one.slice(3, 2).set_column(1, "time", pa.array([START + 20_000, START + 21_000]))
    counters = []
    for tables in ([one, again], [pa.concat_tables([one, again])]):
        processor = Processor()
        processor.process_many(events_of(write_parts(tmp_path / str(len(tables)), tables)))
        counters.append(processor.counters)
    assert counters[0] == counters[1]
    assert counters[0]["duplicate_observations"] == 2


def test_a_schema_that_changes(tmp_path: Path) -> None:
    """A column that is read must be in all files, and hold the same; types may differ in size."""
    table = history(10)
    strings = table.set_column(3, "score", table["score"].cast(pa.string()))
    narrow = table.set_column(3, "score", table["score"].cast(pa.float32()))
    with pytest.raises(RecordError, match=r"score is strings in .*part-1.parquet, and numbers in"):
        ids(write_parts(tmp_path / "strings", [table, strings]))
    with pytest.raises(RecordError, match=r"score is missing in .*part-1.parquet, and numbers in"):
        ids(write_parts(tmp_path / "missing", [table, table.drop_columns("score")]))
    other = narrow.append_column("unread", pa.array([[1]] * 10))
    assert len(ids(write_parts(tmp_path / "narrow", [table, other]))) == 20


def test_a_file_that_disappears(tmp_path: Path) -> None:
    """A file that was listed and is gone ends the reading with its name; nothing is left out."""
    name = write_parts(tmp_path, [history().slice(0, 30), history().slice(30)])
    source = open_source(name, SourceOptions())
    batches = source.batches()
    next(batches)
    (tmp_path / "part-1.parquet").unlink()
    with pytest.raises(RecordError, match=r"part-1.parquet was there when the data set was listed"):
        list(batches)


def test_a_file_that_comes_later(tmp_path: Path) -> None:
    """A file that is written while the data set is read is not read."""
    name = write_parts(tmp_path, [history().slice(0, 30), history().slice(30)])
    batches = open_source(name, SourceOptions()).batches()
    first = next(batches)
    pq.write_table(history(), tmp_path / "part-2.parquet")
    assert len(first.events) + sum(len(batch.events) for batch in batches) == 60


def test_too_many_files_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that overlap in time are open together, and only as many as memory has room for."""
    monkeypatch.setattr(merge, "MAX_OPEN", 2)
    table = history()
    parts = [table.filter(pa.array(np.arange(60) % 3 == one)) for one in range(3)]
    with pytest.raises(RecordError, match=r"more than 2 files overlap in time, at .*--model"):
        ids(write_parts(tmp_path / "three", parts))
    in_turn = [table.slice(start, 10) for start in range(0, 60, 10)]
    assert len(ids(write_parts(tmp_path / "turn", in_turn))) == 60


def test_few_files_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is opened when the merge reaches its first time, so files in turn are open in turn."""
    name = write_parts(tmp_path, [history().slice(start, 10) for start in range(0, 60, 10)])
    reading = DataFileSource.batches
    open_now, most = set(), 0

    def counted(self: DataFileSource, position: Any = None) -> Any:  # noqa: ANN401
        nonlocal most
        open_now.add(self.name)
        most = max(most, len(open_now))
        yield from reading(self, position)
        open_now.discard(self.name)

    monkeypatch.setattr(DataFileSource, "batches", counted)
    assert len(ids(name)) == 60
    assert most <= 2


def test_other_files_than_before(tmp_path: Path) -> None:
    """A position goes on only with the files that it was made with."""
    name = write_parts(tmp_path, [history().slice(0, 30), history().slice(30)])
    first, *_ = open_source(name, SourceOptions()).batches()
    pq.write_table(history(), tmp_path / "part-2.parquet")
    with pytest.raises(StateError, match="its files have changed"):
        list(open_source(name, SourceOptions()).batches(first.position))


def test_nothing_there(tmp_path: Path) -> None:
    """A folder without Parquet files, a missing column and a damaged file are errors."""
    with pytest.raises(ParameterError, match="is a directory without Parquet file; name a folder"):
        ids(str(tmp_path))
    with pytest.raises(ParameterError, match="names no Parquet file"):
        ids(f"{tmp_path}/*.parquet")
    name = write_parts(tmp_path / "columns", [history().drop_columns("time")] * 2)
    with pytest.raises(ParameterError, match="has no column time"):
        ids(name)
    (tmp_path / "damaged.parquet").write_bytes(os.urandom(100))
    with pytest.raises(RecordError, match=r"damaged.parquet cannot be read"):
        ids(f"{tmp_path}/d*.parquet")
