"""Delimiters and decimals of CSV files."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest

from abers import RecordError
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.line_formats import has_decimal_commas
from abers_connectors.sources.registry import open_source

if TYPE_CHECKING:
    from pathlib import Path


def scores(path: Path, text: str, **options: Any) -> list[Any]:  # noqa: ANN401
    """Write a file, and return the scores that are read of it."""
    path.write_text(text)
    source = open_source(str(path), SourceOptions(**options))
    return [one.score for batch in source.batches() for one in batch.events]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_first_line_shows_the_delimiter(tmp_path: Path, name: str, delimiter: str) -> None:
    """The one separator in the names is that of the file, whatever its name ends in."""
    rows = [["id", "time", "score"], ["a", "5", "0.5"], ['"b\nc"', "6", "0.25"]]
    text = "\n".join(map(delimiter.join, rows))
    assert scores(tmp_path / name, text) == [0.5, 0.25]


def test_a_doubtful_first_line_leaves_the_usual_delimiter(tmp_path: Path) -> None:
    """With two separators in the names the file has commas, unless another is named."""
    text = '"id",time,"score;raw",score\na,5,x,0.5\n'
    assert scores(tmp_path / "a.csv", text) == [0.5]
    text = "id;time;score;a,b\na;5;0.5;x\n"
    assert scores(tmp_path / "a.csv", text, delimiter=";") == [0.5]


def test_a_delimiter_that_is_not_there(tmp_path: Path) -> None:
    """A delimiter that the names do not have is an error that says which one they have."""
    with pytest.raises(RecordError, match=r"by semicolons, not by commas; name it in input.delim"):
        scores(tmp_path / "a.csv", "id;time;score\na;5;0.5\n", delimiter=",")


def test_decimal_commas(tmp_path: Path) -> None:
    """Decimals follow a comma where the options say so; ids, and other text, stay as they are."""
    path = tmp_path / "a.csv"
    text = "id;time;score\n1,5;5;0,5\nb;6;-1,25e-1\nc;7;2\n"
    assert scores(path, text, decimal=",") == [0.5, -0.125, 2.0]
    (batch,) = open_source(str(path), SourceOptions(decimal=",")).batches()
    assert batch.events[0].id == "1,5"


def test_a_point_among_decimal_commas(tmp_path: Path) -> None:
    """A number with a point is a bad record, for it may be meant as thousands."""
    path = tmp_path / "a.csv"
    path.write_text("id;time;score\na;5;0,5\nb;6;1.234\nc;7;0,75\n")
    (batch,) = open_source(str(path), SourceOptions(decimal=",")).batches()
    assert [one.score for one in batch.events] == [0.5, 0.75]  # type: ignore[union-attr]
    (bad,) = batch.bad
    assert "'1.234' has a point, where decimals follow a comma" in bad.detail


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("id;score\na;0,5\n", True),
        ('id;score\na;"0,5"\n', False),
        ("id\tscore\na\t36,5 %\n", True),
        ("id;score\na;0.5\nb;0,5\n", False),
        ("id;score;note\na;0.5;1,2\n", False),
        ("id,score\na,5\n", False),
        ("id;score\na;1\n", False),
        ("", False),
    ],
)
def test_decimal_commas_are_seen(tmp_path: Path, text: str, found: bool) -> None:  # noqa: FBT001
    """The first lines show decimal commas if a number has one, and none has a point."""
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert has_decimal_commas(str(tmp_path / "a.csv")) == found
    assert has_decimal_commas(str(tmp_path / "a.csv.gz")) == found
    assert not has_decimal_commas(str(tmp_path / "a.jsonl"))


def test_a_damaged_file_shows_nothing(tmp_path: Path) -> None:
    """What cannot be unpacked has no decimal commas; the run says what is wrong with it."""
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"id;score\na;0,5\n")[:-12])
    assert not has_decimal_commas(str(tmp_path / "a.csv.gz"))
