"""Where the snapshots of shards lie: a folder, or a bucket by its URL.

Governing rule: a snapshot is written under another name and then renamed, so
that whoever reads finds all of it or nothing; and a snapshot is never removed
for the sake of an older one, since a process that was put aside may still write.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.exceptions import MissingExtraError, ParameterError
from abers_connectors.extras import extra
from abers_connectors.files.places import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Snapshots", "Stored"]

_NAME = re.compile(r"(\d{20})\.abers", re.ASCII)  # so many digits that names sort like offsets
_PARTIAL = re.compile(r"\.?\d{20}\.abers\.\d*\.?part", re.ASCII)

_log = logging.getLogger(__name__)


class Stored(NamedTuple):
    """A snapshot that is there.

    Parameters
    ----------
    partition
        Of its shard.
    offset
        Where the changelog goes on behind it.
    name
        Its path or the URL within the storage.
    size
        Its bytes.
    """

    partition: int
    offset: int
    name: str
    size: int


class Snapshots:
    """The snapshots of an application.

    Parameters
    ----------
    url
        A folder, which need not be there, or a URL that fsspec knows: "s3://bucket/abers".
    app
        The application; several share a folder without meeting.
    keep
        How many of each shard are kept.

    Raises
    ------
    MissingExtraError
        If fsspec, or what it needs for this URL, is not installed.
    ParameterError
        If nobody knows such a URL.

    Examples
    --------
    >>> snapshots = Snapshots("memory://example", "fraud")
    >>> snapshots.save(0, 41, b"first"), snapshots.save(0, 95, b"second")
    ('/example/fraud/0/00000000000000000041.abers', '/example/fraud/0/00000000000000000095.abers')
    >>> [blob for _, blob in snapshots.newest(0)]
    [b'second', b'first']
    """

    def __init__(self, url: str, app: str, keep: int = 3) -> None:
        fsspec = extra("fsspec", "a place of snapshots", "kafka")
        try:
            self._storage, root = fsspec.core.url_to_fs(url)
        except ImportError as error:  # fsspec says what to install
            msg = f"snapshots in {url}: {error}"
            raise MissingExtraError(msg) from error
        except ValueError as error:
            msg = f"snapshots in {url}: {error}; name a folder, or a URL that fsspec knows"
            raise ParameterError(msg) from error
        self._root, self._keep = f"{root.rstrip('/')}/{app}", keep
        self._local = "file" in _protocols(self._storage)

    def save(self, partition: int, offset: int, blob: bytes) -> str:
        """Keep a snapshot, and remove those of its shard that are too many.

        Not from a forked child, unless in a local folder: what talks to a bucket has threads.

        Parameters
        ----------
        partition
            Of the shard.
        offset
            Where the changelog goes on behind it.
        blob
            The snapshot.

        Returns
        -------
        str
            Its name.

        Raises
        ------
        OSError
            If it cannot be written; a storage far away may raise errors of its own. What was
            there before is there.
        """
        folder = self._folder(partition)
        self._storage.makedirs(folder, exist_ok=True)
        self._sweep(folder)
        name = f"{folder}/{offset:020}.abers"
        self._write(name, blob)
        before = [one for one in self._of(partition) if one.offset <= offset]
        for one in before[self._keep :]:
            self._remove(one.name)
        return name

    def newest(self, partition: int) -> Iterator[tuple[str, bytes]]:
        """Give the snapshots of a shard, newest first, each read when it is asked for.

        Parameters
        ----------
        partition
            Of the shard.

        Yields
        ------
        tuple
            Name, and snapshot; one that cannot be read is passed over with a warning, and so are
            all of a folder that cannot be listed.
        """
        try:
            stored = self._of(partition)
        except OSError as error:
            _log.warning("snapshots of partition %d cannot be listed: %s", partition, error)
            return
        for one in stored:
            try:
                blob: bytes = self._storage.cat_file(one.name)
            except FileNotFoundError:  # removed meanwhile, for a newer one
                continue
            except OSError as error:
                _log.warning("snapshot %s cannot be read and is passed over: %s", one.name, error)
                continue
            yield one.name, blob

    def stored(self) -> list[Stored]:
        """Give all that are there, by partition, newest first."""
        folders = (entry["name"].rsplit("/", 1)[-1] for entry in self._entries(self._root))
        numbers = sorted(int(name) for name in folders if name.isascii() and name.isdecimal())
        return [one for number in numbers for one in self._of(number)]

    def remove(self, partition: int, *, but: int | None = None) -> None:
        """Remove those of a shard, all but the one of an offset."""
        for one in self._of(partition):
            if one.offset != but:
                self._remove(one.name)

    def _folder(self, partition: int) -> str:
        return f"{self._root}/{partition}"

    def _of(self, partition: int) -> list[Stored]:
        found = []
        for entry in self._entries(self._folder(partition)):
            name = _NAME.fullmatch(entry["name"].rsplit("/", 1)[-1])
            if name is not None and entry["type"] == "file":
                found.append(Stored(partition, int(name[1]), entry["name"], entry["size"]))
        return sorted(found, key=lambda one: one.offset, reverse=True)

    def _entries(self, folder: str) -> list[dict[str, Any]]:
        self._storage.invalidate_cache(folder)  # others write there
        try:
            found: list[dict[str, Any]] = self._storage.ls(folder, detail=True)
        except FileNotFoundError:
            return []
        return found

    def _write(self, name: str, blob: bytes) -> None:
        if self._local:
            write_whole(name, blob, derived=True)
            return
        self._storage.pipe_file(f"{name}.part", blob)
        self._storage.mv(f"{name}.part", name)

    def _sweep(self, folder: str) -> None:
        """Remove what was left by a process that was killed while it wrote."""
        for entry in self._entries(folder):
            if _PARTIAL.fullmatch(entry["name"].rsplit("/", 1)[-1]):
                self._remove(entry["name"])

    def _remove(self, name: str) -> None:
        with suppress(FileNotFoundError):  # somebody else did
            self._storage.rm_file(name)


def _protocols(storage: Any) -> tuple[str, ...]:  # noqa: ANN401 - fsspec has no types
    named = storage.protocol
    return (named,) if isinstance(named, str) else tuple(named)
