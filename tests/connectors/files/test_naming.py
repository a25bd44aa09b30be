"""What names say of files."""

from __future__ import annotations

import pytest

from abers import ParameterError
from abers_connectors.files.naming import kind_of


@pytest.mark.parametrize(
    ("path", "given", "expected"),
    [
        ("a.csv", None, ("csv", None)),
        ("a.JSONL", None, ("jsonl", None)),
        ("dir.d/a.ndjson.GZ", None, ("jsonl", "gzip")),
        ("a.csv.zst", None, ("csv", "zstd")),
        ("a.parquet", None, ("parquet", None)),
        ("a.log", "jsonl", ("jsonl", None)),
        ("a.gz", "csv", ("csv", "gzip")),
        ("-", "csv", ("csv", None)),
    ],
)
def test_suffixes(path: str, given: str | None, expected: tuple[str, str | None]) -> None:
    """The last suffix tells the format, below that of compression, in any case."""
    assert kind_of(path, given) == expected


@pytest.mark.parametrize("path", ["a", "a.txt", "a.gz", "-", ".csv", "a.csv.bz2"])
def test_unknown_kinds_are_refused(path: str) -> None:
    """The message lists what is known, and how to tell the format otherwise."""
    with pytest.raises(ParameterError, match=r"unknown kind of file; .* \.csv, .* give the format"):
        kind_of(path)


@pytest.mark.parametrize(("path", "given"), [("a.parquet.gz", None), ("-", "parquet")])
def test_parquet_is_no_stream(path: str, given: str | None) -> None:
    """Parquet cannot be read from its beginning."""
    with pytest.raises(ParameterError, match="read from its end"):
        kind_of(path, given)
