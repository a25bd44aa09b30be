"""Predictions on their way out: whole files or none, in the wire's own order of fields."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from abers import ParameterError
from abers_connectors.files import opened
from abers_connectors.records import Prediction

if TYPE_CHECKING:
    from pathlib import Path

PREDICTION = Prediction(id="a1", time=7, score=0.83, p0=0.5, p1=0.75, p=0.6, n=3)
LINE = (
    b'{"v":1,"id":"a1","time":7,"model":"default","score":0.83,"p0":0.5,"p1":0.75,"p":0.6,"n":3}\n'
)


def test_a_line_a_prediction(tmp_path: Path) -> None:
    """Each prediction is one JSON line, its version first."""
    with opened(str(tmp_path / "out.jsonl")) as sink:
        sink.write(PREDICTION)
        sink.write(PREDICTION)
    assert (tmp_path / "out.jsonl").read_bytes() == LINE * 2


def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A dash stands for standard output."""
    with opened("-") as sink:
        sink.write(PREDICTION)
    assert capfdbinary.readouterr().out == LINE


def test_the_name_appears_at_the_end(tmp_path: Path) -> None:
    """While predictions are written the old file, or none, stands under the name."""
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"old")
    with opened(str(path)) as sink:
        sink.write(PREDICTION)
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == LINE
    assert list(tmp_path.iterdir()) == [path]


def write_and_fail(path: Path, error: type[BaseException]) -> None:
    """Write one prediction and raise."""
    with opened(str(path)) as sink:
        sink.write(PREDICTION)
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_nothing_behind(tmp_path: Path, error: type[BaseException]) -> None:
    """When something fails, or is stopped, the old file stays and no part of the new one does."""
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"old")
    with pytest.raises(error):
        write_and_fail(path, error)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_gets_ordinary_permissions(tmp_path: Path) -> None:
    """The file is as readable as any that the user makes."""
    (tmp_path / "ordinary").touch()
    with opened(str(tmp_path / "out.jsonl")):
        pass
    ordinary, written = ((tmp_path / name).stat().st_mode for name in ("ordinary", "out.jsonl"))
    assert stat.filemode(written) == stat.filemode(ordinary)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """Writing to a link replaces what it points to."""
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "out.jsonl"
    link.symlink_to(tmp_path / "elsewhere" / "real.jsonl")
    with opened(str(link)) as sink:
        sink.write(PREDICTION)
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "real.jsonl").read_bytes() == LINE


def test_a_pipe_is_written_not_replaced(tmp_path: Path) -> None:
    """What is no regular file, such as a pipe or /dev/null, is written to where it is."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with opened(str(pipe)) as sink:
        sink.write(PREDICTION)
    assert os.read(reader, 1000) == LINE
    os.close(reader)
    assert pipe.is_fifo()


def test_a_directory_that_is_missing(tmp_path: Path) -> None:
    """A file in a directory that is not there is refused, and the directory named."""
    path = tmp_path / "no" / "out.jsonl"
    with (
        pytest.raises(ParameterError, match=f"there is no directory {path.parent}; make it"),
        opened(str(path)),
    ):
        pass


def test_a_directory_in_place_of_a_file(tmp_path: Path) -> None:
    """A directory cannot be the output."""
    with pytest.raises(ParameterError, match="is a directory; name a file"), opened(str(tmp_path)):
        pass
