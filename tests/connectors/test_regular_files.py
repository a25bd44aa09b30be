"""Files that are opened only if they are regular ones."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from abers_connectors.regular_files import irregular, open_regular

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def pipe(path: Path) -> None:
    """Make a named pipe, to which nobody writes."""
    os.mkfifo(path)


def link_to_pipe(path: Path) -> None:
    """Make a link to a named pipe."""
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


def unix_socket(path: Path) -> None:
    """Make a socket, as a program that listens leaves it."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def device(path: Path) -> None:
    """Make a link to a device without end."""
    path.symlink_to("/dev/zero")


def dangling(path: Path) -> None:
    """Make a link to nothing."""
    path.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (pipe, "is a named pipe; name a regular file"),
        (link_to_pipe, "is a named pipe; name a regular file"),
        (unix_socket, "is a socket; name a regular file"),
        (device, "is a device; name a regular file"),
        (dangling, "is a link to a missing file; remove it, or put the file back"),
    ],
)
def test_what_is_no_regular_file(tmp_path: Path, make: Callable[[Path], None], what: str) -> None:
    """Opening a pipe, socket, device or dangling link fails at once, with what it is."""
    path = tmp_path / "x"
    make(path)
    assert irregular(path) == what
    with pytest.raises(OSError, match=what) as caught:
        open_regular(path)
    assert caught.value.filename == str(path)


def test_regular_files_and_links_to_them(tmp_path: Path) -> None:
    """A file is opened, also through a link; a folder and a missing file are the usual errors."""
    (tmp_path / "x").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("x")
    for name in ("x", "link"):
        with open_regular(tmp_path / name) as file:
            assert file.read() == b"abc"
        assert irregular(tmp_path / name) is None
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "missing")


def test_a_descriptor_that_is_open_already(tmp_path: Path) -> None:
    """A pipe that a shell has opened for the process is read, as its writer is there."""
    reading, writing = os.pipe()
    os.write(writing, b"abc")
    os.close(writing)
    with open_regular(f"/dev/fd/{reading}") as file:
        assert file.read() == b"abc"
    os.close(reading)
    assert irregular(tmp_path) is None


def test_a_pipe_that_takes_the_place_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe that comes after the check is not waited for either."""
    os.mkfifo(tmp_path / "x")
    monkeypatch.setattr("abers_connectors.regular_files.irregular", lambda _: None)
    with pytest.raises(OSError, match="not a regular file any more"):
        open_regular(tmp_path / "x")
