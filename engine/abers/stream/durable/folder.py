"""The folder of a durable processor: snapshots, files of its journal, and the lock of its writer.

A snapshot and the file of the journal that follows have the number of frames before them as their
names. Files appear whole, or not at all.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import socket
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from abers.exceptions import DurabilityError, ParameterError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers.serialization import Piece

__all__ = ["StateFolder"]

_LOCK = "lock"
_DIGITS = 20  # so that names sort like numbers
_NAME = re.compile(rf"(\d{{{_DIGITS}}})\.(snapshot|journal|answers)", re.ASCII)
_PARTIAL = ".part"
_NO_FOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a named pipe must not wait
_KEPT = 2  # snapshots: if the newest cannot be read, the one before can


class StateFolder:
    """Snapshots and journal in a folder.

    Links within the folder are refused, since a copy of it would not have what they name.

    Parameters
    ----------
    path
        The folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not os.fspath(path):
            msg = "path is empty; name a folder"
            raise ParameterError(msg)
        self.path = Path(path)

    # Names

    def numbers(self, kind: str) -> list[int]:
        """Return the numbers of the snapshots, or of the files of the journal, ascending."""
        found = [_NAME.fullmatch(one.name) for one in self.path.iterdir()]
        return sorted(int(one[1]) for one in found if one is not None and one[2] == kind)

    def file(self, number: int, kind: str) -> Path:
        """Return the path of a snapshot, or of a file of the journal."""
        return self.path / f"{number:0{_DIGITS}}.{kind}"

    def is_new(self, least: int) -> bool:
        """Return whether nothing was written: no snapshot, and no file with more than `least`."""
        found = self.numbers("journal")
        empty = found in ([], [0]) and all(self.size(one, "journal") <= least for one in found)
        return empty and not self.numbers("snapshot")

    # Files

    def size(self, number: int, kind: str) -> int:
        """Return the number of bytes of a file."""
        return self.file(number, kind).lstat().st_size

    def read(self, number: int, kind: str, start: int = 0) -> bytes:
        """Return the bytes of a file from an offset on."""
        descriptor = self.open(number, kind, os.O_RDONLY)
        with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - of a descriptor
            file.seek(start)
            return file.read()

    def open(self, number: int, kind: str, flags: int) -> int:
        """Return a descriptor of a file."""
        return _open(self.file(number, kind), flags)

    def write(self, number: int, kind: str, pieces: Iterable[Piece]) -> None:
        """Write a file that appears when all of it is on disk; if the pieces raise, none does."""
        file = self.file(number, kind)
        part = file.with_name(file.name + _PARTIAL)
        try:
            descriptor = _open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            with open(descriptor, "wb") as writing:  # noqa: PTH123 - of a descriptor
                writing.writelines(pieces)
                writing.flush()
                os.fsync(descriptor)
            part.rename(file)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise
        self._sync()

    def remove_old(self) -> None:
        """Remove what no snapshot needs, but the newest and the one before."""
        kept = self.numbers("snapshot")[-_KEPT:]
        for kind in ("snapshot", "answers", "journal"):
            for number in self.numbers(kind):
                if number < kept[0]:
                    self.file(number, kind).unlink()

    def remove_parts(self) -> None:
        """Remove files that were not completed."""
        for one in [*self.path.glob(f"*{_PARTIAL}")]:
            if _NAME.fullmatch(one.name.removesuffix(_PARTIAL)):
                one.unlink()

    def _sync(self) -> None:
        """Make new names durable."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    # The writer

    def lock(self) -> int:
        """Become the writer, until the descriptor that is returned is closed.

        Raises
        ------
        DurabilityError
            If another process is the writer.
        """
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = _open(self.path / _LOCK, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 1 << 10).decode("utf-8", "replace").strip()
            os.close(descriptor)
            msg = (
                f"{self.path}: {owner or 'another process'} writes there; end it, or name another "
                "folder, or read along with a Follower"
            )
            raise DurabilityError(msg) from None
        except OSError:
            os.close(descriptor)
            raise
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        return descriptor


def _open(file: Path, flags: int) -> int:
    """Open a file, which must be a regular file and no link."""
    try:
        descriptor = os.open(file, flags | _NO_FOLLOW, 0o600)
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.EMLINK, errno.ENXIO}:
            raise
        descriptor = -1
    if descriptor < 0 or not stat.S_ISREG(os.fstat(descriptor).st_mode):
        if descriptor >= 0:
            os.close(descriptor)
        msg = f"{file} is no regular file; put the file itself there"
        raise StateError(msg)
    return descriptor
