"""Where bytes go: a whole file or none, the end of a file, or a stream.

Governing rule: under its name stands either the old file or the complete new
one (`Whole`), or what was committed and perhaps more, which goes when the file
is opened at a position (`Appended`). What was written to a stream, a pipe or a
device (`Stream`) cannot be taken back.
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
from abers_connectors.files.naming import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.records import Position

__all__ = [
    "Appended",
    "Place",
    "Stream",
    "Whole",
    "is_stream",
    "last_block",
    "naming",
    "require_directory",
    "sync_directory",
    "write_whole",
]

_BLOCK = 1 << 12  # bytes: by so many at its end a file is known again


class Place(Protocol):
    """Takes bytes."""

    size: int
    """How many bytes there are."""

    def write(self, data: bytes) -> None:
        """Take some bytes."""
        ...

    def commit(self) -> Position:
        """Make them durable, if that can be."""
        ...

    def close(self) -> None:
        """Commit for good."""
        ...

    def discard(self) -> None:
        """Leave the place as it was at the last commit, as far as that can be."""
        ...


def _target(path: str, *, derived: bool = False) -> Path:
    """Give the file that a path names; a link stays a link, what it points to is written.

    Nobody named a link in the place of a derived name, so that one is not followed.

    Raises
    ------
    ParameterError
        If it is a directory, or in none.
    """
    named = Path(path)
    target = named.parent.resolve() / named.name if derived else named.resolve()
    if target.is_dir():
        msg = f"output {path} is a directory; name a file in it"
        raise ParameterError(msg)
    require_directory(path, target.parent)
    return target


def require_directory(path: str, parent: Path) -> None:
    """Refuse, with a ParameterError, an output in a directory that is not there."""
    if not parent.is_dir():
        msg = f"output {path}: there is no directory {parent}; make it first"
        raise ParameterError(msg)


def is_stream(path: str) -> bool:
    """Say whether a path is standard output, a pipe or a device."""
    return path == STANDARD or (Path(path).exists() and not _is_ordinary(Path(path)))


def _is_ordinary(path: Path) -> bool:
    return path.is_file() or path.is_dir()


class Stream:
    """Standard output, a pipe or a device."""

    def __init__(self, path: str) -> None:
        self._own = path != STANDARD
        self._name = path if self._own else "standard output"
        self._file: BinaryIO = Path(path).open("wb") if self._own else sys.stdout.buffer  # noqa: SIM115
        self.size = 0

    def write(self, data: bytes) -> None:
        """Write some bytes."""
        rest = memoryview(data)
        with naming(self._name):
            while rest:  # unbuffered, as PYTHONUNBUFFERED has it, standard output takes what it can
                rest = rest[self._file.write(rest) :]
        self.size += len(data)

    def commit(self) -> Position:
        """Hand on what is buffered."""
        with naming(self._name):
            self._file.flush()
        return {}

    def close(self) -> None:
        """Hand on what is buffered, and close what was opened here."""
        self.commit()
        if self._own:
            self._file.close()

    def discard(self) -> None:
        """Close; what is buffered and cannot be handed on is lost."""
        with suppress(OSError):
            (self._file.close if self._own else self._file.flush)()


class Whole:
    """A file that stands under its name when it is complete.

    Parameters
    ----------
    path
        Of the file. One that is there keeps its permissions.
    private
        Whether a new one is for its owner alone.
    derived
        Whether the path is made of another one; then a link there is replaced, not followed.
    """

    def __init__(self, path: str, *, private: bool = False, derived: bool = False) -> None:
        self._target, self._name = _target(path, derived=derived), path
        self._partial = self._target.with_name(f".{self._target.name}.{os.getpid()}.part")
        self.file = _opened(self._partial, _mode(self._target, private=private))
        self.size = 0

    def write(self, data: bytes | memoryview) -> None:
        """Write some bytes."""
        with naming(self._name):
            self.file.write(data)
        self.size += len(data)

    def commit(self) -> Position:
        """Do nothing: until the end there is no file."""
        return {}

    def close(self) -> None:
        """Put the file under its name."""
        if self.file.closed:
            return
        with naming(self._name):
            _sync(self.file)
            self.file.close()
        self._partial.replace(self._target)
        sync_directory(self._target.parent)

    def discard(self) -> None:
        """Remove what was written."""
        with suppress(OSError):  # on a full disk, say; it is closed all the same
            self.file.close()
        self._partial.unlink(missing_ok=True)


class Appended:
    """A file that grows, and can be cut to what was committed.

    Parameters
    ----------
    path
        Of the file.
    position
        What the last commit gave: what came after it is cut off. Without one the file is
        started anew.
    derived
        Whether the path is made of another one; then a link there is refused.

    Raises
    ------
    StateError
        If the file is shorter than the position says, or ends there in another way.
    """

    def __init__(self, path: str, position: Position | None, *, derived: bool = False) -> None:
        self._name = path
        target = self._target = _target(path, derived=derived)
        self.size = position["bytes"] if position else 0
        there = target.stat().st_size if target.exists() else 0
        if there < self.size:
            msg = (
                f"output {path} has {there} bytes, but {self.size} were committed; "
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
        """Append some bytes."""
        with naming(self._name):
            self._file.write(data)
        self.size += len(data)

    def commit(self) -> Position:
        """Make all bytes durable, and say how many there are, and which the last ones are."""
        with naming(self._name):
            _sync(self._file)
        return {"bytes": self.size, "last": last_block(self._target, self.size)}

    def close(self) -> None:
        """Commit for good."""
        if not self._file.closed:
            with naming(self._name):
                _sync(self._file)
            self._file.close()

    def discard(self) -> None:
        """Leave what was written since the last commit to whoever opens the file at it."""
        with suppress(OSError):
            self._file.close()


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Give the errors of the system in a `with` block the name of a file, which few of them have.

    Examples
    --------
    >>> with naming("out.csv"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    ...
    OSError: [Errno 28] No space left on device: 'out.csv'
    """
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = path
        raise


def _mode(target: Path, *, private: bool) -> int | None:
    """Give the permissions that a file is to have; None for those of any new file."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(target.stat().st_mode)
    return 0o600 if private else None


def _opened(path: Path, mode: int | None) -> BinaryIO:
    """Open a file to write it; at no moment may it be read by more than are to read it."""
    made = 0o666 if mode is None else mode & 0o600
    # One of the same process number may be left from a crash. "x" follows no link.
    path.unlink(missing_ok=True)
    file = open(path, "xb", opener=lambda name, flags: os.open(name, flags, made))  # noqa: SIM115
    if mode is not None and stat.S_IMODE(os.fstat(file.fileno()).st_mode) != mode:
        os.fchmod(file.fileno(), mode)
    return file


def _unlinked(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def last_block(path: Path, size: int) -> str:
    """Give the hash of the last bytes of a file, or of its first `size` ones."""
    if not size:
        return ""
    with path.open("rb") as file:
        file.seek(max(size - _BLOCK, 0))
        return blake2b(file.read(min(size, _BLOCK)), digest_size=16).hexdigest()


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def write_whole(path: str, data: bytes, *, derived: bool = False) -> None:
    """Put bytes under a name, all or none of them, or into a stream.

    Parameters
    ----------
    path
        Of the file.
    data
        All of it.
    derived
        As of `Whole`.

    Raises
    ------
    ParameterError
        If the name is that of a directory, or in none.
    """
    place: Place = Stream(path) if is_stream(path) else Whole(path, derived=derived)
    try:
        place.write(data)
        place.close()
    except BaseException:
        place.discard()
        raise


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
