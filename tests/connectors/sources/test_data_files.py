"""The files of a folder, a pattern or a bucket."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING
from urllib.parse import quote
from zoneinfo import ZoneInfo

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from abers import MissingExtraError, ParameterError, RecordError
from abers.stream.schema_columns import Readers
from abers.stream.times import TimeReader
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.registry import open_source
from abers_connectors.sources.table_files import files_of_name, is_table

if TYPE_CHECKING:
    from pathlib import Path


def test_names_sizes_and_partitions(tmp_path: Path) -> None:
    """Files come in the order of their names, with the columns that their paths have."""
    for name in ("model=b/day=2/x.parquet", "model=a%20c/x.PARQUET", "notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"12345")
    files, version = files_of_name(str(tmp_path))
    assert [one.partition for one in files] == [{"model": "a c"}, {"model": "b", "day": "2"}]
    assert [one.size for one in files] == [5, 5]
    with files[0].open() as file:
        assert file.read() == b"12345"
    (tmp_path / "model=b/day=2/x.parquet").write_bytes(b"123456")
    assert files_of_name(str(tmp_path)).version != version


def test_a_storage_of_fsspec() -> None:
    """Any storage that fsspec knows is listed and read alike, and messages have its URL."""
    fsspec.filesystem("memory").pipe("/history/a.parquet", b"1")
    (file,), _ = files_of_name("memory://history")
    assert file.name == "memory:///history/a.parquet"
    assert file.open().read() == b"1"


def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library of a bucket is named, with the command that installs it."""
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(MissingExtraError, match=r"gs:// needs gcsfs, .* run: pip install gcsfs"):
        files_of_name("gs://bucket/history")


def test_a_storage_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the library of a storage, whatever its type, is a sentence with the name."""
    fsspec.filesystem("memory").pipe("/history/a.parquet", b"1")
    memory = type(fsspec.filesystem("memory"))

    def fail(*_: object, **__: object) -> None:
        message = "no credentials"
        raise LookupError(message)

    monkeypatch.setattr(memory, "find", fail)
    with pytest.raises(RecordError, match=r"memory://history cannot be listed \(no credentials\)"):
        files_of_name("memory://history")
    with pytest.raises(ParameterError, match="nonsense"):
        files_of_name("nonsense://history")


def test_what_is_a_table(tmp_path: Path) -> None:
    """Folders and patterns are, but not a folder or file that is named as one of text."""
    for name in ("days", "x.parquet", "x.csv"):
        (tmp_path / name).mkdir()
    (tmp_path / "odd[1].jsonl").touch()
    found = {name: is_table(str(tmp_path / name)) for name in ("days", "x.parquet", "x.csv")}
    assert found == {"days": True, "x.parquet": True, "x.csv": False}
    assert not is_table(str(tmp_path / "odd[1].jsonl"))
    assert is_table(f"{tmp_path}/*.parquet")


HIVE = {
    "id": ["007", "a b", "Zürich", "10000000000000000000", "1e3", "NA"],
    "time": [
        "2026-01-01T12:00:00Z",
        "2026-01-01 12:00:00",
        "1971-06-01",
        "5",
        "1700000000",
        "1/2/2026",
    ],
    "model": ["7", "07", "card fraud", "NA", "true", "50%"],
    "score": ["0.5", "1e-3", "-0.0", "1", "83%", "0,5", "NaN", "inf", "x"],
    "label": ["1", "0", "1.0", "true", "True", "FALSE", "yes", "NA", "0.5"],
}


@pytest.mark.parametrize(("field", "value"), [(one, text) for one in HIVE for text in HIVE[one]])
def test_a_value_in_a_folder_is_read_as_in_csv(tmp_path: Path, field: str, value: str) -> None:
    """A text in the name of a folder is the same event, or the same bad record, as in CSV."""
    columns = {"id": "a", "time": "1700000000000", "model": "m", "score": "0.5", "label": "1"}
    columns[field] = value
    with (tmp_path / "x.csv").open("w", newline="") as file:
        csv.writer(file).writerows([columns, columns.values()])
    folder = tmp_path / f"lake/{field}={quote(value, safe='')}"
    folder.mkdir(parents=True)
    del columns[field]
    pq.write_table(pa.table({name: [text] for name, text in columns.items()}), folder / "x.parquet")
    readers = Readers.binary()._replace(time=TimeReader(ZoneInfo("Europe/Berlin")))
    options = SourceOptions(kind="labelled", readers=readers)
    found = []
    for name in ("x.csv", "lake"):
        (batch,) = open_source(str(tmp_path / name), options).batches()
        awaited = batch.events.awaited
        labels = None if awaited is None else awaited.tolist()
        bad = [(one.reason, one.detail) for one in batch.bad]
        found.append((repr([*batch.events]), labels if len(batch.events) else None, bad))
    assert found[0] == found[1]
    assert bool(found[0][2]) != bool(found[0][1])
