"""Files in a folder or in a bucket.

Every error of the storage is an OSError, and so is a call that does not return in time: callers
need not know the errors of fsspec. A file gets its name when it is completely written, so nobody
reads half of one.
"""

from __future__ import annotations

from concurrent.futures import Future, wait
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from abers.exceptions import MissingExtraError, ParameterError
from abers_connectors.extras import extra
from abers_connectors.sinks.destination import WholeFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from abers.serialization import Piece

__all__ = ["Storage", "StorageError", "StorageTimeoutError"]

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
        """List a folder, with name, type and size; empty without one."""

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
