"""The files of a folder, a pattern or a bucket."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import fsspec
import pytest

from abers import MissingExtraError, ParameterError, RecordError
from abers_connectors.sources.data_files import files_of_name, is_table

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
