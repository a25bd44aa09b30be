"""Files as streams: their columns, their formats, and what is said of those that are broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from abers import ParameterError, RecordError
from abers_connectors.files import FileSource, GivenScores

if TYPE_CHECKING:
    from pathlib import Path

    from abers_connectors.records import Observation


def read(path: Path, content: str | bytes, **columns: str) -> list[Observation]:
    """Write a file and return the observations that are read from it."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(FileSource(str(path), columns, probabilities=False))


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """Return the path of a CSV file."""
    return tmp_path / "scores.csv"


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    """Return the path of a JSON Lines file."""
    return tmp_path / "scores.jsonl"


def test_both_formats_say_the_same(csv: Path, jsonl: Path) -> None:
    """The same records give the same observations, apart from the header's line."""
    from_csv = read(csv, "id,time,score,label,more\na,5,0.25,0,x\nb,6,1,true,y\n")
    from_json = read(
        jsonl,
        '{"id": "a", "time": 5, "score": 0.25, "label": 0, "more": "x"}\n'
        '{"id": "b", "time": 6, "score": 1, "label": true, "more": null}\n',
    )
    assert [one._replace(position=one.position - 1) for one in from_csv] == from_json
    assert from_json[1] == (2, "b", 6, 1, 1.0)


def test_ids_and_times_default_to_the_row(csv: Path) -> None:
    """Without such columns the number of the record is both, and stays it across blank lines."""
    rows = read(csv, "score,label\n0.5,1\n\n0.6,0\n")
    assert [(one.position, one.id, one.time) for one in rows] == [(2, "1", 1), (4, "2", 2)]


def test_columns_may_be_named(csv: Path) -> None:
    """Any column can be the score, the label, the id or the time."""
    content = "key,when,p,y,id\nk,9,0.5,1,other\n"
    rows = read(csv, content, id="key", time="when", score="p", label="y")
    assert rows == [(2, "k", 9, 1, 0.5)]


def test_quotes_spaces_and_a_byte_order_mark(csv: Path) -> None:
    """What spreadsheets write is read: a mark before the header, quotes, spaces, other ends."""
    rows = read(csv, b'\xef\xbb\xbfid, score, label\r\n"a, ""b""", 0.5 , 1 \r\n')
    assert rows == [(2, 'a, "b"', 1, 1, 0.5)]


def test_a_byte_order_mark_before_json(jsonl: Path) -> None:
    """Such a mark is no part of the first record."""
    assert read(jsonl, b'\xef\xbb\xbf{"score": 0.5, "label": 1}\n') == [(1, "1", 1, 1, 0.5)]


def test_the_suffix_tells_the_format(tmp_path: Path) -> None:
    """A .ndjson file is JSON Lines, in any case."""
    assert read(tmp_path / "scores.NDJSON", '{"score": 2, "label": 0}') == [(1, "1", 1, 0, 2.0)]


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    """A file of an unknown kind is refused before it is opened."""
    with pytest.raises(ParameterError, match=r"unknown kind .* \.csv, \.jsonl, \.ndjson"):
        FileSource(str(tmp_path / "scores.parquet"), {}, probabilities=False)


def test_lines_are_read_one_at_a_time(csv: Path) -> None:
    """The first observation is there before a later, broken line is met."""
    csv.write_text("score,label\n0.5,1\nbroken\n")
    rows = iter(FileSource(str(csv), {}, probabilities=False))
    assert next(rows).x == 0.5
    with pytest.raises(RecordError, match="line 3"):
        next(rows)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("score,label\n0.5,1\nnan,0\n", r"line 3, score: 'nan' is not a finite number"),
        ("score,label\nhigh,1\n", r"line 2, score: 'high' is not a finite number"),
        ("score,label\n0.5,maybe\n", r"line 2, label: 'maybe' is not a label"),
        ("score,label,time\n0.5,1,noon\n", r"line 2, time: 'noon' is no time"),
        ("score,label\n0.5,1\n0.6\n", r"line 3 has 1 of the header's 2 fields"),
        ("score,label\n0,5,1\n", r"line 2 has 3 of the header's 2 fields.* quote"),
        ('score,label\n"0.5,1\n', r"line 2: unexpected end of data; see that every quote"),
        ("score,score,label\n1,2,1\n", r"line 1: two columns are called score; rename one"),
        ("", r"scores.csv holds no observation; it needs a line for each one"),
        ("score,label\n", r"scores.csv holds no observation"),
        (b"score,label\n0.5,1\n\xff,1\n", r"a byte 0xff .* not UTF-8; save the file as UTF-8"),
    ],
)
def test_a_csv_file_that_cannot_be_used(csv: Path, content: str | bytes, message: str) -> None:
    """The error names the file, the line, the field, the value, and what would do."""
    with pytest.raises(RecordError, match=message):
        read(csv, content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"score": 0.5, "label": 1}\n{"score"', r"line 2: .*; write one JSON object a line"),
        ('{"score": NaN, "label": 1}', r"line 1: .*JSON has no NaN"),
        ("[0.5, 1]", r"line 1: .*array.*; write one JSON object a line"),
        ('{"score": null, "label": 1}', r"line 1, score: None is not a finite number"),
        ('{"score": 1, "label": 1}\n{"label": 1}', r"line 2 has no field score"),
        ('{"score": 1, "label": 1, "id": 1.5}', r"line 1, id: 1.5 is no id"),
        ("\n\n", r"scores.jsonl holds no observation"),
    ],
)
def test_a_json_lines_file_that_cannot_be_used(jsonl: Path, content: str, message: str) -> None:
    """So does that of a JSON Lines file."""
    with pytest.raises(RecordError, match=message):
        read(jsonl, content)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, r"has no column score; its columns are id, scores, label; .* --score; did you mean"),
        ({"score": "sorces"}, r"no column sorces; .* --score; did you mean scores\?"),
        ({"score": "scores", "id": "key"}, r"no column key; .* name the right one with --id$"),
    ],
)
def test_a_column_that_is_not_there(csv: Path, columns: dict[str, str], message: str) -> None:
    """A wrong column name is a mistake of usage; the columns there are listed."""
    with pytest.raises(ParameterError, match=message):
        read(csv, "id,scores,label\na,0.5,1\n", **columns)


def test_declared_probabilities_must_be_such(csv: Path) -> None:
    """A score outside [0, 1] is a bad record if the scores are declared probabilities."""
    csv.write_text("score,label\n0.5,1\n1.5,0\n")
    with pytest.raises(RecordError, match=r"line 3, score: '1.5' is not a probability"):
        list(FileSource(str(csv), {}, probabilities=True))


def test_the_fraction_grows_to_one(csv: Path) -> None:
    """The share of the file that was read starts unknown, never falls, and ends at all of it."""
    csv.write_text("score,label\n" + "0.5,1\n" * 20_000)
    source = FileSource(str(csv), {}, probabilities=False)
    assert source.fraction() is None
    shares = [source.fraction() or 0.0 for _ in source]
    assert shares == sorted(shares)
    assert 0.0 < shares[0] < 0.2
    assert shares[-1] == 1.0


def test_given_scores_are_passed_on(csv: Path) -> None:
    """The scorer of a file gives the score that came along, and learns nothing."""
    (observation,) = read(csv, "score,label\n-3.5,1\n")
    scorer = GivenScores(probabilities=False)
    scorer.learn(observation)
    assert scorer.score(observation) == -3.5
