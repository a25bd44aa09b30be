"""Destinations of bytes: a file that appears when complete, one that grows, or a stream.

A `WholeFile` is either the old file or the complete new file. An `AppendedFile` has the committed
bytes and perhaps more, which are cut off when it is opened at a position. Bytes written to standard
output, a pipe or a device (`OutputStream`) cannot be undone.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from abers.exceptions import ParameterError, StateError
from abers_connectors.files import STANDARD, is_stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.sources.base import Position

__all__ = [
    "AppendedFile",
    "Destination",
    "OutputStream",
    "WholeFile",
    "last_block",
    "named_errors",
    "require_directory",
    "sync_directory",
    "write_whole",
]

_BLOCK = 1 << 12  # bytes at its end by which a file is recognized


class Destination(Protocol):
    """A destination of bytes."""

    size: int
    """Number of bytes."""

    def write(self, data: bytes) -> None:
        """Write bytes."""
        ...

    def commit(self) -> Position:
        """Make the bytes durable, if possible, and return their position."""
        ...

    def close(self) -> None:
        """Commit and close."""
        ...

    def discard(self) -> None:
        """Close; undo what was written since the last commit, as far as possible."""
        ...


def _target(path: str, *, derived: bool = False) -> Path:
    """Return the file of a path; links are followed unless the path is a derived name."""
    named = Path(path)
    target = named.parent.resolve() / named.name if derived else named.resolve()
    if target.is_dir():
        msg = f"output {path} is a directory; name a file in it"
        raise ParameterError(msg)
    require_directory(path, target.parent)
    return target


def require_directory(path: str, parent: Path) -> None:
    """Raise a ParameterError for an output without its directory."""
    if not parent.is_dir():
        msg = f"output {path}: there is no directory {parent}; create it first"
        raise ParameterError(msg)


class OutputStream:
    """Standard output, a pipe or a device."""

    def __init__(self, path: str) -> None:
        self._own = path != STANDARD
        self._name = path if self._own else "standard output"
        self._file: BinaryIO = Path(path).open("wb") if self._own else sys.stdout.buffer  # noqa: SIM115
        self.size = 0

    def write(self, data: bytes) -> None:
        """Write bytes."""
        rest = memoryview(data)
        with named_errors(self._name):
            while rest:  # with PYTHONUNBUFFERED standard output may write a part
                rest = rest[self._file.write(rest) :]
        self.size += len(data)

    def commit(self) -> Position:
        """Flush the buffer."""
        with named_errors(self._name):
            self._file.flush()
        return {}

    def close(self) -> None:
        """Flush the buffer, and close the stream unless it is standard output."""
        if self._file.closed:
            return
        self.commit()
        if self._own:
            self._file.close()

    def discard(self) -> None:
        """Close; what is buffered and cannot be written is lost."""
        with suppress(OSError):
            (self._file.close if self._own else self._file.flush)()


class WholeFile:
    """A file that appears under its name when it is complete; an old file keeps its permissions.

    Only the owner may read a new `private` file. If the path is `derived` from another, a link
    there is replaced, not followed.
    """

    def __init__(self, path: str, *, private: bool = False, derived: bool = False) -> None:
        self._target, self._name = _target(path, derived=derived), path
        self._partial = self._target.with_name(f".{self._target.name}.{os.getpid()}.part")
        self.file = _opened(self._partial, _mode(self._target, private=private))
        self.size = 0

    def write(self, data: bytes | memoryview) -> None:
        """Write bytes."""
        with named_errors(self._name):
            self.file.write(data)
        self.size += len(data)

    def commit(self) -> Position:
        """Do nothing: the file appears at the end."""
        return {}

    def close(self) -> None:
        """Move the file to its name."""
        if self.file.closed:
            return
        with named_errors(self._name):
            _sync(self.file)
            self.file.close()
        self._partial.replace(self._target)
        sync_directory(self._target.parent)

    def discard(self) -> None:
        """Remove what was written."""
        with suppress(OSError):  # such as a full disk; the file is closed nevertheless
            self.file.close()
        self._partial.unlink(missing_ok=True)


class AppendedFile:
    """A file that grows, and is cut to the position of its last commit when it is opened.

    Without a position the file begins empty. If the path is `derived` from another, a link
    there is refused. A StateError is raised if the file is shorter than the position says, or
    differs there.
    """

    def __init__(self, path: str, position: Position | None, *, derived: bool = False) -> None:
        self._name = path
        target = self._target = _target(path, derived=derived)
        self.size = position["bytes"] if position else 0
        size = target.stat().st_size if target.exists() else 0
        if size < self.size:
            msg = (
                f"output {path} has {size} bytes, but {self.size} were committed; "
                "put the file back, or remove state and outputs to start anew"
            )
            raise StateError(msg)
        if position and last_block(target, self.size) != position["last"]:
            msg = (
                f"output {path} is not what was written before: it differs at byte {self.size}; "
                "put the file back, or remove state and outputs to start anew"
            )
            raise StateError(msg)
        self._file = open(target, "ab", opener=_unlinked)  # noqa: SIM115
        self._file.truncate(self.size)
        sync_directory(target.parent)

    def write(self, data: bytes) -> None:
        """Append bytes."""
        with named_errors(self._name):
            self._file.write(data)
        self.size += len(data)

    def commit(self) -> Position:
        """Make all bytes durable; return their number, and a hash of the last bytes."""
        with named_errors(self._name):
            _sync(self._file)
        return {"bytes": self.size, "last": last_block(self._target, self.size)}

    def close(self) -> None:
        """Commit and close."""
        if not self._file.closed:
            with named_errors(self._name):
                _sync(self._file)
            self._file.close()

    def discard(self) -> None:
        """Close; what was written since the last commit is cut off when the file is resumed."""
        with suppress(OSError):
            self._file.close()


@contextmanager
def named_errors(path: str) -> Iterator[None]:
    """Add the name of a file to the OSErrors in a `with` block that have none."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = path
        raise


def _mode(target: Path, *, private: bool) -> int | None:
    """Return the permissions of a file; None for the default."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(target.stat().st_mode)
    return 0o600 if private else None


def _opened(path: Path, mode: int | None) -> BinaryIO:
    """Open a file for writing; it is never readable by more users than its permissions say."""
    made = 0o666 if mode is None else mode & 0o600
    # A crashed process of the same number may have left a file. "x" follows no link.
    path.unlink(missing_ok=True)
    file = open(path, "xb", opener=lambda name, flags: os.open(name, flags, made))  # noqa: SIM115
    if mode is not None and stat.S_IMODE(os.fstat(file.fileno()).st_mode) != mode:
        os.fchmod(file.fileno(), mode)
    return file


def _unlinked(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def last_block(path: Path, size: int) -> str:
    """Return a hash of the last bytes before `size` in a file."""
    if not size:
        return ""
    with path.open("rb") as file:
        file.seek(max(size - _BLOCK, 0))
        return blake2b(file.read(min(size, _BLOCK)), digest_size=16).hexdigest()


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def write_whole(path: str, data: bytes, *, derived: bool = False) -> None:
    """Write a file as a whole or not at all, or into a stream; see `WholeFile`."""
    destination: Destination = (
        OutputStream(path) if is_stream(path) else WholeFile(path, derived=derived)
    )
    try:
        destination.write(data)
        destination.close()
    except BaseException:
        destination.discard()
        raise


def sync_directory(path: Path) -> None:
    """Make the names of files in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
