"""Parquet files that would take much memory: large values, large pages, false headers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.connectors.files.parquet_files import (
    CODES,
    DATA,
    DICTIONARY,
    DOUBLE,
    FIXED,
    LENGTHS,
    LIST,
    PREFIXES,
    TEXT,
    Page,
    element,
    finish,
    flat,
    i32,
    i64,
    levels,
    numbers,
    of_list,
    runs,
    struct,
    write,
)

from abers.stream.cells import Fields
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.parquet import opened
from abers_connectors.sources.parquet_bounds import Memory
from abers_connectors.sources.registry import open_source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MIB = 1 << 20
MANY = (1 << 31) - 1
READ = """
import json, resource, sys
import pyarrow.parquet
from abers.stream.cells import Fields
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.registry import open_source

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
fields = Fields(id="id", time="row", score=sys.argv[1])
for path in sys.argv[2:]:
    before, reasons, message = peak(), [], None
    try:
        for batch in open_source(path, SourceOptions(fields=fields)).batches():
            reasons += [one.reason for one in batch.bad]
            reasons += ["read"] * len(batch.events)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
    found = {reason: reasons.count(reason) for reason in {*reasons}}
    print(json.dumps([found, message, peak() - before]))
"""


def reading(*paths: Path, score: str = "score") -> list[list[Any]]:
    """Read files in a process of its own: return the results, the message and the MiB it took."""
    done = subprocess.run(
        [sys.executable, "-c", READ, score, *map(str, paths)],
        capture_output=True,
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=300,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_small_file_of_huge_values_takes_little_memory(tmp_path: Path) -> None:
    """Large values that the file has once for many rows are dead letters, in little memory."""
    rows = 1500
    codes = np.arange(rows, dtype=np.int32) % 2
    ids = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(["a" * (2 * MIB), "small"]))
    path = write_large(tmp_path / "x.parquet", pa.table({"id": ids, "score": [0.5] * rows}))
    assert path.stat().st_size < 20_000
    for found, message, taken in reading(tmp_path, path):
        assert (found, message) == ({"too-large": rows // 2, "read": rows // 2}, None)
        assert taken < 350


def write_large(path: Path, table: pa.Table, **options: Any) -> Path:  # noqa: ANN401
    """Write a table whose dictionaries may have any size."""
    given = {"compression": "zstd", "store_schema": False, "dictionary_pagesize_limit": 1 << 30}
    pq.write_table(table, path, **(given | options))
    return path


def test_many_small_files_of_huge_values_take_little_memory(tmp_path: Path) -> None:
    """Files that are open at once share what they may take beyond what each usually needs."""
    rows = 40
    for number in range(60):
        ids = pa.DictionaryArray.from_arrays([0] * rows, ["a" * (MIB - 200)])
        times = [number + 100 * row for row in range(rows)]
        table = pa.table({"id": ids, "row": times, "score": [0.5] * rows})
        write_large(tmp_path / f"{number}.parquet", table)
    ((found, message, taken),) = reading(tmp_path)
    assert (found, message) == ({"read": rows * 60}, None)
    assert taken < 1800


@pytest.mark.parametrize("dictionary", [True, False])
def test_one_huge_value(tmp_path: Path, dictionary: bool) -> None:  # noqa: FBT001
    """A small file with one value of 200 MB is refused before the value is unpacked."""
    table = pa.table({"id": ["a" * 200_000_000], "score": [0.5]})
    path = write_large(tmp_path / "x.parquet", table, use_dictionary=dictionary)
    assert path.stat().st_size < 20_000
    for found, message, taken in reading(tmp_path, path):
        assert found == {}
        assert "a row group would take 381 MiB of memory" in message
        assert taken < 50


def test_tables_of_a_lake_take_little_memory(tmp_path: Path) -> None:
    """A file of huge values in a Delta Lake table is read as it would be alone."""
    deltalake = pytest.importorskip("deltalake")
    rows = 400
    ids = pa.DictionaryArray.from_arrays([0] * rows, ["a" * (MIB - 200)])
    write_large(tmp_path / "x.parquet", pa.table({"id": ids, "score": [0.5] * rows}))
    deltalake.convert_to_deltalake(tmp_path)
    for found, message, taken in reading(tmp_path, tmp_path / "x.parquet"):
        assert (found, message) == ({"read": rows}, None)
        assert taken < 350


def test_large_footers_are_parsed_one_after_the_other(tmp_path: Path) -> None:
    """Many files with large footers take hardly more memory than one of them."""
    schema = [element("schema", children=1), element("id", kind=TEXT, repetition=0, converted=0)]
    for number in range(12):
        columns = struct(i64(2, 0), (3, 12, struct(i32(1, TEXT), i64(5, 0), i64(6, 0))))
        group = struct(of_list(1, 12, [columns]), i64(2, 0), i64(3, 0))
        finish(tmp_path / f"{number}.parquet", schema, 0, [group] * 19_000)
    ((one, _, first), (_, _, all_)) = reading(tmp_path / "0.parquet", tmp_path, score="id")
    assert one == {}
    assert all_ < first + 100


def lying_size(path: Path) -> Path:
    """Write a page with a declared size of 2 GiB."""
    return write(path, [Page(DATA, b"\1\0\0\0a" * 10, 10, size=MANY)], 10)


def large_page(path: Path) -> Path:
    """Write a page of 512 MiB, of zeros."""
    size = 512 * MIB
    return write(path, [Page(DATA, size.to_bytes(4, "little") + bytes(size), 1)], 1)


def lying_dictionary(path: Path) -> Path:
    """Write a dictionary that declares 2,147,483,647 values."""
    data = Page(DATA, b"\1" + runs(10), 10, CODES)
    return write(path, [Page(DICTIONARY, b"\1\0\0\0a", MANY), data], 10)


def lying_lengths(path: Path) -> Path:
    """Write a page of ten strings that declares 2,147,483,647 lengths."""
    return write(path, [Page(DATA, numbers(0, 0, 200_000, MANY), 10, LENGTHS)], 10)


def many_lengths(path: Path) -> Path:
    """Write a page that does have 400 million lengths."""
    many = 400_000_000
    return write(path, [Page(DATA, numbers(0, 0, 2, many), many, LENGTHS)], many)


def large_list(path: Path) -> Path:
    """Write one row with a list of 400 million numbers."""
    many = 400_000_000
    repetition, definition = levels(runs(1), runs(many - 1, 1)), levels(runs(many, 1))
    codes = repetition + definition + b"\1" + runs(many)
    pages = [Page(DICTIONARY, bytes(8), 1), Page(DATA, codes, many, CODES)]
    return write(path, pages, 1, LIST, DOUBLE)


def many_chunks(path: Path) -> Path:
    """Write a footer with a million columns in one row group."""
    columns = [struct(i64(2, 0))] * 1_000_000
    group = struct(of_list(1, 12, columns), i64(2, 0), i64(3, 0))
    return finish(path, flat(), 0, [group])


def many_names(path: Path) -> Path:
    """Write a footer of 150,000 columns of the same name."""
    schema = [element("schema", children=150_000), *[element("", kind=1)] * 150_000]
    return finish(path, schema, 0, [])


ATTACKS: dict[Callable[[Path], Path], str] = {
    lying_size: "a row group would take 2048 MiB of memory, more than the 263 that are allowed",
    large_page: "for the column id; if its values are as they should be, write the file again with",
    lying_dictionary: "a row group would take 32768 MiB of memory",
    lying_lengths: "a page of the column id has more values than its header says",
    many_lengths: "a row group would take 3051 MiB of memory",
    large_list: "most of it for the column id.list.element",
    many_chunks: "the footer has 3000041 bytes, more than 2097152; write the file again with",
    many_names: "Exceeded size limit",
}


def test_files_that_would_take_much_memory_are_refused(tmp_path: Path) -> None:
    """The memory of pages, dictionaries, lists and footers is known before they are read."""
    folders = [tmp_path / make.__name__ for make in ATTACKS]
    for folder, make in zip(folders, ATTACKS, strict=True):
        folder.mkdir()
        assert make(folder / "x.parquet").stat().st_size < 4_000_000
    files = [folder / "x.parquet" for folder in folders]
    names = [*(f"{file} after row 0" for file in files), *map(str, files)]
    for where, sentence, (found, message, taken) in zip(
        names, [*ATTACKS.values()] * 2, reading(*files, *folders, score="id"), strict=True
    ):
        assert found == {}
        assert message.startswith((f"RecordError: {where}: ", f"RecordError: {where} cannot be "))
        assert sentence in message
        assert taken < 100, where


def test_texts_that_repeat_what_was_before_them(tmp_path: Path) -> None:
    """Strings with delta encoding, and fixed-length ones, are read a few at a time."""
    rows, size = 500, 2 * MIB
    fixed = [Page(DICTIONARY, bytes(size), 1), Page(DATA, b"\1" + runs(rows), rows, CODES)]
    shared = numbers(0, size, rows) + numbers(size, 0, rows) + b"a" * size
    paths = [
        write(tmp_path / "fixed.parquet", fixed, rows, flat(FIXED, length=size), FIXED),
        write(tmp_path / "shared.parquet", [Page(DATA, shared, rows, PREFIXES)], rows),
    ]
    for path, (found, message, taken) in zip(paths, reading(*paths, score="id"), strict=True):
        assert (found, message) == ({"too-large": rows}, None), path
        assert taken < 600, path


def test_a_damaged_footer_ends_no_process(tmp_path: Path) -> None:
    """A file with any wrong byte in its footer is read, or refused with a message."""
    ids = [f"a{n % 5}" for n in range(50)]
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"score": pa.array([[0.5], None] * 25), "id": ids}), whole)
    data = whole.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    paths = []
    schema, rest = range(start, start + 120), range(start + 120, len(data) - 8, 7)
    for place in (*schema, *rest):
        damaged = bytearray(data)
        damaged[place] ^= 2  # of a schema, what must be there, may be missing, or is repeated
        paths.append(tmp_path / f"{place}.parquet")
        paths[-1].write_bytes(damaged)
    patterns = [tmp_path / f"[{path.name[0]}]{path.name[1:]}" for path in paths]
    message = [one for _, one, _ in reading(*paths, *patterns)]
    assert len(message) == 2 * len(paths), "the process has ended"
    kinds = {one.split(":")[0] for one in message if one is not None}
    assert "RecordError" in kinds
    assert kinds <= {"RecordError", "ParameterError", "StateError"}


TEXTS = [f"text {n % 700} {n}" for n in range(40_000)]
WAYS: list[dict[str, Any]] = [
    {"use_dictionary": True, "compression": "snappy"},
    {"use_dictionary": False, "compression": "none"},
    {"compression": "lz4", "data_page_version": "2.0"},
    *(
        {
            "use_dictionary": False,
            "column_encoding": {"id": encoding, "nested.e": encoding},
            "compression": compression,
            "data_page_version": version,
        }
        for encoding in ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
        for compression, version in (("gzip", "1.0"), ("brotli", "2.0"))
    ),
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_honest_files_are_read_however_they_are_written(
    tmp_path: Path, way: dict[str, Any]
) -> None:
    """A large row group of any encoding and compression is read in batches."""
    nested = pa.array([{"e": None if n % 3 else text} for n, text in enumerate(TEXTS)])
    table = pa.table({"id": TEXTS, "nested": nested, "time": [5] * 40_000, "score": [0.5] * 40_000})
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, row_group_size=40_000, data_page_size=1 << 14, **way)
    batches = list(
        open_source(str(path), SourceOptions(fields=Fields(passthrough=["nested.e"]))).batches()
    )
    sizes = [len(batch.events) for batch in batches]
    repeating = "DELTA_BYTE_ARRAY" in way.get("column_encoding", {}).values()
    assert sizes == ([1024] * 39 + [64] if repeating else [16_384, 16_384, 7_232])
    events = [event for batch in batches for event in batch.events]
    assert [event.id for event in events] == TEXTS
    extra = [getattr(event, "extra", None) for event in events[:3]]
    assert extra == [{"nested.e": TEXTS[0]}, None, None]


@pytest.mark.parametrize(("length", "rows"), [(10, 16_384), (100_000, 1024), (30 * MIB, 1)])
def test_fewer_rows_at_once_where_texts_are_long(tmp_path: Path, length: int, rows: int) -> None:
    """The longer the strings of a dictionary, the fewer rows are read at once."""
    path = tmp_path / "x.parquet"
    texts = pa.array(["a" * length]).dictionary_encode().take(pa.array([0] * 20_000))
    pq.write_table(pa.table({"id": texts}), path, dictionary_pagesize_limit=1 << 30)
    with path.open("rb") as handle, opened(handle, Memory()) as file:
        assert next(file.record_batches(0, ["id"])).num_rows == rows


def test_a_row_that_is_too_large_costs_itself(tmp_path: Path) -> None:
    """A large row is a dead letter that shows its small values; other rows keep their numbers."""
    ids = ["a", "b", "c", "d"]
    extra = [[1.0], [0.25] * 200, [2.0], None]
    path = tmp_path / "x.parquet"
    pq.write_table(
        pa.table({"id": ids, "time": [5, 6, 7, 8], "score": [0.5] * 4, "e": extra}), path
    )
    source = open_source(
        str(path), SourceOptions(fields=Fields(passthrough=["e"]), max_record_bytes=1000)
    )
    (batch,) = source.batches()
    assert [(event.id, getattr(event, "extra", None)) for event in batch.events] == [
        ("a", {"e": [1.0]}),
        ("c", {"e": [2.0]}),
        ("d", None),
    ]
    ((row, reason, detail, origin),) = batch.bad
    assert (row, reason, origin.where) == (1, "too-large", f"{path} row 2")
    assert detail.startswith("1618 bytes, but max_record_bytes=1000; ")
    assert origin.raw == '{"id":"b","time":6,"score":0.5}… (1618 bytes)'
    assert batch.origin(1).where == f"{path} row 3"
    assert batch.records == 4
    one = tmp_path / "one.parquet"
    pq.write_table(pq.read_table(path).slice(0, 1), one)
    (first,) = open_source(
        str(one), SourceOptions(fields=Fields(passthrough=["e"]), max_record_bytes=1000)
    ).batches()
    (rest,) = source.batches(first.position)
    assert [event.id for event in rest.events] == ["c", "d"]
    assert rest.bad[0].origin.where == f"{path} row 2"
