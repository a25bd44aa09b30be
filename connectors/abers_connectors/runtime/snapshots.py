"""Store of the snapshots of tasks, in a folder or in a bucket.

A snapshot is written under another name and then renamed, so that a reader finds all of it or
nothing. A snapshot is never removed in favour of an older snapshot, since a process that was
replaced may still write.
"""

from __future__ import annotations

import logging
import re
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from abers.exceptions import ParameterError
from abers_connectors.runtime.storage import Storage, StorageTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from abers.serialization import Piece

__all__ = ["SnapshotStore", "StoredSnapshot"]

_NAME = re.compile(r"(\d{20})\.abers", re.ASCII)  # so many digits that names sort like offsets
_PARTIAL = re.compile(r"\.?\d{20}\.abers\.\d*\.?part", re.ASCII)

_log = logging.getLogger(__name__)


class StoredSnapshot(NamedTuple):
    """A stored snapshot."""

    partition: int  # of its task
    offset: int  # at which the changelog continues
    name: str  # path or URL within the storage
    size: int  # bytes


class SnapshotStore:
    """The snapshots of an application; several applications can share a folder.

    It keeps the newest `keep` snapshots of each task; see `Storage` for `url` and `timeout`, and
    for what it raises.

    Examples
    --------
    >>> snapshots = SnapshotStore("memory://example", "fraud")
    >>> snapshots.save(0, 41, b"first"), snapshots.save(0, 95, b"second")
    ('/example/fraud/0/00000000000000000041.abers', '/example/fraud/0/00000000000000000095.abers')
    >>> [blob for _, blob in snapshots.newest(0)]
    [b'second', b'first']
    """

    def __init__(self, url: str, app: str, keep: int = 3, timeout: float = 30.0) -> None:
        self._url, self._timeout = url, timeout
        self._storage, self.app, self._keep = Storage(url, timeout), app, keep

    def save(self, partition: int, offset: int, pieces: bytes | Iterable[Piece]) -> str:
        """Save a snapshot, remove the oldest of its task, and return its name.

        If the pieces raise, nothing is saved. If it cannot be written, that is an OSError, and the
        earlier snapshots remain.
        """
        folder = self._folder(partition)
        self._sweep(folder)
        name = f"{folder}/{offset:020}.abers"
        self._storage.write(name, [pieces] if isinstance(pieces, bytes) else pieces)
        before = [one for one in self._of(partition) if one.offset <= offset]
        for one in before[self._keep :]:
            self._storage.remove(one.name)
        return name

    def newest(
        self,
        partition: int,
        tick: Callable[[], None] = lambda: None,
        failed: Callable[[str], None] = _log.warning,
        *,
        oldest: bool = False,
    ) -> Iterator[tuple[str, bytes]]:
        """Yield name and bytes of a task's snapshots, newest first, each when it is wanted.

        `tick` is called whenever a part was read, and may raise to stop. A snapshot that cannot be
        read is skipped, as is a folder that cannot be listed, and `failed` is called with a
        sentence about it. `oldest` starts with the oldest instead.
        """
        try:
            stored = self._of(partition)
        except OSError as error:
            failed(f"snapshots of partition {partition} cannot be listed: {error}")
            return
        for one in reversed(stored) if oldest else stored:
            try:
                blob = _whole(self._storage.read(one.name), tick)
            except FileNotFoundError:  # removed meanwhile, for a newer snapshot
                continue
            except OSError as error:
                failed(f"snapshot {one.name} cannot be read and is skipped: {error}")
                if isinstance(error, StorageTimeoutError):
                    return  # each of the others would time out too
                continue
            yield one.name, blob

    def stored(self) -> list[StoredSnapshot]:
        """Return all snapshots, by partition, newest first."""
        folders = (
            entry["name"].rsplit("/", 1)[-1]
            for entry in self._storage.entries(f"{self._storage.root}/{self.app}")
        )
        numbers = sorted(int(name) for name in folders if name.isascii() and name.isdecimal())
        return [one for number in numbers for one in self._of(number)]

    def of_only_application(self) -> SnapshotStore:
        """Return the snapshots of the only application that has some here, if it is another.

        Raises a ParameterError if several others have some.
        """
        if self.stored():
            return self
        entries = self._storage.entries(self._storage.root)
        names = sorted(one["name"].rsplit("/", 1)[-1] for one in entries)
        stores = [SnapshotStore(self._url, name, self._keep, self._timeout) for name in names]
        found = [one for one in stores if one.stored()]
        if len(found) > 1:
            msg = (
                f"{self._url} has snapshots of {', '.join(one.app for one in found)}, and none of "
                f"{self.app}: which to take is unknown; give each a folder of its own"
            )
            raise ParameterError(msg)
        return found[0] if found else self

    def remove(self, partition: int, *, but: int | None = None) -> None:
        """Remove the snapshots of a task, except that of an offset."""
        for one in self._of(partition):
            if one.offset != but:
                self._storage.remove(one.name)

    @staticmethod
    def offset(name: str) -> int:
        """Return the offset at which the changelog continues, from a snapshot's name."""
        return int(name.rsplit("/", 1)[-1].partition(".")[0])

    def _folder(self, partition: int) -> str:
        return f"{self._storage.root}/{self.app}/{partition}"

    def _of(self, partition: int) -> list[StoredSnapshot]:
        found = []
        for entry in self._storage.entries(self._folder(partition)):
            name = _NAME.fullmatch(entry["name"].rsplit("/", 1)[-1])
            if name is not None and entry["type"] == "file":
                found.append(StoredSnapshot(partition, int(name[1]), entry["name"], entry["size"]))
        return sorted(found, key=lambda one: one.offset, reverse=True)

    def _sweep(self, folder: str) -> None:
        """Remove the partial files of a process that was killed."""
        for entry in self._storage.entries(folder):
            if _PARTIAL.fullmatch(entry["name"].rsplit("/", 1)[-1]):
                self._storage.remove(entry["name"])


def _whole(pieces: Iterable[bytes], tick: Callable[[], None]) -> bytes:
    """Join pieces, without a second copy of them in memory."""
    whole = BytesIO()
    for piece in pieces:
        whole.write(piece)
        tick()
    return whole.getvalue()
