"""A sink that is opened only if it is needed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from abers.stream.outputs import DeadLetterRecord
from abers_connectors.sinks.base import LazySink, SinkOptions, open_sink

if TYPE_CHECKING:
    from pathlib import Path

ROW = DeadLetterRecord("bad-id", "no id", "a line 1", raw="{}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the sink would write."""
    return tmp_path / "out.jsonl.dead.jsonl"


def lazy(path: Path, *, resumable: bool = False) -> LazySink:
    """Return a sink that is not opened."""
    return LazySink(
        lambda: open_sink(str(path), DeadLetterRecord, SinkOptions(resumable=resumable)), str(path)
    )


@pytest.mark.parametrize("resumable", [False, True])
def test_nothing_makes_no_file(path: Path, *, resumable: bool) -> None:
    """Without a row there is neither file nor position."""
    with lazy(path, resumable=resumable) as sink:
        assert sink.commit() is None
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("resumable", [False, True])
def test_a_row_opens_it(path: Path, *, resumable: bool) -> None:
    """From the first row on it behaves as the sink that it opens."""
    with lazy(path, resumable=resumable) as sink:
        sink.write([ROW])
        committed = sink.commit() or {}
        assert committed.get("bytes") == (path.stat().st_size if resumable else None)
        sink.write([ROW])
    assert path.read_text().count('"bad-id"') == 2


def test_an_old_file_does_not_pass_for_this_runs(path: Path) -> None:
    """A file of an earlier run is removed at the end, and stays if something fails."""
    path.write_text("old")
    lazy(path).discard()
    assert path.read_text() == "old"
    lazy(path).close()
    assert not path.exists()


def test_what_was_opened_is_discarded(path: Path) -> None:
    """If something fails, the written rows are discarded."""
    path.write_text("old")
    sink = lazy(path)
    sink.write([ROW])
    sink.discard()
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_pipe_stays(path: Path) -> None:
    """A pipe or a device is never removed."""
    os.mkfifo(path)
    lazy(path).close()
    assert path.is_fifo()
