"""Where the snapshots of shards lie: a folder, or a bucket by its URL.

Governing rule: a snapshot is written under another name and then renamed, so
that whoever reads finds all of it or nothing; and a snapshot is never removed
for the sake of an older one, since a process that was put aside may still write.
"""

from __future__ import annotations

import logging
import re
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from abers_connectors.kafka.storing import SilentError, Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from abers._sealed import Piece

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
    patience
        Seconds that the store may be silent; see `abers_connectors.kafka.storing`.

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

    def __init__(self, url: str, app: str, keep: int = 3, patience: float = 30.0) -> None:
        self._storage, self._app, self._keep = Storage(url, patience), app, keep

    def save(self, partition: int, offset: int, pieces: bytes | Iterable[Piece]) -> str:
        """Keep a snapshot, and remove those of its shard that are too many.

        Parameters
        ----------
        partition
            Of the shard.
        offset
            Where the changelog goes on behind it.
        pieces
            The snapshot, whole or in pieces; what they raise is raised, and nothing is kept.

        Returns
        -------
        str
            Its name.

        Raises
        ------
        OSError
            If it cannot be written. What was there before is there.
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
        """Give the snapshots of a shard, newest first, each read when it is asked for.

        Parameters
        ----------
        partition
            Of the shard.
        tick
            Called whenever some of it has come; it may raise to give up.
        failed
            Told in a sentence what cannot be read.
        oldest
            Whether the oldest comes first instead.

        Yields
        ------
        tuple
            Name, and snapshot; one that cannot be read is passed over, and so are all of a folder
            that cannot be listed.
        """
        try:
            stored = self._of(partition)
        except OSError as error:
            failed(f"snapshots of partition {partition} cannot be listed: {error}")
            return
        for one in reversed(stored) if oldest else stored:
            try:
                blob = _whole(self._storage.read(one.name), tick)
            except FileNotFoundError:  # removed meanwhile, for a newer one
                continue
            except OSError as error:
                failed(f"snapshot {one.name} cannot be read and is passed over: {error}")
                if isinstance(error, SilentError):
                    return  # the others lie there too, and each would be waited for
                continue
            yield one.name, blob

    def stored(self) -> list[Stored]:
        """Give all that are there, by partition, newest first."""
        folders = (
            entry["name"].rsplit("/", 1)[-1]
            for entry in self._storage.entries(f"{self._storage.root}/{self._app}")
        )
        numbers = sorted(int(name) for name in folders if name.isascii() and name.isdecimal())
        return [one for number in numbers for one in self._of(number)]

    def remove(self, partition: int, *, but: int | None = None) -> None:
        """Remove those of a shard, all but the one of an offset."""
        for one in self._of(partition):
            if one.offset != but:
                self._storage.remove(one.name)

    @staticmethod
    def offset(name: str) -> int:
        """Tell where the changelog goes on behind the snapshot of a name that `newest` gave."""
        return int(name.rsplit("/", 1)[-1].partition(".")[0])

    def _folder(self, partition: int) -> str:
        return f"{self._storage.root}/{self._app}/{partition}"

    def _of(self, partition: int) -> list[Stored]:
        found = []
        for entry in self._storage.entries(self._folder(partition)):
            name = _NAME.fullmatch(entry["name"].rsplit("/", 1)[-1])
            if name is not None and entry["type"] == "file":
                found.append(Stored(partition, int(name[1]), entry["name"], entry["size"]))
        return sorted(found, key=lambda one: one.offset, reverse=True)

    def _sweep(self, folder: str) -> None:
        """Remove what was left by a process that was killed while it wrote."""
        for entry in self._storage.entries(folder):
            if _PARTIAL.fullmatch(entry["name"].rsplit("/", 1)[-1]):
                self._storage.remove(entry["name"])


def _whole(pieces: Iterable[bytes], tick: Callable[[], None]) -> bytes:
    """Put pieces together, with as little memory as the whole takes."""
    whole = BytesIO()
    for piece in pieces:
        whole.write(piece)
        tick()
    return whole.getvalue()
