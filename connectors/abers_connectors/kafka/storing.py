"""Files by their names, in a folder or in a bucket.

Governing rule: whatever a store raises is an OSError to who asked, so that nobody has to know the
errors of its library, and so is silence; and a file that was not written to its end is under no
name that is read.
"""

from __future__ import annotations

from concurrent.futures import Future, wait
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from abers.exceptions import MissingExtraError, ParameterError
from abers_connectors.extras import extra
from abers_connectors.files.places import Whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from abers._sealed import Piece

__all__ = ["SilentError", "Storage", "StorageError"]

T = TypeVar("T")

_PIECE = 1 << 20  # bytes that are asked for at once, so that one sees whether any come
_BLOCK = 8 << 20  # bytes that are sent at once; S3 takes no less than 5 MiB
_WRITING = 10  # times as long is what a call may take that writes: a bucket renames by a copy
_MOST_STUCK = 8  # calls that hang and cannot be ended; then nobody is asked any more


class StorageError(OSError):
    """A store failed with an error of its own library."""


class SilentError(StorageError):
    """A store did not answer in time."""


class Storage:
    """A folder or a bucket.

    Parameters
    ----------
    url
        A folder, which need not be there, or a URL that fsspec knows.
    patience
        Seconds without an answer after which a call has failed; ten times as many if it writes.

    Raises
    ------
    MissingExtraError
        If fsspec, or what it needs for this URL, is not installed.
    ParameterError
        If nobody knows such a URL. A store that cannot be reached is no reason: it is asked again
        when it is needed.

    Examples
    --------
    >>> storage = Storage("memory://stored")
    >>> storage.write("/stored/a", [b"some ", b"bytes"])
    >>> b"".join(storage.read("/stored/a"))
    b'some bytes'
    """

    def __init__(self, url: str, patience: float = 30.0) -> None:
        self._fsspec = extra("fsspec", "a place of snapshots", "kafka")
        self._url, self._patience = url, patience
        self._found: tuple[Any, str] | None = None
        self._stuck: list[Thread] = []
        with suppress(OSError):  # who needs the store asks again, and is told
            self._require_known()

    @property
    def root(self) -> str:
        """What the names of all files begin with; an OSError if the store cannot be reached."""
        return str(self._ask(self._open)[1]).rstrip("/")

    def entries(self, folder: str) -> list[dict[str, Any]]:
        """List a folder, with name, type and size; nothing if it is not there."""

        def listed() -> list[dict[str, Any]]:
            files, _ = self._open()
            files.invalidate_cache(folder)  # others write there
            found: list[dict[str, Any]] = files.ls(folder, detail=True)
            return found

        try:
            return self._ask(listed)
        except FileNotFoundError:
            return []

    def read(self, name: str) -> Iterator[bytes]:
        """Give the bytes of a file in pieces, each read when it is asked for."""
        file = self._ask(lambda: self._open()[0].open(name, "rb", block_size=_PIECE))
        try:
            while piece := self._ask(lambda: bytes(file.read(_PIECE))):
                yield piece
        except SilentError:
            raise  # it would not answer to this either
        except BaseException:
            self._ask(file.close)
            raise
        self._ask(file.close)

    def write(self, name: str, pieces: Iterable[Piece]) -> None:
        """Write a file, all of it or nothing; what the pieces raise is raised."""

        def opened() -> tuple[Any, Callable[[], object]]:
            files, _ = self._open()
            files.makedirs(name.rsplit("/", 1)[0], exist_ok=True)
            if "file" in _protocols(files):
                whole = Whole(name, private=True, derived=True)
                return whole, lambda: None
            file = files.open(f"{name}.part", "wb", block_size=_BLOCK)
            return file, lambda: files.mv(f"{name}.part", name)

        file, renamed = self._ask(opened, _WRITING)
        try:
            for piece in pieces:
                self._ask(lambda: file.write(piece), _WRITING)  # noqa: B023 - done before the next
            self._ask(file.close, _WRITING)
            self._ask(renamed, _WRITING)
        except BaseException as error:
            if not isinstance(error, SilentError):  # it would not answer to this either
                with suppress(OSError):
                    self._ask(file.discard)
            with suppress(AttributeError):
                file.closed = True  # or what is left of it is sent when nobody holds it any more
            raise

    def remove(self, name: str) -> None:
        """Remove a file, if nobody has done so before."""
        with suppress(FileNotFoundError):
            self._ask(lambda: self._open()[0].rm_file(name))

    def _require_known(self) -> None:
        """Refuse a URL for which there is no store, whether or not it can be reached."""
        try:
            self._ask(self._open)
        except StorageError as error:
            msg = f"snapshots in {self._url}: {error.__cause__}"
            if isinstance(error.__cause__, ImportError):  # fsspec says what to install
                raise MissingExtraError(msg) from error
            if isinstance(error.__cause__, ValueError):
                msg = f"{msg}; name a folder, or a URL that fsspec knows"
                raise ParameterError(msg) from error

    def _open(self) -> tuple[Any, str]:
        """Open the store, which for some is to connect to it."""
        if self._found is None:
            self._found = self._fsspec.core.url_to_fs(self._url)
        return self._found

    def _ask(self, call: Callable[[], T], times: int = 1) -> T:
        """Ask the store in a thread, since a call that hangs cannot be ended, only left."""
        self._stuck = [one for one in self._stuck if one.is_alive()]
        if len(self._stuck) >= _MOST_STUCK:
            msg = f"{len(self._stuck)} earlier calls have had no answer yet"
            raise SilentError(msg)
        future: Future[T] = Future()

        def asking() -> None:
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - it goes to who asked
                future.set_exception(error)

        thread = Thread(target=asking, name="storage", daemon=True)
        thread.start()
        if not wait([future], times * self._patience).done:
            self._stuck.append(thread)
            msg = f"there was no answer for {times * self._patience:g} s"
            raise SilentError(msg)
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
