"""Format and compression of files by their names."""

from __future__ import annotations

import pytest

from abers import ParameterError
from abers_connectors.files import file_format


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
    """The last suffix before that of compression names the format, in any case."""
    assert file_format(path, given)[:2] == expected


@pytest.mark.parametrize("path", ["a.tsv", "a.TAB", "a.tsv.gz", "dir.d/a.tab.zst"])
def test_tabs_by_suffix(path: str) -> None:
    """The suffixes of files with tabs name CSV with tabs between the fields."""
    assert (file_format(path).format, file_format(path).separator) == ("csv", "\t")


@pytest.mark.parametrize("path", ["a", "a.txt", "a.gz", "-", ".csv", "a.csv.bz2"])
def test_unknown_kinds_are_refused(path: str) -> None:
    """The error lists the known suffixes, and says to give the format otherwise."""
    with pytest.raises(ParameterError, match=r"unknown kind of file; .* \.csv, .* input\.format"):
        file_format(path)


@pytest.mark.parametrize(("path", "given"), [("a.parquet.gz", None), ("-", "parquet")])
def test_parquet_is_not_streamed(path: str, given: str | None) -> None:
    """Parquet cannot be read from its beginning."""
    with pytest.raises(ParameterError, match="read from its end"):
        file_format(path, given)
