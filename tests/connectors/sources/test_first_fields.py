"""The fields of the first record of a file, before its mapping is known."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet

from abers import ParameterError
from abers_connectors.sources.base import HasFields, SourceOptions
from abers_connectors.sources.registry import open_source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from abers_connectors.sources.base import Enough


def first_fields(path: str, enough: Enough = bool) -> Sequence[str] | None:
    """Return the fields of the first records."""
    source = open_source(path, SourceOptions())
    assert isinstance(source, HasFields)
    found = source.first_fields(enough)
    return None if found is None else [*found]


@pytest.mark.parametrize(
    ("name", "content", "fields"),
    [
        ("a.csv", b"score, label\n0.5,1\n", ["score", "label"]),
        ("a.csv", b"score,label\n\n\n0.5,1\n", ["score", "label"]),
        ("a.csv", b"score,label\n", None),
        ("a.csv", b"", None),
        ("a.csv", b"score,score\n1,2\n", []),
        ("a.csv", b"score,label\nbroken\n", ["score", "label"]),
        ("a.jsonl", b'\n{"score": 1, "x": {"a": 2}}\n{"id": 1}\n', ["score", "x", "id"]),
        ("a.jsonl", b"\n \n", None),
        ("a.jsonl", b"", None),
        ("a.jsonl", b"nothing\n", []),
        ("a.jsonl", b'{"id": 1}\nnothing\n', ["id"]),
        ("a.jsonl.gz", gzip.compress(b'{"score": 1}\n', mtime=0), ["score"]),
        ("a.jsonl.gz", gzip.compress(b'{"score": 1}\n', mtime=0)[:-9], ["score"]),
        ("a.jsonl.gz", b"no gzip", []),
        ("a.parquet", b"no Parquet", []),
        ("a.parquet", b"", []),
    ],
)
def test_the_fields_of_the_first_record(
    tmp_path: Path, name: str, content: bytes, fields: Sequence[str] | None
) -> None:
    """The result is None without a record, and empty if it cannot be read, or the header of CSV."""
    (tmp_path / name).write_bytes(content)
    assert first_fields(str(tmp_path / name)) == fields


def test_as_many_records_as_it_takes(tmp_path: Path) -> None:
    """Fields of JSON are read until they are enough, or to the end."""
    lines = [b'{"id": 1}\n'] * 250 + [b'{"label": 1}\n'] * 250 + [b'{"late": 1}\n']
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))
    path = str(tmp_path / "a.jsonl")
    assert first_fields(path) == ["id"]
    assert first_fields(path, lambda names: "label" in names) == ["id", "label"]
    assert first_fields(path, lambda names: "none" in names) == ["id", "label", "late"]


def test_the_columns_of_parquet(tmp_path: Path) -> None:
    """The fields are the columns of the schema; the result is None without a row."""
    path = str(tmp_path / "a.parquet")
    table = pa.table({"score": [0.5], "label": [1]})
    parquet.write_table(table, path)
    assert first_fields(path) == ["score", "label"]
    parquet.write_table(table.slice(0, 0), path)
    assert first_fields(path) is None


def test_a_name_that_tells_no_format() -> None:
    """An unknown format is refused before the file is opened."""
    with pytest.raises(ParameterError, match=r"scores\.txt: unknown kind"):
        first_fields("scores.txt")
