"""The contract of every sink, on every format, compressed or not."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import math
import os
import signal
import stat
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow.parquet as pq
import pytest
import zstandard

from abers import ParameterError, StateError
from abers.stream.events import Outcome, Prediction, RegressionPrediction
from abers.stream.outputs import DeadLetterRecord
from abers_connectors.sinks.base import SINKS, MemorySink, SinkOptions, open_sink

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from abers_connectors.sinks.base import Sink
    from abers_connectors.sources.base import Position

FORMATS = ["jsonl", "csv", "tsv.gz", "jsonl.gz", "csv.gz", "jsonl.zst", "csv.zst", "parquet"]
ROWS = [
    Prediction(
        id=f'a{n},"\n',
        time=1_700_000_000_000 + n,
        model="fraud",
        score=n / 7,
        p0=0.25,
        p1=0.5,
        p=0.4,
        n_labels=n,
        segment="CH" if n % 2 else "",
        extra={"amount": n, "tags": ["x"]} if n % 3 else None,
    )
    for n in range(25)
]


def wire(rows: Sequence[msgspec.Struct]) -> list[dict[str, Any]]:
    """Return rows as in the output, with every field."""
    made = [json.loads(msgspec.json.encode(row)) for row in rows]
    return [{"segment": "", "extra": None} | row for row in made]


def unpacked(path: Path) -> bytes:
    """Read a file, however it is compressed."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
    return data


def written(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a file or a directory of files."""
    if "parquet" in path.name:
        parts = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        rows = [row for part in parts for row in pq.read_table(part).to_pylist()]
    elif "csv" in path.name or "tsv" in path.name:
        text, mark = io.StringIO(unpacked(path).decode(), newline=""), path.name.split(".")[1]
        rows = list(csv.DictReader(text, delimiter="\t" if mark == "tsv" else ","))
    else:
        return [
            {"segment": "", "extra": None} | json.loads(line)
            for line in unpacked(path).splitlines()
        ]
    for row in rows:
        row["extra"] = json.loads(row["extra"]) if row["extra"] else None
        for name in ("v", "time", "n_labels"):
            row[name] = int(row[name])
        for name in ("score", "p0", "p1", "p"):
            row[name] = float(row[name])
    return rows


class Opener:
    """Opens a sink on the same file, or in memory, again and again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._memory: MemorySink | None = None

    def sink(self, position: Position | None = None) -> Sink:
        """Open the sink at a position."""
        if self.path.name != "memory":
            return open_sink(
                str(self.path), Prediction, SinkOptions(resumable=True, position=position)
            )
        self._memory = MemorySink(position, self._memory.rows if self._memory else ())
        return self._memory

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows that were written."""
        return wire(self._memory.rows) if self._memory else written(self.path)


@pytest.fixture(params=[*FORMATS, "memory"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Make each resumable sink in turn."""
    return Opener(tmp_path / ("memory" if request.param == "memory" else f"out.{request.param}"))


def test_tracked_intervals(tmp_path: Path) -> None:
    """The whole support is its ends; an empty interval is null in JSON, and infinite elsewhere."""
    intervals = {"whole": (0.0, 10.0), "empty": (math.inf, -math.inf), "none": (None, None)}
    rows = [
        RegressionPrediction(
            id=name,
            time=1,
            model="m",
            score=1.0,
            quantiles={},
            low={},
            high={},
            n_labels=0,
            interval_low=low,
            interval_high=high,
        )
        for name, (low, high) in intervals.items()
    ]
    found = {}
    for form in ("jsonl", "csv", "parquet"):
        with contextlib.closing(
            open_sink(str(tmp_path / f"out.{form}"), RegressionPrediction, SinkOptions())
        ) as sink:
            sink.write(rows)
        path = tmp_path / f"out.{form}"
        if form == "parquet":
            read = pq.read_table(path).to_pylist()
        elif form == "csv":
            read = [*csv.DictReader(io.StringIO(path.read_text(), newline=""))]
        else:
            read = [json.loads(line) for line in path.read_text().splitlines()]
        ends = ("interval_low", "interval_high")
        found[form] = [tuple(one.get(end, "absent") for end in ends) for one in read]
    assert found == {
        "jsonl": [(0.0, 10.0), (None, None), ("absent", "absent")],
        "csv": [("0.0", "10.0"), ("inf", "-inf"), ("", "")],
        "parquet": [*intervals.values()],
    }


def test_writing_goes_on_at_any_commit(opener: Opener) -> None:
    """Opening a sink at a commit drops the rows after it, and nothing else."""
    sink = opener.sink()
    positions = [sink.commit()]
    for n in range(0, 25, 5):
        sink.write(ROWS[n : n + 3])
        sink.write(ROWS[n + 3 : n + 5])
        positions.append(sink.commit())
    sink.write(ROWS[:7])
    sink.close()
    assert opener.rows() == wire([*ROWS, *ROWS[:7]])
    for n, position in reversed(list(enumerate(positions))):
        sink = opener.sink(json.loads(json.dumps(position)))
        sink.write(ROWS[20:])
        sink.write([])
        after = sink.commit()
        assert opener.rows() == wire([*ROWS[: 5 * n], *ROWS[20:]])
        sink.close()
        sink = opener.sink(position)
        assert sink.commit() == position
        sink.close()
        assert opener.rows() == wire(ROWS[: 5 * n])
        assert after != position


def test_every_registered_sink_is_checked() -> None:
    """A new line in the registry needs a format in this file."""
    assert {SINKS.key(f"out.{form}") for form in FORMATS} == {*SINKS}


def test_closing_twice_is_closing_once(opener: Opener) -> None:
    """After the first `close` neither `close` nor `discard` changes anything."""
    sink = opener.sink()
    sink.write(ROWS)
    sink.close()
    sink.close()
    sink.discard()
    assert opener.rows() == wire(ROWS)


@pytest.mark.parametrize("form", FORMATS)
def test_a_discarded_sink_may_be_closed(tmp_path: Path, form: str) -> None:
    """A file that was discarded twice does not exist."""
    sink = open_sink(str(tmp_path / f"out.{form}"), Prediction)
    sink.write(ROWS)
    sink.discard()
    sink.discard()
    assert list(tmp_path.iterdir()) == []


def test_without_a_position_writing_starts_anew(opener: Opener) -> None:
    """The old content is replaced."""
    for rows in (ROWS, ROWS[:3]):
        sink = opener.sink()
        sink.write(rows)
        sink.close()
        assert opener.rows() == wire(rows)


@pytest.mark.parametrize("form", FORMATS)
def test_a_commit_survives_a_kill(tmp_path: Path, form: str) -> None:
    """After kill -9 the file has all committed rows, and continues there."""
    path = tmp_path / f"out.{form}"
    program = f"""
import os, signal
from abers.stream.events import Prediction
from abers_connectors.sinks.base import SinkOptions
from abers_connectors.sinks.base import open_sink
rows = [Prediction(f"a{{n}}", n, "m", 0.5, 0.25, 0.5, 0.4, n) for n in range(9)]
sink = open_sink({str(path)!r}, Prediction, SinkOptions(resumable=True))
sink.write(rows[:4])
position = sink.commit()
print(position, flush=True)
sink.write(rows[4:])
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    position = json.loads(done.stdout.replace(b"'", b'"'))
    with open_sink(str(path), Prediction, SinkOptions(resumable=True, position=position)) as sink:
        sink.write(ROWS[:1])
    assert [row["id"] for row in written(path)] == ["a0", "a1", "a2", "a3", ROWS[0].id]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS])
def test_whole_files(tmp_path: Path, form: str, rows: list[Prediction]) -> None:
    """A file appears under its name when the sink is closed, not before, even one without rows."""
    path = tmp_path / f"out.{form}"
    path.write_bytes(b"old")
    with open_sink(str(path), Prediction) as sink:
        sink.write(rows)
        assert sink.commit() == {}
        assert path.read_bytes() == b"old"
    assert written(path) == wire(rows)
    assert list(tmp_path.iterdir()) == [path]
    if "csv" in form:
        assert unpacked(path).startswith(b"v,id,time,model,score,p0,p1,p,n_labels,segment,extra\n")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(tmp_path: Path, form: str, error: type[BaseException]) -> None:
    """When something fails, or is stopped, the old file stays and no part of the new one does."""
    path = tmp_path / f"out.{form}"
    path.write_bytes(b"old")

    def write_and_fail() -> None:
        with open_sink(str(path), Prediction) as sink:
            sink.write(ROWS)
            raise error

    with pytest.raises(error):
        write_and_fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("form", FORMATS)
def test_a_failure_of_a_resumable_sink(tmp_path: Path, form: str) -> None:
    """Committed rows stay readable, and the sink continues there."""
    path = tmp_path / f"out.{form}"
    sink = open_sink(str(path), Prediction, SinkOptions(resumable=True))
    sink.write(ROWS[:2])
    position = sink.commit()
    sink.write(ROWS)
    sink.discard()
    with open_sink(str(path), Prediction, SinkOptions(resumable=True, position=position)):
        pass
    assert written(path) == wire(ROWS[:2])


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_lacks_what_was_committed(tmp_path: Path, form: str) -> None:
    """The file is refused, with how to fix it, and left as it is."""
    path = tmp_path / f"out.{form}"
    with open_sink(str(path), Prediction, SinkOptions(resumable=True)) as sink:
        sink.write(ROWS)
        position = sink.commit()
    if path.is_dir():
        next(path.iterdir()).unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StateError, match=r"were committed; put .* back, or remove state and out"):
        open_sink(str(path), Prediction, SinkOptions(resumable=True, position=position))


@pytest.mark.parametrize("resumable", [False, True])
def test_an_output_keeps_its_permissions(tmp_path: Path, *, resumable: bool) -> None:
    """A file that replaces one that others may not read has its permissions."""
    path = tmp_path / "out.jsonl"
    path.touch(0o600)
    with open_sink(str(path), Prediction, SinkOptions(resumable=resumable)) as sink:
        sink.write(ROWS)
        assert {one.stat().st_mode & 0o777 for one in tmp_path.iterdir()} == {0o600}
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_is_not_what_was_committed(tmp_path: Path, form: str) -> None:
    """An output with other bytes, however many, is refused and left as it is."""
    path = tmp_path / f"out.{form}"
    with open_sink(str(path), Prediction, SinkOptions(resumable=True)) as sink:
        sink.write(ROWS)
        position = sink.commit()
    other = next(path.iterdir()) if path.is_dir() else path
    other.write_bytes(bytes(reversed(other.read_bytes())) + b"more")
    before = other.read_bytes()
    message = r"output .* is not what was written before.*; put the file back, or remove state and "
    with pytest.raises(StateError, match=message):
        open_sink(str(path), Prediction, SinkOptions(resumable=True, position=position))
    assert other.read_bytes() == before


def test_dead_letters_and_outcomes(tmp_path: Path) -> None:
    """Other types of rows are written the same way."""
    dead = DeadLetterRecord("bad-id", "detail", "scores.jsonl line 3", raw="\\xff…")
    with open_sink(str(tmp_path / "dead.jsonl"), DeadLetterRecord) as sink:
        sink.write([dead])
    assert (tmp_path / "dead.jsonl").read_text() == (
        '{"v":1,"reason":"bad-id","detail":"detail","where":"scores.jsonl line 3",'
        '"raw":"\\\\xff…"}\n'
    )
    outcome = Outcome("a", 9, "m", 5, 1, 0.5, 0.25, 0.5, 0.4)
    with open_sink(str(tmp_path / "outcomes.parquet"), Outcome) as sink:
        sink.write([outcome])
    (row,) = pq.read_table(tmp_path / "outcomes.parquet").to_pylist()
    unsaid = {"v": 1, "segment": "", "assumed": False, "late": False}
    assert row == unsaid | json.loads(msgspec.json.encode(outcome))


@pytest.mark.parametrize("models", ["mm", "mn"])
def test_names_in_parquet(tmp_path: Path, models: str) -> None:
    """One model or many: each row has its own, and row groups can be skipped by model and time."""
    rows = [msgspec.structs.replace(ROWS[0], model=model) for model in models]
    with open_sink(str(tmp_path / "out.parquet"), Prediction) as sink:
        sink.write(rows)
    assert pq.read_table(tmp_path / "out.parquet")["model"].to_pylist() == [*models]
    group = pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    kept = {one.path_in_schema for one in columns if one.is_stats_set}
    assert kept == {"time", "model", "segment"}


def test_large_files_are_written_as_they_come(tmp_path: Path) -> None:
    """Rows are handed on long before the end, compressed or in row groups."""
    for form in ("jsonl.zst", "parquet"):
        with open_sink(str(tmp_path / f"out.{form}"), Prediction) as sink:
            for _ in range(50):
                sink.write(ROWS * 200)
            (partial,) = tmp_path.glob(".out*.part")
            assert partial.stat().st_size > 10_000
        assert len(written(tmp_path / f"out.{form}")) == 250_000


@pytest.mark.parametrize("resumable", [False, True])
def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes], resumable: bool) -> None:  # noqa: FBT001
    """A dash is standard output; rows are there after a commit, and it stays open."""
    for form in (None, "csv"):
        with open_sink(
            "-", DeadLetterRecord, SinkOptions(format=form, resumable=resumable)
        ) as sink:
            sink.write([DeadLetterRecord("a", "b", "c", raw="d")])
            assert sink.commit() == {}
    assert capfdbinary.readouterr().out == (
        b'{"v":1,"reason":"a","detail":"b","where":"c","raw":"d"}\n'
        b"v,reason,detail,where,topic,partition,offset,raw,base64,size\n1,a,b,c,,,,d,,\n"
    )


def test_a_pipe_is_written_directly(tmp_path: Path) -> None:
    """Rows are written into a pipe as they come; it stays a pipe."""
    path = tmp_path / "out.jsonl"
    os.mkfifo(path)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    with open_sink(str(path), Prediction) as sink:
        sink.write(ROWS[:1])
    reader.join()
    assert found == [msgspec.json.encode(ROWS[0]) + b"\n"]
    with pytest.raises(ParameterError, match="is a pipe or a device, which cannot hold Parquet"):
        open_sink(str(path), Prediction, SinkOptions(format="parquet"))
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize("resumable", [False, True])
def test_a_link_stays_a_link(tmp_path: Path, resumable: bool) -> None:  # noqa: FBT001
    """The target of the link is written."""
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "real.jsonl")
    with open_sink(str(link), Prediction, SinkOptions(resumable=resumable)) as sink:
        sink.write(ROWS)
    assert link.is_symlink()
    assert written(tmp_path / "real.jsonl") == wire(ROWS)


@pytest.mark.parametrize("resumable", [False, True])
def test_a_link_in_the_place_of_a_derived_name(
    tmp_path: Path,
    resumable: bool,  # noqa: FBT001
) -> None:
    """The target is left alone: the link is replaced, or the file is not opened."""
    theirs, link = tmp_path / "theirs", tmp_path / "out.jsonl.dead.jsonl"
    theirs.write_text("kept")
    link.symlink_to(theirs)
    with (
        contextlib.suppress(OSError),
        open_sink(str(link), Prediction, SinkOptions(resumable=resumable, derived=True)) as sink,
    ):
        sink.write(ROWS)
    assert theirs.read_text() == "kept"
    assert link.is_symlink() == resumable


def test_a_link_in_the_place_of_a_temporary_name(tmp_path: Path) -> None:
    """The link is removed, and nothing is written to its target."""
    (tmp_path / "theirs").write_text("kept")
    (tmp_path / f".out.jsonl.{os.getpid()}.part").symlink_to("theirs")
    with open_sink(str(tmp_path / "out.jsonl"), Prediction) as sink:
        sink.write(ROWS)
    assert (tmp_path / "theirs").read_text() == "kept"
    assert written(tmp_path / "out.jsonl") == wire(ROWS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "theirs"]


@pytest.mark.parametrize("resumable", [False, True])
def test_places_that_cannot_be(tmp_path: Path, resumable: bool) -> None:  # noqa: FBT001
    """A directory in place of a file, and a missing directory, are mistakes of usage."""
    (tmp_path / "dir.jsonl").mkdir()
    with pytest.raises(ParameterError, match=r"dir\.jsonl is a directory; name a file in it"):
        open_sink(str(tmp_path / "dir.jsonl"), Prediction, SinkOptions(resumable=resumable))
    for form in ("jsonl", "parquet"):
        with pytest.raises(ParameterError, match=r"there is no directory .*none; create it first"):
            open_sink(
                str(tmp_path / "none" / f"a.{form}"), Prediction, SinkOptions(resumable=resumable)
            )


def test_a_foreign_file_in_a_directory_of_parquet(tmp_path: Path) -> None:
    """A file that no run wrote is refused and kept: readers of the directory would count it."""
    path, mine = tmp_path / "out.parquet", tmp_path / "out.parquet" / "mine.parquet"
    with open_sink(str(path), Prediction, SinkOptions(resumable=True)) as sink:
        sink.write(ROWS)
        position = sink.commit()
    mine.write_bytes(b"theirs")
    for at in (position, None):
        with pytest.raises(StateError, match=r"out\.parquet has mine\.parquet, which no run wrote"):
            open_sink(str(path), Prediction, SinkOptions(resumable=True, position=at))
    assert mine.read_bytes() == b"theirs"
    mine.unlink()
    assert written(path) == wire(ROWS)


def test_a_parquet_file_is_not_taken_for_a_directory(tmp_path: Path) -> None:
    """A run that can be resumed does not write over a file."""
    path = tmp_path / "out.parquet"
    path.write_bytes(b"old")
    with pytest.raises(ParameterError, match=r"writes a directory of Parquet files; name another"):
        open_sink(str(path), Prediction, SinkOptions(resumable=True))
    assert path.read_bytes() == b"old"
