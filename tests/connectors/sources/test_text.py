"""Files of lines: a bad record affects no other, and is reported with location and text."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
from contextlib import nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.poison import POISON

from abers import ParameterError, RecordError
from abers.stream.cells import Fields
from abers.stream.events import Observation
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.registry import open_source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from abers_connectors.sources.base import BadRecord, Batch

GOOD = b'{"id": "a", "time": 5, "score": 0.5}'


def read(path: Path, data: bytes, limit: int = 1 << 20) -> list[Batch]:
    """Write a file and read it."""
    path.write_bytes(data)
    return list(open_source(str(path), SourceOptions(max_record_bytes=limit)).batches())


def ids_and_bad(batches: list[Batch]) -> tuple[list[str], list[BadRecord]]:
    """Return the ids of batches, and the bad records with rows counted over all batches."""
    ids: list[str] = []
    bad: list[BadRecord] = []
    for batch in batches:
        bad += [one._replace(row=one.row + len(ids)) for one in batch.bad]
        ids += [event.id for event in batch.events]
    return ids, bad


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    """Return the path of a JSON Lines file."""
    return tmp_path / "scores.jsonl"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return the path of a CSV file."""
    return tmp_path / "scores.csv"


@pytest.mark.parametrize(("line", "reason", "detail"), POISON)
def test_a_bad_line_costs_itself(jsonl: Path, line: bytes, reason: str, detail: str) -> None:
    """A bad line is reported with reason, location and text; the others are read."""
    ids, (bad,) = ids_and_bad(read(jsonl, b"\n".join([GOOD, b"", line, GOOD])))
    assert ids == ["a", "a"]
    assert bad.row == 1
    assert bad.reason == reason
    assert detail in bad.detail
    assert bad.origin.where == f"{jsonl} line 3"
    assert bad.origin.raw == line.decode("utf-8", "backslashreplace")


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        (b"b,6", "bad-record", "fields: 2 on the line, 3 in the header; complete the line, or"),
        (b"b,6,0,5", "bad-record", "fields: 4 on the line, 3 in the header"),
        (b'"b,6,0.5', "bad-record", "see that every quote is closed"),
        (b'"b"x,6,0.5', "bad-record", "see that every quote is closed"),
        (b"b\r,6,0.5", "bad-record", "a field has \\r without quotes; quote the field or remove"),
        (b"b,6,high", "bad-score", "'high' is not a finite number"),
        (b"b,6,", "missing-field", 'no "score"'),
        (b"b\xff,6,0.5", "not-utf8", "byte 0xff at position 2"),
        (b"\0\0\0\0\x11\x02b", "schema-registry", "schema 17"),
    ],
)
def test_a_bad_row_costs_itself(table: Path, line: bytes, reason: str, detail: str) -> None:
    """The same holds for CSV, also with a quote that is never closed."""
    data = b"\n".join([b"id,time,score", b"a,5,0.5", b"", line, b'"c, d",7,0.5', b"e,8,1"])
    ids, (bad,) = ids_and_bad(read(table, data))
    assert ids == ["a", "c, d", "e"]
    assert (bad.row, bad.reason) == (1, reason)
    assert detail in bad.detail
    assert bad.origin.where == f"{table} line 4"
    assert bad.origin.raw == line.decode("utf-8", "backslashreplace")


def test_quotes_may_hold_lines_together(table: Path) -> None:
    """A field may span lines, and the chunks in which the file is read."""
    long = "\n\n".join(["x, y", 'z ""quoted""'] * 100)
    rows = "".join(f'"{n}\n{long}",{n},0.5\n' for n in range(500))
    batches = read(table, f"id,time,score\n{rows}last,7,1".encode())
    ids, bad = ids_and_bad(batches)
    assert not bad
    assert len(ids) == 501
    assert ids[3] == "3\n" + long.replace('""', '"')
    lines = 1 + long.count("\n") + 1
    assert batches[0].origin(1).where == f"{table} line {2 + lines}"
    assert (
        batches[-1].origin(len(batches[-1].events) - 1).where == f"{table} line {2 + 500 * lines}"
    )


def test_a_header_may_go_on_over_lines(table: Path) -> None:
    """Column names may be quoted."""
    ids, _ = ids_and_bad(read(table, b'\n"odd\nname",id,time,score\nx,a,5,0.5\n'))
    assert ids == ["a"]


@given(st.lists(st.lists(st.text(st.sampled_from('a",\n'), max_size=4), min_size=3, max_size=3)))
def test_what_a_writer_of_csv_writes_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]
) -> None:
    """Rows with any fields are read as they were written."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [["id", "score", "time"], *([f"r{row[0]}", 1, n] for n, row in enumerate(rows))]
    )
    ids, bad = ids_and_bad(read(tmp_path_factory.mktemp("csv") / "x.csv", text.getvalue().encode()))
    assert ids == [f"r{row[0]}" for row in rows]
    assert not bad


@pytest.mark.parametrize("name", ["scores.jsonl", "scores.csv"])
def test_a_record_over_the_limit_is_bad(tmp_path: Path, name: str) -> None:
    """A record over the limit is shown by head and length; the others are read."""
    limit = 700_000
    header = b"id,time,score\n" if name.endswith("csv") else b""
    good = b"a,5,0.5" if header else GOOD
    for size in (limit, limit + 1, 3_000_000):
        long = good + b" " * (size - len(good)) if header else b" " * (size - len(good)) + good
        batches = read(tmp_path / name, header + b"\n".join([good, long, good]), limit)
        ids, bad = ids_and_bad(batches)
        if size == limit:
            assert (len(ids), bad) == (3, [])
            continue
        assert ids == ["a", "a"]
        assert (bad[0].row, bad[0].reason) == (1, "too-large")
        assert f"{size} bytes, but max_record_bytes={limit}" in bad[0].detail
        assert bad[0].origin.raw == f"{long[:1000].decode()}… ({size} bytes)"


def test_memory_stays_small(jsonl: Path) -> None:
    """Only the head of a record without end is kept in memory."""
    from tracemalloc import get_traced_memory, start, stop  # noqa: PLC0415 - for this test only

    with jsonl.open("wb") as file:
        for _ in range(60):
            file.write(b"x" * (1 << 20))
    start()
    try:
        (batch,) = open_source(str(jsonl), SourceOptions()).batches()
        assert get_traced_memory()[1] < 8 << 20
    finally:
        stop()
    assert batch.bad[0].reason == "too-large"


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_marks_ends_and_blank_lines(tmp_path: Path, suffix: str) -> None:
    """A byte order mark, other line ends and blank lines are not part of a record."""
    pack = {"": bytes, ".gz": gzip.compress, ".zst": pa.Codec("zstd").compress}[suffix]
    for name, data in {
        "x.jsonl": b"\xef\xbb\xbf" + GOOD + b"\r\n\r\n  \n" + GOOD + b"\r\n",
        "x.csv": b'\xef\xbb\xbfid, time, score\r\n\r\na, 5, "0.5"\r\n \na,5,0.5\r\n',
    }.items():
        batches = read(tmp_path / f"{name}{suffix}", bytes(pack(data)))
        assert [event for batch in batches for event in batch.events] == [
            Observation("a", 5, "default", 0.5)
        ] * 2
        assert sum(batch.records for batch in batches) == 2
        assert batches[-1].position["records"] == 2


LEFT = r"the last record has no end yet, and is left for the next run; .* end its line"
ROWS = {"jsonl": GOOD + b"\n" + GOOD + b"\n", "csv": b"id,time,score\na,5,0.5\n"}
OTHERS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "utf-16": (lambda rows: rows.decode().encode("utf-16"), "is text in UTF-16 or UTF-32; write"),
    "utf-16-le": (lambda rows: rows.decode().encode("utf-16-le"), "is text in UTF-16 or UTF-32"),
    "utf-16-be": (lambda rows: rows.decode().encode("utf-16-be"), "is text in UTF-16 or UTF-32"),
    "utf-32": (lambda rows: rows.decode().encode("utf-32"), "is text in UTF-16 or UTF-32"),
    "gzip": (gzip.compress, r"is compressed by gzip; end the name of the file in \.gz"),
    "zstd": (lambda rows: pa.Codec("zstd").compress(rows, asbytes=True), "is compressed by zstd"),
    "parquet": (lambda _: b"PAR1 and so on", "is a Parquet file"),
    "zip": (lambda _: b"PK\x03\x04 and so on", "is a zip archive"),
    "returns": (lambda rows: rows.replace(b"\n", b"\r"), r"has lines that end in \\r alone; end "),
    "two returns": (lambda _: b"\r\r", r"has lines that end in \\r alone"),
}
BARE = {
    "a return": (b"\r", r"has lines that end in \\r alone"),
    "a mark": (b"\xef\xbb\xbf", "has no record: it has only a byte order mark or"),
    "NULs": (b"\0" * 50, "has no record: it has only"),
    "lines of NULs": (b"\0" * 50 + b"\n\0\n", "has no record: it has only"),
}


@pytest.mark.parametrize("growing", [False, True])
@pytest.mark.parametrize("form", ROWS)
@pytest.mark.parametrize("other", OTHERS)
def test_a_file_that_is_something_else(
    tmp_path: Path, form: str, other: str, *, growing: bool
) -> None:
    """A file of another format is an error with a message, as all its lines would be bad."""
    path = tmp_path / f"x.{form}"
    make, message = OTHERS[other]
    path.write_bytes(make(ROWS[form]))
    with pytest.raises(RecordError, match=rf"x\.{form} {message}"):
        list(open_source(str(path), SourceOptions(growing=growing)).batches())


@pytest.mark.parametrize("form", ROWS)
@pytest.mark.parametrize("bare", BARE)
@pytest.mark.filterwarnings(f"ignore:.*{LEFT}")
def test_a_file_that_only_looks_like_one(tmp_path: Path, form: str, bare: str) -> None:
    """Without one record it stops with a sentence, unless the file may go on to have some."""
    data, message = BARE[bare]
    path = tmp_path / f"x.{form}"
    path.write_bytes(data)
    if form == "jsonl" or b"\n" not in data:
        with pytest.raises(RecordError, match=rf"x\.{form} {message}"):
            list(open_source(str(path), SourceOptions()).batches())
    if b"\n" not in data:
        source = open_source(str(path), SourceOptions(growing=True))
        assert not [event for batch in source.batches() for event in batch.events]


def test_a_hole_before_good_records(tmp_path: Path) -> None:
    """A file whose first bytes were lost, as a rotated log has it, loses one record."""
    (batch,) = read(tmp_path / "x.jsonl", b"\0" * 50 + GOOD + b"\n" + GOOD + b"\n")
    assert ([event.id for event in batch.events], len(batch.bad)) == (["a"], 1)


def test_an_empty_file_has_no_batches(tmp_path: Path) -> None:
    """Nothing comes from nothing, or from a header alone."""
    for name, data in {
        "a.jsonl": b"",
        "b.csv": b"",
        "c.csv": b"id,time,score\n",
        "d.gz": b"",
    }.items():
        path = tmp_path / name
        path.write_bytes(data)
        form = "jsonl" if name == "d.gz" else None
        assert list(open_source(str(path), SourceOptions(format=form)).batches()) == []


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("name", ["x.jsonl", "x.csv"])
def test_compressed_data_that_is_cut_off(tmp_path: Path, name: str, suffix: str) -> None:
    """All complete records before the cut are delivered, followed by an error."""
    rows = [f"a{n},{n},{n * 7919 % 10_007 / 10_007}" for n in range(20_000)]
    if name == "x.jsonl":
        lines = [
            json.dumps({"id": f"a{n}", "time": n, "score": n * 7919 % 10_007})
            for n in range(20_000)
        ]
    else:
        lines = ["id,time,score", *rows]
    data = "\n".join(lines).encode()
    pack = {
        ".gz": gzip.compress,
        ".zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
    }
    packed = pack[suffix](data)
    path = tmp_path / f"{name}{suffix}"
    for damaged in (packed[: len(packed) * 2 // 3], packed[:-4], packed + b"garbage"):
        path.write_bytes(damaged)
        batches: list[Batch] = []
        with pytest.raises(
            RecordError, match=r"after line \d+: .* cut off or damaged \("
        ) as caught:
            batches.extend(open_source(str(path), SourceOptions()).batches())
        ids, bad = ids_and_bad(batches)
        assert not bad
        assert str(path) in str(caught.value)
        assert ids == [f"a{n}" for n in range(len(ids))]
        assert len(ids) > 5_000


@pytest.mark.parametrize(
    ("header", "error", "message"),
    [
        (b"id,id,time,score", RecordError, "two columns have the name id; rename one of them"),
        (b"id,time,score\xff", RecordError, "line 1: byte 0xff at position 14 is not UTF-8"),
        (b'id,"time,score', RecordError, "the first line is not a header"),
        (b"id,time,scores", ParameterError, r"no column score or label; .* did you mean scores\?"),
        (b"key,time,score", ParameterError, r"no column id; its columns are key, time, score;"),
    ],
)
def test_a_header_that_cannot_be_used(
    table: Path, header: bytes, error: type[Exception], message: str
) -> None:
    """An invalid header, or one without a needed column, is an error."""
    with pytest.raises(error, match=message):
        read(table, header + b"\na,5,0.5\n")


def rows_of(separator: str) -> list[str]:
    """Return three lines of good values, with a separator between them."""
    return [separator.join([f"a{row}", str(5 + row), "0.5", "x, y"]) for row in range(3)]


@pytest.mark.parametrize("suffix", ["tsv", "tab", "TSV.gz"])
def test_tabs_between_fields(tmp_path: Path, suffix: str) -> None:
    """A file whose suffix says so has tabs between its fields, and commas within them."""
    text = "\n".join(["id\ttime\tscore\tnote", *rows_of("\t"), 'a3\t8\t0.5\t"p\tq"']).encode()
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    options = SourceOptions(fields=Fields(passthrough=["note"]))
    events = [
        event for batch in open_source(str(path), options).batches() for event in batch.events
    ]
    assert [event.extra for event in events] == [{"note": "x, y"}] * 3 + [{"note": "p\tq"}]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "header", "separator", "message"),
    [
        ("a.csv", "id,time,score,note,more", ",", r"the first line has 5 names, .* 4 fields; remo"),
        ("a.csv", "time,score,note", ",", r"the first line has 3 names, .* 4 fields; name every"),
        ("a.csv", "# export", ",", r"'# export', does not name the 4 columns; remove the lines"),
        ("a.csv", "# of day, hour", ",", r"'# of day, hour', does not name the"),
        (
            "a.csv",
            "id;time|score",
            ";",
            r"by semicolons, not by commas; name it in input\.delimiter",
        ),
        ("a.tsv", "id,time|score", ",", r"by commas, not by tabs; name it in input\.delimiter"),
    ],
)
def test_a_header_that_no_record_fits(
    tmp_path: Path, name: str, header: str, separator: str, message: str
) -> None:
    """What is wrong with all records of a file is an error of the file, with its remedy."""
    lines = [line.replace("x, y", '"x, y"') for line in rows_of(separator)]
    path = tmp_path / name
    path.write_text("\n".join([header, *lines]))
    with pytest.raises(RecordError, match=message):
        list(open_source(str(path), SourceOptions()).batches())


def test_one_good_record_shows_that_the_header_is_right(table: Path) -> None:
    """Records that do not fit the header are bad as long as others do."""
    batches = read(table, b"id,time,score\na,1\nb,2\nc,3,0.5\n")
    found, bad = ids_and_bad(batches)
    assert (found, [one.reason for one in bad]) == (["c"], ["bad-record"] * 2)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash names standard input; records are delivered as they arrive."""
    out, into = os.pipe()
    with os.fdopen(out) as reader, os.fdopen(into, "wb", buffering=0) as writer:
        monkeypatch.setattr(sys, "stdin", reader)
        source = open_source("-", SourceOptions(format="jsonl"))
        batches = source.batches()
        writer.write(GOOD + b"\n" + GOOD[:10])
        first = next(batches)
        assert first.origin(0).where == "standard input line 1"
        assert source.fraction() is None
        writer.write(GOOD[10:])
        writer.close()
        assert [len(batch.events) for batch in [first, *batches]] == [1, 1]


@given(
    st.lists(
        st.binary(max_size=12)
        | st.sampled_from([GOOD, b"a,5,0.5", b'"', b'a,"b', b"\xff", b"\0" * 6]),
        max_size=12,
    ),
    st.sampled_from(["x.jsonl", "x.csv"]),
    st.booleans(),
)
def test_any_bytes_do_no_harm(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[bytes],
    name: str,
    long: bool,  # noqa: FBT001
) -> None:
    """Any bytes are events or bad records, and a stream can be resumed after each batch."""
    data = b"\n".join(lines * (8_000 if long and len(lines) == 1 else 1))
    # The first line makes it a file of text; a mark of the byte order before it is no part of it.
    data = (b"id,time,score\ng,5,0.5\n" if name == "x.csv" else b"\xef\xbb\xbf{}\n") + data
    path = tmp_path_factory.mktemp("any") / name
    batches = read(path, data, limit=30)
    source = open_source(str(path), SourceOptions(max_record_bytes=30))
    for number, batch in enumerate(batches, start=1):
        assert batch.records == len(batch.events) + len(batch.bad)
        assert [one.row for one in batch.bad] == sorted(one.row for one in batch.bad)
        assert ids_and_bad(list(source.batches(batch.position))) == ids_and_bad(batches[number:])
    if name == "x.jsonl":
        read_as = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        blank = sum(not line.strip() for line in read_as)
        total = data.count(b"\n") + 1 - blank
        assert sum(batch.records for batch in batches) == total


PACK: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
}


def in_parts(path: Path, cuts: list[int], data: bytes) -> tuple[list[str], list[BadRecord]]:
    """Read a file after each part that is compressed and appended."""
    found: list[Batch] = []
    path.write_bytes(b"")
    source = open_source(str(path), SourceOptions(growing=True))
    for start, stop in pairwise([0, *sorted(cuts), len(data)]):
        with path.open("ab") as file:
            file.write(PACK[path.suffix if path.suffix in PACK else ""](data[start:stop]))
        found += source.batches(found[-1].position if found else None)
    return ids_and_bad(found)


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.filterwarnings(f"ignore:.*{LEFT}")
def test_a_last_line_that_is_half_written(tmp_path: Path, form: str, suffix: str) -> None:
    """Each record is read once and complete, wherever the file ended at first."""
    csv_data = b'id,time,score\r\na,1,0.5\r\n"b\n""c""",22,0.123\r\n'
    jsonl_data = GOOD + b'\n\n{"id": "\xc3\xa9", "time": 22, "score": 0.1}\r\n'
    data, ids = {
        "csv": (csv_data, ["a", 'b\n"c"']),
        "jsonl": (jsonl_data, ["a", "é"]),
    }[form]
    for cut in range(len(data)):
        assert in_parts(tmp_path / f"x.{form}{suffix}", [cut], data) == (ids, []), cut


@pytest.mark.parametrize(
    ("name", "data", "left"),
    [
        ("x.jsonl", GOOD, False),
        ("x.jsonl", GOOD + b"\n  ", False),
        ("x.jsonl", GOOD[:-1], True),
        ("x.jsonl", b"12", True),
        ("x.jsonl", b"oops", True),
        ("x.jsonl", b"oops\n", False),
        ("x.jsonl", b"x" * (2 << 20), True),
        ("x.csv", b"id,time,score\na,1,0.5", True),
        ("x.csv", b"id,time,score\na,1,0.5\n", False),
        ("x.csv", b'id,time,score\n"a\nb\n', True),
        ("x.csv", b"id,time,sco", True),
    ],
)
def test_what_is_left_for_the_next_run(
    tmp_path: Path,
    name: str,
    data: bytes,
    left: bool,  # noqa: FBT001
) -> None:
    """In a growing file, a record that may be incomplete is left with a warning."""
    (tmp_path / name).write_bytes(data)
    source = open_source(str(tmp_path / name), SourceOptions(growing=True))
    expected = pytest.warns(UserWarning, match=f"{name}: {LEFT}") if left else nullcontext()
    with expected:
        records = sum(batch.records for batch in source.batches())
    assert records == (0 if left else 1)


@given(
    st.lists(
        st.binary(max_size=6)
        | st.sampled_from([GOOD + b"\n", b"a,5,0.5\n", b"\n", b'"', b'a,"b\nc', b"\xff"]),
        max_size=12,
    ),
    st.lists(st.integers(0, 300), max_size=4),
    st.sampled_from(["x.jsonl", "x.csv", "x.jsonl.gz", "x.csv.zst"]),
)
@pytest.mark.filterwarnings(f"ignore:.*{LEFT}")
def test_in_however_many_parts_a_file_grows(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], cuts: list[int], name: str
) -> None:
    """Any bytes read in parts are the same as when read at once."""
    data = (b"id,time,score\ng,5,0.5\n" if ".csv" in name else GOOD + b"\n") + b"".join(pieces)
    folder = tmp_path_factory.mktemp("parts")
    within = [min(cut, len(data)) for cut in cuts]
    assert in_parts(folder / name, within, data) == in_parts(folder / name, [], data)


POOL = [
    GOOD,
    GOOD + b" " + GOOD,
    b" " + GOOD + b"\r",
    b'{"id": "i", "z": {}',
    b'{"id": "i", "time": 5, "score": 0.5}}',
    b"{}{}",
    b'{"id": "b",',
    b'"time": 6, "score": 0.5}',
    b'{"id": "c", "time": 7, "score": 1, "z": "\xff"}',
    b'{"id": "d", "time": 8, "score": 0.5, "z": 1e999}',
    b'{"id": "e", "time": 9, "label": true}',
    b'{"id": 17, "time": "9", "score": "0.5", "label": ""}',
    b'{"id": "", "time": 9, "score": 0.5}',
    b'{"id": "f", "time": 1700000000, "score": 0.5}',
    b'{"id": "g", "id": 5, "time": 3.0, "score": 10000000000000000000000}',
    b'{"id": "h", "time": 5, "score": null, "label": 2, "model": ""}',
    b"a,5,0.5,m",
    b"b,x,1,",
    b'"c\n',
    b'c",1_0,1,',
    b"d,6,nan,",
    b"e,2023-11-14T22:13:20Z,1,m",
    b"f,7,,m",
]


@given(st.lists(st.sampled_from(POOL), max_size=8), st.sampled_from(["x.jsonl", "x.csv"]))
def test_a_record_does_not_depend_on_the_others(
    tmp_path_factory: pytest.TempPathFactory, records: list[bytes], name: str
) -> None:
    """A record read alone or among others is the same event, or bad for the same reason."""
    path = tmp_path_factory.mktemp("alone") / name
    header = b"id,time,score,model\ngood,5,0.5,m\n" if name == "x.csv" else b""
    lines = [line for record in records for line in record.split(b"\n") if line]
    if name == "x.csv":  # where a quote may hold lines together
        lines = [line for line in lines if b'"' not in line]

    def outcomes(data: bytes) -> list[object]:
        found: list[object] = []
        for batch in read(path, header + data):
            mixed_up: list[object] = list(batch.events)
            for one in reversed(batch.bad):
                mixed_up.insert(one.row, one.reason)
            found += mixed_up
        return found[1:] if header else found

    together = outcomes(b"".join(line + b"\n" for line in lines))
    assert together == [one for line in lines for one in outcomes(line + b"\n")]
