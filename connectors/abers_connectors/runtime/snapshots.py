"""Store of the snapshots of tasks, in a folder or in a bucket.

Every error of the storage is an OSError, and so is a call that does not return in time: callers
need not know the errors of fsspec. A snapshot is written under another name and then renamed, so
that a reader finds all of it or nothing. A snapshot is never removed in favour of an older
snapshot, since a process that was replaced may still write.
"""

from __future__ import annotations

import logging
import re
from concurrent.futures import Future, wait
from contextlib import suppress
from io import BytesIO
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from abers.exceptions import MissingExtraError, ParameterError
from abers_connectors.extras import extra
from abers_connectors.sinks.destination import WholeFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from abers.serialization import Piece

__all__ = ["SnapshotStore", "Storage", "StorageError", "StorageTimeoutError", "StoredSnapshot"]

T = TypeVar("T")

_PIECE = 1 << 20  # bytes of a read, so that each read ends in time
_BLOCK = 8 << 20  # bytes of a write; S3 takes no less than 5 MiB
_WRITE_FACTOR = 10  # writes may take so many times as long: a bucket renames by a copy
_MAX_STUCK = 8  # calls that hang and cannot be ended; beyond that every call fails at once


class StorageError(OSError):
    """The storage failed with an error of its own library."""


class StorageTimeoutError(StorageError):
    """A call of the storage did not return in time."""


class Storage:
    """A folder, which need not exist, or a URL that fsspec knows, such as "s3://bucket/abers".

    A call may take `timeout` seconds, and ten times as many if it writes. If the storage cannot be
    reached, no error is raised here, and every later call tries again.

    Raises
    ------
    MissingExtraError
        If fsspec, or the library that it needs for this URL, is not installed.
    ParameterError
        If fsspec does not know the scheme of the URL.

    Examples
    --------
    >>> storage = Storage("memory://stored")
    >>> storage.write("/stored/a", [b"some ", b"bytes"])
    >>> b"".join(storage.read("/stored/a"))
    b'some bytes'
    """

    def __init__(self, url: str, timeout: float = 30.0) -> None:
        self._fsspec = extra("fsspec", "a store of snapshots", "kafka")
        self._url, self._timeout = url, timeout
        self._found: tuple[Any, str] | None = None
        self._stuck: list[Thread] = []
        with suppress(OSError):  # later calls try again, and raise
            self._require_known()

    @property
    def root(self) -> str:
        """Prefix of all names; an OSError if the storage cannot be reached."""
        return str(self._call(self._open)[1]).rstrip("/")

    def entries(self, folder: str) -> list[dict[str, Any]]:
        """List a folder, with name, type and size; return an empty list without a folder."""

        def list_folder() -> list[dict[str, Any]]:
            files, _ = self._open()
            files.invalidate_cache(folder)  # other processes write there
            found: list[dict[str, Any]] = files.ls(folder, detail=True)
            return found

        try:
            return self._call(list_folder)
        except FileNotFoundError:
            return []

    def read(self, name: str) -> Iterator[bytes]:
        """Read a file in pieces, each when it is wanted."""
        file = self._call(lambda: self._open()[0].open(name, "rb", block_size=_PIECE))
        try:
            while piece := self._call(lambda: bytes(file.read(_PIECE))):
                yield piece
        except StorageTimeoutError:
            raise  # closing would time out too
        except BaseException:
            self._call(file.close)
            raise
        self._call(file.close)

    def write(self, name: str, pieces: Iterable[Piece]) -> None:
        """Write a file, all of it or nothing, even if the pieces raise."""

        def open_file() -> tuple[Any, Callable[[], object]]:
            files, _ = self._open()
            files.makedirs(name.rsplit("/", 1)[0], exist_ok=True)
            if "file" in _protocols(files):
                whole = WholeFile(name, private=True, derived=True)
                return whole, lambda: None
            file = files.open(f"{name}.part", "wb", block_size=_BLOCK)
            return file, lambda: files.mv(f"{name}.part", name)

        file, publish = self._call(open_file, _WRITE_FACTOR)
        try:
            for piece in pieces:
                self._call(lambda: file.write(piece), _WRITE_FACTOR)  # noqa: B023 - done before the next
            self._call(file.close, _WRITE_FACTOR)
            self._call(publish, _WRITE_FACTOR)
        except BaseException as error:
            if not isinstance(error, StorageTimeoutError):  # discarding would time out too
                with suppress(OSError):
                    self._call(file.discard)
            with suppress(AttributeError):
                file.closed = True  # or its rest is written when it is garbage-collected
            raise

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        with suppress(FileNotFoundError):
            self._call(lambda: self._open()[0].rm_file(name))

    def _require_known(self) -> None:
        """Check that fsspec knows the URL, whether or not the storage can be reached."""
        try:
            self._call(self._open)
        except StorageError as error:
            msg = f"snapshots in {self._url}: {error.__cause__}"
            if isinstance(error.__cause__, ImportError):  # fsspec says what to install
                raise MissingExtraError(msg) from error
            if isinstance(error.__cause__, ValueError):
                msg = f"{msg}; name a folder, or a URL that fsspec knows"
                raise ParameterError(msg) from error

    def _open(self) -> tuple[Any, str]:
        """Open the storage; some connect to it."""
        if self._found is None:
            self._found = self._fsspec.core.url_to_fs(self._url)
        return self._found

    def _call(self, call: Callable[[], T], times: int = 1) -> T:
        """Call in a thread, since a call that hangs cannot be ended, only abandoned."""
        self._stuck = [one for one in self._stuck if one.is_alive()]
        if len(self._stuck) >= _MAX_STUCK:
            msg = f"{len(self._stuck)} earlier calls have not returned yet"
            raise StorageTimeoutError(msg)
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                future.set_exception(error)

        thread = Thread(target=run, name="storage", daemon=True)
        thread.start()
        if not wait([future], times * self._timeout).done:
            self._stuck.append(thread)
            msg = f"there was no answer for {times * self._timeout:g} s"
            raise StorageTimeoutError(msg)
        try:
            return future.result()
        except OSError:
            raise
        except Exception as error:
            msg = f"{type(error).__name__}: {error}"
            raise StorageError(msg) from error


def _protocols(files: Any) -> tuple[str, ...]:  # noqa: ANN401 - fsspec has no types
    named = files.protocol
    return (named,) if isinstance(named, str) else tuple(named)


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

        If the pieces raise, nothing is saved. Raises an OSError if the snapshot cannot be written;
        the earlier snapshots remain.
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

        `tick` is called after each part that was read, and may raise to stop. A snapshot that
        cannot be read is skipped, as is a folder that cannot be listed, and `failed` is called with
        a sentence about it. With `oldest`, the oldest comes first.
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
